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
from collections.abc import Callable, Sequence, Set
from functools import cache
from typing import NamedTuple

from to_device.explain.causes import Cause, Remedy, Wording, fold, knowledge, trigrams
from to_device.explain.details import Details, untried
from to_device.explain.report import DENIED, Message, Report
from to_device.explain.subject import is_about

LEAST_STRANGE = 8  # letters of a wording in a text without any of our words
PIECE = 240  # characters of a text that are compared with a garbled wording at once
LEAST_ALIKE = 0.8  # share of a wording's trigrams that a garbled text must have
NAMES = ("best", "second", "covered", "pairs", "answer")  # of the numbers of `features`
OF_CAUSE = ("sign", "code", "broad")  # of the numbers that a cause itself has
OF_NOTHING = ("nothing", "length", "strange")  # of what isn't about devices
MOST_WEIGHED = 40  # causes whose signs are looked for, those with the likeliest words
# What people did themselves: "I killed the process" isn't the message "Killed".
DONE = re.compile(r"(?i)\b(?:i|we)(?: have|['’]ve| then| just| had)? killed\b")
MOST_OF_A_LINE = 500  # characters of a line of code that are searched


Probable = tuple[Cause | None, float]


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
    details = Details(report.text, "")
    # Looked for once, however many messages there are: a log may have 1 MB.
    is_near = "python" in report.text or is_about(report.text)
    shows = cache(lambda at: re.search(at, report.text) is not None)
    for message in (*report.messages, report.rest, report.head):
        causes, is_unrelated = _worded(message, shows, is_near)
        if len(causes) > 1:
            # Of causes with one message, one that the report speaks against is last.
            causes.sort(key=lambda cause: is_refuted(cause, details))
        if message.kind == "text" and found:
            # It has the messages too; what counts is what only the other lines say.
            known = {candidate.cause for candidate in found}
            causes = [cause for cause in causes[:1] if cause not in known]
            is_unrelated = False
        if is_unrelated:
            # A warning of another library's is no reason to give up.
            tier = ECHO if message.kind == "warning" else UNRELATED
            found.append(Candidate(None, (), message, tier))
        elif causes:
            cause, *others = causes
            found.append(
                Candidate(cause, tuple(others), message, _tier(cause, message))
            )

    def against(candidate: Candidate) -> bool:
        return candidate.cause is not None and is_refuted(candidate.cause, details)

    # An error stays if the report speaks against its cause, but as the last one.
    kept = [each for each in found if each.tier < TEXT or not against(each)]
    return sorted(kept, key=lambda candidate: (against(candidate), candidate.rank))


def preferred(candidate: Candidate, told: Cause) -> Candidate:
    """The candidate with the cause that the person tells, if its message has both.

    A longer wording at the same place is only more specific, so it stays the first.
    """
    cause, others = candidate.cause, candidate.others
    if cause is None or told not in others:
        return candidate
    text = fold(candidate.message.text)
    spans = [
        [span for wording in each.folded if (span := wording.span(text))]
        for each in (cause, told)
    ]
    if any(a < d and c < b for a, b in spans[0] for c, d in spans[1]):
        return candidate
    rest = tuple(other for other in others if other is not told)
    return candidate._replace(cause=told, others=(cause, *rest))


# Which candidate names the cause: the first exception that says something specific. An
# exception during whose handling another one was raised was dealt with, and a warning
# let the program go on.
SPECIFIC, HANDLED, UNRELATED, TEXT, WARNING, GENERIC, ECHO = range(7)


# Words of somebody who tells of an error. Messages have none of them.
TOLD = re.compile(
    r"(?i)\b(?:i|we|my|our|me|us|he|she)\b|\bi['’](?:m|ve)\b|\b(?:keeps? )?getting\b"
    r"|\b(?:after|in|at|during)"
    r" (?:\d{1,4}|a few|few|some|several|two|the (?:first|second|end|middle))"
    r" (?:epochs?|iterations?|steps?|hours?|minutes?|of (?:the )?(?:training|epoch))"
)

QUOTED = re.compile(r"[\"`“]([^\"`“”\n]{24,400})[\"`”]")


def is_pasted(candidate: Candidate) -> bool:
    """Whether the message stands in a line that isn't the person's own sentence."""
    cause, text = candidate.cause, candidate.message.text
    if cause is None:
        return False
    lines = [
        # What a sentence quotes is a message, too.
        " ".join(QUOTED.findall(line)) if TOLD.search(line) else line
        for line in text.splitlines()
    ]
    # A message may be broken over several lines.
    rest = fold("\n".join(lines))
    return any(wording.shared(rest) for wording in cause.folded)


def _tier(cause: Cause, message: Message) -> int:
    if message.kind == "echo":
        return ECHO
    if cause.generic:
        return GENERIC
    if message.kind in ("text", "warning"):
        return {"text": TEXT, "warning": WARNING}[message.kind]
    return HANDLED if message.handled else SPECIFIC


def _worded(
    message: Message, shows: Callable[[str], bool], is_near: bool
) -> tuple[list[Cause], bool]:
    """Return the causes whose wordings the message has, and a boolean.

    `shows` says whether the report has code that fits a pattern, and `is_near`, whether
    the report has words of ours.

    The boolean says whether a wording that isn't about devices fits the message
    better. Causes that need a certain line of code (`at`) come before others; within
    each group, the longer wordings come first.
    """
    said = message.text
    if message.kind == "text":
        said = DONE.sub("", DENIED.sub("", said))
    text = fold(said)
    own = trigrams(text)
    fits = shows
    if message.own_line:
        code = f"{message.own_line}\n{message.innermost}"
        fits = cache(lambda at: re.search(at, code) is not None)

    def longest(wordings: list[Wording]) -> int:
        # Most wordings are told apart by their trigrams, which takes less time.
        lengths = (
            wording.shared(text)
            for wording in wordings
            if wording.trigrams <= own or own <= wording.trigrams
        )
        return max(lengths, default=0)

    lengths = {
        cause: length
        for cause in knowledge().causes.values()
        if (length := longest(cause.folded)) and fits(cause.at)
    }
    if not is_near:
        # A word such as "killed" says little among other programs' words.
        lengths = {c: n for c, n in lengths.items() if n >= LEAST_STRANGE}
    is_unrelated = longest(knowledge().unrelated) > max(lengths.values(), default=0)
    causes = sorted(lengths, key=lambda cause: (not cause.at, -lengths[cause]))
    return causes, is_unrelated


def alike(message: str, details: Details) -> list[Cause]:
    """The causes with a wording that the message has, except for a few letters.

    The wording has to be in one piece: a long text has nearly all trigrams somewhere.
    A cause that the report speaks against is none.
    """
    text = fold(message[:2000])
    starts = range(0, max(1, len(text) - PIECE // 2), PIECE // 2)
    pieces = [trigrams(text[start : start + PIECE]) for start in starts]
    scores: dict[Cause, tuple[float, int]] = {}
    for cause in knowledge().causes.values():
        for _, wording in cause.folded:
            shared = max(len(wording & own) for own in pieces)
            share = shared / max(1, len(wording))
            if len(wording) > 12 and share >= LEAST_ALIKE:
                scores[cause] = max(scores.get(cause, (0, 0)), (share, len(wording)))
    causes = sorted(scores, key=scores.__getitem__, reverse=True)
    return [cause for cause in causes if not is_refuted(cause, details)]


def features(
    sentences: Sequence[str], leave_out: Set[int] = frozenset()
) -> dict[str, tuple[float, ...]]:
    """How similar a text is to the sentences of the causes that share words with it.

    The numbers are the similarity of the text's words to the most similar sentence and
    to the second one, the share of its words that any of the cause's sentences has, and
    the similarity of its pairs of words. The text counts as a whole and in its single
    sentences, since one of them may say all: of each number, the largest one counts.
    The known sentences with the numbers `leave_out` don't count.
    """
    texts = [" ".join(sentences), *sentences] if len(sentences) > 1 else sentences
    found: dict[str, tuple[float, ...]] = {}
    for text in texts:
        for key, numbers in _features(text, leave_out).items():
            other = found.get(key)
            found[key] = tuple(map(max, numbers, other)) if other else numbers
    return found


def _features(text: str, leave_out: Set[int]) -> dict[str, tuple[float, ...]]:
    known = knowledge()
    words, pairs = known.words(text)
    # A text of one word, such as "gpu", says little, however similar it is.
    whole = max(known.weight(words), 2 * known.rarest)
    best: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for place, weight in _shared(words, leave_out).items():
        sentence = known.sentences[place]
        similarity = weight / math.sqrt(whole * sentence.weight)
        two = best[sentence.key]
        if similarity > two[0]:
            two[:2] = [similarity, two[0]]
        elif similarity > two[1]:
            two[1] = similarity
    # Most pairs of a text are in none of the sentences, which says nothing.
    pairs &= known.places.keys()
    whole_of_pairs = max(known.weight(pairs), 2 * known.rarest)
    for place, weight in _shared(pairs, leave_out).items():
        sentence = known.sentences[place]
        similarity = weight / math.sqrt(whole_of_pairs * sentence.weight_of_pairs)
        numbers = best[sentence.key]
        numbers[2] = max(numbers[2], similarity)
    covered: dict[str, float] = defaultdict(float)
    for word in words & known.users.keys():
        for key in known.users[word]:
            covered[key] += known.weights[word]
    for number in leave_out:
        out = known.sentences[number]
        once = {word for word in words & out.words if known.uses[out.key][word] == 1}
        covered[out.key] -= known.weight(once)
    # The words that are only in the answers are worth less than what people say.
    known_weights = known.weights_of_answers
    shared: dict[str, float] = defaultdict(float)
    total = 0.0
    for word in words & known.answers.keys():
        weight = known_weights[word]
        total += weight
        for slug in known.answers[word]:
            shared[slug] += weight
    norm = math.sqrt(total) if total else 1.0
    return {
        key: (
            first,
            second,
            covered[key] / whole,
            pair,
            shared[key] / (norm * known.sizes[key]) if key in shared else 0.0,
        )
        for key, (first, second, pair) in best.items()
    }


def _shared(words: Set[str], leave_out: Set[int]) -> dict[int, float]:
    """For each known sentence with any of the words, how much they weigh together."""
    known = knowledge()
    shared: dict[int, float] = defaultdict(float)
    for word in words & known.places.keys():
        weight = known.weights[word]
        for place in known.places[word]:
            shared[place] += weight
    for number in leave_out:
        shared.pop(number, None)
    return shared


def by_words(sentences: Sequence[str], details: Details) -> list[Probable]:
    """The causes that people describe like this, with their probabilities.

    A cause whose signs or whose code the report has is more likely, a broad one less,
    and one that the report speaks against is left out. None stands for everything that
    isn't about devices.
    """
    fitted = knowledge().fitted
    causes = knowledge().causes
    found = features(sentences)
    shown = coded(details)
    for slug in shown:
        found.setdefault(slug, (0.0,) * len(NAMES))
    scores = {
        key: sum(fitted[name] * n for name, n in zip(NAMES, numbers, strict=True))
        for key, numbers in found.items()
    }
    # What else the report says is looked up only for those that it may decide.
    for key in {*sorted(scores, key=scores.__getitem__)[-MOST_WEIGHED:], *shown}:
        if cause := causes.get(key):
            if contradicted(cause, details) or was_tried(cause, details):
                del scores[key]
                continue
            own = of_cause(cause, details, shown)
            scores[key] += sum(
                fitted[name] * n for name, n in zip(OF_CAUSE, own, strict=True)
            )
    nothing = sum(
        fitted[name] * n
        for name, n in zip(OF_NOTHING, of_nothing(sentences, details), strict=True)
    )
    total = sum(map(math.exp, scores.values())) + math.exp(nothing)
    shares = [
        (causes[k], math.exp(s) / total) for k, s in scores.items() if k in causes
    ]
    rest = 1 - sum(share for _, share in shares)
    return sorted([*shares, (None, rest)], key=lambda pair: -pair[1])


def of_nothing(sentences: Sequence[str], details: Details) -> tuple[float, ...]:
    """The numbers of `OF_NOTHING`: 1, the logarithm of the length, has it our words?

    The longer a text, the more of it is similar to some sentence by chance.
    """
    return 1.0, math.log(max(1, len(sentences))), float(not is_about(details.searched))


def of_cause(cause: Cause, details: Details, shown: Set[str]) -> tuple[float, ...]:
    """The numbers of `OF_CAUSE`: has it signs, is its code `shown`, is it too broad?

    A sign counts as much as it tells: see `Knowledge.selective`. A how-to is too broad
    for somebody who has a problem.
    """
    is_broad = float(cause.broad and details.holds("problem"))
    has_sign = bool(cause.signs) and applies(cause, details)
    if has_sign and not details.holds("problem_named") and _raises(cause):
        # What may raise an error is no sign where none was raised: neither a line of
        # code nor what is only around it.
        has_sign = not cause.around and bool(re.search(cause.signs, details.told))
    sign = knowledge().selective.get(cause.slug, 1.0) if has_sign else 0.0
    return sign, float(cause.slug in shown), is_broad


@cache
def _raises(cause: Cause) -> bool:
    """Whether the cause shows only in the messages of those that it replaces."""
    others = [knowledge().causes[slug] for slug in cause.instead_of]
    return bool(others) and not cause.wordings and all(c.wordings for c in others)


def coded(details: Details) -> set[str]:
    """The causes whose mistake the report's code shows."""
    return {
        slug
        for slug, cause in knowledge().causes.items()
        if cause.code and all(details.holds(fact) for fact in cause.code.split())
    }


def contradicted(cause: Cause, details: Details) -> bool:
    """Whether the report says something with which this can't be the cause.

    If its remedy has been tried in vain, it isn't the cause.
    """
    was_tried = cause.tried and re.search(cause.tried, details.attempts)
    return bool(was_tried) or any(map(details.holds, cause.against.split()))


def is_refuted(cause: Cause, details: Details) -> bool:
    """Whether the report speaks against the cause, and for none of its closer forms."""
    return contradicted(cause, details) and contradicted(
        refined(cause, details)[0], details
    )


def was_tried(cause: Cause, details: Details) -> bool:
    """Whether the person has tried all that the cause's remedy says."""
    if not details.attempts:
        return False
    remedy = next((r for r in cause.when if fits(r, details)), None)
    return untried((remedy and remedy.change) or cause.change, details)[1]


def refined(cause: Cause, details: Details) -> tuple[Cause, tuple[Cause, ...]]:
    """The cause that the rest of the report speaks for, and those that it replaced."""
    replaced: list[Cause] = []
    while True:
        closer = [
            other
            for other in knowledge().closer[cause.slug]
            if other not in replaced
            and applies(other, details)
            and not contradicted(other, details)
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
    has_sign = bool(replaced) or any(fits(r, details) for r in cause.when)
    return has_sign or told is closer or cause.slug in told.instead_of


def applies(condition: Cause | Remedy, details: Details) -> bool:
    """Whether the report has what the condition needs beside a message."""
    text = details.searched
    return (
        details.shows(condition.signs)
        and not (condition.unless and re.search(condition.unless, text))
        and all(details.holds(fact) for fact in condition.fact.split())
    )


def fits(remedy: Remedy, details: Details) -> bool:
    """Whether the remedy is that of this report, its line, and what has been tried."""
    return (
        applies(remedy, details)
        and re.search(remedy.tried, details.attempts) is not None
        and re.search(remedy.at, details.line) is not None
    )
