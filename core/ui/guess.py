"""A learner's guess before a measurement, and whether it was right.

Guessing is optional: after "Just show me", the result stays visible without a guess.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.ui.answers import keep, of_visitor, radio

JUST_SHOW = "just show me"  # stored instead of a guess
CLOSE = "About equally fast"
RIGHT = "You guessed right."
OPEN = "Your guess is one of several that this measurement allows."


def ask(
    key: str,
    question: str,
    answers: Sequence[Any],
    say: Callable[[Any], str] = str,
    ran: bool = True,
) -> Any | None:
    """Ask for a guess. Returns the guess, JUST_SHOW after "Just show me", or else None.

    `ran` says whether there is a result. Without a result, the button
    "Just show me" is not drawn.
    """
    if of(key) == JUST_SHOW:
        return JUST_SHOW
    label = f"Your guess: {question}"
    guessed = radio(label, list(answers), key, format_func=say, horizontal=True)
    if guessed is None and ran:
        st.button(
            "Just show me",
            icon=":material/visibility:",
            key=f"show_{key}",
            type="tertiary",
            on_click=keep,
            args=(key, JUST_SHOW),
        )
    return guessed


def of(key: str) -> Any | None:
    return of_visitor().get(key)


def missing(guessed: Any | None, hidden: str = "The result is") -> bool:
    """Return whether there is no guess yet; if so, say that the result is hidden."""
    if guessed is None:
        st.info(
            f"{hidden} hidden until you guess. In a hurry? Press **Just show me**.",
            icon=":material/visibility_off:",
        )
    return guessed is None


def within(answer: str) -> str:
    """An answer as it reads inside a sentence: "more than 20 GB/s"."""
    return answer[:1].lower() + answer[1:]


def judge(
    finding: str,
    guessed: Any | None,
    right: Any,
    say: Callable[[Any], str] = within,
) -> None:
    """Show the finding, and whether the guess was right, wrong, or neither.

    `right` is the right answer, or a tuple of all answers that the readings allow: with
    several, none is right, and those that aren't among them are wrong.
    """
    if guessed in (None, JUST_SHOW):
        explain(finding)
        return
    fitting = right if isinstance(right, tuple) else (right,)
    explain(f"{finding} {worth(guessed, fitting, say)}", fitting == (guessed,))


def explain(text: str, is_right: bool = False) -> None:
    """Draw an explanation, in green if the answer was right."""
    if is_right:
        st.success(text, icon=":material/check:")
    else:
        st.info(text, icon=":material/lightbulb:")


def worth(guessed: Any, fitting: tuple, say: Callable[[Any], str] = within) -> str:
    """A sentence on a guess: right, wrong, or open if several answers fit."""
    if guessed not in fitting:
        return f"You guessed: {say(guessed)}."
    return RIGHT if len(fitting) == 1 else OPEN
