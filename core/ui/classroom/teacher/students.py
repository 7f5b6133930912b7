"""The room at a glance: who is stuck, what runs and who waits, and what to do to it."""

from collections import Counter

import streamlit as st

from core.classroom.board import Best, Stuck, bests, stuck
from core.classroom.room import Teacher
from core.jobs.engine import PAUSED
from core.jobs.job import Job
from core.store.classes import Class, Member
from core.store.results import RunSummary
from core.ui import figures, runs
from core.ui.classroom import gathered
from core.ui.classroom.teacher.acts import act
from core.ui.looks import PATIENT_SECONDS
from core.ui.my_runs import listing
from core.ui.server import engine, room, store

MOST_SHOWN = 8  # jobs that wait, each with a button
OUTSIDE = "Somebody outside the class"


def all_runs(chosen: Class) -> list[RunSummary]:
    """The training runs of a class, the newest first, those that nobody sees too."""
    return store().runs.find(hidden=True, address=runs.RUN, class_id=chosen.id)


def draw(chosen: Class) -> None:
    """It looks again by itself."""

    @st.fragment(run_every=PATIENT_SECONDS if chosen.is_open else None)
    def live() -> None:
        members = store().classes.members(chosen.id)
        found = all_runs(chosen)
        jobs = [each for each in engine().going_on() if each.lane == PAUSED]
        names = names_of(members)
        held_up = stuck(members, found, {each.owner for each in jobs})
        left, right = st.columns([6, 5], gap="medium")
        with left:
            _headline(len(members), held_up)
            if members:
                best = bests(found, names, chosen.rules.target)
                _table(members, held_up, found, best)
        with right:
            if chosen.is_open:
                _queue(jobs, names)
            _wall(found, names)

    live()


def _headline(members: int, held_up: list[Stuck]) -> None:
    """Who may need help, and why; those with the same reason together."""
    if not members:
        st.markdown("**Nobody has joined yet.** *How to join* has the link.")
    elif not held_up:
        st.markdown(f"**{members} have joined. Nobody is stuck.**")
    else:
        st.markdown(f"**{len(held_up)} of {members} may need you.**")
        by_why: dict[str, list[str]] = {}
        for each in held_up:
            by_why.setdefault(each.why, []).append(each.member.name)
        figures.bullets(
            f"**{', '.join(names)}**: {why}" for why, names in by_why.items()
        )


def _table(
    members: list[Member],
    held_up: list[Stuck],
    found: list[RunSummary],
    best: list[Best],
) -> None:
    """A row each: who is stuck comes first."""
    waits = {each.member.visitor for each in held_up}
    runs_of = Counter(each.visitor for each in found)
    reached = {each.visitor: each for each in sorted(best, key=lambda b: b.accuracy)}
    rows = []
    for each in sorted(members, key=lambda each: each.visitor not in waits):
        top = reached.get(each.visitor)
        best_of = (f"{top.accuracy:.2%}", f"{top.seconds:.1f}") if top else ("", "")
        rows.append((each.name, runs_of[each.visitor], *best_of))
    right = st.column_config.TextColumn(alignment="right")
    figures.table(
        rows,
        ("Name", "Runs", "Best", "Seconds"),
        alt="Everybody in the class, with how many runs they have, and the best",
        column_config={"Best": right, "Seconds": right},
    )


def _queue(jobs: list[Job], names: dict[str, str]) -> None:
    """What runs and who waits, with the way to cancel each."""
    waiting = sum(bool(each.place) for each in jobs)
    st.markdown(f"**{len(jobs) - waiting} running, {waiting} waiting**")
    for job in sorted(jobs, key=lambda each: each.place)[:MOST_SHOWN]:
        who = names.get(job.owner, OUTSIDE if job.owner else "The app itself")
        text, button = st.columns([7, 3], vertical_alignment="center")
        place = f"{job.place}." if job.place else ":material/play_arrow:"
        text.markdown(f"{place} {who}: {gathered.what(job)}")
        button.button(
            "Cancel",
            key=f"cancel_{job.id}",
            type="tertiary",
            icon=":material/stop:",
            on_click=act,
            args=(_cancel, job.id, who),
        )
    if len(jobs) > MOST_SHOWN:
        st.caption(f"And {len(jobs) - MOST_SHOWN} more that wait.")


def _cancel(teacher: Teacher, job_id: str, who: str) -> None:
    engine().cancel(job_id)
    room().note(teacher, f"cancelled a job of {who}")


def _wall(found: list[RunSummary], names: dict[str, str]) -> None:
    """Keep a finished run from the class's charts, or show it again."""
    done = {each.id: each for each in found if each.status == "finished"}
    if not done:
        return

    def told(run_id: str) -> str:
        run = done[run_id]
        who = names.get(run.visitor or "", "Somebody who left")
        hidden = " (hidden)" if run.withheld else ""
        return f"{who}: {listing.figure(run)}, {listing.label(run)}{hidden}"

    with st.expander("Hide a run", icon=":material/visibility_off:"):
        st.markdown(
            "A run that is hidden is on no chart of the class. Its owner still has it, "
            "on their own Runs page."
        )
        chosen = st.selectbox("Run", list(done), format_func=told, key="teacher_run")
        run = done[chosen]
        st.button(
            "Show it again" if run.withheld else "Hide it",
            key="hide_run",
            on_click=act,
            args=(_hide, run, told(run.id)),
        )


def _hide(teacher: Teacher, run: RunSummary, told: str) -> None:
    store().runs.withhold(run.id, run.visitor or "", not run.withheld)
    room().note(teacher, f"{'showed' if run.withheld else 'hid'} the run of {told}")


def names_of(members: list[Member]) -> dict[str, str]:
    """What everybody is called, by their visitor."""
    return {each.visitor: each.name for each in members}
