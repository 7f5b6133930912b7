import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import reduce

import pytest

from core.lessons.speed import climb_result, rungs_page
from core.lessons.speed.climb_result import RUNGS, Kept, Roofline, gain_of, measured
from core.lessons.speed.ladder_page import kept_in_a_row
from core.script.differences import changes
from core.ui.charts import LIGHT
from core.ui.source import body
from tests.app.samples import CLIMBED, LIMIT
from tests.figures import figures

NAMES = [rung.name for rung in RUNGS]
RESULTS = measured(CLIMBED.results)
BOTH = replace(LIMIT, flops_per_second={"float32": (1e11,), "bfloat16": (4e11,)})


def difference(earlier: str, rung: str, *without: str) -> str:
    """The text shown between two rungs, where all before are kept but these."""
    names = (name for name in NAMES[: NAMES.index(rung)] if name not in without)
    kept = reduce(Kept.with_change, names, Kept())
    texts = [body(f"core.lessons.speed.rungs:{name}") for name in (earlier, rung)]
    return changes(*(rungs_page.written_in(text, kept) for text in texts))


@pytest.mark.parametrize("rung", NAMES[1:])
def test_a_shown_difference_leaves_out_the_switches_of_kept_rungs(rung):
    earlier = NAMES[NAMES.index(rung) - 1]
    assert "kept." not in difference(earlier, rung)


def test_autocast_changes_neither_the_batch_nor_the_learning_rate():
    lines = difference("larger_batch", "half_precision").splitlines()
    changed = [line for line in lines if line[0] in "+-"]
    assert changed
    assert not [line for line in changed if "split" in line or "lr=" in line]


def test_a_change_that_was_taken_back_is_in_no_difference():
    text = difference("half_precision", "compiled", "channels_last")
    assert "channels_last" not in text
    assert "torch.compile" in text


def test_a_limit_is_that_of_the_rungs_precision_and_of_the_fastest_reading():
    busy = replace(BOTH, flops_per_second={"float32": (5e10,), "bfloat16": (2e11,)})

    def best(rung: str, *limits: Roofline) -> float | None:
        return rungs_page.best_speed(RESULTS[rung], CLIMBED.results, limits)

    assert best("half_precision", BOTH) > 1.5 * best("larger_batch", BOTH)
    assert best("fused", busy, BOTH) == best("fused", BOTH) == best("fused", LIMIT)
    assert best("half_precision", LIMIT) is None  # it was not measured


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("rung", "fill", "told"),
    [
        ("two_workers", LIGHT.page, "0.5× · 8.00 s"),
        ("larger_batch", LIGHT.cpu, "10× · 0.40 s"),
    ],
)
def test_a_rung_that_was_taken_back_is_a_hollow_dot(rung, fill, told):
    scale = rungs_page.scale_of(RESULTS.values(), [6e4])
    svg = rungs_page.picture(RESULTS[rung], scale, "CPU", LIGHT, 6e4)
    (dot,) = ET.fromstring(svg).iter(f"{SVG}circle")
    assert dot.get("fill") == fill
    (text,) = ET.fromstring(svg).iter(f"{SVG}text")
    assert text.text == told
    beside = climb_result.beside(RESULTS[rung], RESULTS["textbook"])
    marked = rungs_page.picture(
        RESULTS[rung], scale, "CPU", LIGHT, 6e4, beside, "you: Same ✗"
    )
    before, after = (text.count("<path") for text in (svg, marked))
    assert after == before + 1
    assert ">you: Same ✗</text>" in marked


def test_a_dots_place_tells_how_many_times_as_fast_a_rung_is():
    """Twice as fast is equally far from 1× to 2× as from 5× to 10×."""
    scale = rungs_page.scale_of(RESULTS.values(), [6e4])
    assert scale.first == RESULTS["textbook"].samples_per_second
    one, two, five, ten = (scale.x(times * scale.first) for times in (1, 2, 5, 10))
    assert two - one == pytest.approx(ten - five, abs=0.2)
    assert 0 < scale.x(scale.low) < one < ten < scale.x(scale.high) < rungs_page.WIDTH
    (group,) = ET.fromstring(rungs_page.axis(scale, LIGHT))
    ticks = {t.text: float(t.get("x")) for t in group.iter(f"{SVG}text")}
    assert ticks["1×"] == one


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.2, True), (0.5, False)], ids=["after 20 epochs", "never"]
)
def test_compiling_pays_when_the_time_is_won_back(seconds, told):
    half = RESULTS["half_precision"]
    times = {"seconds": (seconds,) * 3, "base_seconds": half.seconds}
    compiled = replace(
        half, rung="compiled", base=half.rung, start_seconds=2.05, **times
    )
    gain = gain_of(compiled, CLIMBED.results)
    lines = rungs_page.remarks(compiled, half, RESULTS["textbook"], gain)
    assert ("20" in figures(" ".join(lines))) is told


def test_the_waterfall_ends_at_the_first_rung_that_is_hidden():
    kept = ["textbook", "decoded_once", "no_waiting", "fused", "larger_batch"]
    results = CLIMBED.results
    names = [result.rung for result in kept_in_a_row(results, results)]
    assert names == [*kept, "half_precision"]
    hidden = [result for result in results if result.rung != "fused"]
    assert [result.rung for result in kept_in_a_row(hidden, results)] == kept[:3]
