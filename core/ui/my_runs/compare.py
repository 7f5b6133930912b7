"""Several runs beside each other: the finding, their curves, what differs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate

import pandas as pd
import pyarrow as pa
import streamlit as st

from core.errors import quoted
from core.store.results import RunSummary
from core.ui import figures, format, runs, server
from core.ui.charts import base
from core.ui.charts import runs as charts
from core.ui.charts.base import AXES
from core.ui.charts.train import hue
from core.ui.my_runs import listing, table
from core.ui.runs import CURVE, RUN, RUN_NAME, Run

COMPARED = 8  # runs on a chart, at most
OVER = {"step": "Steps", "epoch": "Epochs", "seconds": "Seconds"}
WIDE = 20.0  # times as many seconds as the quickest run: the axis is logarithmic
LOOK_SECONDS = 2.0


def draw(chosen: Sequence[RunSummary], shown: Sequence[RunSummary]) -> None:
    """The selected runs compared, beside all that the table shows."""
    before = _going_on() & {each.id for each in chosen}

    @st.fragment(run_every=LOOK_SECONDS if before else None)
    def look() -> None:
        if before - _going_on():
            server.store().writer.flush(LOOK_SECONDS)  # how it ended is to be read
            st.rerun()
        _compare(chosen, shown)

    look()


def _going_on() -> set[str]:
    """The ids of this visitor's runs that wait or are trained."""
    jobs = server.engine().jobs(RUN, server.visitor())
    return {job.id for job in jobs if not job.ended}


def _compare(chosen: Sequence[RunSummary], shown: Sequence[RunSummary]) -> None:
    compared = listing.alike(chosen, chosen[0])[:COMPARED] if chosen else []
    called = listing.names(compared, table.looks(compared))
    wholes = [runs.run(each.id) for each in compared]
    for each in (run for run, known in zip(compared, wholes, strict=True) if not known):
        st.warning(runs.why_none(each.id), icon=":material/database_off:")
    _say(compared, called, wholes)
    if len(chosen) > len(compared):
        st.markdown(_left_out(chosen, compared))
    figured = [each for each in shown if listing.has_figures(each)]
    others = listing.alike(figured, (compared or figured)[0]) if figured else []
    has_curves = any(each and each.losses for each in wholes)
    left = right = st.container()
    if has_curves and len(others) > 1:
        left, right = st.columns([6, 4], gap="medium")
    if has_curves:
        with left:
            _curves(compared, listing.explained(compared, called), wholes)
    if len(others) > 1:
        with right:
            _frontier(others, {each.id for each in compared})
    if len(compared) > 1:
        _differences(compared, called, wholes)


def _differences(
    compared: Sequence[RunSummary], called: Sequence[str], wholes: Sequence[Run | None]
) -> None:
    st.markdown("**What differs**")
    histories = [each.history if each else () for each in wholes]
    right = st.column_config.TextColumn(alignment="right")
    figures.table(
        (row.values() for row in listing.differences(compared, called, histories)),
        ["Setting", *called],
        "The settings in which the selected runs differ, and what came of each",
        column_config=dict.fromkeys(called, right),
    )


def _say(
    compared: Sequence[RunSummary], called: Sequence[str], wholes: Sequence[Run | None]
) -> None:
    """The finding, or why there is none."""
    samples = [each.started.test_images for each in wholes if each and each.started]
    histories = [each.history if each else () for each in wholes]
    found = listing.finding(compared, called, histories, min(samples, default=0))
    if found:
        st.markdown(found)
    elif len(compared) == 1 and (message := compared[0].message):
        st.markdown(f"**{compared[0].status.capitalize()}.** {message}")
    elif compared:
        st.markdown("**None of these runs has finished yet.**")


def _left_out(chosen: Sequence[RunSummary], compared: Sequence[RunSummary]) -> str:
    like = listing.alike(chosen, chosen[0])
    if len(like) > len(compared):
        return f"Only the newest {COMPARED} of the {len(like):,} selected are compared."
    kind = "task" if any(each.task != compared[0].task for each in chosen) else "loss"
    return f"Only runs of the same {kind} as the newest are compared."


def _curves(
    compared: Sequence[RunSummary], called: Sequence[str], wholes: Sequence[Run | None]
) -> None:
    """Loss or quality of each run, over steps, epochs or seconds."""
    percent = compared[0].r2 is None
    quality = "Accuracy" if percent else "R²"
    with st.container(horizontal=True):
        y = st.segmented_control(
            "Curve",
            ["Loss", quality],
            default="Loss",
            required=True,
            key=f"runs_curve_{quality}",
            label_visibility="collapsed",
        )
        x = st.segmented_control(
            "Over",
            list(OVER),
            default="seconds",
            required=True,
            format_func=OVER.__getitem__,
            key="runs_axis",
            label_visibility="collapsed",
        )
    numbers = table.looks(compared)
    looks = tuple(
        (name, numbers[each.id])
        for name, each, known in zip(called, compared, wholes, strict=True)
        if known and known.losses
    )
    if y == "Loss":
        data, chart = loss_table(called, wholes), charts.losses(looks, x)
    else:
        data = quality_table(called, wholes)
        chart = charts.qualities(looks, x, percent)
    st.vega_lite_chart(
        data,
        chart,
        key=f"chart_runs_{y}",
        alt=f"{y} over {AXES[x].lower()} of {format.counted(len(called), 'run')}",
    )


def loss_table(called: Sequence[str], wholes: Sequence[Run | None]) -> pa.Table:
    """The curves of some runs, with what the run is called in the first column."""
    curves = [
        each.curve.add_column(0, RUN_NAME, pa.repeat(name, len(each.losses)))
        for name, each in zip(called, wholes, strict=True)
        if each
    ]
    return pa.concat_tables([pa.schema([RUN_NAME, *CURVE]).empty_table(), *curves])


def quality_table(called: Sequence[str], wholes: Sequence[Run | None]) -> pd.DataFrame:
    """A row an epoch: run, step, epoch, seconds of training until then, quality."""
    rows = []
    for name, each in zip(called, wholes, strict=True):
        history = each.history if each else ()
        until = accumulate(epoch.seconds for epoch in history)
        for epoch, seconds in zip(history, until, strict=True):
            images = epoch.test_accuracy is not None
            quality = epoch.test_accuracy if images else epoch.test_r2
            rows.append((name, epoch.step, epoch.epoch, seconds, quality))
    return pd.DataFrame(rows, columns=["run", "step", "epoch", "seconds", "quality"])


def _frontier(shown: Sequence[RunSummary], selected: set[str]) -> None:
    """Quality against seconds of all runs that the table shows."""
    best = listing.frontier(shown)
    percent = shown[0].accuracy is not None
    st.markdown("**Accuracy against time**" if percent else "**R² against time**")
    seconds = [each.seconds or 0.0 for each in shown]
    data = frontier_table(shown, set(best), selected)
    event = st.vega_lite_chart(
        data,
        charts.frontier(
            tuple(sorted(set(data["backend"]))),
            percent,
            max(seconds) > WIDE * min(seconds) > 0,
        ),
        key=f"chart_frontier_{st.session_state.get('runs_version', 0)}",
        on_select="rerun",
        selection_mode="dot",
        alt=f"Quality against seconds of {len(shown):,} runs, and the line of the best",
    )
    st.caption(f"{_unbeaten(shown, best)} Click a dot to compare it.")
    if dots := event.selection.get("dot"):
        chosen: list[str] = st.session_state.runs_selected
        if (dot := dots[0]["id"]) not in chosen:
            table.choose([dot, *chosen])
            st.rerun()


def _unbeaten(shown: Sequence[RunSummary], best: Sequence[str]) -> str:
    """Which runs no other beats in both, or how many of them there are."""
    what = "faster and more accurate" if shown[0].r2 is None else "faster and better"
    if len(best) == 1:
        called = listing.names(shown, table.looks(shown))
        run, name = next(
            each for each in zip(shown, called, strict=True) if each[0].id in best
        )
        return f"No other run is both {what} than {quoted(name) if run.name else name}."
    return (
        f"The line joins {len(best):,} of {len(shown):,} runs: no run is both {what} "
        "than one of these."
    )


def _backend(run: RunSummary, known: Mapping[str, str]) -> str:
    """The kind of device that it ran on, which may be one of another machine."""
    found = known.get(run.device_name or "")
    asked = "" if run.device in (None, "auto") else run.device
    return found or format.NAMES.get(asked or "", charts.ELSEWHERE)


def frontier_table(
    shown: Sequence[RunSummary], best: set[str], selected: set[str]
) -> pd.DataFrame:
    """A row a run; the columns are those of charts.frontier."""
    machine = server.engine().machine()
    backends = {d.device_name: d.backend for d in machine.devices} if machine else {}
    numbers, colors = table.looks(shown), base.palette()
    return pd.DataFrame(
        {
            "id": [each.id for each in shown],
            "run": [listing.label(each) for each in shown],
            "seconds": [each.seconds for each in shown],
            "quality": [listing.quality(each) for each in shown],
            "backend": [_backend(each, backends) for each in shown],
            "when": [
                f"{datetime.fromtimestamp(each.submitted):%Y-%m-%d %H:%M}"
                for each in shown
            ],
            "best": [each.id in best for each in shown],
            "ring": [
                hue(colors, numbers[each.id]) if each.id in selected else ""
                for each in shown
            ],
        }
    )
