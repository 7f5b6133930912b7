import pytest

from to_device.explain import memory
from to_device.explain.details import Details


@pytest.mark.parametrize(
    ("driver", "cuda", "is_old"),
    [
        ("391.74", "9.2", True),
        ("470.82", "11.8", False),
        ("470.82", "12.1", True),
        ("535.10", "12.1", False),
    ],
)
def test_the_driver_and_the_build_of_collect_env_are_compared(driver, cuda, is_old):
    text = f"CUDA used to build PyTorch: {cuda}\nNvidia driver version: {driver}"
    assert Details(text, "").old_driver == is_old


def test_what_a_session_answers_on_the_next_line_counts():
    text = ">>> torch.cuda.is_available()\n{}\nIt is slow."
    assert Details(text.format(True), "").holds("gpu_works")
    assert not Details(text.format(False), "").holds("gpu_works")


XPU = (
    "XPU out of memory. Tried to allocate {} GiB. GPU 0 has a total capacity of 15.11"
    " GiB. Of the allocated memory {} GiB is allocated by PyTorch, and 0 bytes is"
    " reserved by PyTorch but unallocated."
)
MAC = (
    "MPS backend out of memory (MPS allocated: {} GB, other allocations: {} GB, max"
    " allowed: 9.07 GB). Tried to allocate 6.25 MB on private pool."
)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (XPU.format("2.00", "14.50"), "the tensors of this process fill the memory"),
        (XPU.format("2.00", "0.00"), "tensors leave enough room"),
        (MAC.format("8.89", "0.17"), "the tensors of this process fill the memory"),
        (MAC.format("2.44", "6.63"), "Metal's buffers for this process"),
        (XPU.format("10.00", "7.00"), ""),
    ],
)
def test_what_fills_the_memory_is_told_by_the_numbers(message, told):
    said = memory.explained(memory.numbers(message)).partition("So ")[2]
    assert told in said
    assert bool(told) == bool(said)


@pytest.mark.parametrize(
    ("asked", "allocated", "is_large"),
    [("4.00", "0.00", True), ("3.90", "0.00", False), ("4.00", "14.00", False)],
)
def test_an_intel_gpu_with_room_refuses_only_a_large_piece(asked, allocated, is_large):
    message = XPU.format(asked, allocated)
    assert Details(message, message).large_piece == is_large


@pytest.mark.parametrize(
    ("warning", "named"),
    [
        ("Found GPU1 Quadro K4200 which is of cuda capability 3.0.", "Quadro K4200"),
        ("Tesla P100-PCIE-16GB with CUDA capability sm_60 is not", "Tesla P100-PCIE"),
        ("which one of the two is it?", "RTX 3060"),
    ],
)
def test_a_warning_names_the_gpu_that_it_is_about(warning, named):
    text = f"There is an RTX 3060 too.\n    {warning}"
    assert Details(text, "").gpu.startswith(named)
