"""The process in which a script runs: a request on its input, a report on its output.

What the script prints goes to the standard error, so the output is the report's alone.
"""

import json
import os
import sys

from core.dryrun.report import Request


def main() -> None:
    """Get ready first: a process that waits for its request answers sooner."""
    from core.dryrun.run import run
    from core.sim import simulation

    simulation.offer()
    request = Request(**json.loads(sys.stdin.buffer.readline()))
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - as long as we live
    output.write(run(request).to_json())
    output.close()
    sys.stdout.flush()
    os._exit(0)  # threads that the script has left don't hold it up


if __name__ == "__main__":
    main()
