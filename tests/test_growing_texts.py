"""A stranger's text takes a time that grows like the text, whatever it consists of.

Each test compares a text with one that is eight times as long, in the same process. The
time of linear code becomes eight times as long, and that of quadratic code, 64 times.
"""

import json
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from core import config
from core.classroom import names
from core.lessons.compare.your_gpu_result import literal
from core.script.check import check
from core.serving import visitor_cookie
from core.ui.code_editor import lines_in
from to_device import errors
from to_device.diagnose.collect_env import diagnose_report
from to_device.dryrun.script import sources, without_magic
from to_device.explain import details, evidence, memory, report, subject
from to_device.explain import explainer as explain
from to_device.sim.simulation import in_cuda_words

TIMES_LONGER, MOST_TIMES = 8, 24
NOISE = 0.001  # seconds; a shorter time says nothing
SLOWEST = 100 * NOISE  # of processor time, where most patterns take less than NOISE
TRIES = 4  # on a busy machine, one may go wrong

# What a text may consist of: runs of one character, and what patterns begin with.
UNITS = [
    *(
        " ",
        "\t",
        "\n",
        "\xa0",
        "a",
        "1",
        "x",
        ".",
        "(",
        "[",
        "`",
        "-",
        "\x00",
        "ﷺ",
        "İ",
    ),
    *("a ", " a", "a.", "1.", "a(", "(a", "a,", ", ", "a\n", "\t\n", "e\u0316\u0301"),
    *("``` `` ` ", "AError", "AError:\n", "A: x ", "/a", " in <", " in f(", 'File "'),
    *("File  ", "->1\n", "[rank0]: ", "\x1b[1", "GPU 1: ", "vga ", "a = ", "a = b"),
    *("!a\n", '"cells" ', '{"cells":[', "(1x1 and 1x", "1 GiB", "Assertion `\n"),
    *(
        "load_state_dict(",
        "loss(,",
        "cuda:1",
        "a == ",
        "torch.load(",
        ".numpy(",
        "Line ",
    ),
]
ENDS = {"": "", "closed": ")\n", "other": "\n!x("}

NOTEBOOK = '{"cells": [{"cell_type": "code", "source": [%s]}]}'
REPORT = "PyTorch version: 2.9.0\nIs CUDA available: True\n"
ENTRIES: dict[str, tuple[Callable[[str], Any], int]] = {  # with the longer text's size
    "explain": (explain.explain, 20_000),
    "lines of code": (
        lambda text: explain.explain(f'File "a.py", line 1\n{text}\nAError: cuda'),
        20_000,
    ),
    "check": (check, 4_000),
    "without_magic": (without_magic, 16_000),
    "cells": (
        lambda text: sources("a.ipynb", NOTEBOOK % json.dumps(text)),
        16_000,
    ),
    "notebook": (lambda text: sources("a.ipynb", text), 64_000),
    "report": (lambda text: diagnose_report(REPORT + text), 90_000),
    "name": (names.tidy, 64_000),
    "GPU": (literal, 64_000),
    "setting": (
        lambda text: config.RunConfig.from_strings({"host": text, "epochs": text}),
        64_000,
    ),
    "quoted": (lambda text: errors.quoted(text, len(text)), 16_000),
    "plain": (lambda text: errors.plain(text, len(text)), 16_000),
    "cookie": (visitor_cookie.read, 16_000),
    "path": (visitor_cookie.PATH.fullmatch, 64_000),
    "simulated": (in_cuda_words, 16_000),
    "hint": (lines_in, 64_000),
}


def seconds(function: Callable[[str], Any], text: str) -> float:
    """The processor time of a call, which may refuse the text."""
    start = time.process_time()
    with suppress(ValueError, errors.ExplainedError):
        function(text)
    return time.process_time() - start


def is_linear(function: Callable[[str], Any], text: str, end: str = "") -> bool:
    short = f"{text[: len(text) // TIMES_LONGER]}{end}"
    return grows_alike(function, short, text + end)


def grows_alike(function: Callable[[str], Any], short: str, long: str) -> bool:
    shortest = longest = float("inf")
    for _ in range(TRIES):
        longest = min(longest, seconds(function, long))
        if longest < MOST_TIMES * NOISE:
            return True
        shortest = min(shortest, seconds(function, short))
        if longest < MOST_TIMES * max(shortest, NOISE):
            return True
    return False


def repeated(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_the_time_grows_like_the_text(entry, end):
    function, size = ENTRIES[entry]
    with suppress(ValueError, errors.ExplainedError):
        function("a")  # what is read once must not count
    slow = (u for u in UNITS if not is_linear(function, repeated(u, size), ENDS[end]))
    assert next(slow, None) is None


def clocks(n: int) -> str:
    starts = "".join(f"t{i} = time.time()\n" for i in range(n))
    stops = "".join(f"print(time.time() - t{i})\n" for i in range(n))
    return "import torch.cuda\n" + starts + "model.eval()\n" * n + "model(x)\n" + stops


def workers(n: int) -> str:
    body = "    x = g(1)\n" * n
    return "DataLoader(d, num_workers=2)\ndef f():\n" + body + "f()\n" * n


@pytest.mark.parametrize("script", [clocks, workers])
def test_the_time_to_read_a_script_grows_like_the_script(script):
    assert grows_alike(check, script(50), script(50 * TIMES_LONGER))


PASTED = [
    "x\n" + "\t" * 6667 + " in <" * 2660 + "\nx",
    "x.py in f(" + "/a" * 4000 + ")\n" + "->1\n" * 2990,
    "".join(f"A{i}Error: cuda\n" for i in range(1000)),
    "".join(f"A{i}Error: {'expected all tensors ' * 80}\n" for i in range(12)),
    "Assertion `" + "a" * 10_000 + "\n" + "AError: cuda\n" * 760,
    "RuntimeError: Expected all tensors to be on the same device\n" + "a(" * 9_000,
]


@pytest.mark.parametrize("text", PASTED, ids=range(len(PASTED)))
def test_a_pasted_text_takes_a_few_times_as_long_as_an_ordinary_log(text):
    ordinary = "epoch 1 of 5, step 7 of 9: the model's loss is 0.3\n" * 400
    explain.explain(ordinary)
    for _ in range(TRIES):
        allowed = 10 * max(NOISE, seconds(explain.explain, ordinary))
        if seconds(explain.explain, text) < allowed:
            return
    pytest.fail("slow")


REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
MANY = 8  # a repeat of less can't take long


def matching(tree: Any) -> list[str]:
    """Texts that a parsed pattern matches, at least if it has no assertions."""
    texts = [""]
    for kind, value in tree:
        if kind is op.LITERAL:
            parts = [chr(value)]
        elif kind in (op.ANY, op.NOT_LITERAL):
            parts = ["a"]
        elif kind is op.IN:
            parts = [_one_of(value)]
        elif kind is op.BRANCH:
            parts = [text for branch in value[1] for text in matching(branch)]
        elif kind is op.SUBPATTERN:
            parts = matching(value[-1])
        elif kind is op.ATOMIC_GROUP:
            parts = matching(value)
        elif kind in REPEATS:
            parts = [text * max(1, value[0]) for text in matching(value[-1])]
        else:  # an assertion
            parts = [""]
        texts = [text + part for text in texts for part in parts][:16]
    return texts


def _one_of(members: Any) -> str:
    kind, value = members[0]
    if kind is op.LITERAL:
        return chr(value)
    if kind is op.RANGE:
        return chr(value[0])
    if kind is op.NEGATE:
        return "a"
    return {op.CATEGORY_DIGIT: "1", op.CATEGORY_SPACE: " "}.get(value, "a")


def patterns() -> Iterator[tuple[str, str]]:
    for slug, cause in explain.knowledge().causes.items():
        found = (cause.name, cause.at, cause.signs, cause.unless, cause.tried)
        for remedy in cause.when:
            found = (*found, remedy.signs, remedy.unless, remedy.tried, remedy.at)
        yield from ((f"{slug} {p}", p) for p in found if p)
    for name, pattern in explain.knowledge().situations.items():
        yield name, pattern.pattern
    for number, installer in enumerate(explain.knowledge().installers):
        yield f"installer {number}", installer.shown.pattern
    for module in (details, evidence, explain, memory, report, subject):
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                yield name, value.pattern
    yield from ((number.name, number.pattern) for number in memory.GLOSSARY)


def pumped(pattern: str) -> Iterator[str]:
    """Lines in which one repeat matches a long run, after many other beginnings."""
    tree, dice = _parser.parse(pattern), random.Random(pattern)
    for _ in range(4 * alternatives(tree)):
        repeats: list[tuple[int, str]] = []
        text = _one_match(tree, dice, repeats)
        for place, unit in repeats:
            begin = text[: repeats[0][0]]
            for many in (begin or "a", f"{begin} ", text[:place] + unit * 6):
                line = many * (1_000 // max(1, len(many))) + text[:place]
                for run in dict.fromkeys((unit, "1", "a")):
                    yield line + run * ((1_990 - len(line)) // max(1, len(run))) + "!"


def alternatives(tree: Any) -> int:
    """The greatest number of alternatives that stand side by side in a pattern."""
    most = 1
    for kind, value in tree:
        if kind is op.BRANCH:
            most = max(most, len(value[1]), *map(alternatives, value[1]))
        elif kind in REPEATS or kind in (op.SUBPATTERN, op.ASSERT, op.ASSERT_NOT):
            most = max(most, alternatives(value[-1]))
        elif kind is op.ATOMIC_GROUP:
            most = max(most, alternatives(value))
    return most


def _one_match(tree: Any, dice: random.Random, repeats: list[tuple[int, str]]) -> str:
    """What a pattern matches, and where in it a repeat may match more, and of what."""
    text = ""
    for kind, value in tree:
        if kind is op.BRANCH:
            value, kind = (
                (None, None, None, value[1][dice.randrange(len(value[1]))]),
                op.SUBPATTERN,
            )
        if kind is op.LITERAL:
            text += chr(value)
        elif kind in (op.ANY, op.NOT_LITERAL):
            text += dice.choice("a ")
        elif kind is op.IN:
            is_any = value[:2] == [(op.NEGATE, None), (op.LITERAL, ord("\n"))]
            text += dice.choice("a ") if is_any else _one_of(value)
        elif kind in REPEATS:
            inner: list[tuple[int, str]] = []
            unit = _one_match(value[-1], dice, inner)
            if int(value[1]) >= MANY:
                repeats.append((len(text), unit))
            repeats += [(len(text) + place, run) for place, run in inner]
            text += unit * max(1, value[0])
        elif kind in (op.SUBPATTERN, op.ATOMIC_GROUP):
            within: list[tuple[int, str]] = []
            part = _one_match(
                value if kind is op.ATOMIC_GROUP else value[-1], dice, within
            )
            repeats += [(len(text) + place, run) for place, run in within]
            text += part
    return text


PATTERNS = {pattern: name for name, pattern in patterns()}


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS, ids=PATTERNS.values())
def test_no_pattern_takes_longer_than_its_text_grows(pattern):
    """In texts of repeated beginnings of what it matches, and with runs inside.

    As well in lines in which a long run follows many beginnings.
    """
    compiled = re.compile(pattern)

    def search(text: str) -> None:
        compiled.search(report.shortened(text))  # as `report.read` does

    begins = {text[:n] for text in matching(_parser.parse(pattern)) for n in range(99)}
    texts = [repeated(begin, 8_000) for begin in sorted(begins - {""})]
    texts += [
        begin + run * 8_000 for begin in sorted(begins) for run in (" ", "a", "1", "\n")
    ]
    slow = (text[:200] for text in texts if not is_linear(search, text, "\n!"))
    assert next(slow, None) is None
    for line in dict.fromkeys(pumped(pattern)):
        assert any(seconds(search, f"{line}\n") < SLOWEST for _ in range(TRIES)), line
    # A repeat within a repeat may take long at each place, though no longer than that.
    for begin in sorted(begins, key=len)[-8:]:
        within = f"{begin}{'a' * 500}\n!"
        assert min(seconds(search, within) for _ in range(TRIES)) < SLOWEST
