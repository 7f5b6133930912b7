from dataclasses import replace

import pytest

from core.config import RunConfig
from core.lessons.train import legend_page as legend
from core.runs.loss_chart import ROW_HEIGHT
from core.ui import charts, runs
from tests.app.runs.made_up import run


@pytest.fixture(autouse=True)
def numbers(monkeypatch):
    monkeypatch.setattr(runs, "number", lambda run_id, _: int(run_id))
    monkeypatch.setattr(legend, "palette", lambda: charts.LIGHT)


def test_the_legend_has_a_row_a_run_with_a_color_of_its_own():
    shown = [run("1", 1.0, 0.8, 0.91), run("2", 1.0, 0.91, seed=1)]
    rows = legend.table(shown).to_pylist()
    assert [row["What differs"] for row in rows] == ["seed 0", "seed 1"]
    assert [row["Seconds to 90%"] for row in rows] == ["2.0", "1.0"]
    assert {row["Accuracy"] for row in rows} == {"91.00%"}
    assert len({row["Color"] for row in rows}) == 2


def test_the_legend_marks_a_run_that_was_stopped():
    whole, stopped = run("1", 1.0, 0.9), run("2", 1.0, 0.8)
    job = replace(stopped.job, value=None, status="cancelled")
    shown = [whole, replace(stopped, job=job)]
    texts = [row["What differs"] for row in legend.table(shown).to_pylist()]
    assert [text.endswith("canceled") for text in texts] == [False, True]


def test_the_legend_has_room_for_all_that_differs(monkeypatch):
    drawn = []
    monkeypatch.setattr(legend.st, "dataframe", lambda *_, **look: drawn.append(look))
    usual, fast = (vars(RunConfig.with_recipe(fast=fast)) for fast in (False, True))
    few = [run("1", 1.0, 0.9, **usual), run("2", 1.0, 0.9, **usual | {"seed": 1})]
    many = [few[0], run("2", 1.0, 0.9, **fast)]
    for shown in (few, many):
        legend.draw(shown)
        look = drawn[-1]
        width = look["column_config"]["What differs"]["width"]
        lines = (look["row_height"] - ROW_HEIGHT) // legend.LINE_HEIGHT + 1
        longest = max(map(len, legend.differences(shown)))
        assert lines * width >= longest * charts.CHARACTER_PIXELS
    assert drawn[0]["row_height"] == ROW_HEIGHT < look["row_height"]
    small, high = (legend.table(s)["Color"][0].as_py() for s in (few, many))
    assert "height='18'" in small
    assert "height='18'" not in high  # around a circle that stays as small


def test_a_new_run_is_drawn_whatever_was_ticked_before_it(monkeypatch):
    first, second, third = (run(str(n), 1.0, 0.9) for n in (1, 2, 3))
    state: dict[str, dict] = {}
    monkeypatch.setattr(legend.st, "session_state", state)
    monkeypatch.setattr(
        legend.st, "dataframe", lambda *_, key, **__: state.setdefault(key, {})
    )
    legend.draw([first, second])
    (boxes,) = state.values()
    boxes["selection"] = {"rows": [1]}
    assert legend.ticked([first, second]) == [second]
    assert legend.ticked([first, second, third]) == [first, second, third]
