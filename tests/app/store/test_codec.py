import json
import math
import subprocess
import zlib
from dataclasses import replace

import pytest

from core.config import PLAIN, RunConfig
from core.measure.environment import Environment
from core.results import Epoch, Fit, LossPoint
from core.store import codec
from core.store.codec import DamagedError
from tests.app import samples

KEPT = [
    *(samples.RACE, samples.CROSSOVER, samples.TIMING, samples.PROFILE, samples.QUEUE),
    *(samples.CLIMBED_ON_CPU, samples.LOADER, samples.MEMORY_ON_CPU),
    *(samples.COPIES_ON_CPU, samples.VECTORIZED, samples.TRANSFERS, samples.ACCURACIES),
    RunConfig(model="cnn", epochs=3, learning_rate=3e-4),
    Fit(step=3, outputs=(-1.5, 0.0, 2.0), noise=None),
    [samples.PROFILE, samples.PROFILE],
    (RunConfig(), b"a checkpoint", "cuda:1", 3, 0.5, None, True),
    {"a": {"tuple": (1, [2])}, "base": {}},
]


@pytest.mark.parametrize("value", KEPT, ids=lambda value: type(value).__name__)
def test_a_stored_value_is_read_back(value):
    assert codec.loads(codec.dumps(value), "It") == value


def test_an_epoch_stored_without_answers_is_read():
    epoch = Epoch(1, 188, 0.9, 0.8, 0.8, 0.5, 24_000.0, wall=(9, 2, 1))
    text = codec.dumps(epoch)
    assert codec.loads(text, "It") == epoch
    earlier = text.replace(', "wall": [9, 2, 1]', "")
    assert earlier != text
    assert codec.loads(earlier, "It") == replace(epoch, wall=())


def test_settings_stored_before_the_fast_ones_are_read_as_those_of_a_plain_run():
    config = RunConfig(model="cnn", batch_size=128)
    stored = json.loads(codec.dumps(config))
    for name in PLAIN:
        del stored["value"]["value"][name]
    assert codec.loads(json.dumps(stored), "It") == config


@pytest.mark.parametrize(
    "value", [subprocess.CompletedProcess([], 0), {1: 2}, {"a"}, object()]
)
def test_what_is_no_plain_data_is_refused(value):
    with pytest.raises(TypeError):
        codec.dumps(value)


@pytest.mark.parametrize(
    "text",
    [
        '{"version": 0, "value": 1}',
        '{"value": 1}',
        "{",
        '{"version": 1, "value": {"class": "gone", "value": {}}}',
        '{"version": 1, "value": {"class": ["run"], "value": {}}}',
        '{"version": 1, "value": {"class": "subprocess:Popen", "value": {}}}',
        '{"version": 1, "value": {"class": "core.config:RunConfig", "value": {}}}',
        '{"version": 1, "value": {"class": "settings", "value": 1}}',
    ],
)
def test_what_can_not_be_read_is_said_in_a_sentence(text):
    with pytest.raises(DamagedError, match="The race"):
        codec.loads(text, "The race")


def test_only_names_of_classes_are_renamed():
    alike = {"class": "race", "text": '{"class": "race"}', "dict": {"class": "race"}}
    value = (samples.RACE, [alike, {"class": samples.RACE}], "race", b"race", math.nan)
    text = codec.dumps(value)
    renamed = codec.retagged(text, "old ".__add__)
    assert renamed.count("old ") == 2
    assert codec.retagged(renamed, lambda name: name.removeprefix("old ")) == text
    for text in map(codec.dumps, KEPT):
        assert codec.retagged(text, str) == text


def test_a_curve_comes_back_to_the_last_digit():
    points = tuple(LossPoint(step, step / 7, 1 / step) for step in range(1, 601))
    parts = [codec.pack(points[:250]), codec.pack(points[250:])]
    assert codec.unpack(parts, "It") == points
    assert codec.unpack([], "It") == ()
    assert sum(map(len, parts)) < 12_000


@pytest.mark.parametrize("part", [b"", b"x", zlib.compress(b"x" * 25)])
def test_a_damaged_curve_is_said_in_a_sentence(part):
    with pytest.raises(DamagedError, match="This run"):
        codec.unpack([part], "This run")


def test_the_class_of_a_union_follows_from_its_fields():
    text = codec.dumps(samples.VECTORIZED)
    environments = codec.loads(text, "").environments
    classes = {type(environment) for environment in environments.values()}
    assert len(classes) == 2
    assert Environment in classes


def test_a_race_from_when_candidates_had_a_machine_each_is_read():
    old = codec.dumps(samples.RACE).replace('"threads": 2', '"threads": 2, "host": "a"')
    assert '"host"' in old
    assert codec.loads(old, "The race") == samples.RACE
