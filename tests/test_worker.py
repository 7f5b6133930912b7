"""What a worker answers: plain data, also where the work failed."""

import pickle

import pytest

from core import worker
from core.run import run


def test_paths_resolve() -> None:
    """ "core.run:run" is the function of that name in that module."""
    assert worker.resolve("core.run:run") is run


def test_answer_returns_the_value() -> None:
    """A question that is answered has its value, and no message."""
    assert worker.answer("core.ui.words:duration", (80,)) == {
        "status": "finished",
        "value": "1 min 20 s",
        "message": "",
    }


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("core.nothing:here", "ModuleNotFoundError: No module named 'core.nothing'"),
        ("core.words", "ModuleNotFoundError: No module named 'core.words'"),
        ("core.device:resolve", "There is no tpu device on this machine."),
        ("math:sqrt", "TypeError: must be real number, not str"),
    ],
)
def test_failures_are_plain_data(path: str, said: str) -> None:
    """Whatever fails, the answer is a message, never an exception that travels."""
    outcome = worker.answer(path, ("tpu",))
    assert outcome["status"] == "failed"
    assert outcome["value"] is None
    assert outcome["message"].startswith(said)
    assert pickle.loads(pickle.dumps(outcome)) == outcome
