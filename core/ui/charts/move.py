"""The charts of the page Model & data."""

import altair as alt
import numpy as np
import pandas as pd

from core.ui.charts.base import LIGHT, Chart, palette


def transfers(frame: pd.DataFrame) -> Chart:
    """GB/s over bytes, both logarithmic; a line a kind of memory, a panel a direction.

    `frame` as core.ui.move.transfers.frame makes it. What was recorded is dashed.
    """
    colors = palette()
    kinds = list(dict.fromkeys(frame["memory"]))
    on_host = frame["direction"] == "host to host"
    hues = [
        (colors.cpu if on_host[frame["memory"] == kind].any() else colors.accelerator)
        if kind in ("new memory", "pageable")
        else colors.further[index % len(colors.further)]
        for index, kind in enumerate(kinds)
    ]
    places = list(dict.fromkeys(frame["where"]))
    base = alt.Chart().encode(
        x=alt.X(
            "bytes:Q",
            title="Size of the copy",
            scale=alt.Scale(type="log", base=4, domain=[4096, 2**28]),
            axis=alt.Axis(
                values=[4096 * 16**power for power in range(5)],
                labelExpr="datum.value < 1048576 ? datum.value / 1024 + ' KB' "
                ": datum.value / 1048576 + ' MB'",
            ),
        ),
        color=alt.Color(
            "memory:N",
            scale=alt.Scale(domain=kinds, range=hues),
            legend=alt.Legend(
                title=None, orient="top", symbolOpacity=1, symbolStrokeWidth=3
            ),
        ),
        strokeDash=alt.StrokeDash(
            "where:N",
            scale=alt.Scale(domain=places, range=[[1, 0], *[[6, 4]] * len(places)]),
            legend=alt.Legend(title=None, orient="top") if len(places) > 1 else None,
        ),
    )
    y = alt.Scale(type="log", nice=True)
    band = base.mark_area(opacity=0.18).encode(
        y=alt.Y("low:Q", scale=y), y2=alt.Y2("high:Q")
    )
    line = base.mark_line(point=True, strokeWidth=2.2).encode(
        y=alt.Y("rate:Q", title="GB/s", scale=y),
        tooltip=[
            alt.Tooltip("where:N", title="Measured"),
            alt.Tooltip("direction:N", title="Direction"),
            alt.Tooltip("memory:N", title="Host memory"),
            alt.Tooltip("size:N", title="Size"),
            alt.Tooltip("us:Q", title="Microseconds", format=",.1f"),
            alt.Tooltip("rate:Q", title="GB/s", format=".3g"),
        ],
    )
    panels = list(dict.fromkeys(frame["direction"]))
    if len(panels) == 1:
        return alt.layer(band, line, data=frame).properties(height=300)
    return (
        alt.layer(band, line, data=frame)
        .properties(height=200)
        .facet(row=alt.Row("direction:N", title=None, sort=panels))
    )


def logits(
    values: np.ndarray, labels: tuple[int, ...], classes: tuple[str, ...]
) -> Chart:
    """Logits (n, classes) as a heat map; a row is an image, its true class framed."""
    frame = pd.DataFrame(
        [
            (f"{row + 1} · {classes[label]}", name, float(value), index == label)
            for row, (logit, label) in enumerate(zip(values, labels, strict=True))
            for index, (name, value) in enumerate(zip(classes, logit, strict=True))
        ],
        columns=["image", "class", "logit", "true"],
    )
    colors = palette()
    most = float(np.abs(values).max()) or 1.0
    base = alt.Chart(frame).encode(
        x=alt.X(
            "class:N", sort=list(classes), title=None, axis=alt.Axis(labelAngle=-40)
        ),
        y=alt.Y("image:N", sort=None, title=None),
        tooltip=["image", "class", alt.Tooltip("logit", format=".3f")],
    )
    ground = "#fdfcfa" if colors is LIGHT else "#14171c"
    shade = alt.Scale(
        domain=[-most, 0, most],
        range=[colors.further[1], ground, colors.further[0]],
        interpolate="rgb",
    )
    cells = base.mark_rect(strokeWidth=2).encode(
        color=alt.Color("logit:Q", scale=shade, legend=None),
        stroke=alt.condition(
            "datum.true", alt.value(colors.text), alt.value("transparent")
        ),
    )
    numbers = base.mark_text(fontSize=11, color=colors.text).encode(
        text=alt.Text("logit:Q", format=".2f")
    )
    return alt.layer(cells, numbers).properties(height=alt.Step(28))


def parameter_bars(values: dict[str, float], title: str, backend: str) -> Chart:
    """A bar for each name, in the order they come, with its value at the end."""
    colors = palette()
    frame = pd.DataFrame({"name": list(values), "value": list(values.values())})
    most = max(values.values(), default=0.0) or 1.0
    base = alt.Chart(frame).encode(
        y=alt.Y("name:N", sort=list(values), title=None, axis=alt.Axis(labelLimit=160)),
        x=alt.X(
            "value:Q",
            title=title,
            scale=alt.Scale(domain=[0, most * 1.25]),
            axis=alt.Axis(tickCount=4),
        ),
    )
    bar = base.mark_bar(color=colors.of(backend), height=14)
    number = base.mark_text(align="left", dx=5, color=colors.text).encode(
        text=alt.Text("value:Q", format=".3g")
    )
    return alt.layer(bar, number).properties(height=alt.Step(24))
