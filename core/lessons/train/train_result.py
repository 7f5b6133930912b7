"""The results of the experiments beside Train's code: plain data, without torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class OneEpoch:
    batch_size: int
    steps: int
    samples_per_second: float
    accuracy: float  # test accuracy after the epoch


@dataclass(frozen=True)
class OneKindScore:
    """How well a model tells one class from the rest. Most labels are "no"."""

    accuracy: float  # share of right answers, which says little alone
    always_no: float  # the accuracy of a model that says no to every image
    recall: float  # the share of the class's own images that got a yes
