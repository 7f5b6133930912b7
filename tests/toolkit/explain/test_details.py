import pickle

import pytest

from to_device.explain import memory
from to_device.explain.details import Details
from to_device.explain.explainer import explain


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


def mismatches(*rows):
    return "\n".join(
        f"size mismatch for {name}: copying a param with shape torch.Size({saved})"
        f" from checkpoint, the shape in current model is torch.Size({own})."
        for name, saved, own in rows
    )


HEADS = [
    ("cls.weight", [81, 1024], [6, 1024]),
    ("cls.bias", [81], [6]),
    ("box.weight", [320, 1024], [20, 1024]),
    ("box.bias", [320], [20]),
]
NORMS = [(f"norm{at}.weight", [768], [1024]) for at in range(3)]
GROUPED = [(f"k.{at}.weight", [1024, 8192], [8192, 8192]) for at in range(12)]
RANKS = [("a.weight", [8, 64], [16, 64]), ("b.weight", [64, 8], [64, 16])]


@pytest.mark.parametrize(
    ("rows", "is_other"),
    [
        (HEADS, False),
        (HEADS[::2], False),
        ([*HEADS, ("block.weight", [256, 64, 3, 3], [256, 32, 3, 3])], True),
        ([*HEADS[:2], *NORMS], True),
        (NORMS, True),
        (GROUPED, True),
        ([*RANKS, ("c.weight", [64, 8], [64, 16])], True),
        (HEADS[:1], False),
        ([], False),
    ],
)
def test_other_classes_change_only_the_outputs_of_heads(rows, is_other):
    assert Details(mismatches(*rows), "").other_width == is_other
    answer = explain(mismatches(*rows))
    assert not rows or is_other == ("variant" in answer.change)


@pytest.mark.parametrize("byte", b'\t\n\r #/<v{"')
def test_what_begins_a_text_and_no_pickle_is_of_a_text(byte):
    error = "WeightsUnpickler error: Unsupported operand {}"
    assert "but a text" in explain(error.format(byte)).why


# A frame, a name, a global, a mark; and what begins a gzip, a zip, and a PNG file.
@pytest.mark.parametrize("byte", [0, *pickle.FRAME, *b"\x8c\x93(", 31, *b"P", 137])
def test_what_a_pickle_may_have_or_no_text_has_is_not_of_a_text(byte):
    assert not Details(f"Unsupported operand {byte}", "").text_file


@pytest.mark.parametrize(
    ("told", "is_without"),
    [
        ("Graphics: Mesa Intel® Xe Graphics (TGL GT2)", True),
        ("00:02.0 VGA compatible controller: Intel Corporation Device 9a49", True),
        ("VGA compatible controller: Advanced Micro Devices [AMD/ATI] Picasso", True),
        ("lshw says: product: HD Graphics 5500", True),
        ("My laptop has no NVIDIA card.", True),
        ("I don't have an NVIDIA GPU.", True),
        ("I don't have the NVIDIA driver.", False),
        ("VGA controller: Intel UHD, 3D controller: NVIDIA Corporation GA107M", False),
        ("Intel i5, a GTX 1650, and Intel UHD graphics", False),
        ("Intel graphics, and an A100", False),
        ("Intel Core i7, GPU: 24 GB", False),
        ("", False),
    ],
)
def test_a_machine_whose_gpu_is_named_has_no_other(told, is_without):
    assert Details(told, "").without_nvidia == is_without
    docker = 'could not select device driver "" with capabilities: [[gpu]]'
    answer = explain(f"docker: {docker}\n{told}")
    assert ("apt-get install" in answer.change) != is_without


@pytest.mark.parametrize(
    ("told", "capability", "gpu"),
    [
        ("The GPU is a GeForce GT 740M", 30, "GT 740M"),
        ("GT 720 | 3.5", 35, "GT 720"),
        ("Quadro 4000 (2.0)", 20, "Quadro 4000"),
        ("NVS 5200M\t2.1", 21, "NVS 5200M"),
        # A form's next cell may be torch's version, so a known card comes first.
        ("RTX 3090 | 2.1", 86, "RTX 3090"),
        ("GTX 460 | 2.1.0", 0, ""),
    ],
)
def test_a_table_tells_the_capability_beside_the_name_of_the_card(
    told, capability, gpu
):
    details = Details(told, "")
    assert (details.capability, details.gpu) == (capability, gpu)


def test_a_card_that_no_build_has_code_for_gets_no_older_build():
    text = "Does PyTorch still support my GeForce {}?"
    assert "cu126" in explain(text.format("GTX 960")).change
    assert "/whl/" not in explain(text.format("GT 740M | 3.0")).change


@pytest.mark.parametrize(
    ("code", "written"),
    [
        ("return torch.tensor(values, requires_grad=True)", "torch.stack(values)"),
        ("loss.requires_grad_(True)", "torch.stack(values)"),
        ("return values.mean()", "model.parameters()"),
    ],
)
def test_the_line_that_cuts_the_graph_chooses_the_remedy(code, written):
    error = "AssertionError: No inf checks were recorded for this optimizer."
    answer = explain(f"{error}\nMy loss ends with:\n    {code}")
    assert (answer.kind, answer.cause.slug) == ("sure", "scaler_misused")
    assert written in answer.change
