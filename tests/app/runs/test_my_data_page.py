import csv
import io
import json
import uuid
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from starlette.applications import Starlette
from streamlit.testing.v1 import AppTest

from core.runs import delete_my_data_page, my_data_page
from core.runs.delete_my_data_page import DELETED
from core.runs.my_data_page import BACK, WRONG
from core.serving import forms
from core.serving import visitor_cookie as visitor
from core.serving.forms import Failures, pop_sentence
from core.serving.visitor_cookie import COOKIE, read
from core.store.codec import StoreError
from core.store.store import Store
from core.store.visitors import new_code
from core.ui import frame
from tests.app.store.made_up import finished
from tests.app.ui.client import Client

SCRIPT = """
from core.runs import my_data_page
from core.ui import frame
frame.outcome("Runs")
my_data_page.draw()
"""
CODE, DELETE = "/visitor/code", "/visitor/delete"


@pytest.fixture
def store(tmp_path, monkeypatch) -> Store:
    store = Store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    for module in (my_data_page, delete_my_data_page):
        monkeypatch.setattr(module, "store", lambda: store)
    yield store
    store.close()


@pytest.fixture
def two_people(store) -> None:
    """A run that "me" hid, and one of another visitor."""
    finished(store, "mine", "me")
    store.runs.hide(["mine"], "me")
    store.runs.rename("mine", "me", "=1+1")
    finished(store, "theirs", "you")


away = Mock(side_effect=StoreError("Away."))


def draw(monkeypatch, who: str) -> AppTest:
    for module in (my_data_page, frame):
        monkeypatch.setattr(module, "visitor_of_cookie", lambda: who)
    at = AppTest.from_string(SCRIPT, default_timeout=60).run()
    assert not at.exception
    return at


def test_a_visitor_sees_their_code_and_once_what_came_of_a_form(store, monkeypatch):
    for who, sentence in (("me", BACK), ("new", WRONG)):
        forms.say(who, sentence)
        at = draw(monkeypatch, who)
        assert at.code[0].value == store.visitors.get(who).code
        (message,) = (*at.success, *at.warning)
        assert message.value == sentence.text
    assert len(at.run().warning) == 1
    assert not draw(monkeypatch, "new").warning


@pytest.mark.usefixtures("two_people")
def test_downloads_hold_all_data_of_the_visitor_and_no_others(store, monkeypatch):
    files = {}
    monkeypatch.setattr(
        my_data_page.controls,
        "download",
        lambda _label, data, name, *_, **__: files.update({name: data}),
    )
    store.measurements.keep("a:b", 1.5, machine="here", visitor="me")
    store.measurements.keep("a:b", 2.5, machine="here", visitor="you")
    store.writer.flush()
    draw(monkeypatch, "me")
    table = list(csv.DictReader(io.StringIO(files["my-runs.csv"]())))
    assert [(row["id"], row["name"]) for row in table] == [("mine", "'=1+1")]
    everything = json.loads(files["my-data.json"]())
    assert everything["visitor"]["id"] == "me"
    (run,) = everything["runs"]
    assert (len(run["curve"]), len(run["epochs"])) == (100, 2)
    assert [row["value"] for row in everything["measurements"]] == [1.5]


@pytest.mark.usefixtures("two_people")
def test_nothing_is_deleted_before_it_is_confirmed(store, monkeypatch):
    at = draw(monkeypatch, "me")
    at.button(key="delete_my_data").click().run()
    assert not at.exception
    assert at.markdown[-1].value == my_data_page.words("my_data.sure", runs="1 run")
    assert store.visitors.get("me")


def test_a_browser_without_cookies_has_no_code_and_no_data(monkeypatch):
    at = draw(monkeypatch, "")
    assert len(at.info) == 1
    assert not at.button


def test_the_section_shows_that_the_database_is_away(store, monkeypatch):
    monkeypatch.setattr(store.visitors, "get", away)
    assert draw(monkeypatch, "me").error[0].value == "Away."


# The routes


@pytest.fixture
def app(monkeypatch, store) -> Starlette:
    """Its state has the seconds that each try waited, and whose jobs were forgotten."""
    del store  # both modules have it
    app = Starlette(routes=[*my_data_page.ROUTES, *delete_my_data_page.ROUTES])
    app.state.waited, app.state.forgotten = [], []

    async def sleep(seconds: float) -> None:
        app.state.waited.append(seconds)

    engine = SimpleNamespace(forget=app.state.forgotten.append)
    monkeypatch.setattr(visitor, "_deleted", {})
    monkeypatch.setattr(delete_my_data_page, "engine", lambda: engine)
    monkeypatch.setattr(my_data_page, "failures", Failures())
    monkeypatch.setattr(my_data_page, "asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setenv("COOKIE_SECRET", "a secret that nobody knows, 32 characters")
    visitor.signer.cache_clear()
    yield app
    visitor.signer.cache_clear()


@pytest.fixture
def browsers(app, store) -> tuple[Client, Client]:
    """Two browsers of visitors whom the store knows."""
    ids = uuid.uuid4().hex, uuid.uuid4().hex
    for who in ids:
        store.visitors.touch(who)
    store.writer.flush()
    cookies = [{COOKIE: visitor.signer().sign(who).decode()} for who in ids]
    return Client(app, cookies=cookies[0]), Client(app, cookies=cookies[1])


def me(browser: Client) -> str:
    return read(browser.cookies.get(COOKIE, ""))


def code_of(browser: Client, store: Store) -> str:
    return store.visitors.get(me(browser)).code


def test_a_code_brings_a_visitor_back_in_another_browser(app, store, browsers):
    here, there = browsers
    who, other = me(here), me(there)
    finished(store, "mine", who)
    finished(store, "theirs", other)
    there.post(CODE, code=code_of(here, store).upper().replace("-", " "))
    assert (there.status, there.headers["location"]) == (303, "../Runs")
    assert me(there) == who
    assert (there.cookie["httponly"], there.cookie["samesite"]) == (True, "lax")
    assert pop_sentence(who) == BACK
    assert [run.id for run in store.runs.find(other)] == ["theirs"]
    assert me(Client(app).post(CODE, code=code_of(here, store))) == who


@pytest.mark.parametrize("code", ["", "wrong", "-", "x" * 5000, "'; --"])
def test_after_a_wrong_code_the_browser_stays_who_it_was(browsers, code):
    browser, _ = browsers
    before = me(browser)
    browser.post(CODE, code=code)
    assert (browser.status, browser.cookie) == (303, None)
    assert me(browser) == before
    assert pop_sentence(before) == WRONG


def test_guessing_codes_is_slowed_down_at_its_own_address(app, store, browsers):
    code, guesser = code_of(browsers[0], store), Client(app, "6.6.6.6")
    waited = app.state.waited
    for _ in range(100):
        guesser.post(CODE, code=new_code())
    assert waited == sorted(waited)
    assert waited[0] == 0
    assert waited[10] >= 1
    assert 5 <= waited[-1] <= 6
    assert me(Client(app, "10.0.0.7").post(CODE, code=code))
    assert waited[-1] < 0.2
    assert me(guesser.post(CODE, code=code))
    assert waited[-1] <= 6


@pytest.mark.parametrize("path", [CODE, DELETE])
def test_only_a_form_of_this_site_does_anything(store, browsers, path):
    browser, other = browsers
    who = me(browser)
    browser.post(path, "http://evil", code=code_of(other, store))
    assert (browser.status, browser.cookie) == (403, None)
    assert browser.get(path).status == 405
    assert store.visitors.get(who) is not None


def test_after_deleting_the_browser_is_a_new_visitor(app, store, browsers):
    browser, other = browsers
    who, cookie = me(browser), browser.cookies[COOKIE]
    for person in (who, me(other)):
        finished(store, f"run of {person}", person)
        store.measurements.keep("a:b", 1, machine="here", visitor=person)
    browser.post(DELETE)
    assert app.state.forgotten == [who, who]  # before and after their rows go
    assert [run.visitor for run in store.runs.find()] == [me(other)]
    assert store.visitors.get(who) is None
    assert store.measurements.of(who) == []
    assert read(cookie) == ""
    assert me(browser) not in ("", who)
    assert pop_sentence(me(browser)) == DELETED


def test_deleting_clears_only_what_caches_have_of_this_visitor(
    app, store, browsers, monkeypatch
):
    """And a visitor without rows, of whom a program has many, clears nothing."""
    browser, other = browsers
    who, stranger = me(browser), Client(app)
    stranger.cookies[COOKIE] = visitor.signer().sign("nobody").decode()
    finished(store, "mine", who)
    store.measurements.keep("a:b", 1, machine="here", subject="seen", visitor=who)
    finished(store, "theirs", me(other))
    store.writer.flush()
    forgotten, erased = Mock(), Mock(wraps=store.database.erase)
    monkeypatch.setattr(delete_my_data_page, "FORGET", [forgotten])
    monkeypatch.setattr(store.database, "erase", erased)
    stranger.post(DELETE)
    assert (forgotten.call_count, erased.call_count) == (0, 0)
    assert me(stranger) == "nobody"
    assert pop_sentence("nobody") == DELETED
    browser.post(DELETE)
    ((owner, models),) = (call.args for call in forgotten.call_args_list)
    assert (owner, sorted(models)) == (who, ["mine", "seen"])
    assert erased.call_count == 1


def test_without_the_database_a_browser_keeps_its_cookie(store, browsers, monkeypatch):
    browser, _ = browsers
    who = me(browser)
    for path, name in ((CODE, "by_code"), (DELETE, "delete")):
        with monkeypatch.context() as patch:
            patch.setattr(store.visitors, name, away)
            browser.post(path, code="any")
        assert me(browser) == who
        assert "Away." in pop_sentence(who).text
