"""The class's board for students: chart, quest, queue, and guesses."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from core.classroom import guesses_page as guesses
from core.classroom import standings_chart as axes
from core.classroom import standings_page
from core.classroom.rules import WITHIN, Rules
from core.classroom.standings_chart import Point
from core.classroom.standings_page import Standings, label, neighbors
from core.errors import ExplainedError
from core.jobs.job import Job
from core.ui import figures, format, runs
from core.ui.charts import TALL
from core.ui.course import HOME, link, page
from core.ui.polling import PATIENT_SECONDS
from core.ui.server import engine, room, visitor
from core.words import Words

words = Words(__file__)

ICONS = "hourglass_top", "play_arrow", "pause"
MOST_WAITING = 4  # jobs listed; the rest are only counted


def draw() -> None:
    def board(standings: Standings) -> None:
        if standings.opened.is_open and not (standings.best or standings.hidden):
            # Nobody has trained yet, so there is neither a chart nor a quest to draw.
            link(HOME, "Train a model")  # a phone hides the sidebar with Home's link
            _queue(standings)
            guesses.draw(standings.guesses)
            return
        with st.container(key="board"):
            left, right = st.columns([6, 4], gap="medium")
        with left:
            first = leader(standings)
            st.markdown(
                f"**{first}** {headline(standings)}" if first else headline(standings)
            )
            chart(standings)
            st.caption(words("board.caption"))
        with right:
            _quest(standings, visitor())
            if standings.opened.is_open:
                _queue(standings)
        guesses.draw(standings.guesses)

    live(board)


def live(draw: Callable[[Standings], None]) -> None:
    """Call `draw` every few seconds; redraw the whole page if the class changes."""
    before = room().board_for(visitor())

    @st.fragment(run_every=PATIENT_SECONDS)
    def look() -> None:
        now = room().board_for(visitor())
        if not (
            now and before and (now.id, now.is_open) == (before.id, before.is_open)
        ):
            st.rerun()
        try:
            standings = standings_page.newest()
        except ExplainedError as error:
            st.warning(str(error), icon=":material/database_off:")
        else:
            draw(standings)

    look()


def leader(standings: Standings, named: bool = True) -> str:
    """A sentence on who leads the quest or has won it; "" until somebody is ranked."""
    if not standings.order:
        return ""
    first, shown = standings.order[0], standings.opened
    if (firsts := standings.tied(first)) > 1:
        return f"{firsts} people share first place."
    verb = "leads" if shown.is_open else "has won"
    who = standings.names[first.visitor] if named else "Somebody"
    return f"{who} {verb}: {shown.rules.score(first)}."


def headline(standings: Standings) -> str:
    """Sentences on the class's quest, and on how many people are ranked in it."""
    rules, task = standings.opened.rules, format.NAMES[standings.task]
    goal = words.table("quests")[rules.quest]
    goal = goal.format(target=f"{100 * rules.target:.4g}", task=task, within=WITHIN)
    reached = len(standings.order)
    have = f"{reached} of {len(standings.names)} {'is' if reached == 1 else 'are'}"
    done, so_far = (have, " so far") if reached else ("Nobody is", " yet")
    return f"The quest: {goal}. {done} ranked{so_far * standings.opened.is_open}."


def points(standings: Standings) -> list[Point]:
    rules: Rules = standings.opened.rules
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
    rules: Rules = standings.opened.rules
    drawn, best, me = points(standings), standings.best, visitor()
    columns = ["who", "cost", "accuracy", "backend"]
    data = pd.DataFrame(drawn, columns=columns).assign(
        costs=[f"{run.steps:,} steps, {run.seconds:.1f} s" for run in best],
        mine=["You" if run.visitor == me else "" for run in best],
    )
    st.vega_lite_chart(
        data,
        axes.scatter(
            tuple(sorted(set(data["backend"]))) or ("CPU",),
            rules.limits,
            axes.ticks(drawn, rules.limits),
            f"Training {rules.cost}",
        ),
        height=TALL,
        key="class_scatter",
        alt=f"Test accuracy and {rules.cost} of {len(best)} people's best runs",
    )


def _quest(standings: Standings, me: str) -> None:
    """Draw the visitor's place in the quest and neighbors, or why there is no place."""
    rules: Rules = standings.opened.rules
    st.subheader("The quest", anchor=False)
    st.markdown(place(standings, me))
    if me in standings.hidden:
        st.info(words("board.hidden"), icon=":material/visibility_off:")
    if standings.order:
        cost = rules.cost.capitalize()
        decimals = 0 if rules.cost == "steps" else 1
        figures.table(
            (
                (
                    f"{standings.place(best)}",
                    standings.names[best.visitor] + " (you)" * (best.visitor == me),
                    f"{getattr(best, rules.cost):,.{decimals}f}",
                    f"{best.accuracy:.2%}",
                )
                for best in neighbors(standings.order, me)
            ),
            ("Place", "Who", cost, "Accuracy"),
            "Places in the quest",
            right=(cost, "Accuracy"),
        )
    st.markdown(standings.luck or words("board.no_luck"))
    if standings.opened.is_open:
        # Home is where a visitor trains for the first time.
        has_run = any(run.visitor == me for run in standings.best)
        link(page("Train") if has_run else HOME, "Train a model")


def place(standings: Standings, me: str) -> str:
    best = next((run for run in standings.best if run.visitor == me), None)
    if best in standings.order:
        number, of = standings.place(best), len(standings.order)
        tied = "tied for " * (standings.tied(best) > 1)
        return f"You are {tied}**number {number}** of {of}."
    if best is None:
        return f"You haven't trained on {format.NAMES[standings.task]} yet."
    rules = standings.opened.rules
    missing = f"{(rules.target - (best.accuracy or 0)) * 100:.1f} points"
    if rules.quest == "accuracy":
        missing = f"{(best.seconds or 0) - WITHIN:.1f} s"
    to_go = f" {missing} to go." * standings.opened.is_open
    return f"Your best run: **{rules.score(best)}**.{to_go}"


def _queue(standings: Standings) -> None:
    st.subheader("Right now", anchor=False)
    names = sorted(standings.names[who] for who in standings.here)
    count = f"{len(names)} of {len(standings.names)} here"
    with st.popover(count, icon=":material/groups:", type="tertiary"):
        st.markdown("\n".join(f"- {name}" for name in names) or "Nobody.")
    st.markdown("  \n".join(queue_lines(standings)))


def queue_lines(standings: Standings, on_wall: bool = False) -> list[str]:
    """Lines on the running jobs, the first waiting jobs, and the visitor's own job.

    With `on_wall`, the lines are for the projector: without icons and without "You".
    """
    me = "" if on_wall else visitor()
    wait, play, pause = ("" if on_wall else f":material/{icon}: " for icon in ICONS)
    anonymous = on_wall and standings.opened.rules.anonymous

    def line(job: Job) -> str:
        name = standings.names.get(job.owner, "A guest")
        who = f"{'Somebody' if anonymous else name} is"
        who = "**You** are" if job.owner == me else who
        is_run, what = job.address == runs.RUN, label(job)
        if job.place:
            task = "train" if is_run else f"measure on {what}"
            return f"{wait}{job.place}. {who} waiting to {task}"
        task = f"measuring on {what}"
        if is_run:
            share = f", {runs.view(job).share:.0%}" if job.status == "running" else ""
            task = f"training: {what}{share}"
        return f"{play}{who} {task}"

    queue = standings.queue
    listed = [job for job in queue if job.place <= MOST_WAITING or job.owner == me]
    lines = [line(job) for job in listed]
    if rest := len(queue) - len(listed):
        lines.append(f"and {rest} more")
    if engine().paused:
        why = words("board.paused") if queue else words("board.together")
        lines.insert(0, f"{pause}{why}")
    return lines or ["Nothing is training right now."]
