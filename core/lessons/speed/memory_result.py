"""What ways to train and to infer cost in memory and time: plain data."""

from dataclasses import dataclass, field

from core.measure.environment import Environment
from core.measure.rows import Row, counted, pick, row

STEP, CHECKPOINTED, ACCUMULATED = "one batch", "checkpointed", "accumulated"


@dataclass(frozen=True)
class Peak:
    """The peak memory of one way, reported before its time is measured."""

    name: str
    bytes: int | None


@dataclass(frozen=True)
class MemoryCost:
    kind: str  # "training" or "inference"
    name: str
    seconds: tuple[float, ...]  # one for each repeat
    peak_bytes: int | None  # None where the device does not count it
    difference: float  # greatest, of gradients or outputs, from the first of its kind
    greatest: float  # gradient or output, to compare the difference with


@dataclass(frozen=True)
class Card:
    """A step of training on a simulated accelerator with little memory."""

    bytes: int  # the card's memory
    fits: dict[str, int]  # way: the largest batch, of powers of two
    message: str  # error of the plain step at the checkpointed step's batch size
    # way: bytes of a step at its peak, with the largest batch of the plain way,
    # beyond what is there before: activations, and some gradients
    activations: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class MemoryLab:
    costs: tuple[MemoryCost, ...]
    batch_size: int
    parts: int  # how many make up an accumulated batch
    width: int
    layers: int
    environment: Environment
    date: str
    cards: tuple[Card, ...] = ()  # none where the accelerator is real

    def rows(self) -> list[Row]:
        columns = (
            "way=name peak_bytes greatest_difference=difference greatest_value=greatest"
        )
        about = pick(self, "environment date batch_size width layers")
        return [
            row(cost.kind, cost.seconds, **pick(cost, columns), **about)
            for cost in self.costs
        ] + [
            counted(
                "largest batch",
                **about | {"batch_size": batch_size},
                way=way,
                memory_bytes=card.bytes,
            )
            for card in self.cards
            for way, batch_size in card.fits.items()
        ]
