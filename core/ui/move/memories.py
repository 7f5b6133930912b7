"""The two memories of a training step as a picture: what is where, and what moves."""

from core.move.results import Held
from core.ui import format
from core.ui.charts.base import Palette

ROWS = (  # what may be there, from top to bottom
    *("model", "inputs", "targets", "outputs", "loss"),
    *("gradients", "optimizer state", "step counts"),
)
WIDTH, BOX, TOP, ROW = 460, 196, 40, 32  # pixels of the picture
HEIGHT = TOP + ROW * len(ROWS) + 8
BATCH = ("inputs", "targets")  # what the move moves; the host's copies are left behind
ON_HOST = "step counts"
SECONDS = 0.9  # that a move takes to be seen


def on_the_host(each: Held, one_memory: bool) -> bool:
    """Where it is; where both are one memory, where it would be."""
    return each.name == ON_HOST if one_memory else each.device == "cpu"


def picture(
    now: tuple[Held, ...],
    before: tuple[Held, ...],
    device: str,
    one_memory: bool,
    colors: Palette,
) -> str:
    """SVG: the host on the left, the device on the right; what is new stands out.

    Without anything `before` the batch comes from the host.
    """
    dashed = ' stroke-dasharray="6 4"' if one_memory else ""
    parts = [
        _memory(0, "Host: CPU", colors.cpu, "", colors),
        _memory(WIDTH - BOX, device, colors.accelerator, dashed, colors),
    ]
    known, there = ({each.name for each in held} for held in (before, now))
    for each in before:
        if each.name not in there:
            x = 0 if on_the_host(each, one_memory) else WIDTH - BOX
            parts.append(_gone(each, x, colors))
    for each in sorted(now, key=lambda each: ROWS.index(each.name)):
        host = on_the_host(each, one_memory)
        hue = colors.cpu if host else colors.accelerator
        moves = not before and each.name in BATCH
        if moves and not host:
            parts += [_gone(each, 0, colors), _arrow(each, colors)]
        parts.append(_tensors(each, host, hue, each.name not in known, moves, colors))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="14">'
        f"{''.join(parts)}</svg>"
    )


def _memory(x: int, name: str, hue: str, dashed: str, colors: Palette) -> str:
    return (
        f'<rect x="{x + 1}" y="1" width="{BOX - 2}" height="{HEIGHT - 2}" rx="8" '
        f'fill="{colors.ground}" stroke="{hue}" stroke-width="2"{dashed}/>'
        f'<text x="{x + 12}" y="26" font-weight="bold" fill="{colors.text}">{name}'
        "</text>"
    )


def _row(name: str) -> int:
    return TOP + ROW * ROWS.index(name)


def _tensors(
    each: Held, host: bool, hue: str, new: bool, moves: bool, colors: Palette
) -> str:
    """A bar with a name and a size; one that moves comes from the other memory."""
    x, y = 8 if host else WIDTH - BOX + 8, _row(each.name)
    shown = ""
    if moves and not host:
        shown = (
            '<animateTransform attributeName="transform" type="translate" '
            f'from="{-(WIDTH - BOX)} 0" to="0 0" dur="{SECONDS}s"/>'
        )
    elif new:
        shown = f'<animate attributeName="opacity" from="0" to="1" dur="{SECONDS}s"/>'
    return (
        f'<g>{shown}<rect x="{x}" y="{y}" width="{BOX - 16}" height="{ROW - 6}" '
        f'rx="4" fill="{colors.page}" stroke="{hue if new else colors.quiet}" '
        f'stroke-width="{2.5 if new else 1}"/>'
        f'<text x="{x + 8}" y="{y + 18}" fill="{colors.text}">'
        f"{each.name}</text>"
        f'<text x="{x + BOX - 24}" y="{y + 18}" text-anchor="end" '
        f'fill="{colors.text}">{format.size(each.bytes)}</text></g>'
    )


def _gone(each: Held, x: int, colors: Palette) -> str:
    """The place where tensors were before."""
    y = _row(each.name)
    return (
        f'<rect x="{x + 8}" y="{y}" width="{BOX - 16}" height="{ROW - 6}" rx="4" '
        f'fill="none" stroke="{colors.quiet}" stroke-dasharray="3 3"/>'
        f'<text x="{x + 16}" y="{y + 18}" fill="{colors.quiet}">'
        f"{each.name}</text>"
    )


def _arrow(each: Held, colors: Palette) -> str:
    """From the host to the device."""
    middle = _row(each.name) + (ROW - 6) / 2
    return (
        f'<path d="M{BOX - 8} {middle}H{WIDTH - BOX + 6}m-7 -5l7 5l-7 5" fill="none" '
        f'stroke="{colors.text}" stroke-width="1.5"/>'
    )


def in_words(now: tuple[Held, ...], one_memory: bool) -> str:
    """What the picture shows, for who can't see it."""
    places: dict[bool, list[str]] = {True: [], False: []}
    for each in now:
        places[on_the_host(each, one_memory)].append(
            f"{each.name} ({format.size(each.bytes)})"
        )
    host, device = (", ".join(places[where]) or "nothing" for where in (True, False))
    return f"In the memory of the host: {host}. In that of the device: {device}."
