"""Thirty people on the app at once, each with a run on the device."""

import json
import subprocess
import sys
from typing import Any

from tools.accelerator.step import Part, Results, Setting, WrongError, work_through

UNTRIED = "runs on an accelerator: the CPU trains."
PEOPLE, ALONE = 30, 2


def run(setting: Setting, results: Results) -> None:
    people, alone = (2, 1) if setting.tiny else (PEOPLE, ALONE)
    options = f"--people {people} --browsers 0 --alone {alone} --arrival 10 --json"
    command = [sys.executable, "-m", "tools.load", *options.split()]

    def lesson() -> dict[str, Any]:
        ended = subprocess.run(command, capture_output=True, text=True)
        if not ended.stdout.endswith("}\n"):
            raise WrongError(ended.stderr[-500:])
        *table, figures = ended.stdout.splitlines()
        if ended.returncode:
            raise WrongError(" ".join(table[-3:]), json.loads(figures))
        return json.loads(figures)

    work_through([Part(f"{people} people", 90.0, lesson)], setting, results)
