"""A page to print at the end: what the visitor built, guessed, and measured."""

from collections.abc import Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from core.home import first_run_page as first_run
from core.lessons.speed import climb_result, ladder_page
from core.runs import listing
from core.ui import (
    answers,
    controls,
    format,
    last_measurement,
    paper,
    practice,
    runs,
    spoilers,
)
from core.ui.course import LESSONS, of_address
from core.ui.guess import JUST_SHOW, may_see
from core.ui.lab import Lab
from core.ui.server import engine, visitor
from to_device.words import Words

words = Words(__file__)


def draw() -> None:
    """Draw the download if the visitor has trained a model or answered a question."""
    if not (runs.newest(visitor()) or answers.of_visitor()):
        return
    st.header("Take it along", anchor="take-it-along")
    st.markdown(words("keepsake"))
    # The file is made in another thread, which doesn't know the visitor.
    write = partial(page, visitor(), answers.of_visitor())
    icon = ":material/print:"
    controls.download("My page (HTML)", write, "to-device.html", "keepsake", icon=icon)


def page(who: str, my_answers: Mapping[str, Any]) -> str:
    """The page of the visitor `who`, as HTML. The answers are keyed by question."""
    machine = engine().machine()
    solved = sum(lesson.solved(my_answers) for lesson in LESSONS)
    questions = [question for lesson in LESSONS for question in lesson.questions]
    first = sum(question.at_first(my_answers) for question in questions)
    rows = [_first_run(who, my_answers), _ladder(who, my_answers)]
    rows += [_row(lab, who, my_answers) for lab in _labs()]
    pages = ["Home", *(lesson.title for lesson in LESSONS)]
    findings = sorted(
        filter(None, rows), key=lambda row: pages.index(row["title"].split(":")[0])
    )
    return paper.template(Path(__file__).with_name("keepsake.html")).render(
        day=format.day(date.today()),
        machine=format.provenance(machine.devices[0]) if machine else "",
        lessons=[lesson.title for lesson in LESSONS if lesson.is_done(my_answers)],
        answered=f"{solved} of {len(questions)} questions, {first} on the first try",
        exercises=[
            name for name in practice.EXERCISES if practice.has_solved(name, my_answers)
        ],
        runs=[
            (
                f"{format.NAMES.get(run.model, run.model)}, {listing.label(run)}",
                listing.figure(run),
                format.duration(run.seconds) if run.seconds else "–",
            )
            for run in runs.stored_runs(who, status="finished")
        ],
        findings=findings,
    )


def _labs() -> list[Lab]:
    """All labs, by their titles."""
    labs = (kind() for kind in Lab.kinds)
    return sorted(labs, key=lambda lab: (lab.words.get("title", ""), lab.name))


def _row(lab: Lab, who: str, my_answers: Mapping[str, Any]) -> dict[str, str] | None:
    """A lab's finding, and the visitor's guess before it, as fields of the page.

    None if there is no finding, if the visitor neither guessed nor measured, or if the
    result is still hidden from this visitor.
    """
    job, machine = last_measurement.newest(lab.address), engine().machine()
    lesson = of_address(lab.address)
    if job is None or machine is None or lesson is None:
        return None
    question, result = lab.asks(machine, job.arguments), lab.gather(job)
    finding = lab.finding(result) if result else None
    answer = my_answers.get(question.key) if question else None
    is_guess = answer not in (None, JUST_SHOW)
    guess = question.say(answer) if question and is_guess else ""
    is_own = bool(guess) or job.owner == who
    if finding is None or not is_own or not may_see(job, who, my_answers):
        return None
    return {
        "title": f"{lesson.title}: {lab.words.get('title', '')}".removesuffix(": "),
        "question": question.question if question else "",
        "guess": guess,
        "finding": finding.sentence,
        "measured": last_measurement.sentence(job, who, on_paper=True),
    }


def _ladder(who: str, my_answers: Mapping[str, Any]) -> dict[str, str] | None:
    """What the ladder's best rung reached, like `_row`.

    None if a rung's result is still hidden from this visitor, or if the visitor neither
    guessed all the rungs nor climbed.
    """
    job = last_measurement.newest(ladder_page.PANEL.address)
    if job is None or job.value.speedup is None:
        return None
    measured = climb_result.measured(job.value.results)
    keys = [f"guess_{rung}" for rung in measured if rung != climb_result.TEXTBOOK]
    has_guessed = all(my_answers.get(key) in climb_result.GUESSES for key in keys)
    if not (has_guessed or job.owner == who) or not may_see(job, who, my_answers):
        return None
    headline, _, _ = climb_result.verdict(job.value).partition("\n\n")
    return {
        "title": "Speed: The ladder",
        "question": "",
        "guess": "",
        "finding": headline,
        "measured": last_measurement.sentence(job, who, on_paper=True),
    }


def _first_run(who: str, my_answers: Mapping[str, Any]) -> dict[str, str] | None:
    """What the first run on images reached, and the guess before it, like `_row`."""
    answer = my_answers.get(spoilers.FIRST_RUN)
    finished = runs.stored_runs(who, limit=None, status="finished", hidden=True)
    tested = [run for run in finished if run.accuracy is not None]
    if answer not in first_run.IMAGES or not tested:
        return None
    first = tested[-1]  # the newest run comes first
    share = 100 * (first.accuracy or 0.0)
    return {
        "title": "Home: your first run",
        "question": words("question").removeprefix("Your guess: "),
        "guess": answer,
        "finding": f"Your model classified {share:.0f} of 100 images correctly.",
        "measured": f"Trained {format.day(date.fromtimestamp(first.submitted))}, "
        f"on {first.device_name}.",
    }
