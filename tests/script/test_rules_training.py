"""Each rule, with its mistake and without."""

from core.script.check import check
from tests.script.right import RIGHT, lines, slugs

ADDED = "total += loss.detach()"
SYNCHRONIZE = "        torch.accelerator.synchronize()\n -> "


def test_a_missing_zero_grad_is_found():
    without = "            optimizer.zero_grad()\n -> "
    assert slugs(without) == [("no_zero_grad", "sure")]
    assert lines(without) == ["optimizer.step()"]
    for other in ("model.zero_grad()", "for p in ps: p.grad = None"):
        assert slugs(f"optimizer.zero_grad() -> {other}") == []
    elsewhere = "if __name__ -> def other(o):\n    o.zero_grad()\n\nif __name__"
    assert slugs(without, elsewhere) == [("no_zero_grad", "likely")]
    helped = "optimizer.zero_grad() -> clear(optimizer)"
    helper = "if __name__ -> def clear(o):\n    o.zero_grad()\n\nif __name__"
    assert slugs(helped, helper) == []


def test_a_clock_without_synchronize_is_found():
    quiet = "print(loss.item()) -> pass"
    assert slugs(SYNCHRONIZE, quiet) == [("timing_unsynchronized", "likely")]
    assert slugs(quiet) == []
    waits = f"{ADDED} -> total += loss.item()"
    assert slugs(SYNCHRONIZE, waits) == []


def test_a_clock_around_other_work_is_not_blamed():
    text = "device = 'mps'\nt = time.time()\nread(f)\nprint(time.time() - t)"
    assert check(text).findings == ()


def test_workers_without_a_guard_are_found():
    loop = "for x, y in DataLoader(data, num_workers=2):\n    f(x).backward()\n"
    (found,) = check(loop).findings
    assert (found.line, found.sureness) == (1, "likely")
    assert "__main__" in found.say
    assert check(f"!pip install torch\n{loop}").findings == ()
    assert len(check(f"{loop}    print('%d'\n        % 3)").findings) == 1
    assert check(loop.replace("=2", "=0")).findings == ()
    inside = loop.replace("\n", "\n    ")
    assert check(f"def train():\n    {inside}").findings == ()
    called = RIGHT.replace('if __name__ == "__main__":\n    main', "main")
    assert [finding.line for finding in check(called).findings] == [18]
