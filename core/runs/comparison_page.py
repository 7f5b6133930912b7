"""Compare the selected runs: verdict, curves, differences, quality by time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from core.runs import comparison, listing, listing_page
from core.runs import loss_chart as charts
from core.store.tables import RunSummary
from core.ui import charts as base
from core.ui import figures, format, runs, server
from core.ui.charts import AXES, LATER, Chart, Palette
from core.ui.runs import Run
from to_device.errors import quoted

COMPARED = 8  # runs on a chart, at most
OVER = {"step": "Steps", "epoch": "Epochs", "seconds": "Seconds"}
# The axis of seconds is logarithmic if the slowest run took more than this many times
# as long as the fastest.
WIDE = 20.0
POLL_SECONDS = 2.0
OTHER_MACHINE = "Another machine"  # stands for a device that this machine doesn't have


def draw(selection: Sequence[RunSummary], listed: Sequence[RunSummary]) -> None:
    """Compare the selected runs; a chart shows them among all listed runs."""

    def going_on() -> set[str]:
        return {job.id for job in runs.going_on(server.visitor())}

    before = going_on() & {run.id for run in selection}

    @st.fragment(run_every=POLL_SECONDS if before else None)
    def compare() -> None:
        if before - going_on():
            # Let the table, which reads the database, show that the runs have ended.
            server.store().writer.flush(POLL_SECONDS)
            st.rerun()
        _compare(selection, listed)

    compare()


def _compare(selection: Sequence[RunSummary], listed: Sequence[RunSummary]) -> None:
    compared, loaded = [], []
    comparable = listing.alike(selection, selection[0]) if selection else []
    for summary in comparable[:COMPARED]:
        if run := runs.run(summary.id):
            compared.append(summary)
            loaded.append(run)
        else:
            why = runs.why_none(summary.id)
            st.warning(why, icon=":material/database_off:")
    names = listing.names(compared, listing_page.numbers(compared))
    pairs = zip(compared, names, strict=True)
    nouns = [quoted(name) if run.name else name for run, name in pairs]
    if finding := comparison.finding(loaded, nouns):
        st.markdown(finding)
    elif len(compared) == 1 and (message := compared[0].message):
        status = format.NAMES.get(compared[0].status, compared[0].status)
        st.markdown(f"**{status.capitalize()}.** {message}")
    elif compared:
        st.markdown("**None of these runs has finished yet.**")
    if len(comparable) > COMPARED:
        which = f"the latest {COMPARED} of the {len(comparable):,} selected runs"
        st.markdown(f"Only {which} are compared.")
    elif len(selection) > len(comparable):
        kind = "task" if len({run.task for run in selection}) > 1 else "loss"
        st.markdown(f"Only runs with the same {kind} as the latest run are compared.")
    measured = [run for run in listed if listing.has_figures(run)]
    others = listing.alike(measured, (compared or measured)[0]) if measured else []
    has_curves = any(run.losses for run in loaded)
    left = right = st.container()
    if has_curves and len(others) > 1:
        left, right = st.columns([6, 4], gap="medium")
    if has_curves:
        with left:
            _curves(loaded, comparison.explained(compared, names))
    if len(others) > 1:
        with right:
            _frontier(others, {run.id for run in compared})
    if len(compared) > 1:
        st.markdown("**What differs**")
        figures.table(
            comparison.differences(loaded),
            ["Setting", *names],
            "The settings in which the selected runs differ, and each run's results",
            right=names,
        )


def _curves(loaded: Sequence[Run], names: Sequence[str]) -> None:
    percent = loaded[0].config.has_images
    quality = "Accuracy" if percent else "R²"
    simulated = [run for run in loaded if run.is_simulated]
    timed = len(simulated) < len(loaded)
    shared: dict[str, Any] = {"required": True, "label_visibility": "collapsed"}
    with st.container(horizontal=True):
        y = st.segmented_control(
            "Curve",
            ["Loss", quality],
            default="Loss",
            key=f"runs_curve_{quality}",
            **shared,
        )
        x = st.segmented_control(
            "Over",
            list(OVER)[: 3 if timed else 2],
            # Over seconds, the chart would leave out simulated runs.
            default="epoch" if simulated else "seconds",
            format_func=OVER.__getitem__,
            key="runs_axis" if timed else "runs_axis_untimed",
            **shared,
        )
    pairs = zip(names, loaded, strict=True)
    looks = tuple((name, run.number) for name, run in pairs if run.losses)
    if y == "Loss":
        data = runs.loss_table(loaded, names)
        top = runs.top_loss(loaded)
        chart = charts.losses(looks, x, height=charts.HEIGHT, alike=True, top=top)
    else:
        data = runs.epoch_table(loaded, names)
        chart = charts.qualities(looks, x, percent)
    st.vega_lite_chart(
        data,
        chart,
        key=f"chart_runs_{y}",
        alt=f"{y} by {AXES[x].lower()} of {format.counted(len(names), 'run')}",
    )


def _frontier(listed: Sequence[RunSummary], selected: set[str]) -> None:
    """Chart all listed runs: test accuracy or R² over total seconds."""
    best, count = listing.frontier(listed), f"{len(listed):,} runs"
    percent = listed[0].accuracy is not None
    st.markdown("**Accuracy and time**" if percent else "**R² and time**")
    machine = server.engine().machine()
    backends = {d.device_name: d.backend for d in machine.devices} if machine else {}
    numbers, colors = listing_page.numbers(listed), base.palette()

    def backend(run: RunSummary) -> str:
        kind = "" if run.device in (None, "auto") else run.device
        other = format.NAMES[kind] if kind else OTHER_MACHINE
        return backends.get(run.device_name or "") or other

    rows = [
        {
            "id": run.id,
            "run": listing.label(run),
            "seconds": run.seconds,
            "quality": listing.quality(run),
            "backend": backend(run),
            "when": f"{datetime.fromtimestamp(run.submitted):%Y-%m-%d %H:%M}",
            "best": run.id in best,
            "ring": charts.hue(colors, numbers[run.id]) if run.id in selected else "",
        }
        for run in listed
    ]
    data = pd.DataFrame(rows)
    seconds = [run.seconds or 0.0 for run in listed]
    is_wide = max(seconds) > WIDE * min(seconds) > 0
    event = st.vega_lite_chart(
        data,
        frontier_chart(tuple(sorted(set(data["backend"]))), percent, is_wide),
        key=f"chart_frontier_{st.session_state.get('runs_version', 0)}",
        on_select="rerun",
        selection_mode="dot",
        alt=f"Quality and time (in seconds) of {count}, with a line through the best",
    )
    beaten = "faster and more accurate" if percent else "faster and better"
    text = (
        f"The line connects the best {len(best):,} of {count}. None of these "
        f"runs is beaten: no other run is both {beaten}."
    )
    if len(best) == 1:
        names = listing.names(listed, numbers)
        at = next(place for place, run in enumerate(listed) if run.id in best)
        name = quoted(names[at]) if listed[at].name else names[at]
        text = f"No other run is both {beaten} than {name}."
    st.caption(f"{text} Click a dot to compare that run.")
    if dots := event.selection.get("dot"):
        selected_ids: list[str] = st.session_state.runs_selected
        if (run_id := dots[0]["id"]) not in selected_ids:
            listing_page.choose([run_id, *selected_ids])
            st.rerun()


@base.live
def frontier_chart(
    colors: Palette, backends: tuple[str, ...], percent: bool, wide: bool
) -> Chart:
    """A dot for each run by seconds and quality; a line joins the best runs.

    No other run is both faster and better than a run on the line. `wide` is
    true if the seconds differ so much that their axis must be logarithmic. The
    data's columns: id, run, seconds, quality, backend, when, best (true on the
    line), and ring (a selected run's color, otherwise ""). A click on a dot
    sets the chart's selection `dot`.
    """
    title = "Test accuracy" if percent else "Test R²"
    log: Any = {"type": "log", "nice": False, "padding": 14}
    scale = alt.Scale(**log) if wide else alt.Scale(zero=True)
    axis = alt.Axis(format="~r")
    hues = [
        colors.quiet if name == OTHER_MACHINE else colors.of(name) for name in backends
    ]
    chart = alt.Chart(LATER).encode(
        x=alt.X("seconds:Q").title("Total seconds").scale(scale).axis(axis),
        y=alt.Y("quality:Q")
        .title(title)
        .scale(zero=False, padding=8)
        .axis(format=base.PERCENT if percent else "~r"),
    )
    best = chart.transform_filter("datum.best")
    line = best.mark_line(interpolate="step-after", color=colors.text, strokeWidth=1.5)
    dot = alt.selection_point(name="dot", fields=["id"], on="click", toggle=False)
    color = base.hues("backend", backends, hues, symbolOpacity=1)
    dots = chart.mark_circle(size=55, cursor="pointer").encode(
        color=color if len(backends) > 1 else color.legend(None),
        opacity=base.either("datum.best || datum.ring", 1, 0.45),
        tooltip=base.tips(run="Run")
        + base.tips(".2%" if percent else ".3f", quality=title)
        + base.tips(".1f", seconds="Total seconds")
        + base.tips(when="When"),
    )
    ring = chart.transform_filter("datum.ring").mark_point(
        size=190, strokeWidth=3, filled=False, opacity=1, aria=False
    )
    rings = ring.encode(stroke=alt.Stroke("ring:N").scale(None))
    layers = (line.encode(order="seconds:Q"), dots.add_params(dot), rings)
    return alt.layer(*layers).properties(height=charts.HEIGHT)
