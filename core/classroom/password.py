"""The password that a teacher signs in with; of it only a salted digest is kept."""

import hmac
import os
import secrets
import threading
from dataclasses import dataclass
from hashlib import scrypt
from typing import Self

from core.errors import ExplainedError

VARIABLE = "TEACHER_PASSWORD"
SHORTEST, LONGEST = 8, 200  # characters
_one_at_a_time = threading.Lock()  # 16 MiB and a core for 0.05 s each


@dataclass(frozen=True)
class Password:
    """One that was set; `fits` takes as long for a wrong one as for the right one."""

    salt: bytes
    digest: bytes

    @classmethod
    def from_environment(cls) -> Self | None:
        """The one of TEACHER_PASSWORD; None where there is none.

        ExplainedError where it is so short that somebody may guess it.
        """
        text = os.environ.get(VARIABLE, "")
        if not text:
            return None
        if not SHORTEST <= len(text) <= LONGEST:
            raise ExplainedError(
                f"`{VARIABLE}` has {len(text)} characters, and has to have {SHORTEST} "
                f"to {LONGEST}. Start the app with another."
            )
        salt = secrets.token_bytes(16)
        return cls(salt, _digest(text, salt))

    def fits(self, typed: str) -> bool:
        """Whether somebody has typed it."""
        return hmac.compare_digest(
            _digest(typed[: LONGEST + 1], self.salt), self.digest
        )


def _digest(text: str, salt: bytes) -> bytes:
    with _one_at_a_time:
        return scrypt(text.encode("utf-8", "replace"), salt=salt, n=2**14, r=8, p=1)
