import re
from pathlib import Path

import pytest
import torch

from core import devices
from core.jobs import child_process
from core.lessons.device import idioms
from to_device.errors import ExplainedError

ROOT = Path(__file__).parents[4]
# What learners read, and what they take home
SHOWN = [
    *(ROOT / "content").glob("*.toml"),
    *(ROOT / "core").rglob("*.toml"),
    *(ROOT / "core").rglob("*.html"),
    *(ROOT / "core/lessons").rglob("*.py"),
    *(ROOT / "core/runs").glob("export_*.py"),
]
CLASSIC = re.compile(r'"cuda(:0)?" if torch\.cuda\.is_available\(\)')
OTHERS = {  # what one meets in other people's code, and how often
    "idioms.py": 1,
    "questions.toml": 1,
    "exercises.toml": 2,  # for an old torch, and where the judge expects the tensors
}


def test_one_line_chooses_the_device_everywhere() -> None:
    texts = {path: path.read_text("utf-8") for path in SHOWN}
    found = {path.name: len(CLASSIC.findall(text)) for path, text in texts.items()}
    assert {name: count for name, count in found.items() if count} == OTHERS
    text = "".join(texts.values())
    assert text.count("current_accelerator(check_available=True)") > 20
    # Unchecked, the call is only shown as a trap: once as code and once in a sentence.
    assert text.count("current_accelerator()") == 2


@pytest.mark.parametrize(
    ("cuda", "mps", "accelerator", "expected"),
    [
        (False, False, None, ("cpu", "cpu", "cpu")),
        (True, False, "cuda", ("cuda", "cuda", "cuda")),
        (False, True, "mps", ("cpu", "mps", "mps")),
        (False, False, "xpu", ("cpu", "cpu", "xpu")),
    ],
)
def test_the_idioms_miss_what_the_page_says(
    monkeypatch: pytest.MonkeyPatch,
    cuda: bool,
    mps: bool,
    accelerator: str | None,
    expected: tuple[str, ...],
) -> None:
    kind = torch.device(accelerator) if accelerator else None
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "RTX")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: kind is not None)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda **_: kind)
    answers = idioms.answers()
    assert tuple(answers.values())[:3] == expected
    assert answers["printed"].startswith("Training on GPU: RTX" if cuda else "Training")


def test_only_torch_accelerator_finds_the_simulated_one() -> None:
    if devices.accelerator() is not None:
        with pytest.raises(ExplainedError):
            child_process.call("core.lessons.device.idioms:simulated_answers")
        return
    answers = child_process.call("core.lessons.device.idioms:simulated_answers")
    assert answers["any_accelerator"] == "sim"
    assert answers["classic"] == answers["with_mps"] == "cpu"
