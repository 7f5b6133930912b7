"""A class's downloads (tables and a handout), and the day of its deletion."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from statistics import mode
from typing import Any

import streamlit as st

from core.classroom import guesses_page as guesses
from core.classroom import questions_page as questions
from core.classroom import standings_chart as axes
from core.classroom.room import Teacher
from core.classroom.rules import Rules
from core.classroom.sign_in_page import act
from core.classroom.standings_page import all_runs, bests
from core.classroom.teacher_page import sure
from core.runs import listing
from core.store import export
from core.store.tables import Class, RunSummary
from core.ui import controls, course, format, paper
from core.ui.guess import first_key
from core.ui.server import engine, room, store
from core.ui.source import body
from to_device.words import Words

words = Words(__file__)

SETTINGS = ("model", "batch_size", "epochs", "learning_rate", "schedule")


def draw(classroom: Class) -> None:
    st.header("Downloads")
    with st.container(horizontal=True):
        for label, write, ending, key, icon in (
            ("Runs (CSV)", table, "runs.csv", "class_csv", "download"),
            ("Answers (CSV)", answers, "answers.csv", "class_answers", "download"),
            ("Handout (HTML)", handout_page, "handout.html", "class_handout", "print"),
        ):
            name = f"{classroom.name.rstrip('.')} {date.today()} {ending}"
            icon = f":material/{icon}:"
            controls.download(label, partial(write, classroom), name, key, icon=icon)
    st.markdown(
        "The handout is one page with the class's own results. To "
        "print it, open it in a browser."
    )
    st.header("Delete the class")
    st.markdown(words("handout.deleted"))
    end = classroom.ends
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.date_input(
            "Delete the class on",
            datetime.fromtimestamp(end).date() if end else None,
            min_value=date.today() + timedelta(days=1),
            key=f"ends_{classroom.id}",
            on_change=act,
            args=(_set_end, classroom.id),
            width=200,
        )
        if st.button(
            "Delete the class now", icon=":material/delete:", key="delete_class"
        ):
            text = (
                "**{name}** will be deleted, along with {runs} and its list "
                "of {members}. Links to the runs will stop working, and you "
                "can't undo this. The members can continue without a class."
            ).format(
                name=classroom.name,
                members=format.counted(classroom.joined, "member"),
                runs=format.counted(len(all_runs(classroom)), "run"),
            )
            sure(text, "Delete", room().delete, classroom.id, engine().forget)


def table(classroom: Class) -> str:
    """CSV: a row for each run, with its student's name."""
    return export.runs_csv(all_runs(classroom), room().names(classroom.id))


def answers(classroom: Class) -> str:
    """CSV: a row for each guess, and for each answer to a lesson's question."""
    people = room().names(classroom.id)
    texts = {guess.key: guess.title for guess in guesses.GUESSES}
    of_lessons = [q for lesson in course.LESSONS for q in lesson.questions]
    texts |= {question.key: question.text for question in of_lessons}
    right = {question.key: question.right for question in of_lessons}
    known = {question.key: tuple(question.answers) for question in of_lessons}
    known |= {key: tuple(counting) for key, counting in guesses.choices().items()}
    firsts = {key: first_key(key) for key in texts}
    all_keys = [*texts, *firsts.values()]
    all_answers = store().answers.of_class(classroom.id, all_keys)
    rows = []
    for key, text in texts.items():
        for who, answer in all_answers[key].items():
            # A guess that was changed has its first answer under a key of its own.
            before = all_answers[firsts[key]].get(who, answer)
            tries = answer if isinstance(answer, list) else [before, answer]
            # A program may have stored something that no page offers.
            tries = [answer for answer in tries if answer in known[key]]
            if tries:
                first = tries[0] == right[key] if key in right else ""
                rows.append((people.get(who, ""), text, tries[0], tries[-1], first))
    return export.csv_text(
        ("student", "question", "first", "last", "first_right"), rows
    )


def handout_page(classroom: Class) -> str:
    return page(**handout(classroom))


def handout(classroom: Class) -> dict[str, Any]:
    """The fields of handout.html, except those that `page` computes."""
    people, rules = room().names(classroom.id), classroom.rules
    machine, code = engine().machine(), body("core.loops:train_epoch")
    runs = [run for run in all_runs(classroom) if run.visitor in people]
    # The handout ranks only runs on the task that most of the class's runs are on.
    task = mode(run.task for run in runs) if runs else ""
    best = (
        run for run in runs if run.task == task and not (run.hidden or run.withheld)
    )
    return {
        "title": classroom.name,
        "day": format.day(date.fromtimestamp(classroom.created)),
        "machine": format.provenance(machine.devices[0]) if machine else "",
        "people": len(people),
        "runs": len(runs),
        "rules": rules,
        "names": {} if rules.anonymous else people,
        "best": bests(best, people, rules),
        "hard": [score for score in questions.of_class(classroom) if score.mistaken],
        "guesses": _guesses(classroom),
        "code": code[code.index("for ") : code.index("\n\n    if ")],
    }


def _guesses(classroom: Class) -> list[tuple[str, str, str]]:
    """For each question that people guessed: its title, the guesses, and the answer.

    The question with the most guesses comes first.
    """
    tallies = guesses.of_class(classroom.id).items()
    rows = []
    for question, tally in sorted(tallies, key=lambda row: -row[1].answers.total()):
        if tally.answers.total():
            texts = "; ".join(f"{answer}: {n}" for answer, n in tally.answers.items())
            measured = "Not measured yet"
            if right := tally.right:
                measured = f"{' or '.join(right[0]) or 'Not clear'}: {right[1]}"
            rows.append((question.title, texts, measured))
    return rows


def page(best: Sequence[RunSummary], rules: Rules, **fields: Any) -> str:
    """One HTML page to print, which needs no other file and no network.

    `best` has each person's best run, the winner's first.
    """
    names = fields["names"]
    points = [
        (names.get(run.visitor, ""), getattr(run, rules.cost), run.accuracy or 0.0, "")
        for run in best
    ]
    chart = axes.scaled(points, (None, rules.target))
    chart["points"] = [*zip(points, axes.sides(chart), strict=True)]
    return paper.template(Path(__file__).with_name("handout.html")).render(
        **fields,
        rules=rules,
        winner=best[0] if best and rules.reached(best[0]) else None,
        best=sorted(best, key=lambda run: (-run.accuracy, run.seconds)),
        chart=chart,
        settings=lambda run: ", ".join(listing.setting(run, name) for name in SETTINGS),
    )


def _set_end(teacher: Teacher, class_id: str) -> None:
    day = st.session_state[f"ends_{class_id}"]
    at = datetime.combine(day, time()).timestamp() if day else None
    log = f"scheduled the deletion for {day}" if day else "canceled the deletion"
    room().change(teacher, class_id, log, ends=at)
