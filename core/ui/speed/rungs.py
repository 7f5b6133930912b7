"""The rungs of the ladder on the Speed page: a row each, and one of them in full.

In its row a rung has the learner's guess, and once there are figures too, its bar.
Beside the rows stands the rung that is looked at: its code, and what it brought.
"""

import math
import re
from collections.abc import Collection, Sequence
from functools import reduce

import streamlit as st

from core.speed import ladder
from core.speed.ladder import (
    BY_NAME,
    GUESSES,
    NEEDED,
    RUNGS,
    SAME,
    Gain,
    Kept,
    Result,
    Rung,
)
from core.speed.results import Roofline
from core.ui import answers, figures, format, guess
from core.ui.charts.base import palette
from core.ui.source import body, changes
from core.ui.speed import bars

SHOW_ALL = "ladder_show_all"  # of the switch for whoever does not want to guess
COMPILED = ("compiled", "whole_step")  # they take a while before their first step
MEMORY_MATTERS = ("larger_batch", "half_precision", *COMPILED)
SHORT = dict(zip(GUESSES, ("Slower", "Same", "Up to 2×", "More"), strict=True))
# What writing the kept values into the code leaves behind.
LEFT_OVER = (
    (r"^if False:\n +.*\n", ""),
    (r"^if True:\n +", ""),
    (r", enabled=(?:True|False)\b(?! and)", ""),
    (r"True and ", ""),
)


# A row each


def rows(
    found: Sequence[Result], limits: Sequence[Roofline], backend: str, model: str
) -> None:
    """All rungs, the textbook on top: a click on its title shows one in full."""
    measured = {each.rung: each for each in found}
    shown = bars.bars(found, limits)
    shown = {name: each for name, each in shown.items() if is_revealed(each.result)}
    most = bars.end(list(shown.values()))
    st.markdown(
        "Guess what each change did to see its result."
        if found
        else "Guess what each change will do, then climb."
    )
    with st.container(gap="xxsmall"):
        for number, rung in enumerate(RUNGS):
            title, figure = st.columns(
                [4, 7], vertical_alignment="center", gap="xxsmall"
            )
            here = rung.name == looked_at()
            name = f"{number} · {rung.title}"
            title.button(
                f"**{name}**" if here else name,
                key=f"rung_{rung.name}",
                type="tertiary",
                on_click=_look_at,
                args=(rung.name,),
            )
            result = measured.get(rung.name)
            with figure:
                if rung.name in shown:
                    _bar(shown[rung.name], most, backend)
                elif rung.obstacle(backend, model):
                    where = f"for the {format.NAMES[model]}"
                    if backend in rung.obstacles:
                        where = f"on {backend}"
                    st.markdown(f":small[Not {where}]")
                elif result and not result.measured:
                    st.markdown(":material/error: :small[It failed here]")
                elif number == 0:
                    st.markdown(":small[Where the climb begins]")
                else:
                    _guess(rung)


def _bar(bar: bars.Bar, most: float, backend: str) -> None:
    title, kept = BY_NAME[bar.result.rung].title, bar.result.kept
    st.image(
        bars.picture(bar, most, backend, palette()),
        alt=f"{title}: {bar.figures}{'' if kept else ', dropped'}",
        width=bars.WIDTH,
    )


def _guess(rung: Rung) -> None:
    """How fast the learner thinks that it is."""
    st.segmented_control(
        f"Your guess: {rung.title}",
        GUESSES,
        default=guessed(rung.name),
        required=True,
        format_func=SHORT.__getitem__,
        key=f"guess_{rung.name}",
        on_change=_guessed,
        args=(rung.name,),
        label_visibility="collapsed",
    )


def _guessed(name: str) -> None:
    """Keep the guess, and look at the rung that it is of."""
    key = f"guess_{name}"
    answers.keep(key, st.session_state[key])
    _look_at(name)


def guessed(name: str) -> str | None:
    """One of GUESSES, once the learner has chosen."""
    found = answers.given().get(f"guess_{name}")
    return found if found in GUESSES else None


def is_revealed(result: Result) -> bool:
    """Whether its figures may be seen: the learner has guessed, or need not."""
    return (
        not result.measured
        or result.rung == RUNGS[0].name
        or answers.is_on(SHOW_ALL)
        or guessed(result.rung) is not None
    )


def looked_at() -> str:
    """The name of the rung that is shown in full."""
    return str(st.session_state.get("ladder_rung", RUNGS[0].name))


def _look_at(name: str) -> None:
    st.session_state.ladder_rung = name


# One of them in full


def draw(climbing: bool, found: Sequence[Result], backend: str, model: str) -> None:
    """The rung that is looked at: what it changes, what it brought, its code."""
    rung = BY_NAME[looked_at()]
    number = RUNGS.index(rung)
    st.subheader(f"{number} · {rung.title}")
    st.markdown(rung.change)
    result = next((each for each in found if each.rung == rung.name), None)
    if obstacle := rung.obstacle(backend, model):
        st.info(obstacle, icon=":material/info:")
    elif result is None:
        if climbing:
            st.markdown(":material/hourglass: Not measured yet.")
        elif number == 0:
            st.markdown("The climb starts here, so there's nothing to guess yet.")
    elif not result.measured:
        st.error(result.message, title="It failed here", icon=":material/error:")
    elif is_revealed(result):
        _outcome(result, found)
    else:
        st.markdown(
            ":material/visibility_off: It has been measured. Guess in its row how fast "
            f"it is compared with {_before(found, number)}, and you'll see the result."
        )
    absent = {each.name for each in RUNGS if each.obstacle(backend, model)}
    _code(rung, found, number, absent)


def _before(found: Sequence[Result], number: int) -> str:
    """What this rung is compared with, as far as that is known already."""
    base = ladder.base(found[:number])
    return _name(base) if base else "the last rung that is kept"


def _code(
    rung: Rung, found: Sequence[Result], number: int, absent: Collection[str]
) -> None:
    """What it changes in the loop of what is kept; `absent` can't be measured here."""
    code = body(f"core.speed.rungs:{rung.name}")
    if number == 0:
        st.code(code, wrap_lines=True)
        return
    # Before a climb: all that can be measured here, and what those above need.
    known = {each.rung: each for each in found}
    earlier = [
        each.name
        for each in RUNGS[:number]
        if each.name in NEEDED
        or (known[each.name].kept if each.name in known else each.name not in absent)
    ]
    changed, whole = st.tabs(["What changes", "The whole rung"])
    with changed:
        kept = reduce(ladder.with_change, earlier, Kept())
        before = written_in(body(f"core.speed.rungs:{earlier[-1]}"), kept)
        # As Python: the colours that Streamlit has for differences are too faint.
        st.code(changes(before, written_in(code, kept)), wrap_lines=True)
    with whole:
        st.code(code, wrap_lines=True)
        if "kept" in code:
            st.markdown(
                "`kept` holds what helped on earlier rungs; a change that didn't help "
                "is dropped."
            )


def written_in(code: str, kept: Kept) -> str:
    """The code with the values that are kept in the place of their names.

    So a difference shows the one change of a rung, and not what carries the others.
    """
    code = re.sub(
        r"\bkept\.(\w+)( > 0)?", lambda found: _value(kept, *found.groups()), code
    )
    for pattern, text in LEFT_OVER:
        code = re.sub(pattern, text, code, flags=re.MULTILINE)
    return code


def _value(kept: Kept, name: str, more_than_none: str | None) -> str:
    value = getattr(kept, name)
    if isinstance(value, float):  # 2e-3, as the rungs have it
        return f"{value:.0e}".replace("e-0", "e-")
    return repr(value > 0 if more_than_none else value)


def _outcome(result: Result, every: Sequence[Result]) -> None:
    """What it brought, against the guess, with all its figures."""
    known = ladder.measured(every)
    before, first = known.get(result.base), known.get(RUNGS[0].name)
    found = ladder.gain(result, before)
    if before is not None and found is not None:
        _verdict(result, before, found)
    for shown in (  # in pairs, since there is no room for four
        {
            "Epoch": format.precise(result.epoch_seconds),
            "Samples/s": f"{result.samples_per_second:,.0f}",
        },
        {
            "Test accuracy": f"{result.accuracy:.2%}",
            "Peak memory": format.size(result.peak_bytes),
        },
    ):
        figures.metrics(shown)
    if before is not None and first is not None:
        figures.bullets(remarks(result, before, first, found))


def _verdict(result: Result, before: Result, found: Gain) -> None:
    said = guessed(result.rung)
    right = ladder.answer(found)
    least, most = found.interval
    text = (
        f"**{format.times(found.median)}× as fast** as {_name(before.rung)} "
        f"({format.times(least)}× to {format.times(most)}× over "
        f"{format.counted(found.n, 'pair')} of epochs): {right.lower()}."
    )
    unclear = least < 1 - SAME and most > 1 + SAME
    if unclear or (found.disputed and not found.same):
        text += " The pairs don't agree, so something else was probably running: "
        text += "climb again."
    guess.judge(text, None if unclear else said, right)


def remarks(
    result: Result, before: Result, first: Result, gained: Gain | None
) -> list[str]:
    """What else there is to say of a rung: sentences."""
    found: list[str] = []
    if not result.kept:
        worse = result.accuracy <= first.accuracy - ladder.NOISE
        why = "it learned less" if worse else "it is not clearly faster here"
        found.append(
            f"It is **dropped**, since {why}. The next rung starts from "
            f"{_name(before.rung)} again."
        )
    elif result.rung in NEEDED and gained is not None and gained.median < 1 + SAME:
        cost = "it costs nothing" if gained.same else "though it is slower here"
        found.append(f"It stays anyway, {cost}: the rungs above need it.")
    start = format.precise(result.start_seconds)
    if result.rung in COMPILED:
        epochs = ladder.pays_after(result, before)
        pays = "never pays here"
        if epochs is not None:
            pays = f"pays after {math.ceil(epochs):,} epochs"
        found.append(f"Building the kernels took {start}, which {pays}.")
    if result.rung in ("two_workers", "four_workers"):
        found.append(f"Starting the processes and making the first batch took {start}.")
    if result.peak_bytes and before.peak_bytes and result.rung in MEMORY_MATTERS:
        found.append(
            f"Peak memory of a step: {format.size(result.peak_bytes)}, before "
            f"{format.size(before.peak_bytes)}."
        )
    if pace := ladder.drift(result, before):
        found.append(
            f"The machine was {format.times(max(pace, 1 / pace))} times as "
            f"{'fast' if pace > 1 else 'slow'} as when it measured "
            f"{_name(before.rung)}. So compare the epochs timed in turn, as above, and "
            "not the two bars."
        )
    points = (result.accuracy - first.accuracy) * 100
    if abs(points) < ladder.NOISE * 100:
        found.append(
            f"Test accuracy is {abs(points):.1f} points "
            f"{'above' if points >= 0 else 'below'} the textbook loop's: too little to "
            f"tell. With only the seed changed, in a trial on a CPU, {_seeds()}."
        )
    return found


def _seeds() -> str:
    """What ten seeds of the textbook loop came to."""
    (low, high), (least, most) = (
        (min(ladder.SEEDS[model]), max(ladder.SEEDS[model])) for model in ("ann", "cnn")
    )
    return (
        f"ten runs of the textbook loop came to {low:.1%} to {high:.1%} with the ANN "
        f"after three epochs of all images, and to {least:.1%} to {most:.1%} with the "
        "CNN after two of 10,000"
    )


def _name(rung: str) -> str:
    """Its title within a sentence."""
    title = BY_NAME[rung].title
    return title[0].lower() + title[1:]
