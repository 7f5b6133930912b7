import ast
import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.lessons.mistakes import catalogue_page
from core.lessons.model import batch_steps_page as model
from core.runs import loss_chart as curves
from core.ui import charts as base
from core.ui import runs
from tests.app.ui.vega import columns, inline

ROOT = Path(__file__).parents[3]
SHOWN_BY = [
    *sorted((ROOT / "core/ui").rglob("*.py")),
    *sorted((ROOT / "core").rglob("*_page.py")),
    *sorted((ROOT / "core").rglob("*_chart.py")),
    *sorted(ROOT.glob("pages/*.py")),
]


@pytest.fixture(params=["LIGHT", "DARK"])
def colors(request, monkeypatch) -> base.Palette:
    palette = getattr(base, request.param)
    monkeypatch.setattr(base, "palette", lambda: palette)
    return palette


def test_no_color_stands_outside_the_palettes():
    stray = []
    for path in SHOWN_BY:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        palettes = [
            node
            for node in nodes
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Palette"
        ]
        defined = {id(part) for palette in palettes for part in ast.walk(palette)}
        stray += [
            (path.name, node.value)
            for node in nodes
            if isinstance(node, ast.Constant)
            and id(node) not in defined
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
        series = [colors.accelerator, colors.cpu, *colors.further]
        assert series == page["chartCategoricalColors"]


def frame(columns: str, *rows: tuple) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns.split())


LOOKS = (("a", 0), ("b", 1), ("c", len(base.LIGHT.runs)))  # a and c share a color
LIVE = {  # those that no test of a page draws
    "qualities of several": (
        lambda: curves.qualities(LOOKS, "epoch", True),
        runs.epoch_table([]).column_names,
    ),
    "share": (lambda: base.share("CPU"), ("share",)),
}
STATIC = {
    "logits": lambda: model.logits(np.array([[1.0, -2.0]]), (1,), ("Bag", "Coat")),
    "parameters": lambda: model.parameter_bars({"0.weight": 0.0}, "Norm", "CPU"),
    "mistake": lambda: catalogue_page.curves(
        frame("half step value", ("Broken", 1, 2.3), ("Fixed", 1, 2.3)), "Step", "Loss"
    ),
}


@pytest.mark.parametrize("name", LIVE)
def test_a_live_chart_is_built_once_and_draws_the_columns_of_its_data(name, colors):
    draw, data = LIVE[name]
    chart = draw()
    assert draw() is chart
    assert not re.search("later|empty", str(chart))  # all layers draw the given data
    assert columns(chart) <= set(data) | inline(chart)
    codes = set(re.findall(r"#\w{6}", str(chart)))
    assert {colors.of("CPU"), colors.runs[0]} & codes


@pytest.mark.parametrize("name", STATIC)
@pytest.mark.usefixtures("colors")
def test_a_chart_draws_the_columns_of_its_data(name):
    chart = STATIC[name]().to_dict()
    there = {
        column for rows in chart["datasets"].values() for row in rows for column in row
    }
    assert columns(chart) <= there


def contrast(first: str, second: str) -> float:
    """Of two colors, as WCAG has it: 1 to 21."""

    def light(color: str) -> float:
        shares = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
        linear = [((share + 0.055) / 1.055) ** 2.4 for share in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    low, high = sorted((light(first), light(second)))
    return high / low


@pytest.mark.parametrize("colors", [base.LIGHT, base.DARK])
def test_texts_of_charts_are_legible_and_devices_and_runs_are_seen(colors):
    for color in (colors.text, colors.quiet):
        assert contrast(color, colors.page) >= 4.5
    for color in (colors.cpu, colors.accelerator, *colors.runs):
        assert contrast(color, colors.page) >= 3
    assert len(set(colors.runs)) == len(colors.runs)
    others = {colors.cpu, colors.accelerator, colors.right, colors.wrong}
    assert not others & set(colors.runs)


@pytest.mark.parametrize("last", [1, 2, 3, 5, 7, 10, 12, 28, 30, 50, 99, 200])
def test_an_axis_of_whole_numbers_ends_where_they_do(last):
    ticks = base.whole_numbers(last)
    assert (ticks[0], ticks[-1]) == (1, last)
    assert len(ticks) == len(set(ticks)) <= base.MOST_TICKS
    assert ticks == sorted(ticks)


@pytest.mark.parametrize("ends", [(0.02, 30), (1.5, 12), (3, 8), (1e-6, 1e6)])
def test_a_logarithmic_axis_has_two_ticks_or_more(ends):
    ticks = base.decades(*ends)
    assert 2 <= len(ticks) <= base.MOST_TICKS
    assert all(ends[0] <= tick <= ends[1] for tick in ticks)
