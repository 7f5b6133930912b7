"""What a race says, in words."""

from statistics import median

from core.compare.results import Race
from core.measure.units import times


def verdict(race: Race) -> str:
    """Who wins, by how much and why, in words."""
    for failure in race.failures:
        name = race.candidates[failure.candidate].name
        return f"There is no winner: {name} did not finish."
    found = race.speedup()
    if found is None:
        return "There is no winner: nothing was measured."
    low, high = found.interval
    if found.winner is None:
        where = "these machines" if race.has_two_machines else "this machine"
        return (
            f"**Too close to call on {where}.** From heat to heat, "
            f"{race.candidates[1].name} is {times(low)} to {times(high)} times as fast "
            f"as {race.candidates[0].name}, {TOGETHER}."
        )
    winner, loser = race.candidates[found.winner], race.candidates[1 - found.winner]
    factor = found.median
    if found.winner == 0:
        factor, low, high = 1 / factor, 1 / high, 1 / low
    pairs = f"over {found.n} pairs of heats"
    if not found.steady:
        return (
            f"**{winner.name} wins: it is {times(low)} to {times(high)} times as fast "
            f"as {loser.name}, {TOGETHER}** ({pairs}). The heats differ too much for "
            "a single figure. Something else was probably running: race again when "
            "nothing else is."
        )
    return (
        f"**{winner.name} wins: it is {times(factor)} times as fast as {loser.name}, "
        f"{TOGETHER}** ({times(low)} to {times(high)} {pairs}). "
        f"{why(race, found.winner)}"
    )


TOGETHER = "training and evaluation together"
SMALL_STEP_MS = 5.0  # an operation of it takes some hundred microseconds


def why(race: Race, winner: int) -> str:
    """What speaks for it, from the time of a step."""
    won, lost = race.candidates[winner], race.candidates[1 - winner]
    step = median(race.seconds(winner, "training")) / race.steps * 1e3
    batch = race.config.batch_size
    if won.backend == lost.backend:
        if race.has_two_machines:
            return (
                "They ran on two machines, so all of each machine counts: processor, "
                "memory, and whatever else is running."
            )
        if won.threads > lost.threads:
            return (
                f"A batch of {batch:,} has enough arithmetic to be shared: "
                f"{won.threads / lost.threads:g} times the threads could bring that "
                "much at best, and the parts that are not shared take their toll."
            )
        if won.threads < lost.threads and step < SMALL_STEP_MS:
            return (
                f"A step takes only {step:.2g} ms. The threads split each operation "
                "and then wait for the slowest one, which may have lost its core to "
                "another program."
            )
        if won.threads < lost.threads:
            return (
                f"A step of {step:.2g} ms is worth sharing. Perhaps there was no free "
                "core for every thread: then all wait for the one that shares its core "
                "with another program. Race again when the machine is idle."
            )
        return "Both are the same device, so the machine itself has changed meanwhile."
    if lost.backend == "CPU":
        return (
            f"A step of {batch:,} images takes it {step:.2g} ms: the arithmetic of a "
            "batch is done side by side, which pays for the copy and for starting each "
            "operation."
        )
    return (
        "Each operation costs an accelerator some microseconds to start, however small "
        f"it is, and a batch of {batch:,} is small. The map, the last tab here, "
        "shows from where on that turns."
    )


AGREE = 0.01  # of the loss; more is seen on the chart


def agreement(race: Race) -> str:
    """Whether the loss curves agree, in words, and if not, why not."""
    curves = [next((h.losses for h in race.counted(c)), ()) for c in (0, 1)]
    pairs = list(zip(*curves, strict=False))
    if not pairs:
        return ""
    apart = [abs(a.loss - b.loss) / max(abs(a.loss), abs(b.loss)) for a, b in pairs]
    start, most = apart[0], max(apart)
    devices = {candidate.device for candidate in race.candidates}
    if most == 0:
        return "Step by step, the two losses are the same, bit for bit."
    if most < AGREE:
        return (
            f"Step by step, the two losses agree within {most:.1g} of their value. The "
            "rest is rounding: the same numbers are added in a different "
            f"order{tf32(race)}."
        )
    if race.config.model == "cnn" and len(devices) > 1:
        return (
            f"Over steps, the two curves differ by up to {most:.1%}. Weights and "
            "batches are the same, but dropout draws from each device's own random "
            "numbers, so each trains with other masks."
        )
    return (
        f"Over steps, the two curves start {start:.1g} apart and end up to {most:.1%} "
        "apart. Weights and batches are the same; they add the same numbers in another "
        f"order{tf32(race)}, and each step makes that rounding grow."
    )


def tf32(race: Race) -> str:
    """What rounds too where a convolution runs on an NVIDIA GPU, within a sentence."""
    on_cuda = any(each.backend == "CUDA" for each in race.candidates)
    if race.config.model != "cnn" or not on_cuda:
        return ""
    return ", and convolutions on NVIDIA GPUs may round their inputs to TF32"
