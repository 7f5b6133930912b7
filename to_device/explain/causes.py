"""The causes of errors.toml, and what each of them needs to be found."""

import math
import re
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).with_name("errors.toml")
FITTED = Path(__file__).with_name("fitted.toml")
MOST_FOLDED = 20_000  # characters of a message that are compared
ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|e?s|e|ly)$")
FOLDED = str.maketrans("01l|!", "oiiii")  # characters that a scan confuses


class Wording(NamedTuple):
    """What torch says, folded."""

    parts: Sequence[str]  # what comes before, between, and after each " ... "
    trigrams: Set[str]  # of all parts; a text without one of them can't have the parts


@dataclass(frozen=True, eq=False)
class Cause:
    """One entry of errors.toml.

    Its texts may have {name} and the fields of `details.Details`.
    """

    slug: str
    title: str
    why: str
    check: str
    change: str  # the line of code to write
    see: str  # "mistake:slug" or "page:Title" of this app
    read: str  # the web address of more about the cause
    example: str
    wordings: Sequence[str] = ()  # what torch says; " ... " stands for anything
    said: str = ""  # how people describe the error, one sentence per line
    name: str = ""  # regular expression that finds {name} in the line or the message
    names: str = "tensor"  # what replaces {name} if `name` finds nothing
    at: str = ""  # regular expression that must match a line of code in the traceback
    generic: bool = False  # many causes end in this message; others may say which
    instead_of: Sequence[str] = ()  # causes that this one replaces, if ...
    signs: str = ""  # ... this regular expression is found in the report,
    unless: str = ""  # this one isn't,
    fact: str = ""  # and this property of the report's details holds

    @cached_property
    def folded(self) -> list[Wording]:
        return folded(self.wordings)


class Sentence(NamedTuple):
    """One sentence of an entry's `said`."""

    key: str  # the cause's slug, or the sentence itself if it isn't about devices
    words: Set[str]
    weight: float


class Knowledge:
    """The content of errors.toml."""

    def __init__(self) -> None:
        entries = tomllib.loads(FILE.read_text("utf-8"))
        # What to say if there is no cause, by case ("empty", ...).
        self.none: dict[str, Any] = entries.pop("none")
        # Wordings that are not about devices.
        self.unrelated = folded(self.none["wordings"])
        # For each word that has a synonym in errors.toml, this synonym.
        self.synonyms = {
            word: name
            for name, words in entries.pop("words").items()
            for word in words.split()
        }
        self.causes = {slug: Cause(slug, **entry) for slug, entry in entries.items()}
        # For each cause, the causes that may take its place.
        self.closer: dict[str, list[Cause]] = defaultdict(list)
        for cause in self.causes.values():
            for slug in cause.instead_of:
                self.closer[slug].append(cause)
        said = [
            (slug, self.words(sentence))
            for slug, cause in self.causes.items()
            for sentence in cause.said.splitlines()
            if sentence
        ]
        none = [(line, self.words(line)) for line in self.none["said"].splitlines()]
        said += [(line, words) for line, words in none if line]
        # In how many of a cause's sentences each word is.
        self.uses: dict[str, Counter[str]] = defaultdict(Counter)
        for key, words in said:
            self.uses[key].update(words)
        # For how many causes people use each word.
        self.counts = Counter(chain.from_iterable(self.uses.values()))
        self.weights = {word: self._weight(n) for word, n in self.counts.items()}
        self.rarest = self._weight(0)
        self.sentences = [Sentence(k, words, self.weight(words)) for k, words in said]
        # For each word, the numbers of the sentences that have it.
        self.places: dict[str, list[int]] = defaultdict(list)
        for i, sentence in enumerate(self.sentences):
            for word in sentence.words:
                self.places[word].append(i)

    def words(self, text: str) -> set[str]:
        """The words of a text and their synonyms, without their endings."""
        words = re.findall(r"[^\W_]+", re.sub(r"n['’]t\b", " not", text.lower()))
        words += [self.synonyms[word] for word in words if word in self.synonyms]
        return {ENDING.sub("", word) for word in words}

    def weight(self, words: Set[str]) -> float:
        """How informative the words are: rare words of the causes count more."""
        return sum(self.weights.get(word, self.rarest) for word in words)

    def _weight(self, count: int) -> float:
        """The weight of a word that people use for `count` causes."""
        return math.log(1 + len(self.uses) / (count + 0.5))

    @cached_property
    def fitted(self) -> dict[str, float]:
        """What each feature of `evidence.features` is worth."""
        return tomllib.loads(FITTED.read_text("utf-8"))


knowledge = cache(Knowledge)


def fold(text: str) -> str:
    """Keep letters and digits only; unify those that scans confuse, such as 1 and l."""
    # One character at a time: a run of accents would take a time that grows with its
    # square, and one character may become 18.
    text = text[:MOST_FOLDED]
    plain = {ord(c): unicodedata.normalize("NFKC", c)[:3] for c in set(text)}
    text = text.translate(plain).lower()[:MOST_FOLDED].translate(FOLDED)
    return re.sub(r"[\W_]+", "", text.replace("rn", "m"))


def folded(wordings: Sequence[str]) -> list[Wording]:
    parts = ([fold(part) for part in text.split(" ... ")] for text in wordings)
    return [Wording(each, set().union(*map(trigrams, each))) for each in parts]


def trigrams(text: str) -> set[str]:
    return {text[i : i + 3] for i in range(len(text) - 2)}
