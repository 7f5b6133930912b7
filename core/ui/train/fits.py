"""What a model of the task regression has learned, over the data it learns from."""

import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from core.data import curve
from core.results import Fit, RunResult
from core.ui.charts import train as charts


def draw(fit: Fit | None, backend: str) -> None:
    """The fit as it is now; without one, the data and the curve alone."""
    st.vega_lite_chart(
        table(fit),
        charts.fit(backend),
        key="chart_fit",
        alt="The noisy points, the curve without noise, and the model's curve",
    )
    text = (
        f"{charts.FIT_POINTS} of the {curve.TRAIN:,} training points; they scatter "
        f"around the curve with a standard deviation of {curve.NOISE}."
    )
    if fit is not None and fit.noise is not None:
        text += (
            " The band is twice the noise scale that the criterion has learned, now "
            f"{fit.noise:.3f}, to both sides."
        )
    st.caption(text)


def table(fit: Fit | None) -> pa.Table:
    """line, x, y, and low and high, which are two learned noise scales away."""
    x = pa.array(curve.POSITIONS if fit else (), pa.float64())
    y = pa.array(fit.outputs if fit else (), pa.float64())
    reach = 2 * (fit.noise or 0.0) if fit else 0.0
    line = pa.repeat(charts.MODEL, len(y))
    low, high = pc.subtract(y, reach), pc.add(y, reach)
    return pa.table({"line": line, "x": x, "y": y, "low": low, "high": high})


def in_words(result: RunResult) -> str:
    """How good the fit is, beside what there is to reach."""
    return (
        f"**R² is {result.r2:.3f} and RMSE {result.rmse:.3f} on the test points**; "
        f"the curve without noise has RMSE {curve.NOISE}."
    )
