from collections.abc import Callable, Iterator
from dataclasses import replace
from unittest.mock import Mock

import pytest
from sqlalchemy import event
from sqlalchemy.orm import undefer
from streamlit.testing.v1 import AppTest

from core.runs import listing_page
from core.store.codec import StoreError
from core.store.store import Store
from core.store.tables import RunSummary
from core.ui import controls, server
from tests.app.pages.walk import open_page, texts
from tests.app.store.made_up import finished, queue
from tests.figures import figures

PAGE = "pages/10_Runs.py"


@pytest.fixture
def store(engine) -> Store:  # noqa: ARG001 - it closes the store after itself
    return server.store()


@pytest.fixture
def train(somebody, store) -> Iterator[Callable[..., str]]:
    """Makes finished runs of the visitor, with these settings; returns their ids."""
    run_ids: list[str] = []

    def train_one(owner: str = somebody, **settings: object) -> str:
        run_ids.append(f"{len(run_ids)}{somebody[:8]}")
        finished(store, run_ids[-1], owner, **settings)
        store.writer.flush()
        return run_ids[-1]

    yield train_one
    for owner in (somebody, "somebody else", None):  # the server owns its runs as None
        store.runs.delete(run_ids, owner)


def select(at: AppTest, *rows: int) -> AppTest:
    """Tick these rows of the table, and no others."""
    at.session_state[at.dataframe[0].key] = {"selection": {"rows": list(rows)}}
    at.run()
    assert not at.exception
    return at


def listed(at: AppTest) -> list[str]:
    return list(at.dataframe[0].value["run"])


def test_the_newest_runs_are_compared_when_the_page_opens(train):
    train(batch_size=64)
    train(batch_size=256)
    at = open_page(PAGE)
    names = [name.split(" · ") for name in listed(at)]
    assert [(name, batch) for name, _, batch, *_ in names] == [
        ("Run 2", "batch 256"),
        ("Run 1", "batch 64"),
    ]
    assert len(at.get("vega_lite_chart")) == 2
    differences = at.dataframe[1].value
    assert list(differences.columns) == ["Setting", "Run 2", "Run 1"]
    assert differences["Setting"].iloc[0] == "Batch size"


def test_a_selection_is_compared_and_survives_a_reload(train):
    ids = [train(batch_size=size) for size in (16, 32, 64, 128)]
    at = select(open_page(PAGE), 1, 3)
    assert list(at.dataframe[1].value.columns)[1:] == ["Run 3", "Run 1"]
    assert at.query_params["runs"] == f"{ids[2]},{ids[0]}"
    again = open_page(PAGE, runs=f"{ids[3]},{ids[0]},nobodys")
    assert list(again.dataframe[1].value.columns)[1:] == ["Run 4", "Run 1"]
    assert figures(texts(again.warning)) == ["1"]  # run in the address isn't theirs


def test_a_run_is_seen_beside_those_before_it(train):
    first, second, third = (train(batch_size=size) for size in (16, 32, 64))
    at = open_page(PAGE, run=second)
    assert at.query_params["runs"] == f"{second},{first}"
    assert "run" not in at.query_params
    at = open_page(PAGE, run="nobodys")
    assert at.query_params["runs"] == f"{third},{second},{first}"
    assert figures(texts(at.warning)) == ["1"]


def test_what_is_filtered_out_is_not_compared_but_stays_ticked(train):
    for settings in ({"batch_size": 32}, {"batch_size": 64}, {"model": "ann"}):
        train(**settings)
    at = select(open_page(PAGE), 1, 2)
    at.text_input(key="runs_search").set_value("batch 32").run()
    assert len(listed(at)) == 1
    assert len(at.dataframe) == 1  # nothing to hold it against
    at.text_input(key="runs_search").set_value("zzzz").run()
    assert not at.dataframe
    assert "`zzzz`" in texts(at.markdown)
    at.button(key="clear_search").click().run()
    assert len(at.dataframe[1].value.columns) == 3
    at.selectbox(key="runs_model").set_value("ann").run()
    assert len(listed(at)) == 1
    select(at, 0).button(key="delete_runs").click().run()
    at.button(key="delete_for_good").click().run()
    assert not at.exception
    assert len(listed(at)) == 2  # there is no such run, and no such filter


def test_a_run_is_renamed_hidden_shown_again_and_deleted(train, store, somebody):
    nameless, named = train(batch_size=32), train(batch_size=64)
    at = select(open_page(PAGE), 0)
    at.button(key="rename_run").click().run()
    at.text_input(key=f"name_{named}").set_value("the **good** one")
    at.button(key="save_name").click().run()
    assert listed(at)[0].startswith("the **good** one · ")
    assert "`the **good** one`" in texts(at.markdown)
    at.button(key="hide_runs").click().run()
    assert len(listed(at)) == 1
    at.toggle(key="runs_hidden").set_value(True).run()
    assert listed(at)[0].startswith("hidden · ")
    select(at, 0).button(key="show_runs").click().run()
    assert not any(run.hidden for run in store.runs.find(somebody, hidden=True))
    select(at, 0).button(key="delete_runs").click().run()
    assert [run.id for run in store.runs.find(somebody)] == [named, nameless]
    at.button(key="delete_for_good").click().run()
    assert not at.exception
    assert [run.id for run in store.runs.find(somebody)] == [nameless]
    assert len(listed(at)) == 1


def test_nobody_sees_the_runs_of_others(train, monkeypatch):
    monkeypatch.setattr(server, "visitor_of_cookie", lambda: "me")
    train(owner="somebody else")
    train(owner="")  # the server
    at = open_page(PAGE)
    assert not at.dataframe
    assert listing_page.words("empty") in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 1


@pytest.mark.usefixtures("somebody")
def test_without_its_database_the_page_shows_what_is_in_memory(store, monkeypatch):
    away = Mock(side_effect=StoreError("Away."))
    monkeypatch.setattr(store.runs, "find", away)
    at = open_page(PAGE)
    assert "Away." in texts(at.warning)
    assert controls.NO_COOKIE in texts(at.info)
    assert listing_page.words("empty") not in texts(at.markdown)
    assert not at.get("vega_lite_chart")


def test_a_run_that_ended_badly_says_why(store, somebody):
    assert queue(store, f"x{somebody[:8]}", somebody)
    store.runs.end(f"x{somebody[:8]}", "failed", message="There was not enough memory.")
    store.writer.flush()
    at = select(open_page(PAGE), 0)
    assert listed(at)[0].startswith("failed · ")
    assert "There was not enough memory." in texts(at.markdown)
    store.runs.delete([f"x{somebody[:8]}"], somebody)


def test_two_thousand_runs_are_listed_with_a_few_queries(train, somebody, store):
    run_id = train()
    run = store.database.read(
        lambda session: session.get(RunSummary, run_id, options=[undefer("*")])
    )
    rows = [
        replace(
            run,
            id=f"{somebody[:8]}{n}",
            seq=run.seq + n,
            settings=run.settings | {"batch_size": 15 + n},
            seconds=n / 9,
            value=None,  # its epochs are not copied
        )
        for n in range(1, 2000)
    ]
    store.writer.write(lambda session: session.add_all(rows))
    at = open_page(PAGE)
    assert len(listed(at)) == 2000
    note = Mock()
    event.listen(store.database.readers, "before_cursor_execute", note)
    at.run()
    event.remove(store.database.readers, "before_cursor_execute", note)
    assert not at.exception
    assert 0 < note.call_count < 30
    store.runs.delete([run.id for run in store.runs.find(somebody)], somebody)
