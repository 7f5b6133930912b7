"""A dry run in a process of its own, as the tests want it."""

from textwrap import dedent

from core.dryrun.report import Report, Request
from core.jobs import sandbox


def dry_run(text: str, name: str = "script.py", **options) -> Report:
    if "memory" in options:
        options["capacity"] = options["memory"]
    request = Request(name, dedent(text), **options)
    return sandbox.call("core.dryrun.run:run", request, seconds=180)
