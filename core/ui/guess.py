"""A guess before a measurement, and what it was worth after it.

Nobody has to guess: where there is a result, or one is on its way, "Just show me" shows
it, now and whenever the page is opened again. Nothing waits for a guess but the result:
it is measured meanwhile.
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
    """What the learner expects, or SHOWN; None until they have said, for all tabs.

    Before it `ran` there is nothing to show, so nobody is offered that.
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
    """What was guessed before, if anything."""
    return kept.given().get(key)


def missing(guessed: Any | None, hidden: str = "The result is") -> bool:
    """Whether the learner has yet to guess, who is then asked to."""
    if guessed is None:
        st.info(
            f"{hidden} hidden until you guess. In a hurry? Press **Just show me**.",
            icon=":material/visibility_off:",
        )
    return guessed is None


def scale(factor: float) -> int:
    """Which of three answers is right: about as long, up to ten times, or more."""
    return 0 if factor < 2 else 1 if factor <= 10 else 2


def within(answer: str) -> str:
    """An answer as it stands within a sentence: "more than 20 GB/s"."""
    return answer[:1].lower() + answer[1:]


def judge(
    found: str,
    guessed: Any | None,
    right: Any,
    say: Callable[[Any], str] = within,
    among: Sequence[Any] | None = None,
) -> None:
    """What was found, in a sentence, beside what was guessed, if anything was.

    A guess that is not `among` the answers was about something else.
    """
    if guessed in (None, SHOWN) or (among is not None and guessed not in among):
        st.info(found, icon=":material/lightbulb:")
    elif guessed == right:
        st.success(f"{found} You guessed right.", icon=":material/check:")
    else:
        told = f"{found} You guessed: {say(guessed)}."
        st.info(told, icon=":material/lightbulb:")
