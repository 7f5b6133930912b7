"""The Speed page's lab that times a Python loop against vectorized code."""

from functools import partial

import altair as alt
import streamlit as st

from core.jobs.job import Job
from core.lessons.speed.vectorize_result import (
    NUMPY,
    PYTHON,
    TORCH,
    Vectorized,
    VectorizeLab,
)
from core.measure import rounding
from core.measure.environment import Machine
from core.ui import charts, figures, format
from core.ui.job_panel import reported
from core.ui.lab import Finding, Guess, Lab

points_in_words = partial(format.counted, noun="point")


class Vectorize(Lab):
    key = "run_vectorize_lab"
    file = "vectorize"
    event, noun = Vectorized, "timing"
    code = (
        ("Python loop", "core.lessons.speed.vectorize:python_loop"),
        ("NumPy", "core.lessons.speed.vectorize:with_numpy"),
        ("torch", "core.lessons.speed.vectorize:with_torch"),
    )

    def asks(self, machine: Machine, _: tuple | None) -> Guess:
        ways = [PYTHON, NUMPY, TORCH]
        if machine.has_accelerator:
            ways.append(f"torch on {machine.devices[0].backend}")
        return Guess("vectorize_guess", self.words["question"], ways)

    def gather(self, job: Job) -> VectorizeLab | None:
        timings = tuple(reported(job, Vectorized))
        so_far = VectorizeLab(timings, means=0, environments={}, date="")
        return job.value or (so_far if timings else None)

    def chart(self, lab: VectorizeLab) -> None:
        frame = figures.readings(lab.found, "points", "way", microseconds=1e6)
        frame["points"] = frame["points"].map(points_in_words)
        colors = charts.palette()
        named = {PYTHON: colors.further[3], NUMPY: colors.further[0], TORCH: colors.cpu}
        hues = {way: named.get(way, colors.accelerator) for way in frame["way"]}
        domain = [frame["low"].min() / 2, frame["high"].max()]
        x = alt.X("microseconds:Q", axis=charts.microseconds()).scale(
            type="log", domain=domain, nice=False
        )
        rows = alt.Chart(frame).encode(
            y=alt.Y("points:N").sort(None).title(None).scale(paddingInner=0.25),
            yOffset=alt.YOffset("way:N").sort(list(hues)),
            tooltip=charts.tips(points="Size", way="Method") + charts.middle_half("µs"),
        )
        color = charts.hues("way", hues, hues.values(), columns=2)
        st.altair_chart(
            charts.dots(rows, x.title("Time, logarithmic"), "time:N", 20, color=color),
            alt="Time for each method, by number of points, on a log scale",
        )

    def finding(self, lab: VectorizeLab) -> Finding:
        times = lab.at(1)
        fastest = min(times, key=times.__getitem__)
        seconds = rounding.precise(times[fastest])
        sentence = self.words["found"].format(way=in_sentence(fastest), seconds=seconds)
        close = (w for w in times if lab.speedup(1, fastest, w).winner is None)
        return Finding(sentence, tuple(close), say=str)

    def lines(self, lab: VectorizeLab) -> list[str]:
        bullets = []
        sizes = list(dict.fromkeys(timing.points for timing in lab.found))
        for points in sizes:
            times = lab.at(points)
            best, *_, slowest = sorted(times, key=times.__getitem__)
            speedup = lab.speedup(points, best, slowest)
            text = f"{points_in_words(points)}: **{in_sentence(best)}** is "
            text += f"{speedup.by} times as fast as {in_sentence(slowest)}"
            if PYTHON not in (slowest, best):
                loop = lab.speedup(points, best, PYTHON).by
                text += f" and {loop} times as fast as the loop"
            bullets.append(f"{text}. {speedup.note}".rstrip())
        torch_way, seconds = list(lab.at(sizes[0]).items())[-1]
        worst = max(timing.difference for timing in lab.found)
        cost = self.words["cost"].format(
            way=torch_way, seconds=rounding.precise(seconds)
        )
        return [*bullets, cost, self.words["agree"].format(worst=worst)]

    def caption(self, lab: VectorizeLab) -> str:
        repeats = {timing.points: len(timing.seconds) for timing in lab.found}
        ns = format.enumerated(
            f"{n} for {points_in_words(p)}" for p, n in repeats.items()
        )
        return self.words["how"].format(n=ns, numpy=lab.numpy)


def in_sentence(way: str) -> str:
    return f"the {way}" if way == PYTHON else way
