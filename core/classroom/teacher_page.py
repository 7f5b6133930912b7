"""A teacher's classes: make, open and close a class, and see its students and log."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Literal
from urllib.parse import urlsplit

import segno
import streamlit as st

from core.classroom import guesses_page as guesses
from core.classroom import joining_page as joining
from core.classroom import rules_page as rules
from core.classroom import standings_page as standings
from core.classroom.names import LONGEST, LONGEST_OF_CLASS
from core.classroom.room import Teacher
from core.classroom.rules import Rules
from core.classroom.sign_in_page import act, button, sign_out
from core.jobs.engine import TRAIN_LANE
from core.jobs.job import Job
from core.runs import listing
from core.store.tables import Class, Member, RunSummary
from core.ui import figures, format
from core.ui.charts import LIGHT
from core.ui.polling import PATIENT_SECONDS
from core.ui.server import engine, open_pages, room, store, tell_error, tell_notice
from to_device.errors import ExplainedError
from to_device.words import Words

words = Words(__file__)

CHOSEN = "teacher_class"
MOST_JOBS = 8  # jobs in the list, each with a button; further jobs are only counted


def choose() -> Class | None:
    """Draw a choice of classes; returns the chosen class, or None without a class."""
    classes = {classroom.id: classroom for classroom in store().classes.all()}
    if st.session_state.get(CHOSEN) not in classes:
        classroom = room().open or next(iter(classes.values()), None)  # the newest
        st.session_state[CHOSEN] = classroom and classroom.id
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if classes:
            st.selectbox(
                "Class",
                list(classes),
                format_func=lambda class_id: classes[class_id].name,
                key=CHOSEN,
                width=300,
            )
            # Making a class changes the popover's key, and so closes the popover.
            key = f"new_after_{st.session_state[CHOSEN]}"
            with st.popover("New class", icon=":material/add:", key=key):
                _new()
        st.space("stretch")
        st.button("Sign out", key="teacher_sign_out", on_click=sign_out)
    if not classes:
        st.markdown("**There is no class yet.** Make a class, and then open it.")
        with st.container(border=True, width=400):
            _new("primary")
        return None
    if store().is_full_of_classes:
        st.warning(words("teacher.full"), icon=":material/database:")
    classroom = classes[st.session_state[CHOSEN]]
    _state(classroom)
    with st.container(horizontal=True, vertical_alignment="center"):
        _buttons(classroom)
    return classroom


@st.fragment(run_every=PATIENT_SECONDS)
def _state(classroom: Class) -> None:
    """Draw the state of the class as badges, live: a problem is orange or red."""
    badges = [":gray-badge[:material/door_front: Closed]"]
    now = None
    if classroom.is_open:
        with suppress(ExplainedError):  # the rest of the page says why
            now = standings.newest()
    if now is not None:
        waiting = sum(bool(job.place) for job in now.queue)
        color = "red" if now.stuck else "gray"
        badges = [
            ":green-badge[:material/door_open: Open]",
            f":gray-badge[{len(now.here)} of {len(now.names)} here]",
            f":gray-badge[{waiting} waiting]",
            f":{color}-badge[{len(now.stuck)} stuck]",
        ]
    if now and room().paused:
        badges.insert(1, ":orange-badge[:material/pause: Queue paused]")
    if now and room().revealed:
        what = "Result" if room().with_result else "Guesses"
        badges.append(f":blue-badge[:material/cast: {what} on the wall]")
    if rules.are_unsaved(classroom):
        badges.append(":orange-badge[:material/edit: Rules not saved]")
    st.markdown(" ".join(badges))


def _new(type: Literal["primary", "secondary"] = "secondary") -> None:
    with st.form("new_class", border=False):
        st.text_input(
            "Name",
            key="new_class_name",
            max_chars=LONGEST_OF_CLASS,
            placeholder="Such as: Monday",
        )
        st.number_input("How many people may join", 1, 500, 30, key="new_class_size")
        tell_error("new_class_error")
        st.form_submit_button(
            "Make the class",
            key="make_class",
            type=type,
            on_click=act,
            args=(_make, st.session_state[CHOSEN]),
            kwargs={"at": "new_class_error"},
        )


def _make(teacher: Teacher, before: str | None) -> None:
    """Make a class, unless this button has made one since `before` was chosen."""
    if st.session_state[CHOSEN] != before:
        return
    name, size = st.session_state.new_class_name, st.session_state.new_class_size
    first_rules = Rules(quest="steps", own_seeds=True)
    st.session_state[CHOSEN] = room().create(teacher, name, size, first_rules).id


def _buttons(classroom: Class) -> None:
    """Draw the class's buttons; the button for the next step is the primary one."""
    if not classroom.is_open:
        label, key, icon = "Open the class", "open_class", "door_open"
        do = room().start, classroom.id
        if (other := room().open) is None:
            button(label, key, icon, *do, type="primary")
        elif st.button(label, key=key, icon=f":material/{icon}:"):
            sure(
                "Only one class can be open at a time. If you open this "
                f"class, **{other.name}** will be closed.",
                label,
                *do,
            )
        _how_to_join(classroom)
        return
    if room().paused:
        resume = "Resume the queue", "resume_queue", "play_arrow"
        button(*resume, room().pause, False, type="primary")
    else:
        button("Pause the queue", "pause_queue", "pause", room().pause, True)
    waiting = sum(bool(job.place) for job in standings.queue())
    clear = (
        "{jobs} in the queue will be canceled, and the people who "
        "are waiting will be notified. Runs that have already "
        "started will continue."
    ).format(jobs=format.counted(waiting, "job"))
    _how_to_join(classroom)
    st.space("stretch")
    with st.popover("More", icon=":material/more_horiz:"):
        asks = st.button(
            "Clear the queue", icon=":material/clear_all:", key="clear_queue"
        )
        closes = st.button(
            "Close the class", icon=":material/door_front:", key="close_class"
        )
    if asks:
        sure(clear, "Clear the queue", _clear)
    if closes:
        text = words("teacher.close", name=classroom.name)
        if waiting:
            text += f" {clear}"
        sure(text, "Close the class", _close, classroom.id)


def _how_to_join(classroom: Class) -> None:
    with st.popover("How to join", icon=":material/qr_code:"):
        if not classroom.is_open:
            st.markdown("The link works once the class is open.")
        st.code(link := joining.link_to(classroom), language=None, wrap_lines=True)
        st.markdown(f"Or open **Class** and type the code: **{classroom.code}**.")
        wall, icon = joining.address("Class", "projector=1"), ":material/cast:"
        st.link_button("Projector view", wall, icon=icon)
        if urlsplit(link).hostname in (*joining.LOCAL, None):
            st.warning(words("teacher.local"), icon=":material/wifi_off:")
        # Dark on light in both themes, since some phones can't read light on dark.
        svg = segno.make(link, error="m").svg_inline(
            scale=6, border=4, dark=LIGHT.text, light=LIGHT.page
        )
        st.image(svg, alt=f"A QR code that opens {link}", width=220)


@st.dialog("Are you sure?")
def sure(text: str, label: str, do: Callable[..., object], *arguments: object) -> None:
    st.markdown(text)
    with st.container(horizontal=True):
        is_sure = button(label, "sure", "", do, *arguments, type="primary")
        if is_sure or st.button("Back", key="not_sure"):
            st.rerun()


def _clear(teacher: Teacher) -> None:
    cleared = engine().clear(
        "Your teacher cleared the queue. You can start the run again."
    )
    room().note(teacher, f"cleared the queue of {format.counted(cleared, 'job')}")


def _close(teacher: Teacher, class_id: str) -> None:
    """Close the class. Waiting runs would change its final board, so cancel them."""
    if any(job.place for job in standings.queue()):
        _clear(teacher)
    room().close(teacher, class_id)


def students(classroom: Class) -> None:
    """Draw who joined, who is stuck, and the queue, live in an open class."""
    before = room().names(classroom.id)

    @st.fragment(run_every=PATIENT_SECONDS)
    def live() -> None:
        names, jobs = room().names(classroom.id), standings.queue()
        if names != before:
            st.rerun()  # reruns the whole page: _person is outside this fragment
        tell_notice(toast=True)
        class_runs = standings.all_runs(classroom)
        busy, new = {job.owner for job in jobs}, standings.new(classroom.id)
        refused = room().refused() if classroom.is_open else {}
        why = standings.stuck(names, class_runs, busy, new, refused)
        left, right = st.columns([6, 5], gap="medium")
        with left:
            _headline(names, why)
            if classroom.is_open:
                _late(standings.newest().guesses)
            if names:
                _table(classroom.rules, names, why, class_runs)
        with right:
            # Before a class, the app's own measurements and the teacher's are in it.
            if classroom.is_open or jobs:
                _queue(jobs, names)
            _hiding(class_runs, names)

    live()
    # This is not in the fragment, because each redraw would close the dialog.
    if members := room().members(classroom.id):
        _person(members)


def _person(members: Sequence[Member]) -> None:
    by_id = {member.visitor: member for member in members}
    with st.expander("Rename or remove somebody", icon=":material/person:"):
        names = {visitor: member.name for visitor, member in by_id.items()}
        who = _choice("Person", names, "teacher_person")
        st.text_input("New name", key="new_name", max_chars=LONGEST)
        tell_error("new_name_error")
        with st.container(horizontal=True):
            rename = "Rename", "rename_person", "edit", _rename, by_id[who]
            button(*rename, at="new_name_error")
            remove = st.button("Remove", icon=":material/person_remove:", key="remove")
    if remove:
        text = (
            f"**{by_id[who].name}** will be removed from the class and "
            "its board, but won't lose any runs. Anyone who knows the "
            "code can join again, under a new name."
        )
        sure(text, "Remove", room().remove, by_id[who])


def _choice(label: str, names: Mapping[str, str], key: str) -> str:
    if (chosen := st.session_state.get(key)) in names:
        # Setting the value tells the browser a renamed option's new name. Otherwise,
        # the browser would send the old name, which would choose the first option.
        st.session_state[key] = chosen
    return st.selectbox(label, list(names), format_func=names.__getitem__, key=key)


def _rename(teacher: Teacher, member: Member) -> None:
    room().rename_for(teacher, member, st.session_state.new_name)
    st.session_state.new_name = ""


def _headline(names: Mapping[str, str], why: Mapping[str, str]) -> None:
    if not names:
        st.markdown(
            "**Nobody has joined yet.** The link is under **How to join**, above."
        )
    elif not why:
        st.markdown(f"**{len(names)} have joined. Nobody is stuck.**")
    else:
        st.markdown(f"**{len(why)} of {len(names)} may need your help.**")
        by_reason: dict[str, list[str]] = {}
        for who, reason in why.items():
            by_reason.setdefault(reason, []).append(names[who])
        figures.bullets(
            f"**{', '.join(people)}**: {reason}" for reason, people in by_reason.items()
        )


def _late(tallies: guesses.Tallies) -> None:
    """Name who lacks the last guess that at least half of the class made."""
    made = [(q, t) for q, t in tallies.items() if 2 * t.answers.total() >= t.members]
    if made and (missing := made[-1][1].missing):
        late = words("guesses.missing", names=", ".join(missing))
        st.markdown(f"{late} ({made[-1][0].title})")


def _table(
    class_rules: Rules,
    names: Mapping[str, str],
    why: Mapping[str, str],
    class_runs: Sequence[RunSummary],
) -> None:
    """Draw a row for each member, first the members in `why`, who are stuck."""
    count = Counter(run.visitor for run in class_runs)
    best = standings.bests(class_runs, names, class_rules)
    scores = {run.visitor: class_rules.score(run) for run in best}
    pages = open_pages()
    figures.table(
        (
            (names[who], pages.get(who, "away"), count[who], scores.get(who, ""))
            for who in sorted(names, key=lambda who: who not in why)
        ),
        ("Name", "Page", "Runs", "Best run"),
        alt="Each member's current page, number of runs, and best run",
        # Streamlit measures a column only once, often before there are runs in it.
        column_config={"Best run": st.column_config.TextColumn(width=170)},
    )


def _queue(jobs: Sequence[Job], names: Mapping[str, str]) -> None:
    own = [job for job in jobs if job.owner]
    waiting = sum(bool(job.place) for job in own)
    counts = f"**{len(own) - waiting} running, {waiting} waiting**"
    aside = "besides the app's own measurement, which gives way"
    st.markdown(f"{counts} {aside}" if len(own) < len(jobs) else counts)
    _beside(names)
    rest = len(jobs) - MOST_JOBS
    for job in jobs if rest == 1 else jobs[:MOST_JOBS]:
        who = standings.owner(job, names)
        place = f"{job.place}." if job.place else ":material/play_arrow:"
        left, right = st.columns([7, 3], vertical_alignment="center")
        left.markdown(f"{place} {who}: {standings.label(job)}")
        with right:
            cancel = "Cancel", f"cancel_{job.id}", "stop", _cancel
            button(*cancel, job.id, who, type="tertiary")
    if rest > 1:
        st.caption(f"And {rest} more.")


def _beside(names: Mapping[str, str]) -> None:
    """Tell who waits for a mistake or the like: these have a line of their own."""
    others = [job for job in engine().going_on() if job.lane != TRAIN_LANE]
    waiting = [names[job.owner] for job in others if job.place and job.owner in names]
    if waiting:
        st.caption(
            f"Waiting in the line of mistakes and the like: {', '.join(waiting)}."
        )


def _cancel(teacher: Teacher, job_id: str, who: str) -> None:
    job = engine().job(job_id)
    if job is None or job.ended:
        return
    engine().cancel(job_id, "Your teacher canceled this job. You can start it again.")
    room().note(teacher, f"canceled a job by {who}")


def _hiding(class_runs: Sequence[RunSummary], names: Mapping[str, str]) -> None:
    finished = {run.id: run for run in class_runs if run.status == "finished"}
    if not finished:
        return

    def describe(run: RunSummary) -> str:
        who = names.get(run.visitor or "", "Somebody who has left")
        return f"{who} with {listing.figure(run)}, {listing.label(run)}"

    with st.expander("Hide a run", icon=":material/visibility_off:"):
        st.markdown(words("teacher.hide"))
        texts = {
            run_id: describe(run) + (" (hidden)" if run.withheld else "")
            for run_id, run in finished.items()
        }
        run = finished[_choice("Run", texts, "teacher_run")]
        label, key = "Hide this run", "hide_run"
        if run.withheld:
            label, key = "Show this run again", "show_run"
        button(label, key, "", _hide, run, describe(run))


def _hide(teacher: Teacher, run: RunSummary, description: str) -> None:
    store().runs.withhold(run.id, run.visitor or "", not run.withheld)
    verb = "showed" if run.withheld else "hid"
    room().note(teacher, f"{verb} a run by {description}")


def log(classroom: Class) -> None:
    """Draw what teachers did in this class or in all classes, newest first."""
    all_classes = st.toggle("Show all classes, even deleted ones", key="log_of_all")
    figures.table(
        [
            (f"{datetime.fromtimestamp(row.at):%Y-%m-%d %H:%M:%S}", row.who, row.what)
            for row in store().classes.acts(None if all_classes else classroom.id)
        ],
        (f"When ({datetime.now().astimezone():%Z})", "Who", "What"),
        alt="The log of what teachers did, newest first",
    )
