"""core.compare.results: what follows from measured cells and steps."""

from dataclasses import replace

import pytest

from core.compare import results
from core.compare.results import DEVICE, HOST, Cell, Span
from tests.samples import PROFILE


def test_the_line_of_equality_is_interpolated():
    """Between 0.5 at batch 16 and 2 at batch 64, both are equal at 32."""
    cells = [Cell(64, 16, (1.0,), (2.0,)), Cell(64, 64, (2.0,), (1.0,))]
    ((batch, width),) = results.equal_points(cells)
    assert (batch, width) == (pytest.approx(32), 64)


def test_the_line_is_found_along_the_width_too():
    """In a column it lies between two widths."""
    cells = [Cell(64, 16, (1.0,), (4.0,)), Cell(256, 16, (4.0,), (1.0,))]
    ((batch, width),) = results.equal_points(cells)
    assert (batch, width) == (16, pytest.approx(128))


def test_no_line_where_one_always_wins():
    """Cells of one winner have no point of equality between them."""
    assert not results.equal_points([Cell(64, b, (1.0,), (2.0,)) for b in (16, 32)])


def test_the_parts_of_a_typical_step_add_up():
    """Outliers in different steps and parts do not come between parts and whole."""
    fast, slow = (*(1.0,) * 7, 9.0), (9.0, *(1.0,) * 7)
    parts = dict.fromkeys(results.PARTS, (0.0,) * 8) | {"load": fast, "copy": slow}
    step = tuple(a + b for a, b in zip(fast, slow, strict=True))
    found = replace(PROFILE, parts=parts, step=step)
    assert found.covered == pytest.approx(1)
    assert found.typical("step") == 2.0


@pytest.mark.parametrize(
    ("timeline", "largest", "share"),
    [
        # A lane alone is one step among many: the parts of them all say more.
        ((Span(HOST, "load", 0.0, 9.0),), "copy", 0.4),
        (
            (Span(HOST, "load", 0.0, 1.0), Span(DEVICE, "backward", 1.0, 4.0)),
            "backward",
            0.75,
        ),
    ],
)
def test_the_part_that_is_named_is_the_longest_that_is_drawn(timeline, largest, share):
    """With its share of the drawn step, whatever else was measured."""
    parts = {part: (1.0 + (part == "copy"),) * 8 for part in results.PARTS}
    parts["optimizer"] = (0.0,) * 8
    found = replace(PROFILE, parts=parts, step=(5.0,) * 8, timeline=timeline)
    assert (found.largest, found.share) == (largest, pytest.approx(share))
    bars = {span.part: span.end - span.start for span in found.spans}
    assert (
        bars[found.largest]
        == max(bars.values())
        == pytest.approx(found.share * found.seconds)
    )
