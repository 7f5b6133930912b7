"""What the explainer reads of tracebacks and code: the line that fails, and names."""

import pytest

from tests.toolkit.explain.answers import slug
from to_device.explain.explainer import explain, paragraphs
from to_device.explain.report import read


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


TENSOR = "/opt/conda/lib/python3.12/site-packages/torch/_tensor.py"
QUOTED = {
    "a line below its file": f'File "{TENSOR}", line 102, in backward\n    {{}}\n',
    "a notebook's lines": f"{TENSOR} in backward(self)\n    101 \n--> 102     {{}}\n",
    "a signature": f"{TENSOR} in backward(self, {{}})\n    101     return\n",
}


@pytest.mark.parametrize("frame", QUOTED.values(), ids=QUOTED)
def test_what_a_library_calls_its_arguments_says_nothing(frame):
    own = (
        'Traceback (most recent call last):\n  File "train.py", line 7, in f\n    {}\n'
    )
    error = "RuntimeError: a variable was modified by an inplace operation"
    code = own.format("loss.backward()")
    alone = explain(f"{code}{error}")
    assert explain(code + frame.format("retain_graph") + error) == alone
    told = explain(own.format("loss.backward(retain_graph=True)") + error)
    assert told.change != alone.change


NUMPY = "TypeError: can't convert CUDA tensor to numpy. Use Tensor.cpu() first.\n"
BEST = "best = np.argmax(peak)"
ROW = "row = np.unravel_index(places, size)"


@pytest.mark.parametrize(
    "code",
    [
        f"peak = peak.detach().cpu().numpy() * scale\n{BEST}\n{ROW}",
        f"{BEST}\n{ROW}\nIt is in the last line.",
        f"{ROW}  # <-- fails here\n{BEST}",
        f"{ROW}  # error!\n{BEST}",
    ],
)
def test_without_a_traceback_a_name_is_one_that_can_be_to_blame(code):
    assert explain(NUMPY + code).change == "places.detach().cpu().numpy()"


def test_a_comment_about_the_code_points_at_no_line():
    told = explain(f"{NUMPY}{BEST}\n{ROW}  # here we look for the best one, or raise")
    assert (told.line, told.change) == ("", "peak.detach().cpu().numpy()")


def test_a_name_that_was_moved_already_is_not_the_one_that_was_not():
    error = "Expected all tensors to be on the same device, but found cuda:0 and cpu"
    assert "moved" not in explain(f"{error}\nmoved = x.to(device)\ny = f(moved)").change


ELSEWHERE = (
    "RuntimeError: Expected all tensors to be on the same device, cuda:0 and cpu"
)


@pytest.mark.parametrize("title", ["", f"{ELSEWHERE}\n\n"])
@pytest.mark.parametrize("file", ["/home/x/batch.py", r"E:\x\batch.py"])
def test_both_tensors_of_the_failing_line_are_named(title, file):
    code = f'File "{file}", line 26, in f\n    mask = mask + extra\n'
    answer = explain(f"{title}{code}{ELSEWHERE}")
    assert answer.where == "batch.py, line 26"
    assert "extra = extra.to(mask.device)" in answer.change


def test_a_call_that_was_replaced_is_no_device():
    error = "all tensors must be on the same device, mps and cpu"
    why = explain(f"I replaced .cuda() by .to('mps'): {error}").why
    assert "on mps and one on cpu" in why


def test_the_learners_line_tells_causes_of_one_message_apart():
    frame = 'File "train.py", line 3, in f\n    {}\n'
    message = "RuntimeError: Expected all tensors to be on the same device, but found"
    answer = explain(frame.format("optimizer.step()") + message)
    assert slug(answer) == "optimizer_before_move"
    assert answer.others[0].slug == "two_devices"
    answer = explain(frame.format("loss = model(x)") + message)
    assert (slug(answer), answer.others) == ("two_devices", ())


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


@pytest.mark.parametrize(
    "sentence",
    [
        "Frozen layers still behave in another way in model.train() than in eval()",
        "It is slow when I use the loader (the one with workers)",
        "Why is the output of the model not the same after model.eval()",
    ],
)
def test_a_sentence_that_names_calls_is_neither_a_frame_nor_code(sentence):
    assert read(f"{sentence}\nWhat is the reason for that?").sentences[0] == sentence


CODE = """\
print(loss, 'is the loss of the step')
fit(a)
for i in range(len(a)):
if not os.path.isdir(folder) and not a.is_there():
if a is not None and it is not in b:
with open(path) as file, lock(a) as my:
# of the items that are in the batch
\"\"\" how it is done in the paper
raise Missing('no file for this batch')
- Using the GPU in my script?: yes
The results on the CPU, with Colab:"""


def test_neither_code_nor_a_form_nor_a_caption_is_a_sentence():
    asked = "Why does it fail in this loop?"
    for code in CODE.splitlines():
        assert [*read(f"{asked}\na = 1\n{code}").sentences] == [asked], code
    said = """\
If I use two workers, this is what I get:
For the items in the second half, it is slow:
# Why is it so slow with my loader
While it is training, the GPU is not in use:
Return to the old build is what I do not want"""
    for sentence in said.splitlines():
        assert sentence in read(f"{asked}\n{sentence}\nIt is odd.").sentences


def test_what_is_polite_or_filled_into_a_form_is_no_sentence():
    asked = "Why does the loss of my network rise?"
    aside = """\
Hi everyone!
Thanks for your great work.
- [x] I have searched the issues and found no similar one.
Is debug build: No
PyTorch Version (e.g., 1.0): 1.5.1 is what it says
Any help will be great!
How can I solve this problem?"""
    for line in aside.splitlines():
        assert [*read(f"{asked}\n{line}\n{asked}").sentences] == [asked] * 2, line
    told = "Hi, I use two cards and the second one is not used."
    assert told in read(f"{told}\n{asked}").sentences


@pytest.mark.parametrize("start", ["2 GPUs are slower than one.", "7900 XTX hangs."])
def test_a_sentence_may_begin_with_a_number(start):
    assert start in read(f"{start}\n\nThis is on Linux, with a new driver.").sentences


@pytest.mark.parametrize(
    "lines",
    [
        ["     11 for the batch that is next", "---> 12 run the model on it"],
        ["|   0  the name of a card is here  |", "|   1  and the other one  |"],
    ],
)
def test_numbered_lines_are_no_sentences(lines):
    told = read("\n".join(["Why is it slow here, please?", *lines])).sentences
    assert told == ("Why is it slow here, please?",)
