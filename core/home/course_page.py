"""The course map: a card for each lesson, with a figure measured on this machine."""

from collections.abc import Callable
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
from core.ui import answers, format, guess, last_measurement
from core.ui.course import LESSONS, link

STYLE = Path(__file__).with_name("course.css")


def by_lesson(records: Records) -> dict[str, str]:
    """The figures for the lessons' cards, keyed by the lesson's title.

    A lesson has none if nothing was measured, or if the visitor hasn't guessed yet.
    """
    by_title = {}
    if records.samples_per_second:
        by_title["Train"] = f"up to {records.samples_per_second:,.0f} samples/s"
    if records.best:
        by_title["Evaluate"] = f"{records.best.accuracy:.1%} right"
    says: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
        ("Model", transfers.TransfersLab.address, _of_transfers),
        ("Compare", race.RaceLab.address, _of_race),
        ("Speed", ladder.PANEL.address, _of_climb),
        ("Scale", cost.CostLab.address, _of_ranks),
    )
    for title, address, say in says:
        job = last_measurement.newest(address)
        if job is not None and (text := say(job.value)):
            by_title[title] = text
    return by_title


def _of_transfers(result: Transfers) -> str:
    if guess.of(transfers.GUESS) is None:
        return ""
    rates = [copy.bytes / median(copy.seconds) for copy in result.measured]
    return f"up to {format.size(max(rates))}/s copied" if rates else ""


def _of_race(result: Race) -> str:
    speedup = result.speedup()
    if speedup is None or guess.of(race.GUESS) is None:
        return ""
    if speedup.winner is None:
        return "too close to call"
    if speedup.note:
        return ""
    return f"{speedup.of_winner.by}× for {result.candidates[speedup.winner].name}"


def _of_climb(result: Climbed) -> str:
    gain = result.speedup
    if gain and gain.is_sure and all(map(rungs.is_revealed, result.results)):
        return f"{gain.by}× on the ladder"
    return ""


def _of_ranks(result: Cost) -> str:
    gain = result.speedup(cost.two(result))
    if not gain.is_sure or guess.of(cost.GUESS) is None:
        return ""
    where = f"{result.backend}, {result.environment.backend}"
    return f"{format.times(gain.ratio)}× on 2 ranks ({where})"


def draw_lessons(by_title: dict[str, str]) -> None:
    """Draw a card for each lesson; `by_title` has a figure for some of them."""
    given = answers.of_visitor()
    first = next((each for each in LESSONS if not each.is_done(given)), None)
    begun = any(each.solved(given) for each in LESSONS)
    st.html(STYLE)
    with st.grid(columns=3, min_column_width=150):
        for number, lesson in enumerate(LESSONS, 1):
            with st.container(
                border=True, height="stretch", gap="xsmall", key=f"lesson_{number}"
            ):
                check = " :green[:material/check:]" if lesson.is_done(given) else ""
                place = "Going further:" if lesson.further else f"{number}."
                link(lesson, f"**{place} {lesson.title}**{check}")
                st.markdown(lesson.asks)
                figure = by_title.get(lesson.title)
                line = f"{lesson.minutes} min" + (f" · **{figure}**" if figure else "")
                asked, solved = len(lesson.questions), lesson.solved(given)
                if 0 < solved < asked:
                    line += f" · {solved} of {asked} answered"
                if lesson is first:
                    where = f"{'Continue' if begun else 'Start'} here"
                    line += f" :gray-badge[:material/flag: {where}]"
                st.markdown(f":small[{line}]")
