"""A training run, drawn while it goes on and when it has ended."""

import time

import streamlit as st

from core.config import IMAGE_TASKS
from core.jobs.job import Job
from core.results import RunResult, training_speed
from core.ui import figures, format, job_panel, looks, page_turns, take_home
from core.ui.charts import train as charts
from core.ui.charts.base import AXES, MIDDLE
from core.ui.course import RUNS, page
from core.ui.home import wall
from core.ui.job_panel import place_in_queue
from core.ui.links import link
from core.ui.runs import Run, earlier, epoch_table, loss_table, newest, run, somebodys
from core.ui.server import engine, store, visitor
from core.ui.train import beside, controls, fits

FIRST_STEP_SECONDS = 0.3
COMPARED = 4  # earlier runs on a chart, at most
COLUMNS = 17  # images of the wall in a row
LEGEND = "loss_legend"
ROW = 48  # pixels: the line that names the run, with its button or without


def chosen(asks_settings: bool) -> Run | None:
    """The run to show: what the state names, else somebody's, if there is one.

    A run that is new here brings its settings into the controls, unless the address
    asks for others. When another task was chosen, the newest run of that is shown.
    """
    state = st.session_state
    current = run(state.get("run_id"))
    if current is not None and current.id != state.get("controls_of"):
        state.controls_of = current.id
        if not asks_settings:
            controls.use(current.config)
    aside = current is not None and current.id == state.get("aside")
    if current is not None and aside and current.config.task != state.task:
        current = run(newest(visitor(), state.task))
        state.controls_of = current.id if current else state.controls_of
    if current is None:
        st.query_params.pop("run", None)
        return somebodys(state.task)
    st.query_params["run"] = current.id
    return current


def follow_run(run_id: str) -> None:
    """Draw a run now, and again while it goes on; the page anew when it has ended."""
    first = first_look(run_id)
    if first is None:
        st.rerun()
    ended, is_kept = first.job.ended, not store().problem

    def look() -> Run:
        current = run(run_id)
        if current is None or current.job.ended != ended:
            st.rerun()
        if is_kept == bool(store().problem):
            st.rerun()  # every page begins with the problem
        return current

    @st.fragment
    def live() -> None:
        current = look()
        if current.job.place:
            looks.every(None)
            wait(looks.fragment())
        else:
            looks.every(looks.interval(current.job, looks.RUN_SECONDS))
            draw_status(current)
        draw_learning(current)

    @st.fragment
    def wait(whole: str) -> None:
        """Until the run begins: its place alone, nothing else changes."""
        current = look()
        looks.every(looks.interval(current.job))
        if not current.job.place:
            looks.every(looks.RUN_SECONDS, whole)
        draw_status(current)

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
        page_turns.give_back()
        time.sleep(0.01)
        first = run(run_id)
    return first


def onward(current: Run) -> None:
    """Where a run can be looked at, shared and taken."""
    query = {"run": current.id}
    with st.container(horizontal=True, vertical_alignment="center"):
        if current.result is not None and current.config.has_images:
            link(
                page("Evaluate"),
                "See what it got right and wrong",
                icon=":material/fact_check:",
                query_params=query,
            )
        if current.job.owner == visitor():
            link(RUNS, "Compare it with your other runs", query_params=query)
        with st.popover("Share this run", icon=":material/link:", type="tertiary"):
            st.markdown("Whoever opens this address sees this run, live or finished.")
            address = (st.context.url or "").partition("?")[0]
            st.code(f"{address}?run={current.id}", language=None, wrap_lines=True)
    if current.result is not None:
        home = st.expander(
            "Take this run home",
            icon=":material/luggage:",
            key="take_home",
            on_change="rerun",
        )
        if home.open:  # the server keeps its files for as long as they are offered
            with home:
                take_home.downloads(current)


def name_it(current: Run) -> None:
    """Which run is shown, and the way to its settings."""
    mine = current.job.owner == visitor()
    line = f"**{current.name}** · {format.run_line(current.config)}"
    with st.container(
        horizontal=True, vertical_alignment="center", height=ROW, border=False
    ):
        st.markdown(line if mine else f"{line} · somebody else's", width="stretch")
        if controls.differ(current.config):
            st.button(
                "Use these settings",
                icon=":material/arrow_back:",
                key="use_settings",
                type="tertiary",
                on_click=controls.use,
                args=(current.config,),
            )


def nothing_yet(task: str, known: bool) -> None:
    """In the place of a run: what it will learn from; `known`: one can be started."""
    with st.container(height=ROW, border=False, vertical_alignment="center"):
        st.markdown(
            "Press **Start training**, and see it learn."
            if known
            else ":material/hourglass: The workers are loading torch; in a few seconds "
            "you can start."
        )
    if task in IMAGE_TASKS:
        wall.draw(task, None, "", COLUMNS)
    else:
        fits.draw(None, "CPU")
    # Empty axes now, so that the browser has what it needs for the first point.
    st.vega_lite_chart(
        loss_table([]),
        charts.losses((), "step", 100),
        height=MIDDLE,
        alt="An empty chart: step against loss",
    )


def draw_status(current: Run) -> None:
    """How far a run is, and what is wrong with it."""
    job_panel.slot(*status(current))
    if current.job.status == "failed":
        st.error(current.job.message, title="The run failed", icon=":material/error:")
        link(page("Mistakes"), "Find it by its message")
    if engine().problem and not current.job.ended:
        st.error(engine().problem, title="There are no workers; your run waits")


def draw_learning(current: Run) -> None:
    """Charts and figures of a run, beside its earlier ones."""
    shown = [*earlier(current, COMPARED), current]
    if len(shown) > 1:
        if current.job.ended or current.job.owner != visitor():
            st.markdown(beside.finding(*shown[-2:]))
        else:
            beside.ask(*shown[-2:])
    _losses(shown)
    if len(shown) > 1:
        beside.legend(shown, LEGEND)
    _figures(current)
    if current.config.has_images:
        whose = "your" if current.job.owner == visitor() else "this"
        wall.draw(current.config.task, current, whose, COLUMNS)
    else:
        fits.draw(current.fit, _backend(current))
    if any(each.history for each in shown):
        _epochs(beside.ticked(shown, LEGEND))
    if current.result is not None:
        _measured(current.result)


def _backend(current: Run) -> str:
    return current.started.environment.backend if current.started else "CPU"


def status(current: Run) -> tuple[str, float]:
    """How far the run is, what it waits for, or how it ended; and the share done."""
    job, share = current.job, current.share
    latest, started = current.latest, current.started
    if current.result is not None:
        asked = job.owner == visitor() or st.query_params.get("run") == current.id
        return _result(current.result, asked), 1.0
    if job.status == "cancelled":
        made = "before its first step"
        if latest is not None and started is not None:
            made = f"after step {latest.step:,} of {started.steps:,}"
        return f"Cancelled {made}. What was learned until then stays here.", share
    if job.ended:
        return f"The run {job.status}", share
    if started is None:
        return _waiting(job), 0.0
    if latest is None:
        return "The first step is running.", 0.0
    epochs = current.config.epochs
    text = (
        f"Epoch {min(len(current.history) + 1, epochs)} of {epochs} · "
        f"step {latest.step:,} of {started.steps:,}"
    )
    if current.seconds_left is not None:
        text += f" · about {format.duration(current.seconds_left)} left"
    return text, share


def _waiting(job: Job) -> str:
    if job.status == "queued" and job.place:
        return f"{place_in_queue(job)}. It will start by itself, on any page."
    if job.message:
        return job.message
    if engine().machine() is None:
        return "The workers are starting; this takes a few seconds."
    return "A worker is taking the run."


def _result(result: RunResult, asked: bool) -> str:
    """How good it became; `asked`: it is no example, but the visitor's or a link's."""
    if not result.config.has_images:
        return fits.in_words(result)
    if not asked:
        return f"Somebody here got {format.quality(result)} of the test images right."
    return (
        f"**{result.test_accuracy:.2%} of the test images are classified correctly** "
        f"({result.test_correct:,} of {result.test_total:,})."
    )


def in_short(current: Run) -> tuple[str, float]:
    """Its status in a narrow place, in a line."""
    text, share = status(current)
    for detail in (" (", " · step"):
        text = text.partition(detail)[0]
    return text, share


def _figures(current: Run) -> None:
    latest, loss = current.latest, current.smoothed_loss
    last = current.history[-1] if current.history else None
    # While it is trained, that of this epoch: it shows what slows it down.
    speed = latest.samples_per_second if latest else None
    if current.job.ended or speed is None:
        speed = training_speed(current.history)
    timed = current.result or latest
    seconds = timed.seconds if timed else 0.0
    if current.config.has_images:
        quality = {
            "Test accuracy": f"{last.test_accuracy:.2%}" if last else "–",
            "Training loss": "–" if loss is None else f"{loss:.3f}",
        }
    else:
        quality = {
            "Test R²": f"{last.test_r2:.3f}" if last else "–",
            "Test RMSE": f"{last.test_rmse:.3f}" if last else "–",
        }
    measured = {
        "Samples/s": f"{speed:,.0f}" if speed else "–",
        "Elapsed": format.duration(seconds),
    }
    when = "over all epochs" if current.job.ended else "in this epoch"
    notes = {
        "Samples/s": f"Training samples per second {when}, evaluation not counted.",
        "Elapsed": "From the first step on, evaluation included.",
    }
    figures.metrics(quality | measured, notes)


def _losses(shown: list[Run]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**Training loss**", width="stretch")
        x = st.segmented_control(
            "Over",
            list(AXES),
            default="step",
            required=True,
            format_func=AXES.__getitem__,
            key="loss_axis",
            label_visibility="collapsed",
            help="Steps compare learning per update, seconds what you wait for.",
        )
    drawn = beside.ticked(shown, LEGEND)
    epochs = max(each.config.epochs for each in shown)
    steps = max((each.started.steps for each in shown if each.started), default=100)
    st.vega_lite_chart(
        loss_table(drawn),
        charts.losses(_looks(drawn), x, {"step": steps, "epoch": epochs}.get(x)),
        height=MIDDLE,
        key="chart_losses",
        alt=f"Training loss over {AXES[x].lower()} of {len(drawn)} run(s)",
    )


def _looks(drawn: list[Run]) -> charts.Looks:
    return tuple((each.name, each.number) for each in drawn if each.losses)


def _epochs(drawn: list[Run]) -> None:
    """A figure and the loss after each epoch, of training and of test samples."""
    if not drawn:
        return
    config = drawn[-1].config
    epochs = max(each.config.epochs for each in drawn)
    images = config.has_images
    known = config.task == "fashion-mnist"  # what others reached on it
    samples, trained = ("images", "the first 10,000") if images else ("points", "all")
    loss = ("Loss", "loss", "chart_epoch_loss", False)
    quality = ("Accuracy", "accuracy", "chart_accuracy", known)
    quality = quality if images else ("R²", "r2", "chart_r2", False)
    for column, (title, y, key, references) in zip(
        st.columns(2), (quality, loss), strict=True
    ):
        column.markdown(f"**{title} after each epoch**")
        column.vega_lite_chart(
            epoch_table(drawn),
            charts.per_epoch(_looks(drawn), y, epochs, references),
            height=MIDDLE,
            key=key,
            alt=f"{title} on training and test {samples} after each epoch",
        )
    st.caption(
        f"Thick line with dots: all test {samples}. Thin line: {trained} training "
        f"{samples}. Time spent evaluating isn't counted."
        + " Gray: what people and a small CNN have reached on this data."
        * known
    )


def _measured(result: RunResult) -> None:
    st.caption(
        f"Measured on {format.provenance(result.environment)}, seed "
        f"{result.config.seed}, {format.duration(result.seconds)} in all."
    )
