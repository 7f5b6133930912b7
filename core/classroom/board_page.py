"""The board that a class's members see: chart, quest, queue, and guesses."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from core.classroom import guesses_page as guesses
from core.classroom import standings_chart as axes
from core.classroom import standings_page
from core.classroom.rules import WITHIN, Rules
from core.classroom.standings_chart import Point
from core.classroom.standings_page import Standings, label, neighbors, owner
from core.jobs.job import Job
from core.store.tables import RunSummary
from core.ui import figures, format, runs
from core.ui.charts import TALL
from core.ui.course import HOME, link, page
from core.ui.polling import PATIENT_SECONDS
from core.ui.server import engine, room, visitor
from to_device.errors import ExplainedError
from to_device.words import Words

words = Words(__file__)

MOST_WAITING = 5  # waiting jobs in the list; further jobs are only counted


def draw() -> None:
    def board(standings: Standings) -> None:
        has_runs = standings.best or standings.hidden
        if standings.classroom.is_open and (runs.are_hidden() or not has_runs):
            # There is neither a chart nor a quest to draw, or it's too early to see it.
            _first_step()
            _queue(standings)
            guesses.draw(standings.guesses)
            return
        with st.container(key="board"):
            left, right = st.columns([6, 4], gap="medium")
        with left:
            first = leader(standings)
            text = headline(standings)
            st.markdown(f"**{first}** {text}" if first else text)
            chart(standings)
            st.caption(words("board.caption"))
        with right:
            _quest(standings)
            if standings.classroom.is_open:
                _queue(standings)
        guesses.draw(standings.guesses)

    live(board)


def _first_step() -> None:
    """Draw the way to Home; a phone hides the sidebar with Home's link."""
    if runs.count(visitor()):
        link(HOME, "Train a model")
    else:
        icon = ":material/play_arrow:"
        if st.button("Train a model", type="primary", icon=icon, key="first_step"):
            st.switch_page(HOME.file)


def live(draw: Callable[[Standings], None], seconds: float = PATIENT_SECONDS) -> None:
    """Call `draw` with the newest standings, again and again after so many seconds.

    Rerun the whole page if the class opens or closes, or if another class opens.
    """

    def state() -> tuple[str, bool] | None:
        classroom = room().board_for(visitor())
        return (classroom.id, classroom.is_open) if classroom else None

    before = state()

    @st.fragment(run_every=seconds)
    def redraw() -> None:
        if before is None or state() != before:
            st.rerun()
        try:
            standings = standings_page.newest()
        except ExplainedError as error:
            st.warning(str(error), icon=":material/database_off:")
        else:
            draw(standings)

    redraw()


def leader(standings: Standings, named: bool = True) -> str:
    """A sentence on who leads the quest or has won it; "" until somebody is ranked.

    If not `named`, the sentence says "Somebody" instead of the name.
    """
    if not standings.order:
        return ""
    first, classroom = standings.order[0], standings.classroom
    if (count := standings.tied(first)) > 1:
        return f"{count} people share first place."
    verb = "leads" if classroom.is_open else "has won"
    who = standings.names[first.visitor] if named else "Somebody"
    return f"{who} {verb}: {classroom.rules.score(first)}."


def headline(standings: Standings) -> str:
    """Sentences on the class's quest, and on how many people are ranked in it."""
    rules, task = standings.classroom.rules, format.NAMES[standings.task]
    goal = words.table("quests")[rules.quest]
    goal = goal.format(target=f"{100 * rules.target:.4g}", task=task, within=WITHIN)
    count = len(standings.order)
    some = f"{count} of {len(standings.names)} {'is' if count == 1 else 'are'}"
    subject, so_far = (some, " so far") if count else ("Nobody is", " yet")
    return f"The quest: {goal}. {subject} ranked{so_far * standings.classroom.is_open}."


def points(standings: Standings) -> list[Point]:
    rules: Rules = standings.classroom.rules
    machine = engine().machine()
    backends = {d.device_name: d.backend for d in machine.devices} if machine else {}
    return [
        (
            standings.names[run.visitor],
            getattr(run, rules.cost),
            run.accuracy or 0.0,
            backends.get(run.device_name or "", "CPU"),
        )
        for run in standings.best
    ]


def chart(standings: Standings) -> None:
    """A point for each person's best run; empty axes until somebody has a run."""
    rules: Rules = standings.classroom.rules
    data_points, best, me = points(standings), standings.best, visitor()
    columns = ["who", "cost", "accuracy", "backend"]
    data = pd.DataFrame(data_points, columns=columns).assign(
        costs=[f"{run.steps:,} steps, {run.seconds:.1f} s" for run in best],
        mine=["You" if run.visitor == me else "" for run in best],
    )
    st.vega_lite_chart(
        data,
        axes.scatter(
            tuple(sorted(set(data["backend"]))) or ("CPU",),
            rules.limits,
            axes.ticks(data_points, rules.limits),
            f"Training {rules.cost}, logarithmic",
        ),
        height=TALL,
        key="class_scatter",
        alt=f"Test accuracy and {rules.cost} of {len(best)} people's best runs",
    )


def _quest(standings: Standings) -> None:
    """Draw a sentence on the visitor's place in the quest, and the runs around it."""
    rules: Rules = standings.classroom.rules
    me = visitor()
    own = next((run for run in standings.best if run.visitor == me), None)
    st.header("The quest", anchor=False)
    st.markdown(_place(standings, own))
    if me in standings.hidden:
        st.info(words("board.hidden"), icon=":material/visibility_off:")
    if standings.order:
        cost = rules.cost.capitalize()
        decimals = 0 if rules.cost == "steps" else 1
        figures.table(
            (
                (
                    f"{standings.place(run)}",
                    standings.names[run.visitor] + (" (you)" if run is own else ""),
                    f"{getattr(run, rules.cost):,.{decimals}f}",
                    f"{run.accuracy:.2%}",
                )
                for run in neighbors(standings.order, me)
            ),
            ("Place", "Who", cost, "Accuracy"),
            "Places in the quest",
            right=(cost, "Accuracy"),
        )
    st.markdown(standings.luck or words("board.no_luck"))
    if standings.classroom.is_open:
        # Home is where a visitor trains for the first time.
        link(page("Train") if own else HOME, "Train a model")


def _place(standings: Standings, own: RunSummary | None) -> str:
    """Say what place a visitor's best run has, or what it lacks to get one."""
    if own is None:
        task = format.NAMES[standings.task]
        return f"You don't have a run on {task} on the board yet."
    if own in standings.order:
        tied = "tied for " if standings.tied(own) > 1 else ""
        number = standings.place(own)
        return f"You are {tied}**number {number}** of {len(standings.order)}."
    rules = standings.classroom.rules
    text = f"Your best run: **{rules.score(own)}**."
    if not standings.classroom.is_open:
        return text
    if rules.quest == "accuracy":
        return f"{text} {(own.seconds or 0) - WITHIN:.1f} s too long."
    return f"{text} {(rules.target - (own.accuracy or 0)) * 100:.2f} points to go."


def _queue(standings: Standings) -> None:
    st.header("Right now", anchor=False)
    names = sorted(standings.names[who] for who in standings.here)
    count = f"{len(names)} of {len(standings.names)} here"
    with st.popover(count, icon=":material/groups:", type="tertiary"):
        st.markdown("\n".join(f"- {name}" for name in names) or "Nobody.")
    st.markdown("  \n".join(queue_lines(standings)))


def queue_lines(standings: Standings, on_wall: bool = False) -> list[str]:
    """Lines on the running jobs, the first waiting jobs, and the visitor's own job.

    With `on_wall`, the lines are for the projector: without icons and without "You".
    """
    me = None if on_wall else visitor()
    icons = "hourglass_top", "play_arrow", "pause"
    wait, play, pause = ("" if on_wall else f":material/{icon}: " for icon in icons)
    anonymous = on_wall and standings.classroom.rules.anonymous

    def line(job: Job) -> str:
        who = f"{'Somebody' if anonymous else owner(job, standings.names)} is"
        who = "**You** are" if job.owner == me else who
        is_run, subject = job.address == runs.RUN, label(job)
        if job.place:
            task = "train" if is_run else f"measure on {subject}"
            return f"{wait}{job.place}. {who} waiting to {task}"
        task = f"measuring on {subject}"
        if is_run:
            share = f", {runs.view(job).share:.0%}" if job.status == "running" else ""
            task = f"training: {subject}{share}"
        return f"{play}{who} {task}"

    queue = standings.queue
    listed = [job for job in queue if job.place <= MOST_WAITING or job.owner == me]
    rest = len(queue) - len(listed)
    # If only one job is left out, its line needs no more room than "and 1 more".
    lines = [line(job) for job in (listed if rest > 1 else queue)]
    lines += [f"and {rest} more"] * (rest > 1)
    if engine().paused:
        why = (
            "Your teacher paused the queue, so these runs wait."
            if queue
            else "No run can start yet: a teacher paused the queue."
        )
        lines.insert(0, f"{pause}{why}")
    return lines or ["Nothing is training right now."]
