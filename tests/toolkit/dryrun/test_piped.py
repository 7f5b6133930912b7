"""The stand-in for a script's standard input."""

import io
import threading
from contextlib import suppress

import pytest

from to_device.dryrun.piped import Piped


@pytest.mark.parametrize("given", [b"", b"one\ntwo\n"])
@pytest.mark.parametrize("read", ["read", "readlines", "readline", "__next__"])
def test_reading_at_the_end_is_noted(given: bytes, read: str) -> None:
    piped = Piped(io.BytesIO(given))
    text = io.TextIOWrapper(io.BufferedReader(piped))
    with suppress(StopIteration):
        getattr(text, read)()
    assert piped.is_missed == (not given)
    assert piped.has_ended == (not given or read in ("read", "readlines"))
    assert text.name == "<stdin>"


def test_a_thread_may_wait_for_a_key() -> None:
    piped = Piped(io.BytesIO())
    thread = threading.Thread(target=io.BufferedReader(piped).readline)
    thread.start()
    thread.join()
    assert not piped.has_ended
