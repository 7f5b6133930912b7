"""core.ui.my_runs.listing: what runs are called, and what several say together."""

from dataclasses import fields, replace

import pytest

from core.config import RunConfig
from core.results import Epoch
from core.store.results import RunSummary
from core.ui.my_runs import listing


def run(id: str = "a", accuracy: float | None = 0.88, **more: object) -> RunSummary:
    """A finished run of the ANN, with its default settings where nothing is said."""
    settings = RunConfig.with_recipe(task="fashion-mnist", model="ann")
    known = dict.fromkeys(field.name for field in fields(RunSummary))
    known |= vars(settings) | dict(
        id=id,
        status="finished",
        message="",
        submitted=0.0,
        name="",
        hidden=False,
        withheld=False,
        device_name="A processor",
        seconds=10.0,
        accuracy=accuracy,
    )
    return RunSummary(**known | more)  # type: ignore[arg-type]


def names(runs: list[RunSummary]) -> list[str]:
    """What they are called, where they are their owner's first ones."""
    return listing.names(runs, {each.id: n for n, each in enumerate(runs, 1)})


def explained(runs: list[RunSummary]) -> list[str]:
    """The same with what tells them apart."""
    return listing.explained(runs, names(runs))


def finding(
    runs: list[RunSummary], samples: int = 0, *histories: tuple[Epoch, ...]
) -> str:
    """What is said of them; their epochs are not known if no histories are given."""
    return listing.finding(
        runs, names(runs), histories or ((),) * len(runs), samples=samples
    )


def epochs(*accuracies: float, seconds: float = 2.0) -> tuple[Epoch, ...]:
    """A history of epochs that took so long each."""
    return tuple(
        Epoch(number, number, 1.0, 1.0, 1.0, seconds, 1.0, test_accuracy=accuracy)
        for number, accuracy in enumerate(accuracies, 1)
    )


def test_a_run_is_called_by_what_was_changed() -> None:
    """Against its model's recipe; with the name that its visitor gave it."""
    assert listing.label(run()) == "default settings"
    assert listing.label(run(batch_size=256, epochs=1)) == "1 epoch · batch 256"
    assert listing.label(run(name="mine", batch_size=256)) == "mine · batch 256"


def test_runs_side_by_side_are_called_by_what_tells_them_apart() -> None:
    """With as few settings as do it; no two are called the same."""
    first, second = run("a"), run("b", batch_size=256)
    assert explained([first, second]) == ["Run 1 · batch 64", "Run 2 · batch 256"]
    third = run("c", batch_size=256, epochs=2, seed=3)
    told = explained([first, second, third])
    assert told[:2] == ["Run 1 · 5 epochs · batch 64", "Run 2 · 5 epochs · batch 256"]
    assert told[2] == "Run 3 · 2 epochs · batch 256"
    twins = names([run("abcdefgh"), run("ijklmnop"), run("c", name="mine")])
    assert twins == ["Run 1", "Run 2", "mine"]
    namesakes = names([run("a", name="mine"), run("b", name="mine")])
    assert namesakes == ["mine (run 1)", "mine (run 2)"]
    assert explained([run()]) == names([run()]) == ["Run 1"]


def test_auto_is_the_device_that_it_was() -> None:
    """A run on "auto" and one on "cpu" do not differ where there is only a CPU."""
    assert listing.differing([run(), run(device="cpu")]) == []
    card = run("b", device="cuda", device_name="A card")
    assert listing.differing([run(), card]) == ["device"]
    told = explained([run(), card])
    assert told == ["Run 1 · on A processor", "Run 2 · on CUDA"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "xyz"),
        ("GOOD", "y"),
        ("batch 256", "yz"),
        ("cnn", "z"),
        ("good cnn", ""),
        ("failed", "x"),
        ("z", ""),  # an id, which nobody sees
    ],
)
def test_a_search_finds_runs_that_have_all_words(text: str, found: str) -> None:
    """In their names, settings and status, whatever their case."""
    runs = [
        run("x", status="failed"),
        run("y", name="the good one", batch_size=256),
        run("z", model="cnn", batch_size=256),
    ]
    assert "".join(each.id for each in listing.search(runs, text)) == found


def test_the_frontier_has_the_runs_that_none_beats_in_both() -> None:
    """Quicker and better: what is as good but slower is beaten."""
    runs = [
        run("slow", 0.90, seconds=20.0),
        run("best", 0.92, seconds=30.0),
        run("quick", 0.80, seconds=1.0),
        run("worse", 0.79, seconds=2.0),
        run("same", 0.90, seconds=25.0),
        run("ends badly", None, seconds=0.5),
    ]
    assert listing.frontier(runs) == ["quick", "slow", "best"]
    assert listing.frontier([]) == []


def test_the_finding_names_the_fastest_and_the_most_accurate() -> None:
    """With what each reached, and in how many seconds."""
    runs = [run("a", 0.884, seconds=9.8), run("b", 0.879, seconds=3.1, batch_size=256)]
    assert finding(runs) == (
        "**Run 2 is the fastest: 3.1 s. "
        "Run 1 is the most accurate: 88.40% accuracy in 9.8 s.**"
    )
    runs[0] = replace(runs[0], seconds=2.0)
    assert finding(runs) == (
        "**Run 1 is the fastest and the most accurate: 88.40% accuracy in 2.0 s.**"
    )
    assert finding(runs[:1]) == "**Run 1: 88.40% accuracy in 2.0 s.**"
    assert finding([run("a", None)]) == ""


def test_no_run_is_the_fastest_by_chance() -> None:
    """Not by what epochs of one run differ by, and not if another one learns sooner."""
    runs = [run("a", 0.9, seconds=29.1), run("b", 0.9, seconds=27.7)]
    assert "equally long: 27.7 s and 29.1 s." in finding(runs)
    runs[0] = replace(runs[0], seconds=40.0)
    even = epochs(0.5, 0.9, 0.9, 0.9, 0.9)
    assert "Run 2 is the fastest" in finding(runs, 0, even, even)
    uneven = tuple(
        replace(each, seconds=seconds)
        for each, seconds in zip(even, (2.0, 2.0, 2.0, 4.0, 4.0), strict=True)
    )
    assert "equally long" in finding(runs, 0, even, uneven)
    late = epochs(0.5, 0.5, 0.5, 0.5, 0.9)
    told = finding(runs, 0, even, late)
    assert "Run 1 was the first to reach 90%, after 4.0 s." in told
    assert "fastest" not in told


@pytest.mark.parametrize(("samples", "close"), [(1_000_000, False), (10_000, True)])
def test_what_chance_explains_is_too_close_to_call(samples: int, close: bool) -> None:
    """Half a percent is nothing on 10,000 images, and much on a million."""
    runs = [run("a", 0.884), run("b", 0.879, batch_size=256)]
    found = finding(runs, samples)
    assert ("too close to call" in found) is close
    assert ("most accurate" in found) is not close


def test_a_name_that_deceives_is_no_markdown_in_the_finding() -> None:
    """It stands in a code span."""
    deceiving = run(name="[evil](https://evil.example)")
    assert finding([deceiving]).startswith("**`[evil](https://evil.example)`")


def test_only_what_differs_is_in_the_table() -> None:
    """Then what came of it: accuracy, and seconds to what all have reached."""
    runs = [run("a", 0.86), run("b", 0.91, batch_size=256, augment=True)]
    histories = [epochs(0.7, 0.86), epochs(0.86, 0.91)]
    called = names(runs)
    rows = {
        row["Setting"]: list(row.values())[1:]
        for row in listing.differences(runs, called, histories)
    }
    assert rows == {
        "Batch size": ["64", "256"],
        "Flip images": ["off", "on"],
        "Test accuracy": ["86.00%", "91.00%"],
        "Seconds to 85%": ["4.0", "2.0"],
        "Total seconds": ["10.0", "10.0"],
    }
    assert listing.level([(), epochs(0.9)]) is None


def test_the_page_begins_with_the_newest_runs_that_can_be_compared() -> None:
    """Of one task, and finished, where there are such."""
    runs = [run("a", None), run("b"), run("c", task="sprites"), run("d"), run("e")]
    assert listing.first_choice(runs, 2) == ["b", "d"]
    assert listing.first_choice(runs[:1], 2) == ["a"]
    assert listing.beside(runs, runs[0], 3) == ["a", "b", "d"]
    assert listing.beside(runs, runs[2], 3) == ["c"]
