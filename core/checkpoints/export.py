"""A run to take home: a standalone script, the same as a notebook, a command line.

Text in, text out, without torch. The model, the batches and the loops are the source of
this project itself, read from its files: what leaves is what ran.
"""

import ast
import json
import re
import textwrap
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from core.config import RunConfig
from core.results import RunResult

CORE = Path(__file__).parents[1]
WIDTH = 79
ALWAYS = ("task", "model", "device", "epochs", "batch_size", "learning_rate", "seed")


@dataclass(frozen=True)
class Section:
    """A step of the script, or two cells of the notebook."""

    title: str
    text: str  # what a reader should know before the code
    code: str
    where: str = "both"  # or "script", "notebook"


def command(config: RunConfig) -> str:
    """The command line that repeats the run with this app's code."""
    recipe = RunConfig.with_recipe(task=config.task, model=config.model)
    settings = [
        (field.name, getattr(config, field.name))
        for field in fields(config)
        if field.name in ALWAYS
        or getattr(config, field.name) != getattr(recipe, field.name)
    ]
    words = [
        f"--{name.replace('_', '-')} {_argument(value)}" for name, value in settings
    ]
    return " ".join(["python -m core.run", *words])


def _argument(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def script(result: RunResult) -> str:
    """A program that needs only torch (and torchvision, to download the data)."""
    parts = [f'"""{_wrap(_introduction(result))}\n"""\n']
    shown = [each for each in sections(result) if each.where != "notebook"]
    for number, each in enumerate(shown, 1):
        heading = f"# %% {number}. {each.title}"
        comment = textwrap.indent(_wrap(each.text), "# ", lambda _: True)
        comment = "\n".join(line.rstrip() for line in comment.splitlines())
        parts.append(f"{heading}\n#\n{comment}\n\n{each.code.strip()}\n")
    return "\n\n".join(parts)


def heart(result: RunResult) -> str:
    """The part of the script that trains, for the page."""
    parts = [each.code.strip() for each in sections(result)[-3:-1]]
    return "\n\n".join(parts)


def notebook(result: RunResult) -> str:
    """The same as a Jupyter notebook, format 4.5: a text and a code cell a section."""
    cells: list[dict[str, Any]] = []

    def add(kind: str, text: str) -> None:
        cell = {
            "cell_type": kind,
            "id": f"cell-{len(cells)}",
            "metadata": {},
            "source": text.strip().splitlines(keepends=True),
        }
        cells.append(
            cell | ({"outputs": [], "execution_count": None} if kind == "code" else {})
        )

    title, _, rest = _introduction(result).partition("\n\n")
    add("markdown", f"# {title}\n\n{rest}")
    shown = [each for each in sections(result) if each.where != "script"]
    for number, each in enumerate(shown, 1):
        add("markdown", f"## {number}. {each.title}\n\n{each.text}")
        add("code", each.code)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps(
        {
            "cells": cells,
            "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        },
        indent=1,
    )


def _introduction(result: RunResult) -> str:
    config, here = result.config, result.environment
    task = {
        "fashion-mnist": "Fashion-MNIST",
        "sprites": "the sprites",
        "regression": "a noisy curve",
    }[config.task]
    reached = (
        f"it classified {result.test_correct:,} of {result.test_total:,} test images "
        f"correctly, {result.test_accuracy:.2%}"
        if config.has_images
        else f"its R² on {result.test_total:,} test points was {result.r2:.4f}, its "
        f"RMSE {result.rmse:.4f}"
    )
    threads = "1 CPU thread" if here.threads == 1 else f"{here.threads} CPU threads"
    return (
        f"Train {_article(config.model)} on {task}.\n\n"
        f"When this was exported, {reached}: "
        f"measured on {here.device_name} ({here.backend}), "
        f"{threads}, torch {here.torch}, Python "
        f"{here.python}.\n\n"
        "On the same machine with the same versions and data you get the same number, "
        "to the last digit. Elsewhere it may differ in the last digits: another "
        "device, number of threads or version of torch adds numbers in another order."
    )


def _article(model: str) -> str:
    return {
        "ann": "a fully connected network (784-128-64-10)",
        "cnn": "a convolutional network (four convolutions)",
        "simple": "a small network (1-64-64-1)",
    }[model]


def sections(result: RunResult) -> list[Section]:
    """The program, in the order in which it is read and runs."""
    config = result.config
    return [
        Section(
            "Imports",
            "torch does the work; the rest is Python's own.",
            _imports(config),
        ),
        Section(
            "Settings", "Everything that decides how this run goes.", _settings(config)
        ),
        *_places(config),
        Section(
            "The device",
            "The accelerator if there is one, else the CPU. The number of threads is "
            "the one that the run had: with another, sums are taken in another order, "
            "and the last digits change.",
            f"""
def choose_device(name: str) -> torch.device:
    \"\"\"The device of that name; "auto" takes the best that is here.\"\"\"
    if name != "auto":
        return torch.device(name)
    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator()
    return torch.device("cpu")


torch.set_num_threads({result.environment.threads})
device = choose_device(DEVICE)
print(f"torch {{torch.__version__}} on {{device}}")
""",
        ),
        *DATA[config.task](),
        _model(config),
        Section(
            "Batches",
            "All samples lie in one tensor; a batch is picked out of it by index. "
            "Their order, and which images are flipped, is drawn by a generator of "
            "its own, so that the same seed gives the same batches whatever else "
            "draws random numbers." + _feed_note(config),
            _join(
                _piece("data/batches.py", "EpochOrder"),
                _piece("data/batches.py", "flip"),
                _piece("data/batches.py", "TensorBatches"),
            ),
        ),
        Section(
            "The two loops",
            "Training: the batch is moved to the device, then the five steps that "
            "never change. Evaluating: model.eval() turns dropout off and freezes "
            "batch norm, inference_mode() stops autograd.",
            _join(
                _piece("loops.py", "Batches"),
                _piece("loops.py", "train_epoch"),
                _piece("loops.py", "predict"),
                *(
                    []
                    if config.has_images
                    else [
                        _piece("loops.py", "RegressionScore"),
                        _piece("loops.py", "score_regression"),
                    ]
                ),
            ),
        ),
        Section(
            "What is trained",
            "The seed comes before the model: its first weights are drawn from it. The "
            "model is moved to the device once, before the optimizer gets its "
            "parameters.",
            _setup(config),
        ),
        Section(
            "Train and test",
            "After each epoch the model is tested on everything that it was not "
            "trained with, all at once: never take the mean over batches, of which the "
            "last may be smaller.",
            _training(config),
        ),
        Section(
            "Save the weights",
            "The state_dict on the CPU, so that it loads anywhere. Load it with "
            "torch.load(path, weights_only=True): other files can be programs.",
            """
if SAVE:
    weights = {name: t.cpu() for name, t in model.state_dict().items()}
    torch.save(weights, SAVE)
""",
        ),
    ]


def _imports(config: RunConfig) -> str:
    real, drawn = config.task == "fashion-mnist", config.task == "sprites"
    standard = [
        "import argparse",
        *(["import gzip"] if real else []),
        *([] if config.has_images else ["import math", "import random"]),
        *(["import struct"] if real else []),
        "import time",
        "from collections.abc import Iterable, Iterator",
        "from dataclasses import dataclass",
        *(
            ["from functools import reduce", "from itertools import pairwise"]
            if drawn
            else []
        ),
        *(["from pathlib import Path"] if real else []),
    ]
    return "\n".join(
        [
            *standard,
            "",
            "import torch",
            "from torch import Tensor, nn",
            "from torch.optim import Optimizer",
            "from torch.optim.lr_scheduler import LRScheduler",
        ]
    )


def _settings(config: RunConfig) -> str:
    return f"""
EPOCHS = {config.epochs}  # passes over the training set
BATCH_SIZE = {config.batch_size}  # samples in a step
LEARNING_RATE = {config.learning_rate!r}  # of AdamW; with one-cycle, the peak
WEIGHT_DECAY = {config.weight_decay!r}  # of AdamW, which without it is Adam
AUGMENT = {config.augment}  # mirror half of the training images, drawn anew each epoch
SEED = {config.seed}  # of the weights, the order of the samples, the flips
EVALUATION_BATCH = 1000  # samples; as many as evaluating is quick with
"""


def _places(config: RunConfig) -> list[Section]:
    """What a command line sets in the script, and a cell in the notebook."""
    real = config.task == "fashion-mnist"
    data = 'DATA = "data"  # folder with the files; they are downloaded into it\n'
    option = """
parser.add_argument(
    "--data", default="data", help="folder with the files of Fashion-MNIST"
)"""
    return [
        Section(
            "The command line",
            "What differs from machine to machine. --help lists it.",
            f"""
parser = argparse.ArgumentParser(){option if real else ""}
parser.add_argument(
    "--device", default="{config.device}", help="auto, cpu, cuda, mps or xpu"
)
parser.add_argument("--save", metavar="FILE", help="write the weights there")
arguments = parser.parse_args()
{"DATA = arguments.data" if real else ""}
DEVICE, SAVE = arguments.device, arguments.save
""".replace("\n\n", "\n"),
            "script",
        ),
        Section(
            "Where it runs",
            "What differs from machine to machine.",
            f"""
{data if real else ""}DEVICE = "{config.device}"  # or auto, cpu, cuda, mps, xpu
SAVE = None  # or the name of a file for the weights
""",
            "notebook",
        ),
    ]


SPLIT = '''
@dataclass
class Split:
    """Images with their labels."""

    images: Tensor  # uint8 (N, 1, 28, 28)
    labels: Tensor  # int64 (N,), 0 to 9
'''


def _fashion_mnist() -> list[Section]:
    return [
        Section(
            "The data",
            "60,000 images to train with and 10,000 to test, 28×28 pixels, ten kinds "
            "of clothes (https://github.com/zalandoresearch/fashion-mnist). Each file "
            "begins with how many dimensions it has and how long they are; the rest "
            "is one byte a pixel. Files that are not there yet are downloaded by "
            "torchvision.",
            SPLIT
            + '''

FOLDERS = (
    Path(DATA),
    Path(DATA) / "FashionMNIST" / "raw",  # where torchvision puts them
    Path("/usr/share/datasets/fashion-mnist"),  # Debian's package
)


def find(name: str) -> Path | None:
    """The file of that name, packed or not."""
    names = (name, f"{name}.gz")
    paths = [folder / each for folder in FOLDERS for each in names]
    return next((path for path in paths if path.exists()), None)


def read(name: str) -> Tensor:
    """One file of Fashion-MNIST as a tensor of uint8."""
    if find(name) is None:
        from torchvision.datasets import FashionMNIST  # takes seconds

        FashionMNIST(DATA, download=True)
    path = find(name)
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    dimensions = content[3]
    start = 4 + 4 * dimensions
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    pixels = torch.frombuffer(bytearray(content[start:]), dtype=torch.uint8)
    return pixels.view(shape)


def load(part: str) -> Split:
    """The images and labels of "train" or "t10k", the test set."""
    images = read(f"{part}-images-idx3-ubyte")
    labels = read(f"{part}-labels-idx1-ubyte")
    return Split(images.unsqueeze(1), labels.long())


train, test = load("train"), load("t10k")
''',
        )
    ]


def _sprites() -> list[Section]:
    sizes = dict(_assigned("data/datasets.py", "SPRITES_TRAIN, SPRITES_TEST"))
    return [
        Section(
            "The data: the pixel wardrobe, drawn",
            "The ten kinds of clothes of Fashion-MNIST, drawn by a program. This is "
            "the longest part, and not about training: you may go on with the next "
            "one. A shape is a signed distance: how many pixels a point lies outside "
            "its edge (negative: inside).",
            _module("data/sprites.py"),
        ),
        Section(
            "The data",
            "Drawn from two seeds, so that no test image is a training image.",
            SPLIT
            + f"""

train = Split(*draw({sizes["SPRITES_TRAIN"]}, seed=0))
test = Split(*draw({sizes["SPRITES_TEST"]}, seed=1))
""",
        ),
    ]


def _regression() -> list[Section]:
    points = (
        SPLIT.replace("Images with their labels", "What goes in, what comes out")
        .replace("uint8 (N, 1, 28, 28)", "x, float32 (N, 1)")
        .replace("int64 (N,), 0 to 9", "y, float32 (N, 1)")
    )
    return [
        Section(
            "The data: a noisy curve",
            "Points around a curve, drawn from two seeds, so that no test point is a "
            "training point. What the batches call images and labels are here the x "
            "and the y of the points.",
            _join(
                _module("data/curve.py"),
                points.strip(),
                _piece("data/datasets.py", "_points")
                .replace("_points", "load")
                .replace("curve.", ""),
                "train, test = load(TRAIN, seed=0), load(TEST, seed=1)",
            ),
        )
    ]


DATA = {
    "fashion-mnist": _fashion_mnist,
    "sprites": _sprites,
    "regression": _regression,
}


def _model(config: RunConfig) -> Section:
    if not config.has_images:
        own = [_piece("criteria.py", "GaussianLoss")]
        return Section(
            "The model" + " and its loss" * (config.criterion == "gaussian"),
            "Numbers in, numbers out: all else is as with images.",
            _join(
                _piece("models.py", "SimpleRegressionNet"),
                *(own if config.criterion == "gaussian" else []),
            ),
        )
    return Section(
        "The model",
        "Images come as whole numbers, 0 to 255, a quarter of the bytes to move "
        "compared with floats. They become floats on the device.",
        _join(
            _piece("models.py", "as_floats"),
            *([_piece("models.py", "block")] if config.model == "cnn" else []),
            _piece("models.py", CLASSES[config.model]),
        ),
    )


CLASSES = {"ann": "ANN", "cnn": "CNN", "simple": "SimpleRegressionNet"}
CRITERIA = {
    "cross-entropy": "nn.CrossEntropyLoss()",
    "mse": "nn.MSELoss()",
    "gaussian": "GaussianLoss()",
}


def _feed_note(config: RunConfig) -> str:
    return {
        "memory": "",
        "device": " This run had its images on the device; the batches are the same.",
        "dataloader": " This run took its batches from a DataLoader; for one seed they "
        "are the same, only slower to come by.",
    }[config.feed]


def _setup(config: RunConfig) -> str:
    scheduler = "scheduler = None  # the learning rate stays as it is"
    if config.schedule == "one-cycle":
        scheduler = (
            "# One-cycle: the rate climbs to its peak, then falls to nearly nothing.\n"
            f"scheduler = {_returned('training.py', 'make_scheduler')}"
        )
    optimizer, learnt = _returned("training.py", "make_optimizer"), ""
    if config.criterion == "gaussian":
        optimizer = optimizer.replace("model.parameters()", "learnt.parameters()")
        learnt = (
            "# The loss has a parameter: it is moved, and learnt with the weights.\n"
            "learnt = nn.ModuleList([model, criterion])\n"
        )
    moved = ""
    if config.feed == "device":
        moved = "train = Split(train.images.to(device), train.labels.to(device))\n"
    return f"""
torch.manual_seed(SEED)
model = {CLASSES[config.model]}().to(device)
criterion = {CRITERIA[config.criterion]}.to(device)
{learnt}# All parameters are updated by one kernel where torch has one.
optimizer = {optimizer}

{moved}order = EpochOrder(len(train.labels), SEED, AUGMENT)
train_batches = TensorBatches(train, BATCH_SIZE, order)
in_file_order = EpochOrder(len(test.labels), None, False)
test_batches = TensorBatches(test, EVALUATION_BATCH, in_file_order)

steps = len(train_batches) * EPOCHS
{scheduler}
"""


def _training(config: RunConfig) -> str:
    if config.has_images:
        tested, result = COUNT_CORRECT, ACCURACY
    else:
        tested, result = "", REGRESSION
    return f"{tested}{EPOCHS}{result}"


COUNT_CORRECT = '''
def count_correct() -> int:
    """How many test images the model classifies correctly as it is now."""
    outputs, targets = predict(model, test_batches, device)
    return int((outputs.argmax(dim=1) == targets).sum())

'''
EPOCHS = """
for epoch in range(1, EPOCHS + 1):
    started = time.perf_counter()
    losses = list(
        train_epoch(
            model, train_batches, criterion, optimizer, device, scheduler
        )
    )
    # Fetched once an epoch: the CPU waits here until the device is done.
    # The mean over the steps; the last of them may have had fewer samples.
    mean_loss = torch.stack(losses).mean().item()
    seconds = time.perf_counter() - started
"""
ACCURACY = """\
    correct, total = count_correct(), len(test.labels)
    print(
        f"epoch {epoch:2}  loss {mean_loss:.4f}  "
        f"test accuracy {correct / total:.2%}  {seconds:.2f} s"
    )

print(f"test accuracy {correct / total:.2%} ({correct:,} of {total:,})")
"""
REGRESSION = """\
    outputs, targets = predict(model, test_batches, device)
    score = score_regression(outputs, targets, criterion)
    print(
        f"epoch {epoch:2}  loss {mean_loss:.4f}  "
        f"test r2 {score.r2:.4f}  rmse {score.rmse:.4f}  {seconds:.2f} s"
    )

print(f"test r2 {score.r2:.4f}, rmse {score.rmse:.4f}")
"""


# Reading our own source


@cache
def _tree(file: str) -> tuple[str, ast.Module]:
    text = (CORE / file).read_text(encoding="utf-8")
    return text, ast.parse(text)


def _lines(file: str, node: ast.stmt) -> str:
    """The text of a statement with its decorators."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return "\n".join(_tree(file)[0].splitlines()[first - 1 : node.end_lineno])


def _piece(file: str, name: str) -> str:
    """The function, class or assignment `name` of a module of core."""
    for node in _tree(file)[1].body:
        if getattr(node, "name", None) == name or (
            isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
        ):
            return _lines(file, node)
    raise LookupError(f"core/{file} has no {name}")


def _assigned(file: str, names: str) -> list[tuple[str, Any]]:
    """Names and values of one assignment of constants: "A, B"."""
    for node in _tree(file)[1].body:
        if isinstance(node, ast.Assign):
            target = ast.unparse(node.targets[0]).strip("()")
            if target == names:
                values = ast.literal_eval(node.value)
                return list(zip(names.split(", "), values, strict=True))
    raise LookupError(f"core/{file} has no {names}")


def _returned(file: str, function: str) -> str:
    """What a function returns in the end, with config.name as the setting NAME."""
    text, tree = _tree(file)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            last = node.body[-1]
            assert isinstance(last, ast.Return)
            assert last.value is not None
            value = ast.get_source_segment(text, last.value) or ""
            value = "\n".join(line.removeprefix("    ") for line in value.splitlines())
            return re.sub(r"config\.(\w+)", lambda m: m[1].upper(), value)
    raise LookupError(f"core/{file} has no {function}")


def _module(file: str) -> str:
    """A whole module without its docstring and imports."""
    text, tree = _tree(file)
    kept = [n for n in tree.body if not isinstance(n, ast.Import | ast.ImportFrom)]
    return "\n".join(text.splitlines()[kept[1].lineno - 1 :])


def _join(*pieces: str) -> str:
    return "\n\n\n".join(pieces)


def _wrap(text: str) -> str:
    return "\n\n".join(textwrap.fill(each, WIDTH - 2) for each in text.split("\n\n"))
