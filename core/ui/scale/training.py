"""A training on several ranks, live, as the Scale page shows it."""

import numpy as np
import pandas as pd
import streamlit as st

from core.config import TRAIN_SAMPLES
from core.jobs.job import Job
from core.measure.environment import Machine
from core.scale.results import SIZES, ParallelRun, RankLoss
from core.ui import controls, dataset, figures, format, montage
from core.ui.charts import scale as charts
from core.ui.charts.base import palette
from core.ui.job_panel import JobPanel, reported, slot
from core.ui.lab import SIDES, Lab
from core.ui.scale import on_cpu
from core.ui.server import engine, explained

BATCH_SIZE, MODEL, EPOCHS = 64, "ann", 1
DIES = (1, 100)  # a rank, and the step after which it is killed
EXCHANGED = {
    "gloo": "gradients exchanged by gloo, used for CPUs",
    "nccl": "gradients exchanged by NCCL (RCCL on AMD)",
}
AS_ASKED = (
    "**As you asked**, rank {} was killed after step {}. Each rank needs the gradients "
    "of all the others in every step, so none can go on. `torchrun` ends all ranks "
    "too. With `--max-restarts` it starts them again, and a script then has to load "
    "its last checkpoint, or it begins from scratch."
)
LAB = Lab(
    "Train",
    "Several processes, each with a copy of the model and a number, its **rank**, "
    "share every batch. During the backward pass they average their gradients, so all "
    "take the same step. That is data parallelism.",
    "the training",
    JobPanel(
        "core.scale.data_parallel:run",
        "The run",
        "run_ranks",
        icon=":material/play_arrow:",
    ),
    ":material/show_chart: Press **Train** to see a line for each rank: their losses "
    "differ, and yet they end with the same model.",
    "The loop is the one from the Train lesson. New: the wrapper around the model, the "
    "sampler that divides the images, and one process per rank. In a terminal, "
    "`torchrun --nproc-per-node 2 -m core.scale.data_parallel` runs the same function, "
    "on GPUs, with NCCL, if there is one per rank.",
    (
        ("On each rank", "core.scale.data_parallel:train"),
        ("The loop", "core.loops:train_epoch"),
        ("What torchrun sets", "core.scale.ranks:join"),
        ("The ranks meet", "core.scale.ranks:meet"),
    ),
    on_a_cpu=" Here each process runs on the CPU; with GPUs, each would have its own.",
)


def draw(machine: Machine) -> None:
    """The settings, the losses as they fall, and what the ranks have in common."""
    LAB.begin(machine, on_cpu.why(machine) + on_cpu.instead(machine))
    with controls.row():
        task = controls.task("ranks_task", dataset.is_here(machine))
        count = controls.choice("Ranks", "ranks", SIZES, index=1, format_func=str)
        dies = st.toggle(
            "Kill rank 1 partway",
            key="ranks_die",
            disabled=count == 1,
            help="Ends its process at once, as the system does when memory runs out.",
        )
        arguments = (count, task, MODEL, BATCH_SIZE, EPOCHS)
        killed = DIES if dies and count > 1 else None
        LAB.panel.buttons("Train", (*arguments, killed))
    if not LAB.panel.ran:
        split(task, count)
    LAB.follow(result)


def split(task: str, count: int) -> None:
    """The first batch as the ranks share it, in one row of pictures."""
    with explained("The images could not be loaded"):
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
    count, task, *_, killed = job.arguments
    told = reported(job, RankLoss)
    if done is not None:
        told = [each for end in done.ends for each in end.losses]
    elif not job.ended:
        step = max((each.step for each in told), default=0)
        steps = -(-TRAIN_SAMPLES[task] // BATCH_SIZE) * EPOCHS
        text = f"Step {step:,} of {steps:,}" if step else "Starting the ranks"
        slot(text, min(1.0, step / steps))
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
            f"{format.counted(count, 'rank')} with one CPU thread"
            f"{' each' if count > 1 else ''}, on {done.environment.device_name}; "
            f"{EXCHANGED[done.backend]}. Batches of {BATCH_SIZE} images, shared by the "
            "ranks; one epoch.",
            done,
        )
    elif job.status == "failed" and killed:
        words.markdown(AS_ASKED.format(*killed))


def in_words(done: ParallelRun) -> list[str]:
    """Who saw what, who holds what, and what came of it."""
    first, count = done.ends[0], len(done.ends)
    lines = []
    if count > 1:
        lines.append(
            f"**Different images**: each rank trained on {first.images:,} of the "
            f"{done.train_images:,}, {BATCH_SIZE // count} in each step. So their "
            "losses differ."
        )
        hashes = ", ".join(
            f"`{each.weights}` on rank {each.rank}" for each in done.ends
        )
        lines.append(
            f"**The same model**: the hash of all parameters is `{first.weights}` on "
            "every rank. They began equal and took equal steps."
            if done.agree
            else f"**Not the same model**: the hash of all parameters is {hashes}."
        )
    seconds = max(each.seconds for each in done.ends)
    lines.append(
        f"**{(first.correct or 0) / done.test_images:.1%}** of "
        f"{done.test_images:,} test images right, after "
        f"{format.duration(seconds)} of training. Faster than one rank? Measure it "
        "under **What it costs**."
    )
    return lines
