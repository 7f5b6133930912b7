"""A learner's guess before a measurement, and whether it was right.

Guessing is optional: after "Just show me", the result stays visible without a guess. In
a class, a guess is final once there is a result, which the guess makes visible.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import streamlit as st

from core.jobs.job import Job
from core.ui import spoilers
from core.ui.answers import chosen, keep, of_visitor, radio, renew
from to_device.words import Words

words = Words(__file__)
JUST_SHOW = "just show me"  # stored instead of a guess
HELD = "the teacher holds the result back"  # never stored: `ask` returns it
CLOSE = "About equally fast"
RIGHT = "You guessed right."
OPEN = "Your guess is one of several that this measurement allows."

Given = Mapping[str, Any]  # a visitor's answers by key
# Who may see a result, by the address of the function that measured it, or by the key
# of the answer that holds it. Everybody may see all other results.
GATES: dict[str, Callable[[Job, str, Given], bool]] = {}


def ask(
    key: str,
    question: str,
    answers: Sequence[Any],
    say: Callable[[Any], str] = str,
    ran: bool = True,
) -> Any | None:
    """Ask for a guess. Returns the guess, JUST_SHOW after "Just show me", or else None.

    `ran` says whether there is a result. Without a result, the button
    "Just show me" is not drawn. In a class, returns JUST_SHOW if the wall has shown the
    result, which judges the guess here, and HELD while the wall shows only the guesses.
    """
    guessed, is_held = of(key), spoilers.are_held(key)
    if is_held and guessed == JUST_SHOW:
        return HELD
    if guessed is None and spoilers.are_told(key):
        # Somebody may have clicked an answer just then.
        st.caption("Your teacher has shown the result, so no more guesses count.")
        return JUST_SHOW
    if guessed == JUST_SHOW:
        return JUST_SHOW
    guessed = radio(
        f"Your guess: {question}",
        list(answers),
        key,
        format_func=say,
        horizontal=True,
        disabled=is_final(key, answers, ran),
        on_change=keep_guess,
        args=(key, answers, ran),
    )
    if is_held:
        return HELD
    if guessed is not None and (seen := spoilers.shown(key)):
        # The visitor's own measurement, which the page shows, may differ from it, so
        # the guess is judged by this one alone.
        fitting, figure = seen
        told = f"Your class's result: {figure}. {worth(guessed, fitting, say)}"
        st.caption(f"{told} {words('guess.later')}")
        return JUST_SHOW
    if guessed is None and ran:
        st.button(
            "Just show me",
            icon=":material/visibility:",
            key=f"show_{key}",
            type="tertiary",
            on_click=_just_show,
            args=(key,),
        )
    return guessed


def of(key: str) -> Any | None:
    return of_visitor().get(key)


def is_final(key: str, options: Collection[Any], ran: bool = True) -> bool:
    """Whether the guess can't be changed any more, since its result could be seen."""
    has_seen = ran and of(key) in tuple(options) and spoilers.is_student()
    return has_seen or spoilers.are_told(key)


def keep_guess(key: str, options: Collection[Any], ran: bool = True) -> None:
    """Store what was guessed, and the first guess, in the callback of a widget.

    A final guess stays as it was, whatever a program or another tab sends.
    """
    if spoilers.is_student():
        renew()
    before, guessed = of(key), chosen(key, options)
    if guessed is not None and not is_final(key, options, ran):
        if before not in (None, guessed, JUST_SHOW) and of(first_key(key)) is None:
            keep(first_key(key), before)
        keep(key, guessed)
    if is_final(key, options, ran):
        # Streamlit takes no value from a disabled widget, not even the one that came
        # before the widget was disabled.
        st.session_state[key] = of(key)


def _just_show(key: str) -> None:
    """Store that nothing was guessed, unless another tab has guessed meanwhile."""
    renew()
    if of(key) is None:
        keep(key, JUST_SHOW)


def first_key(key: str) -> str:
    """The key of the first guess, which is stored once another one follows it."""
    return f"{key}_first"


def shows(key: str, who: str = "", given: Given | None = None) -> bool:
    """Whether `who` may see a result: it was guessed, and isn't held back.

    Without `who` and what they have answered (`given`), it's about this visitor.
    """
    guessed = of(key) if given is None else given.get(key)
    is_known = guessed is not None or spoilers.are_told(key, who)
    return is_known and not spoilers.are_held(key, who)


def may_see(job: Job, who: str, given: Given) -> bool:
    """Whether `who`, who gave these answers, may see the job's result."""
    gate = GATES.get(job.address)
    return gate is None or gate(job, who, given)


def missing(guessed: Any | None, hidden: str = "The result is") -> bool:
    """Return whether there is no guess yet; if so, say that the result is hidden.

    The result is hidden, too, while a teacher holds it back.
    """
    if guessed == HELD:
        st.info(
            f"{hidden} hidden until your teacher shows it. Discuss your guesses.",
            icon=":material/visibility_off:",
        )
        return True
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
