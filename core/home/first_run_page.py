"""Train now: a first run or race, live, beside the model's answers for test images."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from core.config import RunConfig
from core.home import machine_page
from core.home import recorded_gpu_page as recorded_gpu
from core.jobs.job import Job
from core.lessons.train import progress_page as progress
from core.lessons.train import steer_page
from core.lessons.train.steer_page import RACE
from core.measure.environment import Machine
from core.measure.speedup import spanned
from core.results import RunResult
from core.runs import comparison
from core.runs import loss_chart as charts
from core.ui import (
    answers,
    class_rules,
    clicks,
    dataset,
    format,
    guess,
    image_wall,
    job_panel,
    polling,
    runs,
    simulated,
    spoilers,
)
from core.ui.charts import AXES
from core.ui.course import CLASS, HOME, link, page
from core.ui.runs import Run
from core.ui.server import engine, room, visitor
from core.ui.spoilers import FIRST_RUN
from to_device.errors import ExplainedError
from to_device.words import Words

QUICK_EPOCHS = {"fashion-mnist": 5, "sprites": 20}  # some five seconds on two cores
CHART_HEIGHT = 166  # pixels
# With so many training jobs in the queue, Home starts no race: it would delay others.
FEW_JOBS = 3
RACE_GUESS = "home_race_guess"  # key of the guess about Home's race, not Compare's
USUAL, SAME = "The usual setting", "About the same"
# How many of 100 test images are classified correctly
IMAGES = ("Fewer than 50", "50 to 79", "80 to 94", "95 or more")
words = Words(__file__)


def draw() -> None:
    """Draw the upper half of Home, which redraws itself to follow the runs."""
    first = runs.on_show()
    if first is not None and not first.job.ended:
        progress.first_look(first.id)

    @st.fragment
    def upper_half() -> None:
        run = runs.on_show()
        if _state(run) != _state(first):
            st.rerun()  # other parts of the page depend on the run
        own = run if run and run.job.owner == visitor() else None
        if run is None or (run.job.ended and own is None):
            # To notice when a run starts
            polling.every(polling.shared(polling.PATIENT_SECONDS))
        else:
            polling.every(polling.interval(run.job, polling.RUN_SECONDS))
        racers = race(run) if run else {}
        # In a race, the wall of images shows the newest run that has been tested.
        tested = [racer for racer in racers.values() if racer.history]
        task = run.config.task if run else dataset.default_task(engine().machine())
        left, right = st.columns([5, 6], gap="large")
        with left:
            _invitation(run, own, racers)
        with right:
            st.space("small")  # as high as what is above the title's letters
            image_wall.draw(task, [run, *tested][-1], "your" if own else "this")

    upper_half()
    machine = engine().machine()
    if machine and not machine.has_accelerator:
        # Not in the fragment: only the end of a run changes it, which redraws the page.
        own = [first] if first and first.job.owner == visitor() else []
        ran = [*race(first).values()] if first else []
        recorded_gpu.draw(QUICK_EPOCHS["fashion-mnist"], ran or own)


def _state(run: Run | None) -> tuple[str, bool] | None:
    return (run.id, run.job.ended) if run else None


def quick(machine: Machine | None, before: int, fast: bool = False) -> RunConfig:
    """The settings that "Train now" trains with; with `fast`, those of the fast recipe.

    `before` is how many runs the visitor has had. This number is the seed, so each run
    has another seed.
    """
    task = dataset.default_task(machine)
    settings = {"task": task, "epochs": QUICK_EPOCHS[task], "seed": before}
    return RunConfig.with_recipe(fast=fast, **class_rules.fitting(settings))


def candidates(machine: Machine | None, before: int) -> dict[str, RunConfig]:
    """The settings of a race's runs by name; the runs train one after another."""
    usual = quick(machine, before)
    runs = {USUAL: usual, "The fast setting": quick(machine, before, True)}
    if machine and machine.has_accelerator:
        runs["The usual setting on the CPU"] = replace(usual, device="cpu")
    return runs


def fitting(accuracy: float) -> tuple[str, ...]:
    """The option in IMAGES whose range contains a test accuracy."""
    return spanned(IMAGES, (0.5, 0.8, 0.95), accuracy, accuracy)


def races() -> bool:
    """Whether "Train now" starts a race, not just one run.

    A visitor's first click starts a race if the queue is short and no class is open.
    """
    is_free = room().open is None and len(engine().going_on()) < FEW_JOBS
    return is_free and RACE not in answers.of_visitor()


def start() -> None:
    """Queue the quick run, or a race's runs, unless a run of the visitor goes on."""
    st.session_state.pop("home_refused", None)
    if runs.going_on(visitor()):
        return
    machine, before = engine().machine(), runs.count(visitor())
    try:
        if machine is None or not races():
            runs.start(quick(machine, before))
            return
        configs = candidates(machine, before).items()
        answers.keep(RACE, {runs.start(config): name for name, config in configs})
    except ExplainedError as error:
        st.session_state.home_refused = str(error)


def cancel() -> None:
    """Cancel all runs of this visitor, including a race's runs that still wait."""
    for job in runs.going_on(visitor()):
        engine().cancel(job.id)


def race(run: Run) -> dict[str, Run]:
    """The visitor's race, keyed by the runs' names; {} if `run` isn't part of it."""
    names = answers.of_visitor().get(RACE) or {}
    if run.id not in names:
        return {}
    racers = ((name, runs.run(run_id)) for run_id, name in names.items())
    return {name: racer for name, racer in racers if racer is not None}


def _invitation(run: Run | None, own: Run | None, racers: Mapping[str, Run]) -> None:
    st.title(HOME.title)
    st.markdown(HOME.promise)
    machine = engine().machine()
    others = any(job.owner not in ("", visitor()) for job in engine().going_on())
    waits = own is not None and not (own.started or own.job.ended)
    # A run tells nothing of its result before its first step, even if it has ended.
    tells_nothing = own is not None and not (own.losses or own.latest)
    is_first = own is not None and runs.finished_ids() <= {own.id}
    takes = words("takes")
    if seconds := runs.expected_seconds(quick(machine, 0)):
        takes = f"A run takes about {format.roughly(seconds)} on this machine."
    if room().open:
        whose = "Your class shares" if room().member(visitor()) else "A class is using"
        takes = f"{whose} this machine, so your run may have to wait for its turn."
    if engine().paused:
        takes = words("paused")
    elif others:
        takes = words("busy")
    if (own is None or own.job.ended) and races():
        names = list(candidates(machine, 0))
        settings = ", then with ".join(map(guess.within, names))
        begin = words("race.takes", settings=settings)
        takes = f"{begin} {takes}"
        guesses = [*names, SAME]
        answers.radio(words("race.question"), guesses, RACE_GUESS, horizontal=True)
    elif run is None or (tells_nothing and is_first and not racers):
        _ask_first_run()
    _buttons(own.job if own else None)
    if own and not own.job.ended:  # it may have been started on another page
        st.session_state.pop("home_refused", None)
    if why := st.session_state.get("home_refused"):  # until the next press
        st.warning(f"{why} No other run was started.", icon=":material/block:")
    machine_page.line(machine)
    if run is None:
        st.markdown(takes)
        return
    if own is not None and own.job.ended and not races():
        rules = class_rules.rules()
        seed, whose = "another seed", "own" if rules.own_seeds else "class's"
        if (fixed := rules.settings.get("seed")) is not None:
            seed = f"your {whose} seed, {fixed}"
            if own.result and own.config == quick(machine, fixed):
                seed += ", so expect the same result"
        st.markdown(f"**Train again** uses the usual setting, with {seed}.")
    if own is None:
        idle = f":material/group: {words('idle')} {takes}"
        st.markdown(takes if run.job.ended else idle)
    if run.is_simulated:
        simulated.badge()
    job_panel.slot(*_told(run, own, racers, is_first))
    if waits and room().may_see(visitor()):
        link(CLASS, "See who is training and who is waiting")
    if room().open is None:  # in a class, steering would spoil people's guesses
        steer_page.draw(run)
    if run.job.status == "failed":
        st.error(run.job.message, title="The run failed", icon=":material/error:")
    if own and own.job.status == "interrupted":
        query = {"run": own.id}
        link(page("Train"), "Start it again on Train", query_params=query)
    if run.started or not run.job.ended:
        _losses(run, racers)
    if own and own.result is not None:
        with st.container(horizontal=True, vertical_alignment="center"):
            label, icon = "Next: why this device?", ":material/arrow_forward:"
            if st.button(label, type="primary", icon=icon, key="next_lesson"):
                st.switch_page(page("Device").file)
            query = {"run": own.id}
            link(page("Train"), "See the whole run", query_params=query)
            link(page("Evaluate"), "See its mistakes", query_params=query)


def _told(
    run: Run, own: Run | None, racers: Mapping[str, Run], is_first: bool
) -> tuple[str, float]:
    """How far the run is or how it ended, in a line, and the share that is done."""
    text, share = progress.in_short(run)
    if run.job.status == "interrupted":
        text = run.job.message
    result = None if run.diverged else run.result
    text = _with_guess(_with_seconds(text, result), result, is_first)
    if name := next((name for name, racer in racers.items() if racer.id == run.id), ""):
        text = f"{name}: {text}"
    if own and own.job.ended:
        if not racers and own.config != quick(engine().machine(), own.config.seed):
            text = f"{format.brief(own.config)}: {text}"  # as one from Train
        if newer := runs.newer_without_result(own):
            ended = format.ENDINGS[newer.job.status]
            text = f"Your newest run {ended}. An earlier one: {text}"
    return text, share


def _with_seconds(text: str, result: RunResult | None) -> str:
    if not (result and (seconds := result.timed_seconds)):
        return text
    took = format.duration(seconds)
    return f"{text.removesuffix('.')}, after {took}, tests included."


def _with_guess(text: str, result: RunResult | None, is_first: bool) -> str:
    """The text with the guess, and what that is worth once there is a result."""
    answer = answers.of_visitor().get(FIRST_RUN)
    if not (is_first and answer):
        return text
    told = text.rstrip(".")
    if result is None:
        return f"{told}. Your guess: {answer}"
    return f"{told}. {guess.worth(answer, fitting(result.test_accuracy or 0.0))}"


def _ask_first_run() -> None:
    """Ask what a first run will reach, until a run of the class has shown it."""
    if spoilers.is_first_run_known():
        if answers.of_visitor().get(FIRST_RUN) is None:
            st.caption(words("too_late"))
        return
    more: dict[str, Any] = {"on_change": _keep_first_run, "args": ()}
    answers.radio(words("question"), IMAGES, FIRST_RUN, horizontal=True, **more)


def _keep_first_run() -> None:
    if not spoilers.is_first_run_known():  # the page may have been drawn before
        guess.keep_guess(FIRST_RUN, IMAGES, ran=False)


def _losses(run: Run, racers: Mapping[str, Run]) -> None:
    """Draw the run's loss over its steps, or the losses of a race over seconds.

    The curve of each run in a race begins at 0 s.
    """
    results = {name: racer.result for name, racer in racers.items() if racer.result}
    if racers and len(results) == len(racers):
        ended = list(racers.values())
        text = comparison.finding(ended, list(map(guess.within, racers)))
        if answer := answers.of_visitor().get(RACE_GUESS):
            right = comparison.fitting(ended, list(racers), SAME)
            text += f" {guess.worth(answer, right)}"
        st.markdown(text)
    else:
        for name, result in results.items():
            share = f"{result.test_accuracy:.2%}"
            st.markdown(
                f"**{name} is done**: the model classified {share} of the "
                "test images correctly."
            )
    in_race = {name: racer for name, racer in racers.items() if racer.started}
    curves = in_race or {run.name: run}
    drawn = list(curves.values())
    if not any(curve.losses for curve in drawn):
        st.space(CHART_HEIGHT)  # so that nothing moves when the first step comes
        return
    steps = run.started.steps if run.started else None
    x, most = ("seconds", None) if racers else ("step", steps)
    looks = tuple((name, curve.number) for name, curve in curves.items())
    st.vega_lite_chart(
        runs.loss_table(drawn, list(curves)),
        charts.losses(
            looks, x, most, CHART_HEIGHT, bool(in_race), runs.top_loss(drawn)
        ),
        height=CHART_HEIGHT,
        key="home_losses",
        alt=f"Training loss by {AXES[x].lower()}",
    )


def _buttons(own: Job | None) -> None:
    """Draw "Train now", or "Cancel" during the visitor's run, and a link to Train."""
    going_on = runs.going_on(visitor())
    with st.container(horizontal=True, vertical_alignment="center"):
        if own is not None and not own.ended:
            icon = ":material/stop:"
            st.button(
                "Cancel",
                icon=icon,
                key="cancel_run",
                on_click=clicks.once,
                args=(cancel,),
            )
        else:
            finished = own is not None and own.status == "finished"
            st.button(
                "Train again" if own else "Train now",
                type="secondary" if finished else "primary",
                icon=":material/play_arrow:",
                key="train_now",
                on_click=clicks.once,
                args=(start,),
                disabled=engine().machine() is None or bool(going_on),
            )
        watch = bool(going_on) and own is None
        link(
            page("Train"),
            "Watch your run" if watch else "Choose the settings",
            icon=":material/visibility:" if watch else ":material/tune:",
        )
