"""The Mistakes page: find a mistake, run it, and see how both halves end."""

import ast
import textwrap
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from core.config import SIMULATED
from core.dryrun.report import Request
from core.errors import quoted
from core.halves import lines_of
from core.jobs.job import Job
from core.lessons.mistakes.catalogue import (
    BY_SLUG,
    MISTAKES,
    NO_GPU,
    OTHER,
    TIMED,
    Failure,
    Figure,
    Mistake,
    MistakeRun,
    Outcome,
)
from core.script.rules import RULES
from core.ui import answers, charts, course, format, guess, playground, simulated
from core.ui.charts import Chart
from core.ui.job_panel import JobPanel, slot
from core.ui.server import engine
from core.ui.source import body, code_tabs, marked, show, source
from core.words import Words

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
MOST_SHOWN = 300  # characters of a message; the traceback has the whole message

PANEL = JobPanel(
    RUN,
    "The mistake",
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


def learn_messages() -> str:
    """The id of the job that runs all loud mistakes, once for all visitors.

    The job also starts the process that forks child processes, before a learner waits.
    """
    for latest in engine().jobs(FAILURES)[-1:]:
        fresh = time.time() - latest.submitted < RETRY_SECONDS
        if fresh or latest.status not in ("failed", "cancelled"):
            return latest.id
    return engine().submit(FAILURES, lane="lab")


def opened(found: Mistake | None, answered: bool) -> Mistake | None:
    """The mistake in the address, or else the one that the search `found`, if any.

    If nothing was searched (`answered` is False), it is the first one of the list.
    """
    wanted = st.query_params.get("mistake")
    if wanted in BY_SLUG:
        return BY_SLUG[wanted]
    if wanted is not None:
        st.warning(words("search.unknown"), icon=":material/info:")
    return found if answered else MISTAKES[0]


def listed(chosen: Mistake | None) -> None:
    now = chosen.slug if chosen else ""
    kinds = {True: "Loud", False: "Silent"}
    # A link can choose a mistake too. Its slug in the keys then resets the widgets.
    with st.container(horizontal=True, vertical_alignment="bottom"):
        loud = st.segmented_control(
            words("list.kind"),
            kinds,
            default=chosen.loud if chosen else True,
            format_func=lambda loud: f"{kinds[loud]} ({len(_slugs(loud))})",
            key=f"kind_{now}",
            required=True,
        )
        slugs, key = _slugs(loud), f"listed_{kinds[loud]}_{now}"
        st.selectbox(
            words("list.loud") if loud else words("list.silent"),
            slugs,
            index=slugs.index(now) if now in slugs else None,
            format_func=lambda slug: BY_SLUG[slug].title.replace("`", ""),
            key=key,
            placeholder="Choose one",
            on_change=_open,
            args=(key, now),
            width=420,  # pixels; on a phone, the list is below the choice of a kind
        )


def _open(key: str, before: str) -> None:
    """Open the mistake chosen in the list, unless it was already shown `before`."""
    if st.session_state[key] not in (None, before):
        st.query_params["mistake"] = st.session_state[key]


def _slugs(loud: bool) -> list[str]:
    return [mistake.slug for mistake in MISTAKES if mistake.loud == loud]


# The cards


@st.fragment
def card(mistake: Mistake, opened: bool = False) -> None:
    """Draw a mistake. Hide its cause until it was run or asked for, unless `opened`."""
    slug = mistake.slug
    panel = replace(
        PANEL, key=f"run_mistake_{slug}", about=lambda chosen: chosen == slug
    )
    _wait_a_moment(panel.job)
    job = panel.job
    run = job.value if job else None
    told = opened or run is not None or st.session_state.get(f"told_{slug}", False)
    machine = engine().machine()
    outline: AbstractContextManager
    on_simulated = mistake.broken_on == OTHER and machine and machine.simulates
    if on_simulated:
        key = f"mistake_{slug}"
        outline = simulated.outline(key, badged=False)
    else:
        outline = st.container(border=True)
    with outline:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{mistake.title}**", width="stretch")
            if on_simulated:
                simulated.badge()
            if not told:
                st.button(
                    "Just show me",
                    key=f"cause_{slug}",
                    on_click=st.session_state.update,
                    args=({f"told_{slug}": True},),
                )
            kind = "secondary" if opened else "primary"
            panel.start_button("Run both versions", (slug,), type=kind)
            panel.cancel_button()
        failed = run is not None and run.broken.failure is not None
        if not failed and (run or not opened):
            _message(mistake, run)
        if mistake.note:
            st.markdown(mistake.note)
        guessed = _ask_line(mistake, told) if mistake.loud else None
        if run is not None and run.broken.failure is not None:
            _judge_line(mistake, run.broken.failure, guessed)
        if told:
            st.markdown(mistake.why)
        if not panel.follow(lambda job: _ran(mistake, job)):
            _halves(mistake, told)


def _message(mistake: Mistake, run: MistakeRun | None) -> None:
    """Draw the error of a loud mistake on this machine, or a silent mistake's symptom.

    After a run, draw a silent mistake's curves instead.
    """
    if run is None and (failure := _raised(mistake)) is not None:
        _failure(failure, fixed=False)
    elif mistake.figure is not None:
        if run is None:
            text = f"This mistake raises no error. “{mistake.symptom}”"
            st.info(text, icon=":material/hearing:")
        else:
            _curves(mistake.figure, run)


def _raised(mistake: Mistake) -> Failure | None:
    """The failure on this machine; None if the mistake is silent or hasn't run yet."""
    learning = engine().job(learn_messages()) if mistake.loud else None
    if learning is None:
        return None

    @st.fragment(run_every=SOON_SECONDS)
    def look_again() -> None:
        now = engine().job(learning.id)
        if now is None or now.ended or mistake.slug in dict(now.events):
            st.rerun()
        slot(words("card.collecting"), len(now.events) / len(_slugs(loud=True)))

    found: dict[str, Failure | None] = learning.value or dict(learning.events)
    if mistake.slug not in found and not learning.ended:
        look_again()
    return found.get(mistake.slug)


def _curves(figure: Figure, run: MistakeRun) -> None:
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


def _wait_a_moment(job: Job | None) -> None:
    """Wait up to SOON_SECONDS for a running job, to draw the card with its result."""
    while job is not None and not job.ended and not job.place:
        if time.time() - job.submitted > SOON_SECONDS:
            return
        time.sleep(0.02)
        job = engine().job(job.id)


def _ran(mistake: Mistake, job: Job) -> None:
    if not job.ended:
        st.info(words("card.running"))
    run = job.value
    _halves(mistake, True, run)
    if run is not None:
        _remarks(mistake, run)


def _halves(mistake: Mistake, told: bool, run: MistakeRun | None = None) -> None:
    """Draw both functions and how they ended; until `told`, only the broken one."""
    outcomes = {BROKEN: (run.broken,), FIXED: run.fixed} if run else {}
    halves = (BROKEN, FIXED) if told else (BROKEN,)
    for column, half in zip(st.columns(len(halves)), halves, strict=True):
        ended, address = outcomes.get(half, ()), mistake.address(half.lower())
        with column:
            where = ", run on " + " and on ".join(map(_device, ended)) if ended else ""
            st.markdown(f"**{half}**{where}")
            failure = ended[0].failure if ended else None
            st.code(
                _signed(mistake, half, failure) if told else body(address),
                wrap_lines=True,
                line_numbers=half == BROKEN and mistake.loud,  # to guess a line
            )
            for outcome in ended:
                _outcome(mistake, half == FIXED, outcome)
            if told and mistake.broken_on != TIMED:
                playground.button(
                    address,
                    simulates=mistake.broken_on != NO_GPU,
                    capacity=mistake.memory_bytes or Request.capacity,
                )
    if not told:
        st.markdown(words("card.think"))


def _outcome(mistake: Mistake, fixed: bool, outcome: Outcome) -> None:
    if outcome.failure is not None:
        _failure(outcome.failure, fixed)
    elif outcome.died:
        title = "The fix failed here" if fixed else "The process died"
        st.error(outcome.died, title=title, icon=":material/error:")
    elif mistake.figure is not None:
        if outcome.curve:  # _message has already drawn the number and the curve
            return
        value = mistake.figure.format.format(outcome.figure)
        st.metric(mistake.figure.label, value, border=True)
    elif not fixed:
        text = words("card.no_error", result=outcome.result)
        if mistake.broken_on == OTHER and outcome.device == "cpu":
            text += words("card.one_device")
        st.info(text, icon=":material/info:")
    else:
        closing = outcome.result[-1:] if outcome.result.endswith((")", "]")) else ""
        result = textwrap.shorten(outcome.result, 60, placeholder=f" ...{closing}")
        text = f"This version returns `{result}`."
        st.success(text, icon=":material/check:")


def _failure(failure: Failure, fixed: bool) -> None:
    message = quoted(" ".join(failure.message.split()), MOST_SHOWN)
    title = "The fix failed here" if fixed else failure.kind
    st.error(message, title=title, icon=":material/error:")
    simulated.cuda_wording(failure.message)
    if failure.poisoned and not fixed:
        st.markdown(words("card.poisoned"))
    with st.expander("The whole traceback"):
        st.code(failure.traceback, language=None)


def _remarks(mistake: Mistake, run: MistakeRun) -> None:
    if mistake.without_accelerator and run.broken.device in ("cpu", SIMULATED):
        st.markdown(mistake.without_accelerator)
    st.caption(f"Run on {format.provenance(run.environment)}.")


def _device(outcome: Outcome) -> str:
    names = {"cpu": "the CPU", SIMULATED: "the simulated accelerator"}
    return names.get(outcome.device, outcome.device)


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
    around = (lines for lines in _statements(code) if line in lines)
    return next(around, range(line, line + 1))


def arrowed(code: str, failure: Failure | None) -> str:
    """The code, with an arrow at the statement that raised the exception."""
    if failure is None or failure.line is None:
        return code
    return marked(code, _statement(code, failure.line))


def _signed(mistake: Mistake, half: str, failure: Failure | None) -> str:
    """A half's code, with an arrow where it failed or signs at lines only it has."""
    if half == BROKEN and mistake.loud:
        return arrowed(body(mistake.address("broken")), failure)
    _, *lines = lines_of(source(mistake.address()), half.lower())
    code = textwrap.dedent("\n".join(line for line, _ in lines))
    return marked(code, [n for n, (_, own) in enumerate(lines, 1) if own], SIGNS[half])


def _ask_line(mistake: Mistake, told: bool) -> int | None:
    """Ask which line raises the error, unless `told`; return the guess, or None."""
    key = f"line_{mistake.slug}"
    if told:
        return guess.of(key)
    code = body(mistake.address("broken"))
    lines = sorted(statement.start for statement in _statements(code))
    if len(lines) < 2:
        return None
    return answers.radio(words("card.guess"), lines, key, horizontal=True)


def _judge_line(mistake: Mistake, failure: Failure, guessed: int | None) -> None:
    """If there is a guess, say which line raised the error, and judge the guess."""
    if guessed is None or failure.line is None:
        return
    right = _statement(body(mistake.address("broken")), failure.line).start
    guess.judge(
        f"Line {right} raised the exception.", guessed, right, say="line {}".format
    )


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
        ("Finding", words("code.finding"), "core.explain:explain"),
        (
            "Checking a script",
            words("code.checking", count=len(RULES)),
            "core.script.rules:code_may_run",
            "core.script.check:check",
        ),
        (
            "Shared functions",
            words("code.shared"),
            lambda: show(
                *(
                    f"core.lessons.mistakes.examples.fixtures:{name}"
                    for name in FIXTURES
                )
            ),
        ),
    )
