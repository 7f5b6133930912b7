"""Fit what the features of a person's words are worth: to_device/explain/fitted.toml.

    python -m tools.fit_explainer

Sentences of errors.toml are left out in turn, and have to be found by the others:
alone, and between sentences about something else, as in a longer question. The
questions of strangers.toml and the reports of reports.toml, in
tests/toolkit/explain, are examples too. The weights are
those under which the right causes are the likeliest (conditional logit). From the
answers that they give, two limits follow: from which probability on a cause is right
as often as `SURELY` says, and as often as `HARDLY` says. Below that, an answer
wouldn't be worth reading.
"""

import math
import random
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from to_device.explain.causes import FITTED, knowledge
from to_device.explain.details import Details
from to_device.explain.evidence import (
    NAMES,
    OF_CAUSE,
    OF_NOTHING,
    coded,
    features,
    of_cause,
    of_nothing,
)
from to_device.explain.report import read

STRANGERS = Path("tests/toolkit/explain/strangers.toml")
REPORTS = Path("tests/toolkit/explain/reports.toml")
WEIGHTS = (*NAMES, *OF_CAUSE, *OF_NOTHING)
OTHERS = (0, 0, 2)  # sentences about something else around one
SURELY, HARDLY = 0.95, 0.25
EACH = 5  # of the sentences, one in five is enough for so few weights
STEPS = 200
FEW = 5  # sentences about other causes that signs may fit, and still tell all
MOST = 60  # causes of an example that are compared
HEADER = """\
# What a cause's similarity to a person's words is worth, how probable a cause has to be
# for an answer, and how much its signs tell if they fit other causes, too. Written by
# `python -m tools.fit_explainer` from {n:,} texts.
"""

Example = tuple[torch.Tensor, torch.Tensor]


def texts() -> Iterator[tuple[str | None, Sequence[str], set[int], str]]:
    """The right cause (None: not about devices), a text's sentences, what to leave out.

    The numbers are those of the known sentences that the text consists of. The whole
    text comes last.
    """
    dice = random.Random(0)
    known, causes = knowledge(), knowledge().causes
    said = [line for cause in causes.values() for line in cause.said.splitlines()]
    none = [line for line in known.none["said"].splitlines() if line]
    lines = [line for line in [*said, *none] if line]
    first = len(lines) - len(none)  # of those that aren't about devices
    assert len(lines) == len(known.sentences)
    for i in range(0, len(lines), EACH):
        sentence = known.sentences[i]
        cause = sentence.key if sentence.key in causes else None
        around = {*dice.sample(range(first, len(lines)), OTHERS[i % len(OTHERS)]), i}
        order = dice.sample(sorted(around), len(around))
        sentences = [lines[n] for n in order]
        yield cause, sentences, around, " ".join(sentences)
    for cause, asked in tomllib.loads(STRANGERS.read_text("utf-8")).items():
        for text in asked.values():
            right = cause if cause in causes else None
            yield right, read(text).sentences, set(), text
    for report in tomllib.loads(REPORTS.read_text("utf-8"))["report"]:
        yield report["cause"], read(report["text"]).sentences, set(), report["text"]


def examples() -> Iterator[Example]:
    """The features of all keys, the last one "nothing", and which of them are right."""
    causes = knowledge().causes
    for cause, sentences, leave_out, text in texts():
        similar = features(sentences, leave_out)
        details = Details(text, "")
        shown = coded(details)
        for slug in shown:
            similar.setdefault(slug, (0.0,) * len(NAMES))
        for number in leave_out:
            if (key := knowledge().sentences[number].key) not in causes:
                similar.pop(key, None)
        # The least similar ones hardly count, and would take most of the time.
        likest = sorted(similar, key=lambda key: -sum(similar[key]))[:MOST]
        rows, right = [], []
        for key in {*likest, *([cause] if cause in similar else [])}:
            numbers = similar[key]
            own: tuple[float, ...] = (0.0,) * len(OF_CAUSE)
            if key in causes:
                own = of_cause(causes[key], details, shown)
            rows.append([*numbers, *own, *[0.0] * len(OF_NOTHING)])
            right.append(key == cause if cause else key not in causes)
        rows.append(
            [0.0] * (len(NAMES) + len(OF_CAUSE)) + [*of_nothing(sentences, details)]
        )
        right.append(cause is None)
        if any(right):
            yield torch.tensor(rows), torch.tensor(right)


def selective() -> dict[str, float]:
    """How much the signs of each cause tell, where that is less than all.

    It is the share of information that is left: signs that fit a tenth of what people
    say about other causes tell little more than signs that fit all of it.
    """
    causes = knowledge().causes
    said = [
        (slug, line)
        for slug, cause in causes.items()
        for line in cause.said.splitlines()
    ]
    found = {}
    for slug, cause in causes.items():
        if not cause.signs:
            continue
        sign = re.compile(cause.signs)
        unless = re.compile(cause.unless) if cause.unless else None
        others = sum(
            key != slug
            and bool(sign.search(line))
            and not (unless and unless.search(line))
            for key, line in said
        )
        share = 1 - math.log(1 + others) / math.log(1 + len(said))
        if others >= FEW:
            found[slug] = round(share, 2)
    return found


def padded(data: list[Example]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The features, and the masks of what is there and of what is right."""
    pad = torch.nn.utils.rnn.pad_sequence
    rows = pad([rows for rows, _ in data], batch_first=True)
    there = pad([torch.ones(len(rows)) for rows, _ in data], batch_first=True).log()
    right = pad([right.float() for _, right in data], batch_first=True).log()
    return rows, there, right


def least(answers: list[tuple[float, bool]], wanted: float) -> float:
    """The smallest probability from which on `wanted` of the next hundred are right."""
    answers = sorted(answers, reverse=True)
    window = 100
    for i in range(len(answers) - window):
        hits = sum(is_right for _, is_right in answers[i : i + window])
        if hits < wanted * window:
            return answers[i + window // 2][0]
    return 0.0


def main() -> None:
    signs = knowledge().selective = selective()
    data = list(examples())
    rows, there, right = padded(data)
    weights = torch.ones(len(WEIGHTS), requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.3)
    for _ in range(STEPS):
        optimizer.zero_grad()
        scores = rows @ weights
        wrong = (scores + there).logsumexp(1) - (scores + right).logsumexp(1)
        loss = wrong.mean()
        loss.backward()
        optimizer.step()
    answers, best = [], []
    for features_, is_right in data:
        shares = (features_ @ weights.detach()).softmax(0)
        i = int(shares.argmax())
        best.append(bool(is_right[i]))
        if i < len(shares) - 1:
            answers.append((shares[i].item(), bool(is_right[i])))
    values = dict(zip(WEIGHTS, weights.tolist(), strict=True))
    values |= {"sure": least(answers, SURELY), "likely": least(answers, HARDLY)}
    lines = ["[weights]"]
    lines += [f"{name} = {round(value, 2)}" for name, value in values.items()]
    lines += ["", "[signs]", *(f"{slug} = {share}" for slug, share in signs.items())]
    FITTED.write_text(HEADER.format(n=len(data)) + "\n".join(lines) + "\n", "utf-8")
    print(
        f"loss {loss.item():.3f}, {sum(best) / len(best):.2f} right", *lines, sep="\n"
    )


if __name__ == "__main__":
    main()
