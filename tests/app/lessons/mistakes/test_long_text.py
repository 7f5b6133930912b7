import pytest

from core.lessons.mistakes import long_text
from to_device.explain.explainer import explain

LOG = "INFO step 12 loss 0.71\n" * 4_000
MESSAGES = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least "
    "two devices, cuda:0 and cpu!",
    "training is slow on the gpu and the gpu is idle",  # with other causes
    "It rained yesterday.",
)


@pytest.mark.parametrize("message", MESSAGES)
def test_a_long_text_gets_the_same_answer_in_a_process_of_its_own(message):
    text = f"{LOG}{message}\n"
    assert long_text.answer(text) == explain(text)
