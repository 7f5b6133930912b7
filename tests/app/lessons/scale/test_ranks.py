import os
import signal
import sys
import time

import pytest
import torch
import torch.distributed as dist

from core.errors import CancelledError
from core.lessons.scale import ranks
from core.watch import Watch
from tests.process import descendants, that_go_on
from to_device.errors import ExplainedError

HERE = "tests.app.lessons.scale.test_ranks"


def who(watch: Watch) -> tuple[int, int, int]:
    """The rank, of how many, and the sum of all ranks."""
    total = torch.tensor([dist.get_rank()])
    dist.all_reduce(total)
    watch.report(f"rank {dist.get_rank()}")
    return dist.get_rank(), dist.get_world_size(), int(total)


def fail_or_wait(failing: int, how: str) -> None:
    """One rank fails in some way, the others wait for it."""
    if dist.get_rank() == failing:
        if how == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("that was wrong")
    dist.all_reduce(torch.zeros(1))


def wait_for_nobody() -> None:
    time.sleep(600)


@pytest.fixture(autouse=True)
def nothing_left():
    """No process that a test has started goes on after it."""
    from core.jobs import child_process

    child_process.warm_up()
    before = descendants()
    yield
    assert list(that_go_on(descendants() - before)) == []


def test_each_rank_knows_who_it_is_and_they_reach_each_other():
    reports = []
    watch = Watch(report=reports.append)
    values = ranks.run(f"{HERE}:who", 3, backend="gloo", watch=watch, reports=str)
    assert values == ((0, 3, 3), (1, 3, 3), (2, 3, 3))
    assert sorted(reports) == ["rank 0", "rank 1", "rank 2"]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("dies", r"\b1 of 2\b.*SIGKILL"),
        ("fails", r"\b1 of 2\b.*that was wrong"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_rank_that_ends_ends_all_in_a_sentence(how, message):
    with pytest.raises(ExplainedError, match=message):
        ranks.run(f"{HERE}:fail_or_wait", 2, 1, how, backend="gloo")


def test_ranks_end_when_the_job_is_cancelled():
    answers = iter([False] * 5 + [True] * 100)
    watch = Watch(cancelled=answers.__next__)
    with pytest.raises(CancelledError):
        ranks.run(f"{HERE}:wait_for_nobody", 2, backend="gloo", watch=watch)


@pytest.mark.parametrize("gpus", range(6))
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("backend", ["", "gloo"])
@pytest.mark.parametrize("has_nccl", [True, False])
def test_ranks_take_a_gpu_each_unless_they_are_told_otherwise(
    gpus, count, backend, has_nccl, monkeypatch
):
    met, mine = [], []
    monkeypatch.setattr(dist, "is_nccl_available", lambda: has_nccl)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "set_device", mine.append)
    monkeypatch.setattr(dist, "init_process_group", lambda *how, **_: met.append(how))
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, str(count))
    for name in ("RANK", "LOCAL_RANK"):
        monkeypatch.setenv(name, str(count - 1))
    ranks.meet(backend)
    by_nccl = gpus >= count and has_nccl and not backend
    assert met == [("nccl" if by_nccl else "gloo", "env://")]
    assert mine == [count - 1] * by_nccl
