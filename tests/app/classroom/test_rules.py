from dataclasses import replace

import pytest

from core.classroom.rules import Rules
from core.config import RunConfig
from core.lessons.compare.candidates import Candidate, cpu
from core.lessons.speed.climb_result import Climb
from core.store import codec
from to_device.errors import ExplainedError

RUN, LAB = "core.training:run", "core.lessons.compare.race:race"
ANN, CNN = RunConfig(device="cpu"), RunConfig.with_recipe(model="cnn", device="cpu")
GPU = Candidate("cuda", "CUDA", "A card", 1)
RACE = (ANN, (cpu(1), cpu(2)), 10, 5)
CLIMB = Climb("sprites", "ann", "cpu", 3, 2048)
LIMITED = Rules(epochs=5, models=("ann",), devices=("cpu",))
FIXED = Rules(fixed={"batch_size": "64", "epochs": "5", "augment": "false"})


@pytest.mark.parametrize(
    ("rules", "arguments"),
    [
        (Rules(), (CNN,)),
        (LIMITED, (ANN,)),
        (LIMITED, RACE),
        (LIMITED, (replace(ANN, device="auto", epochs=1), (cpu(1), cpu(1)), 10, 5)),
        (LIMITED, (CLIMB, ())),
        (LIMITED, ("cpu",)),
        (LIMITED, (replace(CNN, model="ann", epochs=10), "a half that is resumed")),
        (FIXED, (ANN,)),
        (FIXED, (replace(ANN, epochs=1), (cpu(1), GPU), 10, 5)),
        (Rules(fixed={"device": "cpu"}), (ANN, (cpu(1), GPU), 10, 5)),
        (FIXED, (CLIMB, ())),
    ],
)
def test_a_job_within_the_rules_is_allowed(rules, arguments):
    rules.check(RUN if len(arguments) == 1 else LAB, arguments)


@pytest.mark.parametrize(
    ("rules", "arguments", "sentence"),
    [
        (LIMITED, (replace(ANN, epochs=6),), r"\b5\b.+\b6\b"),
        (LIMITED, (replace(CNN, epochs=5),), r"\bANN\b.+\bCNN\b"),
        (LIMITED, (replace(CNN, epochs=1), (cpu(1), cpu(2)), 10, 5), "CNN"),
        (LIMITED, (replace(ANN, device="auto"),), r"\bCPU\b.+\bauto\b"),
        (LIMITED, (ANN, (cpu(1), GPU), 10, 5), r"\bCPU\b.+\bCUDA\b"),
        (LIMITED, (replace(ANN, device="sim"),), "SIM"),
        (LIMITED, ("sim", 1000), "SIM"),
        (LIMITED, (replace(CLIMB, device="cuda"), ()), "CUDA"),
        (LIMITED, (replace(CLIMB, epochs=6), ()), r"\b5\b.+\b6\b"),
        (LIMITED, ("cuda",), "CUDA"),
        (LIMITED, ((replace(ANN, device="mps"), 1)), "MPS"),
        (
            FIXED,
            (replace(ANN, batch_size=32),),
            r"\bbatch size\b.+\b64\b.+\b32\b",
        ),
        (
            FIXED,
            (replace(ANN, augment=True),),
            r"\baugment\b.+\boff\b.+\bon\b",
        ),
        (
            FIXED,
            (replace(ANN, batch_size=32), (cpu(1), GPU), 10, 5),
            r"\b64\b.+\b32\b",
        ),
        (Rules(fixed={"device": "cpu"}), (replace(CLIMB, device="cuda"), ()), "CPU"),
    ],
)
def test_a_job_that_breaks_a_rule_is_refused_in_a_sentence(rules, arguments, sentence):
    with pytest.raises(ExplainedError, match=sentence):
        rules.check(RUN if len(arguments) == 1 else LAB, arguments)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"fixed": {"epochs": "many"}}, "Epochs"),
        ({"fixed": {"task": "regression", "model": "cnn"}}, "Model"),
        ({"fixed": {"epochs": "9"}, "epochs": 5}, r"\b5\b.+\b9\b"),
    ],
)
def test_invalid_rules_are_refused_when_they_are_made(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        Rules(**fields)


@pytest.mark.parametrize("rules", [Rules(), LIMITED, FIXED, Rules(hidden=("steps",))])
def test_rules_are_stored_and_read_back(rules):
    assert codec.loads(codec.dumps(rules), "This class") == rules
