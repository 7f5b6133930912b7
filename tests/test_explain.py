"""What people paste gets its right answer; what is not about devices gets none."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from core.explain import MOST_CHARACTERS, Answer, explain, known, paragraphs


def entries(file: str) -> list[tuple[str, str]]:
    """The right causes, with what was pasted."""
    folder = Path(__file__).with_name("explain")
    threads = tomllib.loads(folder.joinpath(file).read_text("utf-8"))
    return [(cause, text) for cause in threads for text in threads[cause].values()]


_entries = entries("messages.toml")
HALVES = {"build": _entries[::2], "judge": _entries[1::2]}
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 "
    "has a total capacity of 7.79 GiB of which 17.19 MiB is free. Of this "
    "7.30 GiB is allocated by PyTorch, and {} is reserved by PyTorch but unallocated. "
    "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF="
    "expandable_segments:True to avoid fragmentation."
)
STUMBLES = {  # the commonest stumbles around devices, as one would tell or paste them
    "Expected all tensors to be on the same device, cuda:0 and cpu": "two_devices",
    "Input type FloatTensor and weight type torch.cuda.FloatTensor": "input_not_moved",
    "is_available() is False after install": "cuda_not_found",
    "how do I check that torch uses the GPU": "using_gpu",
    "CUDA out of memory": "out_of_memory",
    OOM.format("2.10 GiB"): "fragmentation",
    "memory is not freed after del in a notebook": "memory_not_freed",
    "memory grows each step": "memory_grows",
    "device-side assert triggered": "index_outside",
    "CUDA error: an illegal memory access": "illegal_access",
    "sm_120 is not compatible with the current PyTorch": "no_kernel_image",
    "can't convert cuda tensor to numpy": "numpy_on_device",
    "can't call numpy() on tensor that requires grad": "numpy_requires_grad",
    "Attempting to deserialize object on a CUDA device": "cuda_checkpoint",
    'Missing key(s) in state_dict: "module.conv.weight"': "module_missing",
    'Unexpected key(s) in state_dict: "_orig_mod.conv.weight"': "orig_mod_prefix",
    "UnpicklingError: Weights only load failed": "pickle_refused",
    "expected scalar type Float but found Double": "dtype_mismatch",
    "expected scalar type Long but found Float": "target_dtype",
    "mat1 and mat2 shapes cannot be multiplied (64x9 and 4x128)": "shapes_multiplied",
    "Trying to backward through the graph a second time": "backward_twice",
    "modified by an inplace operation": "inplace",
    "element 0 of tensors does not require grad": "no_graph",
    "why do I need zero_grad?": "no_zero_grad",
    "what does model.eval() do": "no_eval_mode",
    "Expected more than 1 value per channel when training": "batch_of_one",
    "Using a target size (64) that is different to the input size": "target_size",
    "num_workers makes it slower": "workers_slow",
    "current process has finished its bootstrapping phase": "bootstrapping",
    "DataLoader hangs in Jupyter on Windows": "worker_pickle",
    "DataLoader worker (pid 7) is killed by signal: Bus error": "shared_memory",
    "the RAM of the workers grows with each epoch": "worker_ram",
    "same numpy augmentation in every worker": "same_augmentation",
    "Cannot re-initialize CUDA in forked subprocess": "cuda_fork",
    "GPU slower than CPU": "gpu_slower",
    "low GPU utilization": "gpu_waits",
    "how to measure the time of a model on cuda": "timing",
    "the loss is NaN with mixed precision": "nan_half",
    "same seed, other result": "not_reproducible",
    "not currently implemented for the MPS device": "mps_operator",
    "MPS framework doesn't support float64": "mps_float64",
    "MPS slower than CPU": "mps_slow",
    "how to use several GPUs": "several_gpus",
    "DDP hangs with uneven batches": "rank_waits",
    "Expected to have finished reduction in the prior iteration": "unused_parameters",
    "port: 29500 address already in use": "port_in_use",
    "Default process group has not been initialized": "no_process_group",
    "torch._dynamo hit config.recompile_limit (8)": "recompiles",
    "Cannot find a working triton installation": "compile_toolchain",
    "operator torchvision::nms does not exist": "torchvision_mismatch",
    "optimizer made before the move to the gpu": "optimizer_before_move",
    "the tensor in my model did not move to the gpu": "tensor_not_registered",
    "what is a buffer": "tensor_not_registered",
    "my tensor did not move to the gpu": "to_not_reassigned",
    "the model did not move to the gpu": "model_not_moved",
    "class weights of the loss are not on the device": "loss_not_moved",
}


def slug(answer: Answer) -> str:
    return answer.cause.slug if answer.cause else answer.kind


@pytest.mark.parametrize("half", HALVES)
def test_most_get_their_answer_few_a_wrong_one_and_the_unrelated_no_alarm(half):
    answers = [(cause, explain(text)) for cause, text in HALVES[half]]
    surely = ("sure", "unrelated")
    right = [answer for cause, answer in answers if slug(answer) == cause]
    wrong = [(c, slug(a)) for c, a in answers if slug(a) != c and a.kind in surely]
    alarms = [slug(a) for cause, a in answers if cause == "unrelated" and a.cause]
    print(f"{half}: {len(right)} right, {len(wrong)} wrong of {len(answers)}: {wrong}")
    assert len(right) >= 0.85 * len(answers)
    assert len(wrong) <= 0.03 * len(answers)
    assert alarms == []


@pytest.mark.parametrize(("cause", "text"), entries("strangers.toml"))
def test_what_strangers_paste_is_answered(cause, text):
    assert slug(explain(text)) == cause


def test_the_set_is_large_enough():
    related = [cause for cause, _ in _entries if cause != "unrelated"]
    assert len(related) >= 200
    assert len(_entries) - len(related) >= 40
    assert set(related) <= set(known().causes)


@pytest.mark.parametrize("text", STUMBLES)
def test_each_of_the_commonest_stumbles_gets_its_answer(text):
    assert slug(explain(text)) == STUMBLES[text]


def test_frames_do_not_mislead_and_name_the_line():
    answer = explain(
        'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\n'
        '    shown = images.numpy()\n            ^^^^^^^^\n  File "/opt/site-packages/'
        'torch/cuda/__init__.py", line 3, in f\n    model.cuda()\n'
        "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()"
    )
    assert (answer.kind, slug(answer)) == ("sure", "numpy_on_device")
    assert answer.change == "images.detach().cpu().numpy()"
    assert (answer.line, answer.where) == ("shown = images.numpy()", "train.py, line 7")
    assert "Your line: shown" in "\n".join(paragraphs(answer))


def test_the_learners_line_tells_causes_of_one_message_apart():
    frame = 'File "train.py", line 3, in f\n    {}\n'
    message = "RuntimeError: Expected all tensors to be on the same device, but found"
    answer = explain(frame.format("optimizer.step()") + message)
    assert slug(answer) == "optimizer_before_move"
    assert answer.others[0].slug == "two_devices"
    answer = explain(frame.format("loss = model(x)") + message)
    assert (slug(answer), answer.others) == ("two_devices", ())


def test_a_piece_of_a_message_is_enough():
    assert slug(explain("Expected more than 1 value per channel")) == "batch_of_one"


def test_the_line_in_a_notebook_is_the_learners_own():
    answer = explain(
        "<ipython-input-3-79> in train(model)\n----> 2     out = model(x)\n"
        "/opt/dist-packages/torch/nn/rnn.py in forward(self, input)\n"
        "--> 582     self.dropout)\n"
        "RuntimeError: Input and hidden tensors are not at the same device"
    )
    assert (slug(answer), answer.line) == ("two_devices", "out = model(x)")


def test_the_last_exception_of_a_chain_counts_an_earlier_one_is_a_guess():
    first = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
    between = (
        "\n\nDuring handling of the above exception, another exception occurred:\n"
    )
    last = "RuntimeError: Trying to backward through the graph a second time"
    assert slug(explain(f"{first}{between}{last}")) == "backward_twice"
    guess = explain(f"{first}{between}ValueError: no result")
    assert (guess.kind, slug(guess)) == ("likely", "out_of_memory")


def test_the_error_of_a_rank_counts_more_than_what_its_launcher_says():
    launcher = (
        "E1125 13:00:06.000000 100 torch/distributed/elastic/api.py:869] failed "
        "(exitcode: {0}) local_rank: 1 (pid: 124) of binary: /usr/bin/python3\n"
        'Traceback (most recent call last):\n  File "/usr/bin/torchrun", line 8, in x\n'
        "    sys.exit(main())\ntorch.errors.ChildFailedError:\ntrain.py FAILED\n"
        "Root Cause (first observed failure):\n  exitcode  : {0} (pid: 124)"
    )
    frame = '[rank1]:   File "train.py", line 3, in f\n[rank1]:     out = model(x)\n'
    error = "[rank1]: torch.OutOfMemoryError: CUDA out of memory.\n"
    answer = explain(frame + error + launcher.format(1))
    assert (answer.kind, slug(answer)) == ("sure", "out_of_memory")
    assert answer.line == "out = model(x)"
    missing = "ModuleNotFoundError: No module named 'wandb'\n"
    assert explain(missing + launcher.format(1)).kind == "unrelated"
    assert slug(explain(launcher.format(1))) == "rank_died"
    assert slug(explain(launcher.format(-9))) == "host_memory"


def test_the_hint_at_fragmentation_counts_where_the_figures_agree():
    assert slug(explain(OOM.format("11.20 MiB"))) == "out_of_memory"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "unknown"),
        ("  \n", "unknown"),
        ("RuntimeError: CUDA error: nobody knows this one", "unknown"),
        ("what is a decorator", "unrelated"),
    ],
)
def test_what_it_cannot_tell_it_says(text, kind):
    answer = explain(text)
    assert answer.kind == kind
    assert "aste the" in answer.say
    assert "error is not about" not in answer.say


@pytest.mark.parametrize("text", ["A" * 20_000, 'File "' * 3_000, "Error: " * 3_000])
def test_a_text_made_to_be_slow_is_answered(text):
    assert explain(text).kind in ("unrelated", "unknown")


def test_the_end_of_a_long_log_is_read():
    log = "epoch 1 of 5, step 7\n" * MOST_CHARACTERS
    assert slug(explain(f"{log}RuntimeError: CUDA out of memory.")) == "out_of_memory"


def test_every_entry_knows_its_example_and_leads_somewhere():
    mistakes = tomllib.loads(Path("mistakes.toml").read_text("utf-8"))
    slugs = {each for entries in mistakes.values() for each in entries}
    pages = {each.stem.partition("_")[2] for each in Path("pages").glob("*_*.py")}
    for name, cause in known().causes.items():
        answer = explain(cause.example)
        assert (answer.kind, slug(answer)) == ("sure", name)
        kind, _, place = cause.see.partition(":")
        assert place in {"mistake": slugs, "page": pages}[kind], name
        assert cause.read.startswith("https://"), name
        assert "{" not in answer.change, name


def run(*options: str, text: str, status: int = 0) -> str:
    program = [sys.executable, "-m", "core.explain", *options]
    ended = subprocess.run(program, input=text, capture_output=True, text=True)
    assert ended.returncode == status, ended.stderr
    return ended.stdout + ended.stderr


def test_the_program_reads_a_pipe_or_a_file(tmp_path):
    text = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
    said = run(text=text)
    assert said.startswith("The GPU's memory is full.")
    file = tmp_path / "log.txt"
    file.write_text(text)
    answer = json.loads(run(str(file), "--json", text=""))
    assert (answer["sure"], answer["slug"]) == (True, "out_of_memory")
    assert answer["title"] in said
    assert answer["text"] in said
    assert json.loads(run("--json", text="KeyError: 'x'", status=1)) is None


@pytest.mark.parametrize("file", ["missing.txt", ""], ids=["missing", "a folder"])
def test_a_file_that_cannot_be_read_is_told_in_a_sentence(tmp_path, file):
    said = run(str(tmp_path / file), text="", status=2)
    assert f"can't read {tmp_path / file}" in said
    assert "Traceback" not in said


def test_it_needs_nothing_but_python():
    script = "import core.explain as e; e.explain('CUDA'); import sys; "
    script += "assert not {'torch', 'streamlit', 'pandas', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-S", "-c", script], check=True)
