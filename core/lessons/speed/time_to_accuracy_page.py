"""The Speed page's lab on how many seconds a CNN takes to become accurate."""

from dataclasses import asdict
from pathlib import Path

import altair as alt
import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.lessons.speed.time_to_accuracy_result import TARGET, Tested, TimeToAccuracy
from core.measure import rounding
from core.measure.environment import Machine
from core.ui import charts, controls, dataset, figures, format
from core.ui.job_panel import reported
from core.ui.lab import Finding, Lab
from core.ui.server import engine

LIMITS = (15, 30, 60)  # seconds: where one answer ends and the next begins


class SecondsToAccuracy(Lab):
    key = "run_time_to_accuracy"
    file = "time-to-accuracy"
    code = (
        ("The recipe", "core.lessons.speed.recipe:train"),
        ("Its settings", "core.lessons.speed.recipe:Recipe"),
        ("The test", "core.lessons.speed.recipe:accuracy"),
        ("The clock", "core.lessons.speed.time_to_accuracy:tested"),
    )

    @property
    def titles(self) -> dict[str, str]:
        return {way: texts["title"] for way, texts in self.words["ways"].items()}

    def settings(self, machine: Machine) -> tuple:
        key = "time_to_accuracy_epochs"
        epochs = controls.choice("Epochs", key, (3, 6, 10), index=1, format_func=str)
        return dataset.default_task(machine), machine.devices[0].device, epochs

    def progress(self, job: Job) -> tuple[str, float]:
        tests, epochs = len(reported(job, Tested)), job.arguments[2]
        share = tests / (epochs * len(self.titles))
        return f"Training: {format.counted(tests, 'test')} so far", share

    def gather(self, job: Job) -> TimeToAccuracy | None:
        tests, machine = tuple(reported(job, Tested)), engine().machine()
        if job.value or not tests or machine is None:
            return job.value
        return TimeToAccuracy(tests, job.arguments[0], machine.devices[0], date="")

    def chart(self, result: TimeToAccuracy) -> None:
        colors, titles = charts.palette(), self.titles
        legend = charts.LINES | {"columns": 2}
        tests = pd.DataFrame(map(asdict, result.tests)).assign(
            change=lambda tests: tests["way"].map(titles)
        )
        near = [TARGET - 0.04, max(TARGET, tests["accuracy"].max()) + 0.003]
        accuracy = alt.Y("accuracy:Q").scale(domain=near, nice=False)
        accuracy = accuracy.title("Test accuracy").axis(format=charts.PERCENT)
        chart = alt.Chart(tests).encode(
            x=alt.X("seconds:Q").title(charts.AXES["seconds"]).scale(zero=True),
            y=accuracy,
            color=charts.hues("change", titles.values(), colors.runs, **legend),
            tooltip=charts.tips(change="Change", epoch="Epoch")
            + charts.tips(".1f", seconds="Seconds")
            + charts.tips(".2%", accuracy="Test accuracy"),
        )
        target = alt.Chart(pd.DataFrame({"accuracy": [TARGET]})).encode(y=accuracy)
        rule = target.mark_rule(strokeDash=[4, 4], color=colors.quiet)
        both = alt.layer(rule, charts.lines(chart, points=45, clip=True))
        st.altair_chart(
            both.properties(height=charts.TALL + 70),  # the legend has three rows
            alt="Test accuracy against seconds, with a line for each change",
        )

    def finding(self, result: TimeToAccuracy) -> Finding:
        answers = self.words["answers"]
        _, seconds, best = result.figures(result.ways[-1])
        if seconds is None:
            text = self.words["missed"].format(best=f"{best:.2%}")
            return Finding(text, answers[-1])
        place = sum(seconds >= limit for limit in LIMITS)
        text = self.words["reached"].format(seconds=rounding.precise(seconds))
        return Finding(text, answers[place])

    def lines(self, result: TimeToAccuracy) -> list[str]:
        changes = self.words["ways"]
        lines = [f"**{self.titles[w]}**: {changes[w]['change']}" for w in result.ways]
        if "half" not in result.ways:
            lines.append(self.words["no_half"])
        return lines

    def below(self, result: TimeToAccuracy) -> None:
        rows = []
        for way in result.ways:
            epoch, seconds, best = result.figures(way)
            until = rounding.precise(seconds) if seconds else "not reached"
            rows.append(
                (self.titles[way], rounding.precise(epoch), until, f"{best:.2%}")
            )
        figures.table(
            rows,
            ("Change", "Seconds per epoch", f"Until {TARGET:.1%}", "Best accuracy"),
            alt="Seconds per epoch, time to 92.5%, and best accuracy for each change",
        )
        recipe = Path(__file__).with_name("recipe.py")
        code, key = recipe.read_bytes(), f"recipe{self.suffix}"
        controls.download("The recipe as one file", code, recipe.name, key)

    def caption(self, result: TimeToAccuracy) -> str:
        task = format.NAMES[result.task]
        return self.words["how"].format(task=task, seed=result.seed)
