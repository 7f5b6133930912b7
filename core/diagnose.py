"""Find out why torch doesn't use a GPU: `python -m core.diagnose` needs only torch.

python -m core.diagnose --json
python -m core.diagnose report.txt    # what collect_env printed on another machine
"""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from core.errors import ExplainedError, Parser, end_with_pipe
from core.lessons.device.collect_env import diagnose_report
from core.lessons.device.device_result import Diagnosis
from core.lessons.device.diagnosis import diagnose


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0 if a GPU works, 1 if not, 2 without a diagnosis."""
    parser = Parser(prog="python -m core.diagnose", description=__doc__)
    parser.add_argument(
        "file", nargs="?", help="another machine's report, or - to read stdin"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    try:
        diagnosis = of_file(options.file) if options.file else of_this_machine()
    except ExplainedError as error:
        print(error, file=sys.stderr)
        return 2
    text = json.dumps(asdict(diagnosis), indent=2) if options.json else plain(diagnosis)
    print(text)
    return 0 if diagnosis.state == "accelerator" else 1


def of_this_machine() -> Diagnosis:
    try:
        from core.lessons.device.facts import probe
    except ModuleNotFoundError as error:
        message = f"Python can't import {error.name}. Run: python -m pip install torch"
        raise ExplainedError(message) from None
    return diagnose(probe())


def of_file(name: str) -> Diagnosis:
    """Diagnose the report in a file, or on standard input for "-"."""
    try:
        file = sys.stdin.fileno() if name == "-" else Path(name)
        with open(file, encoding="utf-8", errors="replace") as report:
            return diagnose_report(report.read())
    except OSError as error:
        raise ExplainedError(f"{name} can't be read: {error.strerror}") from None


def plain(diagnosis: Diagnosis) -> str:
    """The diagnosis without Markdown, and with the command on its own lines."""
    parts = [diagnosis.verdict, diagnosis.why, diagnosis.way_out, diagnosis.command]
    text = "\n\n".join(part for part in parts if part)
    return re.sub(r"\[([^]]+)\]\(([^)]+)\)", r"\1 (\2)", text).replace("`", "")


if __name__ == "__main__":
    end_with_pipe()
    sys.exit(main())
