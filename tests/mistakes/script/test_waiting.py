"""core.mistakes.script.waiting: each rule on a script with its mistake, and without."""

import pytest

from core.mistakes.script.check import check
from tests.mistakes.script.right import RIGHT, lines, slugs

ADDED = "total += loss.detach()"
SYNCHRONIZE = "        torch.accelerator.synchronize()\n -> "


@pytest.mark.parametrize(
    "line",
    [
        "total += loss.item()",
        "print(loss)",
        "bar.set_description(f'{loss:.3f}')",
        "total += float(loss)",
        "right += (outputs.cpu() == labels.cpu()).sum()",
    ],
)
def test_a_wait_in_every_step_is_pointed_at(line):
    """Whatever it is that needs the number now."""
    assert slugs(f"{ADDED} -> {line}") == [("item_every_step", "look")]
    assert lines(f"{ADDED} -> {line}") == [line]


def test_a_wait_once_in_a_while_is_not_blamed():
    """Under a condition, after the loop, or where there is nothing but a CPU."""
    after = "        model.eval()\n ->         model.eval()\n        total.item()\n"
    assert slugs(after) == []
    on_cpu = "for x, y in data:\n    loss = f(x)\n    loss.backward()\n    loss.item()"
    assert check(on_cpu).findings == ()


def test_a_clock_without_synchronize_is_found():
    """Unless something in between waits anyway."""
    quiet = "print(loss.item()) -> pass"
    assert slugs(SYNCHRONIZE, quiet) == [("timing_unsynchronized", "likely")]
    assert slugs(quiet) == []
    waits = f"{ADDED} -> total += loss.item()"
    assert slugs(SYNCHRONIZE, waits) == [("item_every_step", "look")]


def test_a_clock_around_other_work_is_not_blamed():
    """Reading a file has nothing to do with the device."""
    text = "device = 'mps'\nt = time.time()\nread(f)\nprint(time.time() - t)"
    assert check(text).findings == ()


def test_workers_without_a_guard_are_found():
    """What trains is at the top of the script; in a notebook that is no matter."""
    loop = "for x, y in DataLoader(data, num_workers=2):\n    f(x).backward()\n"
    (found,) = check(loop).findings
    assert (found.line, found.sureness) == (1, "likely")
    assert "__main__" in found.say
    assert check(f"!pip install torch\n{loop}").findings == ()
    assert len(check(f"{loop}    print('%d'\n        % 3)").findings) == 1
    assert check(loop.replace("=2", "=0")).findings == ()
    assert (
        check(f"def train():\n    {loop.replace(chr(10), chr(10) + '    ')}").findings
        == ()
    )
    called = RIGHT.replace('if __name__ == "__main__":\n    main', "main")
    assert [each.line for each in check(called).findings] == [18]
