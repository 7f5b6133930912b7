from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from core.config import FAST, PLAIN, RunConfig
from core.jobs.hosts import Host
from core.lessons.train import controls_page
from core.ui import hosts
from tests.app.runs.made_up import run
from tests.figures import figures


def page(feed: str, pinned: bool, devices: list[str]) -> None:
    import streamlit as st

    from core.config import RunConfig
    from core.lessons.train import controls_page as controls

    loader = RunConfig(
        task="sprites", feed=feed, pin_memory=pinned, non_blocking=False, num_workers=2
    )
    controls.use(loader)
    st.session_state[controls.OPEN] = True
    controls.draw(devices)
    print(controls.chosen())


def drawn(feed: str, pinned: bool, *devices: str) -> AppTest:
    arguments = (feed, pinned, [*devices, "cpu"])
    at = AppTest.from_function(page, default_timeout=60, args=arguments).run()
    assert not at.exception
    return at


@pytest.mark.parametrize(
    ("feed", "pinned", "toggles", "chosen"),
    [
        ("dataloader", True, {"pin_memory", "non_blocking"}, "non_blocking=False"),
        ("dataloader", False, {"pin_memory"}, "non_blocking=True"),
        ("memory", True, set(), "num_workers=0, pin_memory=False"),
    ],
)
def test_a_setting_is_asked_for_where_it_has_a_meaning(
    feed, pinned, toggles, chosen, capsys
):
    at = drawn(feed, pinned, "cuda")
    always = {"augment", "item_each_step"}
    assert {toggle.key for toggle in at.toggle} == always | toggles
    assert chosen in capsys.readouterr().out


def tuned_page(fast: bool) -> None:
    import streamlit as st

    from core.config import RunConfig
    from core.lessons.train import controls_page as controls

    controls.use(RunConfig.with_recipe(task="sprites", model="cnn", fast=fast))
    st.session_state[controls.OPEN] = True
    controls.draw(["cpu"])
    print(controls.chosen())


@pytest.mark.parametrize("fast", [False, True])
def test_what_only_the_fast_setting_changes_is_asked_with_it(fast, capsys):
    at = AppTest.from_function(tuned_page, default_timeout=60, args=(fast,)).run()
    assert not at.exception
    asked = {widget.key for widget in (*at.toggle, *at.number_input)}
    assert asked & PLAIN.keys() == (PLAIN.keys() if fast else set())
    config = RunConfig.with_recipe(task="sprites", model="cnn", fast=fast)
    assert str(config) in capsys.readouterr().out


def test_a_machine_is_asked_for_where_there_are_several(monkeypatch):
    assert "host" not in {box.key for box in drawn("memory", False).selectbox}
    several = [Host(name, name, 1, True) for name in ("one", "two")]
    monkeypatch.setattr(hosts, "several", lambda: several)
    choice = drawn("memory", False).selectbox(key="host")
    assert (choice.label, choice.options) == ("Machine", ["Any", "one", "two"])
    assert (choice.value, choice.disabled) == ("", False)


def test_pinned_memory_needs_an_accelerator():
    at = drawn("dataloader", True)
    assert at.toggle(key="pin_memory").disabled
    assert at.toggle(key="non_blocking").disabled


def fast_page(compared: tuple[str, ...]) -> None:
    from core.config import RunConfig
    from core.lessons.train import controls_page as controls

    controls.use(RunConfig.with_recipe(task="sprites"))
    controls.fast_setting(compared)


def test_the_fast_setting_promises_nothing_until_both_have_run(monkeypatch):
    model = {"task": "sprites", "model": "ann"}
    slow, fast, slowed = (
        run(name, seconds, 0.86, **vars(RunConfig.with_recipe(fast=is_fast, **model)))
        for name, seconds, is_fast in (("1", 3, False), ("2", 1, True), ("3", 6, True))
    )
    views = {run.job: run for run in (slow, fast, slowed)}
    monkeypatch.setattr(controls_page.runs, "view", views.get)
    monkeypatch.setattr(controls_page, "visitor", lambda: "me")
    monkeypatch.setattr(controls_page, "link", lambda *_, **__: None)
    jobs = [slow.job]
    engine = SimpleNamespace(jobs=lambda *_: jobs)
    monkeypatch.setattr(controls_page, "engine", lambda: engine)

    def told(*compared: str) -> str:
        at = AppTest.from_function(fast_page, default_timeout=60, args=(compared,))
        return at.run().markdown[0].value

    assert controls_page.words("is_it") in told()
    jobs.append(fast.job)
    assert figures(told())[:3] == ["1.0", "85", "3.0"]
    assert figures(told("another", fast.id))[:3] == ["1.0", "85", "3.0"]
    changes = controls_page.words("fast", batch=FAST["ann"]["batch_size"])
    assert told(slow.id, fast.id) == f":small[{changes}]"  # the page compares these
    jobs.append(slowed.job)
    assert "6.0" in figures(told(slow.id, fast.id))
