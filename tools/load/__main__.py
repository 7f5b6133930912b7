"""`python -m tools.load --people 100`: load a server of its own, or the one at --url.

Prints a table. The exit status is 1 where somebody was not served, met an error or was
overtaken.
"""

import argparse
import asyncio
import json
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.load.lesson import Plan, hold
from tools.load.report import complaints, figures, table
from tools.server import open_class, start_server


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.load", description=__doc__)
    add = parser.add_argument
    add("--people", type=int, default=Plan.people, help="with the browsers")
    add("--browsers", type=int, default=Plan.browsers, help="people with a real one")
    add("--rounds", type=int, default=Plan.rounds, help="times that they all come")
    add("--arrival", type=float, default=Plan.arrival_seconds, help="seconds")
    add("--alone", type=int, default=Plan.alone, help="runs alone, before and after")
    add("--rest", type=float, default=Plan.rest_seconds, help="seconds after a round")
    add("--class", dest="in_class", action="store_true", help="all join one first")
    add("--url", help="of a server that runs; without it, one is started and ended")
    add("--pid", type=int, help="of the server at --url, to measure its memory")
    add("--without", default="", help="a patch of core/serving/streamlit_internals.py")
    add("--json", action="store_true", help="also print all figures as one line")
    given = parser.parse_args()
    if given.url and (given.in_class or given.without):
        parser.error("--class and --without need a server of their own, without --url")
    # Who is told to end takes the server along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    plan = Plan(
        url=given.url or "",
        pid=given.pid,
        people=given.people,
        browsers=given.browsers,
        rounds=given.rounds,
        arrival_seconds=given.arrival,
        alone=given.alone,
        rest_seconds=given.rest,
    )
    if given.url:
        found = figures(asyncio.run(hold(plan)))
    else:
        found = with_own_server(plan, given.in_class, given.without)
    print(table(found))
    if given.json:
        print(json.dumps(found))
    return 1 if complaints(found) else 0


def with_own_server(plan: Plan, in_class: bool, without: str) -> dict[str, Any]:
    """The figures of a server that is there for nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        if in_class:
            code = open_class(Path(folder), plan.people).code
            plan = replace(plan, door=f"Class?code={code}")
        server = start_server(Path(folder), WITHOUT_PATCH=without)
        try:
            plan = replace(plan, url=server.url, pid=server.process.pid)
            return figures(asyncio.run(hold(plan)), server.log.read_text())
        finally:
            server.process.terminate()
            server.process.wait(20)


if __name__ == "__main__":
    sys.exit(main())
