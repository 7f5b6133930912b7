"""A report, split into messages, lines of code, and the person's own sentences.

A report is what somebody pastes: a traceback, the log of a job, a notebook's output,
sentences, or all of these. Nothing here knows what an error means.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PureWindowsPath
from typing import Any

# The text is a stranger's, and the web server waits while it is read. So everything
# that is searched has a limit, and no pattern, here or in errors.toml, takes a time
# that grows faster than the text. Possessive quantifiers, as in `\w++`, never try a
# shorter match.
MOST_CHARACTERS = 1_000_000  # only the end of a longer text is read
MOST_LINES = 600  # of a longer text, only the lines around those that tell of an error
MOST_OF_A_LINE = 2_000  # characters
MOST_OF_A_START = 500  # characters of a line that can tell a frame or an exception
# What a program tells a terminal: colors, and movements of the cursor. Other characters
# that control one would do so again where an answer quotes a line.
TERMINAL = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
CONTROLS = {i: " " for i in (*range(32), *range(127, 160)) if chr(i) not in "\t\n\r"}
MOST_MESSAGES = 24  # different ones: the first half and the last half
MOST_SENTENCES = 8  # of the person's own: the first half and the last half

FRAME = re.compile(
    r'^(?:File\s++"?(?P<file>[^",]+)"?,? line (?P<line>\d+)'
    # A sentence has more words before " in f()" than a file has.
    r"|(?=.*\)$)(?:\S{1,300} ){1,5}in (?:[\w.]++|<[^<>]*+>)\()"
)
# A package's compiled file in a message, and a package with its version in a list.
COMPILED = re.compile(
    r"site-packages[/\\](\w{1,60})(?:[/\\][\w.-]{1,60}){1,6}\.(?:so|pyd)\b"
)
LISTED_PACKAGE = re.compile(
    r"^[ \t*-]{0,8}([A-Za-z][\w.-]{1,40})(?:[ \t]{1,40}|==?|: ?)"
    r"v?\d{1,5}\.\d[\w.+]{0,30}$",
    re.MULTILINE,
)
# The line of code that failed, in a notebook's traceback.
ARROW = re.compile(r"^(?:-++>|❱|→)\s*+\d++\s*+(?P<code>.*)")
# What ranks, logs, pytest, and boxes around a traceback put before a line.
PREFIX = re.compile(
    r"^(?:\[rank\d+\]: ?|\[default\d+\]: ?|\(\w+ pid=\d+[^)]{0,80}\) ?"
    r"|\d{1,3}: (?=Traceback|\s|\w+Error)"
    # journald, Docker Compose, and the time of a log
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,60} \S{1,60}\[\d+\]: ?"
    r"|[\w.-]{1,60}-\d{1,3} {1,20}\| ?"
    r"|\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[\d.,]{0,8}(?:Z|[+-]\d\d:?\d\d)?\]?(?= |:) ?"
    r"|(?:\[[\d:.]+\]: )?[EWI]\d{4} [\d:.]+ \d+ \S+\] |[│|]|E   |> )+"
)
LIBRARY = re.compile(
    r"site-packages|dist-packages|(?:^|[/\\])(?:torch|to_device[/\\]sim)[/\\]"
    r"|lib[/\\](?:python|multiprocessing)|<frozen|[/\\](?:bin|Scripts)[/\\]"
)
NAMED = re.compile(r"^.{0,200}?\b[A-Z]\w*(?:Error|Exception|Warning)\s*+[:：]")
WARNING = re.compile(r"^.{0,200}?\b(?:\w*Warning\s*+[:：]|WARNING\b)")
ASSERTION = re.compile("Assertion `|device-side assertion `")
# What a compiler says of a line of C++ or CUDA code.
COMPILER = re.compile(
    r"^.{0,200}?(?::\d{1,6}|\(\d{1,6}\)) ?: (?:fatal )?error(?: C\d{4})?: "
    r"|^fatal error(?: C\d{4})?: |^nvcc fatal "
)
# How somebody points at the line that fails where there is no traceback.
POINTED = re.compile(
    r"(?i)(?:<[-=]{1,5}|←).{0,40}(?:\b(?:errors?|fails?|crash\w*|here|this line)\b"
    r"|报错)|(?:#|//) ?(?:the )?(?:(?:errors?|fails?|crash\w*|raises)\b ?(?:here|!|$)"
    r"|this line\b|here$|报错|出错)"
)
LAST_LINE = re.compile(
    r"(?i)\b(?:in|at|on|from) (?:the|its|my) las[te] line\b(?! of)|最后一行"
)
# What a program says that doesn't know its own options, as argparse does.
USAGE = re.compile(
    r"(?i)\berror: (?:unrecognized arguments|argument \S+: "
    r"|the following arguments are)"
    r"|no such option: "
)
# What a launcher, a scheduler, or a loader says when one of its processes has failed.
PASSED_ON = re.compile(
    r"ChildFailedError|Process(?:Exited|Raised)Exception|CalledProcessError"
    r"|exited unexpectedly|failed \(exitcode|returned non-zero exit status"
    r"|Process finished with exit code|[Ee]xited with exit code"
    r"|Engine core initialization failed|EngineDeadError"
    r"|[Cc]aught \w+ in (?:replica|DataLoader|pin memory)|srun: error|slurmstepd: error"
    r"|Sending process \d+ closing signal|RayTaskError"
)
HANDLED = re.compile("During handling of the above exception")
# A line of a notebook's traceback: the file of a frame, or code with its number.
SIGNATURE = re.compile(r"(?P<start>^\S{1,300} in [\w.<>]{1,80})\(.*\)$")
# A line that begins with its number, and one of a table that does.
COUNT = re.compile(r"^\s*+(?:-++> ?)?(\d{1,6})\s")
COLUMN = re.compile(r"^\s*+[│|]\s*+\d++ ")
NUMBERED = re.compile(r"^(?:-++>|❱|→)?\s*+\d++(?:\s|$)")
# Lines of a long log that are kept, along with those around them.
TELLING = re.compile(
    r'Error|Exception|Traceback|Warning|^\s*File "|Assertion|[Kk]illed|assert\b'
    r"|(?i:\berror\b|\bfailed|\bcuda\b|out of memory|segmentation|nvidia|\bnccl\b)"
)
AROUND = 3  # lines before and after a telling one
# Hundreds of patterns have `\w*` or `\d+` before something else that letters or digits
# match, which takes a time that grows with the square of a word's length.
LONG_WORD = re.compile(r"(?<!\w)\w{81,}+")
# What torch adds to the message of many errors: it says nothing about the cause.
BOILERPLATE = re.compile(
    r"^(?:CUDA|HIP) kernel errors might be async|^For debugging consider passing"
    r"|^Compile with `?TORCH_USE|^Search for `cuda|^Device-side assertion tracking"
    r"|^Traceback \(most recent|^Original Traceback|^The above exception was"
    r"|^During handling of|^\(Triggered internally|^See https?://"
)
# What sentences have, and lines of code, of settings, and of logs mostly don't.
PLAIN_WORD = re.compile(
    r"\b(?:the|a|an|i|my|is|are|was|it|to|in|on|of|and|but|when|with|how|why|what|if"
    r"|not|no|does|do|can|this|that|for|me|only|after|there|has|have|as|from|at|so"
    r"|still|which|where|since|while|using|use)\b",
    re.IGNORECASE,
)
CODE = re.compile(
    r"^(?:[\w.\[\]]{1,60}[, ]{1,2}){0,2}[\w.\[\]]{1,60} ?[-+*]?= ?\S"
    r"|[{};]\s*$|^(?:import|from|def|class) |^[$>@]|^r?(?:\"{3}|'{3})"
    # Python's statements: a sentence has more words before its colon
    r"|^(?:async )?for \w[\w, ()]{0,60} in \S[^?!]{0,200}:$"
    r"|^(?:el)?if [^?]{0,200}(?:[=<>]=|!=|\bis (?:not )?None|[\w)\]]\(|\w\.\w|[<>])"
    r"[^?]{0,200}:$"
    r"|^(?:async )?with \w[\w.]{0,60}\([^?]{0,200}:$"
    r"|^(?:while (?:True|\w+)|try|else|finally"
    r"|except(?: [\w.(), ]{1,80})?(?: as \w+)?):$"
    r"|^(?:return|raise|yield|assert|del)(?: [\w.][\w.\[\]()]*)?(?:,|$|[=(])"
)
COMMENT = re.compile(r"^# ?[^\W\d]")
# A field of a form, as in "Using GPU in script?: yes", which asks nothing.
FIELD = re.compile(r"^[-*\s]{0,4}[^.?!:]{2,60}\?[*\s]{0,4}:")
# What only says that something follows: "The result on the CPU:".
CAPTION = re.compile(
    r"^(?:(?:the|my|this|some|full|complete|here (?:is|are)) ){0,3}"
    r"(?:results?|outputs?|code|scripts?|logs?|times?|timings?)"
    r"(?: (?:of|on|in|for|from|with|using|by)\b[^.?!]{0,60})?:$",
    re.IGNORECASE,
)
# What is polite and says nothing: "Hi, thanks for your work!", "Any ideas?"
POLITE = re.compile(
    r"(?:(?:hi|hello|hey|dear|thanks?|thank you|thx|cheers|(?:best |kind )?regards"
    r"|sorry|great (?:work|job)|nice work|please help"
    r"|any (?:ideas?|help|hints?|advice|suggestions?)"
    r"|(?:can|could) (?:you|any(?:one|body)|some(?:one|body))(?: or \w+ else)?"
    r"(?: please)?(?: can)? (?:help|answer)"
    r"|(?:that|it)(?:['’]s| is) (?:amazing|great|awesome|weird|strange))\b"
    r"(?:[ ,]{1,2}[\w'’/-]{1,20}){0,5}[ .,!?:;)🙏😀🙂]*)",
    re.IGNORECASE,
)
# What asks for an answer and names nothing: "How can I solve this problem?"
PLEA = re.compile(
    r"(?:(?:so|and|but|please) )?how (?:can|could|do|should|to) (?:i |we )?"
    r"(?:solve|fix|resolve|handle) (?:it|this|that)"
    r"(?: (?:problem|issue|error|bug))?[ .?!]*",
    re.IGNORECASE,
)
# A line that a form or torch's collect_env asks for, and a box to tick.
COLLECTED = re.compile(
    r"^[-*•\s]{0,4}(?:\[[ xX]\] |(?:is|has) [\w ]{3,30}: ?(?:yes|no|true|false|n/a)$"
    r"|(?:(?:gcc|clang|cmake|libc|python|cuda(?:/cudnn)?|cudnn|pytorch(?: ?/ ?\w+)?"
    r"|torch\w*|hip|miopen|nvidia driver)(?: (?:runtime|lightning))? versions?"
    r"|os|python platform|gpu models(?: and configuration)?|versions of relevant \w+"
    r"|how you installed[^:\n]{0,40}|build command[^:\n]{0,40}|any other relevant \w+"
    r"|(?:cuda|rocm) used to build \w+)(?: \([^)]{1,30}\))?:(?: |$))",
    re.IGNORECASE,
)
# A tensor that was printed, perhaps with its name.
PRINTED = re.compile(r"^[\w ]{0,40}[:=]? ?tensor\(\[")
# So ends a call, and also a sentence about one, as in "why is it slow in f()".
CALLED = re.compile(r"(?<![.?!])\)\s*$")
CALL = re.compile(r"^[^\s()]{0,80}\(")
LEAST_OF_PROSE = 4  # plain words of a sentence that ends like a call
END_OF_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z\"'`(])|(?<=[。？！])")
CHINESE = re.compile(r"[\u4e00-\u9fff]{2}")
# What somebody says that it isn't, as in "this is not a CUDA out of memory."
DENIED = re.compile(
    r"\b(?:it|this|that)(?:['’]s not| is not| was not| isn['’]t| wasn['’]t)"
    r" (?:a|an|the|any|due to) (?:[\w-]{1,30}+ ?+){1,5}+(?=[.,;)]|$)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class Message:
    """What one exception, warning, assertion, or launcher says.

    `kind` is "error", "warning", "assertion", "echo" (a program tells that another one
    failed), or "text" (the lines that belong to no message).
    """

    text: str
    kind: str = "text"
    number: int = 0  # of its first line in the report, from 1
    handled: bool = False  # another exception followed "during handling" of this one
    own_line: str = ""  # the learner's own line that is last in its traceback
    where: str = ""  # the file and the number of this line
    innermost: str = ""  # the last line of code in its traceback


@dataclass(frozen=True)
class Report:
    """The parts of a report. Messages are in the order of the text."""

    text: str  # all lines that were read
    lines: int  # of the whole report
    messages: tuple[Message, ...]
    rest: Message  # the lines outside of frames, those of messages included
    head: Message  # those of them before the first message
    sentences: tuple[str, ...]  # what the person says


def read(text: str) -> Report:
    """Split a report of any length."""
    text = TERMINAL.sub("", text[-MOST_CHARACTERS:]).translate(CONTROLS).strip()
    text = shortened(text)
    lines = text.splitlines()
    numbered = [(i, line[:MOST_OF_A_LINE]) for i, line in enumerate(lines, 1)]
    if len(numbered) > MOST_LINES:
        numbered = _telling(numbered)
    outside, codes = _without_frames(numbered)
    pointed = ("" if codes else _pointed(outside), "", "")
    starts = [i for i, (_, line) in enumerate(outside) if _starts(line)]
    ends = [*starts[1:], len(outside)]
    messages = []
    for start, end in zip(starts, ends, strict=False):
        number, first = outside[start]
        body = "\n".join(line for _, line in outside[start:end])
        own, innermost, where = codes.get(number, pointed)
        message = Message(
            body,
            _kind(first),
            number,
            bool(HANDLED.search(body)),
            own,
            where,
            innermost,
        )
        messages.append(message)
    own, innermost, where = codes.get(0, pointed)
    whole = "\n".join(line for _, line in outside)
    return Report(
        text="\n".join(line for _, line in numbered),
        lines=len(lines),
        messages=_few([*_different(messages)], MOST_MESSAGES),
        rest=Message(whole, own_line=own, where=where, innermost=innermost),
        head=Message("\n".join(line for _, line in outside[: (starts or [0])[0]])),
        sentences=_few([*_sentences(outside)], MOST_SENTENCES),
    )


def shortened(text: str) -> str:
    """The text without the middle of words that are longer than anybody's."""
    return LONG_WORD.sub(lambda word: f"{word[0][:60]}…{word[0][-20:]}", text)


def _telling(numbered: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines around those that tell of an error: the first and the last ones."""
    keep: dict[int, None] = {}
    for i, line in numbered:
        if TELLING.search(line):
            keep.update(dict.fromkeys(range(i - AROUND, i + AROUND + 1)))
    keep.update(dict.fromkeys(range(len(numbered) - AROUND, len(numbered) + 1)))
    kept = [at for at in keep if 1 <= at <= len(numbered)]
    return [numbered[at - 1] for at in sorted({*_few(kept, MOST_LINES)})]


def _few(items: list[Any], most: int) -> tuple[Any, ...]:
    """The first half and the last half of what is allowed."""
    if len(items) <= most:
        return tuple(items)
    return (*items[: most // 2], *items[-(most // 2) :])


def _different(messages: list[Message]) -> Iterator[Message]:
    """Each message once: ranks, workers, and steps repeat them.

    A title often repeats the error too. Then the one with a line of code counts.
    """
    with_code = {_first_line(message) for message in messages if message.own_line}
    seen = set()
    for message in messages:
        is_title = not message.own_line and _first_line(message) in with_code
        if message.text not in seen and not is_title:
            seen.add(message.text)
            yield message


def _first_line(message: Message) -> str:
    return message.text.partition("\n")[0].strip()


def _starts(line: str) -> bool:
    return bool(
        is_named(line)
        or PASSED_ON.search(line)
        or ASSERTION.search(line)
        or USAGE.search(line)
        or COMPILER.match(line[:MOST_OF_A_START])
    )


def _kind(line: str) -> str:
    if USAGE.search(line):
        return "error"
    if PASSED_ON.search(line):
        return "echo"
    if ASSERTION.search(line):
        return "assertion"
    return "warning" if WARNING.match(line[:MOST_OF_A_START]) else "error"


def is_named(line: str) -> bool:
    """Whether the line begins a message: it has an exception's name and a colon."""
    return NAMED.match(line[:MOST_OF_A_START]) is not None


def other_packages(text: str) -> list[tuple[int, int]]:
    """Where a list names packages that aren't the one whose compiled file failed.

    Nowhere if the text names no such file.
    """
    at_fault = COMPILED.search(text)
    if at_fault is None:
        return []
    listed = LISTED_PACKAGE.finditer(text)
    return [m.span(1) for m in listed if m[1].replace("-", "_") != at_fault[1]]


def without_libraries(text: str) -> str:
    """The text without the code that a traceback quotes from libraries.

    What stands there, such as `retain_graph` in the signature of torch's `backward`, is
    in every traceback of this kind, and says nothing of the person's own program. The
    files and names of the frames stay.
    """
    kept = []
    is_library = is_first = False
    for raw in text.splitlines():
        line = PREFIX.sub("", raw).strip().strip("│| ").strip()
        start = line[:MOST_OF_A_START].rstrip()
        if FRAME.match(start) and not is_named(line):
            is_library, is_first = LIBRARY.search(start) is not None, True
            notebook = SIGNATURE.match(start) if is_library else None
            kept.append(notebook["start"] if notebook else raw)
            continue
        # The line of code below a file, and the numbered ones of a notebook.
        is_code = (is_first and not is_named(line)) or NUMBERED.match(line) is not None
        is_first = False
        if not (is_library and is_code):
            kept.append(raw)
            is_library = is_library and not line
    return "\n".join(kept)


def without_code(text: str) -> str:
    """The text without lines of code and messages, as far as they look like these."""
    lines = text.splitlines()
    code = _code([line.strip() for line in lines])
    kept = (i for i, line in enumerate(lines) if not (code[i] or _starts(line)))
    return "\n".join(lines[i] for i in kept)


def _code(lines: Sequence[str]) -> list[bool]:
    """Which lines are code, or comments beside it. A title may begin like a comment."""
    code = [_is_code(line) for line in lines]
    return [
        is_code
        or (i > 0 and COMMENT.match(lines[i]) is not None and any(code[i - 1 : i + 2]))
        for i, is_code in enumerate(code)
    ]


def _is_code(line: str) -> bool:
    """Whether a line looks like one of code or of settings, and not like a sentence."""
    if CODE.search(line) or PRINTED.search(line):
        return True
    is_prose = len(PLAIN_WORD.findall(line)) >= LEAST_OF_PROSE and not CALL.match(line)
    return bool(CALLED.search(line)) and not is_prose


def _counted(lines: Sequence[str]) -> list[bool]:
    """Which lines are numbered: lines of code in a notebook's traceback, or of a table.

    A title may begin with a number, too, as in "2 GPUs are slower".
    """
    numbers = [int(found[1]) if (found := COUNT.match(line)) else -9 for line in lines]
    follows = [number == before + 1 for before, number in pairwise(numbers)]
    neighbors = zip([False, *follows], [*follows, False], strict=True)
    return [
        any(pair) or COLUMN.match(line) is not None
        for line, pair in zip(lines, neighbors, strict=False)
    ]


def _without_frames(
    numbered: list[tuple[int, str]],
) -> tuple[list[tuple[int, str]], dict[int, tuple[str, str, str]]]:
    """Return the lines outside of stack frames, and the code of each traceback.

    The code is that of the message at a line's number: the learner's line, the
    innermost line, and the file and number of the learner's line. At 0, it is the last
    code of the whole text.
    """
    outside, codes = [], {}
    own, code, where, skip, file, number = "", "", "", False, "", ""
    is_library = False
    counted = _counted([raw for _, raw in numbered])
    for (at, raw), is_counted in zip(numbered, counted, strict=True):
        line = PREFIX.sub("", raw).strip().strip("│| ").strip()
        start, named = line[:MOST_OF_A_START].rstrip(), is_named(line)
        if line.startswith("Traceback (most recent call last)"):
            own = code = where = ""
        if not named and (frame := FRAME.match(start)):
            file, skip = frame["file"] or start, True
            number, is_library = frame["line"], bool(LIBRARY.search(file))
        elif arrow := ARROW.match(line):
            code = arrow["code"]
            if not is_library:
                own = code
        elif skip and not named and not re.match(r"[\w.]*(?:Error|Exception)$", line):
            code = line
            if not is_library:
                own = code
                where = f"{PureWindowsPath(file).name}, line {number}" if number else ""
            skip = False
        elif set(line) - set("^~ -") and not is_counted:
            outside.append((at, line))
            skip = False
            if named and code:
                codes[at] = codes[0] = (own, code, where)
        if code:
            codes[0] = (own or codes.get(0, ("",))[0], code, where)
    return outside, codes


def _pointed(outside: list[tuple[int, str]]) -> str:
    """The line of code that the person says is the failing one, if any."""
    code = [line for _, line in outside if _is_code(line) and not _starts(line)]
    if marked := next((line for line in code if POINTED.search(line)), ""):
        return marked
    says_last = any(LAST_LINE.search(line) for _, line in outside)
    return code[-1] if says_last and code else ""


def _sentences(outside: list[tuple[int, str]]) -> Iterator[str]:
    """What looks like a person's sentences, and not like a program's output."""
    text = []
    code = _code([line for _, line in outside])
    for i, (_, line) in enumerate(outside):
        asides = (FIELD, CAPTION, COLLECTED)
        is_aside = BOILERPLATE.search(line) or any(a.match(line) for a in asides)
        is_output = _starts(line) or code[i] or is_aside
        # The first line may be a title of a few words.
        least = 2 if i else 0
        is_plain = len(PLAIN_WORD.findall(line)) >= least or CHINESE.search(line)
        if not is_output and is_plain:
            text.append(line)
    if not text and len(outside) <= 2:  # a title, perhaps with a setting in it
        text = [line for _, line in outside if not _starts(line)]
    for line in text:
        for sentence in END_OF_SENTENCE.split(line):
            told = DENIED.sub("", sentence)
            if told and not any(p.fullmatch(told.strip()) for p in (POLITE, PLEA)):
                yield told
