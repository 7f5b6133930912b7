"""What a lesson measures ends where it is cancelled: it asks, and then not again."""

from functools import partial

import pytest

from core import models, state_dict
from core.config import RunConfig
from core.errors import CancelledError
from core.lessons.checkpoints import round_trip
from core.lessons.compare import (
    candidates,
    crossover,
    device_queue,
    race,
    step_profile,
    timing_pitfalls,
)
from core.lessons.evaluate import evaluation
from core.lessons.model import transfers
from core.lessons.speed import copies, memory, vectorize
from core.watch import Watch

CONFIG = RunConfig(task="sprites")
CHECKPOINT = state_dict.save(models.build("ann"))
PAIR = candidates.tell_apart(candidates.cpu(1), candidates.cpu(1))
COPIES = partial(copies.measure, "cpu", size=9, counts=(1,), steps=1, repeats=1)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    ("measure", "before"),
    [
        (partial(round_trip.measure, CHECKPOINT, CONFIG, "cpu", "cpu"), 0),
        (partial(race.race, CONFIG, PAIR, 10, 3), 15),
        (partial(crossover.measure, PAIR, 60, widths=(32,), batch_sizes=(16,)), 0),
        (partial(step_profile.measure, CONFIG, (("memory", "cpu"),)), 0),
        (partial(timing_pitfalls.measure, "cpu"), 0),
        (partial(device_queue.measure, "sim"), 1),
        (partial(evaluation.compare_modes, CHECKPOINT, CONFIG), 4),
        (partial(transfers.measure, "cpu"), 0),
        (COPIES, 0),
        (COPIES, 3),
        (partial(memory.measure, "cpu", size=(8, 16)), 2),
        (partial(vectorize.measure, "cpu", repeats={1: 1}), 0),
    ],
)
def test_a_measurement_is_cancelled(measure, before):
    answers = iter([False] * before + [True])
    with pytest.raises(CancelledError):
        measure(watch=Watch(cancelled=answers.__next__))
    assert next(answers, None) is None
