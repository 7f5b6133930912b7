"""The price of precision, as the Evaluate page shows it."""

from dataclasses import replace
from statistics import median

import pandas as pd
import streamlit as st

from core.evaluate.results import PrecisionCost
from core.jobs.job import Job
from core.ui import figures, format, guess
from core.ui.charts import evaluate as charts
from core.ui.frame import PROSE
from core.ui.job_panel import JobPanel, slot
from core.ui.runs import Run

PANEL = JobPanel(
    "core.evaluate.precision:compare", "The measurement", "compare_precisions"
)

GUESSES = ("Less than 2", "2 to 10", "More than 10")


def draw(run: Run) -> None:
    """What there is to choose, the button, and what each precision costs."""
    st.subheader("The price of precision")
    st.markdown(
        "Fewer bits are faster if the device has units for them, but they round more. "
        "**bfloat16** here is mixed precision, AMP for short: `torch.autocast` "
        "computes matrix products and convolutions in 16 bits and the rest in float32. "
        "**TF32** is float32 of which NVIDIA GPUs, from Ampere on, multiply only 19 "
        "bits: convolutions use it by default, matrix products after "
        '`torch.set_float32_matmul_precision("high")`.',
        width=PROSE,
    )
    wanted = (run.checkpoint, run.config)
    panel = replace(PANEL, about=lambda *arguments: arguments == wanted)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        question = "out of 100 answers, how many change in 16 bits?"
        guessed = guess.ask("precision_guess", question, GUESSES)
        panel.buttons("Measure the precisions", wanted)
    panel.follow(lambda job: result(job, guessed))


def result(job: Job, guessed: str | None) -> None:
    """Milliseconds and answers that change, once they are measured."""
    if job.value is None:
        if not job.ended:
            slot("Measuring: a warm-up, then repeats of each, in turn")
        return
    if guess.missing(guessed):
        return
    measured: tuple[PrecisionCost, ...] = job.value
    table = pd.DataFrame(
        {
            "mode": [each.precision for each in measured],
            "milliseconds": [median(each.seconds) * 1e3 for each in measured],
            "low": [min(each.seconds) * 1e3 for each in measured],
            "high": [max(each.seconds) * 1e3 for each in measured],
        }
    )
    left, right = st.columns(2)
    with left:
        st.markdown("**Milliseconds**, median")
        st.altair_chart(
            charts.mode_costs(table, "milliseconds", measured[0].environment.backend),
            alt="Milliseconds in each precision",
        )
    with right:
        for each in measured:
            if each.precision == "bfloat16":
                share = 100 * each.changed / each.images
                found = f"In bfloat16, **{share:.2g} of 100** answers change."
                guess.judge(found, guessed, GUESSES[guess.scale(share)])
        figures.bullets(_in_words(measured))
    has_tf32 = any(each.precision == "TF32" for each in measured)
    figures.caption(
        f"All {measured[0].images:,} test images, the model in `eval()`; the thin line "
        f"spans the least and the most of n = {len(measured[0].seconds)} repeats after "
        "one warm-up." + " This device has no TF32." * (not has_tf32),
        measured[0],
    )


def _in_words(measured: tuple[PrecisionCost, ...]) -> list[str]:
    """How fast each is, and how many answers it changes, against float32."""
    full, *others = measured
    lines = [f"**{full.precision}**: {full.correct / full.images:.2%} right."]
    for each in others:
        times = median(full.seconds) / median(each.seconds)
        lines.append(
            f"**{each.precision}**: {times:.2f} times as fast. "
            f"{format.counted(each.changed, 'answer')} of {each.images:,} changed, and "
            f"{each.correct / each.images:.2%} are right."
        )
    return lines
