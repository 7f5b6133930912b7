"""The charts of the Model page."""

import altair as alt
import numpy as np
import pandas as pd

from core.ui.charts import base
from core.ui.charts.base import LINES, Chart

SIZES = (
    "datum.value < 1048576 ? datum.value / 1024 + ' KB' : datum.value / 1048576 + ' MB'"
)


def transfers(frame: pd.DataFrame) -> Chart:
    """GB/s over bytes, both logarithmic; a line a kind of memory, a panel a direction.

    `frame` as core.ui.move.transfers.frame makes it. What was recorded is dashed.
    """
    colors = base.palette()
    kinds = list(dict.fromkeys(frame["memory"]))
    on_host = frame["direction"] == "host to host"
    shown = [
        (colors.cpu if on_host[frame["memory"] == kind].any() else colors.accelerator)
        if kind in ("new memory", "pageable")
        else colors.further[index % len(colors.further)]
        for index, kind in enumerate(kinds)
    ]
    places = list(dict.fromkeys(frame["where"]))
    dashes = [[1, 0], *[[6, 4]] * len(places)]
    sizes = alt.X("bytes:Q").title("Size of the copy")
    rates = frame["low"].min() / 1.2, frame["high"].max() * 1.2
    chart = alt.Chart().encode(
        x=sizes.scale(type="log", domain=[4096, 2**28]).axis(
            base.ticks((4096 * 16**power for power in range(5)), labelExpr=SIZES)
        ),
        y=alt.Y("rate:Q")
        .title("GB/s")
        .scale(type="log", domain=rates, nice=False)
        .axis(base.ticks(base.decades(*rates), format="~g")),
        color=base.hues("memory", kinds, shown, **LINES),
        strokeDash=alt.StrokeDash("where:N")
        .scale(domain=places, range=dashes)
        .legend(alt.Legend(title=None, orient="top") if len(places) > 1 else None),
        tooltip=base.tips(where="Measured", direction="Direction")
        + base.tips(memory="Host memory", size="Size")
        + base.tips(",.1f", us="Microseconds")
        + base.tips(".3g", rate="GB/s"),
    )
    lines = base.lines(chart, points=30, band=True).properties(data=frame)
    panels = list(dict.fromkeys(frame["direction"]))
    if len(panels) == 1:
        return lines.properties(height=300)
    panel = alt.Row("direction:N").title(None).sort(panels)
    return lines.properties(height=200).facet(row=panel)


def logits(
    values: np.ndarray, labels: tuple[int, ...], classes: tuple[str, ...]
) -> Chart:
    """Logits (n, classes) as a heat map; a row is an image, its true class framed."""
    images = [f"{row} · {classes[label]}" for row, label in enumerate(labels, 1)]
    table = pd.DataFrame(values, images, classes).rename_axis("image").reset_index()
    frame = table.melt("image", var_name="class", value_name="logit")
    true = dict(zip(images, [classes[label] for label in labels], strict=True))
    frame["true"] = frame["class"] == frame["image"].map(true)
    colors = base.palette()
    most = float(np.abs(values).max()) or 1.0
    # On a light page the amber of what is high is pale enough for dark text.
    strong = frame["logit"].abs() > most / 2
    frame["dark"] = strong & ((frame["logit"] < 0) | (colors == base.DARK))
    ends = colors.further[1], colors.page, colors.further[2]  # no right, no wrong
    chart = alt.Chart(frame).encode(
        x=alt.X("class:N")
        .sort(list(classes))
        .title(None)
        .axis(labelAngle=-40, labelOverlap=False),
        y=alt.Y("image:N").sort(None).title(None),
        tooltip=["image", "class", alt.Tooltip("logit").format(".3f")],
    )
    return base.heat_map(
        chart,
        base.shades("logit", *ends, domain=[-most, 0, most]),
        alt.Text("logit:Q").format(".2f"),
        colors,
        "datum.dark",
        stroke=base.either("datum.true", colors.text, "transparent"),
        strokeWidth=alt.value(2),
    ).properties(height=alt.Step(28))


def parameter_bars(values: dict[str, float], title: str, backend: str) -> Chart:
    """A bar for each name, in the order they come, with its value at the end."""
    frame = pd.DataFrame({"name": list(values), "value": list(values.values())})
    return base.bars(
        base.rows(frame, "name", limit=160),
        alt.X("value:Q").title(title),
        alt.Text("value:Q").format(".3g"),
        24,
        height=14,
        color=alt.value(base.palette().of(backend)),
    )
