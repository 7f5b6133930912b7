"""The rungs of the ladder on the Speed page: a row for each, and the chosen rung.

A row shows buttons for the learner's guess, or the rung's dot after the guess and the
measurement. Beside the rows are the chosen rung's code and results.
"""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce

import streamlit as st

from core.lessons.speed import climb_result
from core.lessons.speed.climb_result import (
    BY_NAME,
    GUESSES,
    NEEDED,
    NOISE,
    RUNGS,
    TEXTBOOK,
    Kept,
    Result,
    Roofline,
    Rung,
)
from core.measure import rounding
from core.measure.speedup import CLOSE, Speedup, agree
from core.script.differences import changes
from core.ui import answers, figures, format, guess, spoilers
from core.ui.charts import Palette, decades, palette
from core.ui.source import body
from to_device.words import Words

SHOW_ALL = "ladder_show_all"  # key of the switch that reveals all results
COMPILED = ("compiled", "whole_step")  # rungs that compile before their first step
MEMORY_MATTERS = ("larger_batch", "half_precision", *COMPILED)
SHORT = dict(zip(GUESSES, ("Slower", "Same", "Up to 2×", "Over 2×"), strict=True))
# Regular expressions for code that is redundant once values replace `kept.name`, and
# the text to put in its place.
LEFT_OVER = (
    (r"^if False:\n +.*\n", ""),
    (r"^if True:\n +", ""),
    (r", enabled=(?:True|False)\b(?! and)", ""),
    (r"True and ", ""),
)
WIDTH, HEIGHT = 330, 40  # pixels of a row; rows touch, so their upright lines join
LEFT, ROOM = 10, 118  # pixels at a row's ends: half a tick's label, and the figures
RADIUS = 5  # of a dot, in pixels
AXIS = "× textbook loop"
MARGIN = 1.2  # the axis goes on beyond the slowest and the fastest by this factor

words = Words(__file__)


# A row for each rung


def draw_rows(
    results: Sequence[Result], limits: Sequence[Roofline], backend: str, model: str
) -> None:
    """Draw a row for each rung; a click on a rung's title shows the rung in full."""
    by_name = {result.rung: result for result in results}
    visible = {result for result in results if result.measured and is_revealed(result)}
    best = {result.rung: best_speed(result, results, limits) for result in visible}
    scale = scale_of(visible, [speed for speed in best.values() if speed])
    if not answers.is_on(SHOW_ALL):
        st.markdown(
            "Guess what each change did, and you'll see its result."
            if results
            else "Guess what each change will do, then climb."
        )
    with st.container(gap="xxsmall"):
        for number, rung in enumerate(RUNGS):
            title, figure = st.columns(
                [4, 7], vertical_alignment="center", gap="xxsmall"
            )
            name = f"{number} · {rung.title}"
            title.button(
                f"**{name}**" if rung.name == chosen_rung() else name,
                key=f"rung_{rung.name}",
                type="tertiary",
                on_click=choose,
                args=(rung.name,),
            )
            result = by_name.get(rung.name)
            base = by_name.get(result.base) if result else None
            with figure:
                if scale and result in visible:
                    times, guessed = scale.times(result), judged(result, results)
                    dropped = "" if result.kept else ", dropped"
                    alt = f"{rung.title}: {times}, {speed(result)}{dropped}"
                    beside = climb_result.beside(result, base) if base else None
                    limit = best[rung.name]
                    svg = picture(
                        result, scale, backend, palette(), limit, beside, guessed
                    )
                    figures.drawing(svg, alt, f"dot_{rung.name}", WIDTH)
                elif rung.obstacle(backend, model):
                    where = f"on {backend}"
                    if rung.obstacle("", model):
                        where = f"for the {format.NAMES[model]}"
                    st.markdown(f":small[Not {where}]")
                elif result and not result.measured:
                    st.markdown(":material/error: :small[Failed here]")
                elif rung.name == TEXTBOOK:
                    st.markdown(":small[Where the climb begins]")
                else:
                    ask(rung, result is not None)
        if scale:
            _, figure = st.columns([4, 7], gap="xxsmall")
            with figure:
                svg, alt = axis(scale, palette()), f"The axis of the dots: {AXIS}"
                figures.drawing(svg, alt, "ladder_axis", WIDTH)


def ask(rung: Rung, ran: bool) -> None:
    key = f"guess_{rung.name}"
    is_final = guess.is_final(key, GUESSES, ran)

    def keep() -> None:
        guess.keep_guess(key, GUESSES, ran)
        choose(rung.name)

    st.segmented_control(
        f"Your guess: {rung.title}",
        GUESSES,
        default=guess_of(rung.name),
        required=True,
        format_func=SHORT.__getitem__,
        key=key,
        on_change=keep,
        disabled=is_final,
        label_visibility="collapsed",
    )


def guess_of(rung: str) -> str | None:
    answer = answers.of_visitor().get(f"guess_{rung}")
    return answer if answer in GUESSES else None


def is_revealed(
    result: Result, who: str = "", given: guess.Given | None = None
) -> bool:
    """Whether to show the figures: the learner has guessed, or doesn't have to.

    Without `who` and what they have answered (`given`), it's about this visitor.
    """
    if not result.measured or result.rung == TEXTBOOK:
        return True
    shows_all = answers.is_on(SHOW_ALL) if given is None else given.get(SHOW_ALL)
    given = answers.of_visitor() if given is None else given
    key = f"guess_{result.rung}"
    has_guessed = given.get(key) in GUESSES or spoilers.are_told(key, who)
    return (has_guessed or shows_all is True) and not spoilers.are_held(key, who)


def chosen_rung() -> str:
    return str(st.session_state.get("ladder_rung", TEXTBOOK))


def choose(rung: str) -> None:
    st.session_state.ladder_rung = rung


# The dots of the rungs


@dataclass(frozen=True)
class Scale:
    """The rows' logarithmic axis: speeds as multiples of the first rung's speed."""

    first: float  # samples/s of the textbook loop, or of the first rung measured
    low: float  # samples/s at the axis's left end
    high: float

    def x(self, rate: float) -> float:
        """How far right a speed in samples/s is, in pixels."""
        rate = min(max(rate, self.low), self.high)
        share = math.log(rate / self.low) / math.log(self.high / self.low)
        return round(LEFT + share * (WIDTH - ROOM - LEFT), 1)

    def times(self, result: Result) -> str:
        """A rung's speed as a multiple, such as "2.1×"."""
        return f"{rounding.rounded(result.samples_per_second / self.first, 2)}×"


def scale_of(visible: Collection[Result], limits: Sequence[float]) -> Scale | None:
    """The axis for these rungs and limits (in samples/s); None without a rung."""
    if not visible:
        return None
    order = list(BY_NAME)
    first = min(visible, key=lambda result: order.index(result.rung))
    rates = [rate for result in visible for rate in result.spread]
    rates += [first.samples_per_second, *limits]
    low, high = min(rates) / MARGIN, max(rates) * MARGIN
    return Scale(first.samples_per_second, low, high)


def speed(result: Result) -> str:
    """The speed as text, in the same unit for all rungs."""
    rate = rounding.rounded(result.samples_per_second, 3)
    return f"{rate}/s · {result.epoch_seconds:.2f} s"


def judged(result: Result, results: Sequence[Result]) -> str:
    """The learner's guess, with a mark if it was right or wrong; "" without a guess."""
    guessed, gain = guess_of(result.rung), climb_result.gain_of(result, results)
    if guessed is None or gain is None:
        return ""
    fitting = climb_result.answers(gain)
    mark = ""
    if fitting == (guessed,):
        mark = " ✓"
    elif guessed not in fitting:
        mark = " ✗"
    return f"you: {SHORT[guessed]}{mark} · this step: {rounding.times(gain.ratio)}×"


def best_speed(
    result: Result, results: Sequence[Result], limits: Sequence[Roofline]
) -> float | None:
    """The most samples/s that the limits allow in the rung's dtype; None if unknown."""
    dtype = climb_result.precision(result.rung, results)
    seconds = [
        limit.seconds(result.samples, result.steps, dtype)
        for limit in limits
        if dtype in limit.flops_per_second
    ]
    return result.samples / min(seconds) if seconds else None


def picture(
    result: Result,
    scale: Scale,
    backend: str,
    colors: Palette,
    limit: float | None = None,
    beside: float | None = None,
    guessed: str = "",
) -> str:
    """The SVG of a dot: filled if the rung was kept, hollow if it was dropped.

    A thin line marks the first rung's speed, a dashed line the `limit`, and a short one
    `beside`, the speed of the rung that this one builds on, if there are any. They are
    in samples/s. Right of them are the figures, above the learner's guess.
    """
    hue, middle = colors.of(backend), HEIGHT / 2
    fill = hue if result.kept else colors.page
    least, fastest = map(scale.x, result.spread)
    lines = (
        f'<path d="M{scale.x(scale.first)} 0V{HEIGHT}" stroke="{colors.quiet}"/>'
        f'<path d="M{least} {middle}H{fastest}" stroke="{colors.text}" '
        'stroke-width="1.5"/>'
    )
    if limit is not None:
        lines += (
            f'<path d="M{scale.x(limit)} 0V{HEIGHT}" stroke="{colors.quiet}" '
            'stroke-width="1.5" stroke-dasharray="6 4"/>'
        )
    if beside is not None:
        lines += (
            f'<path d="M{scale.x(beside)} {middle - 10}v20" '
            f'stroke="{colors.text}" stroke-width="2"/>'
        )
    text = f'<text x="{WIDTH}" text-anchor="end" '
    height = middle - 3 if guessed else middle + 4
    told = f"{scale.times(result)} · {result.epoch_seconds:.2f} s"
    texts = f'{text}y="{height}" fill="{colors.text}">{told}</text>'
    if guessed:
        texts += f'{text}y="{middle + 13}" fill="{colors.quiet}">{guessed}</text>'
    return (
        f"{_svg(HEIGHT)}{lines}"
        f'<circle cx="{scale.x(result.samples_per_second)}" cy="{middle}" '
        f'r="{RADIUS}" fill="{fill}" stroke="{hue}" stroke-width="2"/>{texts}</svg>'
    )


def axis(scale: Scale, colors: Palette) -> str:
    """The SVG of the axis below the rows, with its ticks and its title."""
    ticks = decades(scale.low / scale.first, scale.high / scale.first)
    marks = "".join(
        f'<path d="M{scale.x(tick * scale.first)} 0v4" stroke="{colors.quiet}"/>'
        f'<text x="{scale.x(tick * scale.first)}" y="17" text-anchor="middle">'
        f"{tick:g}×</text>"
        for tick in ticks
    )
    end = WIDTH - ROOM
    return (
        f'{_svg(HEIGHT)}<g fill="{colors.quiet}">'
        f'<path d="M{LEFT} 0H{end}" stroke="{colors.quiet}"/>{marks}'
        f'<text x="{(LEFT + end) / 2}" y="34" text-anchor="middle">{AXIS}</text>'
        "</g></svg>"
    )


def _svg(height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-size="12">'
    )


# The chosen rung in full


def draw_chosen(
    climbing: bool, results: Sequence[Result], backend: str, model: str
) -> None:
    rung = BY_NAME[chosen_rung()]
    number = RUNGS.index(rung)
    st.header(f"{number} · {rung.title}")
    st.markdown(rung.change)
    result = next((result for result in results if result.rung == rung.name), None)
    if obstacle := rung.obstacle(backend, model):
        st.info(obstacle, icon=":material/info:")
    elif result is None:
        if climbing:
            st.markdown(":material/hourglass: Not measured yet.")
        elif rung.name == TEXTBOOK:
            st.markdown("The climb starts here, so there's nothing to guess yet.")
    elif not result.measured:
        st.error(result.message, title="This rung failed here", icon=":material/error:")
    elif is_revealed(result):
        draw_outcome(result, results)
    elif spoilers.are_held(f"guess_{rung.name}"):
        guess.missing(guess.HELD)
    else:
        base = climb_result.base(results[:number])
        before = in_sentence(base) if base else "the last rung that was kept"
        st.markdown(
            ":material/visibility_off: This rung has been measured. In "
            f"its row, guess how fast it is compared with {before}. Then "
            "you'll see the result."
        )
    draw_code(rung, results, backend, model)


def draw_code(rung: Rung, results: Sequence[Result], backend: str, model: str) -> None:
    """Draw the rung's changes to the last kept rung's loop, and its code."""
    code = body(f"core.lessons.speed.rungs:{rung.name}")
    if rung.name == TEXTBOOK:
        st.code(code, wrap_lines=True)
        return
    # Without a result, assume that a rung is kept if it can be measured here.
    is_kept = {result.rung: result.kept for result in results}
    earlier = [
        other.name
        for other in RUNGS[: RUNGS.index(rung)]
        if other.name in NEEDED
        or is_kept.get(other.name, not other.obstacle(backend, model))
    ]
    change, whole = st.tabs(["What changes", "The whole rung"])
    with change:
        values = reduce(Kept.with_change, earlier, Kept())
        before = written_in(body(f"core.lessons.speed.rungs:{earlier[-1]}"), values)
        # Colored as Python, since Streamlit's colors for a diff are too faint.
        st.code(changes(before, written_in(code, values)), wrap_lines=True)
    with whole:
        st.code(code, wrap_lines=True)
        if "kept" in code:
            st.markdown(words("ladder.kept"))


def written_in(code: str, kept: Kept) -> str:
    """The code with a value in place of each `kept.name`.

    This way, the difference between two rungs shows only the change of one rung.
    """

    def value(match: re.Match) -> str:
        value = getattr(kept, match[1])
        if isinstance(value, float):  # write 2e-3, as the rungs' code does
            return f"{value:.0e}".replace("e-0", "e-")
        return repr(value > 0 if match[2] else value)

    code = re.sub(r"\bkept\.(\w+)( > 0)?", value, code)
    for pattern, text in LEFT_OVER:
        code = re.sub(pattern, text, code, flags=re.MULTILINE)
    return code


def draw_outcome(result: Result, results: Sequence[Result]) -> None:
    measured = climb_result.measured(results)
    before, first = measured.get(result.base), measured.get(TEXTBOOK)
    gain = climb_result.gain_of(result, results)
    if gain is not None:
        names = in_sentence(result.base), in_sentence(result.rung)
        text = gain.sentence(*names, "pairs of epochs")
        right = climb_result.answers(gain)
        guess.judge(text, guess_of(result.rung), right, lambda a: SHORT[a].lower())
    # Two rows of two figures, since four don't fit into a row.
    seconds, rate = result.epoch_seconds, f"{result.samples_per_second:,.0f}"
    figures.metrics({"Epoch": rounding.precise(seconds), "Samples/s": rate})
    accuracy, peak = f"{result.accuracy:.2%}", format.size(result.peak_bytes)
    figures.metrics({"Test accuracy": accuracy, "Peak memory": peak})
    if before and first and gain:
        figures.bullets(remarks(result, before, first, gain))


def remarks(result: Result, before: Result, first: Result, gain: Speedup) -> list[str]:
    lines: list[str] = []
    if not result.kept:
        worse = result.accuracy <= first.accuracy - NOISE
        why = "the model learned less" if worse else "it isn't clearly faster here"
        base = in_sentence(before.rung)
        lines.append(
            f"This change is **dropped**, since {why}. The next rung "
            f"builds on {base} again."
        )
    elif result.rung in NEEDED and gain.ratio < CLOSE:
        cost = "although it is slower here, because"
        if agree((gain.ratio, 1.0), CLOSE):
            cost = "because it costs no time and"
        lines.append(f"We keep this change, {cost} the next rungs build on it.")
    start = rounding.precise(result.start_seconds)
    if result.rung in COMPILED:
        pays = "you don't get back here"
        if gain.ratio > CLOSE:
            won = result.epoch_seconds * (gain.ratio - 1)
            epochs = math.ceil((result.start_seconds - before.start_seconds) / won)
            pays = f"you get back after {format.counted(epochs, 'epoch')}"
        lines.append(f"Building the kernels took {start}, which {pays}.")
    if result.rung in ("two_workers", "four_workers"):
        lines.append(f"Starting the processes and making the first batch took {start}.")
    if result.peak_bytes and before.peak_bytes and result.rung in MEMORY_MATTERS:
        peak, base = map(format.size, (result.peak_bytes, before.peak_bytes))
        lines.append(
            f"A step's peak memory is {peak}, compared with {base} on the "
            "rung that this one builds on."
        )
    difference = result.accuracy - first.accuracy
    if abs(difference) < NOISE:
        above = "above" if difference >= 0 else "below"
        apart, least = abs(difference) * 100, NOISE * 100
        fields = {"apart": apart, "above": above, "least": least}
        lines.append(words("ladder.remarks.accuracy", **fields))
    return lines


def in_sentence(rung: str) -> str:
    return f"“{BY_NAME[rung].title}”"
