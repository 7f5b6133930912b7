"""One batch split over two ranks, as the Scale page shows it."""

import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Machine
from core.scale.results import Gradients
from core.ui import controls, dataset, figures
from core.ui.charts import scale as charts
from core.ui.job_panel import JobPanel, slot
from core.ui.lab import SIDES, Lab
from core.ui.scale import on_cpu

RANKS, IMAGES = 2, 32
ROUNDING = 1e-4  # of the greatest gradient; what is less comes of adding up floats
LAB = Lab(
    "Split a batch",
    f"Is 2 × {IMAGES} the same as 1 × {RANKS * IMAGES}? Two ranks compute the "
    f"gradients of {IMAGES} images each and average them, and one process computes "
    f"those of all {RANKS * IMAGES}.",
    "the gradients",
    JobPanel("core.scale.gradients:measure", "The comparison", "run_gradients"),
    ":material/scatter_plot: Press **Compare the gradients** to see both ranks' "
    "gradients for each class, and their average.",
    "`all_reduce` adds up a tensor over all ranks and leaves the sum on each. "
    "`DistributedDataParallel` calls it during the backward pass, in larger models "
    "while earlier layers are still computing. Dropout is off here: each rank would "
    "drop other units. From `core/scale/gradients.py`.",
    (
        ("Average by hand", "core.scale.gradients:average"),
        ("On each rank", "core.scale.gradients:share"),
    ),
)


def draw(machine: Machine) -> None:
    """The model, the chart and the difference."""
    LAB.begin(machine, on_cpu.why(machine))
    with controls.row():
        model = controls.model("gradients_model")
        task = dataset.default_task(machine)
        LAB.panel.buttons("Compare the gradients", (RANKS, task, model, IMAGES))
    LAB.follow(result)


def result(job: Job) -> None:
    done: Gradients | None = job.value
    if done is None:
        if not job.ended:
            slot("Starting the ranks")
        return
    chart, words = st.columns(SIDES)
    chart.altair_chart(
        charts.gradients(frame(done), len(done.shares)),
        alt="The gradient of the bias of each class, by rank, and their average",
    )
    with words:
        figures.bullets(in_words(done, job.arguments[2]))
    figures.caption(
        f"The first {len(done.shares) * done.images} training images on "
        f"{len(done.shares)} ranks; {done.backend} on "
        f"{done.environment.device_name}. The chart shows the gradients of the last "
        "layer's bias, one per class; the differences cover all parameters.",
        done,
    )


def frame(done: Gradients) -> pd.DataFrame:
    """A row for each class and rank."""
    rows = [
        (name, f"rank {rank}", share.own[i], share.averaged[i], share.alone[i])
        for rank, share in enumerate(done.shares)
        for i, name in enumerate(done.classes)
    ]
    return pd.DataFrame(rows, columns=["label", "rank", "gradient", "average", "alone"])


def in_words(done: Gradients, model: str) -> list[str]:
    """Whether the parts make up the whole, and what is not equal about it."""
    whole, first = len(done.shares) * done.images, done.shares[0]
    gap = (
        f"the average and the gradients of all {whole} images differ by at most "
        f"{first.difference:.1e}; the largest of those is {first.greatest:.2g}"
    )
    if first.difference < ROUNDING * first.greatest:
        line = f"**Equal, within rounding**: {gap}. The sums ran in a different order."
    else:
        line = f"**Not equal**: {gap}."
        if model == "cnn":
            line += (
                " The CNN has batch norm, and each rank normalizes by the mean of its "
                f"own {done.images} images. On GPUs `SyncBatchNorm` uses all {whole}, "
                "at the price of more communication."
            )
    lines = [line]
    if done.agree:
        lines.append(
            "**The same on both ranks**, bit for bit: so they take the same step."
        )
    lines.append(
        "`DistributedDataParallel` gives the same gradients as averaging by hand, "
        + ("bit for bit." if first.by_ddp == 0 else f"to within {first.by_ddp:.1e}.")
    )
    lines.append(
        "This holds for equal shares. If one rank had 10 images and the other 54, "
        "the mean of the two means would not be the mean of all."
    )
    return lines
