"""One rung of the ladder on the Speed page: its code, a guess, and what it brought."""

import math
from collections.abc import Sequence

import streamlit as st

from core.speed import ladder
from core.speed.ladder import BY_NAME, GUESSES, NEEDED, RUNGS, SAME, Gain, Result, Rung
from core.ui import figures, format, guess
from core.ui.source import body, changes

TITLES = tuple(rung.title for rung in RUNGS)
COMPILED = ("compiled", "whole_step")  # they take a while before their first step
MEMORY_MATTERS = ("larger_batch", "half_precision", *COMPILED)


def draw(climbing: bool, found: Sequence[Result], backend: str, model: str) -> None:
    """One rung: what it changes, its code, a guess, and then what it brought."""
    st.subheader("Rung by rung")
    number = _stepper()
    rung = RUNGS[number]
    st.markdown(rung.change)
    _code(rung, found, number)
    if obstacle := rung.obstacle(backend, model):
        st.info(obstacle, icon=":material/info:")
        return
    if number == 0:
        st.markdown("Here the climb begins: there is nothing to guess yet.")
    else:
        st.radio(
            f"Your guess: how fast is it, compared with {_before(found, number)}?",
            GUESSES,
            index=None,
            horizontal=True,
            key=f"guess_{rung.name}",
            persist_state="session",
        )
    result = next((each for each in found if each.rung == rung.name), None)
    if result is None:
        if climbing:
            st.markdown(":material/hourglass: Its turn comes.")
        elif number:
            st.markdown("Its figures appear here once you have climbed.")
    elif not result.measured:
        st.error(result.message, title="It failed here", icon=":material/error:")
    elif is_revealed(result):
        _outcome(result, found)
    else:
        st.markdown(":material/visibility_off: It is measured. Guess, and it shows.")


def _stepper() -> int:
    """The rung that is looked at, with the way to the next."""
    state = st.session_state
    state.setdefault("ladder_rung", TITLES[0])

    def go(step: int) -> None:
        place = TITLES.index(state.ladder_rung) + step
        state.ladder_rung = TITLES[min(max(place, 0), len(TITLES) - 1)]

    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox(
            "Rung",
            TITLES,
            format_func=lambda title: f"{TITLES.index(title)} · {title}",
            key="ladder_rung",
            width=260,
        )
        number = TITLES.index(chosen)
        for label, icon, key, step, end in (
            ("Back", "arrow_back", "ladder_back", -1, 0),
            ("Next rung", "arrow_upward", "ladder_next", 1, len(RUNGS) - 1),
        ):
            st.button(
                label,
                icon=f":material/{icon}:",
                key=key,
                on_click=go,
                args=(step,),
                disabled=number == end,
            )
        st.toggle(
            "Show all without guessing", key="ladder_show_all", persist_state="session"
        )
    return number


def _before(found: Sequence[Result], number: int) -> str:
    """What this rung is compared with, as far as that is known already."""
    base = ladder.base(found[:number])
    if len(found) < number or not base:
        return "the last rung that is kept"
    return _name(base)


def _code(rung: Rung, found: Sequence[Result], number: int) -> None:
    code = body(f"core.speed.rungs:{rung.name}")
    if number == 0:
        st.code(code, line_numbers=True)
        return
    # A rung that says nothing on this device is in the code of the next all the same.
    known = {each.rung: each for each in found}
    earlier = next(
        each.name
        for each in reversed(RUNGS[:number])
        if each.name in NEEDED or each.name not in known or known[each.name].kept
    )
    changed, whole = st.tabs(["What changes", "The whole rung"])
    with changed:
        before = body(f"core.speed.rungs:{earlier}")
        st.code(changes(before, code), language="diff")
        if "kept" in code:
            st.markdown(
                "`kept` holds what brought something on the rungs before: a change "
                "that did not is taken back."
            )
    with whole:
        st.code(code, line_numbers=True)


def _outcome(result: Result, every: Sequence[Result]) -> None:
    """What it brought, against the guess, with all its figures."""
    known = ladder.measured(every)
    before, first = known.get(result.base), known.get(RUNGS[0].name)
    found = ladder.gain(result, before)
    if before is not None and found is not None:
        _verdict(result, before, found)
    shown = {
        "Epoch": format.precise(result.epoch_seconds),
        "Samples/s": f"{result.samples_per_second:,.0f}",
        "Test accuracy": f"{result.accuracy:.2%}",
        "Peak memory": format.size(result.peak_bytes),
    }
    figures.metrics(shown, 128)
    if before is not None and first is not None:
        for sentence in remarks(result, before, first, found):
            st.markdown(sentence)


def _verdict(result: Result, before: Result, found: Gain) -> None:
    guessed = st.session_state.get(f"guess_{result.rung}")
    right = ladder.answer(found)
    least, most = found.interval
    text = (
        f"**{found.median:.2f} times as fast** as {_name(before.rung)} "
        f"({least:.2f} to {most:.2f} over {format.counted(found.n, 'pair')} of "
        f"epochs): {right.lower()}."
    )
    if found.disputed and not found.same:
        text += " The pairs do not agree, so something else was running: climb again."
    if guessed is None:
        st.info(text, icon=":material/lightbulb:")
    else:
        guess.judge(text, guessed.lower(), guessed == right)


def remarks(
    result: Result, before: Result, first: Result, gained: Gain | None
) -> list[str]:
    """What else there is to say of a rung: sentences."""
    found: list[str] = []
    if not result.kept:
        worse = result.accuracy <= first.accuracy - ladder.NOISE
        why = "it learnt less" if worse else "it is not clearly faster here"
        found.append(
            f"It is **taken back**, since {why}: the next rung builds on "
            f"{_name(before.rung)} again."
        )
    elif result.rung in NEEDED and gained is not None and gained.median < 1 + SAME:
        cost = "it costs nothing" if gained.same else "though it is slower here"
        found.append(f"It stays all the same, {cost}: the rungs above need it.")
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
    points = (result.accuracy - first.accuracy) * 100
    if abs(points) < ladder.NOISE * 100:
        found.append(
            f"Test accuracy is {abs(points):.1f} points "
            f"{'above' if points >= 0 else 'below'} the textbook's, which is within "
            "the noise of so few epochs."
        )
    return found


def is_revealed(result: Result) -> bool:
    """Whether its figures may be seen: the learner has guessed, or need not."""
    state = st.session_state
    return (
        not result.measured
        or result.rung == RUNGS[0].name
        or state.get("ladder_show_all", False)
        or state.get(f"guess_{result.rung}") is not None
    )


def _name(rung: str) -> str:
    """Its title within a sentence."""
    title = BY_NAME[rung].title
    return title[0].lower() + title[1:]


def times(factor: float | None) -> str:
    """4.7×; empty where it is unknown."""
    return "" if factor is None else f"{factor:.3g}×"
