"""What stands beside a message decides what to write."""

import pytest

from tests.toolkit.explain.answers import slug
from to_device.explain.explainer import explain

SIZES = "The size of tensor a ({}) must match the size of tensor b ({}) at {} 3"
SYSTEM = "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:269, unhandled system error"
FRAME = "no graph: element 0 of tensors does not require grad. It's a LoRA{}."
CHANNELS = (
    "weight of size [8, {}, 3, 3], expected input[4, {}, 9, 9] to have {} channels"
)
KEYS = "size mismatch for base_model.model.tok_embeddings.weight: copying a param with"


@pytest.mark.parametrize(
    ("message", "kind", "cause", "change"),
    [
        (SIZES.format(24, 7, "dimension"), "likely", "shapes_differ", "unsqueeze"),
        (
            SIZES.format(404, 400, "non-singleton dimension"),
            "sure",
            "shapes_differ",
            "-height % 32",
        ),
        (
            "CUDA out of memory. Tried to allocate 95.37 GiB. My GPU has 12 GB.",
            "sure",
            "request_too_large",
            "pieces",
        ),
        (
            f"{SYSTEM}\nIt runs in Docker on one machine.",
            "likely",
            "nccl_shared_memory",
            "--ipc=host",
        ),
        (
            f"{SYSTEM}\nIt runs in Docker on two machines.",
            "likely",
            "nccl_error",
            "--network=host",
        ),
        (
            f"{KEYS} shape torch.Size([503, 8]) from checkpoint, the shape in current "
            "model is torch.Size([500, 8]).",
            "sure",
            "wrong_architecture",
            "resize_token_embeddings",
        ),
        (
            "AssertionError: Torch not compiled with CUDA enabled\n"
            "I have built torch from source.",
            "sure",
            "cpu_build",
            "USE_CUDA=1",
        ),
        (
            "ImportError: site-packages/torch/lib/libtorch.so: undefined symbol: "
            "_ZTIN2at10TensorImplE",
            "sure",
            "libraries_missing",
            "conda uninstall",
        ),
        (FRAME.format(""), "likely", "checkpointing_inputs", "use_reentrant"),
        (
            FRAME.format(" with gradient checkpointing"),
            "sure",
            "checkpointing_inputs",
            "use_reentrant",
        ),
        (
            f"{CHANNELS.format(1, 3, 1)}, but got 3 channels instead",
            "sure",
            "conv_channels",
            'convert("L")',
        ),
        (
            f"{CHANNELS.format(20, 7, 20)}, but got 7 channels instead",
            "sure",
            "conv_channels",
            "in_channels=x.shape[1]",
        ),
    ],
)
def test_what_stands_beside_a_message_decides_what_to_write(
    message, kind, cause, change
):
    answer = explain(message)
    assert (answer.kind, slug(answer)) == (kind, cause)
    assert change in answer.change


@pytest.mark.parametrize("quoted", ["", ">"])
def test_a_message_may_be_quoted_line_by_line(quoted):
    said = (
        "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. It was built for:",
        "   PyTorch 2.1.0+cu121 with CUDA 1201 (you have 2.1.0+cpu)",
    )
    answer = explain("\n".join(f"{quoted}{line}" for line in said))
    assert "torch==2.1.0 " in answer.change
    assert "cu121" in answer.change
