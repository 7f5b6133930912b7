"""One batch split over two ranks, as the Scale page shows it."""

import altair as alt
import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.lessons.scale.data_parallel_page import why_on_cpu
from core.lessons.scale.scale_result import Gradients
from core.measure.environment import Machine
from core.ui import charts, controls, dataset
from core.ui.lab import Lab

RANKS, IMAGES = 2, 32
# A difference below this fraction of the greatest gradient is due to rounding.
ROUNDING = 1e-4
AVERAGE, AT_ONCE = "their average", "all images at once"


class GradientsLab(Lab):
    key = "run_gradients"
    job_name = "The comparison"
    code = (
        ("Average by hand", "core.lessons.scale.gradients:average"),
        ("On each rank", "core.lessons.scale.gradients:share"),
    )

    def more(self, machine: Machine) -> str:
        return why_on_cpu(machine)

    def settings(self, machine: Machine) -> tuple:
        model = controls.model("gradients_model")
        return RANKS, dataset.default_task(machine), model, IMAGES

    def progress(self, _: Job) -> str:
        return "Starting the ranks"

    def gather(self, job: Job) -> tuple[Gradients, str] | None:
        """The result and the name of the model, or None while there is no result."""
        return None if job.value is None else (job.value, job.arguments[2])

    def chart(self, result: tuple[Gradients, str]) -> None:
        gradients, _ = result
        rows = [
            (name, f"rank {rank}", share.own[i], share.averaged[i], share.alone[i])
            for rank, share in enumerate(gradients.shares)
            for i, name in enumerate(gradients.classes)
        ]
        columns = ["label", "rank", "gradient", "average", "alone"]
        st.altair_chart(
            dots(pd.DataFrame(rows, columns=columns)),
            alt="The bias's gradient for each class on each rank, and the average",
        )

    def lines(self, result: tuple[Gradients, str]) -> list[str]:
        gradients, model = result
        whole, first = len(gradients.shares) * gradients.images, gradients.shares[0]
        gap = (
            f"the ranks' average and the gradients of all {whole} images differ by at "
            f"most {first.difference:.1e}. The largest gradient is {first.greatest:.2g}"
        )
        if first.difference < ROUNDING * first.greatest:
            lines = [
                f"**Equal, within rounding**: {gap}. The same numbers are added in "
                "different orders."
            ]
        else:
            lines = [f"**Not equal**: {gap}."]
            if model == "cnn":
                why = self.words["batch_norm"]
                lines[0] += f" {why.format(images=gradients.images, whole=whole)}"
        if gradients.agree:
            lines.append(self.words["agree"])
        exactly = "bit for bit"
        if first.by_ddp:
            exactly = f"except for differences of up to {first.by_ddp:.1e}"
        lines.append(
            "`DistributedDataParallel` gives the same gradients as averaging by hand, "
            f"{exactly}."
        )
        return [*lines, self.words["unequal_shares"]]

    def caption(self, result: tuple[Gradients, str]) -> str:
        gradients, _ = result
        ranks = len(gradients.shares)
        return (
            f"The first {ranks * gradients.images} training images on {ranks} ranks; "
            f"{gradients.backend} on {gradients.environment.device_name}. "
            f"{self.words['shown']}"
        )


def dots(frame: pd.DataFrame) -> charts.Chart:
    """Dots for the ranks' gradients, ticks for averages, rings for the whole batch."""
    colors = charts.palette()
    names = list(dict.fromkeys(frame["rank"]))
    tooltip = charts.tips(label="Class", rank="Rank") + charts.tips(
        ".5f", gradient="Its gradient", average="The average", alone="By one process"
    )
    rows = charts.rows(frame, "label", tooltip=tooltip)
    x = alt.X("gradient:Q").title("Gradient of the last layer's bias").axis(format="~r")
    shades = [*colors.runs[: len(names)], colors.text, colors.quiet]
    hues = charts.hues(
        "rank", [*names, AVERAGE, AT_ONCE], shades, symbolOpacity=1, columns=2
    )
    dots = rows.mark_circle(size=80, opacity=1).encode(x=x, color=hues)
    spans = rows.mark_rule(opacity=0.4).encode(x="gradient:Q", x2="average:Q")
    mean = rows.mark_tick(thickness=3, size=14).encode(
        x="average:Q", color=alt.datum(AVERAGE)
    )
    ring = rows.mark_point(size=260, strokeWidth=1.5).encode(
        x="alone:Q", color=alt.datum(AT_ONCE)
    )
    return alt.layer(spans, ring, dots, mean).properties(height=alt.Step(27))
