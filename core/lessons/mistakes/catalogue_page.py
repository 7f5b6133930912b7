"""The Mistakes page: find a mistake, and run its halves, a broken and a fixed one."""

import ast
import textwrap
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from core.halves import lines_of
from core.jobs.job import Job
from core.lessons.mistakes.catalogue import (
    BY_SLUG,
    GROUPS,
    MISTAKES,
    NO_GPU,
    OTHER,
    TIMED,
    Failure,
    Mistake,
    MistakeRun,
    Outcome,
)
from core.script.lint_rules import RULES
from core.ui import answers, charts, course, format, guess, playground, simulated
from core.ui.charts import Chart
from core.ui.job_panel import JobPanel, slot
from core.ui.server import engine
from core.ui.source import body, code_tabs, marked, show, source
from to_device.dryrun.report import Request
from to_device.errors import quoted
from to_device.explain.explainer import Answer
from to_device.names import SIMULATED
from to_device.sim.simulation import in_cuda_words
from to_device.words import Words

words = Words(__file__)

BROKEN, FIXED = "Broken", "Fixed"
SIGNS = {BROKEN: "-", FIXED: "+"}  # marks for lines that only this half has

RUN = "core.lessons.mistakes.runner:run"
FAILURES = "core.lessons.mistakes.runner:failures"
SOON_SECONDS = 1.0  # most mistakes end within this time if a worker is free
RETRY_SECONDS = 30.0  # time from a failed run of all loud mistakes to the next try
CURVES = {  # titles of the x and y axes for each Figure.curve
    "loss": ("Step", "Training loss"),
    "waits": ("Step", "Waits so far"),
    "share": ("Batch", "Share correct"),
    "memory": ("Reading", "Memory (MB)"),
}
FIXTURES = (
    *("batch", "new_model", "steps", "hits", "saved", "ScaledLoss", "DeviceQueue"),
    *("memory", "train", "adam_state", "workers"),
    *("limit_shared_memory", "on_two_ranks"),
)
DEVICES = {"cpu": "the CPU", SIMULATED: "the simulated accelerator"}

PANEL = JobPanel(
    RUN,
    "The example",
    "run_mistake",
    icon=":material/play_arrow:",
    failed="The mistake could not be run",
    cancelled="Canceled. You can run the mistake again whenever you like.",
    lane="lab",
    several=True,
)


def link_to(slug: str, label: str = "", **more: Any) -> None:
    label = label or f"Mistakes: {BY_SLUG[slug].title}"
    query = {"mistake": slug}
    course.link(course.page("Mistakes"), label, query_params=query, **more)


# The list


def choice(answer: Answer | None) -> Mistake | None:
    """The mistake in the page's address, or else the pasted error's cause.

    With neither of the two, the one that the visitor saw last, or else the first one.
    """
    state, slug = st.session_state, st.query_params.get("mistake")
    if slug in BY_SLUG:
        state.mistake_seen = slug
        return BY_SLUG[slug]
    if slug is not None:
        st.warning(
            "This page's address names a mistake that doesn't exist. "
            "Choose one from the list.",
            icon=":material/info:",
        )
    if answer is None:
        return BY_SLUG.get(state.get("mistake_seen", ""), MISTAKES[0])
    see = answer.cause.see if answer.cause else ""
    return BY_SLUG.get(see.removeprefix("mistake:"))


def draw_list(mistake: Mistake | None) -> None:
    """Draw a choice of group, and of a mistake in it.

    A link or a pasted error can also choose a mistake, which the widgets then show.
    """
    state = st.session_state
    if mistake:
        state.mistake_kind = mistake.group
    state.setdefault("mistake_kind", next(iter(GROUPS)))

    def open_first() -> None:
        if state.mistake_kind is not None:
            st.query_params["mistake"] = _slugs(state.mistake_kind)[0]

    def open_mistake() -> None:
        if state.listed_mistake is not None:
            st.query_params["mistake"] = state.listed_mistake

    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            "Mistakes to make on purpose",
            GROUPS,
            format_func=lambda group: f"{GROUPS[group]} ({len(_slugs(group))})",
            key="mistake_kind",
            required=True,
            on_change=open_first,
        )
        state.listed_mistake = mistake.slug if mistake else None
        st.selectbox(
            "Mistake",
            _slugs(state.mistake_kind),
            format_func=_listed,
            key="listed_mistake",
            placeholder="Choose one",
            on_change=open_mistake,
            width=420,  # pixels
        )


def _listed(slug: str) -> str:
    mistake = BY_SLUG[slug]
    title = mistake.title.replace("`", "")
    return title if mistake.loud else f"{title} (raises no error)"


def _slugs(group: str) -> list[str]:
    return [mistake.slug for mistake in MISTAKES if mistake.group == group]


# The cards


@st.fragment
def card(mistake: Mistake, opened: bool = False) -> None:
    """Draw a mistake, and its cause if `opened`.

    Otherwise, the cause appears after a run, or when the visitor asks for the cause.
    """
    slug = mistake.slug
    panel = replace(
        PANEL, key=f"run_mistake_{slug}", about=lambda chosen: chosen == slug
    )
    job = panel.job
    # Wait for a mistake that ends soon, so that the card is drawn with its result.
    while job and not job.ended and not job.place:
        if time.monotonic() - job.arrived > SOON_SECONDS:
            break
        time.sleep(0.02)
        job = engine().job(job.id)
    run: MistakeRun | None = job.value if job else None
    failure = run.broken.failure if run else None
    with_answer = opened or run is not None or f"told_{slug}" in st.session_state
    machine = engine().machine()
    on_simulated = mistake.broken_on == OTHER and machine and machine.simulates
    outline: AbstractContextManager = (
        simulated.outline(f"mistake_{slug}", badged=False)
        if on_simulated
        else st.container(border=True)
    )
    with outline:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{mistake.title}**", width="stretch")
            if on_simulated:
                simulated.badge()
            if not with_answer:
                st.button(
                    "Just show me",
                    key=f"cause_{slug}",
                    on_click=st.session_state.update,
                    args=({f"told_{slug}": True},),
                )
            kind = "secondary" if opened else "primary"
            panel.start_button("Run both versions", (slug,), type=kind)
            panel.cancel_button()
        if failure is None and (run or not opened):
            _message(mistake, run)
        if mistake.note:
            st.markdown(mistake.note)
        if mistake.loud:
            _guess_line(mistake, with_answer, failure)
        if with_answer:
            st.markdown(mistake.why)
        halves = partial(_halves, mistake, with_answer)
        if not panel.follow(lambda job: _result(mistake, job), waiting=halves):
            halves()


def _message(mistake: Mistake, run: MistakeRun | None) -> None:
    """Draw the error of a loud mistake on this machine, or a silent mistake's symptom.

    After a run, draw a silent mistake's numbers and curves instead.
    """
    figure = mistake.figure
    if figure is None:
        failure = None if run else _known_failure(mistake.slug)
        if failure is not None:
            _failure(failure, fixed=False)
        return
    if run is None:
        text = f"This mistake raises no error. “{mistake.symptom}”"
        st.info(text, icon=":material/hearing:")
        return
    halves = {BROKEN: run.broken, FIXED: run.fixed[0]}
    figures = [
        f"{figure.format.format(half.figure)} {name.lower()}"
        for name, half in halves.items()
        if half.figure is not None
    ]
    st.markdown(f"**{figure.label}: {', '.join(figures)}**")
    frame = pd.DataFrame(
        [
            (name, step, value)
            for name, half in halves.items()
            for step, value in enumerate(half.curve, 1)
        ],
        columns=["half", "step", "value"],
    )
    if len(frame):
        x, y = CURVES[figure.curve]
        alt_text = f"{y} of both versions, step by step"
        st.altair_chart(curves(frame, x, y), alt=alt_text)


def _job_of_failures() -> Job | None:
    """The job that runs all loud mistakes, once for all visitors.

    The job also starts the process that forks child processes, so no learner
    has to wait for that start.
    """
    for latest in engine().jobs(FAILURES)[-1:]:
        fresh = time.monotonic() - latest.arrived < RETRY_SECONDS
        if fresh or not latest.ended or latest.status == "finished":
            return latest
    return engine().job(engine().submit(FAILURES, lane="lab"))


def _known_failure(slug: str) -> Failure | None:
    """How the loud mistake fails on this machine; None if it has not been run yet."""
    job = _job_of_failures()
    if job is None:
        return None

    @st.fragment(run_every=SOON_SECONDS)
    def look_again() -> None:
        now = engine().job(job.id)
        if now is None or now.ended or slug in dict(now.events):
            st.rerun()
        loud = sum(mistake.loud for mistake in MISTAKES)
        slot(words("card.collecting"), len(now.events) / loud)

    failures: dict[str, Failure | None] = job.value or dict(job.events)
    if slug not in failures and not job.ended:
        look_again()
    return failures.get(slug)


def _result(mistake: Mistake, job: Job) -> None:
    if not job.ended:
        st.info("Running both versions, each in its own process.")
    run: MistakeRun | None = job.value
    _halves(mistake, True, run)
    if run is not None:
        if mistake.without_accelerator and run.broken.device in ("cpu", SIMULATED):
            st.markdown(mistake.without_accelerator)
        st.caption(f"Run on {format.provenance(run.environment)}.")


def _halves(mistake: Mistake, with_answer: bool, run: MistakeRun | None = None) -> None:
    """Draw the halves and how they ended; without the answer, only the broken half."""
    outcomes = {BROKEN: (run.broken,), FIXED: run.fixed} if run else {}
    halves = (BROKEN, FIXED) if with_answer else (BROKEN,)
    for column, half in zip(st.columns(len(halves)), halves, strict=True):
        ends, address = outcomes.get(half, ()), mistake.address(half.lower())
        with column:
            devices = [DEVICES.get(end.device, end.device) for end in ends]
            where = ", run on " + " and on ".join(devices) if ends else ""
            st.markdown(f"**{half}**{where}")
            failure = ends[0].failure if ends else None
            st.code(
                _marked_code(mistake, half, failure) if with_answer else body(address),
                wrap_lines=True,
                line_numbers=half == BROKEN and mistake.loud,  # to guess a line
            )
            for end in ends:
                _outcome(mistake, half == FIXED, end)
            if with_answer and mistake.broken_on != TIMED:
                playground.button(
                    address,
                    simulates=mistake.broken_on != NO_GPU,
                    capacity=mistake.memory_bytes or Request.capacity,
                )
    if not with_answer:
        st.markdown(words("card.think"))


def _outcome(mistake: Mistake, fixed: bool, outcome: Outcome) -> None:
    if outcome.failure is not None:
        _failure(outcome.failure, fixed)
    elif outcome.died:
        title = "The fix failed here" if fixed else "The process died"
        st.error(outcome.died, title=title, icon=":material/error:")
    elif mistake.figure is not None:
        return  # _message has drawn the numbers of both halves
    elif not fixed:
        text = (
            f"This version ran without an error here and returned `{outcome.result}`."
        )
        if mistake.broken_on == OTHER and outcome.device == "cpu":
            text += (
                " Everything is on the CPU here, so no tensor is on the wrong device."
            )
        st.info(text, icon=":material/info:")
    else:
        closing = outcome.result[-1:] if outcome.result.endswith((")", "]")) else ""
        result = textwrap.shorten(outcome.result, 60, placeholder=f" ...{closing}")
        text = f"This version returns `{result}`."
        st.success(text, icon=":material/check:")


def _failure(failure: Failure, fixed: bool) -> None:
    # A GPU's wording, also from the simulated accelerator: people know this one.
    message = quoted(" ".join(in_cuda_words(failure.message).split()), most=300)
    title = "The fix failed here" if fixed else failure.kind
    st.error(message, title=title, icon=":material/error:")
    if failure.poisoned and not fixed:
        st.markdown(words("card.poisoned"))
    with st.expander("The whole traceback"):
        st.code(failure.traceback, language=None)


# The guess of the line that raises the exception


def _statements(code: str) -> list[range]:
    """The line numbers, from 1, of each statement that contains no other statement."""
    return [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.stmt) and not hasattr(node, "body")
    ]


def _statement(code: str, line: int) -> range:
    """The lines of the statement that contains this line."""
    statements = (lines for lines in _statements(code) if line in lines)
    return next(statements, range(line, line + 1))


def arrowed(code: str, failure: Failure | None) -> str:
    """The code, with an arrow at the statement that raised the exception."""
    if failure is None or failure.line is None:
        return code
    return marked(code, _statement(code, failure.line))


def _marked_code(mistake: Mistake, half: str, failure: Failure | None) -> str:
    """A half's code, with signs at its own lines, which the other half lacks.

    A loud mistake's broken half has an arrow at the failing line instead.
    """
    if half == BROKEN and mistake.loud:
        return arrowed(body(mistake.address("broken")), failure)
    _, *lines = lines_of(source(mistake.address()), half.lower())
    code = textwrap.dedent("\n".join(line for line, _ in lines))
    return marked(code, [n for n, (_, own) in enumerate(lines, 1) if own], SIGNS[half])


def _guess_line(mistake: Mistake, with_answer: bool, failure: Failure | None) -> None:
    """Ask which line raises the error. With the answer, judge the guess instead."""
    key, code = f"line_{mistake.slug}", body(mistake.address("broken"))
    if with_answer:
        line = guess.of(key)
        if line is not None and failure and failure.line is not None:
            right = _statement(code, failure.line).start
            finding = f"Line {right} raised the exception."
            guess.judge(finding, line, right, say="line {}".format)
        return
    lines = sorted(statement.start for statement in _statements(code))
    if len(lines) > 1:
        answers.radio("Which line raises the exception?", lines, key, horizontal=True)


def curves(frame: pd.DataFrame, x: str, y: str) -> Chart:
    """A chart with a curve for each half; `x` and `y` are the titles of the axes.

    `frame` has the columns half, step and value.
    """
    colors = charts.palette()
    names = (BROKEN, FIXED)
    dash = alt.StrokeDash("half:N").legend(alt.Legend(title=None, orient="top"))
    hues = charts.hues("half", names, (colors.wrong, colors.right), **charts.LINES)
    chart = alt.Chart(frame).encode(
        x=alt.X("step:Q").title(x).scale(domain=[1, frame["step"].max()], nice=False),
        y=alt.Y("value:Q").title(y),
        color=hues,
        strokeDash=dash.scale(domain=names, range=[[5, 3], [1, 0]]),
        tooltip=charts.tips(half="Version") + charts.tips(".3g", step=x, value=y),
    )
    return charts.lines(chart).properties(height=charts.MIDDLE)


def code() -> None:
    code_tabs(
        (
            "Running",
            words("code.running"),
            "core.lessons.mistakes.runner:half",
            "core.lessons.mistakes.runner:attempt",
        ),
        ("Finding", words("code.finding"), "to_device.explain.explainer:explain"),
        (
            "Checking a script",
            f"We parse your script, and {len(RULES)} rules look at its "
            "syntax tree. This is one of the rules, with the function "
            "that applies all of them. Source: `core/script/`.",
            "core.script.lint_rules:code_may_run",
            "core.script.check:check",
        ),
        (
            "Shared functions",
            "The mistakes use these functions. Source: "
            "`core/lessons/mistakes/examples/fixtures.py`.",
            lambda: show(
                *(
                    f"core.lessons.mistakes.examples.fixtures:{name}"
                    for name in FIXTURES
                )
            ),
        ),
    )
