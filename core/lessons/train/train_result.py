"""The results of the experiments beside the code: plain data, without torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class OneEpoch:
    batch_size: int
    steps: int
    samples_per_second: float
    accuracy: float  # on the test set, after it


@dataclass(frozen=True)
class OneKindScore:
    """`accuracy` says little if most labels are no."""

    accuracy: float  # share of right answers
    always_no: float  # the accuracy of a model that says no to every image
    found: float  # the part of the kind's own images that got a yes: recall
