"""An error message finds the mistake that it belongs to, or none."""

import json
import re
import time
from pathlib import Path

import pytest

from core.mistakes import runner
from core.mistakes.catalogue import MESSAGES, MISTAKES, Failure
from core.mistakes.search import (
    MOST_CHARACTERS,
    MOST_MATCHES,
    Index,
    message_in,
    split_traceback,
)
from core.ui.source import source

LOUD = [each.slug for each in MISTAKES if each.loud]
TWO_DEVICES = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least "
    "two devices, cuda:0 and cpu!"
)
GOT = (  # as today's torch says it
    "RuntimeError: Expected all tensors to be on the same device, but got {} is on "
    "cpu, different from other tensors on cuda:0 (when checking argument in method "
    "wrapper_CUDA_{})"
)
# What learners bring: from other machines, other versions, in other programs.
FOUND = {
    TWO_DEVICES: "data_not_moved",
    f"{TWO_DEVICES} (when checking argument for argument mat1 in method "
    "wrapper_CUDA_addmm)": "data_not_moved",
    "RuntimeError: Input type (torch.FloatTensor) and weight type "
    "(torch.cuda.FloatTensor) should be the same or input should be a MKLDNN tensor "
    "and weight is a dense tensor": "data_not_moved",
    GOT.format("mat1", "addmm"): "data_not_moved",
    GOT.format("mat2", "mm"): "model_not_moved",
    GOT.format("index", "_index_select"): "data_not_moved",
    GOT.format("target", "nll_loss_forward"): "labels_not_moved",
    GOT.format("weight", "nll_loss_forward"): "loss_not_moved",
    f"{TWO_DEVICES} (when checking argument for argument target in method "
    "wrapper_CUDA_nll_loss_forward)": "labels_not_moved",
    "RuntimeError: Placeholder storage has not been allocated on MPS device!": (
        "data_not_moved"
    ),
    "RuntimeError: Input type (MPSFloatType) and weight type (torch.FloatTensor) "
    "should be the same": "model_not_moved",
    "got mat1 is on cpu, different from other tensors on cuda:0": "data_not_moved",
    GOT.format("mat1", "addmm")
    .replace("is on cpu", "is on xpu:0")
    .replace("other tensors on cuda:0", "other tensors on cpu"): "model_not_moved",
    "RuntimeError: Found no NVIDIA driver on your system. Please check that you have "
    "an NVIDIA GPU and installed a driver": "cuda_hard_coded",
    "TypeError: can't convert mps:0 device type tensor to numpy. Use Tensor.cpu() to "
    "copy the tensor to host memory first.": "numpy_on_device",
    "RuntimeError: MPS backend out of memory (MPS allocated: 8.00 GB, max allowed: "
    "9.07 GB). Tried to allocate 256.00 MB on private pool.": "out_of_memory",
    "RuntimeError: Attempting to deserialize object on a CUDA device but "
    "torch.cuda.is_available() is False. If you are running on a CPU-only machine, "
    "please use torch.load with map_location": "cuda_checkpoint",
    "RuntimeError: Error(s) in loading state_dict for ResNetADFDropout: Missing key(s) "
    'in state_dict: "conv1.weight", "bn1.weight", "bn1.bias"': "wrong_architecture",
    "Missing key(s) in state_dict": "wrong_architecture",
    "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, "
    "to do so you have two options": "pickle_refused",
    "AssertionError: Torch not compiled with CUDA enabled": "cuda_hard_coded",
    "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to "
    "copy the tensor to host memory first.": "numpy_on_device",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has "
    "a total capacity of 7.79 GiB of which 1.10 GiB is free.": "out_of_memory",
    "MemoryError": "out_of_memory",
    "RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might "
    "be asynchronously reported at some other API call, so the stacktrace below might "
    "be incorrect.": "label_outside_classes",
    "IndexError: Target 37 is out of bounds.": "label_outside_classes",
    "RuntimeError: Attempting to deserialize object on CUDA device 1 but "
    "torch.cuda.device_count() is 1.": "cuda_checkpoint",
    "RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in "
    'state_dict: "fc1.weight", "fc1.bias". \n\tUnexpected key(s) in state_dict: '
    '"module.fc1.weight", "module.fc1.bias".': "wrong_architecture",
    "RuntimeError: Error(s) in loading state_dict for ResNet:\n\tsize mismatch for "
    "fc.weight: copying a param with shape torch.Size([1000, 512]) from checkpoint, "
    "the shape in current model is torch.Size([10, 512]).": "wrong_architecture",
    # Tracebacks from other programs: the same message, told apart by the code.
    'Traceback (most recent call last):\n  File "/ana/train.py", line 61, in main\n'
    "    logits = net(x)\n"
    '  File "/venv/site-packages/torch/nn/modules/module.py", line 1511, in '
    "_wrapped_call_impl\n    return self._call_impl(*args, **kwargs)\n"
    '  File "/venv/site-packages/torch/nn/modules/linear.py", line 116, in forward\n'
    "    return F.linear(input, self.weight, self.bias)\n"
    f"{TWO_DEVICES}": "data_not_moved",
    'Traceback (most recent call last):\n  File "C:\\Bo\\train.py", line 40, in fit\n'
    "    loss = loss_fn(logits, labels)\n"
    '  File "C:\\torch\\nn\\modules\\loss.py", line 1297, in forward\n'
    "    return F.cross_entropy(\n"
    f"{TWO_DEVICES}": "labels_not_moved",
    'Traceback (most recent call last):\n  File "eval.py", line 12, in evaluate\n'
    f"    hits += (pred == labels).sum()\n{TWO_DEVICES}": "predictions_vs_labels",
    # Words, for mistakes that have no message too.
    "softmax": "softmax_before_loss",
    "zero_grad": "no_zero_grad",
    "model.eval()": "no_eval_mode",
    "synchronize timing": "timing_unsynchronized",
    "why is .item() slow": "item_every_step",
    "out of memory": "out_of_memory",
}
STALLED = {"softmax_before_loss", "no_zero_grad", "list_never_trained"}
SYMPTOMS = {  # what somebody sees who has no error; all that may be behind it
    "my loss does not go down": STALLED,
    "the loss is stuck": STALLED,
    "loss doesn't decrease": STALLED,
    "My model is not learning anything": STALLED,
    "the loss explodes": {"no_zero_grad"},
    "accuracy is lower in evaluation than in training": {"no_eval_mode"},
    "predictions change each time for the same image": {"no_eval_mode"},
    "my timings are too good to be true": {"timing_unsynchronized"},
    "the GPU is not faster than the CPU": {"item_every_step"},
    "my accuracy is not the same with another batch size": {"mean_of_batch_means"},
    "the weights of my layers do not change": {"list_never_trained"},
}
# What people quoted in public threads on GitHub, by the thread: mistake and message.
THREADS = json.loads(Path(__file__).with_name("threads.json").read_text("utf-8"))
NOT_FOUND = [
    "",
    "   \n ",
    "asdf qwer zxcv",
    "The quick brown fox jumps over the lazy dog",
    "`*_~[]()#<script>alert(1)</script>",
    "\x00\x01 \u202e ünïcödé 你好",
    "ModuleNotFoundError: No module named 'pandas'",
    'Traceback (most recent call last):\n  File "x.py", line 3, in <module>\n'
    "    import pandas\nModuleNotFoundError: No module named 'pandas'",
    "KeyError: 'loss does not go down'",
    "my internet is slow",
    "it does not go",
    "how do I cook rice",
    "SyntaxError: invalid syntax",
    "IndentationError: unexpected indent",
    "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
    "KeyError: 'label'",
    "KeyError: 'cuda:0'",
    "KeyError: 'state_dict'",
    "KeyError: 'layers.0.weight'",
    "NameError: name 'model' is not defined",
    "IndexError: list index out of range",
    "ZeroDivisionError: division by zero",
    "ValueError: too many values to unpack (expected 2)",
    "ValueError: Expected input batch_size (64) to match target batch_size (32).",
    "AttributeError: 'NoneType' object has no attribute 'shape'",
    "TypeError: forward() missing 1 required positional argument: 'x'",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x784 and 512x10)",
    "RuntimeError: CUDA error: no kernel image is available for execution on the "
    "device",
    "RuntimeError: element 0 of tensors does not require grad and does not have a "
    "grad_fn",
    "RuntimeError: Trying to backward through the graph a second time",
    "RuntimeError: stack expects each tensor to be equal size, but got [3, 224, 224] "
    "at entry 0 and [3, 200, 224] at entry 1",
    "RuntimeError: expected scalar type Float but found Half",
    "ConnectionError: HTTPSConnectionPool(host='example.com', port=443): Max retries",
]


@pytest.fixture(scope="module")
def failures() -> dict[str, Failure]:
    """What the loud mistakes raise here."""
    return runner.failures()


@pytest.fixture(scope="module")
def index(failures) -> Index:
    sources = {each.slug: source(each.address("broken")) for each in MISTAKES}
    return Index(failures, sources)


def moved(traceback: str) -> str:
    """The traceback as another machine would print it: other folders and lines."""
    text = re.sub(r'File "(?!torch)', 'File "/home/ana/course/', traceback)
    text = text.replace('File "torch', 'File "/opt/venv/site-packages/torch')
    return re.sub(r"line (\d+)", lambda found: f"line {int(found[1]) + 77}", text)


def test_all_loud_mistakes_are_known(failures):
    """Each loud mistake has its message, taken from a run of it."""
    # Only Linux limits the memory of a process on the CPU.
    assert {*failures, "out_of_memory"} == set(LOUD)


@pytest.mark.parametrize("slug", LOUD)
def test_a_whole_traceback_finds_its_mistake_first(index, failures, slug):
    """The traceback of each mistake finds it, from here and from another machine."""
    for text in (failures[slug].traceback, moved(failures[slug].traceback)):
        best, *others = index.find(text)
        assert best.slug == slug
        assert all(best.score > 1.02 * other.score for other in others)


@pytest.mark.parametrize("slug", LOUD[8:])
def test_a_message_alone_finds_its_mistake(index, failures, slug):
    """Where the message is a mistake's own, it is enough without the code."""
    failure = failures[slug]
    assert index.find(f"{failure.kind}: {failure.message}")[0].slug == slug


@pytest.mark.parametrize("text", FOUND)
def test_what_learners_bring_is_found(index, text):
    """Other wordings, devices and programs lead to the same mistake."""
    assert index.find(text)[0].slug == FOUND[text]


@pytest.mark.parametrize("thread", THREADS)
def test_a_message_from_a_public_thread_is_known(index, thread):
    """It finds its mistake, or what there is to say of it; "message" is the latter."""
    meant, text = THREADS[thread]
    if meant == "message":
        assert message_in(text)
    else:
        assert message_in(text) is None
        assert index.find(text)[0].slug == meant


def test_what_is_said_of_a_message_is_of_that_one():
    """A generator on the wrong device is told from a worker that was forked."""
    said = {each: message_in(text) for each, (_, text) in THREADS.items()}
    found = [each for each in said.values() if each]
    assert len(found) == len(set(found)) == len(MESSAGES)


@pytest.mark.parametrize("text", SYMPTOMS)
def test_a_symptom_finds_the_silent_mistakes_behind_it(index, text):
    """Who sees no error but a wrong number finds each mistake that brings it."""
    assert {match.slug for match in index.find(text)} >= SYMPTOMS[text]


@pytest.mark.parametrize("text", NOT_FOUND)
def test_where_none_fits_none_is_found(index, text):
    """Gibberish, an empty text and unrelated errors find nothing."""
    assert index.find(text) == []
    assert message_in(text) is None


def test_every_title_finds_its_mistake(index):
    """Each mistake, the silent ones too, is found by what it is called."""
    for each in MISTAKES:
        assert each.slug in [match.slug for match in index.find(each.title)]


@pytest.mark.parametrize("text", ["A" * 20_000, "Aa" * 10_000, 'File "' * 3_000])
def test_a_text_made_to_be_slow_is_not(index, text):
    """No pattern goes through a hostile text again and again."""
    began = time.perf_counter()
    assert index.find(text) == []
    assert time.perf_counter() - began < 0.5


def test_few_are_found_and_the_best_comes_first(index, failures):
    """However many raise one message, there are some at most, in order."""
    found = index.find(failures["data_not_moved"].message)
    scores = [match.score for match in found]
    assert 1 < len(found) <= MOST_MATCHES
    assert scores == sorted(scores, reverse=True)


def test_only_the_end_of_a_long_text_is_read(index):
    """An error stands at the end of a log; what is long before it is not looked at."""
    log = "epoch 1 of 5, step 7\n" * MOST_CHARACTERS
    assert index.find(log + TWO_DEVICES)[0].slug == "data_not_moved"
    assert index.find(f"{TWO_DEVICES}\n" + "lorem ipsum " * MOST_CHARACTERS) == []


def test_without_messages_words_still_find():
    """Where the mistakes could not be run, what is said about them can be searched."""
    index = Index({}, {each.slug: "" for each in MISTAKES})
    assert index.find("softmax")[0].slug == "softmax_before_loss"


def test_a_traceback_falls_into_code_and_error():
    """The error is what the last traceback ends with, the code what comes before."""
    text = (
        'ValueError: first\n\nTraceback:\n  File "a/_b/c.py", line 1, in hidden\n'
        '    secret()\n  File "a.py", line 2, in seen\n    shown()\n    ^^^^^^^\n'
        "RuntimeError: last\nand more"
    )
    code, error = split_traceback(text)
    assert error == "RuntimeError: last\nand more"
    assert "shown()" in code
    assert "seen" in code
    assert "secret" not in code
    assert "^" not in code
