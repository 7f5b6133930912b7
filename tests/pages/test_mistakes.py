"""The Mistakes page: what is run, what is searched, what is said."""

import pytest
from streamlit.testing.v1 import AppTest

from core.jobs.engine import Engine
from core.jobs.limits import Limits
from core.mistakes.catalogue import MISTAKES
from core.ui import mistakes
from tests.pages.walk import open_page, texts, wait


def make(at: AppTest, engine: Engine, slug: str) -> None:
    """Press the button of a mistake, wait until it has been run, draw the page."""
    at.button(key=f"run_mistake_{slug}").click().run()
    wait(engine, engine.jobs(mistakes.RUN)[-1].id)
    at.run()


def find_mistake(at: AppTest, text: str) -> AppTest:
    """Paste a text into the search of the Mistakes page."""
    at.text_area(key="pasted_error").set_value(text)
    (find,) = [each for each in at.button if each.label == "Find the mistake"]
    return find.click().run()


def first_mistake(at: AppTest) -> str:
    """The slug of the first card."""
    keys = [each.key for each in at.button if each.key.startswith("run_mistake_")]
    return keys[0].removeprefix("run_mistake_")


def test_all_mistakes_can_be_run_from_their_page():
    """There is one button for each mistake, and none stands twice."""
    at = open_page("pages/8_Mistakes.py")
    keys = [each.key for each in at.button if each.key.startswith("run_mistake_")]
    assert sorted(keys) == sorted(f"run_mistake_{each.slug}" for each in MISTAKES)


def test_a_loud_mistake_shows_its_message_and_its_fix(engine):
    """Run it: the live message, the marked line, and the fix; kept for later."""
    at = open_page("pages/8_Mistakes.py")
    make(at, engine, "numpy_requires_grad")
    for _ in range(2):
        assert not at.exception
        assert "requires grad" in texts(at.error)
        assert "It returns" in texts(at.success)
        marked = [each.value for each in at.code if "# ^^^" in each.value]
        assert "return outputs.numpy().mean()\n# ^^^" in marked[0]
        at.switch_page("home.py").run()
        at.switch_page("pages/8_Mistakes.py").run()


def test_a_silent_mistake_shows_both_figures(engine):
    """Run it: two figures under one label, and where they were measured."""
    at = open_page("pages/8_Mistakes.py")
    make(at, engine, "list_never_trained")
    assert [each.value for each in at.metric] == ["650", "109,386"]
    assert "torch" in texts(at.caption)
    assert not at.error


def test_a_pasted_error_brings_its_mistake_to_the_top():
    """The mistake that fits comes first, with its code; the others stay below."""
    at = open_page("pages/8_Mistakes.py", mistake="out_of_memory")
    assert first_mistake(at) == "out_of_memory"
    find_mistake(at, "IndexError: Target 37 is out of bounds.")
    assert not at.exception
    assert first_mistake(at) == "label_outside_classes"
    assert "mistake" not in at.query_params
    assert any("first_label=1" in each.value for each in at.code)


@pytest.mark.parametrize("text", ["ModuleNotFoundError: No module named 'x'", "$ <b>"])
def test_an_error_that_is_none_of_them_is_told_so(text):
    """Where none fits the page says so, and shows all as before."""
    at = find_mistake(open_page("pages/8_Mistakes.py"), text)
    assert not at.exception
    assert "None of the" in texts(at.info)
    assert first_mistake(at) == MISTAKES[0].slug


def test_an_unknown_mistake_in_the_address_is_a_notice():
    """A link to a mistake that there is not says so, and all others are shown."""
    at = open_page("pages/8_Mistakes.py", mistake="<b>nosuch</b>")
    assert "not on this page" in texts(at.warning)
    assert first_mistake(at) == MISTAKES[0].slug


def test_a_mistake_that_is_refused_is_a_sentence(monkeypatch, engine):
    """The card says why, loses nothing, and the mistake can be run again."""
    at = open_page("pages/8_Mistakes.py")
    with monkeypatch.context() as patch:
        patch.setattr(engine, "_limits", Limits(max_waiting_jobs=0))
        at.button(key="run_mistake_cuda_hard_coded").click().run()
    assert not at.exception
    assert "0 jobs are waiting already" in texts(at.warning)
    make(at, engine, "cuda_hard_coded")
    assert not at.warning
    assert at.success


def test_a_class_that_makes_mistakes_at_once_gets_places(monkeypatch, engine):
    """Who waits reads so, and a reload finds the place and then the outcome again."""
    at = open_page("pages/8_Mistakes.py")
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "_dispatch", lambda _: None)  # the lab is busy
        at.button(key="run_mistake_cuda_hard_coded").click().run()
        at.switch_page("home.py").run()
        at.switch_page("pages/8_Mistakes.py").run()
        assert "Place 1 in the queue, you are next" in texts(at.info)
        assert at.button(key="run_mistake_cuda_hard_coded").disabled
        assert not at.button(key="run_mistake_numpy_requires_grad").disabled
    engine._dispatch()
    wait(engine, engine.jobs(mistakes.RUN)[-1].id)
    assert at.run().success
