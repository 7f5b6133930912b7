"""A chart of the data and of the curve that a model of the regression task learned."""

import altair as alt
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from core.data import curve
from core.results import Fit, RunResult
from core.ui import charts as base
from core.ui.charts import LATER, LINES, Chart, Palette

POINTS = 500  # training points on the chart; more would hide the curves
TRUTH, MODEL = "The curve without noise", "The model"


def draw(fit: Fit | None, backend: str) -> None:
    """Draw the data, the true curve and, if there is a fit, the model's curve."""
    st.vega_lite_chart(
        table(fit),
        chart(backend),
        key="chart_fit",
        alt="The noisy points, the curve without noise, and the model's curve",
    )
    total = f"{curve.TRAIN:,}"
    text = (
        f"The chart shows {POINTS} of the {total} training points. "
        "The noise in the points has a standard deviation of "
        f"{curve.NOISE}."
    )
    if fit is not None and fit.noise is not None:
        text += (
            " The shaded band extends two learned standard deviations "
            "above and below the curve. The learned standard deviation "
            "is now {noise}."
        ).format(noise=f"{fit.noise:.3f}")
    st.caption(text)


def table(fit: Fit | None) -> pa.Table:
    """The points of the model's curve, with the columns line, x, y, low and high.

    low and high are y minus and plus two learned standard deviations of the noise.
    """
    x = pa.array(curve.POSITIONS if fit else (), pa.float64())
    y = pa.array(fit.outputs if fit else (), pa.float64())
    reach = 2 * (fit.noise or 0.0) if fit else 0.0
    line = pa.repeat(MODEL, len(y))
    low, high = pc.subtract(y, reach), pc.add(y, reach)
    return pa.table({"line": line, "x": x, "y": y, "low": low, "high": high})


def in_words(result: RunResult) -> str:
    r2, rmse = f"{result.r2:.3f}", f"{result.rmse:.3f}"
    return (
        f"**On the test points, R² is {r2} and RMSE is {rmse}**. The "
        "points are noisy, so even the curve without noise has an "
        f"RMSE of about {curve.NOISE}."
    )


@base.live
def chart(colors: Palette, backend: str) -> Chart:
    """The data as dots, the true curve, and the model's curve.

    The points of the model's curve come later, from `table`.
    """
    points = [{"x": x, "y": y} for x, y in curve.draw(POINTS, seed=0)]
    truth = [{"line": TRUTH, "x": x, "y": curve.f(x)} for x in curve.POSITIONS]
    hues = (colors.text, colors.of(backend))
    color = base.hues("line", (TRUTH, MODEL), hues, **LINES)
    # The lines of a good fit overlap, and color alone can't tell them apart.
    dash = alt.StrokeDash("line:N").legend(alt.Legend(title=None, orient="top"))
    dash = dash.scale(domain=[TRUTH, MODEL], range=[[6, 4], [1, 0]])
    dots, model, true = (
        alt.Chart(data).encode(
            x=alt.X("x:Q").scale(domain=[curve.LOW, curve.HIGH], nice=False),
            y=alt.Y("y:Q").title("y").scale(domain=[-2.5, 2.5], nice=False),
        )
        for data in (alt.Data(values=points), LATER, alt.Data(values=truth))
    )
    band = model.mark_area(color=colors.of(backend), opacity=0.18, clip=True)
    return alt.layer(
        dots.mark_circle(size=14, color=colors.quiet, opacity=0.35, clip=True),
        band.encode(y="low:Q", y2="high:Q"),
        base.lines(model.encode(color=color, strokeDash=dash), 4, clip=True),
        base.lines(true.encode(color=color, strokeDash=dash), 2),
    ).properties(height=320)
