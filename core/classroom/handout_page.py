"""Downloads of a class, its table and its hand-out; and the day of its deletion."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import cache, partial
from math import ceil, floor, log10
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape

from core.classroom import guesses_page as guesses
from core.classroom import questions_page as questions
from core.classroom.room import Teacher
from core.classroom.sign_in_page import act, button
from core.classroom.standings_page import bests
from core.classroom.teacher_page import all_runs, names_of
from core.runs import listing
from core.store import export
from core.store.tables import Class, RunSummary
from core.ui import controls, format
from core.ui.server import engine, room, store
from core.ui.source import body
from core.words import Words

words = Words(__file__)

LOOP = "core.loops:train_epoch"
SETTINGS = ("model", "batch_size", "epochs")  # a run's settings on the hand-out
LEFT, RIGHT, TOP, BOTTOM = 38, 346, 8, 166  # pixels of the chart in handout.html


class Point(NamedTuple):
    """A person's best run."""

    name: str  # empty: hidden
    what: str  # "CNN, batch 128"
    accuracy: float  # 0 to 1
    seconds: float


def draw(chosen: Class) -> None:
    st.subheader("Take along")
    with st.container(horizontal=True):
        controls.download(
            "Runs (CSV)", partial(table, chosen), "class.csv", "class_csv"
        )
        controls.download(
            "Hand-out (HTML)",
            lambda: page(**hand_out(chosen)),
            "hand-out.html",
            "class_hand_out",
            icon=":material/print:",
        )
    st.markdown(words("handout.what"))
    st.subheader("The end")
    st.markdown(words("handout.deleted"))
    day = datetime.fromtimestamp(chosen.ends).date() if chosen.ends else None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.date_input(
            "Delete it on",
            day,
            min_value=date.today() + timedelta(days=1),
            key=f"ends_{chosen.id}",
            on_change=act,
            args=(_set_end, chosen.id),
            width=200,
        )
        if st.button("Delete it now", icon=":material/delete:", key="delete_class"):
            _confirm(chosen)


def table(chosen: Class) -> str:
    """CSV: a row for each run, with its student's name."""
    names = names_of(store().classes.members(chosen.id))
    return export.runs_csv(all_runs(chosen), names)


def hand_out(chosen: Class) -> dict[str, Any]:
    """The fields of handout.html; its chart and order are `page`'s."""
    names = names_of(store().classes.members(chosen.id))
    machine, code, runs = engine().machine(), body(LOOP), all_runs(chosen)
    return {
        "title": chosen.name,
        "day": f"{datetime.fromtimestamp(chosen.created):%B %-d, %Y}",
        "machine": format.provenance(machine.devices[0]) if machine else "",
        "people": len(names),
        "runs": len(runs),
        "target": chosen.rules.target,
        "points": _points(chosen, runs, names),
        "hard": [score for score in questions.of_class(chosen) if score.mistaken],
        "guesses": _guesses(chosen),
        "code": code[code.index("for ") : code.index("\n\n    if ")],
    }


def _points(
    chosen: Class, runs: Sequence[RunSummary], names: Mapping[str, str]
) -> list[Point]:
    """Everybody's best run on the task that most have trained on."""
    by_id = {run.id: run for run in runs if not (run.hidden or run.withheld)}
    best = bests(by_id.values(), names, chosen.rules.target)
    most = Counter(run.task for run in best).most_common(1)
    return [
        Point(
            "" if chosen.rules.anonymous else run.name,
            ", ".join(listing.setting(by_id[run.run_id], name) for name in SETTINGS),
            run.accuracy,
            run.seconds,
        )
        for run in best
        if run.task == most[0][0]
    ]


def _guesses(chosen: Class) -> list[tuple[str, str, str]]:
    """Question, most frequent guess and measured answer; the most answered first."""
    given = store().answers.of_class(chosen.id, guesses.KEYS)
    answers = {g: guesses.counts(given[g.key].values()) for g in guesses.GUESSES}
    rows = []
    for guess, counts in sorted(answers.items(), key=lambda item: -item[1].total()):
        if counts:
            ((most, count),) = counts.most_common(1)
            right = guess.measured()
            measured = f"{right[0]}: {right[1]}" if right else "Not measured yet"
            most = f"{most} ({count} of {counts.total()})"
            rows.append((guess.title, most, measured))
    return rows


def page(points: Sequence[Point], target: float, **fields: Any) -> str:
    """One HTML page, which a browser prints: it needs no other file and no network."""
    best = sorted(points, key=lambda point: (-point.accuracy, point.seconds))
    reached = [point for point in best if point.accuracy >= target]
    return (
        environment()
        .get_template("handout.html")
        .render(
            **fields,
            target=target,
            best=best,
            fastest=min(reached, key=lambda point: point.seconds, default=None),
            chart=_chart(best, target) if best else None,
            percent=lambda share, digits=2: f"{share:.{digits}%}",
        )
    )


@cache
def environment() -> Environment:
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["marked"] = _marked
    return environment


def _marked(text: str) -> Markup:
    """Markdown's code spans and bold, and no more of it."""
    code = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", code))


def _chart(points: Sequence[Point], target: float) -> dict[str, Any]:
    """Pixels of a dot for each point, of the target, and of the ticks with labels."""
    seconds = [max(point.seconds, 0.01) for point in points]
    first, last = floor(log10(min(seconds))), ceil(log10(max(seconds) * 1.001))
    least = floor(min(target, *(point.accuracy for point in points)) * 20) / 20

    def x(value: float) -> float:
        return round(LEFT + (log10(value) - first) / (last - first) * (RIGHT - LEFT), 1)

    def y(value: float) -> float:
        return round(TOP + (1 - value) / (1 - least) * (BOTTOM - TOP), 1)

    steps = (1, 2, 5, 10) if last - first == 1 else (1,)
    ticks = {step * 10.0**n for n in range(first, last + 1) for step in steps}
    shares = [least + (1 - least) * part / 4 for part in range(5)]
    return {
        "across": [(x(tick), f"{tick:g}") for tick in ticks if tick <= 10.0**last],
        "down": [(y(share), f"{share:.0%}") for share in shares],
        "target": y(target),
        "dots": [(x(s), y(p.accuracy)) for s, p in zip(seconds, points, strict=True)],
    }


def _set_end(teacher: Teacher, class_id: str) -> None:
    day = st.session_state[f"ends_{class_id}"]
    at = datetime.combine(day, time()).timestamp() if day else None
    told = f"set the class to be deleted on {day}" if day else "took back its end"
    room().change(teacher, class_id, told, ends=at)


@st.dialog("Delete the class for good?")
def _confirm(chosen: Class) -> None:
    members = format.counted(chosen.joined, "member")
    runs = format.counted(len(all_runs(chosen)), "run")
    st.markdown(words("handout.sure", name=chosen.name, members=members, runs=runs))
    with st.container(horizontal=True):
        delete = "Delete", "delete_class_for_good", "", room().delete
        sure = button(*delete, chosen.id, engine().forget, type="primary")
        if sure or st.button("Keep", key="keep_class"):
            st.rerun()
