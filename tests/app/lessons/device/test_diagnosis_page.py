from xml.etree import ElementTree

import pytest

from core.lessons.device import diagnosis_page
from core.ui.charts import DARK
from to_device.diagnose.diagnosis import CAUSES
from to_device.diagnose.machine import Diagnosis
from to_device.words import capitalized


@pytest.mark.parametrize("cause", [function.__name__ for function in CAUSES])
def test_the_way_ends_at_the_cause_that_was_found(cause):
    diagnosis = Diagnosis("broken", "", "", "", cause=cause)
    ways = diagnosis_page.branches(diagnosis)
    end = next(at for at, branch in enumerate(ways) if branch.yes)
    assert [branch.yes for branch in ways].count(True) == 1
    assert [branch.asked for branch in ways] == [at <= end for at in range(len(ways))]
    svg = ElementTree.fromstring(diagnosis_page.picture(diagnosis, DARK))
    bold = [part.text for part in svg.iter() if part.get("font-weight") == "bold"]
    assert capitalized(cause.replace("_", " ").replace("gpu", "GPU")) in bold
    assert bold.count("no") == end
