import multiprocessing
from contextlib import contextmanager
from itertools import repeat

import pytest
import torch
from torch.utils.data import get_worker_info

from core.errors import CancelledError
from core.lessons.speed import loader
from core.lessons.speed.loader_result import LoaderCell, LoaderPlan
from core.measure import timing
from core.watch import Watch
from tests.app.drifting_clock import DriftingClock
from tests.figures import figures
from to_device.errors import ExplainedError

pytestmark = pytest.mark.usefixtures("one_thread")
PLAN = LoaderPlan((4, 8), (0, 1), (False,))


class Images:
    """A few numbers in the place of images; with `broken`, workers can't open them."""

    broken = False

    def __init__(self, _split):
        pass

    def __len__(self):
        return 32

    def __getitem__(self, index):
        if self.broken and get_worker_info() is not None:
            raise OSError("no room")
        return torch.full((1, 28, 28), float(index)), index


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Tiny readings; and whatever happens, no worker is left behind."""
    monkeypatch.setattr(loader, "textbook_dataset", Images)
    monkeypatch.setattr(loader, "READING_SAMPLES", 8)
    yield
    assert not multiprocessing.active_children()


def measure(plan=PLAN, seconds=60.0, **options):
    return loader.measure("sprites", "cpu", plan, seconds, **options)


def test_every_cell_is_measured_and_reported():
    reported = []
    lab = measure(watch=Watch(reported.append))
    assert tuple(reported) == lab.cells
    settings = [(cell.batch_size, cell.workers, cell.pinned) for cell in lab.cells]
    assert settings == [(b, w, False) for b in PLAN.batch_sizes for w in PLAN.workers]
    for cell in lab.cells:
        assert len(cell.seconds) == loader.READINGS
        assert cell.start_seconds > 0
        assert cell.samples % cell.batch_size == 0
        assert cell.samples >= loader.READING_SAMPLES
    assert not lab.failures


def test_workers_are_compared_by_alternating_readings():
    assert measure().direct == ()
    lab = measure(LoaderPlan((64,), (0, 1), (False,)))
    assert {cell.workers for cell in lab.direct} == {0, 1}
    for cell in lab.direct:
        assert len(cell.seconds) == loader.READINGS_IN_TURN
        assert cell not in lab.cells


@pytest.mark.parametrize("busy_from", [1, 8, 30, 99])
def test_a_neighbour_in_the_middle_does_not_touch_a_share(monkeypatch, busy_from):
    clock = DriftingClock(monkeypatch, busy_from)

    def take(feed, count, *_):
        next(feed)
        clock.pass_by(count * (2.0 if feed_of[0] is feed else 1.0))

    monkeypatch.setattr(loader, "time", timing.time)
    monkeypatch.setattr(loader, "take", take)
    feed_of: list = []

    @contextmanager
    def batches_of(_):
        feed_of.append(repeat(0))
        yield feed_of[-1]

    monkeypatch.setattr(loader, "batches_of", batches_of)
    cells = [LoaderCell(64, n, False, 0.0, 1024, (1.0,)) for n in (0, 2)]
    alone, two = loader.in_turn(Images(None), cells, torch.device("cpu"), int)
    assert alone.over(two).ratio == pytest.approx(0.5)


def test_cancelling_ends_the_workers_at_once():
    workers = []

    def cancelled():
        workers.append(len(multiprocessing.active_children()))
        return workers[-1] > 0

    with pytest.raises(CancelledError):
        measure(watch=Watch(cancelled=cancelled))
    assert workers[-1] == 1


def test_workers_that_fail_leave_a_sentence(monkeypatch):
    monkeypatch.setattr(Images, "broken", True)
    lab = measure()
    assert {cell.workers for cell in lab.cells} == {0}
    assert len(lab.failures) == 2
    assert figures(lab.failures[0])[:2] == ["1", "4"]  # workers, and the batch's size


def test_without_a_measured_cell_the_learner_sees_why(monkeypatch):
    assert measure(seconds=0.0).cells == ()  # the page asks for more time
    monkeypatch.setattr(Images, "broken", True)
    with pytest.raises(ExplainedError, match="--shm-size=2g"):
        measure(LoaderPlan((4,), (1,), (False,)))
