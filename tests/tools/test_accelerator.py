import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from core import devices
from core.jobs import measurements
from core.store.codec import dumps
from tests.app import samples
from tests.figures import figures
from tools.accelerator import __main__ as script
from tools.accelerator import ladder, record
from tools.accelerator.step import (
    Part,
    Results,
    Setting,
    SkipError,
    WrongError,
    work_through,
)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    device = devices.resolve("auto")
    return Setting(device, tmp_path, tiny=True, deadline=time.monotonic() + 60)


@pytest.fixture
def results(setting: Setting) -> Results:
    return again(setting)


def again(setting: Setting) -> Results:
    """As a second call reads what the first has found."""
    return Results(setting.folder / "step.json", setting.device, setting.tiny)


def said(results: Results) -> dict[str, str]:
    """Of each part that is not done, why."""
    return {
        name: part["said"]
        for name, part in results.parts.items()
        if part["status"] != "done"
    }


@pytest.mark.parametrize(
    ("step", "device"),
    [
        ("mistakes", "auto"),
        ("pages", "auto"),
        ("pages", "sim"),
        pytest.param("lesson", "auto", marks=pytest.mark.slow),
    ],
)
def test_a_step_comes_to_its_end(step: str, device: str, tmp_path: Path) -> None:
    script.work(step, tmp_path, True, 60.0, device)
    first, *more = script.summary(step, tmp_path / f"{step}.json", "").splitlines()
    assert first.split()[:2] == [step, "done"]
    said = [line.strip() for line in more if "nothing is timed" not in line]
    assert len(said) == (devices.accelerator() is None)
    assert all(line.startswith("Without an accelerator untried: ") for line in said)


def test_a_graphed_epoch_trains() -> None:
    split = ladder.datasets.load("sprites").train.first(2048)
    torch.manual_seed(0)
    made = ladder.graphed_epoch(split, devices.resolve("auto"), ladder.Kept())
    first, *_, last = (made.make().mean().item() for _ in range(4))
    assert last < first / 2


def skipped(*_: Any) -> None:
    raise SkipError("Not here.")


def test_a_record_is_made_of_the_pieces_there_are(
    setting: Setting, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ("core.lessons.speed.copies:measure", ("cpu",), samples.COPIES)
    piece = {"jobs": [dumps(job)]}
    pieces = dict.fromkeys(record.SECONDS, lambda: piece)
    monkeypatch.setattr(record.bench, "pieces", lambda *_: {**pieces, "memory": fail})
    record.run(setting, results)
    made = results.parts["record"]["found"]
    assert made["lacks"] == "memory"
    jobs = measurements.recorded(setting.folder)
    assert [job.value for job in jobs] == [samples.COPIES] * (len(pieces) - 1)


def fail() -> None:
    raise WrongError("It is wrong.", {"seen": 1})


def test_each_part_ends_as_it_ends(setting: Setting, results: Results) -> None:
    works = {
        "good": lambda: {"tensor": torch.ones(2), "bytes": b"12"},
        "wrong": fail,
        "broken": lambda: 1 / 0,
        "lacking": lambda: __import__("no_such_package"),
        "elsewhere": skipped,
        "not JSON": lambda: {(1, 2): 3},
    }
    parts = [Part(name, 1.0, work) for name, work in works.items()]
    work_through(parts, setting, results)
    status = {name: part["status"] for name, part in results.parts.items()}
    assert status == {
        "good": "done",
        "wrong": "failed",
        "broken": "failed",
        "lacking": "skipped",
        "elsewhere": "skipped",
        "not JSON": "failed",
    }
    assert said(results)["wrong"] == "It is wrong."
    assert "ZeroDivisionError" in said(results)["broken"]
    assert "no_such_package" in said(results)["lacking"]
    kept = again(setting).parts
    assert kept["good"]["found"] == {"tensor": [1.0, 1.0], "bytes": "2 bytes"}
    assert kept["wrong"]["found"] == {"seen": 1}


def test_a_second_call_goes_on_where_the_first_was(setting: Setting) -> None:
    made: list[str] = []
    first = again(setting)
    first.keep("done", "done")
    first.keep("hung", "begun")
    parts = [
        Part("sum", 0.0, partial(made.append, "sum"), last=True),
        *(
            Part(name, 0.0, partial(made.append, name))
            for name in ("done", "hung", "new")
        ),
    ]
    work_through(parts, setting, again(setting))
    assert made == ["new", "hung", "sum"]
    work_through(parts, setting, again(setting))
    assert made == ["new", "hung", "sum", "sum"]


def test_a_step_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = subprocess.Popen

    def hang(_: Any, **how: Any) -> subprocess.Popen:
        return ours([sys.executable, "-c", "import time; time.sleep(60)"], **how)

    monkeypatch.setattr(script.subprocess, "Popen", hang)
    with (tmp_path / "log.txt").open("w") as log:
        cut = script.start("pages", tmp_path, True, 0.2, log)
    assert figures(cut) == ["0"]  # seconds
    line = script.summary("pages", tmp_path / "pages.json", cut)
    assert line == f"pages     failed   {cut}"
