"""The tests that are marked gpu, each a part of this step."""

from pathlib import Path

import pytest

from tools.accelerator.step import Results, Setting

ROOT = Path(__file__).parents[2]
UNTRIED = "all of them."
MARK = "mark.gpu"
MOST_KEPT = 4000  # characters of a failure, its end


def run(setting: Setting, results: Results) -> None:
    """In this process, where a test that hangs costs those after it, until next time.

    Tests that passed before are not run again.
    """
    files = [
        file
        for file in sorted(ROOT.glob("tests/**/test_*.py"))
        if MARK in file.read_text("utf-8")
    ]
    names = [each.relative_to(ROOT).as_posix() for each in files]
    passed = [f"--deselect={test}" for test in results.parts if results.done(test)]
    options = ["-q", "-m", "gpu", "-p", "no:cacheprovider"]
    options += ["--continue-on-collection-errors", f"--rootdir={ROOT}"]
    some = names[:2] if setting.tiny else names
    pytest.main([*options, *passed, *some], plugins=[Reporter(results)])


class Reporter:
    """What pytest tells its plugins, kept as it comes."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._keep_failure(report)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._results.keep(nodeid, "begun")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._keep_failure(report)
        elif report.skipped:
            _, _, why = report.longrepr
            self._results.keep(report.nodeid, "skipped", why.removeprefix("Skipped: "))
        elif report.when == "call":
            self._results.keep(report.nodeid, "done", seconds=report.duration)

    def _keep_failure(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        """Its first line, and all of it; where a package lacks it is none."""
        text = report.longreprtext
        marked = [line[1:].strip() for line in text.splitlines() if line[:1] == "E"]
        missing = [line for line in marked if line.startswith("ModuleNotFoundError")]
        status = "skipped" if missing else "failed"
        (said, *_) = missing or marked or text.splitlines()
        self._results.keep(report.nodeid, status, said, text[-MOST_KEPT:])
