"""The Evaluate page: what inference costs in each autograd mode and precision."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.lessons.evaluate.evaluate_result import ModeCost, PrecisionCost
from core.measure import rounding
from core.measure.speedup import CLOSE, paired, spanned
from core.ui import charts, format, guess, simulated
from core.ui.charts import Chart
from core.ui.lab import Finding, Guess, Lab
from core.ui.server import ask_once, engine, explained
from core.ui.source import show
from to_device.names import SIMULATED
from to_device.words import Words

words = Words(__file__)

CHANGED_GUESSES = ("Less than 2", "2 to 10", "More than 10")


def draw_forward_memory() -> None:
    """Show how much memory a forward pass keeps with gradients and without.

    The simulated accelerator counts the bytes.
    """
    address = "core.lessons.evaluate.evaluation:forward_memory"
    outline = simulated.outline("forward_memory", explained=True)
    with outline, explained("Memory use was not measured"):
        bytes_left: dict[str, int] = ask_once(address, SIMULATED)
        sizes = {mode: format.size(size) for mode, size in bytes_left.items()}
        st.markdown(words("forward.kept", **sizes))
        with st.expander("The code that ran", icon=":material/code:"):
            show(address)


class Modes(Lab):
    name = "modes"
    key = "compare_modes"
    panel: Mapping[str, Any] = {"primary": False}
    address = "core.lessons.evaluate.evaluation:compare_modes"
    code = (("The modes", "core.lessons.evaluate.evaluation:compare_modes"),)

    def progress(self, _: Job) -> str:
        return "Measuring the modes in turn, with one warm-up and five repeats each"

    def chart(self, costs: tuple[ModeCost, ...]) -> None:
        bars = {f"{format.NAMES[cost.model]}, {cost.mode}": cost for cost in costs}
        draw_milliseconds(bars, "autograd mode")
        st.markdown("**Peak memory** used by tensors, in megabytes")
        backend = costs[0].environment.backend
        peaks = {n: (c.peak_bytes / 1e6,) for n, c in bars.items() if c.peak_bytes}
        if not peaks:
            st.markdown(f"This app doesn't measure peak memory on {backend}.")
            return
        st.altair_chart(
            cost_chart(peaks, "megabytes", backend),
            alt="Peak memory in each autograd mode, in megabytes",
        )

    def finding(self, costs: tuple[ModeCost, ...]) -> Finding | None:
        peaks = {cost.mode: cost.peak_bytes for cost in costs if cost.model == "cnn"}
        with_gradients, without = peaks.get("gradients"), peaks.get("no_grad")
        if not with_gradients or not without:
            return None
        ratio = with_gradients / without
        text = "With gradients, the CNN needs "
        text += f"**{rounding.times(ratio)} times** as much memory."
        return Finding(text, spanned(self.words["answers"], (1.5, 5), ratio, ratio))

    def lines(self, costs: tuple[ModeCost, ...]) -> list[str]:
        by_name = {(cost.model, cost.mode): cost for cost in costs}
        lines = []
        for model in dict.fromkeys(cost.model for cost in costs):
            slow, plain = by_name[model, "gradients"], by_name[model, "no_grad"]
            text = f"**{format.NAMES[model]}**: "
            if slow.peak_bytes and plain.peak_bytes:
                ratio = slow.peak_bytes / plain.peak_bytes
                text += (
                    f"with gradients, the model needs {rounding.times(ratio)} times as "
                    "much memory as under `no_grad`. "
                    if ratio >= CLOSE
                    else f"{self.words['small']} "
                )
            quick = by_name[model, "inference_mode"]
            times = paired(slow.seconds, quick.seconds)
            text += times.sentence("a pass with gradients", "`inference_mode`")
            lines.append(text)
        return lines

    def show(self, job: Job, guessed: Any | None = guess.JUST_SHOW) -> None:
        super().show(job, guessed)
        is_own = job.value and not guess.missing(guessed) and not self.suffix
        if is_own and (machine := engine().machine()) and machine.simulates:
            draw_forward_memory()

    def caption(self, costs: tuple[ModeCost, ...]) -> str:
        return (
            f"{costs[0].images:,} test images in batches of 1,000. The thin line runs "
            f"from the smallest to the largest of n = {len(costs[0].seconds)} repeats "
            "after one warm-up."
        )


class Precisions(Lab):
    name = "precisions"
    key = "compare_precisions"
    panel: Mapping[str, Any] = {"primary": False}
    address = "core.lessons.evaluate.precision:compare"
    code = (
        (
            "The precisions",
            "core.lessons.evaluate.precision:answers",
            "core.lessons.evaluate.precision:tf32",
        ),
    )

    def asks(self, *_: Any) -> Guess:
        return Guess("precision_guess", self.words["question"], CHANGED_GUESSES)

    def progress(self, _: Job) -> str:
        return "Measuring the precisions in turn, with one warm-up each"

    def chart(self, costs: tuple[PrecisionCost, ...]) -> None:
        draw_milliseconds({cost.precision: cost for cost in costs}, "precision")

    def finding(self, costs: tuple[PrecisionCost, ...]) -> Finding | None:
        for cost in costs:
            if cost.precision == "bfloat16":
                share = 100 * cost.changed / cost.images
                changed = f"{cost.changed:,} of {cost.images:,}"
                text = f"In bfloat16, **{changed}** predictions change."
                return Finding(text, spanned(CHANGED_GUESSES, (2, 10), share, share))
        return None

    def lines(self, costs: tuple[PrecisionCost, ...]) -> list[str]:
        full, *others = costs
        right = f"{full.correct / full.images:.2%} of the predictions are right"
        lines = [f"**{full.precision}**: {right}."]
        for cost in others:
            times = paired(full.seconds, cost.seconds)
            lines.append(
                f"{times.sentence(full.precision, cost.precision)} "
                f"{cost.changed:,} of {cost.images:,} predictions changed, "
                f"and the accuracy is {cost.correct / cost.images:.2%}."
            )
        return lines

    def caption(self, costs: tuple[PrecisionCost, ...]) -> str:
        has_tf32 = any(cost.precision == "TF32" for cost in costs)
        no_tf32 = "" if has_tf32 else " TF32 is measured only on NVIDIA GPUs."
        return (
            f"All {costs[0].images:,} test images, with the model in `eval()` mode. "
            "The thin line runs from the smallest to the largest of n = "
            f"{len(costs[0].seconds)} repeats after one warm-up.{no_tf32}"
        )


def draw_milliseconds(costs: Mapping[str, ModeCost | PrecisionCost], kind: str) -> None:
    st.markdown("**Milliseconds**, median")
    backend = next(iter(costs.values())).environment.backend
    times = {name: [1e3 * s for s in cost.seconds] for name, cost in costs.items()}
    st.altair_chart(
        cost_chart(times, "milliseconds", backend), alt=f"Milliseconds in each {kind}"
    )


def cost_chart(
    readings: Mapping[str, Sequence[float]], figure: str, backend: str
) -> Chart:
    """A bar per mode for the median, a thin line for the range of repeats."""
    frame = pd.DataFrame(
        {"mode": mode, figure: median(values), "low": min(values), "high": max(values)}
        for mode, values in readings.items()
    )
    if all(len(values) == 1 for values in readings.values()):
        frame = frame.drop(columns=["low", "high"])
    return charts.bars(
        charts.rows(frame, "mode"),
        alt.X(f"{figure}:Q").title(figure.capitalize()),
        alt.Text(f"{figure}:Q").format(".1f"),
        36,
        height=18,
        color=alt.value(charts.palette().of(backend)),
    )
