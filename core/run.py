"""Make one training run on the command line and print its result.

python -m core.run --task fashion-mnist --model ann --epochs 5 --json
python -m core.run --fast --model cnn --json
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from core import devices
from core.config import CHOICES, FAST, RECIPES, RunConfig, parse
from core.data import curve
from core.errors import explain
from core.results import Epoch, Fit, RunResult, Started, StepProgress
from core.training import run
from core.watch import Watch
from to_device.errors import Parser, end_with_pipe
from to_device.names import SIMULATED

PROG = "python -m core.run"
HELP = {  # what --help says after the default value of a setting
    **dict.fromkeys(RECIPES["ann"], ", unless the model's recipe differs"),
    **dict.fromkeys(("model", "criterion"), ", or one that fits the task"),
}


def parse_arguments(
    arguments: Sequence[str] | None, prog: str = PROG
) -> tuple[RunConfig, bool]:
    """The configuration, and whether to print JSON. Exits with 2 for bad input."""
    parser = Parser(prog, description=__doc__, allow_abbrev=False)

    def convert(name: str, text: str) -> Any:
        try:
            return parse(name, text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    for field in fields(RunConfig):
        if field.name == "host":
            continue  # the command runs on this machine
        short = ["--lr"] if field.name == "learning_rate" else []
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            *short,
            dest=field.name,
            type=partial(convert, field.name),
            default=argparse.SUPPRESS,
            metavar="|".join(CHOICES.get(field.name, (field.type.__name__.upper(),))),  # type: ignore[union-attr]
            help=f"default: {field.default}{HELP.get(field.name, '')}",
        )
    parser.add_argument(
        "--fast",
        action="store_true",
        help="train to about the same accuracy in less time; only for "
        f"{' and '.join(FAST)}; your own options take precedence",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    settings = vars(parser.parse_args(arguments))
    as_json = settings.pop("json")
    try:
        return RunConfig.with_recipe(**settings), as_json
    except ValueError as error:
        parser.error(str(error))


def main(arguments: Sequence[str] | None = None, prog: str = PROG) -> int:
    config, as_json = parse_arguments(arguments, prog)

    def show(event: Started | StepProgress | Epoch | Fit) -> None:
        if isinstance(event, Started):
            here = event.environment
            print(
                f"{config.task}, {config.model} ({event.parameters:,} parameters) on "
                f"{here.device_name} ({here.device}), torch {here.torch}, "
                f"{here.threads} threads",
                file=sys.stderr,
            )
        if isinstance(event, Epoch):
            quality = (
                f"test accuracy {event.test_accuracy:.2%}"
                if config.has_images
                else f"test r2 {event.test_r2:.4f}  rmse {event.test_rmse:.4f}"
            )
            line = f"epoch {event.epoch:2}  loss {event.loss:.4f}  {quality}"
            if config.device != SIMULATED:
                speed = f"{event.samples_per_second:,.0f} samples/s"
                line += f"  {event.seconds:.2f} s  {speed}"
            print(line, file=sys.stderr)

    devices.leave_a_core()  # as in the app: another thread count rounds differently
    try:
        result = run(config, Watch(show))
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        print(f"{prog}: {explain(error, (config,))}", file=sys.stderr)
        return 1
    end_with_pipe()
    print(json.dumps(result.to_json()) if as_json else in_words(result))
    return 0


def in_words(result: RunResult) -> str:
    if result.config.has_images:
        return (
            f"test accuracy {result.test_accuracy:.2%} "
            f"({result.test_correct:,} of {result.test_total:,})"
        )
    line = (
        f"test r2 {result.r2:.4f}, rmse {result.rmse:.4f} "
        f"({result.test_total:,} points, drawn with noise {curve.NOISE})"
    )
    if result.fit and result.fit.noise:
        line += f", learned noise {result.fit.noise:.4f}"
    return line


if __name__ == "__main__":
    sys.exit(main())
