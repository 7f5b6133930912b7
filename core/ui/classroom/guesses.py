"""What the class guessed on Compare and Speed, and what the machine said."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from core.compare.results import Race, TimingLab
from core.speed import ladder
from core.speed.headline import Climbed
from core.speed.ladder import RUNGS
from core.ui import format, guess, measured
from core.ui.charts import classroom as charts
from core.ui.compare import race, timing_pitfalls

# What was right, and the figure that says so; None: the machine has not said.
Said = tuple[Any, str] | None


@dataclass(frozen=True)
class Asked:
    """Something that people guess before it is measured."""

    key: str  # of the answer, among all that are kept
    title: str
    address: str  # of what measures it
    right: Callable[[Any], Said]


def _race(done: Race) -> Said:
    found = done.speedup()
    if found is None:
        return None
    ratio = found.median if found.winner != 0 else 1 / found.median
    won = None if found.winner is None else done.candidates[found.winner].name
    return won or guess.CLOSE, f"{ratio:.2g}×"


def _first_call(done: TimingLab) -> Said:
    factor = timing_pitfalls.first_call(done)
    return timing_pitfalls.GUESSES[guess.scale(factor)], f"{factor:.2g}×"


def _rung(name: str) -> Callable[[Climbed], Said]:
    def right(done: Climbed) -> Said:
        known = ladder.measured(done.results)
        result = known.get(name)
        found = result and ladder.gain(result, known.get(result.base))
        return (ladder.answer(found), f"{found.median:.2g}×") if found else None

    return right


ASKED = (
    Asked(race.GUESS, "Compare: which one wins the race?", race.PANEL.address, _race),
    Asked(
        "timing_guess",
        "Compare: how long does the first call take?",
        timing_pitfalls.PANEL.address,
        _first_call,
    ),
    *(
        Asked(
            f"guess_{each.name}",
            f"Speed: {each.title}",
            "core.speed.climb:climb",
            _rung(each.name),
        )
        for each in RUNGS[1:]
    ),
)
KEYS = tuple(each.key for each in ASKED)


def draw(given: Mapping[str, Mapping[str, Any]]) -> None:
    """One of those that this visitor has guessed, as the class guessed it."""
    mine = [each for each in ASKED if guess.made(each.key) is not None]
    st.subheader("What the class guessed", anchor=False)
    if not mine:
        st.markdown(
            "Guess on **Compare** or **Speed**, and you see here what the others "
            "guessed, and what the machine said."
        )
        return
    asked = st.selectbox(
        "Question",
        mine,
        format_func=lambda each: each.title,
        key="class_guess",
        label_visibility="collapsed",
    )
    answers = [a for a in given.get(asked.key, {}).values() if a != guess.SHOWN]
    right = said(asked)
    st.markdown(finding(Counter(answers), right))
    if not answers:
        return
    counts, told = (
        Counter(map(str, answers)).most_common(),
        str(right[0] if right else ""),
    )
    st.vega_lite_chart(
        pd.DataFrame(counts, columns=["answer", "people"]),
        charts.guesses(tuple(each for each, _ in counts), told),
        key="class_guesses",
        alt="How many of the class gave each answer",
    )


def said(asked: Asked) -> Said:
    """What the machine said to it last."""
    job = measured.newest(asked.address)
    return asked.right(job.value) if job is not None and job.value is not None else None


def finding(answers: Counter[Any], found: Said) -> str:
    """What most guessed, and what the machine said, in a sentence."""
    if not answers:
        return "Nobody else has guessed yet."
    text = f"Of {format.counted(answers.total(), 'guess', 'guesses')}"
    most, count = answers.most_common(1)[0]
    text += f", {count} {'is' if count == 1 else 'are'} “{most}”"
    if found is None:
        return f"**{text}.** The machine has not measured it yet."
    right, figure = found
    return f"**{text}; the machine said {figure}**: “{right}”, as {answers[right]} had."
