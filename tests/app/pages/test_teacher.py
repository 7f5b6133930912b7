import csv
import re

import pytest
from streamlit.testing.v1 import AppTest

from core.classroom import guesses_page as guesses
from core.classroom import handout_page as handout
from core.classroom import sign_in_page as sign_in
from core.classroom import standings_page
from core.classroom.room import Room
from core.classroom.rules import Rules
from core.config import RunConfig
from core.store.tables import Class
from core.ui import clicks, course, runs, server
from core.ui.guess import CLOSE, first_key
from tests.app.pages.walk import TEACHER, open_page, open_tab, texts
from tests.app.store.made_up import finished
from to_device.errors import ExplainedError

PAGE = "pages/12_Teacher.py"


@pytest.fixture
def signed_in(room, monkeypatch) -> Room:
    """Whoever opens the page is a teacher of this room."""
    monkeypatch.setattr(sign_in, "teacher", lambda: TEACHER)
    return room


@pytest.fixture
def opened(signed_in) -> Class:
    monday = signed_in.create(TEACHER, "Monday", 30, Rules())
    signed_in.start(TEACHER, monday.id)
    return monday


def joined(opened: Class, who: str) -> str:
    """Join a visitor; returns their name."""
    name = server.room().join(opened.code, who).name
    server.store().writer.flush()
    return name


def press(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click().run()
    assert not at.exception
    return at


def log(opened: Class) -> str:
    server.store().writer.flush()
    return "\n".join(act.what for act in server.store().classes.acts(opened.id))


def test_without_a_password_the_page_says_how_to_switch_it_on(monkeypatch):
    monkeypatch.setattr(sign_in, "password", lambda: None)
    at = open_page(PAGE)
    assert "`TEACHER_PASSWORD`" in texts(at.markdown)
    assert not at.button
    assert not at.tabs
    assert not any(link.proto.label == "Teacher" for link in at.get("page_link"))


@pytest.mark.usefixtures("signed_in")
def test_a_class_is_made_opened_paused_and_closed_and_all_is_logged(room):
    at = open_page(PAGE)
    at.text_input(key="new_class_name").input("Monday")
    press(at, "make_class")
    (monday,) = server.store().classes.all()
    assert (monday.name, monday.size, monday.is_open) == ("Monday", 30, False)
    press(at, "open_class")
    assert room.open.id == monday.id
    assert f"code={monday.code}" in texts(at.code)
    press(at, "pause_queue")
    assert room.paused
    press(at, "resume_queue")
    press(press(at, "clear_queue"), "sure")
    press(press(at, "close_class"), "not_sure")
    assert room.open is not None
    room.reveal(TEACHER, "race_guess", "Compare", False)
    press(press(at, "close_class"), "sure")
    assert room.open is None
    assert room.revealed == ""
    actions = ("closed", "cleared", "resumed", "paused", "opened", "made the class")
    assert re.search(".*".join(actions), log(monday), re.DOTALL)  # the newest first
    assert "\n".join(open_tab(at, "Log").dataframe[0].value["What"]) == log(monday)
    at.text_input(key="new_class_name").input("!")
    press(at, "make_class")
    assert len(at.error) == 1
    assert at.text_input(key="new_class_name").value == "!"
    assert len(server.store().classes.all()) == 1


def test_rules_are_saved_and_hold_unless_they_are_invalid(opened, engine):
    at = open_tab(open_page(PAGE), "What they may do")

    def field(kind: str, name: str):
        fields = getattr(at, kind)
        return next(widget for widget in fields if widget.key.startswith(name))

    field("number_input", "epochs_").set_value(1)
    field("multiselect", "preset_").set_value(["task", "batch_size", "host"])
    at.run()
    assert field("selectbox", "value_host_").options == ["Any"]
    field("selectbox", "value_task_").set_value("sprites")
    field("number_input", "value_batch_size_").set_value(128)
    field("toggle", "fixed_task_").set_value(True)
    at.run()
    assert "Train?task=sprites&batch_size=128&host=" in texts(at.code)
    before = log(opened)
    press(at, "save_rules")
    rules = server.room().open.rules
    assert (rules.epochs, rules.fixed) == (1, {"task": "sprites"})
    assert len(log(opened)) > len(before)
    config = RunConfig(task="sprites", epochs=2)
    with pytest.raises(ExplainedError, match="1 epoch"):
        engine.submit(runs.RUN, config, owner="student")
    field("multiselect", "preset_").set_value(["task", "epochs"])
    at.run()
    field("number_input", "value_epochs_").set_value(3)
    field("toggle", "fixed_epochs_").set_value(True)
    press(at, "save_rules")
    assert len(at.error) == 1
    assert server.room().open.rules == rules
    open_tab(at, "Log")
    open_tab(at, "What they may do")
    assert field("number_input", "value_epochs_").value == 3  # nothing is lost
    assert "Rules not saved" in texts(at.markdown)


def test_a_teacher_sees_who_is_stuck_cancels_a_job_and_hides_a_run(
    opened, engine, monkeypatch
):
    monkeypatch.setattr(standings_page, "NEW_SECONDS", 0.0)
    store, room = server.store(), server.room()
    names = {who: joined(opened, who) for who in ("amber", "tidy")}
    finished(store, f"{opened.id} best", "amber")
    room.pause(TEACHER)
    job_id = engine.submit(runs.RUN, RunConfig(task="sprites"), owner="amber")
    store.writer.flush()
    at = open_page(PAGE)
    (question,) = (guess for guess in guesses.GUESSES if guess.key == "race_guess")
    assert question.title not in texts(at.markdown)
    on_home = next(iter(standings_page.newest().guesses.values()))
    assert on_home.missing == [*names.values()]
    monkeypatch.setattr(room, "has_results", True)
    standings_page.clear()
    on_home = next(iter(standings_page.newest().guesses.values()))
    assert on_home.missing == []  # nobody can guess any more
    store.answers.keep("tidy", "race_guess", CLOSE)
    store.writer.flush()
    standings_page.clear()  # otherwise, the page may show standings of two seconds ago
    (late,) = (row.value for row in at.run().markdown if question.title in row.value)
    assert names["amber"] in late
    assert names["tidy"] not in late
    assert "1 of 2" in texts(at.markdown)  # how many may need help
    assert f"**{names['tidy']}**" in texts(at.markdown)
    assert list(at.dataframe[0].value["Name"]) == [names["tidy"], names["amber"]]
    assert list(at.dataframe[0].value["Runs"]) == [0, 2]
    press(at, f"cancel_{job_id}")
    assert engine.job(job_id).status == "cancelled"
    press(at, "hide_run")
    (run,) = store.runs.find("amber", class_id=opened.id, status="finished")
    assert store.runs.hide([run.id], "amber", False)  # its owner can't undo it
    assert store.runs.find("amber", status="finished", withheld=False) == []
    press(at, "show_run")
    assert log(opened).count(names["amber"]) == 3  # canceled, hid, and showed
    job_id = engine.submit(runs.RUN, RunConfig(task="sprites"), owner="amber")
    press(at, "close_class")
    press(at, "sure")
    assert engine.job(job_id).status == "cancelled"


def test_a_second_class_is_opened_only_if_the_teacher_is_sure(opened):
    room = server.room()
    tuesday = room.create(TEACHER, "Tuesday", 30, Rules())
    at = open_page(PAGE)
    at.selectbox(key="teacher_class").set_value(tuesday.id).run()
    press(press(at, "open_class"), "not_sure")
    assert room.open.id == opened.id
    press(press(at, "open_class"), "sure")
    assert room.open.id == tuesday.id


def test_a_teacher_renames_and_removes_somebody(opened):
    joined(opened, "amber")
    at = open_page(PAGE)
    assert list(at.dataframe[0].value["Page"]) == ["away"]
    at.text_input(key="new_name").input("Zoë")
    press(at, "rename_person")
    assert server.room().member("amber").name == "Zoë"
    press(press(at, "remove"), "not_sure")
    assert server.room().member("amber")
    press(press(at, "remove"), "sure")
    assert server.room().members() == []


def test_a_class_leaves_a_table_and_a_handout_and_is_deleted(opened, monkeypatch):
    store = server.store()
    name = joined(opened, "amber")
    finished(store, f"{opened.id} kept", "amber")
    question = course.LESSONS[0].questions[0]
    wrong = next(answer for answer in question.answers if answer != question.right)
    store.answers.keep("amber", question.key, [wrong])
    store.answers.keep("amber", "race_guess", CLOSE)
    store.answers.keep("amber", first_key("race_guess"), "something else")
    store.writer.flush()
    known = {"race_guess": (CLOSE, "something else")}
    monkeypatch.setattr(guesses, "choices", lambda: known)
    (row,) = (
        row
        for row in csv.DictReader(handout.answers(opened).splitlines())
        if row["last"] == CLOSE
    )
    assert row["first"] == "something else"
    rows = list(csv.DictReader(handout.table(opened).splitlines()))
    assert [(row["student"], row["status"]) for row in rows] == [(name, "finished")]
    fields = handout.handout(opened)
    assert (fields["people"], fields["runs"]) == (1, 1)
    assert [fields["names"][run.visitor] for run in fields["best"]] == [name]
    assert fields["hard"][0].question == question
    assert fields["guesses"][0][1] == f"{CLOSE}: 1"
    assert "optimizer.step()" in fields["code"]
    assert name in handout.page(**fields)
    at = open_tab(open_page(PAGE), "Guesses")
    monkeypatch.setattr(guesses.Guess, "measured", lambda *_: ((CLOSE,), "3×"))
    steps = {
        "reveal_guess": (False, ""),
        "reveal_result": (False, "race_guess"),
        "hide_guess": (True, "race_guess"),
    }
    for key, is_shown in steps.items():
        assert (server.room().with_result, server.room().revealed) == is_shown
        if key == "reveal_result":  # the wrong question: off again, and still untold
            press(at, "hide_guess")
            assert (server.room().revealed, server.room().told) == ("", frozenset())
            press(at, "reveal_guess")
        press(at, key)
    assert server.room().revealed == ""
    assert "Compare" in log(opened)
    open_tab(at, "Questions")
    assert "0 of 1" in texts(at.markdown)
    open_tab(at, "Scripts")
    assert [list(table.value.index) for table in at.table][-1] == [name]
    open_tab(at, "Afterward")
    press(press(at, "delete_class"), "sure")
    assert store.classes.all() == []
    assert store.runs.get(f"{opened.id} kept") is None
    store.writer.flush()
    assert "Monday (runs: 1)" in store.classes.acts()[0].what


def test_after_signing_out_the_buttons_of_an_open_page_do_nothing(opened, monkeypatch):
    at = open_page(PAGE)
    before = server.store().classes.all(), log(opened)
    for key in ("close_class", "pause_queue", "clear_queue"):
        monkeypatch.setattr(sign_in, "teacher", lambda: TEACHER)
        at.run()
        if asks := key != "pause_queue":
            press(at, key)
        monkeypatch.setattr(sign_in, "teacher", lambda: None)
        press(at, "sure" if asks else key)
        assert not at.tabs
        assert len(at.toast) == 1
    assert (server.store().classes.all(), log(opened)) == before


def test_a_double_click_does_what_one_click_does(opened, monkeypatch):
    monkeypatch.setattr(clicks, "DOUBLE_CLICK_SECONDS", 60.0)
    monkeypatch.setattr(guesses.Guess, "measured", lambda *_: ((CLOSE,), "3×"))
    room = server.room()
    for first, second in (
        ("pause_queue", "resume_queue"),
        ("reveal_guess", "reveal_result"),
    ):
        at = open_tab(open_page(PAGE), "Guesses")
        press(press(at, first), second)
        assert (room.paused, room.with_result) == (True, False)
        assert room.revealed or first == "pause_queue"
    assert len(log(opened).splitlines()) == 4  # made, opened, paused, showed


def test_before_a_class_opens_the_room_lists_what_runs(signed_in, engine):
    signed_in.create(TEACHER, "Monday", 30, Rules())
    job_id = engine.submit(runs.RUN, RunConfig(task="sprites", epochs=50))
    at = open_page(PAGE)
    assert f"cancel_{job_id}" in {button.key for button in at.button}
    engine.cancel(job_id)
