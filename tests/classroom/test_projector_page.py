import inspect
import re
from pathlib import Path
from types import SimpleNamespace

from core.classroom import projector_page
from core.ui import paper

WALL = Path(projector_page.__file__).with_name("wall.html")
EVIL = "<script>alert(1)</script>"


def test_each_part_that_the_wall_draws_is_in_its_template():
    drawn = re.findall(r'_part\(\s*"(\w+)"', inspect.getsource(projector_page))
    parts = paper.template(WALL).module
    assert {*drawn} == {"head", "side", "tally", "line"}
    assert all(hasattr(parts, part) for part in drawn)


def test_the_wall_has_a_title_for_which_the_page_waits():
    shown = SimpleNamespace(name="Monday", is_open=False)
    head = paper.template(WALL).module.head(shown, ["a line"], "", "", "", 0)
    assert "Monday" in head.partition("<h1")[2].partition("</h1>")[0]


def test_nothing_on_the_wall_that_somebody_wrote_is_html():
    parts = paper.template(WALL).module
    written = parts.side([(EVIL, EVIL, True)], [EVIL]) + parts.line(EVIL)
    written += parts.tally(EVIL, [(EVIL, 3)], (EVIL, EVIL), "red")
    assert "&lt;script" in written
    assert "<script" not in written
