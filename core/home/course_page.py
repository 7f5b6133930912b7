"""The course map: a card for each lesson, with a figure measured on this machine."""

from pathlib import Path
from statistics import median
from typing import Any

import streamlit as st

from core.home.machine_page import Records
from core.lessons.compare import race_page as race
from core.lessons.compare.race_result import Race
from core.lessons.model import transfers_page as transfers
from core.lessons.model.model_result import Transfers
from core.lessons.scale import cost_page as cost
from core.lessons.scale.scale_result import Cost
from core.lessons.speed import ladder_page as ladder
from core.lessons.speed import rungs_page as rungs
from core.lessons.speed.climb_result import Climbed
from core.measure import rounding
from core.ui import answers, format, guess, last_measurement
from core.ui.course import LESSONS, link

STYLE = Path(__file__).with_name("course.css")


def by_lesson(records: Records) -> dict[str, str]:
    """The figures for the lessons' cards, keyed by the lesson's title.

    A lesson has no figure if nothing was measured, or the visitor hasn't guessed yet.
    """
    figures = {}
    if records.samples_per_second:
        figures["Train"] = f"up to {records.samples_per_second:,.0f} samples/s"
    if records.best:
        figures["Evaluate"] = f"{records.best.accuracy:.1%} right"
    copies: Transfers | None = _result(transfers.TransfersLab.address, transfers.GUESS)
    if copies and copies.measured:
        rates = [copy.bytes / median(copy.seconds) for copy in copies.measured]
        figures["Model"] = f"up to {format.size(max(rates))}/s copied"
    last_race: Race | None = _result(race.RaceLab.address, race.GUESS)
    if last_race and (speedup := last_race.speedup()):
        if speedup.winner is None:
            figures["Compare"] = "too close to call"
        elif not speedup.note:
            winner = last_race.candidates[speedup.winner].name
            figures["Compare"] = f"{speedup.of_winner.by}× for {winner}"
    climb: Climbed | None = _result(ladder.PANEL.address)
    is_revealed = climb is not None and all(map(rungs.is_revealed, climb.results))
    if climb and is_revealed and (gain := climb.speedup) and gain.is_sure:
        figures["Speed"] = f"{gain.by}× on the ladder"
    ranks: Cost | None = _result(cost.CostLab.address, cost.GUESS)
    if ranks and (gain := ranks.speedup(cost.two(ranks))).is_sure:
        backends = f"{ranks.backend}, {ranks.environment.backend}"
        figures["Scale"] = f"{rounding.times(gain.ratio)}× on 2 ranks ({backends})"
    return figures


def _result(address: str, guess_key: str = "") -> Any:
    """The newest result of the function at `address`.

    None if there is no result, or if the visitor hasn't made the guess with this key.
    """
    job = last_measurement.newest(address)
    if job is None or (guess_key and not guess.shows(guess_key)):
        return None
    return job.value


def draw_lessons(by_title: dict[str, str]) -> None:
    """Draw a card for each lesson; `by_title` has the figures for the cards."""
    my_answers = answers.of_visitor()
    done = [lesson for lesson in LESSONS if lesson.is_done(my_answers)]
    # Questions that weren't right at first come again later, so go on without them.
    left = [lesson for lesson in LESSONS if not lesson.is_answered(my_answers)]
    has_begun = any(lesson.solved(my_answers) for lesson in LESSONS)
    here = f":material/flag: {'Continue' if has_begun else 'Start'} here"
    st.html(STYLE)
    with st.grid(columns=3, min_column_width=150):
        for number, lesson in enumerate(LESSONS, 1):
            with st.container(
                border=True, height="stretch", gap="xsmall", key=f"lesson_{number}"
            ):
                check = " :green[:material/check:]" if lesson in done else ""
                place = "Going further:" if lesson.further else f"{number}."
                link(lesson, f"**{place} {lesson.title}**{check}")
                st.markdown(lesson.asks)
                figure = by_title.get(lesson.title)
                line = f"{lesson.minutes} min" + (f" · **{figure}**" if figure else "")
                count, solved = len(lesson.questions), lesson.solved(my_answers)
                if 0 < solved < count:
                    line += f" · {solved} of {count} answered"
                if lesson in left[:1]:
                    line += f" :gray-badge[{here}]"
                st.markdown(f":small[{line}]")
