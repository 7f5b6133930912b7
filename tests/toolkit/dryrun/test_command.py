import os
import re
from pathlib import Path
from textwrap import dedent

import psutil
import pytest

from tests.process import python
from to_device.dryrun import command
from to_device.dryrun.report import (
    ASKS,
    DEVICE_ERROR,
    NOT_SIMULATED,
    OK,
    SCRIPT_ERROR,
    Failure,
    Report,
    Request,
)
from to_device.dryrun.script import Line


def test_processes_that_a_script_leaves_behind(tmp_path: Path) -> None:
    """The report arrives without them, and they end, as with Python's own exit."""
    script = tmp_path / "script.py"
    script.write_text(
        dedent(
            """
            from multiprocessing import Process, Queue

            def fill(queue):
                while True:
                    queue.put(1)

            if __name__ == "__main__":
                queue = Queue(maxsize=1)
                process = Process(target=fill, args=(queue,), daemon=True)
                process.start()
                queue.get()
                print(f"pid {process.pid}")
                raise ValueError("this script has failed")
            """
        )
    )
    done = python("-m", "to_device", "dryrun", str(script), status=SCRIPT_ERROR)
    (pid,) = re.findall(r"^pid (\d+)$", done.stderr, re.MULTILINE)
    assert "this script has failed" in done.stdout
    left = [psutil.Process(int(pid))] if psutil.pid_exists(int(pid)) else []
    _, alive = psutil.wait_procs(left, 10)
    assert not alive


def test_a_script_that_fails_by_itself_in_a_loop_that_was_left(tmp_path: Path) -> None:
    """The whole run fails after fewer steps than the shortened one, and counts."""
    script = tmp_path / "script.py"
    script.write_text(
        dedent(
            """
            import torch
            net = torch.nn.Linear(512, 2048).cuda()
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            seen = []
            def train(row):
                seen.append(int(row))
                optimizer.zero_grad()
                net(torch.rand(2048, 512).cuda()).mean().backward()
                optimizer.step()
            for row in ["1"] * 30 + ["no number"]:
                train(row)
            for epoch in range(4):
                for row in ["1"] * 30:
                    train(row)
            assert len(seen) == 151, "only a part was seen"
            """
        )
    )
    done = python("-m", "to_device", "dryrun", str(script), status=SCRIPT_ERROR)
    assert "no number" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "gpu", "rest"),
    [
        ("train.py --gpu T4 --lr 1", "T4", ["--lr", "1"]),
        ("train.py --gpu 0 --lr 1", None, ["--gpu", "0", "--lr", "1"]),
        ("train.py --gpu=0,1", None, ["--gpu=0,1"]),
        ("train.py --gpu --lr 1", None, ["--gpu", "--lr", "1"]),
        ("train.py --gpu 0 1", None, ["--gpu", "0", "1"]),
        ("--gpu T4 train.py --gpu", "T4", ["--gpu"]),
        ("--gpu T4 train.py -- --gpu T4", "T4", ["--gpu", "T4"]),
    ],
)
def test_a_gpu_option_of_the_script(
    arguments: str, gpu: str | None, rest: list[str]
) -> None:
    ours = command.options(arguments.split(), "to-device dryrun")
    assert (ours.script, ours.gpu, ours.arguments) == ("train.py", gpu, rest)


SCRIPTS = {
    "own.py": "parser.add_argument('--steps', type=int)\n",
    "imports.py": "from . import x\nfrom tools.options import parse\nparse()\n",
    "tools/options.py": "parser.add_argument('--json', action='store_true')\n",
    "fields.py": "import tyro\nclass Args:\n    seconds: int = 3\n",
    "none.py": "steps = 3  # an option --steps would be nice\n",
}


@pytest.mark.parametrize(
    ("arguments", "steps", "has_json", "rest"),
    [
        ("own.py --steps 9 --lr 1", 3, False, ["--steps", "9", "--lr", "1"]),
        ("own.py --steps=9 --json", 3, True, ["--steps=9"]),
        ("--steps 5 own.py --steps 9", 5, False, ["--steps", "9"]),
        ("imports.py --steps 5 --json", 5, False, ["--json"]),
        ("-m imports --steps 5 --json", 5, False, ["--json"]),
        ("fields.py --seconds 9 --steps 5", 5, False, ["--seconds", "9"]),
        ("none.py --steps 5 --lr 1", 5, False, ["--lr", "1"]),
        ("none.py --steps 5 -- --steps 9", 5, False, ["--steps", "9"]),
        ("none.py -h_dim 32 -s3 -h", 3, False, ["-h_dim", "32", "-s3", "-h"]),
    ],
)
def test_options_that_the_script_has_too(
    arguments: str,
    steps: int,
    has_json: bool,
    rest: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After its name, a script gets its own options; before it, we get ours."""
    (tmp_path / "tools").mkdir()
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    ours = command.options(arguments.split(), "to-device dryrun")
    assert (ours.steps, ours.json, ours.arguments) == (steps, has_json, rest)


@pytest.mark.parametrize(
    ("read", "answer", "status", "told"),
    [
        ("input('Go on? ')", b"y\n", DEVICE_ERROR, "script.py:4"),
        ("input()", b"", NOT_SIMULATED, ASKS),
        ("sys.stdin.readline().strip()", b"y\n", DEVICE_ERROR, "script.py:4"),
        ("sys.stdin.read()", b"", NOT_SIMULATED, ASKS),
        ("[*sys.stdin][-1].strip()", b"n\ny\n", DEVICE_ERROR, "script.py:4"),
        ("pdb.set_trace() or 'y'", b"c\n", DEVICE_ERROR, "script.py:4"),
        ("pdb.set_trace()", b"", NOT_SIMULATED, ASKS),
        ("[*sys.stdin]", b"n\n", OK, "no device error"),
    ],
)
def test_a_script_that_asks_reads_what_is_piped_in(
    tmp_path: Path, read: str, answer: bytes, status: int, told: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"import pdb, sys\nimport torch\nx, answer = torch.ones(2).cuda(), {read}\n"
        "torch.zeros(2).to('cpu' if answer == 'y' else 'cuda') + x"
    )
    asked = "-m", "to_device", "dryrun", str(script)
    assert told in python(*asked, status=status, input=answer).stdout


@pytest.mark.parametrize(
    ("make", "status"),
    [
        ("os.mkdir('run')", OK),
        ("Path('run/one').mkdir(parents=True)", OK),
        ("assert not os.path.exists('run'); os.mkdir('run')", NOT_SIMULATED),
        ("os.mkdir('run'); os.mkdir('run')", SCRIPT_ERROR),
    ],
)
def test_a_second_dry_run_may_make_the_folders_of_the_first(
    tmp_path: Path, make: str, status: int
) -> None:
    """The loop is left early, and then needed whole. No file is moved or deleted."""
    script = tmp_path / "script.py"
    script.write_text(
        dedent(
            f"""
            import os
            from pathlib import Path

            import torch

            os.chdir(os.path.dirname(__file__))
            {make}
            with open("run/log", "a") as log:
                log.write("begun ")
            weight = torch.zeros(2, device="cuda", requires_grad=True)
            optimizer = torch.optim.SGD([weight], lr=0.1)
            losses = []
            for step in range(2000):
                loss = (weight - 1).square().sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            print(torch.tensor(losses).view(20, 100).mean(1))
            """
        )
    )
    python("-m", "to_device", "dryrun", str(script), status=status)
    if status == OK:
        assert (tmp_path / "run" / "log").read_text() == "begun begun "


FAILED = Failure("IndexError", "invalid index", Line("script.py", 7))
EARLY = Report(NOT_SIMULATED, 20, FAILED, fails_after_visit=True, fails_after_loop=True)
LATE = Report(NOT_SIMULATED, 900, notes=["The script was stopped after 60 s."])


@pytest.mark.parametrize(
    ("whole", "status", "told"),
    [
        (Report(SCRIPT_ERROR, 99, FAILED), SCRIPT_ERROR, "script.py:7"),
        (Report(OK, 100), OK, "Optimizer steps: 100"),
        (LATE, OK, "line 7 of script.py with `IndexError: invalid index`"),
        # Perhaps it fails for what an earlier dry run has left behind.
        (Report(SCRIPT_ERROR, 0, FAILED), OK, "line 7 of script.py with `IndexError"),
    ],
)
def test_a_whole_run_decides_on_a_failure_in_a_part_that_was_run_early(
    whole: Report,
    status: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without the part, nothing fails. If no whole run decides, the report tells it."""

    def dry_run(request: Request, _: bytes = b"") -> dict:
        first = EARLY if request.visits else Report(OK, 20)
        return (first if request.shortens else whole).plain()

    script = tmp_path / "script.py"
    script.write_text("import torch")
    monkeypatch.setattr(command, "dry_run", dry_run)
    monkeypatch.setattr(command, "end_with_pipe", lambda: None)
    assert command.main([str(script)]) == status
    assert told in capsys.readouterr().out


@pytest.mark.slow
def test_a_thread_that_fills_a_queue_is_not_left_waiting(tmp_path: Path) -> None:
    """Its loop is left early, and then the script waits for the thread's end."""
    script = tmp_path / "script.py"
    script.write_text(
        dedent(
            """
            import queue
            import threading

            import torch

            weight = torch.zeros(2, device="cuda", requires_grad=True)
            optimizer = torch.optim.SGD([weight], lr=0.1)
            batches = queue.Queue(2)

            def fill():
                for _ in range(200):
                    batches.put(torch.rand(2))
                batches.put(None)

            thread = threading.Thread(target=fill)
            thread.start()
            while (batch := batches.get()) is not None:
                loss = (weight - batch.cuda()).square().sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            thread.join()
            print("ended")
            """
        )
    )
    done = python("-m", "to_device", "dryrun", str(script))
    assert "ended" in done.stderr


@pytest.mark.slow
def test_an_environment_without_numpy(tmp_path: Path) -> None:
    """Torch doesn't need it, so the dry run doesn't, either."""
    blocked = tmp_path / "numpy.py"
    blocked.write_text("raise ModuleNotFoundError(name='numpy')")
    script = tmp_path / "script.py"
    script.write_text("import torch\ntorch.zeros(2).cuda() + torch.zeros(2)")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = "-m", "to_device", "dryrun", str(script)
    done = python(*command, env=env, status=DEVICE_ERROR)
    assert "script.py:2" in done.stdout


@pytest.mark.parametrize(("name", "hides"), [("unittest.py", True), ("this.py", False)])
def test_a_file_with_the_name_of_one_of_pythons_modules(
    tmp_path: Path, name: str, hides: bool
) -> None:
    """Python would find it first, so a script can't import torch if it needs that."""
    (tmp_path / name).write_text("")
    script = tmp_path / "script.py"
    script.write_text("import torch\ntorch.ones(2).cuda()\n")
    status = SCRIPT_ERROR if hides else OK
    done = python("-m", "to_device", "dryrun", str(script), status=status)
    assert (f"beside {name}" in done.stdout) == hides


def test_an_imported_file_warns_of_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "part.py").write_text('def f(x):\n    return x is "a"\n')
    script = tmp_path / "script.py"
    script.write_text("import torch\nimport part\ntorch.ones(2).cuda()\n")
    done = python("-m", "to_device", "dryrun", str(script), status=OK)
    assert "part.py:2: SyntaxWarning" in done.stderr


def test_sizes_in_words() -> None:
    sizes = [command.size(text) for text in ("1500000", "1.5k", "8GB", "64 MiB")]
    assert sizes == [1_500_000, 1_500, 8 * 10**9, 64 * 2**20]
