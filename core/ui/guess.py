"""A guess before a measurement, and what it was worth after it.

Guessing is optional: "Just show me" shows a result for good. The measurement itself
never waits for a guess.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.ui import answers as kept

SHOWN = "just show me"  # kept in the place of a guess by whoever makes none
CLOSE = "About equally fast"


def ask(
    key: str,
    question: str,
    answers: Sequence[Any],
    say: Callable[[Any], str] = str,
    ran: bool = True,
) -> Any | None:
    """Ask for a guess; returns it, SHOWN, or None until the learner has answered.

    "Just show me" is offered once it `ran`, when there is something to show.
    """
    if made(key) == SHOWN:
        return SHOWN
    label = f"Your guess: {question}"
    guessed = kept.radio(label, list(answers), key, format_func=say, horizontal=True)
    if guessed is None and ran:
        st.button(
            "Just show me",
            icon=":material/visibility:",
            key=f"show_{key}",
            type="tertiary",
            on_click=kept.keep,
            args=(key, SHOWN),
        )
    return guessed


def made(key: str) -> Any | None:
    """The earlier guess; None if there is none."""
    return kept.given().get(key)


def missing(guessed: Any | None, hidden: str = "The result is") -> bool:
    """True, with a notice, until the learner has guessed."""
    if guessed is None:
        st.info(
            f"{hidden} hidden until you guess. In a hurry? Press **Just show me**.",
            icon=":material/visibility_off:",
        )
    return guessed is None


def within(answer: str) -> str:
    """An answer as it stands within a sentence: "more than 20 GB/s"."""
    return answer[:1].lower() + answer[1:]


def judge(
    finding: str,
    guessed: Any | None,
    right: Any,
    say: Callable[[Any], str] = within,
    among: Sequence[Any] | None = None,
) -> None:
    """Show the finding, and whether the guess was right.

    Of several that the readings leave open, `right` has all. A guess that is not
    `among` the answers was about something else.
    """
    if guessed in (None, SHOWN) or (among is not None and guessed not in among):
        st.info(finding, icon=":material/lightbulb:")
        return
    fitting = right if isinstance(right, tuple) else (right,)
    text = f"{finding} {worth(guessed, fitting, say)}"
    if guessed in fitting:
        st.success(text, icon=":material/check:")
    else:
        st.info(text, icon=":material/lightbulb:")


def worth(guessed: Any, fitting: tuple, say: Callable[[Any], str] = within) -> str:
    """A sentence on a guess beside all that fit what was measured."""
    if guessed not in fitting:
        return f"You guessed: {say(guessed)}."
    is_sure = len(fitting) == 1
    return "You guessed right." if is_sure else "Your guess fits the measured range."
