"""What a GPU makes of Home's first run, as other machines recorded it.

A machine without an accelerator can't show this itself. All figures come from the
recordings of the lessons Compare and Speed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import altair as alt
import pandas as pd
import streamlit as st

from core.config import TRAIN_SAMPLES, RunConfig
from core.jobs import measurements
from core.lessons.compare import crossover_page, race_page
from core.lessons.compare.crossover_result import Crossover
from core.lessons.compare.race_result import Race
from core.lessons.speed import ladder_page
from core.lessons.speed.climb_result import Climbed
from core.measure import rounding
from core.runs import comparison
from core.ui import charts, format
from core.ui.charts import LATER, Chart, Palette
from core.ui.course import link, page
from core.ui.runs import Run

CHART_HEIGHT = 230  # pixels
TOLD = 0.1  # a share of the processors that slows a run down


@dataclass(frozen=True)
class Recording:
    """What one machine with a GPU recorded of the ANN, in batches of Home's size."""

    label: str  # the GPU's name and the day
    race: Race  # the CPU is one of its candidates
    map: Crossover  # of the same candidates
    climb: Climbed

    @property
    def names(self) -> tuple[str, str]:
        """The GPU's name, and the CPU's."""
        gpu, cpu = self._gpu, 1 - self._gpu
        return self.race.candidates[gpu].name, self.race.candidates[cpu].name

    def seconds(self, epochs: int) -> list[float]:
        """Seconds of so many epochs with their tests, on the GPU and on the CPU.

        A trial of the race is part of an epoch, so its median time is scaled.
        """
        seconds = []
        for index in (self._gpu, 1 - self._gpu):
            samples = self.race.counted(index)[0].train_samples
            trials = TRAIN_SAMPLES["fashion-mnist"] / samples
            training = trials * median(self.race.seconds(index, "training"))
            evaluation = median(self.race.seconds(index, "evaluation"))
            seconds.append(epochs * (training + evaluation))
        return seconds

    def seconds_at_best(self, epochs: int) -> float | None:
        """Seconds of training on as many images with the ladder's best rung."""
        best = self.climb.best
        if best is None:
            return None
        images = epochs * TRAIN_SAMPLES["fashion-mnist"]
        return images * best.epoch_seconds / best.samples

    def times_as_fast(self, batch_size: int) -> dict[int, float]:
        """How many times as fast as the CPU the GPU is, keyed by hidden units."""
        ratios = {
            cell.width: cell.speedup.ratio
            for cell in self.map.cells
            if cell.batch_size == batch_size
        }
        if self.map.candidates[1].backend == "CPU":
            ratios = {width: 1 / ratio for width, ratio in ratios.items()}
        return dict(sorted(ratios.items()))

    @property
    def most_times_as_fast(self) -> float:
        """The GPU's greatest lead over the CPU, in the map's largest batches."""
        return max(self.times_as_fast(self.batch_sizes[1]).values())

    @property
    def batch_sizes(self) -> tuple[int, int]:
        """The race's batch size, and the map's largest."""
        largest = max(cell.batch_size for cell in self.map.cells)
        return self.race.config.batch_size, largest

    def is_like(self, config: RunConfig) -> bool:
        """Whether the race trained as a run with these settings does."""
        return self.race.config.is_as_fast_as(config)

    @property
    def _gpu(self) -> int:
        return 0 if self.race.candidates[1].backend == "CPU" else 1


def recording() -> Recording | None:
    """The first machine's recording; None if a part is missing."""
    races = [
        job
        for job in measurements.recorded_by(race_page.RaceLab.address)
        if job.value.config.model == "ann" and job.value.speedup()
    ]
    for race in races:
        machine = race.id.rpartition("-")[0]
        others = [
            job.value
            for lab in (crossover_page.CrossoverLab, ladder_page.PANEL)
            for job in measurements.recorded_by(lab.address)
            if job.id.rpartition("-")[0] == machine
        ]
        if len(others) == 2:
            return Recording(measurements.recorded_on(race), race.value, *others)
    return None


def draw(epochs: int, ran: Sequence[Run] = ()) -> None:
    """Say what these epochs take on a GPU, and draw from which size on one is faster.

    `ran` has the visitor's own runs, with whose time the GPU's is compared.
    """
    recorded = recording()
    if recorded is None:
        return
    here, others = None, 0.0
    for run in ran:
        is_like = run.config.epochs == epochs and recorded.race.config.is_as_fast_as(
            run.config
        )
        if run.result and is_like and not run.is_simulated:
            here, others = run.result.seconds, comparison.others_share(run)
    with st.container(border=True):
        left, right = st.columns([5, 6], gap="large")
        with left:
            told = in_words(recorded, epochs, here, others)
            st.markdown(f"**And on a real GPU?** {told}")
            link(
                page("Compare"),
                "See the whole map",
                icon=":material/grid_on:",
                query_params={"tab": "The map"},
            )
        with right:
            st.vega_lite_chart(
                _table(recorded),
                speedup_chart(tuple(map(_in_batches, recorded.batch_sizes))),
                height=CHART_HEIGHT,
                key="home_gpu",
                alt="How many times as fast the GPU is as the CPU, by hidden units",
            )
        st.caption(
            f"{recorded.label}. The times are those of "
            f"{recorded.race.steps} steps, scaled to {epochs} epochs of "
            "Fashion-MNIST, and the chart is part of **The map** on Compare."
        )


def in_words(
    recorded: Recording, epochs: int, here: float | None = None, others: float = 0.0
) -> str:
    """What these epochs take on the GPU, on the CPU beside it, and `here`, in seconds.

    `others` is the share of this machine's processors that other programs had then.
    """
    gpu, cpu = recorded.names
    on_gpu, on_cpu = map(format.duration, recorded.seconds(epochs))
    first = f"On an {gpu}, the same {epochs} epochs take about **{on_gpu}**"
    beside = f"on the {cpu} beside it {on_cpu}"
    if here is not None:
        beside += f", and here they took {format.duration(here)}"
        if others >= TOLD:
            beside += f", while other programs had {others:.0%} of the processors"
    small, large = recorded.batch_sizes
    most = recorded.most_times_as_fast
    text = (
        f"{first}, {beside}. With so small a model and batches of {small}, a GPU "
        f"mostly waits for its next piece of work. In batches of {large:,}, it's up "
        f"to **{rounding.times(most)} times** as fast as that CPU: the wider the "
        "model, the faster."
    )
    if best := recorded.seconds_at_best(epochs):
        text += (
            " And with the changes that you'll learn on Speed, the GPU trains on as "
            f"many images in {rounding.precise(best)}."
        )
    return text


def _in_batches(size: int) -> str:
    return f"Batches of {size:,}"


def _table(recorded: Recording) -> pd.DataFrame:
    rows = [
        (_in_batches(size), width, ratio)
        for size in recorded.batch_sizes
        for width, ratio in recorded.times_as_fast(size).items()
    ]
    return pd.DataFrame(rows, columns=["batches", "width", "times"])


@charts.live
def speedup_chart(colors: Palette, batches: Sequence[str]) -> Chart:
    """A line for each batch size, on logarithmic axes, and a rule at 1.

    Draws the columns batches, width, and times.
    """
    hues = charts.mixed(colors.accelerator, colors.page, 0.5), colors.accelerator
    chart = alt.Chart(LATER).encode(
        x=alt.X("width:Q")
        .title("Hidden units")
        .scale(type="log", base=2, nice=False)
        .axis(charts.ticks((32, 128, 512, 2048), format=",d")),
        y=alt.Y("times:Q")
        .title("Times as fast as the CPU")
        .scale(type="log", nice=False)
        .axis(charts.ticks((0.3, 1, 3, 10, 30), format="~r")),
        color=charts.hues("batches", batches, hues, **charts.LINES),
        tooltip=charts.tips(batches="In")
        + charts.tips(",d", width="Hidden units")
        + charts.tips(".2g", times="Times as fast"),
    )
    equal = alt.Chart(LATER).mark_rule(strokeDash=[4, 3], aria=False)
    rule = equal.encode(y=alt.datum(1))
    return alt.layer(rule, charts.lines(chart, points=30))
