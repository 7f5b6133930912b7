import re
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core.lessons.scale import cost_page
from core.lessons.scale.data_parallel_page import words
from core.lessons.scale.scale_result import ParallelRun, RankEnd, RankLoss
from core.ui import figures
from core.ui.guess import RIGHT
from tests.app import samples
from tests.app.pages.walk import (
    metrics,
    open_page,
    press,
    show_lab,
    status,
    texts,
    wait,
)
from tests.app.samples import GRADIENTS

PAGE = "pages/9_Scale.py"
END = RankEnd(0, (RankLoss(0, 1, 2.3),), 64, "a1", 1.0, 9)
RUN = ParallelRun((END, END), 128, 10, "gloo", samples.PROCESSOR, samples.DATE)
RESULTS = {
    "data_parallel": (RUN, (2, "sprites", "ann", 64, 1, None)),
    "gradients": (GRADIENTS, (2, "sprites", "ann", 32)),
    "cost": (samples.COST, ("sprites", "ann", 64)),
}


def test_ranks_train_one_model(engine):
    at = open_page(PAGE)
    assert re.search(r"\b1: 32\b", texts(at.markdown))  # images in its first batch
    at.selectbox(key="ranks_task").set_value("sprites").run()
    at = press(at, engine, "run_ranks", "core.lessons.scale.data_parallel:run")
    value = engine.jobs("core.lessons.scale.data_parallel:run")[-1].value
    text = texts(at.markdown)
    assert re.search(r"\b6,000\b.+\b12,000\b.+\b32\b", text)
    assert value.agree
    assert text.count(value.ends[0].weights) == 1, "it is the model of all ranks"
    assert len(at.get("vega_lite_chart")) == 1


@pytest.mark.slow
def test_a_killed_rank_is_a_sentence_and_the_losses_until_then_stay(engine):
    at = open_page(PAGE)
    at.selectbox(key="ranks_task").set_value("sprites").run()
    at.toggle(key="ranks_die").set_value(True).run()
    at.button(key="run_ranks").click().run()
    job = wait(engine, engine.jobs("core.lessons.scale.data_parallel:run")[-1].id)
    at.run()
    assert job.status == "failed"
    assert re.search(r"\b1 of 2\b", texts(at.error))
    assert words("data_parallel.killed", rank=1, step=100) in texts(at.markdown)
    assert status(at)
    assert len(at.get("vega_lite_chart")) == 1
    assert not at.exception


def test_the_switch_to_kill_rank_1_waits_for_a_second_rank():
    at = open_page(PAGE)
    at.selectbox(key="ranks").set_value(1).run()
    assert at.toggle(key="ranks_die").disabled


def test_the_order_is_shown_after_a_guess():
    at = open_page(PAGE, tab="A new order")
    assert not at.get("vega_lite_chart")
    at.radio(key="set_epoch_guess").set_value("In the same order as before").run()
    assert RIGHT in texts(at.success)
    twice = words("sampler.twice").rpartition("}")[2]
    assert twice in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 1


def show_result(lab: str) -> AppTest:
    value, arguments = RESULTS[lab]
    at = show_lab(lab, value, arguments=arguments)
    assert len(at.get("vega_lite_chart")) == 1
    return at


@pytest.mark.parametrize(
    ("lab", "told"),
    [
        ("gradients", [f"{GRADIENTS.shares[0].difference:.1e}"]),
        (
            "cost",
            [
                r"2 ranks\*\*: 60%.+\b2×",  # 1.20 times as fast, says the finding
                r"4 ranks\*\*: 0\.50 times",
                r"1 rank \(2 threads\).+\b1\.11\b.+2 ranks \(1 thread each\)",
                r"\b2 cores\b",  # which the ranks share
            ],
        ),
    ],
)
def test_the_result_is_put_into_words(lab, told):
    at = show_result(lab)
    for part in told:
        assert re.search(part, texts(at.markdown))
    assert not metrics(at)


def test_no_two_sentences_compare_the_same_ranks():
    one, _, *several = samples.COST.steps  # as on a single core
    assert cost_page.verdict(samples.COST)
    assert not cost_page.verdict(replace(samples.COST, steps=(one, *several)))


@pytest.mark.parametrize("lab", RESULTS)
def test_figures_say_where_they_come_from(lab, monkeypatch):
    monkeypatch.setattr(figures, "elsewhere", lambda *_: "")
    caption = texts(show_result(lab).caption)
    assert re.search(r"\branks\b", caption)
    assert re.search(r"\bgloo\b", caption)
    assert samples.PROCESSOR.device_name in caption


@pytest.mark.parametrize(
    ("backend", "key", "instead"),
    [
        ("CPU", "on_cpu.CPU", False),
        ("CUDA", "on_cpu.CUDA", True),
        ("ROCm", "on_cpu.ROCm", True),
        ("MPS", "no_nccl", False),
    ],
)
def test_beside_a_gpu_it_is_said_why_ranks_are_on_the_cpu(backend, key, instead):
    """In each tab; the line that would use GPUs stands in the first."""

    def draw(backend):
        from tests.app import samples
        from tests.app.pages.walk import labs

        for lab in labs("pages/9_Scale.py"):
            lab.draw(samples.machine(backend))

    at = AppTest.from_function(draw, args=(backend,), default_timeout=60).run()
    assert not at.exception
    assert texts(at.markdown).count(words(key)) >= 3
    assert texts(at.markdown).count("`torchrun` command below") == instead
