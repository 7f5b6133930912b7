"""The Scale page: several ranks, a batch that they share, and what it costs."""

import pytest
from streamlit.testing.v1 import AppTest

from core.ui.scale import cost, gradients
from tests.pages.walk import metrics, open_page, press, status, texts, wait

PAGE = "pages/7_Scale.py"


def test_ranks_train_one_model(engine):
    """Before it, the first batch as they share it; then a line for each, one hash."""
    at = open_page(PAGE)
    assert "Rank 1: 32 images of the first batch" in texts(at.markdown)
    at.selectbox(key="ranks_task").set_value("sprites").run()
    at = press(at, engine, "run_ranks", "core.scale.data_parallel:run")
    said = texts(at.markdown)
    assert "each rank trained on 6,000 of the 12,000, 32 in each step" in said
    assert "**The same model**" in said
    assert len(at.get("vega_lite_chart")) == 1


def test_a_killed_rank_is_a_sentence(engine):
    """And what the ranks had told until then stays on the page."""
    at = open_page(PAGE)
    at.selectbox(key="ranks_task").set_value("sprites").run()
    at.toggle(key="ranks_die").set_value(True).run()
    at.button(key="run_ranks").click().run()
    job = wait(engine, engine.jobs("core.scale.data_parallel:run")[-1].id)
    at.run()
    assert job.status == "failed"
    assert "Rank 1 of 2 died" in texts(at.error)
    assert status(at) == "The run failed."
    assert len(at.get("vega_lite_chart")) == 1
    assert not at.exception


def test_one_rank_has_nobody_to_lose():
    """The switch to kill rank 1 waits for a second rank."""
    at = open_page(PAGE)
    at.selectbox(key="ranks").set_value(1).run()
    assert at.toggle(key="ranks_die").disabled


def test_the_order_is_shown_after_a_guess():
    """Both ways; the guess is held against what the sampler drew."""
    at = open_page(PAGE, tab="A new order")
    assert not at.get("vega_lite_chart")
    at.radio(key="set_epoch_guess").set_value("The same as the first").run()
    assert "You guessed right" in texts(at.success)
    assert "is dealt again at the end" in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 1


@pytest.mark.parametrize(
    ("lab", "said"),
    [
        (gradients, "**Equal, within rounding**"),
        (cost, "1.20 times the speed of one, 60% of the ideal 2×"),
        (cost, "**It doesn't pay here**: 1 rank (2 threads) is faster than 2 ranks"),
        (cost, "They share 2 cores."),
    ],
)
def test_what_was_found_is_said(lab, said):
    """Charts and sentences for results as another machine brings them."""

    def draw(name):
        from importlib import import_module

        from core.jobs.job import Job
        from tests import samples

        value, arguments = {
            "gradients": (samples.GRADIENTS, (2, "sprites", "ann", 32)),
            "cost": (samples.COST, ("sprites", "ann", 64)),
        }[name]
        job = Job(name, name, arguments, "train", status="finished", value=value)
        lab = import_module(f"core.ui.scale.{name}")
        lab.result(job, *["just show me"] * (name == "cost"))

    name = lab.__name__.rpartition(".")[2]
    at = AppTest.from_function(draw, args=(name,), default_timeout=60).run()
    assert not at.exception
    assert len(at.get("vega_lite_chart")) == 1
    assert said in texts(at.markdown)
    assert not metrics(at)
