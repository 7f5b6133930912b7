"""A training run on several ranks, as the Scale page shows it."""

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from core.config import TRAIN_SAMPLES
from core.jobs.job import Job
from core.lessons.scale.scale_result import SIZES, ParallelRun, RankEnd, RankLoss
from core.measure.environment import Machine
from core.ui import charts, controls, dataset, format, guess, image_wall
from core.ui.job_panel import reported
from core.ui.lab import Lab
from core.ui.server import ask_once, engine, explained
from to_device.words import Words

BATCH_SIZE, MODEL, EPOCHS = 64, "ann", 1
DIES = (1, 100)  # a rank, and the step after which it is killed
words = Words(__file__)


class DataParallelLab(Lab):
    key = "run_ranks"
    address = "core.lessons.scale.data_parallel:run"
    job_name = "The run"
    panel: Mapping[str, Any] = {"icon": ":material/play_arrow:", "measures": False}
    code = (
        ("On each rank", "core.lessons.scale.data_parallel:train"),
        ("The loop", "core.loops:train_epoch"),
        ("What torchrun sets", "core.lessons.scale.ranks:join"),
        ("The ranks meet", "core.lessons.scale.ranks:meet"),
    )

    def more(self, machine: Machine) -> str:
        backend = machine.devices[0].backend
        if backend == "CPU":
            return self.words["without_gpu"]
        instead = self.words["instead"] if backend in ("CUDA", "ROCm") else ""
        return f"{why_on_cpu(machine)} {instead}"

    def settings(self, machine: Machine) -> tuple:
        task = controls.task("ranks_task", dataset.is_here(machine))
        count = controls.choice("Ranks", "ranks", SIZES, index=1, format_func=str)
        dies = st.toggle(
            "Kill rank 1 partway",
            key="ranks_die",
            disabled=count == 1,
            help=self.words["kill"],
        )
        death = DIES if dies and count > 1 else None
        return count, task, MODEL, BATCH_SIZE, EPOCHS, death

    def before(self, arguments: tuple | None) -> None:
        if arguments is None:
            return
        count, task, *_ = arguments
        with explained("The images could not be loaded"):
            address = "core.lessons.scale.sampler:first_batch"
            shares: list[np.ndarray] = ask_once(address, task, count, BATCH_SIZE)
            columns = st.columns(count)
            for rank, images in enumerate(shares):
                text = f"Rank {rank}: {len(images)} images from the first batch"
                with columns[rank]:
                    image_wall.show(images, text, columns=8)
                    st.markdown(f":small[{text}]")

    def progress(self, job: Job) -> tuple[str, float]:
        step = max((loss.step for loss in reported(job, RankLoss)), default=0)
        steps = -(-TRAIN_SAMPLES[job.arguments[1]] // BATCH_SIZE) * EPOCHS
        text = f"Step {step:,} of {steps:,}" if step else "Starting the ranks"
        return text, min(1.0, step / steps)

    def gather(self, job: Job) -> ParallelRun | None:
        losses, machine = reported(job, RankLoss), engine().machine()
        if job.value is not None or not losses or machine is None:
            return job.value
        ends = (
            RankEnd(rank, tuple(x for x in losses if x.rank == rank), 0, "", 0.0, None)
            for rank in range(job.arguments[0])
        )
        return ParallelRun(tuple(ends), 0, 0, "gloo", machine.devices[0], date="")

    def show(self, job: Job, guessed: Any | None = guess.JUST_SHOW) -> None:
        super().show(job, guessed)
        if not self.gather(job):
            self.before(job.arguments)
        elif job.status == "failed" and (death := job.arguments[-1]):
            rank, step = death
            st.markdown(self.words["killed"].format(rank=rank, step=step))

    def chart(self, run: ParallelRun) -> None:
        losses = [
            (loss.step, loss.loss, f"rank {loss.rank}")
            for end in run.ends
            for loss in end.losses
        ]
        st.vega_lite_chart(
            pd.DataFrame(losses, columns=["step", "loss", "rank"]),
            loss_lines(len(run.ends)),
            key=f"chart_ranks{self.suffix}",
            alt="Loss by step, with a line for each rank",
        )

    def lines(self, run: ParallelRun) -> list[str]:
        first, count = run.ends[0], len(run.ends)
        lines = []
        if count > 1:
            lines.append(
                f"**Different images**: each rank trained on {first.images:,} of the "
                f"{run.train_images:,} images, {BATCH_SIZE // count} in each step, so "
                "the ranks' losses differ."
            )
            hashes = format.enumerated(
                f"`{end.weights}` on rank {end.rank}" for end in run.ends
            )
            lines.append(
                f"**The same model**: the hash of the parameters is `{first.weights}` "
                "on every rank. The ranks began with the same parameters and took the "
                "same steps."
                if run.agree
                else f"**Not the same model**: the hash of the parameters is {hashes}."
            )
        seconds = max(end.seconds for end in run.ends)
        lines.append(
            f"After {format.duration(seconds)} of training, the model classifies "
            f"**{(first.correct or 0) / run.test_images:.1%}** of {run.test_images:,} "
            "test images correctly. Are several ranks faster than one? Find out "
            "under **What it costs**."
        )
        return lines

    def caption(self, run: ParallelRun) -> str:
        count = len(run.ends)
        return (
            f"{format.counted(count, 'rank')} with one CPU thread"
            f"{' each' if count > 1 else ''}, on {run.environment.device_name}; "
            f"{self.words['exchanged'][run.backend]}. We trained for one epoch. "
            f"Each batch of {BATCH_SIZE} images was split among the ranks."
        )


def why_on_cpu(machine: Machine) -> str:
    """Why the ranks don't run on the accelerator; "" if there is no accelerator.

    A worker sees only one NVIDIA GPU (see core.jobs.cluster), but all AMD GPUs.
    """
    return words.table("on_cpu").get(machine.devices[0].backend, words("no_nccl"))


@charts.live
def loss_lines(colors: charts.Palette, ranks: int) -> charts.Chart:
    names = [f"rank {number}" for number in range(ranks)]
    hues = charts.hues("rank", names, colors.runs[:ranks], **charts.LINES)
    chart = alt.Chart(charts.LATER).encode(
        x=alt.X("step:Q").title("Step"),
        y=alt.Y("loss:Q").title("Loss on each rank's own images").scale(zero=True),
        color=hues,
        tooltip=charts.tips(rank="Rank")
        + charts.tips(",d", step="Step")
        + charts.tips(".4f", loss="Loss"),
    )
    return charts.lines(chart, 1.6).properties(height=charts.TALL)
