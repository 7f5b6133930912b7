"""Train now, the newest run live, its wall, and its answer to one picture."""

from itertools import chain, zip_longest

import altair as alt
import pandas as pd
import streamlit as st

from core.config import RunConfig
from core.data.fashion_mnist import CLASSES  # the sprites have the same
from core.errors import ExplainedError
from core.jobs.job import Job
from core.lessons.train import progress_page as progress
from core.lessons.train import steer_page
from core.measure.environment import Machine
from core.results import WALL
from core.runs import curves_chart as charts
from core.ui import charts as base
from core.ui import (
    class_rules,
    dataset,
    hosts,
    job_panel,
    polling,
    runs,
    simulated,
    wall,
)
from core.ui.charts import Chart, palette
from core.ui.course import HOME, link, page
from core.ui.runs import Run, run
from core.ui.server import ask, engine, explained, visitor
from core.words import Words

QUICK_EPOCHS = {"fashion-mnist": 5, "sprites": 20}  # some five seconds on two cores
CHART_HEIGHT = 190  # pixels
LIKELIEST = 3  # classes that the chart of a picture shows
PICTURE_SIDE, ANSWERS_HEIGHT = 84, 92  # pixels on the screen
MARKS = ("right", "wrong", "other")
words = Words(__file__)


def draw() -> None:
    """The upper half of the page; it lives while somebody trains."""
    first = runs.on_show()
    if first is not None and not first.job.ended:
        progress.first_look(first.id)

    @st.fragment
    def now() -> None:
        shown = runs.on_show()
        if _state(shown) != _state(first):
            st.rerun()  # the rest of the page depends on it
        if shown is None or (shown.job.ended and shown.job.owner != visitor()):
            polling.every(polling.PATIENT_SECONDS)  # until somebody begins
        else:
            polling.every(polling.interval(shown.job, polling.RUN_SECONDS))
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


def _state(shown: Run | None) -> tuple[str, bool] | None:
    return (shown.id, shown.job.ended) if shown else None


def quick(machine: Machine | None, before: int) -> RunConfig:
    """The run that Train now starts: a seed of its own after so many runs."""
    task = dataset.default_task(machine)
    given = {"task": task, "epochs": QUICK_EPOCHS[task], "seed": before}
    return RunConfig.with_recipe(**class_rules.fitting(given))


def start() -> None:
    """Train now: queue the quick run, unless one of this visitor goes on."""
    own = engine().jobs(runs.RUN, visitor())
    if any(not job.ended for job in own):
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
    if shown.is_simulated:
        simulated.badge()
    job_panel.slot(*progress.in_short(shown))
    steer_page.draw(shown)
    if shown.job.status == "failed":
        st.error(shown.job.message, title="The run failed", icon=":material/error:")
    if shown.started is not None or not shown.job.ended:
        # Empty axes until the first step, so that the page keeps its height.
        looks = ((shown.name, shown.number),) if shown.started else ()
        steps = shown.started.steps if shown.started else 100
        st.vega_lite_chart(
            runs.loss_table([shown]),
            charts.losses(looks, "step", steps, CHART_HEIGHT),
            height=CHART_HEIGHT,
            key="home_losses",
            alt="Training loss over steps",
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        chart, check = ":material/show_chart:", ":material/fact_check:"
        query = {"run": shown.id}
        link(page("Train"), "See the whole run", icon=chart, query_params=query)
        if shown.result is not None:
            evaluate = page("Evaluate")
            link(evaluate, "See its mistakes", icon=check, query_params=query)


def _buttons(own: Job | None) -> None:
    """Train now, or Cancel while a run of one's own goes on, and the way to Train."""
    going_on = runs.going_on(visitor())
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
                disabled=engine().machine() is None or bool(going_on),
            )
        watch = bool(going_on) and own is None
        link(
            page("Train"),
            "Your run goes on: watch it" if watch else "Choose the settings",
            icon=":material/visibility:" if watch else ":material/tune:",
        )


def _machine_line(machine: Machine | None) -> None:
    if machine is None and engine().problem:
        st.error(engine().problem, title="There are no workers")
        return
    if machine is None:
        st.caption(words("loading"))
        return
    best = machine.devices[0]
    data = "Fashion-MNIST" if dataset.is_here(machine) else words("sprites")
    version = f"torch {best.torch.partition('+')[0]}"
    parts = (best.backend, best.device_name, hosts.names(), version, data)
    st.caption(" · ".join(filter(None, parts)))


# On the right: the wall, and one picture of it


def _wall(shown: Run | None) -> None:
    task = shown.config.task if shown else dataset.default_task(engine().machine())
    whose = "your" if shown and shown.job.owner == visitor() else "the newest"
    wrong = wall.draw(task, shown, whose)
    if shown is not None and shown.result is not None and wrong is not None:
        with st.container(border=True), explained("No prediction"):
            _picture(shown, wrong, whose)


@st.cache_data(max_entries=512, show_spinner=False)
def probabilities(run_id: str, place: int) -> tuple[float, ...]:
    """A finished run's answer to an image of the wall. Raises ExplainedError."""
    finished = run(run_id)
    assert finished is not None
    pixels = wall.images(finished.config.task)[0][place]
    address = "core.lessons.evaluate.evaluation:probabilities"
    return ask(address, finished.checkpoint, finished.config, pixels)


def _picture(shown: Run, wrong: frozenset[int], whose: str) -> None:
    """A picture, the likeliest classes, and a button for another one."""
    turn = st.session_state.setdefault("picture_turn", 0)
    place = order(wrong)[turn % WALL]
    answer = probabilities(shown.id, place)
    pixels, labels = wall.images(shown.config.task)
    likeliest = sorted(range(len(answer)), key=lambda i: -answer[i])[:LIKELIEST]
    said, true = likeliest[0], labels[place]
    label = CLASSES[true]
    st.markdown(f"**What does {whose} model think this is?**")
    framed = frozenset({0} if said != true else ())
    with st.container(horizontal=True, vertical_alignment="center"):
        alt_text, picture = f"Test image {place}: {label}", pixels[place : place + 1]
        wall.show(picture, alt_text, PICTURE_SIDE, framed)
        marks = {said: "wrong", true: "right"}
        rows = [
            (CLASSES[i], answer[i], f"{answer[i]:.1%}", marks.get(i, "other"))
            for i in likeliest
        ]
        st.altair_chart(
            answers_chart(pd.DataFrame(rows, columns=["class", "p", "text", "mark"])),
            height=ANSWERS_HEIGHT,
            alt=f"The {LIKELIEST} likeliest classes and their probabilities",
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        verdict = "right." if said == true else f"wrong, the label says **{label}**."
        st.markdown(f"**{CLASSES[said]}**: {verdict}", width="stretch")
        st.button(
            "Another one",
            icon=":material/arrow_forward:",
            key="another_picture",
            on_click=_turn,
        )


def _turn() -> None:
    st.session_state.picture_turn += 1


def order(wrong: frozenset[int]) -> list[int]:
    """The wall's places, one that is right and one that is wrong in turn."""
    right = [place for place in range(WALL) if place not in wrong]
    pairs = chain.from_iterable(zip_longest(right, sorted(wrong)))
    return [place for place in pairs if place is not None]


def answers_chart(answers: pd.DataFrame) -> Chart:
    """A bar per row of `answers`: class (the likeliest first), p, text, mark."""
    colors = palette()
    shades = alt.Scale(domain=MARKS, range=[colors.right, colors.wrong, colors.quiet])
    color = alt.Color("mark:N").scale(shades).legend(None)
    x = alt.X("p:Q").scale(domain=[0, 1]).axis(None)
    rows = base.rows(answers, "class", 110)
    return base.bars(rows, x, "text", 24, height=12, dx=5, color=color)
