import pytest

from core.config import RunConfig
from core.runs import comparison, listing
from core.store.tables import RunSummary
from tests.app.store.made_up import summary


def run(id: str = "a", accuracy: float | None = 0.88, **more: object) -> RunSummary:
    """A finished run of the ANN, with its default settings where nothing is said."""
    row = dict(id=id, device_name="A processor", seconds=10.0, accuracy=accuracy)
    return summary(**vars(RunConfig.with_recipe()) | row | more)


def names(runs: list[RunSummary]) -> list[str]:
    return listing.names(runs, {run.id: n for n, run in enumerate(runs, 1)})


def explained(runs: list[RunSummary]) -> list[str]:
    return comparison.explained(runs, names(runs))


def test_a_run_is_called_by_what_was_changed() -> None:
    assert listing.label(run()) == "usual setting"
    assert listing.label(run(batch_size=256, epochs=1)) == "1 epoch · batch 256"
    assert listing.label(run(name="mine")) == "mine · usual setting"
    assert listing.label(run(name="mine", batch_size=256)) == "mine · batch 256"
    fast = vars(RunConfig.with_recipe(fast=True))
    assert listing.label(run(**fast)) == "fast setting"
    larger = fast | {"batch_size": 256}
    assert listing.label(run(**larger)) == "fast setting · batch 256"


def test_runs_side_by_side_are_called_by_as_few_settings_as_tell_them_apart() -> None:
    first, second = run("a"), run("b", batch_size=256)
    assert explained([first, second]) == ["Run 1 · batch 64", "Run 2 · batch 256"]
    third = run("c", batch_size=256, epochs=2, seed=3)
    labels = explained([first, second, third])
    assert labels[:2] == ["Run 1 · 5 epochs · batch 64", "Run 2 · 5 epochs · batch 256"]
    assert labels[2] == "Run 3 · 2 epochs · batch 256"
    assert explained([run()]) == names([run()]) == ["Run 1"]


def test_no_two_runs_have_one_name() -> None:
    assert names([run("a"), run("b"), run("c", name="mine")]) == [
        "Run 1",
        "Run 2",
        "mine",
    ]
    namesakes = names([run("a", name="mine"), run("b", name="mine")])
    assert namesakes == ["mine (run 1)", "mine (run 2)"]


def test_auto_is_the_device_that_it_was() -> None:
    assert comparison.differing([run(), run(device="cpu")]) == []
    card = run("b", device="cuda", device_name="A card")
    assert comparison.differing([run(), card]) == ["device"]
    assert explained([run(), card]) == ["Run 1 · on A processor", "Run 2 · on CUDA"]
    assert comparison.differing([run(device="auto"), run(device_name=None)]) == []


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", "xyz"),
        ("GOOD", "y"),
        ("batch 256", "yz"),
        ("cnn", "z"),
        ("good cnn", ""),
        ("failed", "x"),
        ("x", ""),  # an id, which nobody sees
    ],
)
def test_a_search_finds_runs_that_have_all_words(text: str, ids: str) -> None:
    runs = [
        run("x", status="failed"),
        run("y", name="the good one", batch_size=256),
        run("z", model="cnn", batch_size=256),
    ]
    assert "".join(run.id for run in listing.search(runs, text)) == ids


def test_the_frontier_has_the_runs_that_none_beats_in_both() -> None:
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


def test_the_page_begins_with_the_newest_runs_that_can_be_compared() -> None:
    runs = [run("a", None), run("b"), run("c", task="sprites"), run("d"), run("e")]
    assert listing.first_choice(runs, 2) == ["b", "d"]
    assert listing.first_choice(runs[:1], 2) == ["a"]
    assert listing.beside(runs, runs[0], 3) == ["a", "b", "d"]
    assert listing.beside(runs, runs[2], 3) == ["c"]
