"""A page to take home, from what a class has measured: HTML that a browser prints.

Everything is on it, in black on white: it needs no file and no network.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT, LEFT, BOTTOM = 360, 200, 38, 34  # pixels of the chart, and its margins
TICKS = (1, 2, 5)  # of each power of ten
MOST_NAMED, MOST_HARD, MOST_GUESSES = 5, 3, 4
STYLE = """
@page { size: A4; margin: 12mm 14mm; }
body { font: 9.5pt/1.35 system-ui, sans-serif; color: black; background: white;
       max-width: 182mm; margin: 0 auto; }
h1 { font-size: 16pt; margin: 0; } h2 { font-size: 11pt; margin: 3mm 0 1mm; }
p { margin: 1mm 0; } .two { display: grid; gap: 8mm;
       grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
pre, code { font: 8.5pt/1.35 ui-monospace, monospace; } pre { margin: 0; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; }
td, th { padding: .6mm 2mm .6mm 0; border-bottom: .2mm solid; vertical-align: top; }
td:last-child { white-space: nowrap; }
svg text { font: 10px system-ui, sans-serif; } @media print { .hint { display: none; } }
"""
RULES = (
    (
        "Ask once",
        'device = torch.accelerator.current_accelerator(check_available=True) or "cpu"',
    ),
    ("Modules move in place", "model.to(device)"),
    ("Tensors are copied", "x = x.to(device)"),
    ("Clear before you add", "optimizer.zero_grad()"),
    ("To evaluate, both", "model.eval(); torch.inference_mode()"),
    ("On a GPU, before a clock", "torch.accelerator.synchronize()"),
    ("A file from elsewhere", 'torch.load(f, weights_only=True, map_location="cpu")'),
)


@dataclass(frozen=True)
class Point:
    """Somebody's best run."""

    name: str  # empty: it is not told
    what: str  # "CNN, batch 128"
    accuracy: float  # 0 to 1
    seconds: float


@dataclass(frozen=True)
class Hard:
    """A question that many got wrong at first."""

    text: str
    right: str
    why: str
    score: str  # "3 of 9"


@dataclass(frozen=True)
class HandOut:
    """What stands on the page."""

    title: str  # of the class
    day: str
    machine: str
    people: int
    runs: int
    target: float  # accuracy, 0 to 1
    points: Sequence[Point]
    hard: Sequence[Hard]
    guesses: Sequence[tuple[str, str, str]]  # of what, by the class, by the machine
    loop: str  # the code of a training step


def page(of: HandOut) -> str:
    """The whole page."""
    known = sorted(of.points, key=lambda each: (-each.accuracy, each.seconds))
    title = escape(of.title)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>{STYLE}</style></head><body>
<p class="hint">Print this page from your browser (Ctrl+P, or ⌘P on a Mac).</p>
<h1>{title}</h1>
<p>{escape(of.day)} · {of.people} people · {of.runs} runs · {escape(of.machine)}</p>
<div class="two"><div>
<h2>What the class reached</h2>
{_finding(of, known)}
{_chart(of) if known else ""}
</div><div>
<h2>The five steps, and the move before them</h2>
<pre>{escape(of.loop)}</pre>
{_best(known)}
</div></div>
{_guesses(of.guesses[:MOST_GUESSES])}
{_hard(of.hard[:MOST_HARD])}
<h2>To keep</h2>
{_table((), ((escape(what), f"<code>{escape(code)}</code>") for what, code in RULES))}
</body></html>
"""


def _finding(of: HandOut, known: Sequence[Point]) -> str:
    there = [each for each in known if each.accuracy >= of.target]
    if not known:
        return "<p>No run has finished.</p>"
    if not there:
        return (
            f"<p>{known[0].accuracy:.2%} at best. Nobody has {of.target:.0%} yet.</p>"
        )
    quickest = min(there, key=lambda each: each.seconds)
    who = f" by {escape(quickest.name)}" if quickest.name else ""
    return (
        f"<p><b>{of.target:.0%} in {quickest.seconds:.1f} s</b>{who}: "
        f"{escape(quickest.what)}. {known[0].accuracy:.2%} at best.</p>"
    )


def _best(known: Sequence[Point]) -> str:
    rows = [
        (
            escape(each.name or "–"),
            escape(each.what),
            f"{each.accuracy:.2%}",
            f"{each.seconds:.1f} s",
        )
        for each in known[:MOST_NAMED]
    ]
    heads = ("Name", "Settings", "Accuracy", "Time")
    return f"<h2>The most accurate</h2>{_table(heads, rows)}" if rows else ""


def _guesses(guesses: Sequence[tuple[str, str, str]]) -> str:
    if not guesses:
        return ""
    rows = [tuple(map(_marked, each)) for each in guesses]
    told = _table(("Question", "The class guessed", "The machine said"), rows)
    return f"<h2>Guessed, then measured</h2>{told}"


def _hard(hard: Sequence[Hard]) -> str:
    if not hard:
        return ""
    told = (
        f"<p><b>{_marked(each.text)}</b> {_marked(each.right)}. {_marked(each.why)} "
        f"<i>({escape(each.score)} right at first)</i></p>"
        for each in hard
    )
    return f"<h2>What was hard</h2>{''.join(told)}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The cells are HTML already."""
    lines = ["".join(f"<th>{escape(each)}</th>" for each in heads)] if heads else []
    lines += ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _marked(text: str) -> str:
    """Markdown's code spans and bold, and no more of it."""
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", safe)


def _chart(of: HandOut) -> str:
    """A dot a person: accuracy over seconds, which are logarithmic."""
    seconds = [max(each.seconds, 0.01) for each in of.points]
    first, last = floor(log10(min(seconds))), ceil(log10(max(seconds) * 1.001))
    least = floor(min(min(each.accuracy for each in of.points), of.target) * 20) / 20

    def x(value: float) -> float:
        return LEFT + (log10(value) - first) / (last - first) * (WIDTH - LEFT - 14)

    def y(value: float) -> float:
        return 8 + (1 - value) / (1 - least) * (HEIGHT - BOTTOM - 8)

    across = [n * 10.0**power for power in range(first, last + 1) for n in TICKS]
    across = [each for each in across if each <= 10.0**last]
    if last - first > 1:
        across = [10.0**power for power in range(first, last + 1)]
    down = [least + (1 - least) * part / 4 for part in range(5)]
    floor_y, end = y(least), WIDTH - 14
    parts = [
        f'<path d="M{LEFT} {y(each):.1f}H{end}" stroke="#ccc"/>'
        f'<text x="{LEFT - 5}" y="{y(each) + 3:.1f}" text-anchor="end">'
        f"{each:.0%}</text>"
        for each in down
    ]
    parts += [
        f'<text x="{x(each):.1f}" y="{floor_y + 14:.1f}" text-anchor="middle">'
        f"{each:g}</text>"
        for each in across
    ]
    parts += [
        f'<path d="M{LEFT} {y(of.target):.1f}H{end}" stroke="black" '
        'stroke-dasharray="4 3"/>',
        f'<text x="{(LEFT + end) / 2:.0f}" y="{HEIGHT - 4}" text-anchor="middle">'
        "Seconds of training; dashed: the target</text>",
    ]
    parts += [
        f'<circle cx="{x(max(each.seconds, 0.01)):.1f}" cy="{y(each.accuracy):.1f}" '
        'r="3.5" fill="black" fill-opacity=".6"/>'
        for each in of.points
    ]
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" role="img" aria-label='
        f'"Test accuracy over seconds of {len(of.points)} people">'
        f"{''.join(parts)}</svg>"
    )
