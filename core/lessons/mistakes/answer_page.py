"""The search of the Mistakes page: what a pasted error means, and what to write."""

import streamlit as st

from core.explain.explain import MOST_CHARACTERS, Answer, explain, known, of_cause
from core.lessons.mistakes.catalogue import BY_SLUG, Mistake
from core.serving.monitoring import UNANSWERED
from core.sim.simulation import in_cuda_words
from core.ui.course import link, page
from core.words import Words

words = Words(__file__)


def searched() -> Answer | None:
    """What is known of the text that was pasted, or of the cause in the address."""
    state = st.session_state
    with st.form("find_mistake"):
        st.text_area(
            words("search.label"),
            key="pasted_error",
            height=100,
            placeholder=words("search.placeholder"),
            persist_state="session",
        )
        pressed = st.form_submit_button("Find the mistake", icon=":material/search:")
    if pressed:
        state.searched_error = state.pasted_error.strip()[-MOST_CHARACTERS:]
    # The wordings that are known are CUDA's.
    text = in_cuda_words(state.get("searched_error", ""))
    answer = explain(text) if text or pressed else None
    if pressed and answer is not None:
        st.query_params.pop("mistake", None)
        st.query_params.pop("error", None)
        if answer.cause:  # an address to share, which has nothing of the text
            st.query_params["error"] = answer.cause.slug
        elif answer.kind == "unknown" and text:
            UNANSWERED.inc()
    cause = known()[0].get(st.query_params.get("error", ""))
    if cause is None or (answer is not None and answer.cause is cause):
        return answer
    return of_cause(cause)


def to_see(answer: Answer | None) -> Mistake | None:
    """The mistake that shows it."""
    if answer is None or answer.cause is None:
        return None
    return BY_SLUG.get(answer.cause.see.removeprefix("mistake:"))


def draw(answer: Answer) -> None:
    """Cause, check and the line to write; then where to see it, and to read on."""
    cause = answer.cause
    if cause is None:
        icon = "help" if answer.kind == "unknown" else "search_off"
        st.info(answer.say, icon=f":material/{icon}:")
        return
    with st.container(border=True):
        st.markdown(f"##### {cause.title}")
        if answer.kind == "likely":
            st.markdown(words("answer.likely"))
        st.markdown(answer.why)
        if answer.line:
            st.markdown("**Your line**")
            where = f"  # {answer.where}" if answer.where else ""
            st.code(answer.line + where, wrap_lines=True)
        st.markdown(f"**How to check.** {answer.check}")
        st.markdown("**What to write**")
        st.code(answer.change, wrap_lines=True)
        with st.container(horizontal=True):
            kind, _, place = cause.see.partition(":")
            if kind == "page" and place != "Mistakes":
                link(page(place), words("answer.page", page=place))
            st.page_link(cause.read, label="Read on", icon=":material/menu_book:")
        if answer.others:
            st.markdown(words("answer.others"))
            for other in answer.others:
                to = {"error": other.slug}
                link(page("Mistakes"), other.title, icon=None, query_params=to)
