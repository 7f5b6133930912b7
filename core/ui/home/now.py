"""What happens on this machine: Train now, the newest run live, and its wall."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain

import streamlit as st

from core.config import RunConfig
from core.errors import ExplainedError
from core.jobs.job import Job
from core.measure.environment import Machine
from core.results import WALL, RunResult
from core.store.codec import StoreError
from core.ui import dataset, format, job_panel, runs
from core.ui.charts import train as charts
from core.ui.course import HOME
from core.ui.home import picture, wall
from core.ui.job_panel import PATIENT_SECONDS, RUN_SECONDS, look_seconds
from core.ui.runs import Run
from core.ui.server import engine, explained, store, visitor
from core.ui.train import live

QUICK_EPOCHS = {"fashion-mnist": 5, "sprites": 20}  # some five seconds on two cores
CHART_HEIGHT = 190  # pixels


def draw() -> None:
    """The upper half of the page; it lives while somebody trains."""
    first = newest()
    seconds = _look_seconds(first)
    if first is not None and not first.job.ended:
        live.first_look(first.id)

    @st.fragment(run_every=seconds)
    def now() -> None:
        shown = newest()
        if _look_seconds(shown) != seconds or (shown is None) != (first is None):
            st.rerun()
        left, right = st.columns(
            [5, 6],
            gap="large",
            vertical_alignment="center" if shown is None else "top",
        )
        with left:
            _invitation(shown)
        with right:
            _wall(shown)

    now()


def newest() -> Run | None:
    """The run that is shown: one's own, else one that goes on, else the newest."""
    jobs = [each for each in engine().jobs(runs.RUN) if each.arguments[0].has_images]
    mine = [each for each in jobs if each.owner == visitor()]
    mine = [each for each in mine if not each.ended] or mine
    going_on = [each for each in jobs if not each.ended]
    finished = [each for each in jobs if each.status == "finished"]
    candidates = chain(
        (each.id for each in mine[-1:]),
        _kept(visitor()),
        (each.id for each in (*going_on[:1], *finished[-1:])),
        _kept(),
    )
    return next(filter(None, map(runs.run, candidates)), None)


def _kept(owner: str | None = None) -> Iterator[str]:
    """The newest run on images that finished before this server began, if any did."""
    with suppress(StoreError):
        found = store().runs.find(owner, address=runs.RUN, status="finished", limit=5)
        yield from (each.id for each in found if each.accuracy is not None)


def _look_seconds(shown: Run | None) -> float | None:
    """From one look to the next; None where there is nothing to wait for.

    Who has no run of their own sees when somebody begins.
    """
    if shown is None or (shown.job.ended and shown.job.owner != visitor()):
        return PATIENT_SECONDS
    return look_seconds(shown.job, RUN_SECONDS)


def quick(machine: Machine | None, before: int) -> RunConfig:
    """The run that Train now starts: a seed of its own after so many runs."""
    task = dataset.default_task(machine)
    return RunConfig.with_recipe(task=task, epochs=QUICK_EPOCHS[task], seed=before)


def start() -> None:
    """Train now: queue the quick run, unless one of this visitor goes on."""
    own = engine().jobs(runs.RUN, visitor())
    if any(not each.ended for each in own):
        return
    try:
        runs.start(quick(engine().machine(), len(own)))
    except ExplainedError as error:
        st.session_state.home_refused = str(error)


# On the left: the title, the button, and the run


def _invitation(shown: Run | None) -> None:
    st.title(HOME.title)
    st.markdown(HOME.promise)
    mine = shown is not None and shown.job.owner == visitor()
    _buttons(shown.job if shown and mine else None)
    if why := st.session_state.pop("home_refused", ""):
        st.warning(f"{why} Nothing was started.", icon=":material/block:")
    _machine_line(engine().machine())
    if shown is None:
        return
    if not mine:
        doing = "has trained this model" if shown.job.ended else "is training this"
        st.markdown(f":material/group: Somebody in this course {doing}.")
    if shown.result is None:
        live.status(shown)
    else:
        _result(shown.result)
    if shown.started is not None or not shown.job.ended:
        _loss(shown)
    _onward(shown)


def _loss(shown: Run) -> None:
    """Its curve; empty axes until the first step, so that the page keeps its height."""
    started = shown.started
    names = format.run_names([shown.config]) if started else ()
    st.vega_lite_chart(
        runs.loss_table([shown]),
        charts.losses(
            tuple(names),
            started.environment.backend if started else "CPU",
            "step",
            started.steps if started else 100,
            height=CHART_HEIGHT,
        ),
        key="home_losses",
        alt="Training loss over steps",
    )


def _result(result: RunResult) -> None:
    seconds = format.duration(result.seconds)
    st.success(
        f"**{result.test_accuracy:.2%} of the test images are classified correctly** "
        f"({result.test_correct:,} of {result.test_total:,}), after {seconds}.",
        icon=":material/check_circle:",
    )


def _buttons(own: Job | None) -> None:
    """Train now, or Cancel while a run of one's own goes on, and the way to Train."""
    others = [each for each in engine().jobs(runs.RUN, visitor()) if not each.ended]
    with st.container(horizontal=True, vertical_alignment="center"):
        if own is not None and not own.ended:
            job_panel.cancel_button(own, "cancel_run")
        else:
            st.button(
                "Train again" if own else "Train now",
                type="secondary" if own else "primary",
                icon=":material/play_arrow:",
                key="train_now",
                on_click=start,
                disabled=engine().machine() is None or bool(others),
            )
        going = bool(others) and own is None
        st.page_link(
            "pages/3_Train.py",
            label="Your run goes on: watch it" if going else "Choose the settings",
            icon=":material/visibility:" if going else ":material/tune:",
        )


def _machine_line(machine: Machine | None) -> None:
    """What this machine is, in a line; or what it waits for."""
    if machine is None and engine().problem:
        st.error(engine().problem, title="There are no workers")
        return
    if machine is None:
        st.caption(":material/hourglass: The workers are loading torch: some seconds.")
        return
    best = machine.devices[0]
    data = "Fashion-MNIST"
    if not dataset.is_here(machine):
        data = "without Fashion-MNIST: you train on sprites, drawn by a program"
    version = best.torch.partition("+")[0]
    st.caption(f"{best.backend} · {best.device_name} · torch {version} · {data}")


def _onward(shown: Run) -> None:
    """Where this run can be looked at more closely."""
    query = {"run": shown.id}
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(
            "pages/3_Train.py",
            label="All of this run",
            icon=":material/show_chart:",
            query_params=query,
        )
        if shown.result is not None:
            st.page_link(
                "pages/4_Evaluate.py",
                label="What it got wrong",
                icon=":material/fact_check:",
                query_params=query,
            )


# On the right: the wall, and one picture of it


def _wall(shown: Run | None) -> None:
    machine = engine().machine()
    task = shown.config.task if shown else dataset.default_task(machine)
    labels: tuple[int, ...] = ()
    if machine is not None:
        with explained("The pictures did not come"):
            labels = wall.images(task)[1]
    wrong = wall.wrong(shown, labels) if labels else None
    wall.draw(task if labels else None, wrong or frozenset())
    whose = "your" if shown and shown.job.owner == visitor() else "the newest"
    st.markdown(_caption(shown, wrong, whose))
    if shown is not None and shown.result is not None and wrong is not None:
        picture.draw(shown, wrong, whose)


def _caption(shown: Run | None, wrong: frozenset[int] | None, whose: str) -> str:
    """What the frames say, with their number."""
    if wrong is None or shown is None:
        return (
            f":small[{WALL} images that no model trains on. Yours will have those that "
            "it gets wrong framed in red.]"
        )
    if shown.job.ended:
        when = f"{whose} model".capitalize()
    else:
        when = f"After epoch {len(shown.history)} of {shown.config.epochs} it"
    return f":small[{when} gets **{len(wrong)} of these {WALL}** wrong: framed in red.]"
