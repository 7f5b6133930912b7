"""core.jobs.sandbox: what happens in a child stays there."""

import os
import signal
import time

import psutil
import pytest

from core.errors import ExplainedError
from core.jobs import sandbox

GIGABYTE = 2**30


def double(number: int) -> int:
    return 2 * number


def fail() -> None:
    raise ValueError("that was wrong")


def end() -> None:
    os._exit(3)


def be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sleep() -> None:
    time.sleep(60)


def fill(size: int) -> int:
    import torch

    return int(torch.ones(size, dtype=torch.uint8).sum())


def own_id() -> int:
    return os.getpid()


def test_a_child_answers():
    """The value comes back from a process that is not this one."""
    assert sandbox.call("tests.jobs.test_sandbox:double", 21) == 42
    assert sandbox.call("tests.jobs.test_sandbox:own_id") != os.getpid()


def test_a_failure_arrives_as_a_sentence():
    """An exception in the child is an ExplainedError with its message here."""
    with pytest.raises(ExplainedError, match="ValueError: that was wrong"):
        sandbox.call("tests.jobs.test_sandbox:fail")


@pytest.mark.parametrize(
    ("how", "said"), [("end", "status 3"), ("be_killed", "SIGKILL")]
)
def test_a_death_is_told(how, said):
    """A child that dies is a sentence, at once, and this process lives on."""
    began = time.monotonic()
    with pytest.raises(sandbox.ChildDiedError, match=said):
        sandbox.call(f"tests.jobs.test_sandbox:{how}")
    assert time.monotonic() - began < 20


def test_a_child_that_hangs_is_ended():
    """After its time a child is killed and nothing of it is left."""
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(sandbox.ChildDiedError, match="1 seconds"):
        sandbox.call("tests.jobs.test_sandbox:sleep", seconds=1)
    left = set(psutil.Process().children(recursive=True)) - before
    assert not [each for each in left if each.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the limit is Linux's")
def test_memory_has_a_limit():
    """What fits is computed; what does not is an out-of-memory sentence."""
    assert (
        sandbox.call("tests.jobs.test_sandbox:fill", 1000, memory_bytes=GIGABYTE)
        == 1000
    )
    with pytest.raises(ExplainedError, match="memory"):
        sandbox.call(
            "tests.jobs.test_sandbox:fill", 2 * GIGABYTE, memory_bytes=GIGABYTE
        )


def test_the_second_child_is_quick():
    """Once the server is up a child takes a small part of what importing torch does."""
    sandbox.warm_up()
    began = time.monotonic()
    sandbox.warm_up()
    assert time.monotonic() - began < 1.5
