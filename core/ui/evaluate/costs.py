"""What answers cost: each autograd mode and each precision, on the Evaluate page."""

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from core.evaluate.results import ModeCost, PrecisionCost
from core.jobs.job import Job
from core.jobs.measured import MODES
from core.measure.speedup import Speedup, paired
from core.ui import controls, figures, format, guess
from core.ui.charts import evaluate as charts
from core.ui.frame import PROSE
from core.ui.job_panel import JobPanel, slot
from core.ui.runs import Run

MODES_PANEL = JobPanel(MODES, "The measurement", "compare_modes", primary=False)
PRECISIONS_PANEL = JobPanel(
    "core.evaluate.precision:compare",
    "The measurement",
    "compare_precisions",
    primary=False,
)
MEMORY_GUESSES = ("About as much", "2 to 10 times as much", "Over 10 times as much")
SAME = 1.1  # a ratio that is no difference to speak of
CHANGED_GUESSES = ("Less than 2", "2 to 10", "More than 10")


def modes(run: Run) -> None:
    """The button, and what each autograd mode costs on this run's model."""
    wanted = (run.checkpoint, run.config)
    panel = replace(
        MODES_PANEL,
        about=lambda *arguments: arguments == wanted,
        subject=run.id,
    )
    question = "how much memory does the CNN need when it records gradients, "
    question += "compared with when it doesn't?"
    with controls.row():
        guessed = guess.ask("modes_guess", question, MEMORY_GUESSES, ran=panel.ran)
        panel.buttons("Measure it", wanted)
    panel.follow(lambda job: mode_costs(job, guessed))


def mode_costs(job: Job, guessed: str | None) -> None:
    """Seconds and peak memory in each autograd mode, once they are measured."""
    if job.value is None:
        if not job.ended:
            slot("Measuring: one warm-up, then five repeats of each, in turn")
        return
    if guess.missing(guessed):
        return
    measured: tuple[ModeCost, ...] = job.value
    backend = measured[0].environment.backend
    _judge(measured, guessed)
    figures.bullets(_in_words(measured))
    left, right = st.columns(2)
    with left:
        _milliseconds({_named(each): each for each in measured}, "autograd mode")
    with right:
        st.markdown("**Peak memory** of tensors, megabytes")
        peaks = {_named(e): (e.peak_bytes / 1e6,) for e in measured if e.peak_bytes}
        if not peaks:
            st.markdown(f"PyTorch doesn't count it on {backend}.")
        else:
            st.altair_chart(
                charts.costs(peaks, "megabytes", backend),
                alt="Peak memory in each autograd mode, in megabytes",
            )
    figures.caption(
        f"{measured[0].images:,} test images in batches of 1,000; the thin line spans "
        f"the least and the most of n = {len(measured[0].seconds)} repeats after one "
        "warm-up.",
        measured[0],
    )


def _judge(measured: tuple[ModeCost, ...], guessed: str | None) -> None:
    """What recording costs the CNN in memory, beside the guess."""
    peaks = {each.mode: each.peak_bytes for each in measured if each.model == "cnn"}
    recorded, plain = peaks.get("gradients"), peaks.get("no_grad")
    if recorded and plain:
        ratio = recorded / plain
        found = "Recording gradients takes the CNN "
        found += f"**{format.times(ratio)} times** the memory."
        guess.judge(found, guessed, MEMORY_GUESSES[guess.scale(ratio)])


def _named(cost: ModeCost) -> str:
    return f"{format.NAMES[cost.model]}, {cost.mode}" if cost.model else cost.mode


def _in_words(measured: tuple[ModeCost, ...]) -> list[str]:
    """What recording for a backward pass costs each model in memory and in time."""
    found = {(each.model, each.mode): each for each in measured}
    lines = []
    for model in filter(None, dict.fromkeys(each.model for each in measured)):
        recorded, plain = found[model, "gradients"], found[model, "no_grad"]
        text = f"**{format.NAMES[model]}**: "
        if recorded.peak_bytes and plain.peak_bytes:
            ratio = recorded.peak_bytes / plain.peak_bytes
            text += (
                f"recording gradients takes {format.times(ratio)} times the memory of "
                "`no_grad`. "
                if ratio >= SAME
                else "recording gradients takes about as much memory as `no_grad`: its "
                "activations are small beside the batch, which is there in any mode. "
            )
        quick = found[model, "inference_mode"]
        times = paired(recorded.seconds, quick.seconds)
        lines.append(text + compared("`inference_mode`", times, "recording gradients"))
    return lines


def compared(what: str, found: Speedup, than: str) -> str:
    """How fast something is beside another, as surely as it was measured."""
    low, high = map(format.times, found.interval)
    between = f"{what} was {low} to {high} times as fast as {than}"
    if found.winner is None:
        return f"{between}: too close to call."
    if not found.steady:
        return f"{between}; the {found.n} repeats differ too much for a single figure."
    text = f"{what} was {format.times(found.median)} times as fast as {than}"
    return f"{text} ({low} to {high} over {found.n} pairs of repeats)."


def precisions(run: Run) -> None:
    """What there is to choose, the button, and what each precision costs."""
    st.subheader("The price of precision")
    st.markdown(
        "Fewer bits are faster if the device has units for them, but they round more. "
        "**bfloat16** here is mixed precision, AMP for short: `torch.autocast` "
        "computes matrix products and convolutions in 16 bits and the rest in float32. "
        "**TF32**: NVIDIA GPUs since Ampere can round float32 inputs to 19 bits before "
        "they multiply. Convolutions do so by default, matrix products after "
        '`torch.set_float32_matmul_precision("high")`.',
        width=PROSE,
    )
    wanted = (run.checkpoint, run.config)
    panel = replace(PRECISIONS_PANEL, about=lambda *arguments: arguments == wanted)
    with controls.row():
        question = "out of 100 answers, how many change in 16 bits?"
        guessed = guess.ask("precision_guess", question, CHANGED_GUESSES, ran=panel.ran)
        panel.buttons("Measure the precisions", wanted)
    panel.follow(lambda job: precision_costs(job, guessed))


def precision_costs(job: Job, guessed: str | None) -> None:
    """Milliseconds and answers that change, once they are measured."""
    if job.value is None:
        if not job.ended:
            slot("Measuring: a warm-up, then repeats of each, in turn")
        return
    if guess.missing(guessed):
        return
    measured: tuple[PrecisionCost, ...] = job.value
    left, right = st.columns(2)
    with left:
        _milliseconds({each.precision: each for each in measured}, "precision")
    with right:
        for each in measured:
            if each.precision == "bfloat16":
                share = 100 * each.changed / each.images
                found = f"In bfloat16, **{share:.2g} of 100** answers change."
                guess.judge(found, guessed, CHANGED_GUESSES[guess.scale(share)])
        figures.bullets(_answers_in_words(measured))
    has_tf32 = any(each.precision == "TF32" for each in measured)
    figures.caption(
        f"All {measured[0].images:,} test images, the model in `eval()`; the thin line "
        f"spans the least and the most of n = {len(measured[0].seconds)} repeats after "
        "one warm-up." + " This device has no TF32." * (not has_tf32),
        measured[0],
    )


def _answers_in_words(measured: tuple[PrecisionCost, ...]) -> list[str]:
    """How fast each is, and how many answers it changes, against float32."""
    full, *others = measured
    lines = [f"**{full.precision}**: {full.correct / full.images:.2%} right."]
    for each in others:
        times = paired(full.seconds, each.seconds)
        lines.append(
            f"{compared(f'**{each.precision}**', times, full.precision)} "
            f"{format.counted(each.changed, 'answer')} of {each.images:,} changed, and "
            f"{each.correct / each.images:.2%} are right."
        )
    return lines


def _milliseconds(measured: Mapping[str, ModeCost | PrecisionCost], what: str) -> None:
    """A bar each: the median of the repeats, with the least and the most."""
    st.markdown("**Milliseconds**, median")
    backend = next(iter(measured.values())).environment.backend
    times = {name: [1e3 * s for s in each.seconds] for name, each in measured.items()}
    st.altair_chart(
        charts.costs(times, "milliseconds", backend), alt=f"Milliseconds in each {what}"
    )
