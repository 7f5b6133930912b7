import re

import pytest

from core.ui import course
from core.ui.course import HOME, LESSONS, PAGES, of_address, page
from tests.pages.walk import open_page
from tests.process import ROOT


def test_every_page_is_in_the_course() -> None:
    numbered = {int(path.name.split("_")[0]): path for path in ROOT.glob("pages/*.py")}
    files = [f"pages/{numbered[number].name}" for number in sorted(numbered)]
    assert files == [each.file for each in PAGES if each is not HOME]
    assert [page(each.title) for each in PAGES] == list(PAGES)
    assert (ROOT / HOME.file).exists()


def test_every_lesson_ends_with_pages_of_pytorch() -> None:
    addresses = [address for each in LESSONS for address in each.read.values()]
    assert all(2 <= len(each.read) <= 5 for each in LESSONS)
    assert len(set(addresses)) == len(addresses)
    for address in addresses:
        assert re.fullmatch(
            r"https://docs\.pytorch\.org/(docs/stable|tutorials)/[\w./]+\.html(#[\w.]+)?",
            address,
        )


def test_a_lesson_is_done_once_all_its_questions_are_answered_right() -> None:
    first, second = LESSONS[:2]
    assert not first.is_done({})
    given: dict[str, list[str]] = {}
    for count, each in enumerate(first.questions):
        assert not first.is_done(given)
        assert first.solved(given) == count
        wrong = next(answer for answer in each.answers if answer != each.right)
        given[each.key] = [wrong, each.right, wrong]
    assert first.is_done(given)
    assert not second.is_done(given)


def test_a_job_belongs_to_the_lesson_that_starts_it() -> None:
    assert of_address("core.lessons.speed.copies:measure") == page("Speed")
    assert of_address("core.training:run") == page("Train")
    assert of_address("core.devices:describe") is None


@pytest.mark.usefixtures("engine")
def test_a_link_is_what_streamlit_would_make_of_the_file(monkeypatch):
    drawn = [each.proto for each in open_page("pages/3_Train.py").get("page_link")]
    monkeypatch.setattr(course, "_streamlit_page", str)
    by_file = [each.proto for each in open_page("pages/3_Train.py").get("page_link")]
    assert drawn == by_file
    titles = {each.title for each in PAGES}
    assert {each.page for each in drawn} <= titles | {""}
    assert len({each.page_script_hash for each in drawn}) > 10
