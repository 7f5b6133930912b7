"""The dry run, on scripts as people write them."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from core.dryrun.__main__ import size
from core.dryrun.report import Request
from core.jobs import code

FOLDER = Path(__file__).with_name("scripts")
EXPECTED = tomllib.loads((FOLDER / "expected.toml").read_text("utf-8"))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_script(name: str) -> None:
    expected = EXPECTED[name]
    text = (FOLDER / name).read_text("utf-8")
    options: dict[str, Any] = {}
    if "--memory" in (arguments := expected.get("arguments", [])):
        memory = size(arguments[arguments.index("--memory") + 1])
        options = {"memory": memory, "capacity": memory}
    of_script = expected.get("script_arguments", [])
    report, _ = code.run(Request(name, text, of_script, **options), confine=False)
    failure, growth = report["failure"] or {}, report["growth"] or {}

    assert report["status"] == expected.get("status", report["status"])
    assert expected.get("message", "") in failure.get("message", "")
    if "culprit_line" in expected:
        assert failure["line"]["line"] == expected["error_line"]
        assert failure["culprit"]["line"] in expected["culprit_line"]
    if "sync_line" in expected:
        assert expected["sync_line"] in [w["line"]["line"] for w in report["waits"]]
    if "once_line" in expected:
        same = [c["line"]["line"] for c in report["copies"] if c["same"]]
        assert expected["once_line"] in same
    if "fits" in expected:
        assert report["memory"]["fits"] == expected["fits"]
    assert bool(report["on_cpu"]) == expected.get("on_cpu", False)
    kept = growth["line"]["line"] if growth.get("keeps_graph") else None
    assert kept == expected.get("graph_line")
