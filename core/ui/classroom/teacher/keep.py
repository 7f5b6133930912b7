"""What remains of a class: its table, the hand-out, and the day when it is deleted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta

import streamlit as st

from core.classroom.board import bests
from core.classroom.handout import HandOut, Hard, Point, page
from core.classroom.room import Teacher
from core.store import export
from core.store.classes import Class
from core.store.results import RunSummary
from core.ui import course, downloads, format, guess
from core.ui.classroom import guesses
from core.ui.classroom.teacher import questions, students
from core.ui.classroom.teacher.acts import act
from core.ui.my_runs import listing
from core.ui.server import engine, room, store
from core.ui.source import body

LOOP = "core.loops:train_epoch"
TOLD = ("model", "batch_size", "epochs")  # of a run, on the hand-out


def draw(chosen: Class) -> None:
    """The files, then the end."""
    st.subheader("Take along")
    with st.container(horizontal=True):
        downloads.button(
            "Runs (CSV)",
            lambda: table(chosen),
            "class.csv",
            "class_csv",
            mime="text/csv",
        )
        downloads.button(
            "Hand-out (HTML)",
            lambda: page(hand_out(chosen)),
            "hand-out.html",
            "class_hand_out",
            mime="text/html",
            icon=":material/print:",
        )
    st.markdown(
        "The hand-out is one page, made from the class's own figures: open it in a "
        "browser and print it."
    )
    st.subheader("The end")
    _ends(chosen)


def table(chosen: Class) -> str:
    """A row a run, with the name of who began it."""
    names = students.names_of(store().classes.members(chosen.id))
    return export.runs_csv(students.all_runs(chosen), names)


def hand_out(chosen: Class) -> HandOut:
    """The class in figures."""
    names = students.names_of(store().classes.members(chosen.id))
    found = students.all_runs(chosen)
    given = store().answers.of_class(chosen.id, questions.KEYS)
    machine, code = engine().machine(), body(LOOP)
    return HandOut(
        title=chosen.name,
        day=f"{datetime.fromtimestamp(chosen.created):%B %-d, %Y}",
        machine=format.provenance(machine.devices[0]) if machine else "",
        people=len(names),
        runs=len(found),
        target=chosen.rules.target,
        points=_points(chosen, found, names),
        hard=_hard(questions.asked(course.LESSONS, given)),
        guesses=_guesses(chosen),
        loop=code[code.index("for ") : code.index("\n\n    if ")],
    )


def _points(
    chosen: Class, found: Sequence[RunSummary], names: Mapping[str, str]
) -> list[Point]:
    """Everybody's best, on the task that most have trained on."""
    runs = {each.id: each for each in found if not (each.hidden or each.withheld)}
    best = bests(runs.values(), names, chosen.rules.target)
    most = Counter(each.task for each in best).most_common(1)
    return [
        Point(
            "" if chosen.rules.anonymous else each.name,
            ", ".join(listing.setting(run, name) for name in TOLD),
            each.accuracy,
            each.seconds,
        )
        for each in best
        if (run := runs[each.run_id]) and each.task == most[0][0]
    ]


def _guesses(chosen: Class) -> list[tuple[str, str, str]]:
    """What most guessed, and what the machine said; the most answered first."""
    given = store().answers.of_class(chosen.id, guesses.KEYS)
    rows = []
    for asked in guesses.ASKED:
        answers = Counter(a for a in given[asked.key].values() if a != guess.SHOWN)
        if answers:
            ((most, count),) = answers.most_common(1)
            told = f"{most} ({count} of {answers.total()})"
            right = guesses.said(asked)
            machine = f"{right[0]}: {right[1]}" if right else "Not measured yet"
            rows.append((answers.total(), (asked.title, told, machine)))
    return [row for _, row in sorted(rows, key=lambda each: -each[0])]


def _hard(found: Sequence[questions.Asked]) -> list[Hard]:
    return [
        Hard(
            each.question.text,
            each.question.right,
            each.question.answers[each.question.right],
            f"{each.right} of {each.answered}",
        )
        for each in found
        if each.mistaken
    ]


def _ends(chosen: Class) -> None:
    """The date on which all of it is deleted, or now."""
    st.markdown(
        "A class is deleted with its members and the runs that they began in it. What "
        "they did elsewhere stays theirs."
    )
    day = datetime.fromtimestamp(chosen.ends).date() if chosen.ends else None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.date_input(
            "Delete it on",
            day,
            min_value=date.today() + timedelta(days=1),
            key=f"ends_{chosen.id}",
            on_change=_set_end,
            args=(chosen.id,),
            width=200,
        )
        if st.button("Delete it now", icon=":material/delete:", key="delete_class"):
            _confirm(chosen)


def _set_end(class_id: str) -> None:
    day = st.session_state[f"ends_{class_id}"]
    at = datetime.combine(day, time()).timestamp() if day else None
    told = f"set the class to be deleted on {day}" if day else "took back its end"

    def change(teacher: Teacher) -> None:
        room().change(teacher, class_id, told=told, ends=at)

    act(change)


@st.dialog("Delete the class for good?")
def _confirm(chosen: Class) -> None:
    count = len(students.all_runs(chosen))
    st.markdown(
        f"**{chosen.name}** with {format.counted(chosen.joined, 'member')} and "
        f"{format.counted(count, 'run')}. Links to them stop working, and this can't "
        "be undone. Whoever is in it can go on without a class."
    )
    with st.container(horizontal=True):
        sure = st.button(
            "Delete",
            type="primary",
            key="delete_class_for_good",
            on_click=act,
            args=(room().delete, chosen.id, engine().forget),
        )
        if sure or st.button("Keep", key="keep_class"):
            st.rerun()
