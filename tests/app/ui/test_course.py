import re

import pytest

from core.ui import course
from core.ui.course import HOME, LESSONS, PAGES, of_address, page
from tests.app.pages.walk import open_page
from tests.process import ROOT


def test_every_page_is_in_the_course() -> None:
    numbered = {int(path.name.split("_")[0]): path for path in ROOT.glob("pages/*.py")}
    files = [f"pages/{numbered[number].name}" for number in sorted(numbered)]
    assert files == [page.file for page in PAGES if page is not HOME]
    assert [page(entry.title) for entry in PAGES] == list(PAGES)
    assert (ROOT / HOME.file).exists()


def test_every_lesson_ends_with_pages_of_pytorch() -> None:
    addresses = [address for lesson in LESSONS for address in lesson.read.values()]
    assert all(2 <= len(lesson.read) <= 5 for lesson in LESSONS)
    assert len(set(addresses)) == len(addresses)
    for address in addresses:
        assert re.fullmatch(
            r"https://docs\.pytorch\.org/(docs/stable|tutorials)/[\w./]+\.html(#[\w.]+)?",
            address,
        )


def test_a_job_belongs_to_the_lesson_that_starts_it() -> None:
    assert of_address("core.lessons.speed.copies:measure") == page("Speed")
    assert of_address("core.training:run") == page("Train")
    assert of_address("core.devices:describe") is None


@pytest.mark.usefixtures("engine")
def test_a_link_is_what_streamlit_would_make_of_the_file(monkeypatch):
    drawn = [link.proto for link in open_page("pages/3_Train.py").get("page_link")]
    monkeypatch.setattr(course, "_streamlit_page", str)
    by_file = [link.proto for link in open_page("pages/3_Train.py").get("page_link")]
    assert drawn == by_file
    titles = {page.title for page in PAGES}
    assert {link.page for link in drawn} <= titles | {""}
    assert len({link.page_script_hash for link in drawn}) > 10
