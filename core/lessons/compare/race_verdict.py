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
    reason, fields = why(race, speedup.winner)
    return f"{text} {words(f'race.why.{reason}', **fields)}"


# In a shorter step, an operation takes about 0.1 ms: too short to share among threads
SMALL_STEP_MS = 5.0


def why(race: Race, index: int) -> tuple[str, dict[str, str]]:
    """Why the winner, candidate number `index`, may be faster.

    The reason depends on the time of a training step. It is a key below "race.why",
    and comes with the fields of its text.
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
    batch = f"{race.config.batch_size:,}"
    return reason, {"step": f"{step:.2g}", "batch": batch, "times": f"{times:g}"}


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
        return words("race.agreement.same")
    has_convolutions, tf32 = race.config.model == "cnn", ""
    first, second = race.candidates
    if has_convolutions and "CUDA" in (first.backend, second.backend):
        tf32 = words("race.agreement.tf32")
    if most < AGREE:
        digits = floor(-log10(most))
        return words("race.agreement.rounded", digits=digits, tf32=tf32)
    if has_convolutions and first.device != second.device:
        return words("race.agreement.dropout", most=f"{most:.1%}")
    return words("race.agreement.apart", most=f"{most:.1%}", tf32=tf32)
