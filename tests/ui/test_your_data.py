"""core.ui.your_data: what a visitor can do with all that is theirs."""

import csv
import io
import json

import pytest
from streamlit.testing.v1 import AppTest

from core.store.codec import StoreError
from core.store.store import Store
from core.ui import visitor_routes, your_data
from core.ui.visitor_routes import BACK, WRONG
from tests.store.made_up import finished

SCRIPT = """
from core.ui import your_data
your_data.tell("Runs")
your_data.draw()
"""


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store with somebody's run, which they hid, and another person's."""
    store = Store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    monkeypatch.setattr(your_data, "store", lambda: store)
    finished(store, "mine", "me")
    store.runs.hide(["mine"], "me")
    store.runs.rename("mine", "me", "=1+1")
    finished(store, "theirs", "you")
    yield store
    store.close()


@pytest.fixture
def files(monkeypatch) -> dict:
    """What the buttons hand out, by the names of the files."""
    given = {}

    def button(_label, data, name, *_, **__) -> None:
        given[name] = data

    monkeypatch.setattr(your_data.downloads, "button", button)
    return given


def draw(monkeypatch, who: str) -> AppTest:
    """The section, in the browser of this visitor."""
    monkeypatch.setattr(your_data, "visitor_of_cookie", lambda: who)
    at = AppTest.from_string(SCRIPT, default_timeout=60).run()
    assert not at.exception
    return at


def test_a_visitor_sees_their_code_and_is_told_once_how_it_went(store, monkeypatch):
    """Also one who was never here: the code is there at once."""
    visitor_routes.say("me", BACK)
    at = draw(monkeypatch, "me")
    assert at.code[0].value == store.visitors.get("me").code
    assert at.success[0].value == BACK.text
    visitor_routes.say("new", WRONG)
    at = draw(monkeypatch, "new")
    assert at.code[0].value == store.visitors.get("new").code
    assert at.warning[0].value == WRONG.text
    assert len(at.run().warning) == 1
    assert not draw(monkeypatch, "new").warning


def test_downloads_hold_all_that_is_the_visitors_and_nothing_else(
    store, monkeypatch, files
):
    """Hidden runs too; no spreadsheet runs what a name says."""
    store.measurements.keep("a:b", 1.5, machine="here", visitor="me")
    store.measurements.keep("a:b", 2.5, machine="here", visitor="you")
    store.writer.flush()
    draw(monkeypatch, "me")
    table = list(csv.DictReader(io.StringIO(files["my-runs.csv"]())))
    assert [(row["id"], row["name"]) for row in table] == [("mine", "'=1+1")]
    found = json.loads(files["my-data.json"]())
    assert found["visitor"]["id"] == "me"
    (run,) = found["runs"]
    assert len(run["curve"]) == 100
    assert len(run["epochs"]) == 2
    assert [each["value"] for each in found["measurements"]] == [1.5]


def test_nothing_is_deleted_before_it_is_confirmed(store, monkeypatch):
    """The first press only says what will go."""
    at = draw(monkeypatch, "me")
    at.button(key="delete_my_data").click().run()
    assert not at.exception
    assert "1 run, with curves and models" in at.markdown[-1].value
    assert store.visitors.get("me")


def test_a_browser_without_cookies_is_told(monkeypatch):
    """There is no code, and nothing to delete."""
    at = draw(monkeypatch, "")
    assert "allow cookies" in at.info[0].value
    assert not at.button


def test_a_database_that_is_away_is_a_sentence(store, monkeypatch):
    def away(_) -> None:
        raise StoreError("The database does not answer.")

    monkeypatch.setattr(store.visitors, "get", away)
    at = draw(monkeypatch, "me")
    assert at.error[0].value == "The database does not answer."
