"""Whose turn it is, without a cluster."""

from core.jobs.job import Job
from core.jobs.queue import Queue


def queue(*lanes: str) -> Queue:
    """One job after the other, named by its place: "0", "1", ..."""
    waiting = Queue()
    for number, lane in enumerate(lanes):
        waiting.add(Job(str(number), "core.training:run", (), lane))
    return waiting


def hand_out(waiting: Queue, **capacity: int) -> list[str]:
    """The ids of the jobs that workers get, until none is free or none waits."""
    handed_out = []
    while (job := waiting.next(capacity)) is not None:
        waiting.take(job)
        handed_out.append(job.id)
    return handed_out


def test_first_come_first_served():
    """One worker gets one job after the other, each when the one before has ended."""
    waiting = queue("train", "train", "train")
    assert hand_out(waiting, train=1) == ["0"]
    assert hand_out(waiting, train=1) == []
    waiting.remove("0")
    assert hand_out(waiting, train=1) == ["1"]
    assert [waiting.place(each) for each in "012"] == [0, 0, 1]


def test_lanes_do_not_wait_for_each_other():
    """A place counts within a lane, and a lane that is full holds up no other."""
    waiting = queue("train", "lab", "train", "lab")
    assert [waiting.place(each) for each in "0123"] == [1, 1, 2, 2]
    assert hand_out(waiting, train=1, lab=2) == ["0", "1", "3"]
    assert len(waiting) == 1


def test_more_workers_take_more_jobs():
    """With two GPUs two jobs run at once."""
    assert hand_out(queue("train", "train", "train"), train=2) == ["0", "1"]


def test_a_worker_that_is_starting_gets_one_job():
    """Nobody serves the lane just now, but Dask keeps a job for whoever comes."""
    assert hand_out(queue("train", "train")) == ["0"]


def test_who_leaves_lets_the_others_up():
    """A job that is cancelled while it waits makes room; an unknown one is nothing."""
    waiting = queue("train", "train")
    waiting.remove("0")
    waiting.remove("nobody")
    assert waiting.place("0") == 0
    assert waiting.place("1") == 1
