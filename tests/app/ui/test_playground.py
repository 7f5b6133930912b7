import ast
from collections.abc import Iterator
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from core.jobs import code
from core.lessons.mistakes.catalogue import MISTAKES
from core.serving.execution_policy import Mode
from core.ui import clicks, playground
from core.ui.playground import NAME, program
from tests.app.pages.walk import code_in, texts, write_code
from tests.process import HOUR, ROOT
from to_device.dryrun.report import DEVICE_ERROR, OK, Failure, Report, Request, Value
from to_device.dryrun.script import Line

STEP = "core.lessons.model.model_to:step"
FAILS = {STEP: "Change line 10"}  # a move is forgotten on purpose
ALONE = [f"core.lessons.model.model_to:{name}" for name in ("module_in_place",)]
pytestmark = pytest.mark.usefixtures("unhurried")
HALVES = [mistake.address(half) for mistake in MISTAKES for half in ("broken", "fixed")]


def examples() -> Iterator[str]:
    """The addresses of the functions that core/examples calls."""
    for file in sorted(ROOT.glob("core/examples/*.py")):
        body = ast.parse(file.read_text("utf-8")).body
        functions = (node.name for node in body if isinstance(node, ast.FunctionDef))
        for name in (function.removeprefix("try_") for function in functions):
            (module,) = (
                node.module
                for node in body
                if isinstance(node, ast.ImportFrom)
                and name in [alias.name for alias in node.names]
            )
            yield f"{module}:{name}"


@pytest.mark.parametrize("address", [*examples(), *ALONE])
def test_what_is_written_around_a_function_makes_it_run(address):
    request = Request(NAME, program(address), seconds=9, names=True)
    report, _ = code.run(request, "here")
    sentence = ""
    if failure := report["failure"]:
        sentence = code.failed(failure, NAME) + code.hint(failure, NAME)
    assert (report["status"], bool(sentence)) == (
        (DEVICE_ERROR, True) if address in FAILS else (OK, False)
    )
    assert FAILS.get(address, "") in sentence
    assert report["values"]
    assert ":walk" not in address or "uint8" in str(report["values"])  # as on its page


@pytest.mark.parametrize("address", HALVES)
def test_both_halves_of_a_mistake_can_be_tried(address):
    name = address.partition(":")[2]
    assert {name} <= {
        node.name
        for node in ast.parse(program(address)).body
        if isinstance(node, ast.FunctionDef)
    }


def test_a_function_that_no_call_is_known_of_has_no_program():
    assert program("core.lessons.checkpoints.round_trip:measure") == ""
    assert program("core.training:Training.state_dict") == ""


AT = Line(NAME, 3)
REPORT = Report(
    DEVICE_ERROR,
    failure=Failure("RuntimeError", "on two devices", AT, culprit=AT, why="it stays"),
    values=[Value(3, "x", "Tensor", (64, 10), "float32", "cuda:0")],
).plain()


@pytest.fixture(autouse=True)
def requests(monkeypatch):
    """What the lab is asked, which answers with the report."""
    requests = []

    def run_code(_, address, request, how):
        requests.append(request)
        assert (address, how) == ("core.jobs.code:run", "here")
        return REPORT, "what it printed"

    monkeypatch.setattr(playground, "run_code", run_code)
    monkeypatch.setattr(playground, "engine", Mock)
    monkeypatch.setattr(playground, "mode", lambda _: Mode("here"))
    monkeypatch.setattr(clicks, "AT_ONCE_SECONDS", HOUR)
    return requests


def page(address: str, is_open: bool) -> None:
    from core.ui import playground
    from core.ui.source import show

    show(address)
    if is_open:  # AppTest runs all of a page again, and no fragment of it
        playground.open_editor(address, {})


def opened(is_open: bool = False) -> AppTest:
    args = (STEP, is_open)
    return AppTest.from_function(page, default_timeout=60, args=args).run()


def press(at: AppTest, label: str) -> AppTest:
    (button,) = (button for button in at.button if button.label == label)
    return button.click().run()


def test_an_open_editor_runs_nothing_once_code_may_not_run(monkeypatch, requests):
    at = opened(is_open=True)
    write_code(at, f"tried_{STEP}", "x = 1")
    monkeypatch.setattr(playground, "mode", lambda _: Mode("off", "Not now."))
    press(at, "Run it")
    assert not requests
    assert "Not now." in [info.value for info in at.info]


def test_code_of_a_page_is_changed_and_run(requests):
    assert code_in(press(opened(), "Try it"))["value"] == program(STEP)
    at = opened(is_open=True)
    write_code(at, f"tried_{STEP}", "x = 1")
    press(at, "Run it")
    assert not at.exception
    press(at, "Run it")  # as the second of a double click, which had to wait
    assert [(request.text, request.names) for request in requests] == [("x = 1", True)]
    assert "on two devices" in texts(at.error)
    assert "what it printed" in texts(at.code)
    assert code_in(at)["marked"] == [3, 3]
    assert at.dataframe[0].value.iloc[0].tolist() == [
        *(3, "x", "64 × 10", "float32", "cuda:0")
    ]
    write_code(at, f"tried_{STEP}", "x = 2")
    press(at, "Run it")
    assert [request.text for request in requests] == ["x = 1", "x = 2"]
    press(at, "Start again")
    assert code_in(at)["value"] == program(STEP)


def test_where_no_code_is_run_there_is_no_button(monkeypatch):
    monkeypatch.setattr(playground, "mode", lambda _: Mode("off", "why"))
    at = opened()
    assert at.code
    assert not at.button
