from dataclasses import replace
from types import SimpleNamespace

from core.ui import figures
from tests.app import samples


def test_only_what_was_measured_elsewhere_says_where(monkeypatch):
    here = samples.machine("CPU")
    engine = SimpleNamespace(machine=lambda: here)
    monkeypatch.setattr(figures, "engine", lambda: engine)
    (cpu,) = here.devices
    assert figures.elsewhere(cpu, None) == ""
    sentence = figures.elsewhere(cpu, replace(cpu, threads=7))
    assert "7 CPU threads" in sentence
    engine.machine = lambda: None
    assert cpu.device_name in figures.elsewhere(cpu)
