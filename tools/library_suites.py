"""Run released libraries' test suites on the simulated device, and compare.

    python -m tools.library_suites einops entmax --out suites.json
    python -m tools.library_suites                # all of library_suites.toml

Each suite runs three times on the CPU: as it is, with --dry-cuda, and with
--dry-cuda-move. For each way, this prints how the tests end that pass as they are and
that use the device, and each failure with the line that raised it. Whether a failure
is right is for a reader to say: would CUDA fail there, too?

A release's source comes from PyPI, into a temporary folder. If it has no tests there,
--sources names a folder with checkouts of the repositories, named as the libraries.
torch and pytest are those of this Python. The suites are other people's code: run them
where you would run that.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import venv
from collections import Counter
from pathlib import Path
from typing import Any

from to_device.names import REPORTED
from to_device.pytest_plugin import REPORTS

ROOT = Path(__file__).parents[1]
SUITES: dict[str, Any] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)
WAYS = {"cpu": [], "dry-cuda": ["--dry-cuda"], "moved": ["--dry-cuda-move"]}
ORDER = ("passed", "skipped", "failed")  # a test is as bad as its worst part
SECONDS_A_TEST = 300
# A plugin for pytest, so that tests of random numbers end in the same way in each run.
SEEDING = """
import random, numpy, pytest, torch

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
"""


class Library:
    def __init__(self, name: str, folder: Path, checkouts: Path | None) -> None:
        self.name, self.settings = name, SUITES[name]
        self.folder = folder / name
        self.kind = self.settings.get("source", "sdist")
        self.source = self.folder / "source"
        if self.kind == "repository":
            if checkouts is None:
                raise SystemExit(f"{name} has no tests on PyPI: give --sources")
            self.source = checkouts / name
        self.python = self.folder / "venv" / "bin" / "python"
        self.release = f"{name}=={self.settings['version']}"

    def install(self) -> None:
        """Make an environment with the release, and unpack its source."""
        ready = self.folder / "ready"
        if ready.exists():
            return
        venv.create(self.folder / "venv", with_pip=True)
        home = subprocess.check_output(
            [self.python, "-c", "import sysconfig as s; print(s.get_path('purelib'))"],
            text=True,
        )
        ours = sysconfig.get_path("purelib")  # where torch is
        Path(home.strip(), "torch.pth").write_text(f"{ours}\n", "utf-8")
        # Of this project, the library must find the toolkit alone, and not our tests.
        Path(home.strip(), "to_device").symlink_to(ROOT / "to_device")
        Path(home.strip(), "seeding.py").write_text(SEEDING, "utf-8")
        needs = self.settings.get("needs", [])
        self._pip("install", "-q", self.release, *needs)
        self.source.mkdir(exist_ok=True)
        if self.kind == "sdist":
            self._pip(
                *("download", "-q", "--no-deps", "--no-binary", ":all:"),
                *("-d", str(self.folder), self.release),
            )
            archive = next(self.folder.glob("*.tar.gz"))
            with tarfile.open(archive) as tar:
                tar.extractall(self.source, filter="data")
        ready.touch()

    def _pip(self, *arguments: str) -> None:
        subprocess.run([self.python, "-m", "pip", *arguments], check=True)

    @property
    def root(self) -> Path:
        """Where the tests run: an archive holds one folder."""
        return next(self.source.iterdir()) if self.kind == "sdist" else self.source

    def run(self, way: str, seconds: float) -> dict[str, dict[str, Any]]:
        """How each test ends that was done in time, by its id."""
        file = self.folder / f"{way}.json"
        file.unlink(missing_ok=True)
        package = self.settings.get("package", self.name.replace("-", "_"))
        home = next((self.folder / "venv" / "lib").glob("*/site-packages"))
        own = f"--dry-cuda-own={home / package}"
        env = os.environ | self.settings.get("env", {}) | {REPORTS: str(file)}
        if way == "cpu":
            env |= self.settings.get("env_on_cpu", {})
        command = [
            *(str(self.python), "-m", "pytest", "-p", "to_device.pytest_plugin"),
            *("-p", "seeding", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", own),
            *(f"--timeout={SECONDS_A_TEST}", "--tb=short", *WAYS[way]),
            "--continue-on-collection-errors",
            *self.settings.get("options", []),
            *self.settings["tests"],
        ]
        log = self.folder / f"{way}.log"
        with log.open("w", encoding="utf-8") as output:
            run = subprocess.Popen(
                command,
                cwd=self.root,
                env=env,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            try:
                run.wait(seconds)
            except subprocess.TimeoutExpired:
                print(f"{self.name}, {way}: not done after {seconds:.0f} s")
                run.send_signal(signal.SIGINT)  # pytest ends, and writes its reports
                try:
                    run.wait(SECONDS_A_TEST)
                except subprocess.TimeoutExpired:
                    run.kill()
                    run.wait()
        if not file.exists():
            print(f"{self.name}, {way}: no reports; see {log}")
            return {}
        return ends(json.loads(file.read_text("utf-8")))


def ends(reports: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Each test's outcome, whether it used the device, and what it says if it failed.

    `reports` are pytest's own, as the plugin writes them.
    """
    tests: dict[str, dict[str, Any]] = {}
    for report in reports:
        test = tests.setdefault(
            report["nodeid"], {"outcome": "passed", "used": False, "says": ""}
        )
        done = dict(report.get("user_properties", [])).get(REPORTED, {})
        test["used"] |= done.get("operations", 0) > 0 or "missing" in done
        if ORDER.index(report["outcome"]) > ORDER.index(test["outcome"]):
            test["outcome"] = report["outcome"]
            test["says"] = says(report)
    return tests


def says(report: dict[str, Any]) -> str:
    """In one line: a skip's reason, or an error with the line that raised it."""
    why = report["longrepr"]
    if report["outcome"] == "skipped" and isinstance(why, list):
        return str(why[-1])
    if not isinstance(why, dict):
        return str(why).strip().partition("\n")[0]
    crash = why.get("reprcrash") or {}
    lines = [text for name, text in report.get("sections", []) if name == "on CUDA"]
    message = str(crash.get("message", "")).strip().partition("\n")[0]
    place = f"{Path(crash.get('path', '')).name}:{crash.get('lineno', '')}"
    change = re.search(r"line to change.*\n\s*(\S+)", lines[0]) if lines else None
    return f"{message} ({place}{', change ' + change[1] if change else ''})"


def summary(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """How tests end on the device that pass on the CPU, and tests that need one."""
    passed = {name for name, test in before.items() if test["outcome"] == "passed"}
    meant = {name for name in passed & after.keys() if after[name]["used"]}
    meant |= {n for n in passed & after.keys() if after[n]["outcome"] == "failed"}
    new = {n for n, test in after.items() if test["used"]} - passed
    new = {n for n in new if before.get(n, {}).get("outcome") != after[n]["outcome"]}
    return {
        "passed on the CPU": len(passed),
        "of these, on the device": dict(Counter(after[n]["outcome"] for n in meant)),
        "only on the device": dict(Counter(after[n]["outcome"] for n in new)),
        "failures": dict(
            Counter(after[n]["says"] for n in meant | new if failed(after[n]))
        ),
        "skipped": dict(
            Counter(
                after[n]["says"]
                for n in meant | new
                if after[n]["outcome"] == "skipped"
            )
        ),
    }


def failed(test: dict[str, Any]) -> bool:
    return test["outcome"] == "failed"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.library_suites",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SUITES)}")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--seconds", type=float, default=600, help="for one run")
    parser.add_argument("--folder", type=Path, help="keep the sources and logs here")
    parser.add_argument("--sources", type=Path, help="a folder with checkouts")
    parser.add_argument("--out", type=Path, help="write how each test ends, as JSON")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.names or SUITES:
            library = Library(name, options.folder or Path(temporary), options.sources)
            library.install()
            runs = {way: library.run(way, options.seconds) for way in options.ways}
            results[library.release] = runs
            for way in options.ways:
                if way == "cpu" or not (runs[way] and runs.get("cpu")):
                    continue
                print(f"\n{library.release}, {way}")
                for key, value in summary(runs["cpu"], runs[way]).items():
                    print(f"  {key}: {json.dumps(value, indent=4)}")
            if options.out:
                options.out.write_text(json.dumps(results), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
