import re
from pathlib import Path
from textwrap import dedent

import psutil
import pytest

from tests.process import python
from to_device.dryrun import command
from to_device.dryrun.report import SCRIPT_ERROR


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
