"""What a training script does that is a mistake, line by line, without running it."""

from dataclasses import dataclass

from core.jobs import sandbox
from core.script.rules import RULES
from core.script.syntax import Finding, Script, UnreadableError

SECONDS = 8.0  # 200 KB of training code take two; what is made to be slow is ended
MEMORY_BYTES = 1 << 30


@dataclass(frozen=True)
class Checked:
    """What was found in a script, or why it can't be read."""

    findings: tuple[Finding, ...] = ()
    unreadable: str = ""


def check(text: str) -> Checked:
    """All that the rules find in a script, in the order of its lines."""
    try:
        script = Script(text)
        found = {finding for rule in RULES for finding in rule(script)}
    except UnreadableError as error:
        return Checked(unreadable=str(error))
    except RecursionError:
        return Checked(unreadable="Something in it is nested too deeply.")
    return Checked(findings=tuple(sorted(found, key=_order)))


def _order(finding: Finding) -> tuple[int, int, str]:
    """By line; in a line, what is sure comes first."""
    rank = ("sure", "likely", "look").index(finding.sureness)
    return finding.line, rank, finding.say


def check_apart(text: str) -> Checked:
    """Check in a process of its own, for the lab worker: a stranger wrote the text."""
    checked: Checked = sandbox.call(
        "core.script.check:check",
        text,
        seconds=SECONDS,
        memory_bytes=MEMORY_BYTES,
        hostile=True,
    )
    return checked
