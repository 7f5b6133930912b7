"""The Mistakes page: find one, run it, see how both halves end."""

import textwrap
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import pandas as pd
import streamlit as st

from core.errors import quoted
from core.jobs.job import Job
from core.mistakes.catalogue import (
    BY_SLUG,
    MISTAKES,
    Failure,
    Figure,
    Mistake,
    MistakeRun,
    Outcome,
)
from core.mistakes.search import MOST_CHARACTERS, Index, message_in
from core.ui import failing_line, format
from core.ui.charts import mistakes as charts
from core.ui.charts.mistakes import BROKEN, FIXED
from core.ui.job_panel import JobPanel
from core.ui.server import engine
from core.ui.source import body, source

RUN = "core.mistakes.runner:run"
FAILURES = "core.mistakes.runner:failures"
SECONDS = 60.0  # that a search waits at most for what all mistakes raise here
SOON_SECONDS = 1.0  # most have ended by then, where nobody is before them
RETRY_SECONDS = 30.0
LIST_PIXELS = 458  # how high the list is: its last line is cut, as there are more
CURVES = {  # what Figure.curve is over: the titles of both axes
    "loss": ("Step", "Training loss"),
    "waits": ("Step", "Waits until then"),
    "share": ("Batch", "Share that is right"),
}
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
    """The slugs that fit the text that was pasted; the best first."""
    state = st.session_state
    learning = learn_messages()
    with st.form("find_mistake"):
        st.text_area(
            "Paste an error, or say what you see",
            key="pasted_error",
            height=100,
            placeholder="Expected all tensors to be on the same device ...",
            persist_state="session",
        )
        if st.form_submit_button("Find the mistake", icon=":material/search:"):
            state.searched_error = state.pasted_error.strip()[-MOST_CHARACTERS:]
            st.query_params.pop("mistake", None)
    text = state.get("searched_error", "")
    return _fitting(learning, text) if text else []


def _fitting(learning: str, text: str) -> list[str]:
    if told := message_in(text):
        st.info(told.say, icon=":material/lightbulb:")
        return []
    with st.spinner("Comparing it with what the mistakes raise on this machine"):
        known = index(learning)
    if known is None:
        st.warning(
            "The mistakes haven't been run yet, so there's nothing to compare with. "
            "Press the button again in a moment.",
            icon=":material/hourglass_top:",
        )
        return []
    found = [match.slug for match in known.find(text)]
    if not found:
        st.info(
            f"None of the {len(MISTAKES)} mistakes fits. Include the last lines of the "
            "traceback, or look through the list.",
            icon=":material/search_off:",
        )
        return []
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


def opened(found: Sequence[str]) -> Mistake:
    """The mistake of the address; without one the best that was found, or the first."""
    wanted = st.query_params.get("mistake")
    if wanted in BY_SLUG:
        return BY_SLUG[wanted]
    if wanted is not None:
        st.warning(
            "The address names a mistake that is not on this page. The list has all of "
            "them.",
            icon=":material/info:",
        )
    return BY_SLUG[found[0]] if found else MISTAKES[0]


def listed(found: Sequence[str], chosen: Mistake) -> None:
    """All mistakes, those that were found on top; a click opens one."""
    rest = [each for each in MISTAKES if each.slug not in found]
    groups = {
        "Best match": [BY_SLUG[slug] for slug in found],
        "Loud: an exception": [each for each in rest if each.loud],
        "Silent: a wrong number": [each for each in rest if not each.loud],
    }
    with st.container(height=LIST_PIXELS):
        for title, mistakes in groups.items():
            slugs = [each.slug for each in mistakes]
            # One is chosen in all groups together, so they are made anew for it.
            key = f"listed_{title}_{chosen.slug}"
            if slugs:
                st.radio(
                    f"**{title}**",
                    slugs,
                    index=slugs.index(chosen.slug) if chosen.slug in slugs else None,
                    format_func=lambda slug: BY_SLUG[slug].title,
                    key=key,
                    on_change=_open,
                    args=(key, chosen.slug),
                )


def _open(key: str, before: str) -> None:
    """Open another one; a browser that repeats the choice it was given opens none."""
    if st.session_state[key] not in (None, before):
        st.query_params["mistake"] = st.session_state[key]


# The cards


@st.fragment
def card(mistake: Mistake, opened: bool = False) -> None:
    """One mistake: its message, what is wrong, and then the cause and the fix.

    Where it is `opened` nothing is asked: the cause is there from the start.
    """
    slug = mistake.slug
    panel = replace(PANEL, key=f"run_mistake_{slug}", about=lambda each: each == slug)
    _wait_a_moment(panel.job)
    job = panel.job
    found = job.value if job else None
    told = opened or found is not None or st.session_state.get(f"told_{slug}", False)
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            heading = mistake.title if told else _question(mistake)
            st.markdown(f"**{heading}**", width="stretch")
            if not told:
                st.button(
                    "Just show me",
                    key=f"cause_{slug}",
                    on_click=st.session_state.update,
                    args=({f"told_{slug}": True},),
                )
            kind = "secondary" if opened else "primary"
            panel.start_button("Run it", (slug,), type=kind)
            panel.cancel_button()
        if found or not opened:
            _message(mistake, found)
        guessed = failing_line.ask(mistake, told) if mistake.loud else None
        if found is not None and found.broken.failure is not None:
            failing_line.judge(mistake, found.broken.failure, guessed)
        if told:
            st.markdown(mistake.why)
        if not panel.follow(lambda job: _ran(mistake, job)):
            _halves(mistake, told)


def _question(mistake: Mistake) -> str:
    """What the code is looked at for: the title in the list has told its name."""
    where = "Which line raises the error" if mistake.loud else "Which line is to blame"
    return f"{where}, and how would you fix it?"


def _message(mistake: Mistake, found: MistakeRun | None) -> None:
    """What it raises here, as all were run once; of a silent one, what it costs."""
    failure = found.broken.failure if found else _raised(mistake)
    if failure is not None:
        _failure(failure, fixed=False)
    elif mistake.figure is not None:
        if found is None:
            told, _, _ = mistake.symptoms.partition(". ")
            st.info(f"No error is raised. “{told}.”", icon=":material/hearing:")
        else:
            _curves(mistake.figure, found)


def _raised(mistake: Mistake) -> Failure | None:
    """What the mistake has raised on this machine, once the lab has run them all."""
    learning = engine().job(learn_messages()) if mistake.loud else None
    if learning is None or learning.value:
        return learning.value.get(mistake.slug) if learning else None

    @st.fragment(run_every=SOON_SECONDS)
    def look_again() -> None:
        if (now := engine().job(learning.id)) is None or now.ended:
            st.rerun()
        st.info("Running each mistake once to collect its message.")

    if not learning.ended:
        look_again()
    return None


def _curves(figure: Figure, found: MistakeRun) -> None:
    """Both halves of a silent mistake, in a sentence and step by step."""
    halves = {BROKEN: found.broken, FIXED: found.fixed[0]}
    told = [
        f"{figure.format.format(each.figure)} {name.lower()}"
        for name, each in halves.items()
        if each.figure is not None
    ]
    st.markdown(f"**{figure.label}: {', '.join(told)}**")
    frame = pd.DataFrame(
        [
            (name, step, value)
            for name, each in halves.items()
            for step, value in enumerate(each.curve, 1)
        ],
        columns=["half", "step", "value"],
    )
    if len(frame):
        x, y = CURVES[figure.curve]
        what = f"{y} of both halves, step by step"
        st.altair_chart(charts.halves(frame, x, y), alt=what)


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
        st.info("Running both versions, each in a process of its own.")
    found = job.value
    _halves(mistake, True, found)
    if found is not None:
        _remarks(mistake, found)


def _halves(mistake: Mistake, told: bool, found: MistakeRun | None = None) -> None:
    """Both functions side by side, and under each how it ended where it was run.

    Before the cause is told, the broken one alone.
    """
    outcomes = {BROKEN: (found.broken,), FIXED: found.fixed} if found else {}
    halves = (BROKEN, FIXED) if told else (BROKEN,)
    for column, half in zip(st.columns(len(halves)), halves, strict=True):
        ended = outcomes.get(half, ())
        with column:
            where = ", run on " + " and on ".join(map(_device, ended)) if ended else ""
            st.markdown(f"**{half}**{where}")
            failure = ended[0].failure if ended else None
            code = body(mistake.address(half.lower()))
            st.code(
                failing_line.arrowed(code, failure),
                wrap_lines=True,
                line_numbers=half == BROKEN and mistake.loud,  # one may be guessed
            )
            for outcome in ended:
                _outcome(mistake, half == FIXED, outcome)
    if not told:
        st.markdown("Think first, then run it.")


def _outcome(mistake: Mistake, fixed: bool, outcome: Outcome) -> None:
    if outcome.failure is not None:
        if fixed:  # that of the broken half stands on top
            _failure(outcome.failure, fixed)
    elif outcome.died:
        title = "The fix failed here" if fixed else "Its process died"
        st.error(outcome.died, title=title, icon=":material/error:")
    elif mistake.figure is not None:
        if outcome.curve:  # it is drawn on top
            return
        value = mistake.figure.format.format(outcome.figure)
        st.metric(mistake.figure.label, value, border=True)
    elif not fixed:
        st.info(
            f"It ran without an error here and returned `{outcome.result}`.",
            icon=":material/info:",
        )
    else:
        closing = outcome.result[-1:] if outcome.result.endswith((")", "]")) else ""
        result = textwrap.shorten(outcome.result, 60, placeholder=f" ...{closing}")
        text = f"It returns `{result}` on {_device(outcome)}."
        if outcome.device == "meta":
            text = (
                "It runs without an error. `meta` has shapes, but no numbers to show."
            )
        st.success(text, icon=":material/check:")


def _failure(failure: Failure, fixed: bool) -> None:
    message = quoted(" ".join(failure.message.split()), MOST_SHOWN)
    title = "The fix failed here" if fixed else failure.kind
    st.error(message, title=title, icon=":material/error:")
    if failure.poisoned and not fixed:
        st.markdown(
            "After that, every call to the device failed in that process. The process "
            "has ended and nothing else was affected: the fix ran in a new one."
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
                "There's no accelerator here, so torch's `meta` device stands in for "
                "one. On a GPU you get the same kind of exception, worded differently."
            )
    if any(remarks):
        st.markdown(" ".join(filter(None, remarks)))
    st.caption(f"Run on {format.provenance(found.environment)}.")


def _device(outcome: Outcome) -> str:
    if outcome.device == "meta":
        return "`meta`"
    return f"the {format.NAMES['cpu']}" if outcome.device == "cpu" else outcome.device
