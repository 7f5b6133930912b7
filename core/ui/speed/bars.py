"""A rung's bar as a picture: its speed, its spread, and the limit that holds for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.speed import ladder
from core.speed.ladder import Result
from core.speed.results import Roofline
from core.ui import format
from core.ui.charts.base import Palette

WIDTH, HEIGHT = 330, 40  # pixels; rows touch, so that a limit is one line
ROOM = 128  # for the figures, in a column of their own: no line runs through them


@dataclass(frozen=True)
class Bar:
    """What is drawn of a rung, in samples a second."""

    result: Result
    limit: float | None  # None: it was not measured

    @property
    def least(self) -> float:
        return self.result.samples / max(self.result.seconds)

    @property
    def most(self) -> float:
        return self.result.samples / min(self.result.seconds)

    @property
    def figures(self) -> str:
        """In one unit all the way down the ladder."""
        speed = format.rounded(self.result.samples_per_second, 3)
        return f"{speed}/s · {self.result.epoch_seconds:.2f} s"


def bars(found: Sequence[Result], limits: Sequence[Roofline]) -> dict[str, Bar]:
    """A bar for each rung that was measured, by its name."""
    return {
        each.rung: Bar(each, limit(each, found[:place], limits))
        for place, each in enumerate(found)
        if each.measured
    }


def limit(
    result: Result, before: Sequence[Result], limits: Sequence[Roofline]
) -> float | None:
    """Samples/s at best, with the numbers that the rung computes in, 16 bits or 32.

    The fastest reading counts: a limit is what the machine can do at best.
    """
    half = ladder.with_change(ladder.kept(before), result.rung).half
    dtype = "bfloat16" if half else "float32"
    seconds = [
        each.seconds(result.samples, result.steps, dtype)
        for each in limits
        if dtype in each.flops_per_second
    ]
    return result.samples / min(seconds) if seconds else None


def end(found: Sequence[Bar]) -> float:
    """Where the bars' common axis ends."""
    return max((max(each.most, each.limit or 0) for each in found), default=1.0)


def picture(bar: Bar, most: float, backend: str, colors: Palette) -> str:
    """SVG: filled where the rung was kept, hollow where it was taken back."""
    hue, middle = colors.of(backend), HEIGHT / 2

    def x(speed: float) -> float:
        return round(1 + speed / most * (WIDTH - ROOM), 1)

    width = max(2.0, x(bar.result.samples_per_second) - 1)
    fill = hue if bar.result.kept else colors.page
    dashed = ""
    if bar.limit is not None:
        dashed = (
            f'<path d="M{x(bar.limit)} 0V{HEIGHT}" stroke="{colors.quiet}" '
            'stroke-width="1.5" stroke-dasharray="6 4"/>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">'
        f'{dashed}<rect x="1" y="{middle - 9}" width="{width}" height="18" '
        f'fill="{fill}" stroke="{hue}" stroke-width="1.5"/>'
        f'<path d="M{x(bar.least)} {middle}H{x(bar.most)}" stroke="{colors.text}" '
        f'stroke-width="1.5"/><text x="{WIDTH}" y="{middle + 4}" text-anchor="end" '
        f'fill="{colors.text}">{bar.figures}</text></svg>'
    )
