"""Charts have their colours from the palette and draw columns that are there."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.compare.candidates import Candidate
from core.speed.results import NUMPY, PYTHON, TORCH
from core.ui import runs
from core.ui.charts import (
    base,
    checkpoints,
    compare,
    evaluate,
    mistakes,
    move,
    speed,
    train,
)
from core.ui.charts import runs as side_by_side
from core.ui.compare import crossover
from core.ui.my_runs import compare as my_runs
from core.ui.train import fits

ROOT = Path(__file__).parents[2]
SHOWN_BY = [*sorted((ROOT / "core/ui").rglob("*.py")), *sorted(ROOT.glob("pages/*.py"))]


@pytest.fixture(params=["LIGHT", "DARK"])
def colors(request, monkeypatch) -> base.Palette:
    found = getattr(base, request.param)
    monkeypatch.setattr(base, "palette", lambda: found)
    return found


def test_no_colour_stands_outside_the_palettes():
    stray = []
    for path in SHOWN_BY:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        palettes = [
            node
            for node in nodes
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Palette"
        ]
        known = {id(part) for palette in palettes for part in ast.walk(palette)}
        stray += [
            (path.name, node.value)
            for node in nodes
            if isinstance(node, ast.Constant)
            and id(node) not in known
            and re.search(r"#([0-9a-fA-F]{3}){1,2}\b", str(node.value))
        ]
    assert not stray


def test_the_palettes_are_those_of_the_theme():
    theme = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())["theme"]
    for name, colors in (("light", base.LIGHT), ("dark", base.DARK)):
        page = theme[name]
        assert colors.text == page["textColor"]
        assert colors.page == page["backgroundColor"]
        assert colors.ground == page["secondaryBackgroundColor"]
        shown = [colors.accelerator, colors.cpu, *colors.further]
        assert shown == page["chartCategoricalColors"]


def frame(columns: str, *rows: tuple) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns.split())


PAIR = (Candidate("cpu", "CPU", "a", 1), Candidate("cuda", "CUDA", "b", 1))
RACE = ("contender", "step", "seconds", "loss")
LOOKS = (("a", 0), ("b", 1), ("c", len(base.LIGHT.runs)))  # a and c share a colour
DOTS = ("id", "run", "seconds", "quality", "backend", "when", "best", "ring")
CELLS = ("row", "workers", "rate", "label", "spread", "start", "dark")
LIVE = {
    "losses": (
        lambda: train.losses(LOOKS, "step", 9),
        runs.loss_table([]).column_names,
    ),
    "losses of several": (
        lambda: side_by_side.losses(LOOKS, "seconds"),
        my_runs.loss_table([], []).column_names,
    ),
    "qualities of several": (
        lambda: side_by_side.qualities(LOOKS, "epoch", True),
        my_runs.quality_table([], []).columns,
    ),
    "frontier": (
        lambda: side_by_side.frontier(("CPU", side_by_side.ELSEWHERE), True, True),
        DOTS,
    ),
    "per epoch": (
        lambda: train.per_epoch(LOOKS, "r2", 3, True),
        runs.epoch_table([]).column_names,
    ),
    "fit": (lambda: train.fit("CPU"), fits.table(None).column_names),
    "race": (lambda: compare.race_losses(PAIR, "step"), RACE),
    "heats": (
        lambda: compare.race_bars(PAIR, ("c",), "Seconds"),
        ("contender", "kind", "seconds", "text"),
    ),
    "crossover": (lambda: compare.crossover(PAIR), crossover.COLUMNS),
    "resumed": (lambda: checkpoints.resumed("CPU", 9, 4), ("part", "step", "loss")),
    "loader": (lambda: speed.loader(("64",), (0, 1)), CELLS),
    "share": (lambda: base.share("CPU"), ("share",)),
}
TRANSFERS = "where direction memory bytes size us rate low high"
WAYS = [
    ("1 point", way, 2.0, 1.0, 3.0, "2 µs") for way in (PYTHON, NUMPY, TORCH, "GPU")
]
STATIC = {
    "confusion": lambda: evaluate.confusion(
        ((3, 0), (1, 2)), ["Bag", "Coat"], ["Coat", "Bag"], ("Coat", "Bag")
    ),
    "stacked": lambda: checkpoints.stacked(
        frame("name shape bytes start end layer", ("0.weight", "2 × 2", 16, 0, 16, 0))
    ),
    "milliseconds": lambda: evaluate.costs({"no_grad": (1, 3)}, "milliseconds", "CPU"),
    "megabytes": lambda: evaluate.costs({"no_grad": (4,)}, "megabytes", "CUDA"),
    "probabilities": lambda: evaluate.probabilities(["Bag", "Coat"], (0.3, 0.7), "CPU"),
    "logits": lambda: move.logits(np.array([[1.0, -2.0]]), (1,), ("Bag", "Coat")),
    "parameters": lambda: move.parameter_bars({"0.weight": 0.0}, "Norm", "CPU"),
    "transfers": lambda: move.transfers(
        frame(
            TRANSFERS,
            ("here", "host to device", "pageable", 4096, "4 KiB", 1.0, 4.0, 3.0, 5.0),
            ("there", "device to host", "pinned", 4096, "4 KiB", 1.0, 4.0, 3.0, 5.0),
        )
    ),
    "readings": lambda: compare.readings(
        frame("way call milliseconds", ("naive", 1, 2.0)), {"naive": True, "b": False}
    ),
    "lanes": lambda: compare.lanes(
        frame("lane part start end recorded", ("a", "copy", 0.0, 1.0, False)),
        frame("lane at text wrong", ("a", 1.0, "1 ms", True)),
    ),
    "waterfall": lambda: speed.waterfall(
        frame("rung left before label whole", ("a", 1.0, 2.0, "−1.00 s", False)), "CUDA"
    ),
    "memory": lambda: speed.memory(
        frame(
            "kind name milliseconds low high megabytes below",
            ("training", "plain", 2.0, 1.0, 3.0, 4.0, False),
        ),
        "CUDA",
    ),
    "vectorized": lambda: speed.vectorized(
        frame("points way microseconds low high time", *WAYS)
    ),
    "pieces": lambda: speed.pieces(
        frame("pieces microseconds low high time", (1, 2.0, 1.0, 3.0, "2 µs")), "CPU"
    ),
    "mistake": lambda: mistakes.halves(
        frame("half step value", ("Broken", 1, 2.3), ("Fixed", 1, 2.3)), "Step", "Loss"
    ),
    "fetches": lambda: speed.fetches(
        frame("way milliseconds low high time", (".cpu()", 2.0, 1.0, 3.0, "2 ms")),
        "CPU",
    ),
}


def columns(node: Any) -> set[str]:
    """The columns that a specification asks for, in fields and in expressions."""
    if isinstance(node, list):
        return set().union(*map(columns, node))
    if isinstance(node, str):
        return set(re.findall(r"datum\.(\w+)", node))
    if not isinstance(node, dict):
        return set()
    named = {node["field"]} if isinstance(node.get("field"), str) else set()
    asked = (v for k, v in node.items() if k not in ("data", "datasets", "labelExpr"))
    return named.union(*map(columns, asked))


@pytest.mark.parametrize("name", LIVE)
def test_a_live_chart_is_built_once_and_draws_the_columns_of_its_data(name, colors):
    draw, data = LIVE[name]
    found = draw()
    assert draw() is found
    assert "later" not in str(found)
    inline = {
        column
        for layer in found["layer"]
        for row in layer.get("data", {}).get("values", ())
        for column in row
    }
    assert columns(found) <= set(data) | inline
    seen = base.mixed(colors.of("CPU"), colors.ground, 0.5)  # of a cell on the map
    assert {colors.of("CPU"), seen, colors.runs[0]} & set(
        re.findall(r"#\w{6}", str(found))
    )


@pytest.mark.parametrize("name", STATIC)
@pytest.mark.usefixtures("colors")
def test_a_chart_draws_the_columns_of_its_data(name):
    found = STATIC[name]().to_dict()
    there = {
        column for rows in found["datasets"].values() for row in rows for column in row
    }
    assert columns(found) <= there


def contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG has it: 1 to 21."""

    def light(color: str) -> float:
        shares = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
        linear = [((each + 0.055) / 1.055) ** 2.4 for each in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    low, high = sorted((light(one), light(other)))
    return high / low


@pytest.mark.parametrize("colors", [base.LIGHT, base.DARK])
def test_texts_of_charts_are_legible_and_devices_are_seen(colors):
    """4.5 : 1 on the page for what is read, 3 : 1 for what is looked at."""
    for color in (colors.text, colors.quiet):
        assert contrast(color, colors.page) >= 4.5
    for color in (colors.cpu, colors.accelerator):
        assert contrast(color, colors.page) >= 3


@pytest.mark.parametrize("last", [1, 2, 3, 5, 7, 10, 12, 28, 30, 50, 99, 200])
def test_an_axis_of_whole_numbers_ends_where_they_do(last):
    """At both ends there is a tick; there are seven at most, and none comes twice."""
    found = base.whole(last)
    assert (found[0], found[-1]) == (1, last)
    assert len(found) == len(set(found)) <= base.MOST_TICKS
    assert found == sorted(found)


@pytest.mark.parametrize("ends", [(0.02, 30), (1.5, 12), (3, 8), (1e-6, 1e6)])
def test_a_logarithmic_axis_has_two_ticks_or_more(ends):
    found = base.decades(*ends)
    assert 2 <= len(found) <= base.MOST_TICKS
    assert all(ends[0] <= each <= ends[1] for each in found)


@pytest.mark.parametrize("colors", [base.LIGHT, base.DARK])
def test_the_colours_of_runs_are_seen_and_are_no_device(colors):
    """As strong as a graphic has to be, 3 : 1 on the page; no two are the same."""
    assert len(set(colors.runs)) == len(colors.runs)
    assert not {colors.cpu, colors.accelerator, colors.right, colors.wrong} & set(
        colors.runs
    )
    for color in colors.runs:
        assert contrast(color, colors.page) >= 3
