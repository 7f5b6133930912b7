import json
import re
from typing import Any

import pytest

from core.jobs import code
from core.script.check import found_by_running
from to_device.dryrun import failure
from to_device.dryrun.remarks import REMARKS
from to_device.dryrun.report import (
    DEVICE_ERROR,
    LONGEST_TEXT,
    MOST_PRINTED,
    NOT_SIMULATED,
    OK,
    Failure,
    Remark,
    Report,
    Request,
    Value,
    fits,
    is_kept,
    safe,
)
from to_device.dryrun.script import Line
from to_device.errors import ExplainedError

NAME = "script"
MARKUP = "![i](http://a.example/b.png)\n\n# Heading \ud800 "
REQUEST = Request(NAME, "x = 1\ny = 2")


def forged(**fields: Any) -> dict[str, Any]:
    report = json.loads(json.dumps(Report(DEVICE_ERROR, **fields).plain()))
    assert fits(report)
    return safe(report, REQUEST)


@pytest.mark.parametrize(
    ("how", "run_code"),
    [("off", ""), (False, ""), ("here", "confined"), ("here", "off")],
)
def test_code_that_may_not_run_here_is_refused(monkeypatch, how, run_code):
    monkeypatch.setenv("RUN_CODE", run_code)
    with pytest.raises(ExplainedError):
        code.run(Request(NAME, "1 / 0"), how)


def test_what_a_forged_report_says_is_short_and_plain() -> None:
    failure = Failure("E", MARKUP, Line(NAME, 1), culprit=Line(NAME, 1), why=MARKUP)
    remark = Remark(Line(NAME, 1), MARKUP * 999, "unknown", True)
    notes = [MARKUP * 999] * 999
    report = forged(failure=failure, remarks=[remark], notes=notes)
    findings = list(found_by_running(report))
    sentences = [*report["notes"], *(finding.say for finding in findings)]
    assert len(report["notes"]) == 200
    for text in [*sentences, code.failed(report["failure"], NAME)]:
        assert len(text) < LONGEST_TEXT + 100
        assert "![" not in re.sub("(`+).*?\\1", "", text)
        assert "\n#" not in text
        text.encode()


@pytest.mark.parametrize("levels", [3, 900])
def test_facts_are_neither_deep_nor_long(levels: int) -> None:
    nested: Any = 1
    for _ in range(levels):
        nested = [nested]
    report = Report(OK).plain()
    assert fits(report | {"facts": {"x": nested}}) == (levels < 10)
    assert not fits(report | {"facts": {"x": ["x" * 1000] * 1000}})
    assert not fits(report | {"facts": {"x": [[]] * 9_000}})
    assert not fits(report | {"facts": {str(n): [] for n in range(900)}})


def test_a_report_that_only_a_forger_makes_is_not_kept() -> None:
    assert is_kept(forged(notes=["A note"] * 200))
    shape = list(range(200))
    values = [Value(1, "x", "Tensor", tuple(shape), "float32", "cpu")] * 200
    assert not is_kept(forged(values=values))
    parts = {"x" * 600_000: 1}
    memory = {"peak": 1, "parts": parts, "limit": 1, "fits": True}
    memory |= {"batch_size": 1, "largest_batch": 1}
    assert not fits(Report(OK).plain() | {"memory": memory})
    assert fits(Report(OK).plain() | {"memory": memory | {"parts": {"x": 1}}})


@pytest.mark.parametrize(("line", "number"), [(99_999, 2), (-3, 1), (2, 2)])
def test_each_finding_is_at_a_line_of_the_script(line: int, number: int) -> None:
    (finding,) = found_by_running(forged(on_cpu=Line(NAME, line)))
    assert finding.line == number


def test_our_own_sentences_stay_as_they_are() -> None:
    for text in REMARKS.values():
        assert forged(notes=[text])["notes"] == [text]


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize(
    "text",
    [f"open({MARKUP[:-2]!r})", f"raise RuntimeError('no NVIDIA driver' {MARKUP!r})"],
)
def test_an_error_with_markup_is_plain(text: str) -> None:
    report, _ = code.run(Request(NAME, text), "here")
    (note,) = report["notes"]
    assert "b.png" in note
    assert "![" not in re.sub("(`+).*?\\1", "", note)
    note.encode()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class E(Exception): __str__ = int\nraise E", "Line 2: `E`"),
        (
            "class E(KeyError):\n def __str__(_): raise KeyboardInterrupt\nraise E",
            "`E`",
        ),
        (
            "a, b = KeyError(), OSError()\na.__cause__, b.__cause__ = b, a\nraise a",
            "Key",
        ),
        ("raise ValueError('x' * 10**8)", "Line 1: `ValueError: xxx"),
        ("import torch\ntorch.ones(2**40)", "1.5 GB"),
    ],
)
def test_whatever_an_error_says_its_line_is_told(text: str, message: str) -> None:
    report, _ = code.run(Request("your code", text), "here")
    assert message in code.failed(report["failure"], "your code")
    assert len(report["failure"]["message"]) <= failure.MOST_CHARACTERS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import os\nos._exit(0)", code.ENDED_ITSELF),
        ("import ctypes\nctypes.string_at(8)", "Segmentation fault"),
        ("while True: print('x' * 1000)", "line 1"),
        ("import torch\ntorch.ones(1).to('mps')", "mps"),
    ],
)
def test_on_a_laptop_too_it_is_told_what_ended_the_code(
    text: str, message: str
) -> None:
    report, printed = code.run(Request("your code", text, seconds=1), "here")
    assert message in report["notes"][0]
    assert len(printed) in (0, MOST_PRINTED)


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ("while time.process_time() < begun + 0.6: pass", OK),  # it computes
        ("time.sleep(60)", NOT_SIMULATED),
    ],
)
def test_only_what_does_nothing_is_ended_by_the_clock(
    last: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "CLOCK_FACTOR", 20.0)
    text = f"import time\nbegun = time.process_time()\ntime.sleep(0.6)\n{last}"
    request = Request("your code", text, seconds=1)
    report, _ = code.run(request, "here")
    assert report["status"] == status


def test_a_scripts_files_are_not_kept(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "import os\nopen('file.pt', 'w').close()\nprint(os.listdir())"
    _, printed = code.run(Request("your code", text), "here")
    assert "file.pt" in printed
    assert not [*tmp_path.iterdir()]


def test_nobody_has_to_type_for_a_debugger_or_read_where_torch_warns() -> None:
    text = "breakpoint()\nimport torch\nprint(float(torch.ones(1, requires_grad=True)))"
    report, printed = code.run(Request("your code", text, names=True), "here")
    assert report["status"] == OK
    assert printed.startswith("your code:3: UserWarning: ")
    assert "Triggered internally" not in printed
