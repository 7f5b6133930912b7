"""The Train page's view of a run beside earlier runs, during the run and after it."""

import time
from collections.abc import Sequence

import streamlit as st

from core.config import IMAGE_TASKS
from core.lessons.train import controls_page as controls
from core.lessons.train import fit_page
from core.lessons.train import legend_page as legend
from core.lessons.train import steer_page as steer
from core.results import Crossing, training_speed
from core.runs import comparison, finished_run_page
from core.runs import loss_chart as charts
from core.serving.streamlit_internals import give_back_turn
from core.ui import (
    answers,
    figures,
    format,
    guess,
    image_wall,
    job_panel,
    polling,
    simulated,
)
from core.ui.charts import AXES, MIDDLE
from core.ui.controls import on_phone
from core.ui.course import RUNS, link, page
from core.ui.job_panel import place_in_queue
from core.ui.runs import (
    Run,
    differences,
    earlier,
    epoch_table,
    going_on,
    idle_run,
    loss_table,
    newest,
    number,
    run,
    top_epoch_loss,
    top_loss,
)
from core.ui.server import engine, engine_problem, store, visitor
from to_device.words import Words

FIRST_STEP_SECONDS = 0.3
TO_TELL = "run_to_tell"  # in the session's state: the run that has just ended
COMPARED = 4  # the largest number of earlier runs on a chart
FEW = 2  # the most settings that fit beside a run's name
GUESS, YES, NO, SAME = "faster_guess", "Yes", "No", "About the same"
words = Words(__file__)


def chosen(asks_settings: bool) -> Run | None:
    """The run to show: the session's, else the visitor's newest, else the server's.

    When a run is shown for the first time, the controls take on its settings. With
    `asks_settings`, the controls keep the settings from the page's address.
    """
    state = st.session_state
    current = run(state.get("run_id"))
    if current and current.id != state.get("controls_of"):
        state.controls_of = current.id
        from_here = not current.job.ended and current.job.owner == visitor()
        if from_here and controls.touched() and controls.differ(current.config):
            st.warning(words("other_tab"), icon=":material/info:")
        elif not asks_settings:
            controls.use(current.config)
    is_aside = current and current.id == state.get("aside")
    if current and is_aside and current.config.task != state.task:
        current = run(newest(visitor(), state.task))
        state.controls_of = current.id if current else state.controls_of
    if current is None:
        st.query_params.pop("run", None)
        return idle_run(state.task)
    st.query_params["run"] = current.id
    return current


def follow_run(run_id: str) -> None:
    """Draw a run again and again until it ends; then rerun the page."""
    first = first_look(run_id)
    if first is None:
        st.rerun()
    # Redraw the page also if the store's problem, named at its top, comes or goes.
    before = first.job.ended, bool(store().problem)

    def look() -> Run:
        current = run(run_id)
        if current is None or (current.job.ended, bool(store().problem)) != before:
            if current is not None and current.job.ended:
                st.session_state[TO_TELL] = run_id
            st.rerun()
        return current

    @st.fragment
    def live() -> None:
        current = look()
        if current.job.place:
            polling.every(None)
            wait(polling.fragment())
        else:
            polling.every(polling.interval(current.job, polling.RUN_SECONDS))
            draw_status(current)
        if st.session_state.get("steer_it") or current.changes or current.pause:
            steer.draw(current)
        draw_learning(current)

    @st.fragment
    def wait(whole: str) -> None:
        """Redraw only the place in the queue until the run starts."""
        current = look()
        polling.every(polling.interval(current.job))
        if not current.job.place:
            polling.every(polling.RUN_SECONDS, whole)
        draw_status(current)

    live()


def first_look(run_id: str) -> Run | None:
    """The run, after a short wait for its first step; None if the run isn't known."""
    # A free worker makes the first step within milliseconds, so look here rather than
    # wait for the page's next poll.
    first = run(run_id)
    deadline = time.monotonic() + FIRST_STEP_SECONDS
    while first and not first.job.ended and not first.latest:
        if first.job.place or time.monotonic() > deadline:
            break
        give_back_turn()
        time.sleep(0.01)
        first = run(run_id)
    return first


def onward(current: Run) -> None:
    """Draw links to evaluate, compare, share and download a run."""
    query = {"run": current.id}
    with st.container(horizontal=True, vertical_alignment="center"):
        if current.result is not None and current.config.has_images:
            link(
                page("Evaluate"),
                "See what the model got right and wrong",
                icon=":material/fact_check:",
                query_params=query,
            )
        if current.job.owner == visitor():
            link(RUNS, "Compare this run with your other runs", query_params=query)
        with st.popover("Share this run", icon=":material/link:", type="tertiary"):
            st.markdown(f"{words('share')} {steer.in_words(current)}")
            address = (st.context.url or "").partition("?")[0]
            st.code(f"{address}?run={current.id}", language=None, wrap_lines=True)
    if current.result is not None:
        home = st.expander(
            "Take this run home",
            icon=":material/luggage:",
            key="take_home",
            on_change="rerun",
        )
        if home.open:  # not while closed: the server keeps each file that it offers
            with home:
                finished_run_page.take_home(current)


def name_it(current: Run) -> None:
    config, names = current.config, ["task", "model", "batch_size", "epochs"]
    names += ["host"] if config.host else []
    settings = (format.setting(config, name) for name in names)
    line = " · ".join([f"**{current.name}**", *settings])
    if current.job.owner != visitor():
        line += " · somebody else's" if current.job.owner else " · the server's own"
    with st.container(key="run_line", horizontal=True, vertical_alignment="center"):
        st.markdown(line, width="stretch")
        if controls.differ(current.config):
            st.button(
                "Use these settings",
                icon=":material/arrow_back:",
                key="use_settings",
                type="tertiary",
                on_click=controls.use,
                args=(current.config,),
            )
    for other in going_on(visitor()):
        if other.id != current.id:
            name = f"run {number(other.id, other.owner)}"
            query = {"run": other.id}
            text = f"Your {name} is in progress. Show it"
            link(page("Train"), text, icon="spinner", query_params=query)
    if current.is_simulated:
        simulated.badge(explained=True)


def nothing_yet(task: str, ready: bool) -> None:
    """Draw the data; `ready` means that a run can be started."""
    with st.container(key="run_line", vertical_alignment="center"):
        st.markdown(
            "Press **Start training** and watch the model learn."
            if ready
            else ":material/hourglass: The app is loading torch. You can "
            "start in a few seconds."
        )
    if task in IMAGE_TASKS:
        image_wall.draw(task, None, "", beside=True)
    else:
        fit_page.draw(None, "CPU")
    if (machine := engine().machine()) and machine.simulates:
        st.markdown(words("simulated"))


def draw_status(current: Run) -> None:
    # On a phone, page.css keeps run_status on the screen, and not what it would cover
    # once the run has ended.
    with st.container(key="run_ended" if current.job.ended else "run_status"):
        job_panel.slot(*status(current))
    if st.session_state.pop(TO_TELL, "") == current.id and on_phone():
        st.toast(status(current)[0])
    if current.job.status == "failed":
        st.error(current.job.message, title="The run failed", icon=":material/error:")
        if "Error" in current.job.message:  # and not one of the app's own limits
            link(page("Mistakes"), "Look up this error message")
    if not current.job.ended and (problem := engine_problem()):
        title = "There are no workers, so your run is waiting"
        if current.job.status == "running":
            title = "No worker responds, so your run doesn't go on"
        st.error(problem, title=title)


def compared(current: Run | None) -> set[str]:
    """The ids of the two runs whose times the page compares, if there are two."""
    if current is None or current.is_simulated:
        return set()
    before = rival(earlier(current, COMPARED))
    return {before.id, current.id} if before else set()


def draw_learning(current: Run) -> None:
    runs = [*earlier(current, COMPARED), current]
    if (before := rival(runs[:-1])) and not current.is_simulated:
        _finding(before, current)
    _losses(runs)
    if len(runs) > 1:
        legend.draw(runs)
    for steered in filter(None, map(steer.in_words, runs)):
        st.markdown(steered)
    _figures(current)
    if current.is_simulated:
        _traffic(current)
    if current.config.has_images:
        whose = "your" if current.job.owner == visitor() else "this"
        image_wall.draw(current.config.task, current, whose, beside=True)
    else:
        started = current.started
        fit_page.draw(current.fit, started.environment.backend if started else "CPU")
    if any(run.history for run in runs):
        _epochs(legend.ticked(runs))
    if (result := current.result) is not None:
        where = f"on {format.provenance(result.environment)}, seed {result.config.seed}"
        took = f"{format.duration(result.seconds)} in all"
        st.caption(
            f"Run {where}." if current.is_simulated else f"Measured {where}, {took}."
        )


def rival(earlier: Sequence[Run]) -> Run | None:
    """The last of these runs whose time another run can be compared with."""
    for before in reversed(earlier):
        if before.result and not (before.is_simulated or before.diverged):
            return before
    return None


# How far the run is


def status(current: Run) -> tuple[str, float]:
    """A sentence on how far the run is or how it ended, and the share that is done."""
    job, share = current.job, current.share
    latest, started = current.latest, current.started
    if (result := current.result) is not None:
        if current.diverged:
            return current.diverged, 1.0
        if not result.config.has_images:
            return fit_page.in_words(result), 1.0
        if job.owner != visitor() and st.query_params.get("run") != current.id:
            return words("idle", quality=format.quality(result)), 1.0
        return (
            f"**{result.test_accuracy:.2%} of the test images are classified "
            f"correctly** ({result.test_correct:,} of {result.test_total:,})."
        ), 1.0
    if job.status == "cancelled":
        after, why = "before its first step", job.message
        if latest is not None and started is not None:
            after = f"after step {latest.step:,} of {started.steps:,}"
            why = why or "What the model had learned by then is still here."
        return f"Canceled {after}. {why}".rstrip(), share
    if job.ended:
        return f"The run {format.ENDINGS.get(job.status, job.status)}", share
    if started is None:
        if job.status == "queued" and job.place:
            text = f"{place_in_queue(job)}. The run will start by itself."
            return text, 0.0
        text = "The run is starting."
        if engine().machine() is None:
            text = "The app is loading torch. This can take a minute."
        return job.message or text, 0.0
    if job.message:  # the worker doesn't respond
        return job.message, share
    if latest is None:
        return "The first step is running.", 0.0
    epochs = current.config.epochs
    text = (
        f"Epoch {min(len(current.history) + 1, epochs)} of {epochs} · "
        f"step {latest.step:,} of {started.steps:,}"
    )
    if current.diverged:
        return current.diverged, share
    if current.seconds_left is not None:
        text += f" · about {format.roughly(current.seconds_left)} left"
    return text, share


def in_short(current: Run) -> tuple[str, float]:
    """`status` in one short line: without the steps."""
    text, share = status(current)
    parts = text.split(" · ")
    return " · ".join(part for part in parts if not part.startswith("step ")), share


def _figures(current: Run) -> None:
    latest, loss = current.latest, current.smoothed_loss
    last = current.history[-1] if current.history else None
    if current.config.has_images:
        values = {
            "Test accuracy": f"{last.test_accuracy:.2%}" if last else "–",
            "Training loss": "–" if loss is None else f"{loss:#.4g}",
        }
    else:
        values = {
            "Test R²": f"{last.test_r2:.3f}" if last else "–",
            "Test RMSE": f"{last.test_rmse:.3f}" if last else "–",
        }
    if not current.is_simulated:
        # During a run, the current epoch's speed shows whether training slows down.
        speed = latest.samples_per_second if latest else None
        if current.job.ended or speed is None:
            speed = training_speed(current.history)
        timed = current.result or latest
        values["Samples/s"] = f"{speed:,.0f}" if speed else "–"
        values["Total time"] = format.duration(timed.seconds if timed else 0.0)
    when = "over all epochs" if current.job.ended else "in this epoch"
    samples, total = (
        f"Training samples per second {when}, not counting the evaluation.",
        "Time since the first step. It includes the evaluation after each epoch.",
    )
    figures.metrics(values, {"Samples/s": samples, "Total time": total})


# The comparison with the run before: a guess, then the finding


def _finding(before: Run, now: Run) -> None:
    """Ask the owner which run will be faster; after `now` has ended, say which was."""
    is_asked = not (now.job.ended or comparison.same_work(before, now))
    if not is_asked or now.job.owner != visitor():
        if text := finding(before, now):
            st.markdown(text)
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(finding(before, now))
        st.segmented_control(
            "Your guess",
            (YES, NO, SAME),
            default=_guessed(now),
            required=True,  # a double click isn't taken back
            key=f"{GUESS}_{now.id}",
            on_change=_keep_guess,
            args=(now.id,),
            label_visibility="collapsed",
        )


def finding(before: Run, now: Run) -> str:
    """A sentence on which run was faster or, while `now` goes on, the question.

    "" if `now` ended without a result.
    """
    names = [before.name.lower(), now.name.lower()]
    settings = differences([before, now])
    if settings[0] != settings[1] and settings[0].count(",") < FEW:
        pairs = zip(names, settings, strict=True)
        names = [f"{name} ({differing})" for name, differing in pairs]
    first, second = names
    if not now.job.ended and comparison.same_work(before, now):
        return words("same_settings", now=now.name, before=first)
    if not now.job.ended:
        to = "to reach the same accuracy" if now.config.has_images else "in all"
        return f"**Will {second} need fewer seconds than {first} {to}?**"
    if now.result is None:
        return ""  # it didn't finish
    text = comparison.finding([before, now], names)
    if (guessed := _guessed(now)) is None:
        return text
    fitting = comparison.fitting([before, now], (NO, YES), SAME)
    return f"{text} {guess.worth(guessed, fitting)}"


def _keep_guess(run_id: str) -> None:
    """Keep the guess and the id of its run, in place of any earlier guess."""
    if guessed := answers.chosen(f"{GUESS}_{run_id}", (YES, NO, SAME)):
        answers.keep(GUESS, [run_id, guessed])


def _guessed(now: Run) -> str | None:
    run_id, guess = answers.of_visitor().get(GUESS) or (None, None)
    return guess if run_id == now.id and guess in (YES, NO, SAME) else None


# The curves


def _losses(runs: Sequence[Run]) -> None:
    timed = not all(run.is_simulated for run in runs)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**Training loss**", width="stretch")
        x = st.segmented_control(
            "Over",
            list(AXES)[: 3 if timed else 2],
            default="step",
            required=True,
            format_func=AXES.__getitem__,
            key="loss_axis" if timed else "loss_axis_untimed",
            label_visibility="collapsed",
            help=words("figures.axis"),
        )
    drawn = legend.ticked(runs)
    if not any(run.losses for run in drawn):
        st.space(MIDDLE)  # so that nothing moves when the first step comes
        return
    epochs = max(run.config.epochs for run in runs)
    steps = max((run.started.steps for run in runs if run.started), default=None)
    st.vega_lite_chart(
        loss_table(drawn),
        charts.losses(
            *(_looks(drawn), x, {"step": steps, "epoch": epochs}.get(x)),
            top=top_loss(drawn),
        ),
        height=MIDDLE,
        key="chart_losses",
        alt=f"Training loss over {AXES[x].lower()}, with a line for each run",
    )


def _looks(drawn: Sequence[Run]) -> charts.Looks:
    return tuple((run.name, run.number) for run in drawn if run.losses)


def _epochs(drawn: Sequence[Run]) -> None:
    if not drawn:
        return
    config = drawn[-1].config
    epochs = max(run.config.epochs for run in drawn)
    references = config.task == "fashion-mnist"  # only this task has published results
    samples, trained = "points", "all"
    quality = ("R²", "r2", "chart_r2", False)
    if config.has_images:
        samples, trained = "images", "the first 10,000"
        quality = ("Accuracy", "accuracy", "chart_accuracy", references)
    loss = ("Loss", "loss", "chart_epoch_loss", False)
    for column, (title, y, key, lines) in zip(
        st.columns(2), (quality, loss), strict=True
    ):
        column.markdown(f"**{title} after each epoch**")
        column.vega_lite_chart(
            epoch_table(drawn),
            charts.per_epoch(
                *(_looks(drawn), y, epochs, lines),
                top=top_epoch_loss(drawn) if y == "loss" else None,
            ),
            height=MIDDLE,
            key=key,
            alt=f"{title} on training and test {samples} after each epoch",
        )
    text = (
        f"The thick line with dots is for all test {samples}, and the "
        f"thin line is for {trained} training {samples}. Time spent "
        "on evaluation isn't counted."
    )
    if references:
        text += " The gray lines show how well people and a small CNN do on this data."
    if any(run.config.label_smoothing for run in drawn):
        text += f" {words('figures.smoothed')}"
    st.caption(text)


# Traffic between host and simulated accelerator in each step


def _traffic(run: Run) -> None:
    report = run.result or run.latest
    if report is None or (traffic := report.traffic) is None:
        return
    text, crossings = words.table("traffic"), traffic.crossings
    with simulated.outline("traffic"):
        st.markdown(text["question"])
        values = {
            "To the device": format.size(traffic.per_step("to_device")),
            "Back to the host": format.size(traffic.per_step("to_host")),
            "Waits by the host": f"{round(traffic.per_step('waits'), 2):g}",
        }
        figures.metrics(values)
        # A list, since a table with lines of code is wider than a phone.
        st.markdown(
            "\n".join(_crossing(crossing, traffic.steps) for crossing in crossings)
        )
        waits = any(crossing.waits for crossing in crossings if crossing.to_device)
        way = "waits" if waits else "goes_on"
        if run.config.feed == "device":
            way = "lies_there"
        fetched = "each" if run.config.item_each_step else "together"
        st.markdown(f"{text[way]} {text[fetched]} {text['same']}")


def _crossing(crossing: Crossing, steps: int) -> str:
    """A line's traffic in a step: "`code` (core/loops.py): 50 kB to the device"."""
    there, back = crossing.to_device / steps, crossing.to_host / steps
    parts = [f"{format.size(there)} to the device"] if there else []
    parts += [f"{format.size(back)} back"] if back else []
    waits = round(crossing.waits / steps, 2)
    parts += [f"{waits:g} wait{'s' * (waits != 1)}"] if waits else []
    code = crossing.code.partition("  #")[0]
    return f"- `{code}` ({crossing.file}): **{', '.join(parts)}**"
