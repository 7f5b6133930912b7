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
    for color in (colors.text, colors.quiet, *colors.runs):  # names have runs' colors
        assert contrast(color, colors.page) >= 4.5
    for color in (colors.cpu, colors.accelerator):
        assert contrast(color, colors.page) >= 3
    assert len(set(colors.runs)) == len(colors.runs)
    others = {colors.cpu, colors.accelerator, colors.right, colors.wrong}
    assert not others & set(colors.runs)


@pytest.mark.parametrize(
    ("heights", "moved"),
    [
        ([3.0, 1.0, 2.0], [3.0, 1.0, 2.0]),
        ([5.0, 5.0], [4.5, 5.5]),
        ([0.1, 0.0, 5.0], [1.0, 0.0, 5.0]),
        ([10.0, 10.0, 10.0], [8.0, 9.0, 10.0]),
        ([1.0] * 21, [0.5 * place for place in range(21)]),
        ([], []),
    ],
)
def test_texts_at_heights_are_apart_and_in_order(heights, moved):
    assert base.spread_labels(heights, 1.0, 10.0) == pytest.approx(moved)


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


# How people see colors who lack one of the three kinds of cones, in linear RGB: the
# matrices of Machado, Oliveira and Fernandes, "A Physiologically-based Model for
# Simulation of Color Vision Deficiency", IEEE TVCG 15 (6), 2009, at full severity.
VISIONS = {
    "all cones": np.eye(3),
    "protan": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deutan": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
# From linear RGB to cones, and from their cube roots to Oklab (Björn Ottosson, 2020),
# in which equal distances look about equally large.
CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
NEIGHBORS, ANY = 0.12, 0.055  # the least distances, of 1 between black and white


def seen(colors: tuple[str, ...], vision: str) -> np.ndarray:
    """The colors in Oklab, a row for each, as people with this vision see them."""
    codes = [bytes.fromhex(color.removeprefix("#")) for color in colors]
    shares = np.array([list(code) for code in codes]) / 255
    linear = np.where(
        shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4
    )
    shown = np.clip(linear @ VISIONS[vision].T, 0, 1)
    return np.cbrt(shown @ CONES.T) @ OKLAB.T


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("colors", [base.LIGHT, base.DARK])
def test_people_with_two_kinds_of_cones_tell_runs_apart(colors, vision):
    """Above all, runs that came one after the other, which are compared most."""
    places = seen(colors.runs, vision)
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    count = len(places)
    neighbors = [apart[n, (n + 1) % count] for n in range(count)]
    assert min(neighbors) >= NEIGHBORS
    assert min(apart[np.triu_indices(count, 1)]) >= ANY
