"""The board: the class as a student sees it, and on the wall of the room."""

from collections.abc import Callable
from typing import Any

import altair as alt
import pandas as pd
import psutil
import streamlit as st

from core.classroom import guesses_page as guesses
from core.classroom import standings_page
from core.classroom.joining_page import qr_code
from core.classroom.standings_page import Best, Standings, label, neighbors
from core.data.fashion_mnist import CLASSES  # the sprites have the same
from core.errors import ExplainedError
from core.jobs.job import Job
from core.lessons.device import machine_page
from core.ui import charts, figures, format, runs, wall
from core.ui.charts import FONT_PIXELS, LATER, TALL, Chart, Palette
from core.ui.course import CLASS, link, page
from core.ui.frame import LOGO
from core.ui.polling import PATIENT_SECONDS
from core.ui.server import engine, room, visitor
from core.words import Words

words = Words(__file__)

MOST_MISTAKES = 10  # images on the wall
MOST_WAITING = 4  # listed; the others are counted
WALL_HEIGHT, WALL_FONT_PIXELS = 460, 18  # for the chart on the projector
SECONDS = [  # ticks; Vega leaves out some of those that would touch
    float(f"{digit}e{power}")
    for power in range(-1, 4)
    for digit in (1, 1.5, 2, 3, 4, 5, 7)
]
SHAPES = ("circle", "square", "triangle-up")


def draw() -> None:
    def board(standings: Standings) -> None:
        left, right = st.columns([6, 4], gap="medium")
        with left:
            st.markdown(headline(standings))
            chart(standings)
            st.caption(words("board.caption"))
        with right:
            _quest(standings, visitor())
            _queue(standings)
        guesses.draw(standings.guesses)

    live(board)


def live(draw: Callable[[Standings], None]) -> None:
    """Draw the standings every few seconds; the whole page when the class changes."""
    opened = room().open

    @st.fragment(run_every=PATIENT_SECONDS)
    def look() -> None:
        now = room().open
        is_other = now is None or opened is None or now.id != opened.id
        if is_other or not room().may_see(visitor()):
            st.rerun()
        try:
            standings = standings_page.newest()
        except ExplainedError as error:
            st.warning(str(error), icon=":material/database_off:")
        else:
            draw(standings)

    look()


def headline(standings: Standings) -> str:
    """How many have reached the target, and the fastest of them."""
    order = standings.order
    target = f"{standings.opened.rules.target:.0%} on {format.NAMES[standings.task]}"
    if not order:
        return f"**The quest: reach {target} in the fewest seconds.** Nobody has yet."
    reached = "One of" if len(order) == 1 else f"{len(order)} of"
    return (
        f"**{reached} {len(standings.names)} reached {target}, the fastest in "
        f"{order[0].seconds:.1f} s.**"
    )


def chart(standings: Standings, on_wall: bool = False) -> None:
    """A point for each best run; empty axes before there is one."""
    rules, machine, me = standings.opened.rules, engine().machine(), visitor()
    backends = {d.device_name: d.backend for d in machine.devices} if machine else {}
    rows = [
        (
            "Somebody" if on_wall and rules.anonymous else best.name,
            best.seconds,
            best.accuracy,
            backends.get(best.device or "", "CPU"),
            format.NAMES[best.task],
            "You" if best.visitor == me and not on_wall else "",
        )
        for best in standings.best
    ]
    columns = ["who", "seconds", "accuracy", "backend", "task", "mine"]
    data = pd.DataFrame(rows, columns=columns)
    height = WALL_HEIGHT if on_wall else TALL
    st.vega_lite_chart(
        data,
        scatter(
            tuple(sorted(set(data["backend"]))) or ("CPU",),
            tuple(sorted({*data["task"], format.NAMES[standings.task]})),
            rules.target,
            height,
            WALL_FONT_PIXELS if on_wall else FONT_PIXELS,
        ),
        height=height,
        key="class_scatter",
        alt=f"Test accuracy against seconds of the best runs of {len(rows)} people",
    )


@charts.live
def scatter(
    colors: Palette,
    backends: tuple[str, ...],
    tasks: tuple[str, ...],
    target: float,
    height: int,
    pixels: int,
) -> Chart:
    """Accuracy over seconds; letters are so many `pixels` high.

    Columns: who, seconds, accuracy, backend, task, and mine: "You" for the visitor.
    """
    fonts: Any = {"labelFontSize": pixels, "titleFontSize": pixels}
    axes = alt.Chart(LATER).encode(
        x=alt.X("seconds:Q")
        .title("Total seconds")
        .scale(type="log", nice=False, padding=24)
        .axis(values=SECONDS, format="~r", labelOverlap="greedy", **fonts),
        y=alt.Y("accuracy:Q")
        .title("Test accuracy")
        .scale(zero=False, padding=16)
        .axis(format=charts.PERCENT, **fonts),
    )
    legend: Any = {"labelFontSize": pixels}
    ink: Any = {"symbolFillColor": colors.text, "symbolStrokeColor": colors.text}
    hues = [colors.of(backend) for backend in backends]
    color = charts.hues("backend", backends, hues, symbolOpacity=1, **legend)
    shape = alt.Shape("task:N").scale(domain=tasks, range=SHAPES[: len(tasks)])
    several = alt.Legend(title=None, orient="top", **ink, **legend)
    points = axes.mark_point(filled=True, size=pixels * 7, opacity=0.85).encode(
        color=color if len(backends) > 1 else color.legend(None),
        shape=shape.legend(several if len(tasks) > 1 else None),
        tooltip=charts.tips(who="Who", task="Task", backend="Device")
        + charts.tips(".2%", accuracy="Test accuracy")
        + charts.tips(".1f", seconds="Seconds"),
    )
    mine = axes.transform_filter("datum.mine")
    ring = mine.mark_point(size=pixels * 20, strokeWidth=2.5, color=colors.text)
    you = mine.mark_text(dy=-1.5 * pixels, fontSize=pixels, fontWeight="bold")
    line = alt.Chart(alt.Data(values=[{"target": target}])).encode(y="target:Q")
    quest = line.mark_rule(color=colors.quiet, strokeDash=[5, 4], aria=False)
    layers = (quest, points, ring, you.encode(text="mine:N"))
    return alt.layer(*layers).properties(height=height)


def _quest(standings: Standings, me: str) -> None:
    """The visitor's place and neighbors, or how far they are from one."""
    st.subheader("The quest", anchor=False)
    st.markdown(place(standings, me))
    if standings.order:
        right = st.column_config.TextColumn(alignment="right")
        figures.table(
            (
                (
                    f"{number}",
                    f"{best.name} (you)" if best.visitor == me else best.name,
                    f"{best.seconds:.1f}",
                    f"{best.accuracy:.1%}",
                )
                for number, best in neighbors(standings.order, me)
            ),
            ("Place", "Who", "Seconds", "Accuracy"),
            "Places in the quest",
            column_config={"Seconds": right, "Accuracy": right},
        )
    link(page("Train"), "Train a model")


def place(standings: Standings, me: str) -> str:
    """The visitor's place in a sentence."""

    def mine(runs: list[Best]) -> Best | None:
        own = (run for run in runs if run.visitor == me)
        return next((run for run in own if run.task == standings.task), None)

    if ranked := mine(standings.order):
        number = standings.order.index(ranked) + 1
        return f"You are **number {number}** of {len(standings.order)}."
    if (best := mine(standings.best)) is None:
        return f"You haven't trained on {format.NAMES[standings.task]} yet."
    missing = (standings.opened.rules.target - best.accuracy) * 100
    return f"Your best is **{best.accuracy:.1%}**: {missing:.1f} points to go."


def _queue(standings: Standings) -> None:
    st.subheader("Right now", anchor=False)
    names = sorted(standings.names[who] for who in standings.here)
    count = f"{len(names)} of {len(standings.names)} here"
    with st.popover(count, icon=":material/groups:", type="tertiary"):
        st.markdown("\n".join(f"- {name}" for name in names) or "Nobody.")
    st.markdown("  \n".join(queue_lines(standings)))


def queue_lines(standings: Standings, on_wall: bool = False) -> list[str]:
    """A line for each job that runs, then for the first that wait."""
    me = "" if on_wall else visitor()
    anonymous = on_wall and standings.opened.rules.anonymous

    def line(job: Job) -> str:
        name = standings.names.get(job.owner, "A guest")
        name = "**You**" if job.owner == me else "Somebody" if anonymous else name
        if job.place:
            return f":material/hourglass_top: {job.place}. {name}: {label(job)}"
        is_measured = job.address == runs.RUN and job.status == "running"
        share = f", {runs.view(job).share:.0%}" if is_measured else ""
        return f":material/play_arrow: {name}: {label(job)}{share}"

    queue = standings.queue
    listed = [job for job in queue if job.place <= MOST_WAITING or job.owner == me]
    lines = [line(job) for job in listed]
    if rest := len(queue) - len(listed):
        lines.append(f"and {rest} more")
    if engine().paused:
        lines.insert(0, ":material/pause: Your teacher has paused the queue.")
    return lines or ["Nothing trains right now."]


# On the wall of the room: large, live, and without a sidebar


def project() -> None:
    """For members and teachers alone: the code to join with is on it."""
    st.set_page_config(
        page_title="Class · to(device)",
        page_icon=LOGO,
        layout="wide",
        initial_sidebar_state="collapsed",
    )
    opened = room().open
    if opened is None or not room().may_see(visitor()):
        st.title("Class")
        st.markdown(words("projector.not_in"))
        link(CLASS, "Class")
        return
    st.title(opened.name)
    live(_wall)


def _wall(standings: Standings) -> None:
    opened = standings.opened
    left, right = st.columns([7, 3], gap="large")
    with left:
        st.header(headline(standings).replace("**", ""), anchor=False)
        chart(standings, on_wall=True)
        _mistakes(standings)
    with right:
        address = qr_code(opened).partition("?")[0]
        st.title(opened.code, anchor=False)
        joined = f"{len(standings.names)} of {opened.size} have joined."
        st.markdown(f"{address}  \n{joined}")
        st.header("Right now", anchor=False)
        for line in queue_lines(standings, on_wall=True):
            st.markdown(f"#### {line}")
        _load()


def _mistakes(standings: Standings) -> None:
    """Images that the class's newest model gets wrong."""
    newest = runs.run(standings.newest)
    if newest is None or engine().machine() is None:
        return
    try:
        pixels, labels = wall.images(newest.config.task)
    except ExplainedError:
        return
    places = sorted(wall.wrong(newest, labels) or ())[:MOST_MISTAKES]
    if not places:
        return
    names = {} if standings.opened.rules.anonymous else standings.names
    answers = newest.history[-1].wall
    sentences = [f"{CLASSES[answers[i]]}, not {CLASSES[labels[i]]}" for i in places]
    name = names.get(newest.job.owner, "Somebody")
    st.header(f"{name}'s newest model gets these wrong", anchor=False)
    said = f"It said: {'; '.join(sentences)}"
    wall.show(pixels[places], said, "content", columns=MOST_MISTAKES)
    st.markdown(f"#### It took the first for: {sentences[0]}.")


def _load() -> None:
    """How busy each device is."""
    try:
        loads = machine_page.live()
    except ExplainedError:
        return
    machine = engine().machine()
    for device in machine.devices if machine else ():
        load = loads.get(device.device)
        busy = load.busy_percent if load else None
        if device.backend == "CPU":
            busy = round(psutil.cpu_percent())
        parts = [] if busy is None else [f"{busy}% busy"]
        if load and load.used_bytes is not None and load.total_bytes:
            used, total = format.size(load.used_bytes), format.size(load.total_bytes)
            parts.append(f"{used} of {total} used")
        st.markdown(f"**{device.device_name}**  \n{', '.join(parts)}")
