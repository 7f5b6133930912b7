"""The race of two devices on the Compare page. The page calls a trial a heat."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from core.config import RunConfig, problems
from core.jobs.job import Job
from core.lessons.compare.candidates import Pair, candidates, default_pair, tell_apart
from core.lessons.compare.race_result import (
    LOOPS,
    RACE_STEPS,
    CandidateFailure,
    Race,
    Trial,
    TrialProgress,
)
from core.lessons.compare.race_verdict import agreement, verdict
from core.measure.environment import Machine
from core.ui import charts, controls, dataset, figures, format, guess
from core.ui.charts import AXES, LATER, LINES, MIDDLE, Chart, Palette
from core.ui.job_panel import latest, reported
from core.ui.lab import Finding, Guess, Lab

# A row of heat_chart: candidate, kind, seconds, text
Heat = tuple[str, str, float, str]

GUESS = "race_guess"
REPEATS = 5
RANGES = {"Steps": (10, 5000), "Repeats": (3, 30)}
LONGEST = "1,000,000 images/s"  # the longest text that stands at the end of a bar


@dataclass(frozen=True)
class RaceSoFar(Race):
    """A race that is going on; `progress` has the losses of the current trial."""

    progress: tuple[TrialProgress, ...] = ()


class RaceLab(Lab):
    address = "core.lessons.compare.race:race"
    key = "compare"
    file = "race"
    job_name = "The race"
    panel: Mapping[str, Any] = {
        "icon": ":material/flag:",
        "failed": "The race ended early",
    }
    asks_below = needs_accelerator = True
    code = (("A heat", "core.lessons.compare.race:trial"),)

    def more(self, machine: Machine) -> str | None:
        return None if machine.has_accelerator else self.words["alone"]

    def defaults(self, machine: Machine) -> tuple:
        task = dataset.default_task(machine)
        config = RunConfig.with_recipe(task=task, epochs=1)
        pair = tell_apart(*default_pair(candidates(machine)))
        return config, pair, RACE_STEPS[config.model], REPEATS

    def settings(self, machine: Machine) -> tuple:
        pair = choose_pair(machine)
        model = controls.model("race_model", width=100)
        recipe = RunConfig.with_recipe(model=model)
        size = controls.number(
            "Batch size",
            f"race_batch_{model}",
            recipe.batch_size,
            16,
            "batch_size",
            width=120,
        )
        help = self.words["help"]
        with st.popover("More", icon=":material/tune:"):
            task = controls.task("race_task", dataset.is_here(machine))
            counts = {
                name: controls.number(
                    name, key, value, step, name.lower(), help=help[name]
                )
                for name, key, value, step in (
                    ("Steps", f"race_steps_{model}", RACE_STEPS[model], 10),
                    ("Repeats", "race_repeats", REPEATS, 1),
                )
            }
        fields: dict[str, Any] = dict(task=task, model=model, batch_size=size, epochs=1)
        refusals = [
            *problems(vars(recipe) | fields),
            *(
                f"{name} must be from {low} to {high:,}, not {counts[name]}."
                for name, (low, high) in RANGES.items()
                if not low <= counts[name] <= high
            ),
        ]
        if refusals:
            raise ValueError(" ".join(refusals))
        config = RunConfig.with_recipe(**fields)
        return config, pair, counts["Steps"], counts["Repeats"]

    def asks(self, _: Machine, arguments: tuple | None) -> Guess:
        pair = arguments[1] if arguments else chosen_pair()
        names = [candidate.name for candidate in pair]
        return Guess(GUESS, self.words["question"], [*names, guess.CLOSE])

    def progress(self, job: Job) -> tuple[str, float]:
        race = self.gather(job)
        trials = 2 * (race.repeats + 1) - len(race.failures)
        share = len(race.trials) / trials
        now = latest(job, TrialProgress)
        if now is None:
            return "Loading the data", share
        heat = f"heat {now.repeat} of {race.repeats}" if now.repeat else "warm-up"
        share += now.step / now.steps / trials
        return f"{race.candidates[now.candidate].name}, {heat}", min(1.0, share)

    def gather(self, job: Job) -> Race:
        if isinstance(job.value, Race):
            return job.value
        config, pair, steps, repeats = job.arguments
        trials = tuple(reported(job, Trial))
        steps = min([steps, *(trial.steps for trial in trials)])
        failures = tuple(reported(job, CandidateFailure))
        progress = tuple(reported(job, TrialProgress))
        settings = pair, (None, None), config, steps, repeats
        return RaceSoFar(*settings, trials, failures, "", progress)

    def chart(self, race: Race) -> None:
        for failure in race.failures:
            st.error(
                failure.message,
                title=f"{race.candidates[failure.candidate].name} is out of the race",
                icon=":material/error:",
            )
        if race.trials:
            self._draw_bars(race)
        # The current heat has no Trial yet, but its progress reports have its losses.
        heats: list[Trial | TrialProgress] = [*race.trials]
        heats += race.progress if isinstance(race, RaceSoFar) else ()
        rows = [
            (race.candidates[heat.candidate].name, *loss)
            for heat in heats
            if heat.repeat == 1
            for loss in heat.losses
        ]
        if not rows:
            return
        x = st.radio(
            "Horizontal axis of the first heat's loss chart",
            ["seconds", "step"],
            horizontal=True,
            format_func=AXES.__getitem__,
            key=f"race_axis{self.suffix}",
        )
        curves = pd.DataFrame(rows, columns=["candidate", "step", "seconds", "loss"])
        st.vega_lite_chart(
            curves.drop_duplicates(["candidate", "step"]),
            loss_chart(race.candidates, x),
            key=f"race_losses{self.suffix}",
            alt=f"Training loss of both candidates over {AXES[x].lower()}",
        )

    def _draw_bars(self, race: Race) -> None:
        images = {"training": race.steps * race.config.batch_size, "evaluation": 0}
        if race.trials:
            images["evaluation"] = race.trials[0].evaluate_samples
        for loop, count in images.items():
            title = f"Seconds of {loop}{f', {count:,} images' * (count > 0)}"
            st.vega_lite_chart(
                pd.DataFrame(
                    heats(race, loop), columns=["candidate", "kind", "seconds", "text"]
                ),
                heat_chart(race.candidates, title),
                key=f"race_{loop}{self.suffix}",
                alt=f"Seconds of {loop} in each heat, and each candidate's median",
            )
        st.caption(self.words["bars"])

    def finding(self, race: Race) -> Finding:
        names = [candidate.name for candidate in race.candidates]
        options = names[0], guess.CLOSE, names[1]
        speedup = race.speedup()
        right = speedup.answers(*options) if speedup else None
        return Finding(verdict(race), right, say=str, among=options)

    def lines(self, race: Race) -> None:
        first, second = names = [candidate.name for candidate in race.candidates]
        speedups = {loop: race.speedup(loop) for loop in LOOPS}
        parts = {k: part for k, part in speedups.items() if part and not part.note}
        figures.bullets(
            f"{loop.capitalize()}: {part.sentence(first, second, 'pairs of heats')}"
            for loop, part in parts.items()
            if loop != "both"
        )
        if parts and (both := speedups["both"]):
            few = self.words["few"] * (both.n < 5)
            st.caption(self.words["ratios"].format(speedup=both, few=few))
        for index, name in enumerate(names):
            trials = race.counted(index)
            joules = [trial.joules for trial in trials if trial.joules is not None]
            if joules:
                heat = median(joules)
                image = heat / trials[0].train_samples * 1e3
                st.markdown(self.words["joules"].format(name, heat, image))
        st.markdown(agreement(race))

    def caption(self, race: Race) -> str:
        names = format.NAMES[race.config.model], format.NAMES[race.config.task]
        n = max(len(race.counted(index)) for index in (0, 1))
        cut = f", not {race.repeats}, since time ran out" if n < race.repeats else ""
        return self.words["how"].format(*names, config=race.config, n=n, cut=cut)


def choose_pair(machine: Machine) -> Pair:
    """Draw the choice of two candidates; the race and the map share the choice."""
    options = candidates(machine)
    for label, default in zip(("First", "Second"), default_pair(options), strict=True):
        controls.choice(
            label,
            f"{label.lower()}_contender",
            options,
            index=options.index(default),
            # A GPU's name can be too long for a select.
            format_func=lambda c: c.name if c.backend == "CPU" else c.backend,
        )
    return chosen_pair()


def chosen_pair() -> Pair:
    state = st.session_state
    return tell_apart(state.first_contender, state.second_contender)


def heats(race: Race, loop: str) -> list[Heat]:
    """The data of `heat_chart`. Training times are scaled to the race's `steps`."""
    rows: list[Heat] = []
    for index, candidate in enumerate(race.candidates):
        name = candidate.name
        trials = [trial for trial in race.trials if trial.candidate == index]
        seconds = [getattr(trial, f"{LOOPS[loop]}seconds") for trial in trials]
        if loop == "training":
            steps = race.steps
            seconds = [trial.train_seconds * steps / trial.steps for trial in trials]
        kinds = ["heat" if trial.repeat else "warm-up" for trial in trials]
        rows += [(name, *heat, "") for heat in zip(kinds, seconds, strict=True)]
        if counted := race.seconds(index, loop):
            speed = getattr(trials[-1], f"{LOOPS[loop]}samples") / median(counted)
            rows.insert(0, (name, "median", median(seconds[1:]), ""))
            rows.append((name, "end", max(seconds), f"{speed:,.0f} images/s"))
    return rows


def pair_hues(pair: Pair, colors: Palette) -> list[str]:
    """A color for each candidate; two of the same backend get different colors."""
    first, second = (colors.of(candidate.backend) for candidate in pair)
    return [first, colors.further[1] if second == first else second]


@charts.live
def loss_chart(colors: Palette, pair: Pair, x: str) -> Chart:
    names = [candidate.name for candidate in pair]
    chart = alt.Chart(LATER).encode(
        x=alt.X(f"{x}:Q").title(AXES[x]).scale(zero=True, nice=False),
        y=alt.Y("loss:Q").title("Training loss").scale(domainMin=0),
        color=charts.hues("candidate", names, pair_hues(pair, colors), **LINES),
        tooltip=charts.tips(candidate="Candidate", step="Step")
        + charts.tips(".3f", seconds="Seconds")
        + charts.tips(".5f", loss="Loss"),
    )
    first, second = (
        chart.transform_filter(alt.datum.candidate == name) for name in names
    )
    broad = charts.lines(first, 5, opacity=0.45)
    return alt.layer(broad, charts.lines(second, 1.6)).properties(height=MIDDLE)


@charts.live
def heat_chart(colors: Palette, pair: Pair, title: str) -> Chart:
    """A dot for each heat's seconds, and a bar for their median. Warm-ups are hollow.

    Draws the columns candidate, kind ("median", "heat", "warm-up" or "end"), seconds
    and text. The text of an "end" stands at the right edge.
    """
    names = [candidate.name for candidate in pair]
    x, room = alt.X("seconds:Q").title(title), charts.before([LONGEST])
    chart = alt.Chart(LATER).encode(
        y=alt.Y("candidate:N").title(None).scale(domain=names).axis(charts.above(18)),
        x=x.scale(nice=False, range=room, domainMin=0).axis(format="~r"),
        tooltip=charts.tips(candidate="Candidate", kind="What")
        + charts.tips(".4g", seconds="Seconds"),
    )
    bar, heat, warm_up, end = (
        chart.transform_filter(alt.datum.kind == kind)
        for kind in ("median", "heat", "warm-up", "end")
    )
    color = alt.Color("candidate:N").scale(domain=names, range=pair_hues(pair, colors))
    # Screen readers would announce marks without data as images without a name, and at
    # first there are only warm-ups. The text at the bars' end has its own name.
    dot: dict = {
        "stroke": colors.text,
        "size": 40,
        "opacity": 1,
        "strokeWidth": 1,
        "aria": False,
    }
    return alt.layer(
        bar.mark_bar(height=16, aria=False).encode(color=color.legend(None)),
        heat.mark_point(fill=colors.quiet, **dot),
        warm_up.mark_point(fill="transparent", **dot),  # hollow on a bar, too
        end.mark_text(align="right").encode(x=alt.value("width"), text="text:N"),
    ).properties(height=alt.Step(46))
