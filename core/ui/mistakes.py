"""The cards of the Mistakes page: run one, see how both halves end."""

import ast
import textwrap
import time
from dataclasses import replace
from functools import lru_cache

import streamlit as st

from core.errors import quoted
from core.jobs.job import Job
from core.mistakes.catalogue import (
    BY_SLUG,
    MISTAKES,
    Failure,
    Mistake,
    MistakeRun,
    Outcome,
)
from core.mistakes.search import MOST_CHARACTERS, Index
from core.ui import format
from core.ui.job_panel import JobPanel
from core.ui.server import engine
from core.ui.source import body, source

RUN = "core.mistakes.runner:run"
FAILURES = "core.mistakes.runner:failures"
SECONDS = 60.0  # that a search waits at most for what all mistakes raise here
SOON_SECONDS = 1.0  # most have ended by then, where nobody is before them
RETRY_SECONDS = 30.0
MOST_SHOWN = 300  # characters of a message; the traceback has them all

PANEL = JobPanel(
    RUN,
    "The mistake",
    "run_mistake",
    icon=":material/play_arrow:",
    failed="The mistake was not run",
    cancelled="Cancelled. Run it again whenever you like.",
    lane="lab",
    several=True,
)


# The search


def searched() -> list[str]:
    """The slugs that fit the address, or the text that was pasted; the best first."""
    state = st.session_state
    learning = learn_messages()
    with st.form("find_mistake"):
        st.text_area(
            "Paste an error message or a traceback",
            key="pasted_error",
            height=120,
            placeholder="RuntimeError: Expected all tensors to be on the same device "
            "...",
            persist_state="session",
        )
        if st.form_submit_button("Find the mistake", icon=":material/search:"):
            state.searched_error = state.pasted_error.strip()[-MOST_CHARACTERS:]
            st.query_params.pop("mistake", None)
    wanted = st.query_params.get("mistake")
    if wanted in BY_SLUG:
        st.subheader("The mistake of this link")
        return [wanted]
    if wanted is not None:
        st.warning(
            "The address names a mistake that is not on this page. All that are stand "
            "below.",
            icon=":material/info:",
        )
        return []
    text = state.get("searched_error", "")
    return _fitting(learning, text) if text else []


def _fitting(learning: str, text: str) -> list[str]:
    with st.spinner("Comparing it with what the mistakes raise on this machine"):
        known = index(learning)
    if known is None:
        st.warning(
            "The mistakes could not be run yet, so there is nothing to compare with. "
            "Press the button again in a moment.",
            icon=":material/hourglass_top:",
        )
        return []
    found = [match.slug for match in known.find(text)]
    if not found:
        st.info(
            f"None of the {len(MISTAKES)} mistakes fits that text. Paste the last "
            "lines of the traceback too, or look through the list.",
            icon=":material/search_off:",
        )
        return []
    st.subheader("It fits best")
    if len(found) > 1:
        st.markdown(
            "The best first. A whole traceback tells more than its last line: the "
            "code it names decides between mistakes with the same message."
        )
    return found


def learn_messages() -> str:
    """Have the lab run all loud mistakes once for this server; the id of that job.

    It also starts the server of the child processes, so that nobody waits for it.
    """
    for latest in engine().jobs(FAILURES)[-1:]:
        fresh = time.time() - latest.submitted < RETRY_SECONDS
        if fresh or latest.status not in ("failed", "cancelled"):
            return latest.id
    return engine().submit(FAILURES, lane="lab")


def index(job_id: str) -> Index | None:
    """What to search in, once the mistakes have been run; None if that takes long."""
    deadline = time.monotonic() + SECONDS
    while (job := engine().job(job_id)) and not job.ended:
        if time.monotonic() > deadline:
            return None
        time.sleep(0.05)
    return _index(job) if job and job.value else None


@lru_cache(maxsize=2)  # a job that has ended is the same object at every look
def _index(job: Job) -> Index:
    code = {each.slug: source(each.address("broken")) for each in MISTAKES}
    return Index(job.value, code)


# The cards


@st.fragment
def card(mistake: Mistake, opened: bool = False) -> None:
    """One mistake: what and why, a button, and what came of pressing it."""
    slug = mistake.slug
    panel = replace(PANEL, key=f"run_mistake_{slug}", about=lambda each: each == slug)
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{mistake.title}**", width="stretch")
            panel.start_button("Run it", (slug,))
            panel.cancel_button()
        st.markdown(mistake.why)
        _wait_a_moment(panel.job)
        if panel.follow(lambda job: _ran(mistake, job)):
            return
        if opened:
            _halves(mistake)
        else:
            code = st.expander("The code", key=f"code_{slug}", on_change="rerun")
            if code.open:
                with code:
                    _halves(mistake)


def _wait_a_moment(job: Job | None) -> None:
    """For a mistake that is about to end, rather than for the next look."""
    while job is not None and not job.ended and not job.place:
        if time.time() - job.submitted > SOON_SECONDS:
            return
        time.sleep(0.02)
        job = engine().job(job.id)


def _ran(mistake: Mistake, job: Job) -> None:
    """How a mistake ended, once it has."""
    if not job.ended:
        st.info("Running both halves, each in a process of its own.")
    found = job.value
    _halves(mistake, found)
    if found is not None:
        _remarks(mistake, found)


def _halves(mistake: Mistake, found: MistakeRun | None = None) -> None:
    """Both functions side by side, and under each how it ended where it was run."""
    outcomes = {"broken": (found.broken,), "fixed": found.fixed} if found else {}
    for column, half in zip(st.columns(2), ("broken", "fixed"), strict=True):
        ended = outcomes.get(half, ())
        with column:
            where = ", run on " + " and on ".join(map(_device, ended)) if ended else ""
            st.markdown(f"**{half.capitalize()}**{where}")
            failure = ended[0].failure if ended else None
            st.code(marked(body(mistake.address(half)), failure), wrap_lines=True)
            for outcome in ended:
                _outcome(mistake, half, outcome)


def marked(code: str, failure: Failure | None) -> str:
    """The code, with a remark under the statement that raised the exception."""
    lines = code.splitlines()
    if failure is not None and failure.line is not None:
        guilty = lines[failure.line - 1]
        margin = " " * (len(guilty) - len(guilty.lstrip()))
        carets = "^" * max(1, len(guilty.strip()) - 2)
        ends = {  # the last line of each simple statement, by its first
            node.lineno: node.end_lineno
            for node in ast.walk(ast.parse(code))
            if isinstance(node, ast.stmt) and not hasattr(node, "body")
        }
        end = ends.get(failure.line) or failure.line
        lines.insert(end, f"{margin}# {carets}\n{margin}# {failure.kind}")
    return "\n".join(lines)


def _outcome(mistake: Mistake, half: str, outcome: Outcome) -> None:
    mended = half == "fixed"
    if outcome.failure is not None:
        _failure(outcome.failure, mended)
    elif outcome.died:
        title = "The fix failed here" if mended else "Its process died"
        st.error(outcome.died, title=title, icon=":material/error:")
    elif mistake.figure is not None:
        value = mistake.figure.format.format(outcome.figure)
        st.metric(mistake.figure.label, value, border=True)
    elif not mended:
        st.info(
            f"It ran through on this machine, and returned `{outcome.result}`.",
            icon=":material/info:",
        )
    else:
        result = textwrap.shorten(outcome.result, 60, placeholder=" ...")
        text = f"It returns `{result}` on {_device(outcome)}."
        if outcome.device == "meta":
            text = (
                "It runs through. On `meta` there are shapes, but no numbers to show."
            )
        st.success(text, icon=":material/check:")


def _failure(failure: Failure, mended: bool) -> None:
    message = quoted(" ".join(failure.message.split()), MOST_SHOWN)
    title = "The fix failed here" if mended else failure.kind
    st.error(message, title=title, icon=":material/error:")
    if failure.poisoned and not mended:
        st.markdown(
            "After it, every call to the device failed in that process. The process "
            "has ended, and nobody else noticed: the fix ran in a new one."
        )
    with st.expander("The whole traceback"):
        st.code(failure.traceback, language=None)


def _remarks(mistake: Mistake, found: MistakeRun) -> None:
    """What to know of this machine, and where the figures come from."""
    remarks = [mistake.note]
    if found.environment.backend == "CPU":
        remarks.append(mistake.without_accelerator)
        if found.broken.device == "meta":
            remarks.append(
                "There is no accelerator here, so torch's `meta` device is the other "
                "device. On a GPU the exception is of the same kind, in other words."
            )
    if any(remarks):
        st.markdown(" ".join(filter(None, remarks)))
    st.caption(f"Run on {format.provenance(found.environment)}.")


def _device(outcome: Outcome) -> str:
    if outcome.device == "meta":
        return "`meta`"
    return f"the {format.NAMES['cpu']}" if outcome.device == "cpu" else outcome.device
