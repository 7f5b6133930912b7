"""What happens on this machine: Train now, the newest run live, and its wall."""

import streamlit as st

from core.config import RunConfig
from core.errors import ExplainedError
from core.jobs.job import Job
from core.measure.environment import Machine
from core.ui import dataset, hosts, job_panel, looks, runs
from core.ui.charts import train as charts
from core.ui.classroom import held
from core.ui.course import HOME, page
from core.ui.home import picture, wall
from core.ui.links import link
from core.ui.runs import Run
from core.ui.server import engine, visitor
from core.ui.train import live

QUICK_EPOCHS = {"fashion-mnist": 5, "sprites": 20}  # some five seconds on two cores
CHART_HEIGHT = 190  # pixels


def draw() -> None:
    """The upper half of the page; it lives while somebody trains."""
    first = runs.on_show()
    if first is not None and not first.job.ended:
        live.first_look(first.id)

    @st.fragment
    def now() -> None:
        shown = runs.on_show()
        if _stands(shown) != _stands(first):
            st.rerun()
        looks.every(_look_seconds(shown))
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


def _stands(shown: Run | None) -> tuple[str, bool] | None:
    """What the rest of the page depends on."""
    return (shown.id, shown.job.ended) if shown else None


def _look_seconds(shown: Run | None) -> float | None:
    """From one look to the next; None where there is nothing to wait for.

    Who has no run of their own sees when somebody begins.
    """
    if shown is None or (shown.job.ended and shown.job.owner != visitor()):
        return looks.PATIENT_SECONDS
    return looks.interval(shown.job, looks.RUN_SECONDS)


def quick(machine: Machine | None, before: int) -> RunConfig:
    """The run that Train now starts: a seed of its own after so many runs."""
    task = dataset.default_task(machine)
    given = {"task": task, "epochs": QUICK_EPOCHS[task], "seed": before}
    return RunConfig.with_recipe(**held.fitting(given))


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
    job_panel.slot(*live.in_short(shown))
    if shown.job.status == "failed":
        st.error(shown.job.message, title="The run failed", icon=":material/error:")
    if shown.started is not None or not shown.job.ended:
        _loss(shown)
    _onward(shown)


def _loss(shown: Run) -> None:
    """Its curve; empty axes until the first step, so that the page keeps its height."""
    st.vega_lite_chart(
        runs.loss_table([shown]),
        charts.losses(
            ((shown.name, shown.number),) if shown.started else (),
            "step",
            shown.started.steps if shown.started else 100,
            CHART_HEIGHT,
        ),
        height=CHART_HEIGHT,
        key="home_losses",
        alt="Training loss over steps",
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
        link(
            page("Train"),
            "Your run goes on: watch it" if going else "Choose the settings",
            icon=":material/visibility:" if going else ":material/tune:",
        )


def _machine_line(machine: Machine | None) -> None:
    """What there is, in a line; or what it waits for."""
    if machine is None and engine().problem:
        st.error(engine().problem, title="There are no workers")
        return
    if machine is None:
        st.caption(":material/hourglass: The workers are loading torch: a few seconds.")
        return
    best = machine.devices[0]
    data = "Fashion-MNIST"
    if not dataset.is_here(machine):
        data = "without Fashion-MNIST: you train on sprites, drawn by a program"
    version = best.torch.partition("+")[0]
    told = (best.backend, best.device_name, hosts.names(), f"torch {version}", data)
    st.caption(" · ".join(filter(None, told)))


def _onward(shown: Run) -> None:
    """Where this run can be looked at more closely."""
    query = {"run": shown.id}
    with st.container(horizontal=True, vertical_alignment="center"):
        link(
            page("Train"),
            "See the whole run",
            icon=":material/show_chart:",
            query_params=query,
        )
        if shown.result is not None:
            link(
                page("Evaluate"),
                "See its mistakes",
                icon=":material/fact_check:",
                query_params=query,
            )


# On the right: the wall, and one picture of it


def _wall(shown: Run | None) -> None:
    task = shown.config.task if shown else dataset.default_task(engine().machine())
    whose = "your" if shown and shown.job.owner == visitor() else "the newest"
    wrong = wall.draw(task, shown, whose)
    if shown is not None and shown.result is not None and wrong is not None:
        picture.draw(shown, wrong, whose)
