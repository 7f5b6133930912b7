"""Find the mistake that an error message belongs to.

Texts are compared by the cosine of their TF-IDF vectors (Salton and Buckley,
"Term-weighting approaches in automatic text retrieval", 1988). What the mistakes raise
is what they raised when they were run; mistakes.toml adds what other versions of torch
and other devices say.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from core.lessons.mistakes.catalogue import MESSAGES, MISTAKES, Failure, Message

MOST_CHARACTERS = 20_000  # how much of a text is read: its end, where the error stands
# What fits: tests/lessons/mistakes/test_search.py has messages on both sides of these.
LEAST_SCORE = 0.13  # for a text with an error message
LEAST_SCORE_OF_QUESTION = 0.2  # for a text without one
LEAST_SHARED = 4  # words, or all where the message has fewer
MOST_MATCHES = 3
SAME_DEVICE = "all tensors to be on the same device"
CODE_WEIGHT = 2.0  # several mistakes raise one message: their code tells them apart
SYMPTOM_WEIGHT = 1.25  # whoever tells of no error has seen none: it was a silent one
AHEAD = 1.01  # factor that lifts an exact wording just above all others
UNKNOWN = 0.5  # how much a word that is in no document weighs, beside a rare one

# An exception's class is one word; other identifiers fall into theirs.
WORD = re.compile(r"[A-Z]\w{0,60}(?:Error|Exception)\b|[A-Z]?[a-z]+|[A-Z]+(?![a-z])|==")
STOP_WORDS = frozenset(
    """
    all an and are as at be but by can for from has have if in is it its least no not of
    on or so than that the there they this to too was what when where which who with you
    your am any did do does doesn don how i isn just me my only some very we why won
    """.split()  # noqa: SIM905
)
# What a traceback ends with: a class, and a message of one line or more.
ERROR = re.compile(r"^[\w.]*(?:Error|Exception|Warning)\b", re.MULTILINE)
FRAME = re.compile(r'^ *File ".*", line \d+, in (\S+)$')
PRIVATE = re.compile(r'(?:["/\\]|, in )_(?!_)')  # in a frame: a file, folder, function


@dataclass(frozen=True)
class Match:
    """A mistake that fits a text; of two, the one with the higher score fits better."""

    slug: str
    score: float


def words(text: str) -> Counter[str]:
    """How often each word comes; plurals lose their s, single letters don't count."""
    found = (word.lower() for word in WORD.findall(text))
    return Counter(
        word.removesuffix("s") if len(word) > 3 else word
        for word in found
        if len(word) > 1 and word not in STOP_WORDS
    )


def split_traceback(text: str) -> tuple[str, str]:
    """The code that a traceback shows, and the error it ends with; else "" and all.

    Private functions are left out: they differ between devices and versions of torch.
    """
    errors = list(ERROR.finditer(text))
    if not errors:
        return "", text
    end = errors[-1].start()
    code, shown = [], False
    for line in text[:end].splitlines():
        if frame := FRAME.match(line):
            shown, line = not PRIVATE.search(line), frame[1]
        elif not line.startswith(" "):  # a log around the traceback
            shown = False
        if shown and not set(line) <= set(" ^~"):
            code.append(line)
    return "\n".join(code), text[end:]


def _says(message: str, wording: str) -> bool:
    """Whether all parts of the wording are in the message."""
    return all(part in message for part in wording.split(" ... "))


def message_in(text: str) -> Message | None:
    """What there is to say of a text that quotes no mistake, but a message we know."""
    _, message = split_traceback(text[-MOST_CHARACTERS:])
    fitting = (each for each in MESSAGES if _says(message, each.wording))
    return next(fitting, None)


class Corpus:
    """Some documents, and how much each word tells about which is meant."""

    def __init__(self, documents: Sequence[str]) -> None:
        counts = [words(document) for document in documents]
        found_in = Counter(word for count in counts for word in count)
        n = len(documents)
        self.unknown = UNKNOWN * math.log(1 + n)
        self.weights = {w: math.log(1 + n / k) for w, k in found_in.items()}
        self.vectors = [self._vector(count) for count in counts]

    def _vector(self, count: Counter[str]) -> dict[str, float]:
        vector = {
            word: (1 + math.log(k)) * self.weights.get(word, self.unknown)
            for word, k in count.items()
        }
        length = math.hypot(*vector.values()) or 1.0
        return {word: weight / length for word, weight in vector.items()}

    def cosines(self, text: str) -> list[float]:
        """How alike the text is to each document, 0 to 1."""
        asked = self._vector(words(text)).items()
        return [
            sum(weight * vector.get(word, 0.0) for word, weight in asked)
            for vector in self.vectors
        ]


class Index:
    """All mistakes, by what is said about them and by what they raised."""

    def __init__(self, failures: dict[str, Failure], sources: dict[str, str]) -> None:
        """`failures` of the loud ones, and the broken code of all, by their slugs."""
        told, code = [], []
        for each in MISTAKES:
            trace = raised = ""
            if failure := failures.get(each.slug):
                trace, _ = split_traceback(failure.traceback)
                # Half of them raise this one: their code and wordings tell them apart.
                if SAME_DEVICE not in failure.message:
                    raised = f"{failure.kind}: {failure.message}"
            code.append(f"{trace}\n{sources[each.slug]}")
            texts = (each.title, each.why, each.note, each.without_accelerator, raised)
            told.append("\n".join(texts))
        self.told, self.code = Corpus(told), Corpus(code)
        self.wordings = [
            (at, line)
            for at, each in enumerate(MISTAKES)
            for line in each.wordings.splitlines()
        ]
        self.symptoms = Corpus([each.symptoms for each in MISTAKES])

    def find(self, text: str) -> list[Match]:
        """The mistakes that fit a message, a traceback or a word, the best one first.

        An empty list where none fits.
        """
        code, message = split_traceback(text[-MOST_CHARACTERS:])
        told = self.told.cosines(message)
        worded = [at for at, wording in self.wordings if _says(message, wording)]
        ahead = max(LEAST_SCORE, AHEAD * max(told))
        for at in worded:  # where several say it, the code tells them apart
            told[at] = ahead
        if not ERROR.search(message):  # somebody tells what they see
            told = list(map(max, told, self._of_symptoms(message)))
        if not worded and not self._fits(message, told):
            return []
        likeness = zip(MISTAKES, told, self.code.cosines(code), strict=True)
        matches = [Match(each.slug, a + CODE_WEIGHT * b) for each, a, b in likeness]
        first, *others = sorted(matches, key=lambda match: -match.score)[:MOST_MATCHES]
        return [first, *(each for each in others if each.score > first.score / 2)]

    def _of_symptoms(self, question: str) -> list[float]:
        """How alike a question is to the symptoms of each; one word tells nothing."""
        asked, known = set(words(question)), self.symptoms
        found = zip(known.cosines(question), known.vectors, strict=True)
        return [
            SYMPTOM_WEIGHT * cosine if len(asked & set(vector)) > 1 else 0.0
            for cosine, vector in found
        ]

    def _fits(self, message: str, told: list[float]) -> bool:
        """Whether the message is about any of the mistakes at all."""
        if message.startswith("KeyError"):  # no mistake raises one: it quotes a name
            return False
        best = max(told)
        if not ERROR.search(message):
            return best >= LEAST_SCORE_OF_QUESTION
        asked = set(words(message))
        # The class alone tells little: anything may be a RuntimeError.
        telling = {word for word in asked if not word.endswith(("error", "exception"))}
        shared = (telling or asked) & set(self.told.vectors[told.index(best)])
        needed = min(LEAST_SHARED, max(2, len(telling))) if telling else 1
        return best >= LEAST_SCORE and len(shared) >= needed
