"""For the teacher: who has ported a script, and who has written one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from core.serving.execution_policy import mode
from core.store.tables import Class
from core.ui.format import counted
from core.ui.polling import PATIENT_SECONDS
from core.ui.practice import EXERCISES, answer_keys, has_solved
from core.ui.server import engine, room, store
from to_device.words import Words

words = Words(__file__)

SCRIPTS = ("Port it", "Write it")


@dataclass(frozen=True)
class ScriptProgress:
    """How far a member is with a script."""

    solved: bool
    tries: int
    passed: int  # how many of the exercise's checks, or of the places to change
    by_lines: bool = False  # whether lines were chosen, where no code is run

    def text(self, title: str) -> str:
        if self.solved:
            return "✓"
        if not self.tries:
            return "–"
        tries = counted(self.tries, "try", "tries")
        exercise = EXERCISES[title]
        if self.by_lines:
            return f"{self.passed} of {len(exercise.places)} places, {tries}"
        checks = len(exercise.checks)
        return f"{self.passed} of {checks} parts, {tries}" if checks else tries


def progress(
    answers: Mapping[str, Mapping[str, Any]], title: str, visitor: str
) -> ScriptProgress:
    """A member's progress; `answers` are keyed by question, then by visitor."""
    keys = answer_keys(title)
    own = {key: answers.get(key, {}).get(visitor) for key in keys}
    is_solved = has_solved(title, own)
    tries, chosen = int(own[keys.tries] or 0), own[keys.lines]
    if chosen and not tries:
        found = len(EXERCISES[title].places_found(chosen["picked"]))
        return ScriptProgress(is_solved, chosen["tries"], found, by_lines=True)
    passed = (own[keys.verdict] or {}).get("passed", ())
    return ScriptProgress(is_solved, tries, len(passed))


def of_class(classroom: Class) -> dict[str, dict[str, ScriptProgress]]:
    """Each member's progress, by the title of the script and then by visitor."""
    keys = {title: answer_keys(title) for title in SCRIPTS if title in EXERCISES}
    wanted = [key for own in keys.values() for key in own if key != own.code]
    answers = store().answers.of_class(classroom.id, wanted)
    names = room().names(classroom.id)
    return {
        title: {visitor: progress(answers, title, visitor) for visitor in names}
        for title in keys
    }


@st.fragment(run_every=PATIENT_SECONDS)
def draw(classroom: Class) -> None:
    scripts, names = of_class(classroom), room().names(classroom.id)
    if mode(engine().ask).kind == "off":
        st.caption(words("scripts.by_lines"))
        # A script that begins empty has no lines to choose.
        scripts = {
            title: members
            for title, members in scripts.items()
            if EXERCISES[title].code
        }
    if not names or not scripts:
        st.markdown("Nobody is in this class yet.")
        return
    counts = (
        f"{title}: **{sum(own.solved for own in members.values())} of {len(names)}**"
        for title, members in scripts.items()
    )
    st.markdown(" · ".join(counts))
    rows = [
        (name, *(scripts[title][visitor].text(title) for title in scripts))
        for visitor, name in sorted(names.items(), key=lambda item: item[1].casefold())
    ]
    st.table(pd.DataFrame(rows, columns=("Name", *scripts)).set_index("Name"))
