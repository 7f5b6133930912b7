"""The frame of every page: sidebar, title, machine, and the link to the next page."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Machine
from core.serving import forms
from core.serving.page_html import SIDEBAR
from core.serving.request_source import note_visit
from core.store.codec import StoreError
from core.ui import (
    answers,
    class_rules,
    course,
    format,
    hosts,
    polling,
    practice,
    runs,
    spoilers,
)
from core.ui.course import CLASS, HOME, LESSONS, RUNS, TEACHER, after, link
from core.ui.server import (
    come,
    engine,
    engine_problem,
    room,
    store,
    store_problem,
    visitor,
    visitor_of_cookie,
)

LOADING = ":material/hourglass: The app is loading torch."
TABS = "names_of_tabs"  # in the session's state: those of the page drawn last
MORE = "More"  # the tab with what doesn't belong to the course
PROSE = 700  # the greatest width of a text, in pixels
LIVE_SECONDS = 5.0  # between two looks at the visitor's jobs, and at the class's wall
HOUR = 3600.0
JOB_ICONS = {"finished": ":material/check_circle:", "failed": ":material/error:"}
# If one of these environment variables is set, people can sign in as teachers.
TEACHING = {"TEACHER_PASSWORD", "TEACHER_EMAILS"}
LOGO = str(Path(__file__).with_name("logo.svg"))


def begin(title: str) -> None:
    """Draw the top of a page: the sidebar, the title, and what the lesson teaches.

    Home draws its own title and introduction. The page is redrawn once the workers have
    described the machine, or have failed to.
    """
    lesson = course.page(title)
    st.set_page_config(
        page_title=f"{lesson.title} · to(device)",
        page_icon=LOGO,
        layout="wide",
        initial_sidebar_state=SIDEBAR,
    )
    come(lesson.title if lesson is not HOME else "Home")
    note_visit(st.context.headers)
    if cookie_id := visitor_of_cookie():
        store().visitors.touch(cookie_id)
    st.logo(LOGO, size="large")
    with st.sidebar:
        _course()
        st.space("small")
        link(RUNS)
        # An open class has its link at the top. Without a class, the page Class is only
        # useful for a teacher's sign-in.
        is_useful = room().on_board is not None or any(map(os.environ.get, TEACHING))
        if is_useful and room().open is None:
            link(CLASS)
        if room().is_teacher(visitor()):
            link(TEACHER)
        _machine_badge()
        _live()
        if engine().machine() is None:
            # Drawn last, so that nothing moves when the fragment disappears.
            _wait_for_machine(engine().problem)
    if lesson is not HOME:
        st.title(lesson.title)
        task = f" **Your task:** {lesson.task}" if lesson.task else ""
        st.markdown(f"{lesson.promise}{task}")
    if lesson in LESSONS:
        practice.again(lesson)
    outcome(title)
    if problem := store_problem():
        st.warning(problem, icon=":material/database_off:")


def outcome(page: str) -> None:
    """Show the outcome of the form that led to the page with this title.

    The outcome stays until the visitor opens another page.
    """
    if sentence := forms.pop_sentence(visitor_of_cookie()):
        st.session_state["said"] = page, sentence
    where, sentence = st.session_state.get("said", ("", None))
    if sentence and where == page:
        show = {"success": st.success, "warning": st.warning}[sentence.kind]
        show(sentence.text, icon=":material/key:")
    elif sentence:
        del st.session_state["said"]


def end(title: str) -> None:
    """Draw what the lesson with this title ends with: practice, then the next page."""
    lesson = course.page(title)
    st.divider()
    st.header("Practice", anchor=False)
    st.markdown("Try an exercise, and answer some questions about this page.")
    practice.exercise(title)
    with st.container(width=PROSE):
        practice.questions(lesson)
    if lesson.read:
        pages = (f"[{name}]({address})" for name, address in lesson.read.items())
        st.markdown(f"**Read more** at pytorch.org: {' · '.join(pages)}", width=PROSE)
    st.space("small")
    following = after(lesson)
    if lesson.further or following is None or following.further:
        with st.container(width=PROSE):
            practice.last()
    if following:
        with st.container(border=True, width="content"):
            way = "Going further" if following.further else "Next"
            label = f"{way}: {following.title}"
            link(following, label, icon=":material/arrow_forward:")
    elif lesson.further:
        link(HOME, "Back to the course map")


def sections(
    functions: Mapping[str, Callable[[], None]],
    always: Collection[str] = (),
    more: Collection[str] = (),
) -> None:
    """Draw tabs. `functions` maps each tab's name to what draws the tab's content.

    The page's address has the open tab's name. Only the open tab is drawn, and the tabs
    in `always`, so that uploads in them aren't lost. The tabs in `more` don't belong to
    the course: they are in a last tab, MORE, which has tabs of its own.
    """
    _begin_at_first_tab([*functions])
    _open_more(more)
    course = {name: draw for name, draw in functions.items() if name not in more}
    further = {name: draw for name, draw in functions.items() if name in more}
    for tab, name in _tabs([*course, MORE] if further else [*course], "tab"):
        if name in course and (tab.open or name in always):
            with tab:
                course[name]()
        elif name == MORE and tab.open:
            with tab:
                st.caption("You don't need this to finish the course.")
                for inner, name in _tabs([*further], "more"):
                    if inner.open:
                        with inner:
                            further[name]()


def _tabs(names: list[str], key: str) -> Iterable[tuple[Any, str]]:
    return zip(st.tabs(names, key=key, bind="query-params"), names, strict=True)


def _begin_at_first_tab(names: list[str]) -> None:
    """Forget which tab was open on another page, unless the address names one."""
    address, state = st.query_params, st.session_state
    if state.get(TABS, names) != names and "tab" not in address:
        for key in ("tab", "more"):
            state.pop(key, None)
    state[TABS] = names


def _open_more(more: Collection[str]) -> None:
    """Open a tab in `more` by its name alone, as links and older addresses have it."""
    address, state = st.query_params, st.session_state
    if address.get("tab") in more:
        # Streamlit would take the name, which isn't one of the outer tabs, out of the
        # address, and a reload would open the first tab.
        address.update(tab=MORE, more=address["tab"])
        st.rerun()
    elif state.get("tab") in more:
        state["tab"], state["more"] = MORE, state["tab"]


def device_color(backend: str) -> Literal["blue", "orange"]:
    """The device's color on all pages: blue for the CPU, orange for an accelerator."""
    return "blue" if backend == "CPU" else "orange"


@st.fragment
def _wait_for_machine(problem: str) -> None:
    polling.every(polling.shared(0.5))
    if engine().machine() is not None or engine().problem != problem:
        st.rerun()


def machine() -> Machine:
    """This machine, with only the devices that an open class allows.

    If the workers have not described the machine yet, nothing after this call is drawn.
    """
    whole = engine().machine()
    if whole is None:
        if problem := engine_problem():
            st.error(problem, title="There are no workers", icon=":material/error:")
        else:
            st.markdown(LOADING)
        st.stop()
    return class_rules.machine(whole)


def _course() -> None:
    answers_by_key = answers.of_visitor()
    done = [lesson for lesson in LESSONS if lesson.is_done(answers_by_key)]
    begun = [
        f"\n- {lesson.title}: {earned} of {len(lesson.questions)}"
        for lesson in LESSONS
        if (earned := lesson.earned(answers_by_key)) and lesson not in done
    ]
    course = [lesson for lesson in LESSONS if not lesson.further]
    further = [lesson for lesson in LESSONS if lesson.further]
    st.markdown("**to(device)**  \nLearn to run PyTorch on an accelerator")
    link(HOME, "Home")
    if room().open is not None:  # a class comes back to its page again and again
        link(CLASS)
    for lesson in (*course, *further):
        if further and lesson is further[0]:
            st.markdown(":small[Going further]")
        mark = " :green[:material/check:]" if lesson in done else ""
        link(lesson, f"{lesson.title}{mark}")
    count = sum(lesson in done for lesson in course)
    help = (
        "A lesson is done once you've answered each of its questions correctly on the "
        "first try, or when it came again on a later page."
    )
    if begun:
        help += "\n\nBegun:\n" + "".join(begun)
    st.markdown(f":small[{count} of {len(course)} lessons done]", help=help)


def _machine_badge() -> None:
    """Draw the best device; a click shows all devices and their software versions."""
    machine = engine().machine()
    st.space("small")
    if machine is None:
        st.badge("Loading torch", icon=":material/hourglass:", color="gray")
        return
    best = machine.devices[0]
    color = device_color(best.backend)
    name = f":{color}[**{best.backend}** · {best.device_name}]"
    if several := hosts.several():
        name += f" · {len(several)} machines"
    with st.popover(name, icon=":material/memory:", wrap=True):
        st.markdown(
            "Unless a page says otherwise, its figures were measured on this machine:"
        )
        for device in machine.devices:
            st.markdown(f"- {format.provenance(device)}, {device.system}")
        if several:
            st.markdown("Training runs go to whichever of these machines is free:")
            hosts.table()


def _live() -> None:
    """Draw links to the pages of this visitor's jobs, and keep the page up to date.

    The page is redrawn when the open class, or what its wall shows, changes. After a
    restart of the server, only a page with a fragment asks for itself again
    (streamlit/streamlit#11890), and is counted: so every page has this one.
    """
    ids = [job.id for job in engine().going_on(visitor())]
    before = spoilers.on_wall()
    follows_wall = spoilers.is_student()

    @st.fragment
    def live() -> None:
        if spoilers.on_wall() != before:
            st.rerun()
        least = polling.shared(LIVE_SECONDS)
        intervals = [least if follows_wall else HOUR]
        for job_id in ids:
            job = None
            with suppress(StoreError):
                job = engine().job(job_id)
            seconds = (polling.interval(job) or HOUR) if job else least
            intervals.append(max(least, seconds))
            lesson = course.of_address(job.address) if job else None
            if job and lesson:
                icon = JOB_ICONS.get(job.status, ":material/info:")
                link(
                    lesson,
                    f"{lesson.title}: {_progress(job)}",
                    icon=icon if job.ended else "spinner",
                    query_params={"run": job.id} if job.address == runs.RUN else None,
                )
        polling.every(min(intervals))

    live()


def _progress(job: Job) -> str:
    if job.place:
        return f"{job.place - 1} ahead" if job.place > 1 else "next"
    if job.status == "running" and job.address == runs.RUN:
        return f"{job.progress.share:.0%}"
    return format.NAMES.get(job.status, job.status) if job.ended else "running"
