"""Charts: a DataFrame in, an alt.Chart out; for what lives, a specification."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec

import altair as alt
import streamlit as st

Arguments = ParamSpec("Arguments")


@dataclass(frozen=True)
class Palette:
    """The colours of one theme. `further` are for runs that came earlier."""

    accelerator: str
    cpu: str
    further: tuple[str, ...]
    text: str
    quiet: str

    def of(self, backend: str) -> str:
        return self.cpu if backend == "CPU" else self.accelerator


LIGHT = Palette(
    "#c2410c",
    "#2563a8",
    ("#3f7d4e", "#8a5aa8", "#b58900", "#5f6b7a"),
    "#1f2430",
    "#5f6b7a",
)
DARK = Palette(
    "#f0834a",
    "#6aa9e9",
    ("#7fbf8c", "#c39bd8", "#e0b94a", "#9aa5b4"),
    "#e7e9ec",
    "#9aa5b4",
)

Chart = alt.LayerChart | alt.FacetChart  # what alt.layer answers
Names = tuple[str, ...]  # of the runs on a chart, the newest last
Specification = dict[str, Any]
LATER = alt.UrlData("later")  # stands for the data that comes when a chart is drawn
AXES = {"step": "Step", "epoch": "Epoch", "seconds": "Seconds of training"}


def palette() -> Palette:
    """The colours of the theme that this visitor sees."""
    return DARK if st.context.theme.type == "dark" else LIGHT


def live(
    draw: Callable[Concatenate[Palette, Arguments], Chart],
) -> Callable[Arguments, Specification]:
    """Make a chart over LATER what st.vega_lite_chart takes, in the visitor's colours.

    Building a chart takes far longer than sending its data: a chart that lives is built
    once, and its specification stays the same while its data changes.
    """

    def build(*arguments: Any, **named: Any) -> Specification:
        return specification(draw(*arguments, **named))

    built: Callable[..., Specification] = lru_cache(maxsize=256)(build)

    @wraps(draw)
    def in_colors(
        *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Specification:
        return built(palette(), *arguments, **named)

    return in_colors


def specification(chart: Chart) -> Specification:
    """The chart as Vega-Lite, without LATER: st.vega_lite_chart brings the data."""

    def without_later(node: Any) -> Any:
        if isinstance(node, dict):
            kept = {k: v for k, v in node.items() if v != LATER.to_dict()}
            return {k: without_later(v) for k, v in kept.items()}
        return (
            [without_later(each) for each in node] if isinstance(node, list) else node
        )

    return without_later(chart.to_dict())


@live
def share(colors: Palette, backend: str) -> Chart:
    """A thin bar, full at 1, in the colour of the device; for data with `share`."""
    base = alt.Chart(LATER)
    x = alt.X("share:Q", scale=alt.Scale(domain=[0, 1], clamp=True), axis=None)
    ground = base.mark_bar(color=colors.quiet, opacity=0.25, height=8).encode(
        x=alt.value(0), x2=alt.value("width")
    )
    bar = base.mark_bar(color=colors.of(backend), height=8).encode(x=x)
    return alt.layer(ground, bar).properties(height=12)
