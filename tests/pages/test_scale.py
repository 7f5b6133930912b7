"""The Scale page: several ranks, a batch that they share, and what it costs."""

import re
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core.scale.results import Step
from core.ui import figures
from core.ui.scale import cost
from tests import samples
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


def shown(name: str) -> AppTest:
    """A result as another machine brings it, drawn by the lab of this name."""

    def draw(name):
        from importlib import import_module

        from core.jobs.job import Job
        from core.scale.results import ParallelRun, RankEnd, RankLoss
        from tests import samples

        ends = (RankEnd(0, (RankLoss(0, 1, 2.3),), 64, "a1", 1.0, 9),) * 2
        run = ParallelRun(ends, 128, 10, "gloo", samples.PROCESSOR, samples.DATE)
        value, arguments = {
            "training": (run, (2, "sprites", "ann", 64, 1, None)),
            "gradients": (samples.GRADIENTS, (2, "sprites", "ann", 32)),
            "cost": (samples.COST, ("sprites", "ann", 64)),
        }[name]
        job = Job(name, name, arguments, "train", status="finished", value=value)
        lab = import_module(f"core.ui.scale.{name}")
        lab.result(job, *["just show me"] * (name == "cost"))

    at = AppTest.from_function(draw, args=(name,), default_timeout=60).run()
    assert not at.exception
    assert len(at.get("vega_lite_chart")) == 1
    return at


@pytest.mark.parametrize(
    ("lab", "said"),
    [
        ("gradients", "**Equal, within rounding**"),
        ("cost", "1.20 times the speed of one, 60% of the ideal 2×"),
        (
            "cost",
            "**It doesn't pay here**: 1 rank (2 threads) is 1.11× as fast as 2 ranks "
            "(1 thread each).",
        ),
        ("cost", "They share 2 cores."),
    ],
)
def test_what_was_found_is_said(lab, said):
    """Charts and sentences for results as another machine brings them."""
    at = shown(lab)
    assert said in texts(at.markdown)
    assert not metrics(at)


@pytest.mark.parametrize("lab", ["training", "gradients", "cost"])
def test_figures_say_where_they_come_from(lab, monkeypatch):
    """Ranks, backend and device, also where they are those of this machine."""
    monkeypatch.setattr(figures, "elsewhere", lambda *_: "")
    caption = texts(shown(lab).caption)
    assert re.search(r"\branks\b", caption)
    assert re.search(r"\bgloo\b", caption)
    assert samples.PROCESSOR.device_name in caption


@pytest.mark.parametrize(
    ("one", "two", "said"),
    [
        ((1.0,) * 3, (2.0,) * 3, "1 rank (1 thread) is 2.0× as fast as 2 ranks"),
        ((1.0,) * 3, (9.0, 2.0, 2.0), "1 rank (1 thread) is faster than 2 ranks"),
        ((3.0,) * 3, (2.0,) * 3, "2 ranks (1 thread each) are 1.50× as fast as 1 rank"),
        ((9.0, 3.0, 3.0), (2.0,) * 3, "2 ranks (1 thread each) are faster than 1 rank"),
        ((1.0, 3.0, 2.0), (2.0,) * 3, "**Too close to call**"),
    ],
)
def test_the_verdict_tells_by_how_much(one, two, said):
    """Whoever wins; without a figure where the repeats disagree on it."""
    steps = (Step(1, 1, one), Step(2, 1, two, two))
    assert said in cost.verdict(replace(samples.COST, steps=steps))


@pytest.mark.parametrize(
    ("backend", "said", "instead"),
    [
        ("CPU", "", False),
        ("CUDA", "the app gives a run only one", True),
        ("ROCm", "Without a GPU for each rank", True),
        ("MPS", "needs GPUs from NVIDIA or AMD", False),
    ],
)
@pytest.mark.parametrize("lab", ["training", "gradients", "cost"])
def test_beside_a_gpu_it_is_said_why_ranks_are_on_the_cpu(lab, backend, said, instead):
    """In each tab; the line that would use GPUs stands in the first."""

    def draw(name, backend):
        from importlib import import_module

        from tests import samples

        lab = import_module(f"core.ui.scale.{name}")
        lab.draw(samples.machine(backend))

    at = AppTest.from_function(draw, args=(lab, backend), default_timeout=60).run()
    text = at.markdown[0].value
    assert said in text
    assert ("`torchrun` line below" in text) == (instead and lab == "training")
