"""What every page has: its configuration, the course map, the way to the next one."""

from pathlib import Path
from typing import Literal

import streamlit as st

from core.measure.environment import Machine
from core.ui import (
    answers,
    course,
    format,
    hosts,
    people,
    quiz,
    sidebar_jobs,
    your_data,
    your_turn,
)
from core.ui.classroom import held
from core.ui.course import CLASS, HOME, LESSONS, RUNS, TEACHER, after
from core.ui.links import link
from core.ui.server import engine, room, store, visitor, visitor_of_cookie

Color = Literal["blue", "gray", "orange"]
PROSE = 700  # pixels: how wide a text is at most
LOGO = str(Path(__file__).with_name("logo.svg"))


def begin(title: str, wide: bool = True) -> None:
    """The first call of the page of that title: sidebar, title, the page's promise.

    Home draws title and promise itself. The page is drawn anew once the workers have
    said what is here, or why not.
    """
    lesson = course.page(title)
    st.set_page_config(
        page_title=f"{lesson.title} · to(device)",
        page_icon=LOGO,
        layout="wide" if wide else "centered",
        initial_sidebar_state=220,  # pixels
    )
    people.come()
    if who := visitor_of_cookie():
        store().visitors.touch(who)
    st.logo(LOGO, size="large")
    with st.sidebar:
        _course()
        st.space("small")  # what follows is no lesson
        link(RUNS)
        if room().open is not None:
            link(CLASS)
        if room().is_teacher(visitor()):
            link(TEACHER)
        _machine_badge()
        sidebar_jobs.draw()
    if lesson is not HOME:
        st.title(lesson.title)
        st.markdown(lesson.promise, width=PROSE)
    your_data.tell(title)
    if problem := store().problem:
        st.warning(problem, icon=":material/database_off:")
    _wait_for_machine()


def end(title: str) -> None:
    """The last call of the lesson of that title: what it asks for, then the way on."""
    lesson = course.page(title)
    st.divider()
    st.header("Practice", anchor=False)
    st.markdown("An exercise and some questions on everything on this page.")
    your_turn.draw(title)
    with st.container(width=PROSE):
        quiz.draw(lesson)
    if lesson.read:
        pages = (f"[{name}]({address})" for name, address in lesson.read.items())
        st.markdown(f"**Read more** at pytorch.org: {' · '.join(pages)}", width=PROSE)
    st.space("small")
    if following := after(lesson):
        with st.container(border=True, width="content"):
            link(following, f"Next: {following.title}", icon=":material/arrow_forward:")
    else:
        link(HOME, "Back to the course map")


def device_color(backend: str) -> Color:
    """Blue is the CPU, orange the accelerator, everywhere."""
    return "blue" if backend == "CPU" else "orange"


def _wait_for_machine() -> None:
    problem = engine().problem

    @st.fragment(run_every=0.5)
    def look_again() -> None:
        if engine().machine() is not None or engine().problem != problem:
            st.rerun()

    if engine().machine() is None:
        look_again()


def machine() -> Machine:
    """What the workers say of this machine; the page ends here until they do.

    With the devices alone that the class allows, if one is open.
    """
    found = engine().machine()
    if found is None:
        st.markdown(":material/hourglass: The workers are loading torch.")
        st.stop()
    return held.machine(found)


def _course() -> None:
    """The way through the lessons, and how much of it this visitor has done."""
    given = answers.given()
    done = [each for each in LESSONS if each.is_done(given)]
    begun = [
        f"\n- {each.title}: {each.solved(given)} of {len(each.questions)}"
        for each in LESSONS
        if each.solved(given) and each not in done
    ]
    st.markdown("**to(device)**  \nLearn to run PyTorch on an accelerator")
    link(HOME, "Home")
    for each in LESSONS:
        mark = " :green[:material/check:]" if each in done else ""
        link(each, f"{each.title}{mark}")
    st.markdown(
        f":small[{len(done)} of {len(LESSONS)} lessons done]",
        help="A lesson is done once you have answered every question at its end "
        "correctly, on any try." + "\n\nBegun:\n" * bool(begun) + "".join(begun),
    )


def _machine_badge() -> None:
    """What is here; pressed, it tells with what everything is measured."""
    machine = engine().machine()
    st.space("small")
    if machine is None:
        st.badge("Workers are starting", icon=":material/hourglass:", color="gray")
        return
    best = machine.devices[0]
    color = device_color(best.backend)
    name = f":{color}[**{best.backend}** · {best.device_name}]"
    if several := hosts.several():
        name += f" · {len(several)} machines"
    with st.popover(name, icon=":material/memory:", wrap=True):
        st.markdown("Unless a figure says otherwise, it was measured here:")
        for each in machine.devices:
            st.markdown(f"- {format.provenance(each)}, {each.system}")
        if several:
            st.markdown("Training runs go to whichever of these is free:")
            hosts.table()
