"""A training on several ranks, live, as the Scale page shows it."""

import numpy as np
import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Machine
from core.scale.results import ParallelRun, RankLoss
from core.ui import controls, dataset, figures, format, montage
from core.ui.charts import scale as charts
from core.ui.charts.base import palette
from core.ui.job_panel import JobPanel, reported, slot
from core.ui.lab import SIDES, Lab
from core.ui.server import engine, explained

RANKS, BATCH_SIZE, MODEL, EPOCHS = (1, 2, 4), 64, "ann", 1
DIES = (1, 100)  # a rank, and the step after which it is killed
EXCHANGED = {
    "gloo": "gradients exchanged by gloo, which is for CPUs",
    "nccl": "gradients exchanged by NCCL, which is for NVIDIA GPUs",
}
LAB = Lab(
    "Train on several ranks",
    "A **rank** is a process with a copy of the model. Each rank gets its share of "
    "every batch. After the backward pass the ranks average their gradients, so that "
    "all take the same step. That is data parallelism.",
    "the training",
    JobPanel(
        "core.scale.data_parallel:run",
        "The run",
        "run_ranks",
        icon=":material/play_arrow:",
    ),
    ":material/show_chart: Press **Train** to see a line for each rank: their losses "
    "differ, and yet they end with the same model.",
    "The loop is the one from the Train lesson. New are the wrapper around the model, "
    "the sampler that shares out the images, and a process for each rank. In a "
    "terminal, `torchrun --nproc-per-node 2 -m core.scale.data_parallel` starts the "
    "same function, on GPUs where there are enough.",
    (
        ("On each rank", "core.scale.data_parallel:train"),
        ("The loop", "core.loops:train_epoch"),
        ("What torchrun sets", "core.scale.ranks:join"),
        ("Start and watch", "core.scale.ranks:run"),
    ),
)


def draw(machine: Machine) -> None:
    """The settings, the losses as they fall, and what the ranks have in common."""
    LAB.begin(machine)
    with controls.row():
        task = controls.task("ranks_task", dataset.is_here(machine))
        count = controls.choice("Ranks", "ranks", RANKS, index=1, format_func=str)
        dies = st.toggle(
            "Kill rank 1 on the way",
            key="ranks_die",
            disabled=count == 1,
            help="It ends without a word, as when the system runs out of memory.",
        )
        arguments = (count, task, MODEL, BATCH_SIZE, EPOCHS)
        killed = DIES if dies and count > 1 else None
        LAB.panel.buttons("Train", (*arguments, killed))
    if not LAB.panel.ran:
        split(task, count)
    LAB.follow(result)


def split(task: str, count: int) -> None:
    """The first batch as the ranks share it, in one row of pictures."""
    with explained("The pictures did not come"):
        shares = _shares(task, count)
        for rank, (side, images) in enumerate(
            zip(st.columns(count), shares, strict=True)
        ):
            told = f"Rank {rank}: {len(images)} images of the first batch"
            picture = montage.montage(images, frozenset(), palette(), columns=8)
            with side:
                montage.show(montage.png(picture), told)
                st.markdown(f":small[{told}]")


@st.cache_data(show_spinner=False, max_entries=8)
def _shares(task: str, count: int) -> list[np.ndarray]:
    return engine().ask("core.scale.sampler:first_batch", task, count, BATCH_SIZE)


def result(job: Job) -> None:
    """The losses, and in words what the ranks saw and what they hold now."""
    done: ParallelRun | None = job.value
    told = reported(job, RankLoss)
    if done is not None:
        told = [each for end in done.ends for each in end.losses]
    elif not job.ended:
        step = max((each.step for each in told), default=0)
        slot(f"Step {step:,}" if step else "Starting the ranks")
    count, task, *_ = job.arguments
    if not told:
        split(task, count)
        return
    chart, words = st.columns(SIDES)
    with chart:
        rows = [(each.step, each.loss, f"rank {each.rank}") for each in told]
        st.vega_lite_chart(
            pd.DataFrame(rows, columns=["step", "loss", "rank"]),
            charts.losses(count),
            key="chart_ranks",
            alt="Loss over the steps, a line for each rank",
        )
    if done is not None:
        with words:
            figures.bullets(in_words(done))
        figures.caption(
            f"{format.counted(count, 'rank')} with one CPU thread each; "
            f"{EXCHANGED[done.backend]}. Batches of {BATCH_SIZE} images, shared by the "
            "ranks; one epoch.",
            done,
        )


def in_words(done: ParallelRun) -> list[str]:
    """Who saw what, who holds what, and what came of it."""
    first, count = done.ends[0], len(done.ends)
    lines = []
    if count > 1:
        lines += [
            f"**Different images**: each rank trained on {first.images:,} of the "
            f"{done.train_images:,}, {BATCH_SIZE // count} in each step. So their "
            "losses differ.",
            f"**{'The same' if done.agree else 'Not the same'} model**: a hash of all "
            "parameters is "
            + ", ".join(f"`{each.weights}` on rank {each.rank}" for each in done.ends)
            + ". They began equal and took equal steps." * done.agree,
        ]
    seconds = max(each.seconds for each in done.ends)
    lines.append(
        f"**{(first.correct or 0) / done.test_images:.1%}** of "
        f"{done.test_images:,} test images right, after "
        f"{format.duration(seconds)} of training. Is that faster than one rank? "
        "**What it costs** measures it."
    )
    return lines
