"""The search of the Mistakes page: what a pasted error means, and how to fix it."""

from pathlib import Path

import streamlit as st

from core.serving.monitoring import UNANSWERED
from core.ui.course import link, page
from core.ui.server import ask as ask_worker
from core.ui.server import explained
from to_device.explain.explainer import (
    MOST_CHARACTERS,
    Answer,
    explain,
    knowledge,
    of_cause,
)
from to_device.sim.simulation import in_cuda_words
from to_device.words import Words

# Characters that the web server reads itself, mostly in 0.02 s; while it reads, it
# serves nobody else. A worker reads longer texts, one after the other.
LONGEST_HERE = 4_000
# Longer texts are read in a process of their own, few at a time.
LONG = 20_000
words = Words(__file__)
HERE = Path(__file__).parent
_FIELD = st.components.v2.component(
    "pasted_error",
    html="<textarea></textarea>",
    css=(HERE / "pasted_error.css").read_text("utf-8"),
    js=(HERE / "pasted_error.js").read_text("utf-8"),
)


def ask(here: bool = True) -> Answer | None:
    """Draw the search field, and the answer to the error in it; return the answer.

    A new text puts the error's cause into the page's address, but the text itself is
    not stored. If the page's address already names a cause, as in a shared
    link, the answer is about that cause. Unless `here`, the visitor is on
    another page, so the answer has a link to the Mistakes page.
    """
    label = "Paste an error, or say what you see"
    st.markdown(f"**{label}**")
    field = _FIELD(
        key="pasted_error",
        data={
            "label": label,
            "placeholder": words("search.placeholder"),
            "most": MOST_CHARACTERS,
        },
        default={"value": {"text": "", "whole": False}},
        on_value_change=lambda: None,  # without a callback, Streamlit takes no default
    )
    text, whole = field.value["text"].strip(), field.value["whole"]
    state, question = st.session_state, hash((text, whole))
    is_new = state.get("asked") != question
    if is_new:  # kept, since a long text takes the processor for a second
        answer = None
        with explained("The text was not read"):
            answer = _explain(text) if text else None
            state.asked = question
        if answer and answer.cause is None and not whole:
            answer = None
        state.explained = answer
    answer = state.explained
    if is_new and (text or whole):  # False when the page has just been opened
        st.query_params.pop("mistake", None)
        st.query_params.pop("error", None)
        # Only the cause, not the visitor's text, so that the address can be shared:
        if answer and answer.cause:
            st.query_params["error"] = answer.cause.slug
        elif answer and answer.kind == "unknown":
            UNANSWERED.inc()
    slug = st.query_params.get("error")
    # What is known takes 0.2 s to read, for which the first page needn't wait.
    cause = knowledge().causes.get(slug) if slug else None
    found = answer.cause.slug if answer and answer.cause else ""
    if cause is not None and found != cause.slug:
        answer = of_cause(cause)
    if answer:
        _draw(answer, here)
    return answer


def _explain(text: str) -> Answer:
    # The explainer knows CUDA's messages, not those of the simulated accelerator.
    text = in_cuda_words(text[-MOST_CHARACTERS:])
    if len(text) <= LONGEST_HERE:
        return explain(text)
    if len(text) <= LONG:
        answer: Answer = ask_worker("to_device.explain.explainer:explain", text)
        return answer
    address = "core.lessons.mistakes.long_text:answer"
    answer = ask_worker(address, text, lane="upload", seconds=60)
    return answer


def _draw(answer: Answer, here: bool) -> None:
    cause = answer.cause
    if cause is None:
        icon = "help" if answer.kind == "unknown" else "search_off"
        st.info(answer.say, icon=f":material/{icon}:")
        return
    with st.container(border=True):
        st.markdown(f"**{cause.title}**")
        if answer.kind == "likely":
            st.markdown("This is probably what happened. Run the check to be sure.")
        st.markdown(answer.why)
        if answer.found:
            st.code(answer.found, language=None, wrap_lines=True)
        if answer.line:
            st.markdown("**Your line**")
            where = f"  # {answer.where}" if answer.where else ""
            st.code(answer.line + where, wrap_lines=True)
        st.markdown(f"**How to check.** {answer.check}")
        st.markdown("**What to write**")
        st.code(answer.change, wrap_lines=True)
        with st.container(horizontal=True):
            kind, _, place = cause.see.partition(":")
            if kind == "page":
                link(page(place), f"See it on {place}")
            elif not here:
                query = {"mistake": place}
                link(
                    page("Mistakes"),
                    "Make this mistake and see what happens",
                    query_params=query,
                )
            st.page_link(cause.read, label="Read on", icon=":material/menu_book:")
        if answer.others:
            st.markdown("Other possible causes:")
            for other in answer.others:
                query = {"error": other.slug}
                link(page("Mistakes"), other.title, icon=None, query_params=query)
