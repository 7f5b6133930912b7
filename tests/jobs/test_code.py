import json
import re
from typing import Any

import pytest

from core.dryrun.remarks import REMARKS
from core.dryrun.report import (
    DEVICE_ERROR,
    LONGEST_TEXT,
    Failure,
    Remark,
    Report,
    Request,
    fits,
    safe,
)
from core.dryrun.script import Line
from core.jobs import code
from core.script.check import found_by_running

NAME = "script"
MARKUP = "![i](http://a.example/b.png)\n\n# Heading \ud800 "
REQUEST = Request(NAME, "x = 1\ny = 2")


def forged(**fields: Any) -> dict[str, Any]:
    report = json.loads(json.dumps(Report(DEVICE_ERROR, **fields).plain()))
    assert fits(report)
    return safe(report, REQUEST)


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
    report, _ = code.run(Request(NAME, text), False)
    (note,) = report["notes"]
    assert "b.png" in note
    assert "![" not in re.sub("(`+).*?\\1", "", note)
    note.encode()
