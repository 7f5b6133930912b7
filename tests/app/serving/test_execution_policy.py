from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from core.serving import execution_policy as policy
from core.serving.execution_policy import NOT_OWN, Mode, mode
from tests.process import python
from to_device.errors import ExplainedError

OWN = {"Host": "localhost:8501", "Origin": "http://localhost:8501"}


@pytest.fixture(autouse=True)
def _anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUN_CODE", raising=False)
    monkeypatch.setattr(policy, "_problem", policy._problem.__wrapped__)


def answering(problem: str = "") -> Any:
    return lambda *_, **__: problem


def visit(monkeypatch: pytest.MonkeyPatch, headers: Mapping[str, str]) -> None:
    context = SimpleNamespace(headers=headers)
    monkeypatch.setattr(policy.st, "context", context)


@pytest.mark.parametrize("is_own", [True, False])
@pytest.mark.parametrize("headers", [OWN, {"Host": "demo.example.org"}])
def test_on_a_laptop_code_runs_by_itself(is_own, headers, monkeypatch) -> None:
    monkeypatch.setattr(policy, "is_for_this_machine", lambda: is_own)
    visit(monkeypatch, headers)
    is_here = is_own and headers is OWN
    assert mode(answering()) == (Mode("here") if is_here else Mode("off", NOT_OWN))


def test_where_the_app_listens_is_what_counts() -> None:
    python(
        "-c",
        """
import os, socket
from core.serving.execution_policy import is_for_this_machine as is_own
is_own = is_own.__wrapped__
assert not is_own()
own = socket.create_server(("127.0.0.1", 0))
assert is_own()
os.environ["DASK_SCHEDULER_ADDRESS"] = "tcp://127.0.0.1:8786"
assert not is_own()
del os.environ["DASK_SCHEDULER_ADDRESS"]
everybody = socket.create_server(("0.0.0.0", 0))
assert not is_own()
""",
    )


@pytest.mark.parametrize("wish", ["", "confined", "off", "yes"])
@pytest.mark.parametrize("problem", ["", "bubblewrap is not installed."])
def test_on_a_server_code_runs_only_confined(wish, problem, monkeypatch) -> None:
    monkeypatch.setenv("RUN_CODE", wish)
    visit(monkeypatch, {"Host": "demo.example.org"})
    how = mode(answering(problem))
    assert how.kind == ("off" if problem or wish != "confined" else "confined")
    assert bool(how.why) == (how.kind == "off")


def test_without_workers_it_is_off(monkeypatch) -> None:
    def busy(*_: Any, **__: Any) -> str:
        raise ExplainedError("no workers")

    monkeypatch.setenv("RUN_CODE", "confined")
    assert mode(busy) == Mode("off", "no workers")
    assert mode(answering()) == Mode("confined")
