import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import core.lessons
from core import registry
from core.jobs.job import Job
from core.jobs.measurements import KINDS
from core.store import codec
from core.ui import course, guess
from core.ui.lab import Lab
from tests.app.pages.walk import all_labs, labs, texts
from tests.process import ROOT

GUIDE = ROOT / "docs" / "adding-a-lab.md"
ADDRESS = "core.lessons.extra.sums:measure"


@pytest.fixture
def sums(tmp_path: Path) -> Iterator[Lab]:
    folder = tmp_path / "extra"
    folder.mkdir()
    text = GUIDE.read_text("utf-8").replace("core.lessons.speed", "core.lessons.extra")
    blocks = re.findall(r"```(?:python|toml)\n(.*?)```", text, re.DOTALL)
    names = ("sums_result.py", "sums.py", "sums_page.py", "words.toml")
    for name, block in zip(names, blocks, strict=True):
        (folder / name).write_text(block, "utf-8")
    (folder / "__init__.py").touch()
    core.lessons.__path__.append(str(folder.parent))
    lab = import_module("core.lessons.extra.sums_page").SumsLab()
    with pytest.MonkeyPatch.context() as patch:
        result, job = re.findall(r'^"sums": "(.*)",$', text, re.MULTILINE)
        patch.setitem(registry.CLASSES, "sums", result)
        patch.setitem(registry.JOBS, "sums", job)
        yield lab
    core.lessons.__path__.remove(str(folder.parent))
    Lab.kinds.pop()


def test_the_lab_of_the_guide_is_measured_and_judged(sums):
    assert (sums.title, sums.address) == ("Sums", ADDRESS)
    assert ADDRESS in KINDS
    assert registry.name_of_job(ADDRESS) == "sums"
    value = import_module("core.lessons.extra.sums").measure("cpu")
    assert codec.loads(codec.dumps(value), "The result") == value
    job = Job("id", ADDRESS, ("cpu",), "train", status="finished", value=value)

    def draw(lab, job, guessed):
        lab.show(job, guessed)

    hidden = AppTest.from_function(draw, args=(sums, job, None)).run()
    assert len(hidden.info) == 1
    assert not hidden.dataframe
    at = AppTest.from_function(draw, args=(sums, job, "At once")).run()
    assert not at.exception
    worths = [guess.worth("At once", fits) for fits in ((), ("At once",))]
    assert any(worth in texts([*at.info, *at.success]) for worth in worths)
    assert re.search(r"\bn = 5\b", texts(at.caption))
    assert [button.key for button in at.download_button] == ["sums_csv", "sums_json"]


def test_every_lab_stands_on_one_page():
    for file in ROOT.glob("core/lessons/*/*_page.py"):
        import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    listed = [type(lab) for lab in all_labs()]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(Lab.kinds)


def test_a_page_lists_the_labs_of_its_own_lesson():
    for page in course.PAGES:
        for lab in labs(page.file):
            assert course.of_address(lab.address) is page


def test_every_lab_has_an_address_a_key_and_words_of_its_own():
    """Two with one of these would show each other's jobs."""
    labs = all_labs()
    assert len({lab.address for lab in labs}) == len({lab.key for lab in labs})
    assert len({lab.key for lab in labs}) == len(labs)
    for lab in labs:
        assert lab.words["start"]
