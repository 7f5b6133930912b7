"""One run, from its configuration to its result; also the command line.

python -m core.run --task fashion-mnist --model ann --epochs 5 --json
python -m core.run --fast --model cnn --json
"""

import argparse
import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor, nn

from core import criteria, devices, loops, models
from core.config import CHOICES, FAST, RECIPES, RunConfig, parse
from core.data import batches, curve, datasets
from core.errors import CancelledError, explain
from core.loss_meter import REPORT_SECONDS, LossMeter
from core.results import Epoch, Fit, RunResult, Started, StepProgress

EVALUATION_BATCH = 1000
TRAIN_SAMPLE = 10_000  # as many as there are test images, so that both cost the same

Report = Callable[[Started | StepProgress | Epoch | Fit], None]


def unwatched(event: object) -> None:
    """Nobody is told."""


def run(
    config: RunConfig,
    report: Report = unwatched,
    cancelled: Callable[[], bool] = lambda: False,
) -> RunResult:
    """Train and evaluate as `config` says.

    `cancelled` is asked in every batch; CancelledError ends the run. ExplainedError is
    raised for what the person who started it can do something about.
    """
    device = devices.resolve(config.device)
    dataset = datasets.load(config.task)

    torch.manual_seed(config.seed)
    model = models.build(config.model).to(device)
    criterion = criteria.build(config.criterion).to(device)
    # What the criterion has to learn is learnt together with the weights.
    optimizer = make_optimizer(nn.ModuleList([model, criterion]), config, device)
    feed = batches.make(
        config.feed,
        dataset.train,
        config.batch_size,
        device,
        config.seed,
        config.augment,
        config.num_workers,
        config.pin_memory,
    )
    total_steps = len(feed) * config.epochs
    scheduler = make_scheduler(optimizer, config, total_steps)
    train_sample = evaluation_batches(dataset.train.first(TRAIN_SAMPLE), device)
    test = evaluation_batches(dataset.test, device)

    def stoppable(source: batches.Batches) -> Iterator[tuple[Tensor, Tensor]]:
        for batch in source:
            if cancelled():
                raise CancelledError
            yield batch

    def evaluate(source: batches.Batches) -> loops.Score | loops.RegressionScore:
        outputs, targets = loops.predict(model, stoppable(source), device)
        score = loops.score if config.has_images else loops.score_regression
        return score(outputs, targets, criterion)

    images = len(dataset.train)
    environment = devices.environment(device)
    parameters = models.count_parameters(model)
    report(Started(environment, parameters, total_steps, images, len(dataset.test)))
    meter = LossMeter(
        device, images, config.batch_size, total_steps, config.learning_rate, report
    )
    history: list[Epoch] = []
    fit: Fit | None = None
    fit_due = 0.0
    for number in range(1, config.epochs + 1):
        meter.begin_epoch()
        for loss in loops.train_epoch(
            model, stoppable(feed), criterion, optimizer, device, scheduler
        ):
            meter.add(loss)
        mean_loss, seconds = meter.end_epoch()

        train_score, test_score = evaluate(train_sample), evaluate(test)
        meter.check(train_score.loss, meter.step)  # the last step may overflow too
        meter.check(test_score.loss, meter.step)
        epoch = Epoch(
            number,
            meter.step,
            mean_loss,
            train_score.loss,
            test_score.loss,
            seconds,
            images / seconds,
            **figures("train", train_score),
            **figures("test", test_score),
        )
        history.append(epoch)
        report(epoch)
        ended = number == config.epochs
        if not config.has_images and (ended or time.perf_counter() > fit_due):
            fit = fit_now(model, criterion, device, meter.step)
            report(fit)
            fit_due = time.perf_counter() + REPORT_SECONDS

    return RunResult(
        config,
        environment,
        parameters,
        tuple(history),
        tuple(meter.drawn),
        getattr(test_score, "correct", None),
        test_score.total,
        time.perf_counter() - meter.began,
        to_checkpoint(model),
        fit,
    )


def figures(split: str, score: loops.Score | loops.RegressionScore) -> dict[str, float]:
    """The fields of Epoch that a score of "train" or "test" fills, beside the loss."""
    if isinstance(score, loops.Score):
        return {f"{split}_accuracy": score.accuracy}
    return {f"{split}_r2": score.r2, f"{split}_rmse": score.rmse}


def fit_now(
    model: nn.Module, criterion: nn.Module, device: torch.device, step: int
) -> Fit:
    """The curve that the model has learnt by now."""
    x = torch.tensor(curve.POSITIONS).view(-1, 1)
    outputs, _ = loops.predict(model, [(x, x)], device)
    return Fit(
        step, tuple(outputs.flatten().tolist()), criteria.learned_noise(criterion)
    )


def make_optimizer(
    model: nn.Module, config: RunConfig, device: torch.device
) -> torch.optim.Optimizer:
    """AdamW, with all parameters updated by one kernel where torch has one."""
    return torch.optim.AdamW(
        model.parameters(),
        config.learning_rate,
        weight_decay=config.weight_decay,
        fused=device.type in ("cpu", "cuda"),
    )


def make_scheduler(
    optimizer: torch.optim.Optimizer, config: RunConfig, steps: int
) -> torch.optim.lr_scheduler.LRScheduler | None:
    """One-cycle: the rate climbs to its peak, then falls to nearly nothing."""
    if config.schedule == "constant":
        return None
    return torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        max_lr=config.learning_rate,
        total_steps=max(steps, 5),  # with 4, torch divides by zero
        pct_start=0.25,
    )


def evaluation_batches(split: datasets.Split, device: torch.device) -> batches.Batches:
    """The split in file order, in batches as large as evaluating is quick with."""
    return batches.make("memory", split, EVALUATION_BATCH, device)


def to_checkpoint(model: nn.Module) -> bytes:
    """The state_dict as torch.save writes it, on the CPU, for anywhere."""
    buffer = io.BytesIO()
    state_dict = model.state_dict()
    torch.save({name: t.cpu() for name, t in state_dict.items()}, buffer)
    return buffer.getvalue()


def from_checkpoint(
    checkpoint: bytes,
    model: str,
    device: torch.device,
) -> nn.Module:
    """The trained model, on `device`."""
    opened = io.BytesIO(checkpoint)
    state_dict = torch.load(opened, map_location="cpu", weights_only=True)
    restored = models.build(model)
    restored.load_state_dict(state_dict)
    return restored.to(device)


def parse_arguments(arguments: list[str] | None) -> tuple[RunConfig, bool]:
    """The configuration, and whether JSON is wanted. Exits with 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m core.run", description=__doc__, allow_abbrev=False
    )
    # One line on standard error, not the whole usage.
    parser.error = lambda message: parser.exit(2, f"{parser.prog}: {message}\n")  # type: ignore[method-assign]

    def converter(name: str) -> Callable[[str], Any]:
        def convert(text: str) -> Any:
            try:
                return parse(name, text)
            except ValueError as error:
                raise argparse.ArgumentTypeError(str(error)) from None

        return convert

    for field in fields(RunConfig):
        flags = [f"--{field.name.replace('_', '-')}"]
        if field.name == "learning_rate":
            flags.append("--lr")
        parser.add_argument(
            *flags,
            dest=field.name,
            type=converter(field.name),
            default=argparse.SUPPRESS,
            metavar="|".join(CHOICES.get(field.name, (field.type.__name__.upper(),))),  # type: ignore[union-attr]
            help=f"default: {field.default}"
            + (
                ", or as the model's recipe says"
                if field.name in RECIPES["ann"]
                else ", or what fits the task"
                if field.name in ("model", "criterion")
                else ""
            ),
        )
    parser.add_argument(
        "--fast",
        action="store_true",
        help=f"about as accurate, sooner: {' and '.join(FAST)} have a fast setting; "
        "what else is given overrides it",
    )
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    given = vars(parser.parse_args(arguments))
    as_json = given.pop("json")
    try:
        return RunConfig.with_recipe(**given), as_json
    except ValueError as error:
        parser.error(str(error))
        raise  # not reached: the parser has exited


def main(arguments: list[str] | None = None) -> int:
    config, as_json = parse_arguments(arguments)

    def show(event: Started | StepProgress | Epoch | Fit) -> None:
        if isinstance(event, Started):
            where = event.environment
            print(
                f"{config.task}, {config.model} ({event.parameters:,} parameters) on "
                f"{where.device_name} ({where.device}), torch {where.torch}, "
                f"{where.threads} threads",
                file=sys.stderr,
            )
        if isinstance(event, Epoch):
            quality = (
                f"test accuracy {event.test_accuracy:.2%}"
                if config.has_images
                else f"test r2 {event.test_r2:.4f}  rmse {event.test_rmse:.4f}"
            )
            print(
                f"epoch {event.epoch:2}  loss {event.loss:.4f}  "
                f"{quality}  {event.seconds:.2f} s  "
                f"{event.samples_per_second:,.0f} samples/s",
                file=sys.stderr,
            )

    devices.leave_a_core()  # as the app's workers do, so that the numbers agree
    try:
        result = run(config, show)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        print(f"python -m core.run: {explain(error, (config,))}", file=sys.stderr)
        return 1
    if as_json:
        print(json.dumps(result.to_json()))
    else:
        print(in_words(result))
    return 0


def in_words(result: RunResult) -> str:
    """How good the model is, in the last line of the command's output."""
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
