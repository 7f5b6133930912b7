"""Explain an error: what it means, how to check that, and what to write.

The text is compared with the wordings in errors.toml; that needs only Python's standard
library. The last exception's message is compared first, then the messages before it,
then the other lines. The stack frames only tell which line to change.
"""

import json
import math
import re
import sys
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import chain, pairwise
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

from to_device import builds
from to_device.errors import Parser, end_with_pipe

HELP = """Explain an error from a file or a pipe; needs only Python.

    python train.py 2>&1 | to-device explain
    to-device explain error.txt --json

The exit status is 0 if a cause is known, 1 if none is, and 2 without a text.
"""
FILE = Path(__file__).with_name("errors.toml")
# The text is a stranger's, and the web server waits while it is read. So everything
# that is searched has a limit, and no pattern, here or in errors.toml, takes a time
# that grows faster than the text. Possessive quantifiers, as in `\w++`, never try a
# shorter match.
MOST_CHARACTERS = 20_000  # only the end of a longer text is read: the error is there
MOST_LINES = 1_000  # the newest ones
MOST_OF_A_LINE = 500  # characters that can tell a frame or an exception's name
MOST_MESSAGES = 12  # the newest ones; older ones are searched as parts of the text
MOST_OF_A_MESSAGE = 4_000  # characters in which names and subjects are looked for
LONGEST_NAME = 100  # characters
MOST_OF_A_SENTENCE = 1000  # characters; longer texts are logs
LEAST_ALIKE = 0.8  # share of a wording's trigrams that a garbled text must have
# A cause must be this similar to a person's text to be likely, and to be sure.
LEAST_LIKELY, LEAST_SURE = 0.38, 0.5
# A sentence counts as at least this heavy (see Knowledge.weight). Otherwise, a very
# short one, such as "my gpu", would seem similar to a cause.
LEAST_WEIGHT = 12
MOST_WEIGHT = 80  # a text with more weight counts as several sentences
LONG_TO_SHORT = 1.76  # makes the scores of long texts comparable to a sentence's
MARGIN = 0.12  # an answer is sure only if the next cause is this much less similar
# A text matches a cause as a piece of a longer wording if it has this many letters.
LEAST_OF_A_PIECE = 16
MOST_OTHERS = 2  # other possible causes that an answer names, at most

FRAME = re.compile(
    r'^(?:File\s++"?(?P<file>[^",]+)"?,? line (?P<line>\d+)'
    r"|(?=.*\)$).* in (?:[\w.]++|<[^<>]*+>)\()"
)
# What a launcher or a loader says when one of its processes has failed.
PASSED_ON = re.compile(
    r"ChildFailedError|Process(?:Exited|Raised)Exception|CalledProcessError"
    r"|exited unexpectedly|failed \(exitcode"
)
# The line of code that failed, in a notebook's traceback.
ARROW = re.compile(r"^(?:-++>|❱|→)\s*+\d++\s*+(?P<code>.*)")
# What ranks, logs, pytest, and boxes around a traceback put before a line.
PREFIX = re.compile(
    r"^(?:\[rank\d+\]: ?|(?:\[[\d:.]+\]: )?[EWI]\d{4} [\d:.]+ \d+ \S+\] |[│|]|E   )+"
)
PATH = re.compile(r"(?:\b[A-Za-z]:)?(?:[/\\][^\s/\\]+){2,}")
LIBRARY = re.compile(
    r"site-packages|dist-packages|(?:^|[/\\])(?:torch|to_device[/\\]sim)[/\\]"
    r"|lib[/\\](?:python|multiprocessing)|<frozen|[/\\](?:bin|Scripts)[/\\]"
)
NAMED = re.compile(r"^.{0,200}?\b[A-Z]\w*(?:Error|Exception|Warning)\s*+[:：]")
ABOUT = re.compile(
    r"cuda|gpu|torch|tensor|nccl|\bhip\b|rocm|cudnn|cublas|triton|loader|autograd|metal"
    r"|gradient|backward|state_dict|nvidia|\bdevices?\b|num_?workers|\bloss|\btraining\b"
    r"|\bmodel|epoch|\bbatch|scalar|\boptim|killed|segmentation|\baten\b|\bc10|\bmps"
    r"|\w-dimensional|pin memory|\bcpu\b|\bv?ram\b|\b[rg]tx|\bfp16|bf16|float\d\d|\bxpu"
    r"|attention|paging|runtimeerror|cores\b|inference|parallel|\bddp\b|dropout|elastic"
    r"|internal assert|multiprocessing|\bhidden|\btarget\b|tpu|jetson|accurac|neural"
    r"|\bbuffer|\bcnn\b|\beval\b|\branks?\b|checkpoints"
)
DEVICE = re.compile(r"\b(?:cuda|mps|xpu|hip|sim)(?::\d{1,3})?\b|\bcpu\b", re.IGNORECASE)
SIZE = r"\b(\d{1,9}(?:\.\d{1,9})?) ([KMG])iB"
SIZES = {
    "tried": f"Tried to allocate {SIZE}",
    "unused": f"{SIZE} is reserved by PyTorch but unallocated",
    "used": f"{SIZE} already allocated",
    "reserved": f"{SIZE} reserved in total",
}
SHAPES = re.compile(r"\([^\Wx]++x[^\Wx]++ and [^\Wx]++x[^\Wx]++\)")
ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|e?s|e|ly)$")
FOLDED = str.maketrans("01l|!", "oiiii")  # characters that a scan confuses


class Wording(NamedTuple):
    """What torch says, folded."""

    parts: Sequence[str]  # what comes before, between, and after each " ... "
    trigrams: Set[str]  # of all parts; a text without one of them can't have the parts


@dataclass(frozen=True, eq=False)
class Cause:
    """One entry of errors.toml.

    Its texts may have {name}, {devices}, {shapes}, and the fields of `builds.fields`.
    """

    slug: str
    title: str
    wordings: Sequence[str]  # what torch says; " ... " stands for anything
    why: str
    check: str
    change: str  # the line of code to write
    see: str  # "mistake:slug" or "page:Title" of this app
    read: str  # the web address of more about the cause
    example: str
    said: str = ""  # how people describe the error, one sentence per line
    name: str = ""  # regular expression that finds {name} in the line or the message
    names: str = "tensor"  # what replaces {name} if `name` finds nothing
    at: str = ""  # regular expression that must match a line of code in the traceback

    @cached_property
    def folded(self) -> list[Wording]:
        return _folded(self.wordings)


@dataclass(frozen=True)
class Answer:
    """What a text means. `kind` is "sure", "likely", "unrelated", or "unknown"."""

    kind: str
    say: str = ""  # what to do if no cause is named
    cause: Cause | None = None
    why: str = ""
    check: str = ""
    change: str = ""
    line: str = ""  # the learner's own line of code that is last in the traceback
    where: str = ""  # the file and the number of this line
    others: tuple[Cause, ...] = ()  # other causes, the likelier ones first

    def to_json(self) -> dict[str, Any] | None:
        """The answer, ready for json.dumps; None without a cause."""
        if self.cause is None:
            return None
        return {
            "title": self.cause.title,
            "text": self.why,
            "sure": self.kind == "sure",
            **{key: getattr(self, key) for key in ("check", "change", "line", "where")},
            **{key: getattr(self.cause, key) for key in ("slug", "see", "read")},
            "others": [other.slug for other in self.others],
        }


class Knowledge:
    """The content of errors.toml."""

    def __init__(self) -> None:
        entries = tomllib.loads(FILE.read_text("utf-8"))
        # What to say if there is no cause, by case ("empty", ...).
        self.none: dict[str, Any] = entries.pop("none")
        # Wordings that are not about devices.
        self.unrelated = _folded(self.none["wordings"])
        # For each word that has a synonym in errors.toml, this synonym.
        self.synonyms = {
            word: name
            for name, words in entries.pop("words").items()
            for word in words.split()
        }
        self.causes = {slug: Cause(slug, **entry) for slug, entry in entries.items()}
        # For the slug of each cause, the words of each sentence with which people
        # describe the cause. A sentence that isn't about devices is its own key.
        self.sentences = {
            slug: [self.words(sentence) for sentence in cause.said.splitlines()]
            for slug, cause in self.causes.items()
        }
        for sentence in self.none["said"].splitlines():
            self.sentences[sentence] = [self.words(sentence)]
        # All words with which people describe a cause
        self.vocabulary = {k: set().union(*sets) for k, sets in self.sentences.items()}
        # For how many causes people use each word.
        self.counts = Counter(chain.from_iterable(self.vocabulary.values()))
        self.weights = {word: self._weight(n) for word, n in self.counts.items()}
        self.rarest = self._weight(0)
        self.sentence_weights = {
            k: [self.weight(words) for words in sets]
            for k, sets in self.sentences.items()
        }

    def words(self, text: str) -> set[str]:
        """The words of a text and their synonyms, without their endings."""
        words = re.findall(r"[^\W_]+", re.sub(r"n['’]t\b", " not", text.lower()))
        words += [self.synonyms[word] for word in words if word in self.synonyms]
        return {ENDING.sub("", word) for word in words}

    def weight(self, words: set[str]) -> float:
        """How informative the words are: rare words of the causes count more."""
        return sum(self.weights.get(word, self.rarest) for word in words)

    def _weight(self, count: int) -> float:
        """The weight of a word that people use for `count` causes."""
        return math.log(1 + len(self.sentences) / (count + 0.5))

    @cached_property
    def evidence(self) -> dict[str, dict[str, float]]:
        """How much each word of a cause's entry speaks for this cause (Okapi BM25)."""
        evidence = {}
        for slug, cause in self.causes.items():
            entry = self.words(f"{cause.title} {cause.why} {cause.check}")
            uses = Counter(chain(entry, *self.sentences[slug]))
            # A word that a long entry uses once says less.
            least = 0.3 + uses.total() / 177
            evidence[slug] = {
                word: n / (n + least) * self.weight({word}) for word, n in uses.items()
            }
        return evidence


knowledge = cache(Knowledge)


def fold(text: str) -> str:
    """Keep letters and digits only; unify those that scans confuse, such as 1 and l."""
    # One character at a time: a run of accents would take a time that grows with its
    # square, and one character may become 18.
    plain = {ord(c): unicodedata.normalize("NFKC", c)[:3] for c in set(text)}
    text = text.translate(plain).lower()[:MOST_CHARACTERS].translate(FOLDED)
    return re.sub(r"[\W_]+", "", text.replace("rn", "m"))


def _folded(wordings: Sequence[str]) -> list[Wording]:
    folded = ([fold(part) for part in text.split(" ... ")] for text in wordings)
    return [Wording(parts, set().union(*map(_trigrams, parts))) for parts in folded]


def _trigrams(text: str) -> set[str]:
    return {text[i : i + 3] for i in range(len(text) - 2)}


def explain(text: str) -> Answer:
    """The answer to a message, a traceback, or a sentence about an error."""
    text = re.sub(r"\x1b\[[\d;]*m", "", text[-MOST_CHARACTERS:]).strip()
    if not text:
        return Answer("unknown", knowledge().none["empty"])
    lines, own_line, innermost, where = _without_frames(text)
    begins = [_is_named(line) or PASSED_ON.search(line) for line in lines]
    starts = [i for i, begin in enumerate(begins) if begin]
    parts = pairwise([*starts, len(lines)])
    # A kernel's assertion is printed before the exception, and says more.
    asserted = [line for line in lines if "Assertion `" in line][-1:]
    asserted = [line[-MOST_OF_A_SENTENCE:] for line in asserted]
    messages = ["\n".join([*lines[a:b], *asserted]) for a, b in parts]
    own = [message for message in messages if not PASSED_ON.search(message)]
    if messages:
        messages = own or ["\n".join(messages)]
    rest = "\n".join(lines)
    code = f"{own_line}\n{innermost}" if own_line else text
    newest = [*dict.fromkeys(reversed(messages))][:MOST_MESSAGES]
    fits = cache(lambda at: re.search(at, code) is not None)
    for at, message in enumerate([*newest, rest]):
        causes, fits_another = _worded(message, fits)
        if fits_another:
            return Answer("unrelated", knowledge().none["unrelated"])
        if causes:
            # A match in an earlier message or in the log is only a good guess.
            kind = "likely" if at and messages else "sure"
            return _answer(kind, causes, message, own_line, where)
    # In a log, only the last line may be the learner's own sentence.
    is_log = len(rest) > MOST_OF_A_SENTENCE
    sentence = lines[-1][-MOST_OF_A_SENTENCE:] if is_log else rest
    if not messages:
        (first, best), (_, second), *_ = scores = _by_similarity(sentence)
        if first and best >= LEAST_LIKELY:
            is_sure = not is_log and best >= max(LEAST_SURE, second + MARGIN)
            least = best - MARGIN
            causes = [c for c, score in scores if c and score >= least]
            kind = "sure" if is_sure else "likely"
            return _answer(kind, causes, rest, own_line, where)
    last = messages[-1] if messages else rest
    if causes := _alike(last):
        return _answer("likely", causes, last, own_line, where)
    is_about = ABOUT.search(PATH.sub("", last[:MOST_OF_A_MESSAGE]).lower())
    kind = "unknown" if is_about else "unrelated"
    say = kind if is_about or messages else "strange"
    return Answer(kind, knowledge().none[say])


def _without_frames(text: str) -> tuple[list[str], str, str, str]:
    """Return the lines outside of stack frames, and three facts from the frames.

    The facts are the learner's line of code, the innermost line of code, and the file
    and number of the learner's line.
    """
    outside, own, code, where, skip, file = [], "", "", "", False, ""
    is_library = False
    for line in text.splitlines()[-MOST_LINES:]:
        line = PREFIX.sub("", line).strip().strip("│| ").strip()
        start, is_named = line[:MOST_OF_A_LINE].rstrip(), _is_named(line)
        if not is_named and (frame := FRAME.match(start)):
            file, skip = frame["file"] or start, True
            number, is_library = frame["line"], bool(LIBRARY.search(file))
        elif arrow := ARROW.match(line):
            code = arrow["code"]
            if not is_library:
                own = code
        elif skip and not is_named:
            code = line
            if not is_library:
                own = code
                where = f"{Path(file).name}, line {number}" if number else ""
            skip = False
        elif set(line) - set("^~ -") and not re.match(r"\d++ ", line):
            outside.append(line)
            skip = False
    return outside, own, code, where


def _is_named(line: str) -> bool:
    """Whether the line begins a message: it has an exception's name and a colon."""
    return NAMED.match(line[:MOST_OF_A_LINE]) is not None


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


def _worded(message: str, fits: Callable[[str], bool]) -> tuple[list[Cause], bool]:
    """Return the causes whose wordings the message has, and a boolean.

    The boolean says whether a wording that isn't about devices fits the message
    better. Causes that need a certain line of code (`at`) come before others; within
    each group, the longer wordings come first. `fits` tells whether the code has a
    match for an `at`.
    """
    text = fold(message)
    trigrams = _trigrams(text)

    def longest(wordings: list[Wording]) -> int:
        # Most wordings are told apart by their trigrams, which takes less time.
        lengths = (
            _length(parts, text)
            for parts, needed in wordings
            if needed <= trigrams or trigrams <= needed
        )
        return max(lengths, default=0)

    lengths = {
        cause: length
        for cause in knowledge().causes.values()
        if (length := longest(cause.folded)) and fits(cause.at)
    }
    fragmentation = knowledge().causes["fragmentation"]
    if fragmentation in lengths and not _may_be_fragmentation(message):
        del lengths[fragmentation]
    fits_another = longest(knowledge().unrelated) > max(lengths.values(), default=0)
    causes = sorted(lengths, key=lambda cause: (not cause.at, -lengths[cause]))
    return causes, fits_another


def _may_be_fragmentation(message: str) -> bool:
    """Whether torch's reserved but unused memory is as large as the request.

    If not, fragmentation isn't the cause, though torch's messages always suggest it.
    """
    sizes = {
        name: float(size[1]) * 1024 ** "KMG".index(size[2])
        for name, pattern in SIZES.items()
        if (size := re.search(pattern, message))
    }
    unused = sizes.get("unused", sizes.get("reserved", math.inf) - sizes.get("used", 0))
    return unused >= sizes.get("tried", 0)


def _by_similarity(sentence: str) -> list[tuple[Cause | None, float]]:
    """All causes with their similarity to the sentence, the most similar first.

    A sentence is compared with the two most similar sentences of a cause's entry, and a
    long text with the whole entry. In the list, None stands for a sentence of
    errors.toml that isn't about devices.
    """
    weight, scores = knowledge().weight, {}
    words = knowledge().words(sentence)
    whole = max(weight(words), LEAST_WEIGHT)
    if whole > MOST_WEIGHT and ABOUT.search(sentence.lower()):
        for key, evidence in knowledge().evidence.items():
            total = sum(evidence.get(word, 0) for word in words)
            scores[key] = LONG_TO_SHORT * total / whole
    else:
        for key, others in knowledge().sentences.items():
            similarities = sorted(
                weight(words & other) / math.sqrt(whole * weight_of_other)
                for other, weight_of_other in zip(
                    others, knowledge().sentence_weights[key], strict=True
                )
            )
            covered = weight(words & knowledge().vocabulary[key]) / whole
            best_two = similarities[-1] + similarities[-2:][0]
            scores[key] = 0.4 * best_two + 0.2 * covered
    keys = sorted(scores, key=scores.__getitem__, reverse=True)
    return [(knowledge().causes.get(key), scores[key]) for key in keys]


def _alike(message: str) -> list[Cause]:
    """The causes with a wording that the message has, except for a few letters."""
    own = _trigrams(fold(message[:2000]))
    scores: dict[Cause, tuple[float, int]] = {}
    for cause in knowledge().causes.values():
        for _, wording in cause.folded:
            share = len(wording & own) / max(1, len(wording))
            if len(wording) > 12 and share >= LEAST_ALIKE:
                scores[cause] = max(scores.get(cause, (0, 0)), (share, len(wording)))
    return sorted(scores, key=scores.__getitem__, reverse=True)


def _answer(kind: str, causes: list[Cause], text: str, line: str, where: str) -> Answer:
    cause, others = causes[0], tuple(causes[1 : MOST_OTHERS + 1])
    match = re.search(
        cause.name, f"{line[:MOST_OF_A_LINE]}\n{text[:MOST_OF_A_MESSAGE]}"
    )
    name = next(filter(None, match.groups() if match else ()), cause.names)
    if len(name) > LONGEST_NAME:
        name = cause.names
    devices = dict.fromkeys(device.lower() for device in DEVICE.findall(text))
    shapes = SHAPES.search(text)
    fill = {
        "{name}": name,
        "{devices}": " and one on ".join([*devices, "another device"][:2]),
        "{shapes}": f" {shapes[0]}" if shapes else "",
        **{f"{{{key}}}": text for key, text in builds.fields().items()},
    }
    texts = {
        key: re.sub("|".join(fill), lambda at: fill[at[0]], getattr(cause, key))
        for key in ("why", "check", "change")
    }
    return Answer(kind, cause=cause, line=line, where=where, others=others, **texts)


def of_cause(cause: Cause) -> Answer:
    return _answer("sure", [cause], "", "", "")


def paragraphs(answer: Answer) -> Iterator[str]:
    cause = answer.cause
    if cause is None:
        yield answer.say
        return
    yield f"{'' if answer.kind == 'sure' else 'Possible answer: '}{cause.title}."
    yield answer.why
    if answer.line:
        where = f"  ({answer.where})" if answer.where else ""
        yield f"Your line: {answer.line}{where}"
    yield f"How to check: {answer.check}"
    yield "What to write:\n" + indent(answer.change, "    ")
    kind, _, name = cause.see.partition(":")
    place = f"/Mistakes?mistake={name}" if kind == "mistake" else f"the {name} page"
    app = f", and {place} of the app" if find_spec("streamlit") else ""
    yield f"Read more: {cause.read}{app}"
    if answer.others:
        titles = [other.title for other in answer.others]
        yield "\n    ".join(["Other possible causes:", *titles])


def main(
    arguments: Sequence[str] | None = None, prog: str = "to-device explain"
) -> int:
    """Returns the exit status: 0, or 1 if no cause is known."""
    parser = Parser(prog, description=HELP)
    parser.add_argument("file", nargs="?", help="file with the error (default: stdin)")
    parser.add_argument("--json", action="store_true", help="JSON (null if unknown)")
    options = parser.parse_args(arguments)
    end_with_pipe()
    if options.file in (None, "-"):
        if sys.stdin.isatty():
            hint = "Paste an error, then press Ctrl+D (Ctrl+Z and Enter on Windows)."
            print(hint, file=sys.stderr)
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    else:
        try:
            text = Path(options.file).read_text("utf-8", "replace")
        except OSError as error:
            parser.error(f"can't read {options.file}: {error.strerror}")
    answer = explain(text)
    if options.json:
        print(json.dumps(answer.to_json(), indent=2))
    else:
        print("\n\n".join(paragraphs(answer)))
    return int(answer.cause is None)
