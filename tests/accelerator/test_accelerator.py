"""The script for machines with an accelerator, in small: here there may be none."""

import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from core import devices
from tests.accelerator import __main__ as script
from tests.accelerator import ladder, record
from tests.accelerator.step import (
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


@pytest.mark.parametrize("step", ["mistakes", "pages"])
def test_a_step_comes_to_its_end(step: str, tmp_path: Path) -> None:
    """Every part of it is done on whatever is here; on a CPU it says what was not."""
    script.work(step, tmp_path, True, 60.0)
    first, *more = script.summary(step, tmp_path / f"{step}.json", "").splitlines()
    assert first.split()[:2] == [step, "done"]
    assert len(more) == (devices.accelerator() is None)
    assert all(line.startswith("    On a CPU untried: ") for line in more)


def test_the_top_of_the_ladder_is_measured(
    setting: Setting, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Epochs in turn with the textbook's, runs until they are good, and a profile."""
    whole = ladder.runs
    monkeypatch.setattr(ladder, "runs", lambda _, *given: whole("ann", *given))
    monkeypatch.setattr(ladder, "climb_cnn", skipped)
    monkeypatch.setattr(ladder.roofline, "SIZES", {"cpu": 64})
    monkeypatch.setattr(ladder.bench, "SIZES", {"cpu": 64})
    ladder.run(setting, results)
    assert said(results) == {"the ladder of the CNN": "Not here."}
    epochs = results.parts["epoch"]["found"]["epochs"]
    assert {f"graph of the epoch, {top}" for top in ladder.TOPS} < epochs.keys()
    reached = results.parts["time to 88 %, graph of an epoch"]["found"]
    assert reached["batch 64"]["of"] == 1


def test_a_graphed_epoch_trains() -> None:
    """The same call, again and again, and the loss falls."""
    split = ladder.datasets.load("sprites").train.first(2048)
    torch.manual_seed(0)
    made = ladder.graphed_epoch(split, devices.resolve("auto"), ladder.Kept())
    first, *_, last = (made.make().mean().item() for _ in range(4))
    assert last < first / 2


def skipped(*_: Any) -> None:
    raise SkipError("Not here.")


def test_every_piece_of_the_record_has_its_time() -> None:
    """What core.bench measures is what this script measures."""
    pieces = record.bench.pieces("sprites", torch.device("cpu"), 1, True)
    assert pieces.keys() == record.SECONDS.keys()


def test_a_record_is_made_of_the_pieces_there_are(
    setting: Setting, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists of one name are put together; a piece that failed is told to lack."""
    found = dict.fromkeys(record.SECONDS, lambda: {"figures": [1], "labs": {"a": 1}})
    monkeypatch.setattr(record.bench, "pieces", lambda *_: {**found, "memory": fail})
    record.run(setting, results)
    made = results.parts["record"]["found"]
    assert made["lacks"] == "memory"
    whole = json.loads((setting.folder / made["file"]).read_text())
    assert whole["figures"] == [1] * (len(found) - 1)


def fail() -> None:
    raise WrongError("It is wrong.", {"seen": 1})


def test_each_part_ends_as_it_ends(setting: Setting, results: Results) -> None:
    """Done, failed, skipped or left out for want of time: always with its sentence."""
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
    """What is done is left, what hung comes after what was never tried."""
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


def test_what_would_take_too_long_is_not_begun(tmp_path: Path) -> None:
    """Rather than to be ended in the middle; the next call has time for it."""
    late = Setting(torch.device("cpu"), tmp_path, False, time.monotonic() + 5)
    results = again(late)
    work_through([Part("long", 60.0, fail), Part("short", 1.0, dict)], late, results)
    assert results.parts["long"]["status"] == "skipped"
    assert said(results)["long"].startswith("It may take 60 s")
    assert results.done("short")


def test_a_step_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process ends with what it started, and the summary says why."""
    ours = subprocess.Popen

    def hang(_: Any, **how: Any) -> subprocess.Popen:
        return ours([sys.executable, "-c", "import time; time.sleep(60)"], **how)

    monkeypatch.setattr(script.subprocess, "Popen", hang)
    with (tmp_path / "log.txt").open("w") as log:
        cut = script.start("pages", tmp_path, True, 0.2, log)
    assert cut == "It was ended after 0 s."
    line = script.summary("pages", tmp_path / "pages.json", cut)
    assert line == f"pages     failed   {cut}"


def test_a_step_that_cannot_be_imported_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine without Dask; it is skipped, and nothing else is harmed."""
    monkeypatch.setitem(sys.modules, "tests.accelerator.faults", None)
    script.work("faults", tmp_path, True, 60.0)
    line = script.summary("faults", tmp_path / "faults.json", "")
    assert line.startswith("faults    skipped")
    assert "not installed here" in line


def test_every_step_has_its_module() -> None:
    """Those that the command line names are those beside it."""
    there = {each.stem for each in Path(script.__file__).parent.glob("*.py")}
    others = {"__init__", "__main__", "step", "test_accelerator"}
    assert script.STEPS.keys() == there - others
