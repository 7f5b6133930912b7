"""The way through the causes."""

from xml.etree import ElementTree

import pytest

from core.lessons.device import diagnosis_page as diagnosis
from core.lessons.device.device_result import Diagnosis
from core.lessons.device.diagnosis import CAUSES
from core.ui.charts import DARK


@pytest.mark.parametrize("cause", [each.__name__ for each in CAUSES])
def test_the_way_ends_at_the_cause_that_was_found(cause):
    found = Diagnosis("broken", "", "", "", cause=cause)
    ways = diagnosis.branches(found)
    end = next(at for at, each in enumerate(ways) if each.yes)
    assert [each.yes for each in ways].count(True) == 1
    assert [each.asked for each in ways] == [at <= end for at in range(len(ways))]
    drawn = ElementTree.fromstring(diagnosis.picture(found, DARK))
    bold = [each.text for each in drawn.iter() if each.get("font-weight") == "bold"]
    assert cause.replace("_", " ").replace("gpu", "GPU") in bold
    assert bold.count("no") == end
