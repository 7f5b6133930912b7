"""The change that a rung shows, and its bar beside the limit that holds for it."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import reduce

import pytest

from core.lessons.speed import rungs_page
from core.lessons.speed.climb_result import RUNGS, Kept, measured
from core.lessons.speed.ladder_page import kept_in_a_row
from core.ui.charts import LIGHT
from core.ui.source import body, changes
from tests.samples import CLIMBED, LIMIT

NAMES = [rung.name for rung in RUNGS]
BOTH = replace(LIMIT, flops_per_second={"float32": (1e11,), "bfloat16": (4e11,)})


def difference(earlier: str, rung: str, *without: str) -> str:
    """The text shown between two rungs, where all before are kept but these."""
    names = (name for name in NAMES[: NAMES.index(rung)] if name not in without)
    kept = reduce(Kept.with_change, names, Kept())
    texts = [body(f"core.lessons.speed.rungs:{name}") for name in (earlier, rung)]
    return changes(*(rungs_page.written_in(text, kept) for text in texts))


@pytest.mark.parametrize("rung", NAMES[1:])
def test_a_difference_says_nothing_of_what_is_kept(rung):
    earlier = NAMES[NAMES.index(rung) - 1]
    assert "kept." not in difference(earlier, rung)


def test_autocast_changes_neither_the_batch_nor_the_learning_rate():
    lines = difference("larger_batch", "half_precision").splitlines()
    changed = [line for line in lines if line[0] in "+-"]
    assert changed
    assert not [line for line in changed if "split" in line or "lr=" in line]


def test_a_change_that_was_taken_back_is_in_no_difference():
    shown = difference("half_precision", "compiled", "channels_last")
    assert "channels_last" not in shown
    assert "torch.compile" in shown


def test_a_limit_is_drawn_where_it_holds():
    """Of 32 bits up to the rung that computes in 16, and from there on of 16."""
    bars = rungs_page.bars(CLIMBED.results, [BOTH])
    assert bars.keys() == measured(CLIMBED.results).keys()
    limits = {name: bar.limit for name, bar in bars.items()}
    half = limits.pop("half_precision")
    assert half > 1.5 * max(limits.values())
    busy = replace(BOTH, flops_per_second={"float32": (5e10,), "bfloat16": (2e11,)})
    fastest = rungs_page.bars(CLIMBED.results, [busy, BOTH])
    assert fastest == bars
    alone = rungs_page.bars(CLIMBED.results, [LIMIT])
    assert alone["fused"].limit == limits["fused"]
    assert alone["half_precision"].limit is None  # it was not measured


def test_a_rung_that_was_taken_back_is_hollow():
    bars = rungs_page.bars(CLIMBED.results, CLIMBED.limits)
    most = rungs_page.end(list(bars.values()))
    for name, fill in (("two_workers", LIGHT.page), ("fused", LIGHT.cpu)):
        drawn = ET.fromstring(rungs_page.picture(bars[name], most, "CPU", LIGHT))
        (rect,) = drawn.iter("{http://www.w3.org/2000/svg}rect")
        assert rect.get("fill") == fill
        (text,) = drawn.iter("{http://www.w3.org/2000/svg}text")
        assert text.text == bars[name].figures
        assert (text.get("x"), text.get("text-anchor")) == ("330", "end")


def test_all_bars_have_one_unit_and_room():
    bars = rungs_page.bars(CLIMBED.results, CLIMBED.limits)
    assert bars["larger_batch"].figures == "30,000/s · 0.40 s"
    assert rungs_page.end(list(bars.values())) >= max(b.most for b in bars.values())
    assert rungs_page.end([]) == 1


def test_the_waterfall_ends_at_the_first_rung_that_is_hidden():
    kept = ["textbook", "decoded_once", "no_waiting", "fused", "larger_batch"]
    results = CLIMBED.results
    names = [result.rung for result in kept_in_a_row(results, results)]
    assert names == [*kept, "half_precision"]
    hidden = [result for result in results if result.rung != "fused"]
    assert [result.rung for result in kept_in_a_row(hidden, results)] == kept[:3]
