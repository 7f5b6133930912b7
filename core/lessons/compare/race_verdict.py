"""Sentences on a race: who won, why, and whether the loss curves agree."""

from math import floor, log10
from statistics import median

from core.lessons.compare.race_result import Race
from to_device.words import Words

words = Words(__file__)


def verdict(race: Race) -> str:
    for failure in race.failures:
        name = race.candidates[failure.candidate].name
        return f"There is no winner: {name} did not finish."
    speedup = race.speedup()
    if speedup is None:
        return "There is no winner: nothing was measured."
    first, second = (candidate.name for candidate in race.candidates)
    pairs = "pairs of heats, each with training and evaluation"
    text = speedup.sentence(first, second, pairs)
    if speedup.winner is None or not speedup.is_sure:
        return text
    return f"{text} {why(race, speedup.winner)}"


# In a shorter step, an operation takes about 0.1 ms: too short to share among threads
SMALL_STEP_MS = 5.0


def why(race: Race, index: int) -> str:
    """Why the winner, candidate number `index`, may be faster.

    The reason depends on the time of a training step.
    """
    winner, loser = race.candidates[index], race.candidates[1 - index]
    step = median(race.seconds(index, "training")) / race.steps * 1e3
    times = winner.threads / loser.threads
    if winner.backend != loser.backend:
        reason = "accelerator" if loser.backend == "CPU" else "cpu"
    elif times >= 1:
        reason = "more" if times > 1 else "same"
    else:
        reason = "fewer_small" if step < SMALL_STEP_MS else "fewer"
    text: str = words.table("race.why")[reason]
    batch = f"{race.config.batch_size:,}"
    return text.format(step=f"{step:.2g}", batch=batch, times=f"{times:g}")


AGREE = 0.01  # relative difference of losses that a reader can't see on the chart


def agreement(race: Race) -> str:
    """A sentence on whether the loss curves agree, and if not, why not."""
    curves = [next((h.losses for h in race.counted(c)), ()) for c in (0, 1)]
    pairs = list(zip(*curves, strict=False))
    if not pairs:
        return ""
    apart = [abs(a.loss - b.loss) / max(abs(a.loss), abs(b.loss)) for a, b in pairs]
    most = max(apart)
    if most == 0:
        return "At every step, the two losses are the same, bit for bit."
    has_convolutions, tf32 = race.config.model == "cnn", ""
    first, second = race.candidates
    if has_convolutions and "CUDA" in (first.backend, second.backend):
        tf32 = ", and convolutions on NVIDIA GPUs may round their inputs to TF32"
    if most < AGREE:
        return (
            "At every step, the two losses agree to at least "
            f"{floor(-log10(most))} digits. Later digits may differ, "
            "because the candidates add the same numbers in different "
            f"orders and round each sum{tf32}."
        )
    if has_convolutions and first.device != second.device:
        return (
            "The two losses differ by up to {most}. The weights and "
            "batches are the same, but each device draws its own random "
            "numbers, so dropout drops different units."
        ).format(most=f"{most:.1%}")
    return (
        "The two losses differ by up to {most}. The weights and "
        "batches are the same, but the two candidates add the same "
        "numbers in different orders{tf32}. The rounding errors grow "
        "with each step."
    ).format(most=f"{most:.1%}", tf32=tf32)
