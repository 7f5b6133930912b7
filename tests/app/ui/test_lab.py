import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import core.lessons
from core.jobs.job import Job
from core.jobs.measurements import KINDS
from core.ui.lab import Lab, all_labs, labs
from tests.app.pages.walk import texts

GUIDE = Path(__file__).parents[3] / "docs" / "adding-a-lab.md"
ADDRESS = "core.lessons.extra.sums:measure"


@pytest.fixture(scope="module")
def sums(tmp_path_factory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lessons") / "extra"
    folder.mkdir()
    text = GUIDE.read_text("utf-8").replace("core.lessons.speed", "core.lessons.extra")
    blocks = re.findall(r"```(?:python|toml)\n(.*?)```", text, re.DOTALL)
    names = ("sums.py", "sums_page.py", "words.toml")
    for name, block in zip(names, blocks, strict=True):
        (folder / name).write_text(block, "utf-8")
    (folder / "__init__.py").touch()
    core.lessons.__path__.append(str(folder.parent))
    (lab,) = labs("extra")
    yield lab
    core.lessons.__path__.remove(str(folder.parent))
    labs.cache_clear()
    Lab.__subclasses__().remove(type(lab))


def test_the_lab_of_the_guide_is_found_measured_and_judged(sums):
    assert (sums.title, sums.address) == ("Sums", ADDRESS)
    assert ADDRESS in KINDS
    value = import_module("core.lessons.extra.sums").measure("cpu")
    job = Job("id", ADDRESS, ("cpu",), "train", status="finished", value=value)

    def draw(lab, job, guessed):
        lab.show(job, guessed)

    hidden = AppTest.from_function(draw, args=(sums, job, None)).run()
    assert "hidden until you guess" in texts(hidden.info)
    assert not hidden.dataframe
    at = AppTest.from_function(draw, args=(sums, job, "At once")).run()
    assert not at.exception
    assert re.search("You guess(ed right|ed: at once)", texts([*at.info, *at.success]))
    assert "Median of n = 5 repeats" in texts(at.caption)
    assert [button.key for button in at.download_button] == ["sums_csv", "sums_json"]


def test_every_lab_has_an_address_a_key_and_words_of_its_own():
    """Two with one of these would show each other's jobs."""
    labs = all_labs()
    addresses, keys = ({getattr(lab, n) for lab in labs} for n in ("address", "key"))
    assert len(addresses) == len(keys)
    for lab in labs:
        assert lab.words["start"]
