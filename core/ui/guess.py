"""A guess before a measurement, and what it was worth after it."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.ui import answers as kept


def ask(
    key: str,
    question: str,
    answers: Sequence[Any],
    say: Callable[[Any], str] = str,
) -> Any | None:
    """What the learner expects; None until they have chosen, once and for all tabs."""
    return kept.radio(
        f"Your guess first: {question}",
        list(answers),
        key,
        format_func=say,
        horizontal=True,
    )


def missing(guessed: Any | None) -> bool:
    """Whether the learner has yet to guess, who is then asked to."""
    if guessed is None:
        st.info("The figures are there. Guess, and they show.")
    return guessed is None


def scale(factor: float) -> int:
    """Which of three answers is right: about as long, up to ten times, or more."""
    return 0 if factor < 2 else 1 if factor <= 10 else 2


def judge(found: str, guessed: str, right: bool) -> None:
    """What was found, in a sentence, beside what was guessed."""
    if right:
        st.success(f"{found} You guessed right.", icon=":material/check:")
    else:
        st.info(f"{found} You guessed: {guessed}.", icon=":material/lightbulb:")
