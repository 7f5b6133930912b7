import re
import tomllib
from pathlib import Path

import pytest

from tests.toolkit.explain.answers import slug
from to_device.explain.details import Details
from to_device.explain.explainer import (
    MOST_CHARACTERS,
    explain,
    knowledge,
    paragraphs,
)
from to_device.explain.report import read
from to_device.explain.subject import Subject


def entries(file: str) -> list[tuple[str, str]]:
    """The right causes, with what was pasted."""
    threads = tomllib.loads(Path(__file__).with_name(file).read_text("utf-8"))
    return [(cause, text) for cause in threads for text in threads[cause].values()]


_entries = entries("messages.toml")
HALVES = {"build": _entries[::2], "judge": _entries[1::2]}


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


@pytest.mark.parametrize(
    ("cause", "text"), [*entries("stumbles.toml"), *entries("strangers.toml")]
)
def test_what_strangers_paste_is_answered(cause, text):
    """By the first cause, or by one that is explained as almost as likely."""
    answer = explain(text)
    assert cause in map(slug, (answer, *answer.near))


OTHERS = tomllib.loads(Path(__file__).with_name("others.toml").read_text("utf-8"))


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_a_text_about_another_program_has_no_cause(text):
    answer = explain(text)
    assert (answer.cause, answer.kind) == (None, "unrelated")


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_the_same_text_may_have_a_cause_if_it_names_torch(text):
    assert Subject(read(f"{text}\nIt's a program in PyTorch.")).is_ours


LAYERS = "conv = {}nn.conv2d(x, kernel)\nIt needs too much memory of my RTX 3080."


@pytest.mark.parametrize(
    ("code", "is_ours"),
    [
        (LAYERS.format(""), True),
        (LAYERS.format("torch."), True),
        (LAYERS.format("tf."), False),
        (LAYERS.format("paddle."), False),
        (f"import mlx.nn as nn\n{LAYERS.format('')}", False),
        (f"from mindspore import nn\n{LAYERS.format('')}", False),
        (f"from torch import nn\n{LAYERS.format('')}", True),
    ],
)
def test_the_layers_of_other_libraries_do_not_name_torch(code, is_ours):
    assert Subject(read(code)).names_torch == is_ours


def test_a_message_decides_more_than_a_word_of_another_program():
    message = 'could not select device driver "nvidia" with capabilities: [[gpu]]'
    aside = "It's a server without Xorg, where I start the program with a script."
    assert slug(explain(f"{message}\n{aside}")) == "docker_gpu"
    assert explain(aside).cause is None


def test_what_any_question_says_is_no_reason_to_doubt_a_message():
    message = "cudaCheckError() failed : no kernel image is available for execution"
    question = (
        "when i run ./demo.sh, i get this error:\n\n{}\n\nhow to solve it? thanks!"
    )
    assert slug(explain(f"error: {message}\n{question.format(message)}")) == (
        "no_kernel_image"
    )
    far = "The card is new, its driver too, and the picture on the screen is fine."
    assert explain(f"{message}\n{far}").cause is None


@pytest.mark.parametrize("form", ["### Logs\n", "## What happened?\n```shell\n"])
def test_what_a_form_puts_around_a_message_says_nothing_of_a_program(form):
    message = "CUDA error: no kernel image is available for execution on the device"
    assert slug(explain(f"{message}\n{form}{message}\n```")) == "no_kernel_image"


@pytest.mark.parametrize("card", ["7900xtx", "6700 xt", "rx6600", "gfx1201"])
def test_a_card_is_known_by_its_number_alone(card):
    question = f"How can I train on my {card} instead of the CPU?"
    assert slug(explain(question)) == "amd_gpu"


def test_a_message_that_any_program_prints_is_certain_only_beside_words_of_ours():
    message = "CUDA error: an illegal memory access was encountered, at the second step"
    far = f"{message} of 100. The card is new, and so are its driver and the computer."
    near = f"{far} It's my own model."
    ours = f"{far} It happens in backward()."
    assert explain(far).cause is None
    assert (explain(near).kind, slug(explain(near))) == ("likely", "illegal_access")
    assert slug(explain(ours)) == "illegal_access"


REPORTS = tomllib.loads(Path(__file__).with_name("reports.toml").read_text("utf-8"))


@pytest.mark.parametrize(
    "report", REPORTS["report"], ids=lambda report: report["address"]
)
def test_a_whole_report_gets_its_cause_and_its_remedy(report):
    answer = explain(report["text"])
    assert slug(answer) == report["cause"]
    assert all(part in answer.change for part in report["writes"]), answer.change
    assert not any(part in answer.change for part in report["never"]), answer.change


BAR = "Epoch 3: 57%|#####7    | 417/731 [02:11<01:38, loss=0.431, v_num=12]\n"


def test_a_long_log_is_read_for_its_first_cause_and_the_line_is_named():
    cause = (
        'Traceback (most recent call last):\n  File "train.py", line 88, in step\n'
        "    loss = criterion(model(x), y)\n../aten/src/ATen/native/cuda/Loss.cu:250: "
        "nll_loss_forward_reduce: Assertion `t >= 0 && t < n_classes` failed.\n"
    )
    last = (
        "RuntimeError: CUDA error: device-side assert triggered\n"
        "srun: error: node07: task 0: Exited with exit code 1\n"
    )
    answer = explain(BAR * 3_000 + cause + BAR * 2_000 + last)
    assert (answer.kind, slug(answer)) == ("sure", "label_outside")
    assert answer.found.startswith("line 3,004 of 5,006: ")


def test_an_error_and_what_is_said_about_it_are_weighed_together():
    error = "RuntimeError: No CUDA GPUs are available"
    alone = explain(error)
    assert (alone.kind, slug(alone)) == ("likely", "no_driver")
    job = explain(f"{error}\nI start it with srun on our cluster.")
    assert (job.kind, slug(job)) == ("sure", "job_without_gpu")
    asleep = explain(f"{error}\nIt happens since the laptop woke up.")
    assert slug(asleep) == "driver_asleep"


def test_causes_that_are_almost_as_likely_are_explained_too():
    answer = explain("my training got slower with more data")
    assert answer.kind == "likely"
    assert answer.near
    text = "\n".join(paragraphs(answer))
    for other in answer.near:
        assert f"Or else: {other.cause.title}." in text
        assert other.change.strip().splitlines()[0] in text


def test_commands_for_another_platform_are_never_certain():
    error = "RuntimeError: operator torchvision::nms does not exist"
    assert explain(error).kind == "sure"
    assert explain(f"{error}\nIt runs on a Jetson Orin.").kind == "likely"


def test_what_the_report_speaks_against_is_no_cause():
    works = "torch.cuda.is_available() returns True. Why does it train so slowly?"
    for question in (works, f"{works} The GPU is not found in the list."):
        slugs = {slug(explain(question)), *(c.slug for c in explain(question).others)}
        assert not slugs & {"cuda_not_found", "no_driver", "cpu_build", "using_gpu"}


def test_the_numbers_of_an_out_of_memory_message_are_explained():
    message = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {}. GPU 0 has a "
        "total capacity of 23.69 GiB of which 10.00 MiB is free. {}Including "
        "non-PyTorch memory, this process has {} memory in use. Of the allocated "
        "memory {} is "
        "allocated by PyTorch, and {} is reserved by PyTorch but unallocated."
    )
    full = explain(
        message.format("2.00 GiB", "", "23.50 GiB", "22.90 GiB", "80.00 MiB")
    )
    assert slug(full) == "out_of_memory"
    for size in ("2.00 GiB asked", "23.69 GiB total", "22.90 GiB allocated"):
        assert size in full.why
    other = "Process 42 has 20.00 GiB memory in use. "
    cases = {
        "memory_taken": ("20.00 MiB", other, "3.50 GiB", "3.00 GiB", "80.00 MiB"),
        "request_too_large": ("186.00 GiB", "", "3.50 GiB", "3.00 GiB", "80.00 MiB"),
        "fragmentation": ("2.00 GiB", "", "23.50 GiB", "18.00 GiB", "5.00 GiB"),
    }
    # A limit of the process's own: if it is reached, what others use doesn't matter.
    sizes = "20.00 MiB", other, "3.50 GiB", "3.00 GiB", "80.00 MiB"
    for allowed, cause in {"3.09": "out_of_memory", "9.00": "memory_taken"}.items():
        limited = message.replace("Of the", f"{allowed} GiB allowed; Of the")
        answer = explain(limited.format(*sizes))
        assert slug(answer) == cause
        assert f"{allowed} GiB allowed" in answer.why
    # In a container, torch lists its own process as another one.
    listed = message.replace(
        "Including non-PyTorch memory, this process has {} memory in use. ", "{}"
    )
    own = "Process 7 has 23.60 GiB memory in use. "
    assert "{}{}Of the" in listed
    answer = explain(listed.format("2.00 GiB", own, "", "22.90 GiB", "80.00 MiB"))
    assert slug(answer) == "out_of_memory"
    hint = " If large, try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
    for cause, sizes in cases.items():
        assert slug(explain(message.format(*sizes) + hint)) == cause


@pytest.mark.parametrize(
    ("gpu", "cause", "build"),
    [
        ("Tesla P100-PCIE-16GB with CUDA capability sm_60", "gpu_too_old", "cu126"),
        ("NVIDIA GeForce RTX 5090 with CUDA capability sm_120", "gpu_too_new", "cu130"),
    ],
)
def test_the_gpu_decides_which_build_to_install(gpu, cause, build):
    answer = explain(f"{gpu} is not compatible with the current PyTorch installation.")
    assert slug(answer) == cause
    assert f"/whl/{build}" in answer.change


@pytest.mark.parametrize(
    ("shapes", "cause", "change"),
    [
        ("1792x28 and 784x128", "not_flattened", "(N, 784)"),
        ("64x9216 and 4096x128", "shapes_multiplied", "nn.Linear(9216, 128)"),
    ],
)
def test_the_shapes_tell_what_to_write(shapes, cause, change):
    answer = explain(
        f"RuntimeError: mat1 and mat2 shapes cannot be multiplied ({shapes})"
    )
    assert slug(answer) == cause
    assert change in answer.change


HOW = {
    "I only want to train the last layer, how do I keep the rest as it is?": "freezing",
    "Is it OK to call torch.cuda.empty_cache() after every step?": "empty_cache_calls",
    "How can I tell which line of my PyTorch training is slow?": "profiling",
    "Does the GPU memory of two cards add up if the model is too large for one?": (
        "memory_of_several"
    ),
    "How do I keep batch norm's statistics fixed while I fine-tune?": (
        "batch_norm_frozen"
    ),
    "Why does each log line of torchrun appear once for each GPU?": "printed_by_ranks",
    "How do I get a gradient through a hard threshold in PyTorch?": (
        "not_differentiable"
    ),
}


@pytest.mark.parametrize(("question", "cause"), HOW.items())
def test_a_question_how_is_not_answered_with_an_error(question, cause):
    assert slug(explain(question)) == cause


def test_what_people_did_themselves_is_no_message():
    killed = "python train.py\nKilled"
    assert slug(explain(killed)) == "host_memory"
    done = "I killed the Python process, but the GPU memory is still used."
    assert slug(explain(done)) in ("process_gone", "device_busy")


def test_of_two_messages_in_a_sentence_the_one_that_the_question_is_about_counts():
    mps = (
        "An op isn't implemented on my mac: not currently supported on the MPS backend"
    )
    other = "indices should be either on cpu or on the same device as the indexed"
    answer = explain(f"{mps}. Elsewhere, `{other} tensor`. What can I use?")
    assert slug(answer) == "mps_operator"
    assert answer.others[0].slug == "two_devices"


def test_a_remedy_that_was_tried_in_vain_is_not_the_answer():
    question = "torch.compile is slow at the first iteration. Compiling takes minutes."
    assert slug(explain(question)) == "compile_warmup"
    tried = explain(f"{question} I have given it a longer warm-up.")
    assert "compile_warmup" not in {slug(tried), *(c.slug for c in tried.others)}
    question = "The same input gives another output each time I call the same model."
    assert slug(explain(question)) == "no_eval_mode"
    tried = explain(f"{question} I use model.eval(), but that is not enough.")
    assert "no_eval_mode" not in {slug(tried), *(c.slug for c in tried.others)}


SENTENCE = (
    "I train a segmentation network for satellite pictures with a copy of your code. "
    "Each time, {} stops me, and I can't tell the reason from what I see here."
)


@pytest.mark.parametrize(
    "message",
    [
        "An attempt has been made to start a new process before the current process "
        "has finished its bootstrapping phase",
        "Torch not compiled with CUDA enabled",
    ],
)
def test_what_a_person_calls_the_error_is_certain_only_if_it_is_quoted(message):
    told, quoted = (explain(SENTENCE.format(m)) for m in (message, f'"{message}"'))
    assert slug(told) == slug(quoted)
    assert (told.kind, quoted.kind) == ("likely", "sure")


def test_an_unrelated_error_hides_no_clear_question():
    error = "AttributeError: 'NoneType' object has no attribute 'data'"
    question = "How can I backpropagate through argmax? The gradient is missing."
    assert slug(explain(f"{question}\n\n{error}")) == "not_differentiable"
    assert explain(f"I read my file and print it.\n\n{error}").cause is None


def test_a_message_that_is_not_known_is_no_reason_to_deny_that_a_device_matters():
    error = "AttributeError: 'dict' object has no attribute 'foo' of train.py"
    assert "neither a GPU" in explain(f"{error}\nIn training, with my loader.").say
    for name in ("on the GPU", "with triton", "under ROCm"):
        answer = explain(f"{error}\nIn training, {name}.")
        assert answer.cause is None
        assert answer.kind == "unknown"
        assert "neither" not in answer.say


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("I have a graphics card.", True),
        ("I do not have a separate graphics card.", False),
        (
            "My laptop doesn't have a graphics card, but my PC has a graphics card.",
            True,
        ),
        ("I don't have a problem with the graphics card.", True),
        ("I'm not using the big graphics card of the lab.", False),
        ("I know about the second graphics card.", False),
    ],
)
def test_what_a_person_does_not_have_shows_nothing(text, holds):
    assert Details(text, "").holds("graphics_card") == holds


GROWS = """it increases steadily|its steady increase|it keeps growing|its slow growth
it rises|its constant rise|it went up and up|it accumulates
its accumulation|it creeps up"""


@pytest.mark.parametrize("form", re.split(r"[|\n]", GROWS))
def test_all_forms_of_a_word_are_a_sign(form):
    text = f"CUDA out of memory after two epochs. I watched the GPU memory: {form}."
    answer = explain(text)
    assert slug(answer) == "memory_grows"


LOOP = """The loss becomes huge in the second epoch.
for x, y in loader:
    {}loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()"""
DRAWS = """I set the seed, but the numbers are random on my GPU.
torch.manual_seed(7)
torch.cuda.manual_seed_all(7)
print(torch.randn(2))
print(torch.randn(2))"""
KNOWN = {
    LOOP.format(""): ("no_zero_grad", "zero_grad()"),
    DRAWS: ("not_reproducible", "torch.manual_seed(0)  # again"),
    "Training with Accelerator() on four GPUs is stuck after the last batch. My data "
    "is an IterableDataset in a DataLoader.": ("iterable_ranks", "islice"),
    "I have a Ryzen 7 5700G and no other card. With the ROCm build, "
    "torch.cuda.is_available() is False.": ("rocm_apu", "HSA_OVERRIDE"),
    "Where do I choose the CPU for SentenceTransformer? I trained it on a GPU.": (
        "sentence_transformer_device",
        'device="cpu"',
    ),
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\nvLLM with "
    "a small model, and another process uses half of the GPU.": (
        "vllm_memory",
        "--gpu-memory-utilization",
    ),
    "AttributeError: 'NoneType' object has no attribute 'cquantize_blockwise_cpu_fp32'"
    "\nIt works on the GPU.": ("bitsandbytes", "--upgrade bitsandbytes"),
    "With the same total batch, nn.DataParallel reaches an accuracy 3 points higher "
    "than DistributedDataParallel on four GPUs.": ("dp_and_ddp", "set_epoch"),
    "The training loss fell nicely for 30 epochs. Then it exploded in a few steps.": (
        "late_explosion",
        "clip_grad_norm_",
    ),
    "ModuleNotFoundError: No module named 'torch'\nI ran sudo python setup.py build": (
        "torch_missing",
        "without sudo",
    ),
    "AssertionError: Torch not compiled with CUDA enabled\n"
    "I don't want to install CUDA.": (
        "cpu_build",
        'torch.device("cpu")',
    ),
    "How can I use my two GPUs for inference? Is it device_map in from_pretrained?": (
        "memory_of_several",
        "device_map",
    ),
}


@pytest.mark.parametrize(
    ("text", "cause", "change"),
    [
        (
            "On a Jetson TX2, fp16 inference with torch isn't twice as fast as fp32.",
            "amp_no_gain",
            "jetson_clocks",
        ),
        (
            "Only 1.3x speedup with autocast on an A100, I expected 2x.",
            "amp_no_gain",
            "channels_last",
        ),
        (
            "The matmul of two float32 matrices in torch differs by 0.002 between my "
            "RTX 3090 and the CPU.",
            "small_differences",
            'fp32_precision = "ieee"',
        ),
        (
            "The pow of a float32 tensor in torch differs in the 7th digit between CPU "
            "and CUDA.",
            "small_differences",
            "exact",
        ),
        (
            "Setting the workers value of the reader above 0 is much slower.",
            "workers_slow",
            "workers=0",
        ),
    ],
)
def test_the_card_and_the_size_of_an_effect_decide_what_a_question_gets(
    text, cause, change
):
    answer = explain(text)
    assert slug(answer) == cause
    assert change in answer.change


@pytest.mark.parametrize("text", KNOWN)
def test_what_is_said_beside_an_error_decides_its_remedy(text):
    cause, change = KNOWN[text]
    answer = explain(text)
    assert slug(answer) == cause
    assert change in answer.change


def test_a_loop_that_clears_the_gradients_is_not_blamed():
    cleared = LOOP.format("optimizer.zero_grad()\n    ")
    assert slug(explain(cleared)) != "no_zero_grad"
    assert explain(LOOP.format("")).kind == "likely"


@pytest.mark.parametrize(
    ("told", "kind", "last"),
    [
        ("", "sure", ".cpu().numpy()"),
        ("I have tried images.numpy() in another line, too.", "sure", ".cpu().numpy()"),
        ("I tried images.detach().cpu().numpy() already.", "likely", ".cpu().numpy()"),
    ],
)
def test_a_change_that_was_tried_is_not_certain(told, kind, last):
    line = 'File "train.py", line 7, in f\n    shown = images.numpy()\n'
    error = "TypeError: can't convert cuda:0 device type tensor to numpy"
    answer = explain(f"{line}{error}\n{told}")
    assert (answer.kind, answer.change) == (kind, f"images.detach(){last}")


def test_what_was_tried_comes_last():
    error = "the same seed gives different results on the gpu"
    first = explain(error).change.splitlines()[0]
    assert first.startswith("torch.manual_seed(0)")
    tried = explain(f"{error}. I have already set torch.manual_seed(0).").change
    assert tried.splitlines()[-2:] == [
        "# you have tried or excluded this, as you write:",
        first,
    ]


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


def test_the_end_of_a_text_without_bounds_is_read():
    log = "epoch 1 of 5, step 7\n" * (MOST_CHARACTERS // 20)
    assert slug(explain(f"{log}RuntimeError: CUDA out of memory.")) == "out_of_memory"


def test_a_garbled_message_is_none_of_a_device_that_the_text_does_not_name():
    message = "torch.sort is not supported on M1S"
    assert explain(message).cause is None
    assert slug(explain(f"On my Mac: {message}")).startswith("mps_")


def test_every_entry_knows_its_example_and_leads_somewhere():
    mistakes = tomllib.loads(Path("content/mistakes.toml").read_text("utf-8"))
    slugs = {name for entries in mistakes.values() for name in entries}
    pages = {path.stem.partition("_")[2] for path in Path("pages").glob("*_*.py")}
    for name, cause in knowledge().causes.items():
        answer = explain(cause.example)
        assert slug(answer) == name
        is_open = cause.open or knowledge().closer[name] or not cause.wordings
        assert answer.kind == "sure" or is_open, name
        kind, _, place = cause.see.partition(":")
        assert place in {"mistake": slugs, "page": pages}[kind], name
        assert cause.read.startswith("https://"), name
        assert not re.search(r"\{\w+\}", answer.change), name
