"""Why a GPU is fast, and when it isn't, as the Device page shows it."""

from statistics import median

import altair as alt
import streamlit as st

from core.jobs import measurements
from core.jobs.job import Job
from core.lessons.device.parallel_result import (
    AT_ONCE,
    IN_TURN,
    SHORT_VECTORS,
    Multiplications,
    Multiplied,
)
from core.measure import rounding
from core.measure.environment import Machine
from core.measure.speedup import STEADY, agree, spanned
from core.ui import charts, figures, format
from core.ui.job_panel import reported
from core.ui.lab import Finding, Guess, Lab
from to_device.words import Words

words = Words(__file__)

CLIMB = "core.lessons.speed.climb:climb"  # measures how fast a device multiplies
TIMES = ("Less than 10 times", "10 to 1,000 times", "More than 1,000 times")


def gpu_rate() -> tuple[str, float] | None:
    """A recorded GPU's label, and its multiplications per second in float32.

    None without such a recording.
    """
    for job in measurements.recorded_by(CLIMB):
        rates = job.value.limit.flops_per_second["float32"]
        # Each multiplication comes with an addition.
        return measurements.recorded_on(job), median(rates) / 2
    return None


class Parallel(Lab):
    key, event, noun = "multiply", Multiplied, "method"
    finding_above = True
    code = (
        ("Python loop", "core.lessons.device.parallel:python_loop"),
        ("At once", "core.lessons.device.parallel:at_once"),
        ("In turn", "core.lessons.device.parallel:in_turn"),
    )

    def asks(self, _: Machine, __: tuple | None) -> Guess:
        return Guess("multiply_guess", self.words["question"], TIMES)

    def more(self, machine: Machine) -> str | None:
        recorded = gpu_rate()
        if recorded is None or machine.has_accelerator:
            return None
        label, rate = recorded
        return (
            f"{label}: in a product of large matrices, **{rate / 1e12:,.0f} trillion "
            "multiplications per second**, which is "
            f"{rate / 1e9:,.0f} in a nanosecond, the time in which light travels "
            "30 cm. How many does a core of this machine manage?"
        )

    def gather(self, job: Job) -> Multiplications | tuple[Multiplied, ...]:
        return job.value or tuple(reported(job, Multiplied))

    def chart(self, result: Multiplications | tuple[Multiplied, ...]) -> None:
        results = result if isinstance(result, tuple) else result.found
        frame = figures.readings(results, "work", "way", "device", nanoseconds=1e9)
        colors = charts.palette()
        named = {
            "Python loop": colors.further[3],
            SHORT_VECTORS: colors.pale,
            "One core": colors.further[0],
        }
        hues = {
            way: named.get(way, colors.cpu if device == "cpu" else colors.accelerator)
            for way, device in zip(frame["way"], frame["device"], strict=True)
        }
        ends = frame["low"].min() / 2, frame["high"].max()
        axis = charts.ticks(charts.decades(*ends), format=",~g")
        x = alt.X("nanoseconds:Q", axis=axis).title("Nanoseconds each, logarithmic")
        rows = alt.Chart(frame).encode(
            y=alt.Y("work:N").sort(None).title(None).scale(paddingInner=0.25),
            yOffset=alt.YOffset("way:N").sort(list(hues)),
            tooltip=charts.tips(work="Multiplications", way="Method", time="Median"),
        )
        dots = charts.dots(
            rows,
            x.scale(type="log", domain=list(ends), nice=False),
            "time:N",
            22,
            color=charts.hues("way", hues, hues.values(), columns=2),
        )
        alt_text = "Nanoseconds per multiplication for each method, on a log scale"
        st.altair_chart(dots, alt=alt_text)

    def finding(self, result: Multiplications) -> Finding:
        over = result.speedup("Python loop", "One core")
        sentence = over.sentence("the Python loop", "torch on one core")
        return Finding(sentence, spanned(TIMES, (10, 1000), *over.told))

    def lines(self, result: Multiplications) -> list[str]:
        at_once, chain = result.at(AT_ONCE), result.at(IN_TURN)
        loop, lines = at_once["Python loop"], [self.words["core"]]
        if SHORT_VECTORS in at_once:
            over = result.speedup(SHORT_VECTORS, "One core")
            lines.append(
                "**Short vectors**: with only four numbers per instruction, "
                f"the core takes {over.by} times as long. "
                "`MKL_CBWR=COMPATIBLE` sets this limit for MKL, the library "
                "that computes torch's matrix products."
                if over.winner == 1
                else "**Short vectors**: with only four numbers per instruction, "
                f"the core should take longer. The core took {over.by} times "
                "as long here, but the repeats differ too much to draw a "
                "conclusion."
            )
        for way in at_once:
            if way not in ("Python loop", SHORT_VECTORS, "One core"):
                over = result.speedup("One core", way)
                lines.append(over.sentence("one core", way))
                if over.winner != 1 and way.endswith("cores"):
                    lines.append(words("parallel.few_cores"))
        recorded = gpu_rate()
        if recorded and result.environment.backend == "CPU":
            label, rate = recorded
            lines.append(
                f"{label}: **{rounding.rounded(rate * at_once['One core'])} times as "
                "many multiplications per second** as one core here."
            )
        times = ", ".join(f"{way} {rounding.precise(chain[way])}" for way in chain)
        lines.append(words("parallel.chain", times=times))
        if chain["Python loop"] < loop:
            lines.append(self.words["loop"])
        unsteady = [method.way for method in result.found if not agree(method.seconds)]
        if unsteady:
            ways = format.enumerated(dict.fromkeys(unsteady))
            lines.append(
                (
                    "The single repeats of {ways} differ by more than a factor "
                    "of {factor}. The dots show their medians, which vary less."
                ).format(ways=ways, factor=f"{STEADY:g}")
            )
        return lines

    def caption(self, result: Multiplications) -> str:
        return words("parallel.caption", count=len(result.found[0].seconds))
