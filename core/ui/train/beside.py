"""A run beside its owner's earlier ones: the finding, the table that is a legend."""

from collections.abc import Sequence

import pyarrow as pa
import streamlit as st

from core.config import RunConfig
from core.ui import answers, format, runs
from core.ui.charts.base import palette
from core.ui.charts.train import swatch
from core.ui.my_runs import listing
from core.ui.runs import Run
from core.ui.server import engine, visitor

TOLD = 2  # settings at most in which two runs differ and that still name them
GUESS, YES, NO, SAME = "faster_guess", "Yes", "No", "About the same"
# Compare takes turns; runs that somebody starts one after the other can't.
APART = "They ran at different times, so what else the machine was doing counts too."
COLUMN = st.column_config


def finding(before: Run, now: Run, *, names: Sequence[str] = ()) -> str:
    """Which of two runs was faster, by what, and to what; the question before that."""
    one, other = names or called(before, now)
    if not now.job.ended:
        return f"**Is {other} faster than {one}?**"
    if before.result is None or now.result is None:
        return (
            f"**{_capital(one)} and {other} can't be compared: one of them didn't "
            "finish.**"
        )
    level = listing.level([before.history, now.history])
    if level is None:
        return (
            f"**{_capital(other)} reaches {format.quality(now.result)} in "
            f"{format.duration(now.result.seconds)}, {one} "
            f"{format.quality(before.result)} in "
            f"{format.duration(before.result.seconds)}.**"
        )
    timed = [
        (listing.seconds_to(run.history, level) or 0.0, name)
        for run, name in ((now, other), (before, one))
    ]
    (fast, quick), (long, slow) = sorted(timed)
    ratio = long / fast
    to = f"{100 * level:.0f}%"
    if ratio < listing.close([before.history, now.history]):
        right = SAME
        text = (
            f"**{_capital(other)} and {one} take about equally long to reach {to}: "
            f"{timed[0][0]:.1f} s and {timed[1][0]:.1f} s.**"
        )
    else:
        right = YES if quick == other else NO
        text = (
            f"**{_capital(quick)} reaches {to} in {fast:.1f} s, {ratio:.1f}× as fast "
            f"as {slow}, which takes {long:.1f} s.** {APART}"
        )
    if names or (said := guessed(now)) is None:
        return text
    return f"{text} You guessed {'right' if said == right else said.lower()}."


def both_settings(task: str, model: str) -> str:
    """What the model's fast setting brought, once it and the default have run here."""
    newest: dict[bool, Run] = {}
    for job in engine().jobs(runs.RUN, visitor()):
        config = job.arguments[0]
        given = {"task": task, "model": model, "device": config.device}
        for fast in (False, True):
            recipe = RunConfig.with_recipe(fast=fast, seed=config.seed, **given)
            if job.status == "finished" and config == recipe:
                newest[fast] = runs.view(job)
    if len(newest) < 2:
        return ""
    pair = newest[False], newest[True]
    before, now = (format.quality(run.result) for run in pair if run.result)
    told = finding(*pair, names=("the default setting", "the fast setting"))
    return f"{told} The fast setting ended at {now}, the default at {before}."


def ask(before: Run, now: Run) -> None:
    """The question while the run goes on, for whoever likes to guess the answer."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(finding(before, now))
        st.segmented_control(
            "Your guess",
            (YES, NO, SAME),
            default=guessed(now),
            key=f"{GUESS}_{now.id}",
            on_change=_guessed,
            args=(now.id,),
            label_visibility="collapsed",
        )


def _guessed(run_id: str) -> None:
    """Only the newest is kept, with the run that it is about."""
    answers.keep(GUESS, [run_id, st.session_state[f"{GUESS}_{run_id}"]])


def guessed(now: Run) -> str | None:
    """What its owner has guessed while it went on, if anything."""
    run_id, said = answers.given().get(GUESS) or (None, None)
    return said if run_id == now.id and said in (YES, NO, SAME) else None


def called(before: Run, now: Run) -> list[str]:
    """Two runs by their numbers, with the settings that tell them apart if few do."""
    names = [before.name.lower(), now.name.lower()]
    told = format.differences([before.config, now.config])
    if told[0] == told[1] or told[0].count(",") >= TOLD:
        return names
    return [f"{name} ({what})" for name, what in zip(names, told, strict=True)]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def legend(shown: Sequence[Run], key: str) -> None:
    """The table of the runs on the chart; a box ticks which of them are drawn."""
    st.dataframe(
        table(shown),
        height="content",
        hide_index=True,
        placeholder="–",
        key=_of_these(shown, key),
        on_select="rerun",
        selection_mode="multi-row",
        selection_default={"selection": {"rows": list(range(len(shown)))}},
        column_config={
            " ": COLUMN.ImageColumn(" ", width=36),
            "Run": COLUMN.TextColumn("Run", width=60),
            **{
                title: COLUMN.TextColumn(title, alignment="right", width=width)
                for title, width in zip(_titles(shown), (112, 84), strict=True)
            },
        },
        alt="The runs on the chart: color, what differs, how fast and how good",
    )


def _of_these(shown: Sequence[Run], key: str) -> str:
    """The key of just these runs' boxes: a new run begins with all of them ticked."""
    return "_".join((key, *(run.id for run in shown)))


def ticked(shown: Sequence[Run], key: str) -> list[Run]:
    """Those whose box is ticked; at first all are."""
    state = st.session_state.get(_of_these(shown, key))
    rows = range(len(shown)) if state is None else state["selection"]["rows"]
    return [run for row, run in enumerate(shown) if row in rows]


def _titles(shown: Sequence[Run]) -> tuple[str, str]:
    level = listing.level([run.history for run in shown if run.result])
    time = "Seconds in all" if level is None else f"Seconds to {100 * level:.0f}%"
    return time, "Accuracy" if shown[-1].config.has_images else "R²"


def table(shown: Sequence[Run]) -> pa.Table:
    """A row a run: color, name, seconds to a level, how good, and what differs.

    That comes last: it may be long, and on a phone the rest is what must be seen.
    """
    colors = palette()
    level = listing.level([run.history for run in shown if run.result])
    time, quality = _titles(shown)
    return pa.table(
        {
            " ": [swatch(colors, run.number) for run in shown],
            "Run": [run.name for run in shown],
            time: [_seconds(run, level) for run in shown],
            quality: [_quality(run) for run in shown],
            "What differs": format.differences([run.config for run in shown]),
        }
    )


def _seconds(run: Run, level: float | None) -> str | None:
    if level is None:
        return f"{run.result.seconds:.1f}" if run.result else None
    seconds = listing.seconds_to(run.history, level)
    return None if seconds is None else f"{seconds:.1f}"


def _quality(run: Run) -> str | None:
    if not run.history:
        return None
    last = run.history[-1]
    if last.test_accuracy is None:
        return f"{last.test_r2:.3f}"
    return f"{100 * last.test_accuracy:.2f}%"
