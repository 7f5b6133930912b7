import xml.etree.ElementTree as ET

from core.lessons.model import batch_steps_page
from core.lessons.model.model_result import Group
from core.ui.charts import LIGHT
from tests.app.samples import CARD, PROCESSOR

MODEL = Group("model", "cuda:0", 438_000)
GRADIENTS = Group("gradients", "cuda:0", 438_000)
BATCH = (Group("inputs", "cuda:0", 50_176), Group("targets", "cuda:0", 512))
STATE = (Group("optimizer state", "cuda:0", 875_000), Group("step counts", "cpu", 24))


def picture(now: tuple[Group, ...], before: tuple[Group, ...] = ()) -> ET.Element:
    """The picture of a machine with a card; it is well-formed."""
    return ET.fromstring(batch_steps_page.picture(now, before, CARD, LIGHT))


def test_a_tensor_stands_where_it_is():
    text = batch_steps_page.in_words((MODEL, *BATCH, *STATE), one_memory=False)
    host, device = text.split(". ")
    assert "step counts (24 B)" in host
    assert "model" not in host
    assert "targets (512 B)" in device
    texts = {part.text for part in picture((MODEL, *BATCH, *STATE)).iter()}
    assert {"model", "inputs", "targets", "optimizer state", "step counts"} <= texts


def test_the_batch_is_seen_to_move_once():
    first, second = picture((MODEL, *BATCH)), picture((MODEL, *BATCH), (MODEL, *BATCH))
    moves = "{http://www.w3.org/2000/svg}animateTransform"
    assert [len([*svg.iter(moves)]) for svg in (first, second)] == [2, 0]
    texts = [[part.text for part in svg.iter()] for svg in (first, second)]
    assert [text.count("512 B") for text in texts] == [2, 1]  # the arrow has it too


def test_what_is_gone_leaves_its_place():
    after = picture((MODEL,), (MODEL, GRADIENTS))
    (name,) = [element for element in after.iter() if element.text == "gradients"]
    assert name.get("fill") == LIGHT.quiet


def test_where_both_are_one_memory_it_is_shown_as_it_would_be():
    group = Group("model", "cpu", 438_000)
    text = batch_steps_page.in_words((group,), one_memory=True)
    host, device = text.split(". ")
    assert "model (438 kB)" in device
    assert "model" not in host
    drawn = batch_steps_page.picture((group,), (group,), PROCESSOR, LIGHT)
    assert "stroke-dasharray" in drawn
