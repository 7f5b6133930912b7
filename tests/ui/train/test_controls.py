"""core.ui.train.controls: what is asked depends on what was chosen before."""

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Toggle

from core.jobs.roster import Host
from core.ui import hosts


def page(feed: str, pinned: bool, devices: list[str]) -> None:
    import streamlit as st

    from core.config import RunConfig
    from core.ui.train import controls

    loader = RunConfig(
        task="sprites", feed=feed, pin_memory=pinned, non_blocking=False, num_workers=2
    )
    controls.use(loader)
    st.session_state[controls.OPEN] = True
    controls.draw(devices, folded=False)
    print(controls.chosen())


def toggles(feed: str, pinned: bool, *devices: str) -> dict[str | None, Toggle]:
    at = AppTest.from_function(
        page, default_timeout=60, args=(feed, pinned, [*devices, "cpu"])
    ).run()
    assert not at.exception
    return {each.key: each for each in at.toggle}


def test_a_setting_is_asked_for_where_it_has_a_meaning(capsys):
    """Pinning where there is a loader, how copies wait where they are pinned."""
    both = {"pin_memory", "non_blocking"}
    assert toggles("dataloader", True, "cuda").keys() == both | {"augment"}
    assert "non_blocking=False" in capsys.readouterr().out
    assert toggles("dataloader", False, "cuda").keys() == {"pin_memory", "augment"}
    assert "non_blocking=True" in capsys.readouterr().out
    assert toggles("memory", True, "cuda").keys() == {"augment"}
    assert "num_workers=0, pin_memory=False" in capsys.readouterr().out


def test_a_machine_is_asked_for_where_there_are_several(monkeypatch):
    """Any of them, if nobody says; what it is called is what the run is for."""

    def drawn() -> AppTest:
        inputs = ("memory", False, ["cpu"])
        return AppTest.from_function(page, default_timeout=60, args=inputs).run()

    assert "host" not in {each.key for each in drawn().selectbox}
    found = [Host(name, name, 1, True) for name in ("one", "two")]
    monkeypatch.setattr(hosts, "several", lambda: found)
    choice = drawn().selectbox(key="host")
    assert (choice.label, choice.options) == ("Machine", ["Any", "one", "two"])
    assert (choice.value, choice.disabled) == ("", False)


def test_pinned_memory_needs_an_accelerator():
    """Where there is none, the switches can't be turned, and one says why."""
    found = toggles("dataloader", True)
    assert found["pin_memory"].disabled
    assert found["non_blocking"].disabled
    assert "no accelerator here" in found["pin_memory"].label
