"""A class's downloads (tables and a handout), and the day of its deletion."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import partial
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from core.classroom import guesses_page as guesses
from core.classroom import questions_page as questions
from core.classroom import standings_chart as axes
from core.classroom.room import Teacher
from core.classroom.sign_in_page import act
from core.classroom.standings_page import bests
from core.classroom.teacher_page import all_runs, names_of, sure
from core.runs import listing
from core.store import export
from core.store.tables import Class, RunSummary
from core.ui import controls, course, format, paper
from core.ui.guess import SHOWN
from core.ui.server import engine, room, store
from core.ui.source import body
from core.words import Words

words = Words(__file__)

LOOP = "core.loops:train_epoch"
SETTINGS = ("model", "batch_size", "epochs", "learning_rate", "schedule")
LEFT, RIGHT, TOP, BOTTOM = 38, 346, 8, 166  # pixels of the chart in handout.html


class Point(NamedTuple):
    name: str  # empty: hidden
    what: str  # "CNN, batch 128"
    accuracy: float  # 0 to 1
    seconds: float
    steps: int
    place: str = ""  # "88.1% in 590 steps"; empty: no place in the quest


def draw(chosen: Class) -> None:
    st.subheader("Downloads")
    with st.container(horizontal=True):
        controls.download(
            "Runs (CSV)",
            partial(table, chosen),
            file_name(chosen, "runs", "csv"),
            "class_csv",
        )
        controls.download(
            "Answers (CSV)",
            partial(answers_table, chosen),
            file_name(chosen, "answers", "csv"),
            "class_answers",
        )
        controls.download(
            "Handout (HTML)",
            lambda: page(**handout(chosen)),
            file_name(chosen, "handout", "html"),
            "class_handout",
            icon=":material/print:",
        )
    st.markdown(words("handout.what"))
    st.subheader("Delete the class")
    st.markdown(words("handout.deleted"))
    day = datetime.fromtimestamp(chosen.ends).date() if chosen.ends else None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.date_input(
            "Delete the class on",
            day,
            min_value=date.today() + timedelta(days=1),
            key=f"ends_{chosen.id}",
            on_change=act,
            args=(_set_end, chosen.id),
            width=200,
        )
        if st.button(
            "Delete the class now", icon=":material/delete:", key="delete_class"
        ):
            members = format.counted(chosen.joined, "member")
            runs = format.counted(len(all_runs(chosen)), "run")
            text = words("handout.sure", name=chosen.name, members=members, runs=runs)
            sure(text, "Delete", room().delete, chosen.id, engine().forget)


def file_name(chosen: Class, content: str, kind: str) -> str:
    """Text such as "Room 2 2026-11-24 runs.csv"."""
    return f"{chosen.name.rstrip('.')} {date.today()} {content}.{kind}"


def table(chosen: Class) -> str:
    """CSV: a row for each run, with its student's name."""
    people = names_of(store().classes.members(chosen.id))
    return export.runs_csv(all_runs(chosen), people)


def answers_table(chosen: Class) -> str:
    """CSV: a row for each guess, and for each answer to a lesson's question."""
    people = names_of(store().classes.members(chosen.id))
    asked = {guess.key: guess.title for guess in guesses.GUESSES}
    of_lessons = [each for lesson in course.LESSONS for each in lesson.questions]
    asked |= {each.key: each.text for each in of_lessons}
    right = {each.key: each.right for each in of_lessons}
    given = store().answers.of_class(chosen.id, list(asked))
    rows = []
    for key, question in asked.items():
        for who, answer in given[key].items():
            tries = answer if isinstance(answer, list) else [answer]
            if tries and tries[0] != SHOWN:
                first = tries[0] == right[key] if key in right else ""
                rows.append((people.get(who, ""), question, tries[0], tries[-1], first))
    return export.csv_text(
        ("student", "question", "first", "last", "first_right"), rows
    )


def handout(chosen: Class) -> dict[str, Any]:
    """The fields of handout.html, except those that `page` computes."""
    people = names_of(store().classes.members(chosen.id))
    machine, code = engine().machine(), body(LOOP)
    runs = [run for run in all_runs(chosen) if run.visitor in people]
    return {
        "title": chosen.name,
        "day": format.day(date.fromtimestamp(chosen.created)),
        "machine": format.provenance(machine.devices[0]) if machine else "",
        "people": len(people),
        "runs": len(runs),
        "target": chosen.rules.target,
        "cost": chosen.rules.cost,
        "points": _points(chosen, runs, people),
        "hard": [score for score in questions.of_class(chosen) if score.mistaken],
        "guesses": _guesses(chosen),
        "code": code[code.index("for ") : code.index("\n\n    if ")],
    }


def _points(
    chosen: Class, runs: Sequence[RunSummary], people: Mapping[str, str]
) -> list[Point]:
    """Everybody's best run on the task that most people have trained on."""
    by_id = {run.id: run for run in runs if not (run.hidden or run.withheld)}
    best = bests(by_id.values(), people, chosen.rules)
    most = Counter(run.task for run in best).most_common(1)
    return [
        Point(
            "" if chosen.rules.anonymous else run.name,
            ", ".join(listing.setting(by_id[run.run_id], name) for name in SETTINGS),
            run.accuracy,
            run.seconds,
            run.steps,
            run.score(chosen.rules) if run.reached(chosen.rules) else "",
        )
        for run in best
        if run.task == most[0][0]
    ]


def _guesses(chosen: Class) -> list[tuple[str, str, str]]:
    """Question, guesses with counts, measured answer; the most answered first."""
    given = store().answers.of_class(chosen.id, guesses.KEYS)
    answers = {g: guesses.counts(given[g.key].values()) for g in guesses.GUESSES}
    rows = []
    for guess, counts in sorted(answers.items(), key=lambda item: -item[1].total()):
        if counts:
            right = guess.measured()
            measured = "Not measured yet"
            if right:
                measured = f"{' or '.join(right[0]) or 'Too close to tell'}: {right[1]}"
            all_of_them = "; ".join(
                f"{answer}: {n}" for answer, n in counts.most_common()
            )
            rows.append((guess.title, all_of_them, measured))
    return rows


def page(points: Sequence[Point], target: float, **fields: Any) -> str:
    """One HTML page to print, which needs no other file and no network."""
    best = sorted(points, key=lambda point: (-point.accuracy, point.seconds))
    return paper.template(Path(__file__).with_name("handout.html")).render(
        **fields,
        target=target,
        best=best,
        winner=next((point for point in points if point.place), None),
        chart=_chart(best, target, fields["cost"]) if best else None,
        percent=lambda share, digits=2: f"{share:.{digits}%}",
    )


def _chart(points: Sequence[Point], target: float, cost: str) -> dict[str, Any]:
    """The pixels at which the points, the target, and the labeled ticks are drawn."""
    costs = [max(getattr(point, cost), 1e-3) for point in points]
    across = axes.costs(costs)
    up = axes.shares([target, *(point.accuracy for point in points)])

    def x(value: float) -> float:
        logs = tuple(map(log, across))
        return round(axes.along(log(value), logs, LEFT, RIGHT), 1)

    def y(value: float) -> float:
        return round(axes.along(value, up, BOTTOM, TOP), 1)

    return {
        "across": [(x(tick), f"{tick:g}") for tick in across],
        "down": [(y(share), f"{100 * share:g}%") for share in up],
        "target": y(target),
        "dots": [(x(c), y(p.accuracy)) for c, p in zip(costs, points, strict=True)],
    }


def _set_end(teacher: Teacher, class_id: str) -> None:
    day = st.session_state[f"ends_{class_id}"]
    at = datetime.combine(day, time()).timestamp() if day else None
    told = f"scheduled the deletion for {day}" if day else "canceled the deletion"
    room().change(teacher, class_id, told, ends=at)
