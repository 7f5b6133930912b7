import pytest
import torch

from core.devices import other_than_cpu
from core.lessons.model import transfers
from core.watch import Watch
from to_device.errors import ExplainedError

SMALL = (4096, 65536)


def test_every_size_is_measured_in_every_kind():
    reported = []
    result = transfers.measure("cpu", Watch(reported.append), sizes=SMALL)
    assert tuple(reported) == result.measured
    assert [transfer.bytes for transfer in reported] == [4096, 4096, 65536, 65536]
    assert {transfer.direction for transfer in reported} == {"host to host"}
    assert all(len(transfer.seconds) == transfers.REPEATS for transfer in reported)
    assert all(seconds > 0 for transfer in reported for seconds in transfer.seconds)


def test_the_kinds_of_a_size_are_timed_alternately(monkeypatch):
    called = []
    kinds = {("a", "b"): lambda: called.append(1), ("a", "c"): lambda: called.append(2)}
    monkeypatch.setattr(transfers, "host_copies", lambda _: kinds)
    transfers.measure("cpu", sizes=(4096,))
    assert called == [1, 2] * (len(called) // 2)


def test_a_host_copy_copies_all_bytes_to_new_memory_or_to_the_same():
    new, used = transfers.host_copies(1000).values()
    for copied in (new(), used()):
        assert copied.nbytes == 1000
        assert torch.equal(copied, torch.ones_like(copied))
    a, b = new(), new()
    assert a.data_ptr() != b.data_ptr()
    assert used().data_ptr() == used().data_ptr()


def test_a_size_that_does_not_fit_ends_the_measurement(monkeypatch):
    def host_copies(size):
        if size > 4096:
            raise torch.OutOfMemoryError
        return fitting(size)

    fitting = transfers.host_copies
    monkeypatch.setattr(transfers, "host_copies", host_copies)
    result = transfers.measure("cpu", sizes=SMALL)
    assert {transfer.bytes for transfer in result.measured} == {4096}
    with pytest.raises(torch.OutOfMemoryError):
        transfers.measure("cpu", sizes=SMALL[1:])
    with pytest.raises(ExplainedError):
        transfers.measure("cpu", sizes=())


@pytest.mark.sim
def test_the_host_waits_for_all_but_pinned_non_blocking_copies():
    counted = transfers.count("sim")
    assert {(crossing.copies, crossing.bytes) for crossing in counted.values()} == {
        (1, 2**20)
    }
    assert len({memory for _, memory in counted}) == 4
    waits = {kind: crossing.waits for kind, crossing in counted.items()}
    assert {memory for (_, memory), waited in waits.items() if not waited} == {
        "pinned, non_blocking"
    }


@pytest.mark.gpu
def test_copies_to_the_accelerator_arrive():
    device = other_than_cpu()
    for copy in transfers.device_copies(1000, device).values():
        there = copy()
        torch.accelerator.synchronize()
        assert there.sum().item() == 1000
