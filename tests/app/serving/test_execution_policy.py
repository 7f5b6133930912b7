from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import HTTPConnection

from core.serving import execution_policy as policy
from core.serving.execution_policy import NOT_OWN, Mode, is_direct, is_private, mode
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
def test_on_a_server_code_runs_only_between_walls(wish, problem, monkeypatch) -> None:
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


def test_a_browser_of_this_machine_is_direct() -> None:
    six = {"Host": "[::1]:8501", "Origin": "http://[::1]:8501"}
    assert all(map(is_direct, (OWN, {"Host": "127.0.0.1:8501"}, six)))


@pytest.mark.parametrize(
    ("client", "headers", "is_ours"),
    [
        ("127.0.0.1", {"host": "127.0.0.1:8501"}, True),
        ("::1", {"host": "localhost:8501"}, True),
        ("127.0.0.1", {"host": "127.0.0.1", "x-forwarded-for": "127.0.0.1"}, False),
        ("127.0.0.1", {"host": "demo.example.org"}, False),
        ("192.168.0.9", {"host": "127.0.0.1:8501"}, False),
        ("10.86.7.9", {"host": "web:8501"}, True),
        ("10.86.7.9", {"host": "web:8501", "x-forwarded-for": "10.86.7.9"}, False),
        ("10.86.8.9", {"host": "web:8501"}, False),
        ("", {"host": "web:8501"}, False),
    ],
)
def test_private_is_who_asks_from_here_or_from_beside_the_proxy(
    client, headers, is_ours, monkeypatch
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "127.0.0.1,10.86.7.0/24")
    pairs = [(name.encode(), text.encode()) for name, text in headers.items()]
    scope = {"type": "http", "client": (client, 1), "headers": pairs}
    assert is_private(HTTPConnection(scope)) == is_ours


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Host": ""},
        {"Host": "[::1"},
        {"Host": "demo.example.org"},
        {"Host": "192.168.0.2:8501"},
        {"Host": "localhost.example.org"},
        {**OWN, "X-Forwarded-For": "127.0.0.1"},
        {**OWN, "x-forwarded-proto": "https"},
        {**OWN, "Forwarded": "for=127.0.0.1"},
        {**OWN, "Via": "1.1 Caddy"},
        {**OWN, "Origin": "https://evil.example.org"},
        {**OWN, "Origin": "null"},
        # Pages that other programs on this machine serve.
        {**OWN, "Origin": "http://localhost:3000"},
        {**OWN, "Origin": "http://127.0.0.1:8501"},
        {**OWN, "Origin": "https://localhost"},
        {**OWN, "Origin": "http://[::1"},
        # A name of somebody else's that leads to this machine.
        {"Host": "evil.example.org:8501", "Origin": "http://evil.example.org:8501"},
    ],
)
def test_what_may_come_from_elsewhere_is_not(headers) -> None:
    assert not is_direct(headers)
