"""Memory and time of several ways to train and to infer: plain data, without torch."""

from dataclasses import dataclass

from core.measure.environment import Environment
from core.measure.rows import Row, counted, pick, row
from core.registry import stored

STEP, CHECKPOINTED, ACCUMULATED = "one batch", "checkpointed", "accumulated"


@stored("memory_cost")
@dataclass(frozen=True)
class MemoryCost:
    kind: str  # "training" or "inference"
    name: str
    seconds: tuple[float, ...]  # one for each repeat; empty until times are measured
    peak_bytes: int | None  # None where the device does not count it
    # The greatest difference of a gradient or output from that of the first method of
    # this kind
    difference: float
    greatest: float  # the largest gradient or output, to compare `difference` with


@dataclass(frozen=True)
class Card:
    """The batches that fit on a simulated accelerator with little memory."""

    bytes: int  # the card's memory
    fits: dict[str, int]  # each method's largest batch that fits, a power of two
    # The out-of-memory error of a plain step with a batch that fits only with
    # checkpointing.
    message: str
    # The bytes of activations and gradients at the step's peak, for each method. All of
    # the methods use the same batch size: the largest that fits in a plain step.
    activations: dict[str, int]


@stored("memory")
@dataclass(frozen=True)
class MemoryLab:
    costs: tuple[MemoryCost, ...]
    batch_size: int
    parts: int  # small batches per batch, for gradient accumulation
    width: int
    layers: int
    environment: Environment
    date: str
    cards: tuple[Card, ...] = ()  # empty without the simulated accelerator

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
