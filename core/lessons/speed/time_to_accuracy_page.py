"""Accuracy against seconds, as the Speed page shows it."""

from dataclasses import asdict
from pathlib import Path

import altair as alt
import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.lessons.speed.time_to_accuracy_result import (
    EPOCHS,
    LIMITS,
    TARGET,
    WAYS,
    Tested,
    TimeToAccuracy,
)
from core.measure.environment import Machine
from core.ui import charts, controls, dataset, figures, format
from core.ui.job_panel import reported
from core.ui.lab import Finding, Guess, Lab
from core.ui.server import engine

LEGEND = 70  # pixels


class SecondsToAccuracy(Lab):
    key, order, file = "run_time_to_accuracy", 0, "time-to-accuracy"
    event, noun = Tested, "test"
    code = (
        ("The recipe", "core.lessons.speed.recipe:train"),
        ("Its settings", "core.lessons.speed.recipe:Recipe"),
        ("The test", "core.lessons.speed.recipe:accuracy"),
        ("The clock", "core.lessons.speed.time_to_accuracy:tested"),
    )

    @property
    def titles(self) -> dict[str, str]:
        return {way: texts["title"] for way, texts in self.words["ways"].items()}

    def asks(self, *_: object) -> Guess:
        return Guess(
            "time_to_accuracy_guess", self.words["question"], self.words["answers"]
        )

    def defaults(self, machine: Machine) -> tuple:
        return dataset.default_task(machine), machine.devices[0].device, EPOCHS[1]

    def settings(self, machine: Machine) -> tuple:
        epochs = controls.choice(
            "Epochs", "time_to_accuracy_epochs", EPOCHS, index=1, format_func=str
        )
        return *self.defaults(machine)[:2], epochs

    def progress(self, job: Job) -> tuple[str, float]:
        tests, planned = len(reported(job, Tested)), len(WAYS) * job.arguments[2]
        return f"Training: {format.counted(tests, 'test')} so far", tests / planned

    def gather(self, job: Job) -> TimeToAccuracy | None:
        tests, machine = tuple(reported(job, Tested)), engine().machine()
        if job.value or not tests or machine is None:
            return job.value
        return TimeToAccuracy(tests, job.arguments[0], machine.devices[0], date="")

    def chart(self, result: TimeToAccuracy) -> None:
        colors, titles = charts.palette(), self.titles
        tests = pd.DataFrame(map(asdict, result.tests)).assign(
            change=lambda tests: tests["way"].map(titles)
        )
        top = max(TARGET, tests["accuracy"].max()) + 0.003
        near = alt.Scale(domain=[TARGET - 0.04, top], nice=False)
        accuracy = alt.Y("accuracy:Q").title("Test accuracy").scale(near)
        accuracy = accuracy.axis(format=charts.PERCENT)
        chart = alt.Chart(tests).encode(
            x=alt.X("seconds:Q").title(charts.AXES["seconds"]).scale(zero=True),
            y=accuracy,
            color=charts.hues(
                "change", titles.values(), colors.runs, columns=2, **charts.LINES
            ),
            tooltip=charts.tips(change="Change", epoch="Epoch")
            + charts.tips(".1f", seconds="Seconds")
            + charts.tips(".2%", accuracy="Test accuracy"),
        )
        target = alt.Chart(pd.DataFrame({"accuracy": [TARGET]})).encode(y=accuracy)
        rule = target.mark_rule(strokeDash=[4, 4], color=colors.quiet)
        st.altair_chart(
            alt.layer(rule, charts.lines(chart, points=45, clip=True)).properties(
                height=charts.TALL + LEGEND
            ),
            alt="Test accuracy after each epoch of each way, against seconds",
        )

    def finding(self, result: TimeToAccuracy) -> Finding:
        way, answers = result.ways[-1], self.words["answers"]
        seconds = result.reached(way)
        if seconds is None:
            best = f"{result.best(way):.2%}"
            return Finding(self.words["missed"].format(best=best), answers[-1])
        place = sum(seconds >= limit for limit in LIMITS)
        text = self.words["reached"].format(seconds=format.precise(seconds))
        return Finding(text, answers[place])

    def lines(self, result: TimeToAccuracy) -> list[str]:
        changes = self.words["ways"]
        lines = [f"**{self.titles[w]}**: {changes[w]['change']}" for w in result.ways]
        if "half" not in result.ways:
            lines.append(self.words["no_half"])
        return lines

    def below(self, result: TimeToAccuracy) -> None:
        figures.table(
            (
                (
                    self.titles[way],
                    format.precise(result.epoch_seconds(way)),
                    format.precise(s) if (s := result.reached(way)) else "not reached",
                    f"{result.best(way):.2%}",
                )
                for way in result.ways
            ),
            ("Change", "Seconds an epoch", f"Until {TARGET:.1%}", "Best accuracy"),
            alt="Seconds an epoch, seconds to the target and best accuracy of each way",
        )
        recipe = Path(__file__).with_name("recipe.py")
        code, key = recipe.read_bytes(), f"recipe{self.suffix}"
        controls.download("The recipe, one file", code, recipe.name, key)

    def caption(self, result: TimeToAccuracy) -> str:
        task = format.NAMES[result.task]
        return self.words["how"].format(task=task, seed=result.seed)
