"""The process in which a script runs: it reads a request and writes a report.

The report goes to the descriptor in ANSWER_FD, or else to the standard output. What the
script prints goes to the standard error.
"""

import json
import multiprocessing
import os
import sys
from os import _exit  # stays the same even if the script replaces os._exit

from to_device.dryrun.report import NO_REPORT, NOT_SIMULATED, Report, Request
from to_device.sim import simulation


def main() -> None:
    """Load torch, then read a request, run its script, and write the report."""
    # By default, torch's idle threads spin, which doubles the time on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import torch._dynamo  # noqa: F401 - an optimizer's first step would import it

    why_not = simulation.too_old()
    if not why_not:
        from to_device.dryrun.run import run

    answer = int(os.environ.get("ANSWER_FD", 0)) or os.dup(1)
    held = [answer]

    def let_go() -> None:
        """Close the report's pipe in a process that the script forks, but once."""
        while held:
            os.close(held.pop())

    if hasattr(os, "register_at_fork"):  # the reader waits until nobody can write
        os.register_at_fork(after_in_child=let_go)
    os.write(answer, b"\n")  # ready: the script's seconds begin now
    request = Request(**json.loads(sys.stdin.buffer.readline()))
    os.dup2(2, 1)  # what follows the request in the standard input is the script's
    status, is_visitors = NO_REPORT, "ANSWER_FD" in os.environ
    if is_visitors:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - never closed
    try:
        done = Report(NOT_SIMULATED, notes=[why_not]) if why_not else run(request)
        report = json.dumps(done.plain())
        with os.fdopen(answer, "w", encoding="utf-8") as output:
            output.write(report)
        sys.stdout.flush()
        status = 0
    except MemoryError:
        os.write(2, b"MemoryError\n")  # core.jobs.confined_code looks for this word
        raise
    finally:
        # This prints no traceback, and waits for no thread of the script. A visitor's
        # script can't start processes, but may have broken Python's own functions.
        if is_visitors:
            _exit(status)
        elif status == 0:
            for process in multiprocessing.active_children():
                process.terminate()  # as Python's own exit does with daemons
            _exit(status)


if __name__ == "__main__":
    main()
