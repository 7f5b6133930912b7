"""The chart of the Checkpoints page."""

import altair as alt

from core.ui.charts.base import LATER, Chart, Palette, live

# The parts of the comparison between training through and resuming.
PARTS = {
    "through": "Trained through",
    "resumed": "Saved, loaded, resumed",
    "weights": "Only the weights loaded",
}


@live
def resumed(colors: Palette, backend: str, steps: int, at_step: int) -> Chart:
    """Training through as a broad band, resuming as a line on it, and the mistake.

    For data with the columns part, step, loss. `at_step` is where it was interrupted.
    """
    scale = alt.Scale(
        domain=list(PARTS.values()),
        range=[colors.of(backend), colors.text, colors.further[0]],
    )
    base = alt.Chart(LATER).encode(
        x=alt.X(
            "step:Q",
            title="Step",
            scale=alt.Scale(domain=[0, steps], nice=False),
            axis=alt.Axis(tickCount=8),
        ),
        y=alt.Y("loss:Q", title="Loss", scale=alt.Scale(zero=False)),
        color=alt.Color(
            "part:N",
            scale=scale,
            legend=alt.Legend(
                title=None,
                orient="top",
                columns=2,
                symbolOpacity=1,
                symbolStrokeWidth=3,
            ),
        ),
        tooltip=[
            alt.Tooltip("part:N", title="Training"),
            alt.Tooltip("step:Q", title="Step", format=",d"),
            alt.Tooltip("loss:Q", title="Loss", format=".6f"),
        ],
    )
    through, again, weights = (
        base.transform_filter(alt.datum.part == name) for name in PARTS.values()
    )
    middle = alt.Data(values=[{"step": at_step, "text": "saved, loaded"}])
    rule = alt.Chart(middle).mark_rule(color=colors.quiet, strokeDash=[4, 4])
    label = alt.Chart(middle).mark_text(
        text="saved, loaded", align="left", dx=6, dy=6, baseline="top", fontSize=11
    )
    return alt.layer(
        rule.encode(x="step:Q"),
        through.mark_line(strokeWidth=6, opacity=0.45),
        weights.mark_line(strokeWidth=1.4, opacity=0.9),
        again.mark_line(strokeWidth=1.2),
        label.encode(x="step:Q", y=alt.value(0), color=alt.value(colors.quiet)),
    ).properties(height=300)
