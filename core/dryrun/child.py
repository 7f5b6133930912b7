"""The process in which a script runs: it reads a request and writes a report.

The report goes to the descriptor in ANSWER_FD, or else to the standard output. What the
script prints goes to the standard error.
"""

import json
import os
import sys

from core.dryrun.report import Request


def main() -> None:
    """Load torch first: a process that waits for its request answers sooner."""
    import torch._dynamo  # noqa: F401 - an optimizer's first step imports it

    from core.dryrun.run import run

    answer = int(os.environ.get("ANSWER_FD", 0)) or os.dup(1)
    os.write(answer, b"\n")  # ready: the script's seconds begin now
    request = Request(**json.loads(sys.stdin.buffer.readline()))
    os.dup2(2, 1)
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - as long as we live
    report = json.dumps(run(request).plain())
    with os.fdopen(answer, "w", encoding="utf-8") as output:
        output.write(report)
    sys.stdout.flush()
    os._exit(0)  # don't wait for threads that the script left behind


if __name__ == "__main__":
    main()
