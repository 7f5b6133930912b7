"""The causes of errors.toml, and what each of them needs to be found."""

import gc
import math
import re
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).with_name("errors.toml")
FITTED = Path(__file__).with_name("fitted.toml")
MOST_FOLDED = 20_000  # characters of a message that are compared
# A text matches a cause as a piece of a longer wording if it has this many letters.
LEAST_OF_A_PIECE = 16
ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|e?s|e|ly)$")
# Words that don't part the words around them: "slower than the cpu" has "slow cpu".
BETWEEN = {*re.findall(r"\w+", "a an the is are was my of to in on with than it and i")}
# A version is one word: in 2.3.1, neither 2 nor 1 is a number of GPUs. GPU0 is two.
WORD = re.compile(r"\d+(?:\.\d+)+|(?:gpu|cuda|rank|node)(?=\d\b)|[^\W_]+")
NOT = re.compile(r"n['’]t\b")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
# Chinese words without a meaning of their own, as "the" and "is".
PARTICLES = re.compile(
    "[的了吗呢吧啊呀嘛着地得在是我你您他它这那个也都就还会有要到对把被从给让]+"
)
RUN = re.compile(r"[\u4e00-\u9fff]+")
# Where a Chinese word touches one of another language, as in "用mps".
SEAM = re.compile(
    r"(?<=[\u4e00-\u9fff])(?=\w)(?![\u4e00-\u9fff])|(?<=[a-zA-Z\d])(?=[\u4e00-\u9fff])"
)
# How people call a card without its maker's name: 7900xtx, rx6600, gfx1100; 1080ti.
RADEON = re.compile(r"(?:rx)?[4-9]\d{2,3}(?:xtx?|gre)|rx\d{3,4}|gfx\d{3,4}[a-z]?")
GEFORCE = re.compile(r"(?:rtx|gtx)?(?:[1-5]0[5-9]0|16[356]0)(?:ti|super|gtx)?")
# A word in a pattern that stands for all of its forms, as in "\b{grow}\b".
NAMED = re.compile(r"\{([a-z]+)\}")
PATTERNS = ("signs", "unless", "tried")  # of an entry or a remedy
MOST_STEMS = 20_000  # words whose stems are kept
FOLDED = str.maketrans("01l|!", "oiiii")  # characters that a scan confuses


class Wording(NamedTuple):
    """What torch says, folded."""

    parts: Sequence[str]  # what comes before, between, and after each " ... "
    trigrams: Set[str]  # of all parts; a text without one of them can't have the parts

    def shared(self, text: str) -> int:
        """How many characters a folded text shares with it; 0 if a part is missing."""
        if len(text) >= LEAST_OF_A_PIECE and any(text in part for part in self.parts):
            return len(text)
        return sum(map(len, self.parts)) if self.span(text) else 0

    def span(self, text: str) -> tuple[int, int] | None:
        """Where its first part begins in a folded text, and its last one ends."""
        start, end = -1, 0
        for part in self.parts:
            at = text.find(part, end)
            if at < 0:
                return None
            start = at if start < 0 else start
            end = at + len(part)
        return start, end


@dataclass(frozen=True, eq=False)
class Remedy:
    """What an entry says instead if the report has something that decides it.

    Each text that is "" stays the entry's own.
    """

    signs: str = ""  # regular expression that is found in the report
    unless: str = ""  # regular expression that isn't
    fact: str = ""  # what holds: names of situations or of properties of the details
    tried: str = ""  # regular expression that is found in what has been tried
    at: str = ""  # ... in the failing line; its named groups are fields of the texts
    around: bool = False  # it is only the likeliest one: so the answer is never sure
    why: str = ""
    check: str = ""
    change: str = ""


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
    fact: str = ""  # and these situations or properties of the details hold
    against: str = ""  # situations in which this isn't the cause, one is enough
    tried: str = ""  # found in what has been tried in vain, it isn't the cause either
    code: str = ""  # situations or properties: the report's code makes this mistake
    open: bool = False  # many mistakes end in it: sure only with a remedy of `when`
    broad: bool = False  # a how-to or a list of usual reasons; what is specific wins
    common: bool = False  # any program may print its wordings
    around: bool = False  # that tells only of what is around: so it is never sure
    when: Sequence[Remedy] = ()  # other texts; the first one that applies counts

    @cached_property
    def folded(self) -> list[Wording]:
        return folded(self.wordings)


class Installer(NamedTuple):
    """A way in which an environment gets its packages."""

    shown: re.Pattern[str]  # what a report shows of it
    command: str = ""  # what replaces "pip install"
    note: str = ""  # a comment above the command
    of_torch: bool = False  # the note is only about commands that install torch


class Sentence(NamedTuple):
    """One sentence of an entry's `said`."""

    key: str  # the cause's slug, or the sentence itself if it isn't about devices
    words: Set[str]
    weight: float
    pairs: Set[str]
    weight_of_pairs: float


class Knowledge:
    """The content of errors.toml."""

    def __init__(self) -> None:
        entries = tomllib.loads(FILE.read_text("utf-8"))
        self.stems: dict[str, tuple[str, str]] = {}
        self._read_terms(entries.pop("chinese"))
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
        # The forms of a word that patterns name in braces.
        self.forms: dict[str, str] = entries.pop("forms")
        # What a report can show beside its messages, by name: see `Cause.fact`.
        self.situations = {
            name: re.compile(self._pattern(pattern))
            for name, pattern in entries.pop("situations").items()
        }
        # How packages get into an environment, if not by pip alone.
        self.installers = [
            Installer(re.compile(entry.pop("shown")), **entry)
            for entry in entries.pop("installers").values()
        ]
        self.causes = {
            slug: Cause(
                slug,
                when=[
                    Remedy(**self._patterns(remedy)) for remedy in entry.pop("when", ())
                ],
                **self._patterns(entry),
            )
            for slug, entry in entries.items()
        }
        # For each cause, the causes that may take its place.
        self.closer: dict[str, list[Cause]] = defaultdict(list)
        for cause in self.causes.values():
            for slug in cause.instead_of:
                self.closer[slug].append(cause)
        lines = [
            (slug, line)
            for slug, cause in self.causes.items()
            for line in cause.said.splitlines()
        ]
        lines += [(line, line) for line in self.none["said"].splitlines()]
        said = [(key, *self.words(line)) for key, line in lines if line]
        # In how many of a cause's sentences each word is.
        self.uses: dict[str, Counter[str]] = defaultdict(Counter)
        for key, words, two in said:
            self.uses[key].update(words | two)
        # For each word, the keys of the causes whose sentences have it.
        self.users: dict[str, list[str]] = defaultdict(list)
        for key, counts in self.uses.items():
            for word in counts:
                self.users[word].append(key)
        # For how many causes people use each word, and each pair of words.
        self.counts = Counter(chain.from_iterable(self.uses.values()))
        self.weights = {word: self._weight(n) for word, n in self.counts.items()}
        self.rarest = self._weight(0)
        self.sentences = [
            Sentence(key, words, self.weight(words), two, self.weight(two))
            for key, words, two in said
        ]
        self._read_answers()
        # For each word and each pair, the numbers of the sentences that have it.
        self.places: dict[str, list[int]] = defaultdict(list)
        for i, sentence in enumerate(self.sentences):
            for word in sentence.words | sentence.pairs:
                self.places[word].append(i)

    def _pattern(self, pattern: str) -> str:
        return NAMED.sub(lambda at: f"(?:{self.forms[at[1]]})", pattern)

    def _patterns(self, entry: dict[str, Any]) -> dict[str, Any]:
        """An entry with all forms of the words that its patterns name."""
        patterns = {k: self._pattern(entry[k]) for k in PATTERNS if k in entry}
        return entry | patterns

    def _read_terms(self, terms: dict[str, str]) -> None:
        # What Chinese terms are in English.
        self.english = {
            term: name for name, words in terms.items() for term in words.split()
        }
        longest = sorted(self.english, key=len, reverse=True)
        self.chinese = re.compile("|".join(map(re.escape, longest)))

    def _read_answers(self) -> None:
        # For each word, the causes whose answers have it, and the size of each answer.
        self.answers: dict[str, list[str]] = defaultdict(list)
        answers = {slug: self._answer(cause) for slug, cause in self.causes.items()}
        for slug, words in answers.items():
            for word in words:
                self.answers[word].append(slug)
        # Words in many answers say little, and so do words that everybody uses.
        self.weights_of_answers = {
            word: min(
                math.log(1 + len(answers) / (len(slugs) + 0.5)),
                self.weights.get(word, self.rarest),
            )
            for word, slugs in self.answers.items()
        }
        self.sizes = {
            slug: math.sqrt(sum(self.weights_of_answers[word] for word in words))
            for slug, words in answers.items()
        }

    def words(self, text: str) -> tuple[set[str], set[str]]:
        """The words of a text and what they stand for, and each two that go together.

        All are without their endings. Pairs have only what the words stand for.
        """
        both = [self._stem(word) for word in self._split(text)]
        kept = [stem for _, stem in both if stem not in BETWEEN]
        pairs = {f"{one} {two}" for one, two in pairwise(kept) if one != two}
        return {*kept, *(own for own, _ in both)} - BETWEEN, pairs

    def _split(self, text: str) -> list[str]:
        if not text.isascii():
            text = RUN.sub(_apart, self.translated(text))
        return WORD.findall(NOT.sub(" not", text.lower()))

    def _stem(self, word: str) -> tuple[str, str]:
        """The word without its ending, and so what it stands for."""
        known = self.stems.get(word)
        if known is None:
            # An AMD card is another matter than CUDA, so its maker stays a word.
            own = "radeon" if RADEON.fullmatch(word) else word
            named = "geforce" if GEFORCE.fullmatch(word) else own
            other = self.synonyms.get(named, named)
            known = (ENDING.sub("", own), ENDING.sub("", other))
            if len(self.stems) < MOST_STEMS:
                self.stems[word] = known
        return known

    def translated(self, text: str) -> str:
        """The text with English words for the Chinese terms that are known."""
        if not CHINESE.search(text):
            return text
        text = self.chinese.sub(lambda term: f" {self.english[term[0]]} ", text)
        return SEAM.sub(" ", text)

    def _answer(self, cause: Cause) -> set[str]:
        """The words of a cause's answers."""
        texts = [cause.title, cause.why, cause.check, cause.change]
        texts += [getattr(r, k) for r in cause.when for k in ("why", "check", "change")]
        words = set(self._split(" ".join(texts)))
        return {*chain.from_iterable(map(self._stem, words))} - BETWEEN

    def weight(self, words: Set[str]) -> float:
        """How informative the words are: rare words of the causes count more."""
        return sum(self.weights.get(word, self.rarest) for word in words)

    def _weight(self, count: int) -> float:
        """The weight of a word that people use for `count` causes."""
        return math.log(1 + len(self.uses) / (count + 0.5))

    @cached_property
    def fitted(self) -> dict[str, float]:
        """What each feature of `evidence.features` is worth."""
        return self._file_of_fitted["weights"]

    @cached_property
    def selective(self) -> dict[str, float]:
        """How much a cause's signs tell, by slug: 1 for causes that aren't in it.

        Signs that fit what people say about other causes tell less.
        """
        return self._file_of_fitted["signs"]

    @cached_property
    def _file_of_fitted(self) -> dict[str, dict[str, float]]:
        return tomllib.loads(FITTED.read_text("utf-8"))


def _apart(run: re.Match[str]) -> str:
    """Chinese words that aren't known: without particles."""
    return PARTICLES.sub(" ", run[0])


@cache
def knowledge() -> Knowledge:
    """What is read once. All of it stays, so a collector's rounds would be in vain."""
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        return Knowledge()
    finally:
        if is_collecting:
            gc.enable()


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
