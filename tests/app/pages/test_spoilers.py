"""No page and no route gives an answer away that the class still has to guess."""

import json
import re
import struct
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from core.classroom import standings_page
from core.classroom.guesses_page import GUESSES
from core.classroom.rules import Rules
from core.home import first_run_page as first_run
from core.home import keepsake_page
from core.jobs.job import Job
from core.lessons.compare import race_page, your_gpu_page
from core.lessons.device.parallel_page import Parallel
from core.lessons.evaluate import evaluation_page
from core.lessons.speed import rungs_page
from core.registry import RUN
from core.runs import my_data_page
from core.store import export
from core.ui import answers, guess, server, spoilers
from core.ui.course import of_address
from tests.app import samples
from tests.app.pages.walk import (
    PAGES,
    TEACHER,
    all_labs,
    drawn,
    open_page,
    reversed_times,
)
from tests.app.store.made_up import CONFIG, HISTORY, RESULT, STARTED, queue

CLASS, EVALUATE = "pages/11_Class.py", "pages/5_Evaluate.py"
SHARE = 0.837  # of the images that a classmate's first run gets right
HIDDEN = re.compile(rb"(?<!\d)83\.70*(?!\d)|84 of 100")  # not part of a time in seconds
TABS = {lab.address: lab.words.get("title") for lab in all_labs()}
TABS[Parallel.address] = "Why a GPU is fast"  # a tab with several labs
RESULTS = {  # a result of each lab about which a class guesses
    "multiply_guess": samples.MULTIPLIED,
    race_page.GUESS: samples.RACE,
    "timing_guess": samples.TIMING,
    "guess_two_workers": samples.CLIMBED,
}


@pytest.fixture
def me(monkeypatch, somebody, room) -> str:
    """A student who has answered nothing yet, in a class of two."""
    own_answers: dict = {}
    for module in (answers, guess):
        monkeypatch.setattr(module, "of_visitor", lambda: own_answers)
    monday = room.create(TEACHER, "Monday", 30, Rules(fixed={"task": "sprites"}))
    room.start(TEACHER, monday.id)
    for who in ("amber", somebody):
        room.join(monday.code, who)
    server.store().writer.flush()
    return somebody


def finish_run(who: str) -> None:
    """Somebody's run ends, and gets SHARE of the images right."""
    run_id, store = f"{time.time_ns():x}"[-10:], server.store()
    epoch = replace(HISTORY[-1], test_accuracy=SHARE)
    result = replace(RESULT, history=(epoch,), test_correct=837, test_total=1000)
    assert queue(store, run_id, who, CONFIG)
    store.runs.begin(run_id)
    store.runs.started(run_id, STARTED)
    store.runs.epoch(run_id, epoch)
    store.runs.end(run_id, "finished", result)
    store.writer.flush()
    server.room().note_end(Job(run_id, RUN, (CONFIG,), "train", who, "finished"))
    standings_page.clear()


def everything(at: AppTest) -> bytes:
    """All that a page draws, as the browser gets it: texts, and the data of charts."""
    parts = (getattr(part, "proto", None) for part in (*at.main, *at.sidebar))
    return b"".join(proto.SerializeToString() for proto in parts if proto is not None)


def written(at: AppTest) -> bytes:
    """What a page writes, without its pictures."""
    return "".join(str(text.proto) for text in (*at.markdown, *at.metric)).encode()


def gives_away(text: bytes) -> bool:
    numbers = (struct.pack("<d", SHARE), struct.pack("<f", SHARE))
    return bool(HIDDEN.search(text)) or any(number in text for number in numbers)


def telling(pages: Iterable[str]) -> list[str]:
    return [page for page in pages if gives_away(everything(open_page(page)))]


@pytest.mark.usefixtures("me")
def test_no_page_tells_what_a_first_run_reaches_before_ones_own(room):
    finish_run("amber")
    assert telling(("home.py", *PAGES)) == []
    room.reveal(TEACHER, spoilers.FIRST_RUN, "Home", True)
    assert telling((CLASS, EVALUATE)) == [CLASS, EVALUATE]


def test_the_servers_own_run_is_hidden_from_who_is_about_to_join(me, room):
    finish_run("")
    room.forget(me)
    pages = ("home.py", "pages/3_Train.py", EVALUATE, "pages/10_Runs.py")
    assert telling(pages) == []
    room.close(TEACHER, room.open.id)
    assert EVALUATE in telling(pages)


def test_no_page_tells_it_while_the_wall_holds_it_back_even_after_ones_own_run(
    me, room
):
    finish_run("amber")
    finish_run(me)
    answers.of_visitor()[spoilers.FIRST_RUN] = "80 to 94"
    assert gives_away(everything(open_page(CLASS)))
    room.reveal(TEACHER, spoilers.FIRST_RUN, "Home", False)
    assert not gives_away(everything(open_page(CLASS)))
    assert not gives_away(everything(open_page(CLASS, projector="1")))
    room.reveal(TEACHER, spoilers.FIRST_RUN, "Home", True)
    assert gives_away(everything(open_page(CLASS)))
    assert gives_away(everything(open_page(CLASS, projector="1")))


@pytest.mark.parametrize("key", RESULTS)
@pytest.mark.usefixtures("me")
def test_nothing_depends_on_a_result_that_the_wall_holds_back(
    room, key, measured_before
):
    (question,) = (guess for guess in GUESSES if guess.key == key)
    value, address = RESULTS[key], question.address
    arguments = (samples.CLIMBED.climb, ()) if key.startswith("guess_") else ()
    done = Job(address, address, arguments, "train", status="finished")
    done = replace(done, stopped=time.time() - 7200)
    answers.of_visitor()[key] = next(iter(question.options or race_options()))
    opposite = reversed_times(value)
    if key.startswith("guess_"):  # what was guessed and what isn't guessed are shown
        others = {result.rung: result for result in value.results}
        changed = [
            result if result.rung == key.removeprefix("guess_") else others[result.rung]
            for result in opposite.results
        ]
        opposite = replace(value, results=tuple(changed))
    lab = open_page(of_address(address).file, tab=TABS.get(address, "The ladder"))
    pages = [lab, open_page(CLASS), open_page("home.py")]

    def draw(value: object) -> list[bytes]:
        measured_before[address] = replace(done, value=value)
        standings_page.clear()
        lab, board, home = (drawn(page.run()) for page in pages)
        return [everything(lab), everything(board), written(home)]

    room.reveal(TEACHER, key, "It", False)
    assert draw(value) == draw(opposite)
    room.reveal(TEACHER, key, "It", True)
    assert all(
        one != other
        for one, other in zip(draw(value)[:2], draw(opposite)[:2], strict=True)
    )


@pytest.mark.parametrize("key", [*RESULTS, "hardest_sprites"])
def test_downloads_hide_what_a_visitor_has_measured_and_not_guessed(
    me, key, measured_before
):
    """They show it once its page does, to who has pressed "Just show me", too."""
    store, of_runs = server.store(), key.startswith("hardest")
    titles = {question.key: question.address for question in GUESSES}
    address = titles.get(key, evaluation_page.EVALUATE)
    arguments = (CONFIG, samples.PAIR, 10, 3)  # those of a race, as far as they matter
    value = samples.TIMING if of_runs else RESULTS[key]
    opposite = reversed_times(value)
    shown = {key: guess.JUST_SHOW}
    if key.startswith("guess_"):
        shown = {rungs_page.SHOW_ALL: True}
    if of_runs:
        arguments = (b"", CONFIG)
    asked = {"machine": "here", "visitor": me, "provenance": {"arguments": arguments}}
    store.measurements.keep(address, value, **asked)
    done = Job("id", address, arguments, "train", me, "finished", stopped=1.0)

    def pages(answers: dict) -> list[str]:
        written = []
        for result in (value, opposite):
            measured_before[address] = replace(done, value=result)
            written.append(keepsake_page.page(me, answers))
        return written

    def exported() -> object:
        store.writer.flush()
        file = export.everything(store, me, partial(my_data_page.may_see, me))
        return json.loads(file)["measurements"][-1]["value"]

    one, other = pages({})
    assert one == other
    assert exported() is None
    for name, answer in shown.items():
        store.answers.keep(me, name, answer)
    one, other = pages(shown)
    assert of_runs or one != other
    assert exported() is not None


def test_a_browsers_result_is_hidden_until_its_guess(me):
    result = (your_gpu_page.RESULT, samples.BROWSER_GPU, ())
    assert not my_data_page.may_see(me, {}, *result)
    assert my_data_page.may_see(me, {"your_gpu_guess": "At no size"}, *result)
    assert my_data_page.may_see(me, {}, "first_run_guess", "80 to 94", ())


def race_options() -> list[str]:
    return [candidate.name for candidate in samples.RACE.candidates]


@pytest.mark.usefixtures("me")
def test_a_guess_is_final_in_a_class_once_its_result_is_visible(room, measured_before):
    """What comes before the result counts, and the first guess is kept with it."""
    (question,) = (guess for guess in GUESSES if guess.key == "timing_guess")
    key, (first, second, third) = question.key, question.options
    page, tab = of_address(question.address).file, TABS[question.address]
    at = open_page(page, tab=tab)
    for chosen in (first, second):
        at.radio(key=key).set_value(chosen).run()
    job = Job("id", question.address, (), "train", status="finished")
    measured_before[question.address] = replace(job, value=samples.TIMING, stopped=1.0)
    at.run()
    assert at.radio(key=key).disabled
    at.radio(key=key).proto.disabled = False  # for a program that sends it anyway
    at.radio(key=key).set_value(third).run()
    assert guess.of(key) == at.radio(key=key).value == second
    assert guess.of(guess.first_key(key)) == first
    room.close(TEACHER, room.open.id)
    at.run().radio(key=key).set_value(third).run()
    assert guess.of(key) == third


@pytest.mark.usefixtures("me")
@pytest.mark.parametrize("key", ["multiply_guess", race_page.GUESS, "timing_guess"])
def test_a_guess_stays_visible_beside_the_result_that_it_shows(key, measured_before):
    """In a class, the click that guesses also disables what was clicked."""
    (question,) = (guess for guess in GUESSES if guess.key == key)
    value, address = RESULTS[key], question.address
    job = Job("id", address, (), "train", status="finished")
    measured_before[address] = replace(job, value=value, stopped=1.0)
    at = open_page(of_address(address).file, tab=TABS[address])
    guessed = at.radio(key=key).options[1]
    at.radio(key=key).set_value(guessed).run()
    assert guess.of(key) == guessed
    assert at.radio(key=key).disabled
    assert at.radio(key=key).value == guessed
    assert f"show_{key}" not in {button.key for button in at.button}


@pytest.mark.usefixtures("me")
def test_a_guess_after_the_wall_has_shown_the_result_is_told_why(room, measured_before):
    (question,) = (guess for guess in GUESSES if guess.key == "timing_guess")
    key, address = question.key, question.address
    job = Job("id", address, (), "train", status="finished")
    measured_before[address] = replace(job, value=samples.TIMING, stopped=1.0)
    at = open_page(of_address(address).file, tab=TABS[address])
    assert not spoilers.is_too_late(key)
    before = spoilers.on_wall()
    room.reveal(TEACHER, key, question.title, True)
    assert spoilers.is_too_late(key)
    assert spoilers.on_wall() != before
    at.radio(key=key).set_value(question.options[0]).run()
    assert guess.of(key) is None
    assert key not in {radio.key for radio in at.radio}
    assert "no more guesses count" in " ".join(text.value for text in at.caption)


def test_home_says_which_seed_a_class_gives_to_every_run(me, room):
    finish_run(me)
    seed = 20_261
    assert f"{seed}" not in str(written(open_page("home.py")))
    rules = Rules(fixed={"task": "sprites", "seed": f"{seed}"})
    room.change(TEACHER, room.open.id, "fixed the seed", rules=rules)
    assert f"{seed}" in str(written(open_page("home.py")))


@pytest.mark.parametrize("is_guess", [True, False])
def test_a_tab_that_is_behind_does_not_change_a_final_guess(
    me, monkeypatch, measured_before, is_guess
):
    (question,) = (guess for guess in GUESSES if guess.key == "timing_guess")
    key, (first, second, _) = question.key, question.options
    monkeypatch.setattr(answers, "visitor_of_cookie", lambda: me)
    job = Job("id", question.address, (), "train", status="finished")
    measured_before[question.address] = replace(job, value=samples.TIMING, stopped=1.0)
    page, tab = of_address(question.address).file, TABS[question.address]
    at = open_page(page, tab=tab)
    server.store().answers.keep(me, key, first)  # in another tab
    late = at.radio(key=key).set_value(second) if is_guess else at.button(f"show_{key}")
    (late if is_guess else late.click()).run()
    assert server.store().answers.of(me)[key] == first


@pytest.mark.usefixtures("me")
def test_home_says_why_it_asks_for_no_guess_any_more():
    finish_run("amber")
    captions = " ".join(text.value for text in open_page("home.py").caption)
    assert first_run.words("too_late") in captions


@pytest.mark.usefixtures("me")
def test_the_guess_on_home_is_final_once_a_classmates_run_has_ended():
    at = open_page("home.py")
    for chosen in ("95 or more", "80 to 94"):
        at.radio(key=spoilers.FIRST_RUN).set_value(chosen).run()
    late = at.radio(key=spoilers.FIRST_RUN).set_value("50 to 79")
    finish_run("amber")
    late.run()
    assert guess.of(spoilers.FIRST_RUN) == "80 to 94"
    assert spoilers.FIRST_RUN not in {radio.key for radio in at.radio}
