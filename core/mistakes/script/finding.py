"""What a rule finds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from core.mistakes.script.reading import Script

Sureness = Literal["sure", "likely", "look"]


@dataclass(frozen=True)
class Finding:
    """A line, how sure it is that it is a mistake, and what to do."""

    line: int
    sureness: Sureness
    say: str
    slug: str = ""  # of the mistake in the catalogue


Rule = Callable[[Script], Iterator[Finding]]
