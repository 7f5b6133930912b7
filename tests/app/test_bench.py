import json
import sys
from functools import partial
from statistics import median

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from core import bench, devices
from core.config import FAST, RECIPES
from core.data import datasets, sprites
from core.jobs import measurements
from core.lessons.compare import crossover, step_profile, timing_pitfalls
from core.lessons.speed import climb_result, copies, memory, roofline
from core.lessons.speed.loader_result import LoaderPlan
from core.measure.speedup import paired
from tests.process import HOUR
from to_device.sim import simulation

FEW = {1: 2}  # points, and repeats
COMPARISONS = ("races", "labs", "breakdowns", "crossovers", "climbs", "transfers")


@pytest.fixture(scope="module", autouse=True)
def not_simulated():
    """The benchmark's own process has no simulated accelerator."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "why_not", "Nobody has offered it.")
        yield


@pytest.fixture(scope="module")
def measured():
    """The comparisons of a very quick benchmark, on one core."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "RACE_STEPS", {"ann": 5})
        patch.setattr(bench, "QUICK_MAP_SECONDS", HOUR)
        patch.setattr(crossover, "coarse_to_fine", lambda *_: [(32, 16), (64, 16)])
        patch.setattr(step_profile, "STEPS", 4)
        patch.setattr(timing_pitfalls, "THREAD_SIZES", (16,))
        patch.setattr(devices, "usable_cores", lambda: 1)
        rungs = climb_result.RUNGS
        patch.setattr(climb_result, "RUNGS", (rungs[0], rungs[4]))
        # A busy moment may make the other one faster, of which there is no headline.
        patch.setattr(climb_result, "best", lambda results: results[-1])
        patch.setattr(bench, "QUICK_IMAGES", 1024)
        with devices.cpu_threads(1):
            cpu = torch.device("cpu")
            pieces = bench.pieces("sprites", cpu, repeats=1, quick=True)
            return bench.merged(pieces[name]() for name in COMPARISONS)


@pytest.mark.slow
def test_a_record_has_the_jobs_of_all_pages(measured, tmp_path):
    record = bench.record({"date": "2026-11-30", **measured}, tmp_path)
    assert '{"class": "core.lessons.compare.race_result:Race"' in record.read_text()
    jobs = {
        job.address.removeprefix("core.lessons."): job
        for job in measurements.recorded(tmp_path)
    }
    assert jobs.keys() == {
        *("compare.race:race", "compare.timing_pitfalls:measure"),
        *("compare.step_profile:measure", "compare.crossover:measure"),
        *("speed.climb:climb", "model.transfers:measure"),
    }
    del jobs["model.transfers:measure"]  # What copies cost has no rows.
    for job in jobs.values():
        results = job.value if isinstance(job.value, tuple) else (job.value,)
        assert [row for result in results for row in result.rows()]


@pytest.mark.slow
def test_the_ladder_has_a_direct_headline(measured, capsys):
    (climb,) = measured["climbs"]
    direct = climb["direct"]
    pairs = zip(direct["textbook_seconds"], direct["seconds"], strict=True)
    ratios = sorted(a / b for a, b in pairs)
    rows = [r for r in measured["figures"] if r["what"] == "epoch, directly compared"]
    middle = median(direct["textbook_seconds"]) / median(direct["seconds"])
    assert [[r["speedup_least"], r["speedup"], r["speedup_most"]] for r in rows] == [
        pytest.approx([min(ratios[0], middle), middle, max(ratios[-1], middle)])
    ]
    nothing = {"epoch": {}, "time_to_accuracy": None}
    bench.say({**nothing, "verdicts": measured["verdicts"]})
    output = capsys.readouterr().out
    assert climb_result.BY_NAME[direct["rung"]].title in output
    gain = paired(direct["textbook_seconds"], direct["seconds"])
    sentence = gain.sentence("the textbook loop", "the best rung", "pairs of epochs")
    assert sentence.replace("**", "") in output


@pytest.mark.slow
def test_a_dry_run_takes_no_multiple_of_the_scripts_own_time(capsys):
    measured = bench.dry_runs(["oom_retry"], 1)
    (run,) = measured["dry_runs"].values()
    (ratio,) = {*run["times_own"].values()}
    assert ratio == pytest.approx(run["seconds"] / run["own_seconds"])
    assert run["is_within"] == (run["seconds"] <= 3 * run["own_seconds"] + 2)
    bench.say({"epoch": {}, "time_to_accuracy": None, "verdicts": [], **measured})
    assert "oom_retry" in capsys.readouterr().out


def test_all_scripts_of_the_dry_runs_are_there():
    for name in bench.DRY_RUNS:
        assert (bench.SCRIPTS / f"right_{name}.py").exists()


def test_the_arithmetic_alone_is_that_of_an_epoch():
    work = bench.arithmetic(60_000, torch.device("cpu"))
    with FlopCounterMode(display=False) as counter:
        work()
    epoch = 60_000 * roofline.flops_per_image("ann")
    assert counter.get_total_flops() == pytest.approx(epoch, rel=0.05)


@pytest.fixture
def few_images(monkeypatch):
    """Some sprites in the place of Fashion-MNIST, and little patience."""
    train, test = sprites.draw(160, seed=0), sprites.draw(40, seed=1)
    few = datasets.Dataset("", (), datasets.Split(*train), datasets.Split(*test))
    monkeypatch.setattr(datasets, "load", lambda _: few)
    monkeypatch.setattr(bench, "MOST_EPOCHS", dict.fromkeys(bench.TARGETS, 2))


@pytest.mark.slow
@pytest.mark.usefixtures("few_images", "one_thread")
@pytest.mark.parametrize("target", [0.02, 1.01])
@pytest.mark.parametrize("model", bench.TARGETS)
def test_time_to_accuracy_counts_only_what_got_there(monkeypatch, model, target):
    monkeypatch.setitem(bench.TARGETS, model, target)
    times = bench.time_to_accuracy(model, torch.device("cpu"), range(2))
    runs = {name: times[name] for name in ("textbook", "default", "fast", "recipe")}
    epochs = {name: {run["epochs"] for run in tries} for name, tries in runs.items()}
    assert epochs == {
        "textbook": {1 if target < 1 else 2},
        "default": {RECIPES[model]["epochs"]},
        "fast": {FAST[model]["epochs"]},
        "recipe": {bench.SHORTEST[model].epochs},
    }
    for tries in runs.values():
        assert [run["seed"] for run in tries] == [0, 1] == list(range(times["n"]))
        assert all(0 <= run["test_accuracy"] <= 1 < 1 + run["seconds"] for run in tries)
    assert len(times["speedups"]) == 5
    for pair, ratio in times["speedups"].items():
        if target > 1:
            assert ratio is None
        else:
            name, _, base = pair.partition(" over ")
            pairs = zip(runs[base], runs[name], strict=True)
            ratios = sorted(slow["seconds"] / quick["seconds"] for slow, quick in pairs)
            assert [ratio["least"], ratio["most"]] == ratios
    assert json.dumps(times)


@pytest.mark.slow
def test_there_are_repeats_enough_for_a_verdict(measured):
    (race,) = measured["races"]
    assert race["repeats"] == bench.FEWEST_REPEATS
    assert json.dumps(measured)


def test_the_labs_of_the_speed_page_are_in_it(monkeypatch):
    monkeypatch.setattr(bench, "QUICK_LAB_SECONDS", 0.5)
    monkeypatch.setattr(memory, "CPU_SIZE", (16, 64))
    monkeypatch.setitem(bench.QUICK, "vectorize", {"repeats": FEW})
    small = partial(copies.measure, size=100, counts=(1, 2), steps=2, repeats=2)
    monkeypatch.setattr(copies, "measure", small)
    plan = LoaderPlan((8,), (0, 1), (False,))
    monkeypatch.setattr(bench, "loader_plan", lambda _: plan)
    with devices.cpu_threads(1):
        pieces = bench.pieces("sprites", torch.device("cpu"), repeats=1, quick=True)
        labs = bench.merged(pieces[name]() for name in bench.SPEED_LABS)
    record = labs["speed_labs"]
    assert json.loads(json.dumps(record))
    assert {row["what"] for row in record["figures"]} >= {
        *("training", "inference", "distances", "copies", "steps, fetched"),
    }
    assert record["loader"]["budget_seconds"] == 0.5
    assert all(row["n"] >= 2 and row["torch"] for row in record["figures"])


def test_the_simulated_accelerator_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench", "--device", "sim", "--json"])
    with pytest.raises(SystemExit, match="2"):
        bench.main()
    with pytest.raises(devices.UntimedError) as untimed:
        devices.resolve_timed("sim")
    assert str(untimed.value) in capsys.readouterr().err
