"""The Speed page's lab on small copies: many pieces, and numbers to fetch."""

from collections.abc import Sequence
from statistics import median

import altair as alt
import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.lessons.mistakes.catalogue_page import link_to
from core.lessons.speed.copies_result import ITEM, ONCE, CopiesLab, Waited
from core.measure import rounding
from core.measure.environment import Machine
from core.measure.speedup import paired, spanned
from core.ui import charts, figures, format, simulated
from core.ui.lab import SIDES, Finding, Lab


class Copies(Lab):
    key = "run_copies_lab"
    file = "small_copies"
    code = (
        ("Pieces", "core.lessons.speed.copies:copy_pieces"),
        (".item()", "core.lessons.speed.copies:fetch_items"),
        (".cpu()", "core.lessons.speed.copies:fetch_with_cpu"),
        ("Once", "core.lessons.speed.copies:fetch_once"),
        ("Pinned", "core.lessons.speed.copies:move"),
    )

    def more(self, machine: Machine) -> str | None:
        return None if machine.has_accelerator else self.words["on_cpu"]

    def progress(self, _: Job) -> str:
        return "Measuring. This takes only a few seconds."

    def chart(self, lab: CopiesLab) -> None:
        frame = figures.readings(lab.copied, "pieces", microseconds=1e6)
        colors = charts.palette()
        right = frame["pieces"].max() * 3
        ends = [frame["low"].min() / 1.5, frame["high"].max() * 2.5]
        x = alt.X("pieces:Q").title("Pieces")
        y = alt.Y("microseconds:Q", axis=charts.microseconds()).title("Time")
        chart = alt.Chart(frame).encode(
            x=x.scale(type="log", domain=[0.4, right], nice=False).axis(
                charts.ticks(frame["pieces"], format=",d")
            ),
            y=y.scale(type="log", domain=ends, nice=False),
            color=alt.value(colors.of(lab.environment.backend)),
            tooltip=charts.tips(",d", pieces="Pieces") + charts.middle_half("µs"),
        )
        times = chart.mark_text(dy=-14).encode(
            text="time:N", color=alt.value(colors.text)
        )
        curve = charts.lines(chart, points=50, band=True)
        st.altair_chart(
            (curve + times).properties(height=260),
            alt="Time to copy the same bytes, by number of pieces, on logarithmic axes",
        )

    def finding(self, lab: CopiesLab) -> Finding:
        single, many = lab.copied[0], lab.copied[-1]
        slowdown = paired(many.seconds, single.seconds)
        size, answers = format.power_of_two(single.bytes), self.words["answers"]
        text = self.words["found"].format(size, many.pieces, slowdown.by)
        right = spanned(answers, (2, 10), *slowdown.interval)
        return Finding(f"{text} {slowdown.note}".rstrip(), right)

    def lines(self, lab: CopiesLab) -> list[str]:
        single, many = lab.copied[0], lab.copied[-1]
        extra = median(many.seconds) - median(single.seconds)
        price = rounding.precise(extra / (many.pieces - single.pieces))
        size = format.size(many.bytes / many.pieces)
        text = self.words["price"].format(price=price, size=size)
        if lab.environment.backend == "CPU":
            text += f" {self.words['pieces_on_cpu']}"
        return [text]

    def below(self, lab: CopiesLab) -> None:
        chart, words = st.columns(SIDES)
        rows = charts.rows(
            figures.readings(lab.fetched, "way", milliseconds=1e3),
            "way",
            limit=190,
            tooltip=charts.tips(way="Method") + charts.middle_half("ms"),
        )
        x = alt.X("milliseconds:Q").title("Milliseconds")
        backend = lab.environment.backend
        color = alt.value(charts.palette().of(backend))
        with chart:
            steps = lab.fetched[0].steps
            st.markdown(f"**Fetching one number in each of {steps:,} steps**")
            st.altair_chart(
                charts.bars(rows, x, "time:N", color=color),
                alt="Milliseconds to fetch one number per step, with three methods",
            )
        seconds = {fetched.way: fetched.seconds for fetched in lab.fetched}
        slowdown = paired(seconds[ITEM], seconds[ONCE])
        why = self.words["fetches_on_cpu" if backend == "CPU" else "fetches_elsewhere"]
        text = self.words["fetches"].format(by=slowdown.by, why=slowdown.note or why)
        words.markdown(text)
        link_to("item_every_step")
        if lab.waited:
            with simulated.outline(f"copies{self.suffix}", explained=True):
                self.draw_waits(lab.waited)

    def draw_waits(self, ways: Sequence[Waited]) -> None:
        least = min(ways, key=lambda way: way.waits)
        st.markdown(self.words["least"].format(least, ways[0].waits))
        rows = charts.rows(pd.DataFrame(ways), "way", limit=220)
        x = alt.X("waits:Q").title("Number of times the host waits")
        color = alt.value(charts.palette().further[1])
        st.altair_chart(
            charts.bars(rows, x, "waits:Q", 28, color=color),
            alt="How often the host waits with each method of moving or fetching data",
        )
        st.markdown(self.words["waits"])

    def caption(self, lab: CopiesLab) -> str:
        return self.words["how"].format(n=len(lab.copied[0].seconds))
