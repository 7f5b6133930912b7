"""Time against peak memory for ways to train and to infer, on the Speed page."""

from statistics import median

import altair as alt
import streamlit as st

from core.jobs.job import Job
from core.lessons.speed.memory_result import (
    ACCUMULATED,
    CHECKPOINTED,
    STEP,
    Card,
    MemoryCost,
    MemoryLab,
)
from core.measure.speedup import paired
from core.ui import charts, controls, figures, format, simulated
from core.ui.job_panel import reported
from core.ui.lab import Finding, Lab

WAYS = 6
# The method that the other methods of training or inference are compared with
PLAIN = {"training": STEP, "inference": "gradients"}
# Methods whose names stand below their points in the chart, not above
BELOW = (ACCUMULATED, "inference_mode")


class Memory(Lab):
    key = "run_memory_lab"
    file = "memory"
    job_name = "The memory lab"
    code = (
        ("One batch", "core.lessons.speed.memory:one_batch"),
        ("Checkpointed", "core.lessons.speed.memory:checkpointed"),
        ("Accumulated", "core.lessons.speed.memory:accumulated"),
        ("Inference", "core.lessons.speed.memory:infer"),
        ("A card", "core.lessons.speed.memory:step_on_card"),
    )

    def progress(self, job: Job) -> tuple[str, float]:
        peaks = len(reported(job, MemoryCost))
        next_up = "" if peaks < WAYS else ". Now timing each method"
        text = f"Peak memory: {peaks} of {WAYS} methods measured{next_up}"
        return text, peaks / WAYS

    def gather(self, job: Job) -> MemoryLab | list[MemoryCost]:
        """The peaks so far; once the times are measured too, the whole result."""
        return job.value or reported(job, MemoryCost)

    def chart(self, result: MemoryLab | list[MemoryCost]) -> None:
        if not isinstance(result, MemoryLab):
            counted = [cost for cost in result if cost.peak_bytes is not None]
            figures.bullets(f"{c.name}: {format.size(c.peak_bytes)}" for c in counted)
        elif all(cost.peak_bytes is not None for cost in result.costs):
            st.altair_chart(
                time_against_memory(result),
                alt="Peak memory against time, with a point for each method",
            )
        else:
            backend = result.environment.backend
            st.info(
                f"This app doesn't measure peak memory on {backend}. "
                "We show only times."
            )

    def finding(self, lab: MemoryLab) -> Finding | None:
        peaks = {cost.name: cost.peak_bytes for cost in lab.costs}
        checkpointed, plain = peaks[CHECKPOINTED], peaks[STEP]
        if not checkpointed or not plain:
            return None
        share = checkpointed / plain
        right = self.words["answers"][(share < 0.75) + (share < 0.25)]
        return Finding(f"Checkpointing cuts the peak memory to **{share:.0%}**.", right)

    def lines(self, lab: MemoryLab) -> list[str]:
        costs, lines = {cost.name: cost for cost in lab.costs}, []
        fields = {"lab": lab, "part": lab.batch_size // lab.parts}
        notes = set()
        for way, text in self.words["ways"].items():
            cost, plain = costs[way], costs[PLAIN[costs[way].kind]]
            slowdown = paired(cost.seconds, plain.seconds)
            against = f"it takes {slowdown.by} times as long"
            if cost.peak_bytes is not None and plain.peak_bytes:
                share = cost.peak_bytes / plain.peak_bytes
                against += f", with {share:.0%} of the peak memory"
            fields["against"] = against
            gradients = self.words["differ" if cost.difference else "same"]
            lines.append(text.format(gradients=gradients.format(cost), **fields))
            notes.add(slowdown.note)
        return [*lines, *notes - {""}]

    def below(self, result: MemoryLab | list[MemoryCost]) -> None:
        if not isinstance(result, MemoryLab):
            return
        ways = (
            {
                "What": cost.kind.capitalize(),
                "Method": cost.name,
                "Peak, MB": None if cost.peak_bytes is None else cost.peak_bytes / 1e6,
                "Median, ms": median(cost.seconds) * 1e3,
                "Least, ms": min(cost.seconds) * 1e3,
                "Most, ms": max(cost.seconds) * 1e3,
            }
            for cost in result.costs
        )
        columns = ("Peak, MB", "Median, ms", "Least, ms", "Most, ms")
        alt = "Peak memory and time for each method"
        figures.table(ways, alt=alt, formats=dict.fromkeys(columns, "%.1f"))
        if result.cards:
            with simulated.outline(f"memory{self.suffix}", explained=True):
                self.draw_cards({card.bytes: card for card in result.cards})

    def draw_cards(self, cards: dict[int, Card]) -> None:
        st.markdown(self.words["cards"])
        key = f"memory_card{self.suffix}"
        card = cards[controls.choice("Memory", key, list(cards), format_func=mebibytes)]
        plain, again = (f"{card.fits[way]:,}" for way in (STEP, CHECKPOINTED))
        fits = {"card": mebibytes(card.bytes), "plain": plain, "again": again}
        st.markdown(self.words["fits"].format(**fits))
        sizes = map(format.size, card.activations.values())
        st.markdown(self.words["taken"].format(plain, *sizes))
        st.markdown(self.words["raises"].format(again))
        simulated.message(card.message)

    def caption(self, lab: MemoryLab) -> str:
        return self.words["how"].format(lab=lab, n=len(lab.costs[0].seconds))


def time_against_memory(lab: MemoryLab) -> charts.Chart:
    frame = figures.readings(
        lab.costs, "kind", "name", ends=lambda s: (min(s), max(s)), milliseconds=1e3
    )
    frame["megabytes"] = [(cost.peak_bytes or 0) / 1e6 for cost in lab.costs]
    frame["below"] = frame["name"].isin(BELOW)
    colors = charts.palette()
    hues = (colors.of(lab.environment.backend), colors.further[1])
    kinds = dict.fromkeys(frame["kind"])
    x = alt.X("milliseconds:Q").title("Milliseconds").axis(tickCount=6)
    y = alt.Y("megabytes:Q").title("Peak memory, MB").axis(tickCount=6)
    times = {"milliseconds": "Median, ms", "low": "Least, ms", "high": "Most, ms"}
    chart = alt.Chart(frame).encode(
        x=x.scale(domain=[0, frame["high"].max() * 1.2], nice=False),
        y=y.scale(domain=[0, frame["megabytes"].max() * 1.2], nice=False),
        color=charts.hues("kind", kinds, hues, symbolOpacity=1),
        tooltip=charts.tips(kind="What", name="Method")
        + charts.tips(".4g", **times, megabytes="Peak, MB"),
    )
    points = chart.mark_point(filled=True, size=110, opacity=1)
    names = [
        chart.transform_filter(alt.datum.below == below)
        .mark_text(dy=dy, fontSize=12)
        .encode(text="name:N", color=alt.value(colors.text))
        for below, dy in ((False, -14), (True, 17))
    ]
    return alt.layer(
        chart.mark_rule(strokeWidth=1.5).encode(x="low:Q", x2="high:Q"),
        points.encode(shape=alt.Shape("kind:N").legend(None)),
        *names,
    ).properties(height=320)


def mebibytes(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"
