"""core.ui.speed.bars: how fast a rung is, and the limit that holds for it."""

import xml.etree.ElementTree as ET
from dataclasses import replace

from core.speed.ladder import measured
from core.ui.charts.base import LIGHT
from core.ui.speed import bars
from tests.samples import CLIMBED, LIMIT

BOTH = replace(LIMIT, flops_per_second={"float32": (1e11,), "bfloat16": (4e11,)})


def test_a_limit_is_drawn_where_it_holds():
    """Of 32 bits up to the rung that computes in 16, and from there on theirs."""
    found = bars.bars(CLIMBED.results, [BOTH])
    assert found.keys() == measured(CLIMBED.results).keys()
    limits = {name: bar.limit for name, bar in found.items()}
    half = limits.pop("half_precision")
    assert half > 1.5 * max(limits.values())
    busy = replace(BOTH, flops_per_second={"float32": (5e10,), "bfloat16": (2e11,)})
    assert bars.bars(CLIMBED.results, [busy, BOTH]) == found, "the fastest reading"
    alone = bars.bars(CLIMBED.results, [LIMIT])
    assert alone["fused"].limit == limits["fused"]
    assert alone["half_precision"].limit is None  # it was not measured


def test_a_rung_that_was_taken_back_is_hollow():
    """The fill tells, and the words for who can't see it do elsewhere."""
    found = bars.bars(CLIMBED.results, CLIMBED.limits)
    most = bars.end(list(found.values()))
    for name, fill in (("two_workers", LIGHT.page), ("fused", LIGHT.cpu)):
        drawn = ET.fromstring(bars.picture(found[name], most, "CPU", LIGHT))
        (rect,) = drawn.iter("{http://www.w3.org/2000/svg}rect")
        assert rect.get("fill") == fill
        (text,) = drawn.iter("{http://www.w3.org/2000/svg}text")
        assert text.text == found[name].figures
        assert (text.get("x"), text.get("text-anchor")) == (str(bars.WIDTH), "end")


def test_all_bars_have_one_unit_and_room():
    """Seconds with two decimals; none is longer than leaves room for its figures."""
    found = bars.bars(CLIMBED.results, CLIMBED.limits)
    assert found["larger_batch"].figures == "30,000/s · 0.40 s"
    most = bars.end(list(found.values()))
    assert most >= max(bar.most for bar in found.values())
    assert bars.end([]) == 1
