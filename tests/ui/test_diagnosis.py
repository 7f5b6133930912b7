"""core.ui.diagnosis: the way through the causes."""

from xml.etree import ElementTree

import pytest

from core.machine.diagnosis import CAUSES
from core.machine.results import Diagnosis
from core.ui import diagnosis
from core.ui.charts.base import DARK


@pytest.mark.parametrize("cause", [each.__name__ for each in CAUSES])
def test_the_way_ends_at_the_cause_that_was_found(cause):
    """Every question before it was answered with no, and none was asked after it."""
    found = Diagnosis("broken", "", "", "", cause=cause)
    ways = diagnosis.branches(found)
    end = next(at for at, each in enumerate(ways) if each.yes)
    assert [each.yes for each in ways].count(True) == 1
    assert [each.asked for each in ways] == [at <= end for at in range(len(ways))]
    drawn = ElementTree.fromstring(diagnosis.picture(found, DARK))
    bold = [each.text for each in drawn.iter() if each.get("font-weight") == "bold"]
    assert cause.replace("_", " ").replace("gpu", "GPU") in bold
    assert bold.count("no") == end
