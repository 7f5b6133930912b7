"""What solves an exercise, in whatever form."""

import pytest

from core.script.exercises import MOST_CHARACTERS, load
from core.ui.course import LESSONS

EXERCISES = load()
ALSO_RIGHT = [
    ("Device", 'd = "cuda" if torch.cuda.is_available() else "cpu"\nm = Net().to(d)'),
    (
        "Device",
        "if torch.accelerator.is_available():\n"
        "    device = torch.accelerator.current_accelerator()\n"
        'else:\n    device = torch.device("cpu")\nmodel = Net().to(device)',
    ),
    ("Model", "model = Net().to(device)\nx = torch.rand(64, 784)\ny = model(x.to(d))"),
    (
        "Model",
        "model = Net()\nmodel.to(device)\nx = torch.rand(64, 784, device=device)\n"
        "y = model(x)",
    ),
    (
        "Evaluate",
        "def accuracy(model, test_loader, device):\n    correct = 0\n"
        "    model.train(False)\n    with torch.no_grad():\n"
        "        for images, labels in test_loader:\n"
        "            predicted = model(images.to(device)).argmax(dim=1)\n"
        "            correct += (predicted == labels.to(device)).sum()\n"
        "    return correct.item() / len(test_loader.dataset)",
    ),
    (
        "Compare",
        "torch.cuda.synchronize()\nt = time.time()\nstart = time.perf_counter()\n"
        "y = model(x)\ntorch.cuda.synchronize()\nprint(time.perf_counter() - start)",
    ),
    (
        "Speed",
        EXERCISES["Speed"]
        .code.replace("total = 0", "losses = []")
        .replace("total += loss.item()", "losses.append(loss.detach())")
        .replace("total / len(loader)", "torch.stack(losses).mean().item()"),
    ),
    (
        "Scale",
        EXERCISES["Scale"]
        .code.replace("sampler=sampler", "sampler=DistributedSampler(dataset)")
        .replace(
            "    for inputs", "    loader.sampler.set_epoch(epoch)\n    for inputs"
        ),
    ),
    (
        "Checkpoints",
        "model = Net()\nmodel.load_state_dict(torch.load('net.pt', device))",
    ),
    (
        "Mistakes",
        EXERCISES["Mistakes"].code.replace(
            "criterion(probabilities", "criterion(outputs"
        ),
    ),
]
STILL_WRONG = [
    ("Device", 'device = torch.device("cpu")\nmodel = Net().to(device)', "Ask torch"),
    (
        "Device",
        'd = torch.accelerator.current_accelerator() or "cpu"\nmodel = Net().to(d)',
        "check_available",
    ),
    ("Model", "model = Net()\nx = x.to(device)\ny = model(x)", "model has to be moved"),
    (
        "Train",
        EXERCISES["Train"].solution.replace(
            "    optimizer.zero_grad()\n    loss.backward()\n",
            "    loss.backward()\n    optimizer.zero_grad()\n",
        ),
        "Between",
    ),
    (
        "Compare",
        EXERCISES["Compare"].solution.partition("\n")[2],
        "Half right",
    ),
    (
        "Speed",
        EXERCISES["Speed"].code.replace("loss.item()", "loss"),
        "keeps the graph",
    ),
    (
        "Speed",
        EXERCISES["Speed"].code.replace("    total += loss.item()\n", ""),
        "added",
    ),
    (
        "Scale",
        EXERCISES["Scale"].solution.replace("set_epoch(epoch)", "set_epoch(0)"),
        "new one each time",
    ),
    (
        "Scale",
        EXERCISES["Scale"].code.replace(
            "        train_step", "        sampler.set_epoch(epoch)\n        train_step"
        ),
        "before its first batch",
    ),
    (
        "Checkpoints",
        EXERCISES["Checkpoints"].solution.replace('"cpu"', '"cuda"'),
        "only where",
    ),
    ("Mistakes", "loss = model(x)\nloss.backward()\noptimizer.step()", "cross entropy"),
]


def test_each_lesson_has_an_exercise():
    assert [*EXERCISES] == [each.title for each in LESSONS]


@pytest.mark.parametrize("title", EXERCISES)
def test_the_solution_solves_and_the_lines_do_not(title):
    exercise = EXERCISES[title]
    assert judge(exercise, exercise.solution).solved
    assert not judge(exercise, exercise.code).solved
    assert judge(exercise, exercise.solution).say == exercise.right


@pytest.mark.parametrize(("title", "text"), ALSO_RIGHT)
def test_other_solutions_solve_too(title, text):
    assert judge(EXERCISES[title], text).say == EXERCISES[title].right


@pytest.mark.parametrize(("title", "text", "said"), STILL_WRONG)
def test_what_is_still_wrong_is_said(title, text, said):
    verdict = judge(EXERCISES[title], text)
    assert not verdict.solved
    assert said in verdict.say


@pytest.mark.parametrize("text", ["", "def f(:", "x\0", "(" * 999, "x = 1\n" * 999])
def test_whatever_is_written_is_judged(text):
    verdict = judge(EXERCISES["Model"], text)
    assert not verdict.solved
    assert verdict.say.endswith(".")
    assert len("x = 1\n" * 999) > MOST_CHARACTERS


@pytest.mark.parametrize(
    "told", ["[Model", "[Model]\nask = 1", '[Model]\nask = ""', "x = 3"]
)
def test_a_file_with_a_mistake_is_told_by_its_name(tmp_path, told):
    file = tmp_path / "exercises.toml"
    file.write_text(told)
    with pytest.raises(ValueError, match=r"exercises\.toml can't be read"):
        load(file)


def test_a_goal_that_is_not_there_is_told(tmp_path):
    file = tmp_path / "exercises.toml"
    lines = [f'{key} = ""' for key in ("ask", "code", "solution", "right")]
    file.write_text("[Model]\n" + "\n".join(lines) + '\ngoals = ["be_fast"]')
    with pytest.raises(ValueError, match="be_fast"):
        load(file)
