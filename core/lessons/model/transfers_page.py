"""The time of copies between host and device, as the Model page shows it."""

from collections.abc import Sequence
from statistics import quantiles

import altair as alt
import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.lessons.model.model_result import Crossing, Transfer, Transfers
from core.measure import rounding
from core.measure.environment import Machine
from core.measure.speedup import agree, spanned
from core.ui import charts, figures, format, simulated
from core.ui.job_panel import reported
from core.ui.lab import Finding, Guess, Lab
from core.ui.server import ask_once, engine, explained
from core.ui.source import show
from to_device.names import SIMULATED
from to_device.words import Words

words = Words(__file__)

GUESS = "transfers_guess"
GUESSES = ("Less than 5 GB/s", "5 to 20 GB/s", "More than 20 GB/s")
HUMP = 1.2  # a curve levels out unless its peak exceeds its end by this factor
SIZES = (  # a Vega expression that writes a number of bytes as "4 KB" or "16 MB"
    "datum.value < 1048576 ? datum.value / 1024 + ' KB' : datum.value / 1048576 + ' MB'"
)


def show_copies() -> None:
    machine = engine().machine()
    if machine and len(machine.devices) > 1:
        show("core.lessons.model.transfers:device_copies")
    else:
        show("core.lessons.model.transfers:host_copies")


def in_words(crossed: Crossing) -> str:
    if not crossed.copies:
        return "No copy goes to or from the device, and the host doesn't wait."
    waits = f"waits {format.counted(crossed.waits, 'time')}."
    if crossed.waits == crossed.copies > 1:
        waits = "waits for each copy."
    copies = format.counted(crossed.copies, "copy", "copies")
    return f"**{copies}**, {format.size(crossed.bytes)} in all. The host {waits}"


def draw_counts() -> None:
    """Show for which kinds of copies the host waits until the copy is done.

    The waits are counted on the simulated accelerator.
    """
    copies: dict[tuple[str, str], Crossing]
    copies = ask_once("core.lessons.model.transfers:count", SIMULATED)
    table: dict[str, dict[str, str]] = {}
    for (direction, memory), copy in copies.items():
        row = table.setdefault(memory, {"Host memory": memory})
        row[f"To {direction.split()[-1]}"] = "waits" if copy.waits else "works"
    size = format.size(next(iter(copies.values())).bytes)
    st.markdown(words("transfers.counted", size=size))
    figures.table(table.values(), alt="What the host does during each kind of copy")


class TransfersLab(Lab):
    key = "measure_transfers"
    needs_accelerator = True
    event, noun = Transfer, "timing"
    code = (
        ("The copies", show_copies),
        ("The timer", "core.measure.timing:measure_side_by_side"),
    )

    def draw(self, machine: Machine) -> None:
        if machine.simulates:
            outline = simulated.outline("transfers")
            with outline, explained("The copies were not counted"):
                draw_counts()
        super().draw(machine)

    def more(self, machine: Machine) -> str | None:
        return self.words["within"] if len(machine.devices) == 1 else None

    def asks(self, machine: Machine, _: tuple | None) -> Guess:
        where = "within the host" if len(machine.devices) == 1 else "to the device"
        return Guess(GUESS, self.words["question"].format(where=where), GUESSES)

    def gather(self, job: Job) -> Transfers | None:
        measured = tuple(reported(job, Transfer))
        return job.value or (Transfers(measured) if measured else None)

    def chart(self, result: Transfers) -> None:
        rates = frame(result.measured)
        colors = charts.palette()
        kinds = list(dict.fromkeys(rates["memory"]))
        directions = list(dict.fromkeys(rates["direction"]))
        first = colors.cpu if "host to host" in directions else colors.accelerator
        hues = [
            first if kind in ("new memory", "pageable") else colors.further[number]
            for number, kind in enumerate(kinds)
        ]
        y_domain = rates["low"].min() / 1.2, rates["high"].max() * 1.2
        x = alt.X("bytes:Q").title("Size of the copy")
        # A chart per direction: the panels of a facet would be too wide for a phone.
        for direction in directions:
            y = alt.Y("rate:Q").title(f"GB/s, {direction}")
            chart = alt.Chart(rates[rates["direction"] == direction]).encode(
                x=x.scale(type="log", domain=[4096, 2**28]).axis(
                    charts.ticks((4096 * 16**n for n in range(5)), labelExpr=SIZES)
                ),
                y=y.scale(type="log", domain=y_domain, nice=False).axis(
                    charts.ticks(charts.decades(*y_domain), format="~g")
                ),
                color=charts.hues("memory", kinds, hues, **charts.LINES),
                tooltip=charts.tips(direction="Direction", memory="Host memory")
                + charts.tips(size="Size")
                + charts.tips(",.1f", us="Microseconds")
                + charts.tips(".3g", rate="GB/s"),
            )
            lines = charts.lines(chart, points=30, band=True)
            st.altair_chart(
                lines.properties(height=300 if len(directions) == 1 else 240),
                alt=f"Gigabytes per second, {direction}, by the size of the copy, on "
                "two logarithmic axes",
            )

    def finding(self, result: Transfers) -> Finding:
        rates = frame(result.measured)
        rates = rates[rates["direction"] == rates["direction"].iloc[0]]
        large = rates[rates["bytes"] == rates["bytes"].max()]
        best = large.iloc[int(large["rate"].argmax())]
        text = f"From {best['direction']}, a copy of {best['size']} ({best['memory']}) "
        text += f"runs at **{speed(best)}**."
        low, high = (float(best[column]) for column in ("low", "high"))
        if is_steady(best):
            low = high = float(best["rate"])
        else:
            text += " The repeats differ too much to be summed up in a single number. "
            text += "Measure again when nothing else is running."
        return Finding(text, spanned(GUESSES, (5, 20), low, high))

    def lines(self, result: Transfers) -> Sequence[str]:
        """A sentence for each kind of copy, and one if new memory is slower.

        If copies within the host are faster at a smaller size than at the
        largest, the CPU's cache is the cause.
        """
        lines = []
        rates = frame(result.measured)
        for kind, curve in rates.groupby(["direction", "memory"], sort=False):
            small, large = curve.iloc[0], curve.iloc[-1]
            best = curve.iloc[int(curve["rate"].argmax())]
            text = f"levels out at **{speed(large)}**"
            if best["rate"] > HUMP * large["rate"]:
                sure = is_steady(best) and is_steady(large)
                cached = sure and kind[0] == "host to host"
                text = f"**{speed(best)}** at {best['size']}"
                if cached:
                    text += ", which fits in the cache"
                text += f"; **{speed(large)}** at {large['size']}"
                if cached:
                    text += ", which doesn't"
            start = rounding.precise(small["us"] / 1e6)
            lines.append(
                f"{', '.join(map(str, kind)).capitalize()}: {text}. "
                f"A copy of {small['size']} takes {start}."
            )
        large = rates[rates["bytes"] == rates["bytes"].max()].set_index("memory")
        if {"new memory", "memory used before"} <= set(large.index):
            new, used = large.loc["new memory"], large.loc["memory used before"]
            if new["high"] < used["low"]:
                lines.append(self.words["new_memory"])
        return lines

    def caption(self, result: Transfers) -> str:
        ns = sorted({len(copy.seconds) for copy in result.measured})
        return (
            f"Median of n = {' to '.join(map(str, ns))} repeats after a warm-up. The "
            "shading spans the middle half of the repeats."
        )


def speed(copy: pd.Series) -> str:
    """The GB/s of a row of `frame`, as a range if the repeats differ too much."""
    if is_steady(copy):
        return f"{rounding.rounded(copy['rate'])} GB/s"
    return f"{rounding.rounded(copy['low'])} to {rounding.rounded(copy['high'])} GB/s"


def is_steady(copy: pd.Series) -> bool:
    return agree((float(copy["low"]), float(copy["high"])))


def frame(measured: Sequence[Transfer]) -> pd.DataFrame:
    """A row per kind and size, with the median rate and its quartiles in GB/s."""
    rows = []
    for copy in measured:
        fast, typical, slow = quantiles(copy.seconds)
        row = {
            "direction": copy.direction,
            "memory": copy.memory,
            "bytes": copy.bytes,
            "size": format.power_of_two(copy.bytes),
            "us": typical * 1e6,
            "rate": copy.bytes / typical / 1e9,
            "low": copy.bytes / slow / 1e9,
            "high": copy.bytes / fast / 1e9,
        }
        rows.append(row)
    return pd.DataFrame(rows)
