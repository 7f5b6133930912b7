"""What an error means: `python -m core.explain [FILE]`, or from standard input."""

import argparse
import json
import sys
from pathlib import Path

from core.explain.explain import explain, told


def main() -> int:
    """The exit status: 0, or 1 where no cause is known."""
    parser = argparse.ArgumentParser(prog="python -m core.explain", description=__doc__)
    parser.add_argument("file", nargs="?", help="a program's output; - reads a pipe")
    parser.add_argument("--json", action="store_true", help="null: no cause is known")
    options = parser.parse_args()
    if options.file in (None, "-"):
        if sys.stdin.isatty():
            hint = "Paste an error, then press Ctrl+D (Ctrl+Z and Enter on Windows)."
            print(hint, file=sys.stderr)
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    else:
        try:
            text = Path(options.file).read_text("utf-8", "replace")
        except OSError as error:
            parser.error(f"can't read {options.file}: {error.strerror}")
    answer = explain(text)
    if options.json:
        print(json.dumps(answer.as_found(), indent=2))
    else:
        print("\n\n".join(told(answer)))
    return int(answer.cause is None)


if __name__ == "__main__":
    sys.exit(main())
