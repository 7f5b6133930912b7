"""Where a visitor has no runs: the newest of this server, or a made-up example."""

from math import exp
from time import time

import pyarrow as pa
import streamlit as st

from core.store.results import RunSummary
from core.ui import format
from core.ui.charts import runs as charts
from core.ui.course import page
from core.ui.my_runs import compare, listing
from core.ui.runs import CURVE, RUN_NAME, run

EXAMPLE = {"batch 64": (0.35, 240), "batch 256": (0.6, 120)}  # fall, points
PALE = 0.5  # opacity: seen, and not taken for a measurement


def draw(newest: RunSummary | None) -> None:
    """The way to a run of one's own, and the newest of this server, if there is one."""
    st.markdown("**You haven't trained here yet.**")
    if st.button("Train a model", type="primary", icon=":material/play_arrow:"):
        st.switch_page(page("Train").file)
    whole = run(newest.id) if newest else None
    if newest is None or whole is None:
        _example()
        return
    name = (
        f"{format.NAMES.get(newest.model or '', newest.model)}, {listing.label(newest)}"
    )
    st.markdown(
        f"**The newest run on this server**: {listing.figure(newest)} in "
        f"{format.duration(newest.seconds or 0)}, by somebody in this course, "
        f"{format.ago(time() - newest.submitted)} on {newest.device_name}."
    )
    st.vega_lite_chart(
        compare.loss_table([name], [whole]),
        charts.losses(((name, 0),), "seconds"),
        alt="Training loss of the newest run on this server",
    )


def _example() -> None:
    """Two curves that were made up, pale."""
    st.markdown("**A made-up example**: two runs side by side, as yours will be.")
    tables = []
    for name, (fall, count) in EXAMPLE.items():
        seconds = [each * 6 / count for each in range(1, count + 1)]
        losses = [0.35 + 1.9 * exp(-fall * each * 3) for each in seconds]
        steps = list(range(1, count + 1))
        epochs = [5 * each / count for each in steps]
        single = [None] * count  # the losses of steps are left out
        curve = pa.table([steps, seconds, single, epochs, losses], schema=CURVE)
        tables.append(curve.add_column(0, RUN_NAME, pa.repeat(name, count)))
    looks = tuple((name, number) for number, name in enumerate(EXAMPLE))
    st.vega_lite_chart(
        pa.concat_tables(tables),
        charts.losses(looks, "seconds", PALE),
        alt="An example: two made-up loss curves",
    )
