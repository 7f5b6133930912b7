"""A page to print at the end: what the visitor built, guessed, and measured."""

from collections.abc import Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from core.runs import listing
from core.ui import answers, controls, format, last_measurement, paper, runs
from core.ui.course import LESSONS, of_address
from core.ui.guess import JUST_SHOW
from core.ui.lab import Lab, all_labs
from core.ui.server import engine, visitor
from core.words import Words

words = Words(__file__)


def draw() -> None:
    """Draw the download, once there is something to take along."""
    if not (runs.newest(visitor()) or answers.of_visitor()):
        return
    st.subheader("Take it along", anchor="take-it-along")
    st.markdown(words("keepsake"))
    # The file is made in another thread, which doesn't know the visitor.
    made = partial(page, visitor(), answers.of_visitor())
    icon = ":material/print:"
    controls.download("My page (HTML)", made, "to-device.html", "keepsake", icon=icon)


def page(who: str, given: Mapping[str, Any]) -> str:
    machine = engine().machine()
    solved = [lesson.solved(given) for lesson in LESSONS]
    asked = sum(len(lesson.questions) for lesson in LESSONS)
    first = [q for lesson in LESSONS for q in lesson.questions if q.at_first(given)]
    return paper.template(Path(__file__).with_name("keepsake.html")).render(
        day=format.day(date.today()),
        machine=format.provenance(machine.devices[0]) if machine else "",
        lessons=[lesson.title for lesson in LESSONS if lesson.is_done(given)],
        answered=f"{sum(solved)} of {asked} questions, {len(first)} on the first try",
        runs=[
            (
                f"{format.NAMES.get(run.model, run.model)}, {listing.label(run)}",
                listing.figure(run),
                format.duration(run.seconds) if run.seconds else "–",
            )
            for run in runs.stored_runs(who, status="finished")
        ],
        findings=[row for lab in all_labs() if (row := finding(lab, who, given))],
    )


def finding(lab: Lab, who: str, given: Mapping[str, Any]) -> dict[str, str] | None:
    """A lab's finding, and the visitor's guess before it, as fields of the page.

    None if there is no finding, or if the visitor neither guessed nor measured.
    """
    job, machine = last_measurement.newest(lab.address), engine().machine()
    lesson = of_address(lab.address)
    if job is None or machine is None or lesson is None:
        return None
    asked, result = lab.asks(machine, job.arguments), lab.gather(job)
    found = lab.finding(result) if result else None
    guessed = given.get(asked.key) if asked else None
    said = asked.say(guessed) if asked and guessed not in (None, JUST_SHOW) else ""
    if found is None or not (said or job.owner == who):
        return None
    return {
        "title": f"{lesson.title}: {lab.words.get('title', '')}".removesuffix(": "),
        "question": asked.question if asked else "",
        "guess": said,
        "found": found.sentence,
        "measured": last_measurement.sentence(job, who),
    }
