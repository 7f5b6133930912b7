"""What speaks for each cause: a message of a report, the words of its sentences.

A cause is found in two steps. First, the messages are compared with the wordings of
errors.toml: a specific one counts more than a generic one, such as "device-side assert
triggered", wherever they stand. The person's own sentences are compared with the
sentences of errors.toml. Then causes that share a message are told apart by what else
the report says: see `refined`.
"""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from to_device.explain.causes import Cause, Wording, fold, knowledge, trigrams
from to_device.explain.details import Details
from to_device.explain.report import Message, Report

# A text matches a cause as a piece of a longer wording if it has this many letters.
LEAST_OF_A_PIECE = 16
LEAST_ALIKE = 0.8  # share of a wording's trigrams that a garbled text must have
# What people say is sure if its cause has the first probability. It is worth an answer
# if the cause has the second one, and it is likelier than that the text isn't ours.
SURE, LIKELY = 0.9, 0.15
SIGN = math.log(10)  # a sign makes its cause ten times as likely
MOST_OF_A_LINE = 500  # characters of a line of code that are searched


class Candidate(NamedTuple):
    """A cause, and how well the report supports it."""

    cause: Cause | None  # None: the error isn't about devices
    others: tuple[Cause, ...]  # which the same message or sentence has too
    message: Message
    tier: int  # 0 is best: see `_tier`

    @property
    def rank(self) -> tuple[int, bool]:
        """Of two candidates, the one with the smaller rank is the likelier cause."""
        return self.tier, self.cause is not None and self.cause.generic


def by_messages(report: Report) -> list[Candidate]:
    """What the messages name, the likeliest first."""
    found: list[Candidate] = []
    for message in (*report.messages, report.rest):
        causes, is_unrelated = _worded(message, report.text)
        if message is report.rest and found:
            # It has the messages too; what counts is what only the other lines say.
            known = {candidate.cause for candidate in found}
            causes = [cause for cause in causes[:1] if cause not in known]
            is_unrelated = False
        if is_unrelated:
            found.append(Candidate(None, (), message, UNRELATED))
        elif causes:
            cause, *others = causes
            found.append(
                Candidate(cause, tuple(others), message, _tier(cause, message))
            )
    return sorted(found, key=lambda candidate: candidate.rank)


# Which candidate names the cause: the first exception that says something specific. An
# exception during whose handling another one was raised was dealt with, and a warning
# let the program go on.
SPECIFIC, HANDLED, UNRELATED, TEXT, WARNING, GENERIC, ECHO = range(7)


def _tier(cause: Cause, message: Message) -> int:
    if message.kind == "echo":
        return ECHO
    if cause.generic:
        return GENERIC
    if message.kind in ("text", "warning"):
        return {"text": TEXT, "warning": WARNING}[message.kind]
    return HANDLED if message.handled else SPECIFIC


def _length(parts: Sequence[str], text: str) -> int:
    """How many characters the text shares with a wording; 0 if a part is missing."""
    if len(text) >= LEAST_OF_A_PIECE and any(text in part for part in parts):
        return len(text)
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            return 0
        at += len(part)
    return sum(map(len, parts))


def _worded(message: Message, report: str) -> tuple[list[Cause], bool]:
    """Return the causes whose wordings the message has, and a boolean.

    The boolean says whether a wording that isn't about devices fits the message
    better. Causes that need a certain line of code (`at`) come before others; within
    each group, the longer wordings come first.
    """
    text = fold(message.text)
    own = trigrams(text)
    code = report
    if message.own_line:
        code = f"{message.own_line}\n{message.innermost}"

    def longest(wordings: list[Wording]) -> int:
        # Most wordings are told apart by their trigrams, which takes less time.
        lengths = (
            _length(parts, text)
            for parts, needed in wordings
            if needed <= own or own <= needed
        )
        return max(lengths, default=0)

    fits = cache(lambda at: re.search(at, code) is not None)
    lengths = {
        cause: length
        for cause in knowledge().causes.values()
        if (length := longest(cause.folded)) and fits(cause.at)
    }
    is_unrelated = longest(knowledge().unrelated) > max(lengths.values(), default=0)
    causes = sorted(lengths, key=lambda cause: (not cause.at, -lengths[cause]))
    return causes, is_unrelated


def alike(message: str) -> list[Cause]:
    """The causes with a wording that the message has, except for a few letters."""
    own = trigrams(fold(message[:2000]))
    scores: dict[Cause, tuple[float, int]] = {}
    for cause in knowledge().causes.values():
        for _, wording in cause.folded:
            share = len(wording & own) / max(1, len(wording))
            if len(wording) > 12 and share >= LEAST_ALIKE:
                scores[cause] = max(scores.get(cause, (0, 0)), (share, len(wording)))
    return sorted(scores, key=scores.__getitem__, reverse=True)


def features(sentence: str, leave_out: int = -1) -> dict[str, tuple[float, ...]]:
    """How similar a sentence is to those of the causes that share words with it.

    The numbers are the similarity to the most similar sentence and to the second one,
    and the share of the words that any of the cause's sentences has. The sentence at
    the number `leave_out` doesn't count.
    """
    known = knowledge()
    words = known.words(sentence)
    # A text of one word, such as "gpu", says little, however similar it is.
    whole = max(known.weight(words), 2 * known.rarest)
    shared: dict[int, float] = defaultdict(float)
    for word in words & known.places.keys():
        weight = known.weights[word]
        for place in known.places[word]:
            shared[place] += weight
    shared.pop(leave_out, None)
    best: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for place, weight in shared.items():
        key, _, other = known.sentences[place]
        similarity = weight / math.sqrt(whole * other)
        two = best[key]
        if similarity > two[0]:
            two[:] = [similarity, two[0]]
        elif similarity > two[1]:
            two[1] = similarity
    out = known.sentences[leave_out] if leave_out >= 0 else None
    found = {}
    for key, two in best.items():
        uses = known.uses[key]
        covered = {word for word in words if uses[word]}
        if out and out.key == key:
            covered -= {word for word in out.words if uses[word] == 1}
        found[key] = (*two, known.weight(covered) / whole)
    return found


def by_words(text: str, report: str) -> list[tuple[Cause | None, float]]:
    """The causes that people describe like this, with their probabilities.

    A cause whose signs the report has is more likely. None stands for everything that
    isn't about devices.
    """
    fitted = knowledge().fitted
    causes = knowledge().causes
    scores = {}
    for key, (best, second, covered) in features(text).items():
        score = fitted["best"] * best + fitted["second"] * second
        score += fitted["covered"] * covered
        if key in causes and causes[key].signs and re.search(causes[key].signs, report):
            score += SIGN
        scores[key] = score
    total = sum(map(math.exp, scores.values())) + math.exp(fitted["nothing"])
    shares = [
        (causes[k], math.exp(s) / total) for k, s in scores.items() if k in causes
    ]
    nothing = 1 - sum(share for _, share in shares)
    return sorted([*shares, (None, nothing)], key=lambda pair: -pair[1])


def refined(cause: Cause, details: Details) -> tuple[Cause, tuple[Cause, ...]]:
    """The cause that the rest of the report speaks for, and those that it replaced."""
    replaced: list[Cause] = []
    while True:
        closer = [
            other
            for other in knowledge().closer[cause.slug]
            if other not in replaced and applies(other, details)
        ]
        if not closer:
            return cause, tuple(reversed(replaced))
        replaced.append(cause)
        cause = closer[0]


def agree(cause: Cause, told: Cause, details: Details) -> bool:
    """Whether what the person tells is no reason to doubt a message's cause.

    It is none if both are about the same thing, or if a sign supports the message.
    """
    closer, replaced = refined(cause, details)
    return bool(replaced) or told is closer or cause.slug in told.instead_of


def applies(cause: Cause, details: Details) -> bool:
    """Whether the report has what the cause needs beside a message."""
    text = details.searched
    return (
        re.search(cause.signs, text) is not None
        and not (cause.unless and re.search(cause.unless, text))
        and (not cause.fact or details.holds(cause.fact))
    )
