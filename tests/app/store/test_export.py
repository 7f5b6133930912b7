import csv
import io
import json
import math
import tracemalloc
from dataclasses import replace

from sqlalchemy import update

from core.results import LossPoint
from core.store.export import everything, runs_csv, runs_json
from core.store.tables import RunSummary
from tests.app import samples
from tests.app.store.made_up import HISTORY, RESULT, begin, finished


def test_the_table_has_a_row_a_run_with_settings_figures_and_times(store):
    finished(store, "a")
    finished(store, "b", task="fashion-mnist")
    store.writer.flush()
    table = runs_csv(store.runs.find("me"))
    second, first = csv.DictReader(io.StringIO(table))
    assert (first["id"], first["task"], first["accuracy"]) == ("a", "sprites", "0.8")
    assert (second["id"], second["learning_rate"]) == ("b", "0.0003")
    assert first["ended"].startswith("20")
    assert first["ended"].endswith("+00:00")


def test_no_cell_is_a_formula_that_a_spreadsheet_would_run(store):
    for sign in "=+-@\t":
        finished(store, sign)
        change = update(RunSummary).where(RunSummary.id == sign)
        change = change.values(name=f'{sign}SUM(A1:A9), "quoted";{sign}1')
        store.writer.write(lambda session, change=change: session.execute(change))
    rows = list(csv.DictReader(io.StringIO(runs_csv(store.runs.find()))))
    assert len(rows) == 5
    for row in rows:
        for cell in row["name"].split(";"):
            assert cell.startswith("'")
        assert 'SUM(A1:A9), "quoted"' in row["name"]


def test_everything_of_a_visitor_and_of_nobody_else_is_strict_json(store):
    finished(store, "a")
    store.runs.hide(["a"], "me")
    begin(store, "b")
    store.runs.epoch("b", replace(HISTORY[0], loss=math.nan))
    finished(store, "c", "you")
    store.measurements.keep("a:b", samples.RACE, machine="here", visitor="me")
    store.writer.flush()

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    content = json.loads(everything(store, "me"), parse_constant=refuse)
    diverged, whole = content["runs"]
    assert whole["summary"]["id"] == "a"
    assert len(whole["curve"]) == 100
    assert whole["result"]["checkpoint"] == "1,500 bytes"
    assert diverged["epochs"][0]["loss"] is None
    assert content["visitor"]["code"]
    assert content["measurements"][0]["value"]["steps"] == samples.RACE.steps
    assert json.loads(runs_json(store, store.runs.find("me"))) == [diverged]


def test_a_value_that_the_visitor_may_not_see_is_left_out(store):
    store.measurements.keep(
        "a:b", 1, machine="here", visitor="me", provenance={"arguments": ("CUDA",)}
    )
    store.answers.keep("me", "seen", True)
    store.writer.flush()
    asked = []

    def may_see(answers: dict, *result: object) -> bool:
        asked.append(result)
        return answers["seen"] and result[0] == "seen"

    content = json.loads(everything(store, "me", may_see))
    assert asked == [("a:b", 1, ("CUDA",)), ("seen", True, ())]
    assert content["measurements"][0]["value"] is None
    assert content["answers"] == {"seen": True}


def test_a_file_takes_little_more_memory_than_its_bytes(file_url, open_store):
    """However many runs are in it."""
    store = open_store(file_url)
    losses = tuple(LossPoint(step, step / 7, 2.3 / step) for step in range(1, 700))
    for number in range(40):
        begin(store, str(number))
        store.runs.end(str(number), "finished", replace(RESULT, losses=losses))
    store.writer.flush()
    everything(store, "me")  # what is imported and compiled at the first call stays
    tracemalloc.start()
    try:
        size = len(everything(store, "me"))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 1_000_000
    assert most < 2.5 * size  # 12 times, if all runs were in memory as objects


def test_a_stranger_has_nothing(store):
    empty = {key: [] for key in ("runs", "measurements", "classes")}
    content = {"visitor": None, "answers": {}, **empty}
    assert json.loads(everything(store, "nobody")) == content
