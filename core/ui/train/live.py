"""A training run, drawn while it goes on and when it has ended."""

import time

import streamlit as st

from core.config import IMAGE_TASKS
from core.jobs.job import Job
from core.results import RunResult, Started
from core.ui import figures, format
from core.ui.charts import train as charts
from core.ui.charts.base import AXES
from core.ui.checkpoints import export
from core.ui.course import RUNS
from core.ui.job_panel import (
    RUN_SECONDS,
    ended_badly,
    look_seconds,
    place_in_queue,
)
from core.ui.runs import Run, earlier, epoch_table, going_on, loss_table, run
from core.ui.server import engine, store, visitor
from core.ui.train import fits

FIRST_STEP_SECONDS = 0.3
COMPARED = 4  # earlier runs on a chart, at most


def follow_run(run_id: str) -> None:
    """Draw a run now, and again while it goes on; the page anew when it has ended."""
    first = first_look(run_id)
    seconds = look_seconds(first.job, RUN_SECONDS) if first else None
    is_kept = not store().problem

    @st.fragment(run_every=seconds)
    def live() -> None:
        current = run(run_id)
        if current is None or look_seconds(current.job, RUN_SECONDS) != seconds:
            st.rerun()
        if is_kept == bool(store().problem):
            st.rerun()  # every page begins with the problem
        draw_run(current)

    live()


def first_look(run_id: str) -> Run | None:
    """The run, with its first step if that comes at once; None if it isn't known.

    A worker that is free makes it within milliseconds: wait for that rather than for
    the next look.
    """
    first = run(run_id)
    deadline = time.monotonic() + FIRST_STEP_SECONDS
    while first and not first.job.ended and not first.latest:
        if first.job.place or time.monotonic() > deadline:
            break
        time.sleep(0.01)
        first = run(run_id)
    return first


def onward(current: Run) -> None:
    """Where a run can be looked at, shared and taken."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if current.result is not None and current.config.has_images:
            st.page_link(
                "pages/4_Evaluate.py",
                label="See what it got right and wrong",
                icon=":material/fact_check:",
                query_params={"run": current.id},
            )
        if current.job.owner == visitor():
            st.page_link(
                RUNS.file,
                label="Compare it with your other runs",
                icon=RUNS.icon,
                query_params={"run": current.id},
            )
        with st.popover("Share this run", icon=":material/link:", type="tertiary"):
            st.markdown("Whoever opens this address sees this run, live or finished.")
            address = (st.context.url or "").partition("?")[0]
            st.code(f"{address}?run={current.id}", language=None, wrap_lines=True)
    if current.result is not None:
        with st.expander("Take this run home", icon=":material/luggage:"):
            export.downloads(current)


def nothing_yet(task: str, known: bool) -> None:
    """In the place of a run: how to get one; `known` is whether one can be started."""
    going = going_on()
    if going:
        st.page_link(
            "pages/3_Train.py",
            label=f"A run is going on here, {len(going) - 1} waiting: watch it",
            icon=":material/visibility:",
            query_params={"run": going[0].id},
        )
    st.markdown(
        ":material/show_chart: The loss of your run appears here, live, a moment after "
        "you press **Start training**. The settings above are a good first run."
        if known
        else ":material/hourglass: The workers are loading torch; "
        "in a few seconds you can start."
    )
    if task not in IMAGE_TASKS:
        fits.draw(None, "CPU")
    # Empty axes now, so that the browser has what it needs for the first point.
    st.vega_lite_chart(
        loss_table([]),
        charts.losses((), "CPU", "step", 100),
        alt="An empty chart: step against loss",
    )


def draw_run(current: Run) -> None:
    """Status, progress, figures and charts of a run, beside its earlier ones."""
    status(current)
    if current.started is not None:
        _figures(current)
        if not current.config.has_images:
            fits.draw(current.fit, current.started.environment.backend)
        _charts(current, current.started)


def status(current: Run) -> None:
    """How far the run is, what it waits for, or how it ended."""
    job = current.job
    latest, started = current.latest, current.started
    made = "before its first step"
    if latest is not None and started is not None:
        made = f"after step {latest.step:,} of {started.steps:,}"
    cancelled = f"Cancelled {made}. What was learnt until then stays here."
    ended_badly(job, "The run failed", cancelled)
    if current.result is not None:
        _result(current.result)
    if job.ended:
        return
    if engine().problem:
        st.error(engine().problem, title="There are no workers; your run waits")
    elif started is None:
        st.info(_waiting(job), icon=":material/hourglass_top:")
    elif latest is None:
        st.progress(0.0, "The first step is being made.")
    else:
        epochs = current.config.epochs
        st.progress(
            current.share,
            f"Epoch {min(len(current.history) + 1, epochs)} of {epochs} · "
            f"step {latest.step:,} of {started.steps:,} · "
            f"about {format.duration(current.seconds_left or 0)} left",
        )


def _waiting(job: Job) -> str:
    if job.status == "queued" and job.place:
        return (
            f"{place_in_queue(job)}. Your run starts by itself; you may leave this "
            "page and come back."
        )
    if job.message:
        return job.message
    if engine().machine() is None:
        return "The workers are starting; this takes some seconds."
    return "A worker is taking the run."


def _result(result: RunResult) -> None:
    st.success(
        f"**{result.test_accuracy:.2%} of the test images are classified correctly** "
        f"({result.test_correct:,} of {result.test_total:,})."
        if result.config.has_images
        else fits.in_words(result),
        icon=":material/check_circle:",
    )
    st.caption(
        f"Measured on {format.provenance(result.environment)}, seed "
        f"{result.config.seed}, {format.duration(result.seconds)} in all."
    )


def _figures(current: Run) -> None:
    latest, loss = current.latest, current.smoothed_loss
    last = current.history[-1] if current.history else None
    now = last if current.job.ended else latest or last
    speed = now.samples_per_second if now else None
    timed = current.result or latest
    seconds = timed.seconds if timed else 0.0
    measured = {
        "Training loss": "–" if loss is None else f"{loss:.3f}",
        "Samples/s": f"{speed:,.0f}" if speed else "–",
        "Elapsed": format.duration(seconds),
    }
    if current.config.has_images:
        quality = {"Test accuracy": f"{last.test_accuracy:.2%}" if last else "–"}
    else:
        quality = {
            "Test R²": f"{last.test_r2:.3f}" if last else "–",
            "Test RMSE": f"{last.test_rmse:.3f}" if last else "–",
        }
    width = 160 if len(quality) == 1 else 128  # all in a row beside the sidebar
    figures.metrics(quality | measured, width)


def _charts(current: Run, started: Started) -> None:
    shown = [*earlier(current, COMPARED), current]
    names = tuple(format.run_names([each.config for each in shown]))
    backend = started.environment.backend
    epochs = max(each.config.epochs for each in shown)
    steps = max(each.started.steps for each in shown if each.started)
    x = st.radio(
        "Training loss, smoothed over the faint line of single steps, over",
        list(AXES),
        horizontal=True,
        format_func=AXES.__getitem__,
        key="loss_axis",
        help="Steps compare learning per update, seconds compare what you wait for.",
    )
    ends = {"step": steps, "epoch": epochs}
    st.vega_lite_chart(
        loss_table(shown),
        charts.losses(names, backend, x, ends.get(x)),
        key="chart_losses",
        alt=f"Training loss over {AXES[x].lower()} of {len(shown)} run(s)",
    )
    table = epoch_table(shown)
    if not table.num_rows:
        return
    images = current.config.has_images
    known = current.config.task == "fashion-mnist"  # what others reached on it
    samples, trained = ("images", "the first 10,000") if images else ("points", "all")
    loss = ("Loss", "loss", "chart_epoch_loss", False)
    quality = ("Accuracy", "accuracy", "chart_accuracy", known)
    quality = quality if images else ("R²", "r2", "chart_r2", False)
    for column, (title, y, key, references) in zip(
        st.columns(2), (quality, loss), strict=True
    ):
        column.markdown(f"**{title} after each epoch**")
        column.vega_lite_chart(
            table,
            charts.per_epoch(names, backend, y, epochs, references),
            key=key,
            alt=f"{title} on training and test {samples} after each epoch",
        )
    st.caption(
        f"Solid with points: all test {samples}. Thin: {trained} training {samples}, "
        "evaluated in the same way. Samples/s and seconds do not count evaluation."
    )
