"""Explain an error: what it means, how to check that, and what to write.

A text is split into its parts (report.py), the causes of errors.toml (causes.py) are
weighed by what the parts say (evidence.py), and the answer is filled in with the
report's own names and numbers (details.py, memory.py). Whether a text is about torch
at all is for subject.py to say. All of it needs only Python's standard library.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from textwrap import indent
from typing import Any

from to_device.errors import Parser, end_with_pipe
from to_device.explain import evidence
from to_device.explain.causes import Cause, knowledge
from to_device.explain.details import Details, filled, installed, untried
from to_device.explain.evidence import Candidate
from to_device.explain.report import MOST_CHARACTERS, Report, read
from to_device.explain.subject import BARE, PATH, Subject, is_about

__all__ = ["MOST_CHARACTERS", "Answer", "explain", "knowledge", "of_cause"]

HELP = """Explain an error from a file or a pipe; needs only Python.

    python train.py 2>&1 | to-device explain
    to-device explain error.txt --json

The exit status is 0 if a cause is known, 1 if none is, and 2 without a text.
"""
LONGEST_NAME = 100  # characters
MOST_NAMES = 8  # in a text, of which one may be the right one
MOST_OF_A_NAME = 4_000  # characters in which names are looked for
NEAR_SHARE = 0.25  # of the likeliest cause's probability; such a cause is explained too
MOST_NEAR = 2  # causes that are explained beside the likeliest one, at most
MOST_OTHERS = 3  # other possible causes that an answer names, at most
LEAST_OF_STRANGE = 0.2  # probability of a cause in a text that names no training
LEAST_OF_WEAK = 0.35  # the same in a question that names only a GPU
LEAST_BESIDE = 0.9  # the same beside an error that has nothing to do with devices
# What a cause has to be, in relation to "nothing", where somebody has a problem with
# what may well be training.
OF_NOTHING = 0.5
# Situations in which commands for an ordinary machine are often wrong.
PLATFORMS = (
    "kubernetes",
    "jetson",
    "portable",
    "wsl",
    "tpu_used",
    "amd_gpu",
    "intel_gpu",
)
COMMAND = re.compile(r"\b(?:pip install|apt-get|docker|sudo)\b")
LONG = 40  # lines; an answer to a longer text tells where its error stands


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
    found: str = ""  # in a long text, the line with the message, and its number
    others: tuple[Cause, ...] = ()  # other causes, the likelier ones first
    near: tuple["Answer", ...] = ()  # about other causes that are almost as likely

    def to_json(self) -> dict[str, Any] | None:
        """The answer, ready for json.dumps; None without a cause."""
        if self.cause is None:
            return None
        texts = ("check", "change", "line", "where", "found")
        return {
            "title": self.cause.title,
            "text": self.why,
            "sure": self.kind == "sure",
            **{key: getattr(self, key) for key in texts},
            **{key: getattr(self.cause, key) for key in ("slug", "see", "read")},
            "others": [other.slug for other in self.others],
        }


def explain(text: str) -> Answer:
    """The answer to a message, a traceback, a log, or sentences."""
    report = read(text)
    if not report.text:
        return Answer("unknown", knowledge().none["empty"])
    subject = Subject(report)
    if subject.is_elsewhere:
        return _none("elsewhere")
    if not subject.is_ours:
        return _none("unrelated" if report.messages else "strange")

    def may_be(cause: Cause | None) -> bool:
        return cause is None or subject.may_print(cause)

    def is_sure(cause: Cause) -> bool:
        """Whether the text leaves no doubt that it is about torch."""
        return subject.is_firm or not cause.common

    candidates = [c for c in evidence.by_messages(report) if may_be(c.cause)]
    first = candidates[0] if candidates else None
    if first and first.cause and first.tier < evidence.TEXT:
        is_certain = first.tier == 0 and is_sure(first.cause)
        return _answer(report, first, "sure" if is_certain else "likely")
    fitted = knowledge().fitted
    details = Details(report.text, "")
    # Words about a GPU alone may be about any program that uses one. Its
    # troubles are its own, but a clear question has one answer.
    is_weak = subject.is_weak and (report.messages or details.holds("problem"))
    words = evidence.by_words(() if is_weak else report.sentences, details)
    words = [(cause, share) for cause, share in words if may_be(cause)]
    # What is out of the question leaves its share to the others.
    total = sum(share for _, share in words)
    words = [(cause, share / total) for cause, share in words]
    told, share = next((pair for pair in words if pair[0]), (None, 0.0))
    nothing = next(share for cause, share in words if cause is None)
    if first and first.tier < evidence.TEXT:
        return _beside(report, subject, told, share)
    # Any other message is weak: a warning, a generic one, or words among other
    # text. The person's own words count for more if they are clear.
    if first and told and not told.generic and first.tier == evidence.TEXT:
        # If a text quotes several messages, the person says which one counts.
        first = evidence.preferred(first, told)
    is_bare = len(report.text) <= BARE and first and first.cause
    is_clear = told and not told.generic and share >= fitted["sure"]
    if first and told and is_clear and not is_bare:
        beside = Details(report.text, first.message.text)
        if not first.cause or not evidence.agree(first.cause, told, beside):
            others: tuple[Cause, ...] = (first.cause,) if first.cause else ()
            found = Candidate(told, others, report.rest, evidence.TEXT)
            return _answer(report, found, "likely", others)
    if first and first.cause:
        is_certain = len(candidates) == 1 and is_sure(first.cause)
        if first.tier == evidence.TEXT and not is_bare:
            # What people call an error themselves may be another one.
            is_certain = is_certain and evidence.is_pasted(first)
        adds = told and not told.broad and share >= NEAR_SHARE
        more = [told] if told and adds else []
        return _answer(report, first, "sure" if is_certain else "likely", more)
    last = report.messages[-1] if report.messages else report.rest
    if details.holds("problem") and subject.is_named and not report.messages:
        nothing *= OF_NOTHING
    is_told = share >= max(_least(subject), nothing)
    # A garbled message is looked for in a text that has other words of ours.
    has_words = subject.is_bare or not (subject.is_strange or subject.is_weak)
    may_be_garbled = not is_told and has_words
    if may_be_garbled and (causes := evidence.alike(last.text, details)):
        found = Candidate(causes[0], tuple(causes[1:]), last, evidence.TEXT)
        return _answer(report, found, "likely")
    if told and is_told:
        least = share * fitted["likely"]
        others = tuple(cause for cause, p in words[1:] if cause and p >= least)
        near = tuple(c for c, p in words[1:] if c and p >= NEAR_SHARE * share)
        found = Candidate(told, others, report.rest, evidence.TEXT)
        is_alone = not report.messages and subject.is_firm
        is_certain = share >= fitted["sure"] and is_alone
        return _answer(report, found, "sure" if is_certain else "likely", near)
    if is_about(PATH.sub("", last.text[:MOST_OF_A_NAME])):
        return _none("elsewhere" if subject.is_weak else "unknown")
    return _none("unrelated" if report.messages else "strange")


def _beside(
    report: Report, subject: Subject, told: Cause | None, share: float
) -> Answer:
    """The answer to a text with an error that has nothing to do with devices.

    It may only be what a clear question led to.
    """
    if told and share >= LEAST_BESIDE and not told.generic:
        found = Candidate(told, (), report.rest, evidence.TEXT)
        return _answer(report, found, "likely")
    return _none("beside" if subject.names_device else "unrelated")


def _least(subject: Subject) -> float:
    """The probability from which a person's words alone tell a cause."""
    if subject.is_weak:
        return LEAST_OF_WEAK
    is_far = subject.is_strange and not subject.is_named
    return LEAST_OF_STRANGE if is_far else 0.0


def _none(case: str) -> Answer:
    kind = "unknown" if case in ("unknown", "beside") else "unrelated"
    return Answer(kind, knowledge().none[case])


def _answer(
    report: Report,
    candidate: evidence.Candidate,
    kind: str,
    near: Sequence[Cause] = (),
) -> Answer:
    """The answer with the candidate's cause or, if the report says so, a closer one.

    A cause that isn't certain comes with those that are `near`.
    """
    assert candidate.cause is not None
    message = candidate.message
    details = Details(report.text, message.text, message.own_line)
    cause, replaced = evidence.refined(candidate.cause, details)
    others = [*replaced, *candidate.others]
    if replaced and candidate.tier in (evidence.GENERIC, evidence.WARNING):
        kind = "sure"  # the message and a sign agree
    # Code may show it only because a part of it is missing.
    only_around = cause.around and (replaced or cause.slug in evidence.coded(details))
    if only_around or evidence.contradicted(cause, details):
        kind = "likely"
    if cause.generic and (closer := knowledge().closer[cause.slug]):
        # Nothing in the text tells which of the cause's closer forms it is.
        kind = "likely"
        others += closer
    others = [other for other in dict.fromkeys(others) if other is not cause]
    found = ""
    if report.lines > LONG and message.number:
        line = message.text.partition("\n")[0]
        found = f"line {message.number:,} of {report.lines:,}: {line[:200]}"
    return _filled(
        Answer(
            kind,
            cause=cause,
            line=message.own_line,
            where=message.where,
            found=found,
            others=tuple(others[:MOST_OTHERS]),
            near=_near(near, {cause, *replaced}, details) if kind == "likely" else (),
        ),
        details,
    )


def _near(
    causes: Sequence[Cause], told: set[Cause], details: Details
) -> tuple[Answer, ...]:
    """Short answers about the causes that aren't `told` yet."""
    found = dict.fromkeys(evidence.refined(cause, details)[0] for cause in causes)
    rest = [cause for cause in found if cause not in told][:MOST_NEAR]
    return tuple(_filled(Answer("likely", cause=cause), details) for cause in rest)


def _filled(answer: Answer, details: Details) -> Answer:
    cause = answer.cause
    assert cause is not None
    fields = details.fields() | {"name": _name(cause, answer.line, details)}
    remedy = next((r for r in cause.when if evidence.fits(r, details)), None)
    if remedy and remedy.at and (line := re.search(remedy.at, details.line)):
        fields |= line.groupdict("")
    texts = {
        key: filled(getattr(remedy, key, "") or getattr(cause, key), fields)
        for key in ("why", "check", "change")
    }
    texts["change"], was_tried = untried(texts["change"], details)
    is_open = was_tried or (remedy.around if remedy else cause.open)
    if answer.kind == "sure" and (is_open or _is_elsewhere(texts, details)):
        texts["kind"] = "likely"
    texts["change"] = installed(texts["change"], details)
    return Answer(**{**vars(answer), **texts})


def _name(cause: Cause, line: str, details: Details) -> str:
    """What the cause calls {name}: as it is in the failing line or in the report.

    If no line is known to be the failing one, a name on which the code calls already
    what the remedy calls isn't the one.
    """
    if not cause.name:
        return cause.names
    names = [*_named(cause.name, line)]
    if not names:
        call = re.search(r"\{name\}(?:\.detach\(\))?\.(\w+)\(", cause.change)
        method = call[1] if call else ""
        names = [
            name
            for place in (details.message[:MOST_OF_A_NAME], details.searched)
            for name in islice(_named(cause.name, place), MOST_NAMES)
            if not (method and details.has_called(name, method))
        ]
    return next((name for name in names if len(name) <= LONGEST_NAME), cause.names)


def _named(pattern: str, text: str) -> Iterator[str]:
    for match in re.finditer(pattern, text):
        if name := next(filter(None, match.groups()), ""):
            yield name


def _is_elsewhere(texts: Mapping[str, str], details: Details) -> bool:
    """Whether texts have commands, and the report a platform that they don't name."""
    text = "\n".join(texts.values())
    return COMMAND.search(text) is not None and any(
        details.holds(name) and not knowledge().situations[name].search(text)
        for name in PLATFORMS
    )


def of_cause(cause: Cause) -> Answer:
    """The answer about a cause, without a text."""
    return _filled(Answer("sure", cause=cause), Details("", ""))


def paragraphs(answer: Answer) -> Iterator[str]:
    """The answer as plain text."""
    cause = answer.cause
    if cause is None:
        yield answer.say
        return
    yield f"{'' if answer.kind == 'sure' else 'Possible answer: '}{cause.title}."
    yield answer.why
    if answer.found:
        yield f"Your text, {answer.found}"
    if answer.line:
        where = f"  ({answer.where})" if answer.where else ""
        yield f"Your line: {answer.line}{where}"
    yield f"How to check: {answer.check}"
    yield "What to write:\n" + indent(answer.change, "    ")
    for other in answer.near:
        assert other.cause is not None
        yield f"Or else: {other.cause.title}.\n\n{other.why}"
        yield f"How to check: {other.check}"
        yield "What to write:\n" + indent(other.change, "    ")
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
