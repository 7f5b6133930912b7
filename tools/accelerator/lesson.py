"""Thirty people on the app at once, each with a run on the device."""

from typing import Any

from tools.accelerator.step import Part, Results, Setting, WrongError, work_through
from tools.load.__main__ import with_own_server
from tools.load.lesson import Plan
from tools.load.report import complaints

UNTRIED = "runs on an accelerator: the CPU trains."
PEOPLE, ALONE = 30, 2


def run(setting: Setting, results: Results) -> None:
    people, alone = (2, 1) if setting.tiny else (PEOPLE, ALONE)
    plan = Plan("", people=people, browsers=0, alone=alone, arrival_seconds=10.0)

    def lesson() -> dict[str, Any]:
        measured = with_own_server(plan, in_class=False, without="")
        if sentences := complaints(measured):
            raise WrongError(" ".join(sentences), measured)
        return measured

    work_through([Part(f"{people} people", 90.0, lesson)], setting, results)
