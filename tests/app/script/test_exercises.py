import pytest

from core.jobs import code
from core.script.exercises import (
    FAILED,
    MOST_CHARACTERS,
    UNREAD,
    judge,
    load,
    request,
)
from core.ui.course import LESSONS

EXERCISES = load()
CODE = {title: exercise.code for title, exercise in EXERCISES.items()}
SOLUTION = {title: exercise.solution for title, exercise in EXERCISES.items()}
ANYWHERE = "It loads on one machine only"
PORTED, WRITTEN = "Port it", "Write it"
ACCELERATOR = 'torch.accelerator.current_accelerator(check_available=True) or "cpu"'
MAPPED = CODE[ANYWHERE].replace('"model.pt"', '"model.pt", map_location="cpu"')
CHOSEN = '"cuda" if torch.cuda.is_available() else "cpu"'
pytestmark = pytest.mark.usefixtures("unhurried")
ALSO_RIGHT = {
    "Device": [
        'd = "cuda" if torch.cuda.is_available() else "cpu"\nm = Net().to(d)',
        "if torch.accelerator.is_available():\n"
        "    device = torch.accelerator.current_accelerator()\n"
        'else:\n    device = torch.device("cpu")\nmodel = Net().to(device)',
        'device = torch.device("cuda")\nif not torch.cuda.is_available():\n'
        '    device = torch.device("cpu")\nmodel = Net().to(device)',
        'try:\n    torch.zeros(1, device="cuda")\n    device = "cuda"\n'
        'except (AssertionError, RuntimeError):\n    device = "cpu"\n'
        "model = Net().to(device)",
    ],
    "Model": [
        "model = Net().to(device)\nx = torch.rand(64, 784)\ny = model(x.to(device))",
        "model = Net()\nmodel.to(device)\nx = torch.rand(64, 784, device=device)\n"
        "y = model(x)",
        "torch.set_default_device(device)\nmodel = Net()\nx = torch.rand(64, 784)\n"
        "y = model(x)",
    ],
    "Evaluate": [
        "def accuracy(model, test_loader, device):\n    correct = 0\n"
        "    model.train(False)\n    with torch.no_grad():\n"
        "        for images, labels in test_loader:\n"
        "            predicted = model(images.to(device)).argmax(dim=1)\n"
        "            correct += (predicted == labels.to(device)).sum()\n"
        "    return correct.item() / len(test_loader.dataset)",
        SOLUTION["Evaluate"].replace(
            "predicted = outputs.argmax(dim=1)", "_, predicted = torch.max(outputs, 1)"
        ),
        CODE["Evaluate"]
        .replace("correct = 0", "torch.set_grad_enabled(False)\n    correct = 0")
        .replace("correct = 0", "model.train(False)\n    correct = 0"),
    ],
    "Compare": [
        "torch.cuda.synchronize()\nt = time.time()\nstart = time.perf_counter()\n"
        "y = model(x)\ntorch.cuda.synchronize()\nprint(time.perf_counter() - start)",
        "def sync():\n    torch.accelerator.synchronize()\n\nsync()\n"
        "began = time.perf_counter()\ny = model(x)\nsync()\n"
        "seconds = time.perf_counter() - began",
        "start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))\n"
        "start.record()\ny = model(x)\nend.record()\ntorch.cuda.synchronize()\n"
        "seconds = start.elapsed_time(end) / 1000",
    ],
    "Speed": [
        SOLUTION["Speed"].replace(" / 4", "").replace("loss.b", "(loss / 4).b"),
        "batches = list(loader)\n"
        "for k in range(0, 12, 4):\n"
        "    optimizer.zero_grad()\n"
        "    for inputs, labels in batches[k : k + 4]:\n"
        "        loss = criterion(model(inputs.to(device)), labels.to(device))\n"
        "        loss.backward(torch.tensor(0.25, device=device))\n"
        "    optimizer.step()",
    ],
    "Scale": [
        CODE["Scale"]
        .replace("sampler=sampler", "sampler=DistributedSampler(dataset)")
        .replace(
            "    for inputs", "    loader.sampler.set_epoch(epoch)\n    for inputs"
        ),
    ],
    "Checkpoints": [
        "model = Net()\nmodel.load_state_dict(torch.load('net.pt', device))",
        SOLUTION["Checkpoints"].replace(
            '"cpu"', '"cuda" if torch.cuda.is_available() else "cpu"'
        ),
    ],
    "Mistakes": [
        CODE["Mistakes"].replace("criterion(probabilities", "criterion(outputs"),
        CODE["Mistakes"]
        .replace("CrossEntropyLoss", "NLLLoss")
        .replace("softmax", "log_softmax"),
    ],
}
ALSO_RIGHT[PORTED] = [
    SOLUTION[PORTED]
    .replace(ACCELERATOR, f"torch.device({CHOSEN})")
    .replace("ANN().to(device)", "ANN()\nmodel.to(device)")
    .replace("model(features)", "model(features.to(device))")
    .replace("features, labels = features.to(device), labels.to(device)", "pass")
    .replace("criterion(outputs, labels)", "criterion(outputs, labels.to(device))")
    .replace("predicted == labels)", "predicted.cpu() == labels)"),
]
ALSO_RIGHT[WRITTEN] = [
    SOLUTION[WRITTEN]
    .replace(ACCELERATOR, CHOSEN)
    .replace("torch.no_grad()", "torch.inference_mode()")
    .replace("map_location=device", "'cpu', weights_only=True"),
    SOLUTION[WRITTEN]
    .replace("torch.save(model", "model.cpu()\ntorch.save(model")
    .replace(", map_location=device", ""),
    SOLUTION[WRITTEN]
    .replace("model = make().to(device)", "model = torch.compile(make().to(device))")
    .replace("shuffle=True", "shuffle=True, num_workers=2")
    .replace(
        "model.state_dict()", "{k: v.cpu() for k, v in model.state_dict().items()}"
    )
    .replace(", map_location=device", ""),
]
# To read a value, the CPU waits for the device.
ALSO_RIGHT["Compare"] = [
    *ALSO_RIGHT.get("Compare", []),
    *(
        "if torch.accelerator.is_available():\n    torch.accelerator.synchronize()\n"
        f"began = time.perf_counter()\ny = model(x)\n{read}\n"
        "seconds = time.perf_counter() - began"
        for read in ("y.cpu()", 'y.to("cpu")', "y.sum().item()")
    ),
]
_start, _end = (SOLUTION[WRITTEN].index(x) for x in ("model.eval()", "torch.save"))
_loop = SOLUTION[WRITTEN].index("for epoch")
BEFORE_TRAINING = (  # the evaluation
    SOLUTION[WRITTEN][:_loop]
    + SOLUTION[WRITTEN][_start:_end]
    + SOLUTION[WRITTEN][_loop:_start]
    + SOLUTION[WRITTEN][_end:]
)
# Answers, each with the machine that shows its first flaw, this flaw, and what else the
# learner is told: figures, names, the line that fails, and the line to change.
STILL_WRONG = {
    "Device": [
        (
            'device = torch.device("cpu")\nmodel = Net().to(device)',
            *("with", "place", "`cpu`", "`cuda:0`"),
        ),
        (
            'd = torch.accelerator.current_accelerator() or "cpu"\nmodel = Net().to(d)',
            *("without", FAILED, "Line 2:", "line 1."),
        ),
        ('x = "is_available cpu"\nmodel = Net()', "with", "place", "`cpu`"),
        (
            'device = "cuda" or "cpu"\nmodel = Net()\nmodel.to(device)',
            *("without", FAILED, "Line 3:", "line 1."),
        ),
    ],
    "Model": [
        (
            "model = Net()\nx = torch.rand(64, 784).to(device)\ny = model(x)",
            *("with", FAILED, "Line 3:", "line 1."),
        ),
        (
            CODE["Model"].replace("x.to(device)", "pass"),
            *("with", FAILED, "Line 5:", "line 3."),
        ),
        (
            CODE["Model"].replace("x.to(device)", 'x = x.to("cpu")'),
            *("with", FAILED, "Line 5:", "line 4."),
        ),
        (
            CODE["Model"].replace("x.to(device)", "x = x.cuda()"),
            *("without", FAILED, "Line 4:", "line 4."),
        ),
        (
            "model = Net()\nx = torch.rand(64, 784)\ny = model(x)",
            *("with", "output", "`(64, 10) on cpu`", "`(64, 10) on cuda:0`"),
        ),
    ],
    "Train": [
        (
            SOLUTION["Train"].replace("    optimizer.zero_grad()\n", ""),
            *("with", "weights"),
        ),
        (
            SOLUTION["Train"].replace(
                "    optimizer.zero_grad()\n    loss.backward()\n",
                "    loss.backward()\n    optimizer.zero_grad()\n",
            ),
            *("with", "trained"),
        ),
    ],
    "Evaluate": [
        (
            SOLUTION["Evaluate"].replace("@torch.inference_mode()\n", ""),
            *("with", "recorded"),
        ),
        (
            SOLUTION["Evaluate"].replace("model.eval()", "eval('1')"),
            *("with", "training"),
        ),
    ],
    "Compare": [
        (SOLUTION["Compare"].split("\n", 2)[2], "with", "start"),
    ],
    "Speed": [
        (SOLUTION["Speed"].replace(" / 4\n", "\n"), "with", "weights"),
        (SOLUTION["Speed"].replace("% 4", "% 3"), "with", "steps", " 4 ", " 3:"),
        (
            "x, y = (torch.cat(part) for part in zip(*loader))\n"
            "criterion(model(x.to(device)), y.to(device)).backward()",
            *("with", "largest", "192", "16"),
        ),
    ],
    "Scale": [
        (
            SOLUTION["Scale"].replace("set_epoch(epoch)", "set_epoch(0)"),
            *("with", "orders", " 3 ", " 1."),
        ),
        (
            CODE["Scale"].replace(
                "        train_step",
                "        sampler.set_epoch(epoch)\n        train_step",
            ),
            *("with", "orders", " 3 ", " 2."),
        ),
    ],
    "Checkpoints": [
        (
            SOLUTION["Checkpoints"].replace('"cpu"', '"mps"'),
            *("with", FAILED, "Line 2:"),
        ),
        *(
            (
                SOLUTION["Checkpoints"].replace('"cpu"', place),
                *("without", FAILED, "Line 2:", "line 2."),
            )
            for place in ('"cuda"', "None")
        ),
    ],
    "Mistakes": [
        (
            CODE["Mistakes"].replace(
                "outputs.softmax(dim=1)",
                "torch.exp(outputs) / torch.exp(outputs).sum(1, keepdim=True)",
            ),
            *("with", "weights"),
        ),
    ],
    PORTED: [
        (
            SOLUTION[PORTED].replace("ANN().to(device)", "ANN()"),
            *("with", FAILED, "Line 12:", "line 19."),
        ),
        (
            SOLUTION[PORTED]
            .replace("loss.detach()", "loss.item()")
            .replace("running_loss.item()", "running_loss"),
            *("with", "waits", "Line 33:"),
        ),
        (
            SOLUTION[PORTED].replace("+= loss.detach()", "+= loss"),
            *("with", "graph", "(`Line 33`)"),
        ),
        (SOLUTION[PORTED].replace("model.eval()", "pass"), "without", "evaluated"),
        (
            SOLUTION[PORTED].replace("        optimizer.step()\n", ""),
            *("without", "steps", " 30 ", " 0."),
        ),
        (
            SOLUTION[PORTED].replace(ACCELERATOR, '"cuda"'),
            *("without", FAILED, "Line 19:", "line 1."),
        ),
    ],
    ANYWHERE: [  # each fix has an answer of its own
        (CODE[ANYWHERE], "without", FAILED, "Line 5:", "line 5."),
        (MAPPED, "without", FAILED, "Line 9:", "line 8."),
        (MAPPED.replace('"cuda"', CHOSEN), "with", FAILED, "Line 13:", "line 12."),
    ],
    WRITTEN: [
        (
            SOLUTION[WRITTEN].replace("        optimizer.zero_grad()\n", ""),
            *("with", "clears"),
        ),
        (
            SOLUTION[WRITTEN].replace("+= loss.detach()", "+= loss"),
            *("with", "graph", "(`Line 23`)"),
        ),
        (
            SOLUTION[WRITTEN].replace("model.eval()", "pass"),
            *("with", "evaluation", ": `eval()`"),
        ),
        (
            SOLUTION[WRITTEN].replace("with torch.no_grad()", "if True"),
            *("with", "evaluation", ": `no_grad()`"),
        ),
        (
            SOLUTION[WRITTEN].replace('print(f"accuracy', 'str(f"accuracy'),
            *("with", "measured"),
        ),
        (BEFORE_TRAINING, "with", "evaluation", ": `all of test_ds`"),
        *(
            (
                SOLUTION[WRITTEN]
                .replace("test_ds, batch_size=64", f"test_ds, batch_size={size}")
                .replace("dim=1) == labels).sum()", "dim=1) == labels).float().mean()")
                .replace("/ len(test_ds)", f"/ {-(-168 // size)}"),
                *("with", "measured"),
            )
            for size in (32, 64, 100, 128)
        ),
    ],
}
FORGED = [  # none of these mends anything
    "print('Right: the script asks once what is there')",
    "facts = {'made': True, 'place': ['cuda:0']}",
    "import core.script.exercises as e\ne.same = lambda *_: True",
    "import os\nfor n in range(3, 64):\n    try: os.write(n, b'{}')\n"
    "    except OSError: pass",
    "import sys\nsys.exit(0)",
    "import os\nos._exit(0)",
    "while True: pass",
    "import torch\ntorch.equal = lambda *_: True",
    "raise SystemExit",
]


def test_each_lesson_has_an_exercise():
    assert {lesson.title for lesson in LESSONS} == {
        title for title, exercise in EXERCISES.items() if not exercise.lesson
    }


@pytest.mark.parametrize("title", EXERCISES)
def test_the_solution_solves_and_the_lines_do_not(title):
    exercise = EXERCISES[title]
    assert judge(title, exercise.solution, "here").say == exercise.right
    assert not judge(title, exercise.code, "here").solved


@pytest.mark.parametrize(
    ("title", "text"),
    [(title, text) for title in ALSO_RIGHT for text in ALSO_RIGHT[title]],
)
def test_other_solutions_solve_too(title, text):
    assert judge(title, text, "here").say == EXERCISES[title].right


@pytest.mark.parametrize(
    ("title", "text", "machine", "flaw", "told"),
    [
        (title, text, machine, flaw, told)
        for title in STILL_WRONG
        for text, machine, flaw, *told in STILL_WRONG[title]
    ],
)
def test_what_is_still_wrong_is_said(title, text, machine, flaw, told):
    verdict = judge(title, text, "here")
    assert not verdict.solved
    assert (verdict.machine, verdict.flaw) == (machine, flaw)
    for part in told:
        assert part in f"{verdict.say}\n\n{verdict.hint}"
    if flaw != FAILED:
        start = EXERCISES[title].say[flaw].partition("{")[0]
        assert start in verdict.say


STEPPED = ("device", "model", "loop", "waits")


@pytest.mark.parametrize(
    ("end", "passed"),
    [
        ("model =", ()),
        ("criterion =", ("device", "model")),
        ("model.eval()", STEPPED),
        ("torch.save", (*STEPPED, "evaluation", "measured")),
        ("loaded =", (*STEPPED, "evaluation", "measured", "save")),
    ],
)
@pytest.mark.parametrize("fails", [False, True])
def test_a_script_that_grows_is_ticked_off_part_by_part(end, passed, fails):
    text = SOLUTION[WRITTEN].partition(end)[0] + ("nowhere" if fails else "")
    verdict = judge(WRITTEN, text, "here")
    assert not verdict.solved
    assert verdict.passed == passed


@pytest.mark.parametrize("text", ["-" * 1_990 + "1", "f" + "()" * 990])
def test_code_that_is_nested_too_deeply_has_not_run_and_is_told_so(text):
    report, _ = code.run(request(load()["Train"], text, "with"), "here")
    assert report["failure"]["kind"] == "SyntaxError"
    verdict = judge("Train", text, "here")
    assert not verdict.solved
    assert (verdict.flaw, verdict.ran) == (FAILED, False)
    assert "SyntaxError" in verdict.say


@pytest.mark.parametrize(
    ("text", "ran"),
    [
        ("model.train(", False),
        ("if True:\nmodel.train()", False),
        ("#" * (MOST_CHARACTERS + 1), False),
        ("model.train()", True),
    ],
)
def test_what_is_not_read_as_python_is_no_try(text, ran):
    verdict = judge("Port it", text, "here")
    assert not verdict.solved
    assert verdict.ran == ran


def test_a_fact_that_cannot_be_compared_is_told():
    text = f"{SOLUTION['Speed']}\nsizes.append(10**400)"
    assert judge("Speed", text, "here").flaw == UNREAD


FOR = "for inputs, labels in loader:"
WITHOUT_END = "i = 0\nwhile i < 6:\n    inputs, labels = loader[i]"


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Model", f"while True: pass\n{SOLUTION['Model']}"),
        ("Mistakes", SOLUTION["Mistakes"].replace(FOR, WITHOUT_END)),
    ],
)
# On a busy machine, an interrupted process now and then aborts in torch's C++ code
# ("terminate called without an active exception"), and the sentence names SIGABRT.
@pytest.mark.flaky(reruns=2)
def test_an_endless_loop_is_reported(title, text, monkeypatch):
    monkeypatch.setattr(code, "SECONDS", 4.0)
    assert "stopped" in judge(title, text, "here").say


@pytest.mark.parametrize("text", ["", "def f(:", "x\0", "(" * 999, "x = 1\n" * 999])
def test_whatever_is_written_is_judged(text):
    verdict = judge("Model", text, "here")
    assert not verdict.solved
    assert verdict.say
    assert len("x = 1\n" * 999) > MOST_CHARACTERS


@pytest.mark.parametrize(
    "content", ["[Model", "[Model]\nask = 1", '[Model]\nask = ""', "x = 3"]
)
def test_a_file_with_a_mistake_is_named(tmp_path, content):
    file = tmp_path / "exercises.toml"
    file.write_text(content)
    with pytest.raises(ValueError, match=r"exercises\.toml"):
        load(file)


def test_a_missing_machine_is_reported(tmp_path):
    file = tmp_path / "exercises.toml"
    keys = ("ask", "code", "solution", "right", "before", "after")
    lines = [f'{key} = ""' for key in keys]
    file.write_text("[Model]\n" + "\n".join(lines) + '\nsay = {}\nmachines = ["a"]')
    with pytest.raises(ValueError, match=r"'a'.*'with'.*'without'"):
        load(file)


@pytest.mark.parametrize("text", FORGED)
def test_nothing_is_gained_by_telling_the_judge_what_to_say(text, monkeypatch):
    monkeypatch.setattr(code, "SECONDS", 3.0)
    verdict = judge("Device", f"{text}\n{EXERCISES['Device'].code}", "here")
    assert not verdict.solved
