"""What a stranger's script can't do, tried for real, and how its process ends."""

import os
import platform
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.jobs import code, confined_code
from core.jobs.confined_code import ConfinedCode, End
from tests.app.jobs import attacks
from tests.process import HOUR, ROOT, descendants, python, that_go_on
from to_device.dryrun.report import OK, Request
from to_device.errors import ExplainedError

ATTACKS = Path(attacks.__file__).read_text("utf-8")
ECHO = "import os, sys; os.write(int(os.environ['ANSWER_FD']), sys.stdin.buffer.read())"

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows runs no visitor's code"
)
walls = pytest.mark.skipif(
    bool(confined_code.problem()), reason=confined_code.problem()
)


@pytest.fixture
def there(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What an attack may reach for; nothing of it has changed afterwards."""
    file = tmp_path / "secret"
    file.write_text("as it was")
    with ExitStack() as open_sockets:
        server = open_sockets.enter_context(socket.create_server(("127.0.0.1", 0)))
        abstract = open_sockets.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{tmp_path}")
        abstract.listen()
        yield {
            "file": str(file),
            "folder": str(tmp_path),
            "root": str(ROOT),
            "port": server.getsockname()[1],
            "abstract": str(tmp_path),
            "parent": os.getpid(),
        }


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = descendants()
    yield
    assert list(that_go_on(descendants() - before)) == []


@pytest.fixture
def _no_spares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "SPARES", 0)


def run(code: str, request: bytes = b"", **limits: Any) -> End:
    return ConfinedCode(["-c", code], **{"seconds": HOUR, **limits}).ask(request)


def attempt(deed: str, there: dict[str, Any]) -> str:
    return f"{ATTACKS}\nattempt({deed}, {there!r})"


@walls
@pytest.mark.parametrize("name", attacks.REFUSED)
def test_an_attempt_is_refused(name: str, there: dict[str, Any]) -> None:
    ended = run(attempt(f"REFUSED[{name!r}]", there))
    assert ended.status == 0, ended
    assert ended.output, ended
    assert b"DONE" not in ended.output, ended
    assert [path.name for path in Path(there["folder"]).iterdir()] == ["secret"]
    assert Path(there["file"]).read_text() == "as it was"


CAN_ELSEWHERE = " ".join(attacks.CAN_ELSEWHERE.split()).split(", ")


@pytest.mark.skipif(sys.platform != "linux", reason="the attempts are of Linux")
@pytest.mark.parametrize("name", CAN_ELSEWHERE)
def test_unconfined_attacks_succeed(name: str, there: dict[str, Any]) -> None:
    code = attempt(f"REFUSED[{name!r}]", there)
    program = [sys.executable, "-c", code]
    done = subprocess.run(
        program, capture_output=True, start_new_session=True, cwd=there["folder"]
    )
    assert b"DONE" in done.stdout


@walls
def test_calls_past_python_are_refused(there: dict[str, Any]) -> None:
    ended = run(attempt("all_calls", there))
    assert ended.output == b"DONE\n"


@walls
@pytest.mark.parametrize("name", attacks.ENDED)
def test_what_takes_too_much_is_ended(name: str, there: dict[str, Any]) -> None:
    why, _ = attacks.ENDED[name]
    if why == "Bad system call" and platform.machine() != "x86_64":
        pytest.skip("this machine code is for x86")
    limits = {"seconds": 0.5 if why == "seconds" else HOUR, "memory_bytes": 2 * 10**8}
    ended = run(attempt(f"ENDED[{name!r}][1]", there), **limits)
    assert why in ended.why + ended.errors.decode(errors="replace"), ended
    assert len(ended.output) <= 64_000
    assert len(ended.errors) <= 64_000
    assert len(ended.answer) <= confined_code.MOST_BYTES["answer"]


@walls
@pytest.mark.parametrize(("sleeps", "is_ended"), [(0.8, False), (HOUR, True)])
def test_time_in_which_others_run_is_not_the_programs(
    sleeps: float, is_ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on a machine so busy that the program hardly ever runs.
    monkeypatch.setattr(ConfinedCode, "_held_up", lambda _: time.monotonic())
    ended = run(f"import time; time.sleep({sleeps})", seconds=0.4)
    assert ("seconds" in ended.why) is is_ended, ended


THREADS = """
import threading, time
def compute():
    while time.process_time() < 20:
        pass
threads = [threading.Thread(target=compute) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@walls
def test_a_program_is_not_held_up_by_its_own_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ConfinedCode, "_held_up", lambda _: time.monotonic())
    monkeypatch.setattr(confined_code, "MOST_HELD_UP", HOUR)
    assert "seconds" in run(THREADS, seconds=0.4).why


@walls
@pytest.mark.parametrize("size", [0, 10, 900_000])
def test_it_answers(size: int) -> None:
    request = os.urandom(size)
    assert run(ECHO, request) == End(0, b"", b"", request)


@walls
@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import os, sys; os.write(1, bytes(range(256))); sys.exit(7)", 7),
        ("import os; os.write(1, bytes(range(256))); os._exit(200)", 200),
        ("import os; os.write(1, bytes(range(256))); os.closerange(0, 64)", 0),
    ],
)
def test_the_exit_status_is_reported(code: str, status: int) -> None:
    ended = run(code, b"x" * 10**6)
    assert ended == End(status, bytes(range(256)), b"", b"")


@walls
def test_it_knows_no_environment_and_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COOKIE_SECRET", "x" * 32)
    ended = run("import os; print(os.uname().nodename, *os.environ)")
    name, *variables = ended.output.decode().split()
    assert name == "sandbox"
    assert {*variables} <= {
        *confined_code.ENVIRONMENT,
        "ANSWER_FD",
        "PYTHONPATH",
        "PWD",
    }


@walls
@pytest.mark.usefixtures("_no_spares")
@pytest.mark.parametrize(
    "text",
    [
        "facts = {'outputs': 0}\nfacts['outputs'] = facts",
        "import os\nos.close(int(os.environ['ANSWER_FD']))",
        "import builtins\nfor name in dir(builtins): setattr(builtins, name, None)",
    ],
)
def test_an_unwritable_report_is_an_error_without_a_traceback(text: str) -> None:
    report, printed = code.run(Request("your code", text), "confined")
    assert (report["notes"], printed) == ([code.UNREADABLE], "")


@walls
@pytest.mark.usefixtures("_no_spares")
def test_a_fact_that_json_cannot_hold_is_named_by_its_class() -> None:
    request = Request("your code", "import torch\nfacts = {'a': torch.ones(1)}")
    report, _ = code.run(request, "confined")
    assert (report["status"], report["facts"]) == (OK, {"a": "Tensor"})


@walls
@pytest.mark.usefixtures("_no_spares")
@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("import os\nos.fork()", "code can't start processes"),
        ("open('/tmp/new', 'w')", "or write files"),
    ],
)
def test_an_error_of_the_confinement_names_the_limit(text: str, limit: str) -> None:
    report, _ = code.run(Request("your code", text), "confined")
    assert limit in code.failed(report["failure"], "your code")


@walls
def test_it_holds_nothing_open_but_its_pipes() -> None:
    code = """
import os
for number in range(64):
    try:
        assert not os.lseek(number, 0, os.SEEK_CUR), "a file"
    except OSError as error:
        print(error.errno)
"""
    ended = run(code)
    assert Counter(ended.output.split()) == {b"29": 4, b"9": 60}, ended


@walls
def test_it_ends_with_its_parent() -> None:
    code = """
from core.jobs.confined_code import ConfinedCode
import psutil, time
process = ConfinedCode(["-c", "import time; time.sleep(600)"])
while len(family := psutil.Process().children(recursive=True)) < 3:
    time.sleep(0.01)
print(*(each.pid for each in family), flush=True)
psutil.Process().kill()
"""
    done = python("-c", code, status=-signal.SIGKILL)
    for number in done.stdout.split():
        with suppress(psutil.NoSuchProcess):
            assert list(that_go_on([psutil.Process(int(number))])) == []


@walls
@pytest.mark.alone
@pytest.mark.slow
def test_torch_computes_in_it() -> None:
    """Each backward pass has a thread of its own, an optimizer loads half of torch."""
    code = """
import torch
torch.set_num_threads(2)
x = torch.randn(500, 500, requires_grad=True)
optimizer = torch.optim.Adam([x])
(x @ x).sum().backward()
optimizer.step()
print(torch.cuda.is_available() or x.grad.shape)
"""
    ended = run(code)
    assert ended.output == b"torch.Size([500, 500])\n", ended
    assert run("import torch; torch.ones(2**33)").why
    ended = run("import torch; torch.ones(2**29)")
    assert "1.5 GB of memory" in ended.why


@walls
def test_one_that_nobody_asks_can_be_ended() -> None:
    process = ConfinedCode(["-c", ECHO])
    process.end()
    process.end()


@walls
def test_it_outlives_the_thread_that_started_it() -> None:
    started: list[ConfinedCode] = []
    thread = threading.Thread(target=lambda: started.append(ConfinedCode(["-c", ECHO])))
    thread.start()
    thread.join()
    time.sleep(0.1)
    assert started[0].ask(b"x").answer == b"x"


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")
@pytest.mark.parametrize(
    ("program", "text"),
    [
        (None, "not installed"),
        ("echo 'bwrap: No permissions' >&2; exit 1", "bwrap: No permissions"),
        # One that builds no walls: it drops its options and runs the rest.
        (
            'while [ "$1" != -m ]; do [ "$1" = --setenv ] && export "$2=$3"; '
            'last=$1; shift; done; exec "$last" "$@"',
            "can still read another file",
        ),
    ],
)
def test_without_the_tools_nothing_is_confined(
    program: str | None,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if program:
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "bwrap").chmod(0o755)
    before = confined_code.problem()
    with monkeypatch.context() as without:
        without.setenv("PATH", str(tmp_path))
        confined_code._try_once.cache_clear()
        assert text in confined_code.problem()
        with pytest.raises(ExplainedError):
            ConfinedCode(["-c", ECHO])
    assert confined_code.problem() == before  # once they are there again
