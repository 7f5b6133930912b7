import pytest
import torch

from core import devices
from core.jobs import child_process
from core.lessons.device import idioms
from to_device.errors import ExplainedError


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
        with pytest.raises(ExplainedError, match="beside a real one"):
            child_process.call("core.lessons.device.idioms:simulated_answers")
        return
    answers = child_process.call("core.lessons.device.idioms:simulated_answers")
    assert answers["any_accelerator"] == "sim"
    assert answers["classic"] == answers["with_mps"] == "cpu"
