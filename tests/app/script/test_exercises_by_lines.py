"""Which lines of an exercise are right, held against what its code does when it runs.

An answer here says, for each of the exercise's places, what it changes there: the new
text of a line, "" if the line goes, or a text behind a number and a half for a line
that is missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

import pytest

from core.script.exercises import judge, judge_lines, load

EXERCISES = load()
BY_LINES = [title for title, exercise in EXERCISES.items() if exercise.code]
STOPS, SLOW = "It stops with an error", "It is slow and fills memory"
ANYWHERE, PORTED = "It loads on one machine only", "Port it"
pytestmark = pytest.mark.usefixtures("unhurried")
Edits = Mapping[float, str]
THERE = 'torch.accelerator.current_accelerator(check_available=True) or "cpu"'
CHOSEN = f"device = {THERE}"
CUDA_OR_CPU = 'device = "cuda" if torch.cuda.is_available() else "cpu"'
WAIT = "if torch.accelerator.is_available(): torch.accelerator.synchronize()"
BATCH = "        features, labels = features.to(device), labels.to(device)"
# An answer is a list of what it changes at each place, in the order of `places`.
RIGHT: Mapping[str, Sequence[Sequence[Edits]]] = {
    "Device": [[{1: CHOSEN}], [{1: CUDA_OR_CPU}]],
    "Model": [
        [{4: "x = x.to(device)"}],
        [{3: "x = torch.rand(64, 784, device=device)"}],
        [{3: "x = torch.rand(64, 784).to(device)", 4: ""}],
        [{4: "", 5: "y = model(x.to(device))"}],
        [{5: "y = model(x.to(device))"}],
        [{3.5: "x = x.to(device)", 4: ""}],
        [{4.5: "x = x.to(device)"}],
    ],
    "Train": [
        [
            {1.5: "model.to(device)", 3: ""},
            {6.5: "    optimizer.zero_grad()"},
        ],
        [
            {
                2: "model.to(device)",
                3: "optimizer = torch.optim.Adagrad(model.parameters())",
            },
            {8.5: "    optimizer.zero_grad()"},
        ],
        [{1: "model = Net().to(device)"}, {4.5: "    optimizer.zero_grad()"}],
        [
            {1: "model = Net().to(device)", 3: ""},
            {5.5: "    optimizer.zero_grad()"},
        ],
        [
            {
                2: "",
                3.5: "optimizer = torch.optim.Adagrad(model.parameters())",
            },
            {7: "    optimizer.zero_grad()\n    loss.backward()"},
        ],
        [
            {1.5: "model.to(device)"},
            {8: "    optimizer.step()\n    model.zero_grad()"},
        ],
    ],
    "Evaluate": [
        [{1.5: "    model.eval()"}, {0.5: "@torch.inference_mode()"}],
        [{2.5: "    model.eval()"}, {0.5: "@torch.no_grad()"}],
        [
            {1.5: "    model.train(False)"},
            {
                3: "    with torch.no_grad():\n     for images, labels in test_loader:",
            },
        ],
        [
            {2: "    model.eval()\n    correct = 0"},
            {
                4: "        with torch.no_grad():\n"
                "            outputs = model(images.to(device))",
            },
        ],
    ],
    "Compare": [
        [{0.5: WAIT}, {2.5: WAIT}],
        [{1: f"{WAIT}\nbegan = time.perf_counter()"}, {2.5: "y.cpu()"}],
        [{0.5: WAIT}, {2: "y = model(x).cpu()"}],
        [
            {
                1: "start, end = (torch.cuda.Event(enable_timing=True) for _ in (1, 2))"
                "\nstart.record()"
            },
            {
                3: "end.record()\ntorch.cuda.synchronize()\n"
                "seconds = start.elapsed_time(end)"
            },
        ],
    ],
    "Speed": [
        [
            {1: "for i, (inputs, labels) in enumerate(loader):"},
            {3: "    loss = criterion(outputs, labels.to(device)) / 4"},
            {4: ""},
            {6: "    if i % 4 == 3: optimizer.step(); optimizer.zero_grad()"},
        ],
        [
            {1: "for i, (inputs, labels) in enumerate(loader, 1):"},
            {5: "    (loss / 4).backward()"},
            {4: "    if i % 4 == 1: optimizer.zero_grad()"},
            {6: "    if i % 4 == 0: optimizer.step()"},
        ],
        [
            {0.5: "i = -1"},
            {3.5: "    loss = loss / 4"},
            {4: "    i += 1\n    if i % 4 == 0: optimizer.zero_grad()"},
            {5.5: "    if i % 4 < 3: continue"},
        ],
    ],
    "Scale": [
        [{3.5: "    sampler.set_epoch(epoch)"}],
        [{3: "for epoch in range(epochs):\n    sampler.set_epoch(epoch)"}],
        [
            {
                1: "",
                2: "",
                3.5: "    sampler = DistributedSampler(dataset, seed=epoch)\n"
                "    loader = DataLoader(dataset, batch_size=32, sampler=sampler)",
            }
        ],
    ],
    "Checkpoints": [
        [{2: 'state = torch.load("net.pt", map_location="cpu")'}],
        [{2: "", 3: 'model.load_state_dict(torch.load("net.pt", "cpu"))'}],
    ],
    "Mistakes": [
        [{4: "", 5: "    loss = criterion(outputs, labels.to(device))"}],
        [{5: "    loss = criterion(outputs, labels.to(device))"}],
        [{4: "    probabilities = outputs"}],
        [
            {
                1: "criterion = nn.NLLLoss()",
                4: "    probabilities = outputs.log_softmax(dim=1)",
            }
        ],
        [
            {
                1: "criterion = nn.NLLLoss()",
                5: "    loss = criterion(probabilities.log(), labels.to(device))",
            }
        ],
    ],
    STOPS: [
        [
            {11: "criterion = nn.CrossEntropyLoss(weight=weight).to(device)"},
            {17: "    inputs = inputs.to(device)"},
            {17.5: "    targets = targets.to(device)"},
        ],
        [
            {11: "criterion = nn.CrossEntropyLoss(weight=weight.to(device))"},
            {18: "    outputs = model(inputs.to(device))"},
            {19: "    loss = criterion(outputs, targets.to(device))"},
        ],
        [
            {11.5: "criterion.to(device)"},
            {17: "    inputs = inputs.to(device)"},
            {19: "    loss = criterion(outputs, targets.to(device))"},
        ],
        [
            {10: "weight = torch.ones(10, device=device)"},
            {5: "images = torch.rand(256, 784, device=device)"},
            {6: "labels = torch.randint(0, 10, (256,)).to(device)"},
        ],
        [
            {10.5: "weight = weight.to(device)"},
            {15: "    inputs = images[start : start + 64].to(device)", 17: ""},
            {16: "    targets = labels[start : start + 64].to(device)"},
        ],
        [
            {10: "weight = torch.ones(10).to(device)"},
            {6.5: "images = images.to(device)"},
            {6.5: "labels = labels.to(device)"},
        ],
        [
            {10: "weight = torch.ones(10, device=device)"},
            {15.5: "    inputs = inputs.to(device)", 17: ""},
            {16.5: "    targets = targets.to(device)"},
        ],
        [
            {10: "weight = torch.ones(10, device=device)"},
            {17: "    inputs = inputs.to(device)"},
            {18.5: "    targets = targets.to(device)"},
        ],
    ],
    SLOW: [
        [
            {23: "    correct += (outputs.argmax(dim=1) == targets).sum()"},
            {22: "    losses.append(loss.detach())"},
        ],
        [
            {
                23: "    correct += (outputs.argmax(dim=1) == targets).sum()",
                25: "print(float(correct) / 512)",
            },
            {22: "    losses.append(loss.detach())"},
        ],
        [
            {
                13: "correct = torch.zeros((), device=device)",
                23: "    correct += (outputs.argmax(dim=1) == targets).sum()",
                25: "print(correct.item() / 512)",
            },
            {
                12: "total = torch.zeros((), device=device)",
                22: "    total += loss.detach()",
                24: "print(total.item() / 8)",
            },
        ],
        [
            {
                13: "hits = []",
                23: "    hits.append(outputs.argmax(dim=1) == targets)",
                25: "print(torch.cat(hits).float().mean().item())",
            },
            {21.5: "    loss = loss.detach()"},
        ],
    ],
    ANYWHERE: [
        [
            {5: 'state = torch.load("model.pt", map_location="cpu")'},
            {8: CHOSEN},
            {12: "    x = torch.rand(3, 4).to(device)"},
        ],
        [
            {5: 'state = torch.load("model.pt", map_location="cpu")'},
            {8: CUDA_OR_CPU},
            {13: "    answers = model(x.to(device)).argmax(dim=1)"},
        ],
        [
            {5: 'state = torch.load("model.pt", map_location=device)'},
            {3.5: CHOSEN, 8: ""},
            {12.5: "    x = x.to(device)"},
        ],
        [
            {5: 'state = torch.load("model.pt", map_location=device)'},
            {4.5: CHOSEN, 8: ""},
            {12: "    x = torch.rand(3, 4, device=device)"},
        ],
        [
            {
                5: "",
                6: 'model.load_state_dict(torch.load("model.pt", map_location="cpu"))',
            },
            {8: CHOSEN},
            {11.5: "    torch.set_default_device(device)"},
        ],
    ],
    PORTED: [
        [
            {0.5: CHOSEN},
            {17: "model = ANN().to(device)"},
            {24.5: BATCH},
            {
                30: "        running_loss += loss.detach()",
                31: '    print("loss", running_loss.item() / len(train_loader))',
            },
            {36.5: BATCH},
        ],
        [
            {13.5: CUDA_OR_CPU},
            {18.5: "model.to(device)"},
            {
                25: "        outputs = model(features.to(device))",
                26: "        loss = criterion(outputs, labels.to(device))",
            },
            {30: "        running_loss += loss.detach()"},
            {
                37: "        outputs = model(features.to(device))",
                39: "        correct += (predicted == labels.to(device)).sum().item()",
            },
        ],
        [
            {16.5: CHOSEN},
            {17.5: "model.to(device)"},
            {24.5: BATCH},
            {
                23: "    running_loss = torch.zeros((), device=device)",
                30: "        running_loss += loss.detach()",
            },
            {
                37: "        outputs = model(features.to(device))",
                38: "        predicted = outputs.argmax(dim=1).cpu()",
            },
        ],
        [
            {17.5: CHOSEN},
            {17.5: "model.to(device)"},
            {24.5: BATCH},
            {30: "        running_loss += loss.detach()"},
            {37: "        outputs = model(features.to(device)).cpu()"},
        ],
        [
            {12.5: CHOSEN},
            {19.5: "model.to(device)"},
            {24.5: BATCH},
            {30: "        running_loss += loss.detach()"},
            {
                36.5: BATCH,
                34: "correct, total = torch.zeros((), device=device), 0",
                39: "        correct += (predicted == labels).sum()",
                41: 'print(f"Test accuracy: {correct.item() / total:.4f}")',
            },
        ],
    ],
}
# Lines that somebody chooses who has overlooked or misunderstood something.
WRONG = {
    "Device": [[2]],
    "Model": [[1], [2], [2, 4], [1, 2, 3, 4, 5]],
    "Train": [[2, 3], [1, 3], [7], [8], range(1, 9)],
    "Evaluate": [[1], [2], [4], [6, 7], [4, 6]],
    "Compare": [[2], [3], [1], [2, 3]],
    "Speed": [[6], [1, 6], [1, 3, 6], [1, 4, 6], [1, 3, 4], [3, 4, 6], [1, 2, 3, 4, 6]],
    "Scale": [[1], [2], [5], [1, 2]],
    "Checkpoints": [[1], [3], [1, 3]],
    "Mistakes": [[1], [3], [6], [1, 6], [4, 5, 7]],
    STOPS: [[10, 17], [11, 17], [17], [9, 17, 19], [11, 15], [4], [11, 17, 19, 22]],
    SLOW: [
        [22],
        [23],
        [22, 25],
        [23, 25],
        [24, 25],
        [15, 16, 22, 23],
        [22, 23, 21, 14],
    ],
    ANYWHERE: [[5, 8], [8, 12], [5, 12], [6, 8, 12], [5, 8, 12, 14]],
    PORTED: [
        [17],
        [17, 25, 30, 37],
        [1, 17, 26, 30, 39],
        [1, 17, 24, 31, 36],
        [1, 17, 24, 30],
        [1, 17, 24, 30, 36, 27],
        [1, 9, 24, 30, 36],
        [14, 15, 16, 17, 18, 19, 24, 25, 30, 36, 37],
    ],
}
ANSWERS = [(title, answer) for title in RIGHT for answer in RIGHT[title]]


def text(title: str, answer: Sequence[Edits]) -> str:
    """The code of this answer."""
    lines = dict[float, str](enumerate(EXERCISES[title].code.splitlines(), 1))
    for number, new in ((n, new) for edits in answer for n, new in edits.items()):
        while number % 1 and number in lines:
            number += 0.01
        lines[number] = new
    return "\n".join(lines[number] for number in sorted(lines))


def chosen(title: str, answer: Sequence[Edits]) -> Iterator[set[int]]:
    """Each way to choose the lines of this answer, as the page asks for them.

    A missing line is a line on one of the two sides of its place, and one that isn't
    chosen for something else.
    """
    numbers = [number for edits in answer for number in edits]
    changed = {int(number) for number in numbers if not number % 1}
    last = len(EXERCISES[title].code.splitlines())
    gaps = sorted({number for number in numbers if number % 1})
    free = [
        [
            (*side,)
            for side in combinations(
                {int(gap), int(gap) + 1} & {*range(1, last + 1)} - changed,
                numbers.count(gap),
            )
        ]
        or [()]
        for gap in gaps
    ]
    for sides in product(*free):
        beside = [line for side in sides for line in side]
        if len({*beside}) == len(beside):
            yield changed.union(beside)


def test_every_exercise_with_lines_has_right_and_wrong_ones_here():
    assert {*RIGHT} == {*WRONG} == {*BY_LINES}
    assert all(len(answer) == len(EXERCISES[t].places) for t, answer in ANSWERS)


@pytest.mark.parametrize(("title", "answer"), ANSWERS)
def test_the_lines_of_code_that_is_right_are_right(title, answer):
    exercise = EXERCISES[title]
    assert judge(title, text(title, answer), "here").say == exercise.right
    ways = [*chosen(title, answer)]
    assert ways
    for picked in ways:
        assert judge_lines(exercise, picked).solved, sorted(picked)


@pytest.mark.parametrize("title", BY_LINES)
def test_an_answer_without_one_of_its_changes_is_wrong(title):
    exercise, (answer, *_) = EXERCISES[title], RIGHT[title]
    if len(answer) > 1:
        for i in range(len(answer)):
            left = [*answer[:i], *answer[i + 1 :]]
            assert not judge(title, text(title, left), "here").solved
            for picked in chosen(title, left):
                verdict = judge_lines(exercise, picked)
                assert not verdict.solved, sorted(picked)
                assert f"{len(left)} of {len(answer)}" in verdict.say


@pytest.mark.parametrize(("title", "picked"), [(t, p) for t in WRONG for p in WRONG[t]])
def test_lines_that_leave_a_mistake_or_mend_none_are_wrong(title, picked):
    verdict = judge_lines(EXERCISES[title], picked)
    assert not verdict.solved
    assert "1 of 1" not in verdict.say


@pytest.mark.parametrize("title", BY_LINES)
def test_only_a_line_that_no_right_answer_changes_can_stay(title):
    exercise = EXERCISES[title]
    (most, *_), kept = chosen(title, RIGHT[title][0]), 0
    changed = {
        line for answer in RIGHT[title] for way in chosen(title, answer) for line in way
    }
    for line in range(1, len(exercise.code.splitlines()) + 1):
        if line not in most:
            is_needless = f"{line} can stay" in judge_lines(exercise, [line]).say
            kept += is_needless
            assert is_needless == (not judge_lines(exercise, {*most, line}).solved)
            assert not (is_needless and line in changed)
    assert kept or title in ("Device", "Train", "Evaluate", "Compare")


def test_a_line_counts_for_one_place_only():
    exercise = EXERCISES[PORTED]
    both = [at for at in exercise.places.values() if 17 in at]
    assert len(both) == 2
    assert exercise.places_found([17]) == ["move the model"]
    assert "a line of its own" in judge_lines(exercise, [17]).say
    assert len(exercise.places_found([17, 18])) == 2
