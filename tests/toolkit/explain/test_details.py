import pytest

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
