"""pytest --dry-cuda: run tests on the simulated accelerator, as if it were CUDA.

In the tests, `torch.cuda.is_available()` is true, and "cuda" is the simulated device. A
test that forgets a move fails with CUDA's message, and the report names the line to
change. A test that needs what one simulated GPU can't do is skipped.

Without the option, the plugin imports neither torch nor the rest of the package. The
device stays until a process ends, so tests with the marker or the fixture `dry_cuda`
then run in a process of their own, all in the same one.
"""

import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from to_device.names import REPORTED

MARK = "dry_cuda"  # the marker's and the fixture's name
REPORTS = "TO_DEVICE_REPORTS"  # the variable with the file for a child's reports
MOST_SLOW = 10  # tests that --dry-cuda-report lists
MOST_LINES = 10  # lines to change in the summary
STATE = pytest.StashKey[Any]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("to-device", "a simulated CUDA device")
    group.addoption(
        "--dry-cuda",
        action="store_true",
        help="run the tests on a simulated CUDA device",
    )
    group.addoption(
        "--dry-cuda-move",
        action="store_true",
        help="move what the tests make to the device, for tests written for the CPU",
    )
    group.addoption(
        "--dry-cuda-report",
        action="store_true",
        help="list the tests with the most waits and copies, and where they wait",
    )
    group.addoption(
        "--dry-cuda-memory",
        metavar="SIZE",
        help="the simulated GPU's memory, such as 8GB",
    )
    group.addoption(
        "--dry-cuda-own",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder of code that may be to blame, besides pytest's root",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Install the device before the first conftest.py asks torch for it."""
    options = early_config.known_args_namespace
    options.dry_cuda |= options.dry_cuda_move
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    if not options.dry_cuda or (
        getattr(options, "numprocesses", None) and not is_worker
    ):
        return  # pytest-xdist's first process runs no tests
    from to_device.sim import simulation

    if why := simulation.too_old():
        raise pytest.UsageError(f"--dry-cuda: {why}")
    from to_device.dryrun import suite

    try:
        state = suite.install(early_config.rootpath, options)
    except ArgumentTypeError as error:
        raise pytest.UsageError(f"--dry-cuda-memory {error}") from None
    except ValueError as error:
        raise pytest.UsageError(f"--dry-cuda: {error}") from None
    early_config.stash[STATE] = state
    if isinstance(state, suite.Suite):
        early_config.pluginmanager.register(state, "to-device-suite")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARK}: runs on the simulated CUDA device, also without --dry-cuda"
    )
    config.option.dry_cuda |= config.option.dry_cuda_move
    if config.option.dry_cuda:
        config.pluginmanager.register(Summary(config), "to-device-summary")
    else:
        config.pluginmanager.register(MarkedTests(), "to-device-marked")
    if file := os.environ.pop(REPORTS, ""):
        config.pluginmanager.register(Recorder(config, file), "to-device-recorder")


def pytest_report_header(config: pytest.Config) -> str | None:
    state = config.stash.get(STATE, None)
    return state if isinstance(state, str) else None


@pytest.fixture
def dry_cuda(request: pytest.FixtureRequest) -> Any:
    """What the test has counted so far: `dry_cuda.waits` and `dry_cuda.copies`.

    Both are Counters, keyed by to_device.sim.ledger.Event. Beside a real GPU, where
    nothing counts, the fixture is None.
    """
    suite = request.config.pluginmanager.get_plugin("to-device-suite")
    return suite and suite.watch()


class Summary:
    """Adds up what the tests did, over all processes, and prints it at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.done: dict[str, dict[str, Any]] = {}  # by the test's id
        self.missing: Counter[str] = Counter()  # by the reason of a skip
        self.culprits: dict[str, set[str]] = {}  # ids of tests by the line to change

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        done = dict(report.user_properties).get(REPORTED)
        if isinstance(done, dict):
            self.done[report.nodeid] = done
            if report.when == done.get("when"):
                self.missing[done["missing"]] += 1
            if culprit := done.get("culprit"):
                self.culprits.setdefault(culprit, set()).add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if missing := getattr(report, "missing", ""):
            self.missing[missing] += 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        state = self.config.stash.get(STATE, None)
        if isinstance(state, str):
            return
        write = terminalreporter.write_line
        terminalreporter.section("simulated CUDA device")
        used = sum(done["operations"] > 0 for done in self.done.values())
        write(f"{used} of {len(self.done)} tests used the device.")
        for reason, times in self.missing.most_common():
            write(f"{times} skipped: {reason}")
        if lines := sorted(self.culprits.items(), key=lambda item: -len(item[1])):
            tests = [f"{at} ({count(len(ids))})" for at, ids in lines[:MOST_LINES]]
            more = len(lines) - MOST_LINES
            rest = f", and {more} more" if more > 0 else ""
            write(f"Lines to change: {', '.join(tests)}{rest}")
        if self.config.option.dry_cuda_report:
            order = sorted(self.done.items(), key=lambda item: -item[1]["waits"])
            for name, done in order[:MOST_SLOW]:
                copied = f"{done['copied']:,} bytes in {done['copies']:,} copies"
                at, times = done["busiest"] or ("", 0)
                place = f", {times:,} of the waits at {at}" if at else ""
                write(f"{done['waits']:,} waits, {copied}: {name}{place}")


def count(tests: int) -> str:
    return f"{tests:,} tests" if tests > 1 else "1 test"


class Recorder:
    """Writes the reports of a child process to a file."""

    def __init__(self, config: pytest.Config, file: str) -> None:
        self.config, self.file = config, Path(file)
        self.reports: list[Any] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self.config.hook.pytest_report_to_serializable
        self.reports.append(hook(config=self.config, report=report))

    def pytest_sessionfinish(self) -> None:
        self.file.write_text(json.dumps(self.reports, default=str), "utf-8")


class MarkedTests:
    """Runs tests with the marker or the fixture in a process with the device."""

    def __init__(self) -> None:
        self.marked: list[str] = []
        self.reports: dict[str, list[Any]] | None = None  # by the test's id
        self.said = ""  # what the child printed

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.marked = [item.nodeid for item in session.items if is_marked(item)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if not is_marked(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        if self.reports is None:
            self.reports = self._run(item.config)
        for report in self.reports.get(item.nodeid, [self._lost(item)]):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _run(self, config: pytest.Config) -> dict[str, list[Any]]:
        inherited = [f"--rootdir={config.rootpath}"]
        if config.inipath:
            inherited += ["-c", str(config.inipath)]
        inherited += [f"--dry-cuda-own={it}" for it in config.option.dry_cuda_own]
        if memory := config.option.dry_cuda_memory:
            inherited.append(f"--dry-cuda-memory={memory}")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "reports.json")
            drop = "PYTEST_XDIST", "PYTEST_CURRENT_TEST"
            env = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
            env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
            plugin = ["-p", __name__] if not is_entry_point(config) else []
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "pytest", "-q", "--dry-cuda", *plugin),
                    *(*inherited, "-p", "no:cacheprovider", "-p", "no:xdist"),
                    *self.marked,
                ],
                env=env | {REPORTS: str(file)},
                cwd=config.rootpath,  # the tests' ids start there
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            self.said = done.stdout
            data = json.loads(file.read_text("utf-8")) if file.exists() else []
        reports: dict[str, list[Any]] = {}
        for part in data:
            hook = config.hook.pytest_report_from_serializable
            report = hook(config=config, data=part)
            reports.setdefault(report.nodeid, []).append(report)
        return reports

    def _lost(self, item: pytest.Item) -> pytest.TestReport:
        """A failure with the child's output: the child didn't come to the test."""
        where, why = item.location, f"The process with the device ended:\n{self.said}"
        return pytest.TestReport(item.nodeid, where, {}, "failed", why, "setup")


def is_marked(item: pytest.Item) -> bool:
    return bool(item.get_closest_marker(MARK)) or MARK in getattr(
        item, "fixturenames", ()
    )


def is_entry_point(config: pytest.Config) -> bool:
    """Whether pytest finds the plugin by itself, since the package is installed."""
    plugins = config.pluginmanager.list_plugin_distinfo()
    return any(getattr(plugin, "__name__", "") == __name__ for plugin, _ in plugins)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Iterator[Any]:
    """Skip a file that needs, while it is imported, what can't be simulated."""
    report: Any = yield
    suite: Any = collector.config.pluginmanager.get_plugin("to-device-suite")
    call = getattr(report, "call", None)
    error = call.excinfo.value if suite and call and call.excinfo else None
    if missing := error and report.outcome == "failed" and suite.missing(error):
        report.outcome, report.missing = "skipped", missing
        report.longrepr = (str(collector.path), 0, missing)
        del report.call
    return report
