"""The ladder as the Speed page shows it: its controls, the climb, rung by rung."""

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

import pandas as pd
import streamlit as st

from core import figures, ladder
from core.config import IMAGE_MODELS, IMAGE_TASKS
from core.engine import Job
from core.ladder import (
    BY_NAME,
    GUESSES,
    NEEDED,
    RUNGS,
    Climb,
    Climbed,
    Gain,
    Limit,
    Progress,
    Result,
    Rung,
)
from core.ui import charts, downloads, live, words
from core.ui.server import engine, visitor
from core.ui.source import body, changes

PATH = "core.climb:climb"
FILE = "core/speed.py"
WIDTH = 152
MEMORY_MATTERS = ("larger_batch", "half_precision", "compiled", "whole_step")


def controls(machine: dict[str, Any], has_data: bool) -> Climb:
    """What the learner wants to climb with; ValueError where it can't be."""
    devices = [each["device"] for each in machine["devices"]]
    tasks: tuple[str, ...] = IMAGE_TASKS if has_data else ("sprites",)
    chosen = {}
    with st.container(horizontal=True):
        for label, key, options in (
            ("Task", "task", tasks),
            ("Model", "model", IMAGE_MODELS),
            ("Device", "device", devices),
        ):
            chosen[key] = st.selectbox(
                label,
                options,
                format_func=lambda value: words.NAMES.get(value, value),
                key=f"ladder_{key}",
                width=WIDTH,
            )
        epochs, images = ladder.DEFAULTS[chosen["model"]]
        epochs = _number(
            "Epochs on each rung",
            f"ladder_epochs_{chosen['model']}",
            epochs,
            1,
            "Each is timed by itself, in turn with one of the rung before: how far "
            "they are apart says how sure it is. More of them also learn more.",
        )
        images = _number(
            "Images in an epoch",
            f"ladder_images_{chosen['model']}",
            images,
            1000,
            "The first of the training set. Fewer are quicker and learn less.",
        )
    return Climb(**chosen, epochs=epochs, images=images)


def _number(label: str, key: str, value: int, step: int, explanation: str) -> int:
    found = st.number_input(
        label,
        value=value,
        step=step,
        key=key,
        help=explanation,
        width=WIDTH,
        persist_state="session",
    )
    return int(found)


def newest() -> Job | None:
    """The newest climb of this visitor."""
    own = engine().jobs(PATH, visitor())
    return own[-1] if own else None


def results(job: Job) -> tuple[Result, ...]:
    """What is measured so far, by this climb and by those that it resumed."""
    if isinstance(job.value, Climbed):
        return job.value.results
    done = job.arguments[1] if len(job.arguments) > 1 else ()
    return (*done, *(event for event in job.events if isinstance(event, Result)))


def found_limit(job: Job) -> Limit | None:
    """The machine's limit, once it is measured."""
    return next((event for event in job.events if isinstance(event, Limit)), None)


def buttons(wanted: Climb | None) -> None:
    """Start, cancel, and where a climb ended early, resume."""
    job = newest()
    going_on = job is not None and not job.ended
    done: tuple[Result, ...] = ()
    if job is not None and job.ended and job.arguments[0] == wanted:
        done = results(job)
    to_resume = 0 < len(done) < len(RUNGS)

    def start(*results_so_far: Result) -> None:
        if wanted is not None:
            engine().submit(PATH, wanted, results_so_far, owner=visitor())

    with st.container(horizontal=True):
        st.button(
            "Resume the climb" if to_resume else "Climb the ladder",
            type="primary",
            icon=":material/stairs:",
            key="run_ladder",
            on_click=start,
            args=done if to_resume else (),
            disabled=going_on or wanted is None,
        )
        if to_resume:
            st.button(
                "Start over",
                icon=":material/restart_alt:",
                key="restart_ladder",
                on_click=start,
            )
        if job is not None and going_on:
            st.button(
                "Cancel",
                icon=":material/stop:",
                key="cancel_ladder",
                on_click=engine().cancel,
                args=(job.id,),
            )


def draw(wanted: Climb | None, machine: dict[str, Any]) -> None:
    """The climb, live, and below it the rungs one by one."""
    job = newest()
    chosen = job.arguments[0] if job is not None else wanted
    backends = {each["device"]: each["backend"] for each in machine["devices"]}
    backend = backends.get(chosen.device if chosen else "", "CPU")
    if job is None:
        st.markdown(
            ":material/stairs: The climb appears here, rung by rung, with a line at "
            "the limit of this machine. Read the rungs below meanwhile, and guess."
        )
        rung_by_rung(None, (), backend, wanted.model if wanted else "ann")
        return
    if engine().problem and not job.ended:
        st.error(engine().problem, title="There are no workers; your climb waits")
    live.follow_job(job.id, "The climb", lambda now: climb(now, backend))
    if job.status == "queued":
        rung_by_rung(None, (), backend, job.arguments[0].model)


def climb(job: Job, backend: str) -> None:
    """What is known of a climb: status, chart, table, and the rung that is chosen."""
    _status(job)
    found = results(job)
    limit = found_limit(job) or (job.value.limit if job.value is not None else None)
    wanted: Climb = job.arguments[0]
    shown = [each for each in found if _is_revealed(each)]
    if any(each.measured for each in shown):
        overview(shown, found, limit, backend)
    if job.value is not None:
        caption(job.value)
        downloads.both("ladder", figures.of_climb(job.value))
    rung_by_rung(job.id, found, backend, wanted.model)


def _status(job: Job) -> None:
    found = results(job)
    if job.status == "failed":
        st.error(job.message, title="The climb ended early", icon=":material/error:")
    elif job.status == "cancelled":
        st.info(
            f"Cancelled after {len(found)} of {len(RUNGS)} rungs. They stay here, and "
            "the climb can be resumed.",
            icon=":material/cancel:",
        )
    elif not job.ended:
        st.progress(len(found) / len(RUNGS), _progress(job))
    elif hidden := [each for each in found if not _is_revealed(each)]:
        st.info(
            f"The climb is done, and {len(hidden)} results wait for your guess.",
            icon=":material/visibility_off:",
        )
    else:
        st.success(in_words(job.value), icon=":material/flag:")


def _progress(job: Job) -> str:
    now = next((e for e in reversed(job.events) if isinstance(e, Progress)), None)
    if now is None:
        return "The limit of this machine is being measured"
    title = BY_NAME[now.rung].title
    if not now.epoch:
        return f"{title}: setting up"
    return f"{title}: epoch {now.epoch} of {job.arguments[0].epochs}, step {now.step:,}"


# Guesses


def _is_revealed(result: Result) -> bool:
    """Whether its figures may be seen: the learner has guessed, or need not."""
    state = st.session_state
    return (
        not result.measured
        or result.rung == RUNGS[0].name
        or state.get("ladder_show_all", False)
        or state.get(f"guess_{result.rung}") is not None
    )


# The climb at a glance


def overview(
    found: Sequence[Result],
    every: Sequence[Result],
    limit: Limit | None,
    backend: str,
) -> None:
    """The chart with the machine's limit, and a table of all figures.

    Of the rungs in `found`; `every` holds those they are compared with too.
    """
    measured = [each for each in found if each.measured]
    rows = [
        (
            BY_NAME[each.rung].title,
            each.samples_per_second,
            each.samples / max(each.seconds),
            each.samples / min(each.seconds),
            times(ladder.over_first(each, every)) if each.base else "",
            each.kept,
        )
        for each in measured
    ]
    columns = ["rung", "speed", "low", "high", "label", "kept"]
    lines = limits(limit, measured[-1], any(r.rung == "half_precision" for r in found))
    st.altair_chart(
        charts.climb(pd.DataFrame(rows, columns=columns), pd.DataFrame(lines), backend),
        alt="Samples a second on each rung, with the limit of this machine",
    )
    st.dataframe(
        table(found, every),
        hide_index=True,
        height="content",
        alt="Seconds, speed-ups, test accuracy and peak memory of each rung",
    )


def limits(limit: Limit | None, last: Result, half: bool) -> list[dict[str, Any]]:
    """A row a line of the chart: float32 always, 16 bits where a rung uses them."""
    if limit is None:
        return []
    dtypes = ["float32", "bfloat16"] if half else ["float32"]
    return [
        {"text": f"limit, {dtype}", "speed": last.samples / seconds}
        for dtype in dtypes
        if dtype in limit.flops_per_second
        for seconds in [limit.seconds(last.samples, last.steps, dtype)]
    ]


def _of(found: Sequence[Result], rung: str) -> Result | None:
    return next((each for each in found if each.rung == rung and each.measured), None)


def _name(rung: str) -> str:
    """Its title within a sentence."""
    title = BY_NAME[rung].title
    return title[0].lower() + title[1:]


def times(factor: float | None) -> str:
    """4.7×; empty where it is unknown."""
    return "" if factor is None else f"{factor:.3g}×"


def _gain(result: Result, every: Sequence[Result]) -> Gain | None:
    """Over the rung that it changes."""
    before = _of(every, result.base)
    return None if before is None else ladder.gain(result, before)


def table(found: Sequence[Result], every: Sequence[Result]) -> pd.DataFrame:
    """A row for each rung of `found`; `every` holds those they are compared with."""
    rows = []
    for each in found:
        if not each.measured:
            continue
        gain = _gain(each, every)
        rows.append(
            (
                BY_NAME[each.rung].title,
                words.precise(each.epoch_seconds),
                f"{min(each.seconds):.3g} to {max(each.seconds):.3g}",
                f"{each.samples_per_second:,.0f}",
                times(gain.median) if gain else "",
                times(ladder.over_first(each, every)) if gain else "",
                f"{each.accuracy:.2%}",
                words.size(each.peak_bytes),
                "yes" if each.kept else "no",
            )
        )
    columns = [
        "Rung",
        "Epoch",
        "Spread, s",
        "Samples/s",
        "× before",
        "× textbook",
        "Accuracy",
        "Memory",
        "Kept",
    ]
    return pd.DataFrame(rows, columns=columns)


def in_words(done: Climbed) -> str:
    """How far the climb went: the best rung, over the textbook and to the limit."""
    kept = [each for each in done.results if each.kept]
    if not kept:
        return "No rung could be measured here; each says why below."
    best = max(kept, key=lambda each: each.samples_per_second)
    title = BY_NAME[best.rung].title
    text = f"**{title} is the best rung: {words.precise(best.epoch_seconds)} an epoch**"
    first = _of(done.results, RUNGS[0].name)
    if first is not None and first is not best:
        factor = ladder.over_first(best, done.results)
        if factor is not None:
            text += f", {factor:.1f} times as fast as the textbook loop"
    return f"{text}. {to_the_limit(done.limit, best)}"


def to_the_limit(limit: Limit, best: Result) -> str:
    """How much of an epoch is the machine's limit, and which limit that is."""
    images, steps = best.samples, best.steps
    arithmetic = limit.arithmetic_seconds(images)
    memory = limit.memory_seconds(images, steps)
    seconds = max(arithmetic, memory)
    what = "arithmetic" if arithmetic >= memory else "moving bytes"
    return (
        f"At this machine's measured limit for float32, which is {what}, it would take "
        f"{words.precise(seconds)}: the rung takes "
        f"{best.epoch_seconds / seconds:.1f} times that."
    )


def caption(done: Climbed) -> None:
    """How it was measured, and where the limit comes from."""
    limit, config = done.limit, done.climb
    rates = " and ".join(
        f"{median(rates) / 1e9:,.0f} GFLOP/s in {dtype}"
        for dtype, rates in limit.flops_per_second.items()
    )
    n = len(limit.bytes_per_second)
    st.caption(
        f"{words.NAMES[config.model]} on {words.NAMES[config.task]}. Bars are the "
        f"median of n = {config.epochs} epochs after {ladder.FIRST_STEPS} steps that "
        "are not counted, thin lines span least to most; pale rungs were taken back. "
        "× before compares epochs timed in turn with those of the rung that it "
        "changes, and × textbook multiplies these. "
        "Accuracy after all epochs, on all test images. Peak memory: tensors that "
        "some steps need at once, beyond the model; worker processes not counted. "
        f"Limit: {limit.flops_per_image:,.0f} floating-point operations for an image, "
        f"at the {rates} of a large matrix product; memory moves "
        f"{median(limit.bytes_per_second) / 1e9:,.1f} GB/s in large blocks (median of "
        f"n = {n}). {words.provenance(done.environment)}. {done.date[:10]}."
    )


# Rung by rung

TITLES = tuple(rung.title for rung in RUNGS)


def rung_by_rung(
    job_id: str | None, found: Sequence[Result], backend: str, model: str
) -> None:
    """One rung: what it changes, its code, a guess, and then what it brought."""
    st.subheader("Rung by rung")
    number = _stepper()
    rung = RUNGS[number]
    result = next((each for each in found if each.rung == rung.name), None)
    st.markdown(rung.change)
    _code(rung, found, number)
    obstacle = rung.obstacle(backend, model)
    if obstacle:
        st.info(obstacle, icon=":material/info:")
        return
    if number == 0:
        st.markdown("Here the climb begins: there is nothing to guess yet.")
    else:
        st.radio(
            f"Your guess: how fast is it, compared with "
            f"{_name(_before(found, number).name)}?",
            GUESSES,
            index=None,
            horizontal=True,
            key=f"guess_{rung.name}",
            persist_state="session",
        )
    if result is None:
        if number and job_id is None:
            st.markdown("Its figures appear here once you have climbed.")
        elif job_id is not None:
            st.markdown(":material/hourglass: Its turn comes.")
        return
    if not result.measured:
        st.error(result.message, title="It failed here", icon=":material/error:")
    elif _is_revealed(result):
        _outcome(result, found)
    else:
        st.markdown(":material/visibility_off: It is measured. Guess, and it shows.")


def _stepper() -> int:
    """The rung that is looked at, with the way to the next."""
    state = st.session_state
    state.setdefault("ladder_rung", TITLES[0])

    def go(step: int) -> None:
        place = TITLES.index(state.ladder_rung) + step
        state.ladder_rung = TITLES[min(max(place, 0), len(TITLES) - 1)]

    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox(
            "Rung",
            TITLES,
            format_func=lambda title: f"{TITLES.index(title)} · {title}",
            key="ladder_rung",
            width=260,
        )
        number = TITLES.index(chosen)
        st.button(
            "Back",
            icon=":material/arrow_back:",
            key="ladder_back",
            on_click=go,
            args=(-1,),
            disabled=number == 0,
        )
        st.button(
            "Next rung",
            icon=":material/arrow_upward:",
            key="ladder_next",
            on_click=go,
            args=(1,),
            disabled=number == len(RUNGS) - 1,
        )
        st.toggle(
            "Show all without guessing", key="ladder_show_all", persist_state="session"
        )
    return number


def _before(found: Sequence[Result], number: int) -> Rung:
    """The rung that this one is to be compared with."""
    result = next((r for r in found if r.rung == RUNGS[number].name), None)
    if result is not None and result.base:
        return BY_NAME[result.base]
    known = {each.rung: each for each in found}
    for rung in reversed(RUNGS[:number]):
        if rung.name not in known or known[rung.name].kept:
            return rung
    return RUNGS[0]


def _code(rung: Rung, found: Sequence[Result], number: int) -> None:
    if number == 0:
        st.code(body(FILE, rung.name), line_numbers=True)
        return
    # A rung that says nothing on this device is in the code of the next all the same.
    known = {each.rung: each for each in found}
    earlier = [
        each.name
        for each in RUNGS[:number]
        if each.name in NEEDED or each.name not in known or known[each.name].kept
    ]
    changed, whole = st.tabs(["What changes", "The whole rung"])
    with changed:
        st.code(changes(FILE, earlier[-1], rung.name), language="diff")
        if "kept" in body(FILE, rung.name):
            st.markdown(
                "`kept` holds what brought something on the rungs before: a change "
                "that did not is taken back."
            )
    with whole:
        st.code(body(FILE, rung.name), line_numbers=True)


def _outcome(result: Result, every: Sequence[Result]) -> None:
    """What it brought, against the guess, with all its figures."""
    before, gain = _of(every, result.base), _gain(result, every)
    if before is not None and gain is not None:
        _verdict(result, before, gain)
    measured = {
        "Epoch": words.precise(result.epoch_seconds),
        "Samples/s": f"{result.samples_per_second:,.0f}",
        "× textbook": times(ladder.over_first(result, every)) or "–",
        "Test accuracy": f"{result.accuracy:.2%}",
        "Peak memory": words.size(result.peak_bytes),
    }
    with st.container(horizontal=True):
        for label, value in measured.items():
            st.metric(label, value, border=True, width=128)
    first = _of(every, RUNGS[0].name)
    if before is not None and first is not None:
        for sentence in remarks(result, before, first, gain):
            st.markdown(sentence)


def _verdict(result: Result, before: Result, gain: Gain) -> None:
    guess = st.session_state.get(f"guess_{result.rung}")
    n = len(result.base_seconds)
    text = (
        f"**{gain.median:.2f} times as fast** as {_name(before.rung)} "
        f"({gain.least:.2f} to {gain.most:.2f} over {n} pair{'s' * (n != 1)} of "
        f"epochs): {ladder.answer(gain).lower()}."
    )
    if gain.disputed and not gain.same:
        text += " The pairs do not agree, so something else was running: climb again."
    if guess == ladder.answer(gain):
        st.success(f"{text} You guessed right.", icon=":material/check:")
    else:
        said = f" You guessed: {guess.lower()}." if guess else ""
        st.info(text + said, icon=":material/lightbulb:")


def remarks(
    result: Result, before: Result, first: Result, gain: Gain | None
) -> list[str]:
    """What else there is to say of a rung: sentences."""
    found: list[str] = []
    if not result.kept:
        worse = result.accuracy <= first.accuracy - ladder.NOISE
        why = "it learnt less" if worse else "it is not clearly faster here"
        found.append(
            f"It is **taken back**, since {why}: the next rung builds on "
            f"{_name(before.rung)} again."
        )
    elif result.rung in NEEDED and gain is not None and gain.median < 1 + ladder.SAME:
        found.append(
            "It stays all the same: it costs nothing, and the rungs above need it."
        )
    if result.rung in ("compiled", "whole_step"):
        epochs = ladder.pays_after(result, before)
        found.append(
            f"Building the kernels took {words.precise(result.start_seconds)}, "
            + (
                "which never pays here."
                if epochs is None
                else f"which pays after {math.ceil(epochs):,} epochs."
            )
        )
    if result.rung in ("two_workers", "four_workers"):
        found.append(
            f"Starting the processes and making the first batch took "
            f"{words.precise(result.start_seconds)}."
        )
    if result.peak_bytes and before.peak_bytes and result.rung in MEMORY_MATTERS:
        found.append(
            f"Peak memory of a step: {words.size(result.peak_bytes)}, before "
            f"{words.size(before.peak_bytes)}."
        )
    points = (result.accuracy - first.accuracy) * 100
    if abs(points) < ladder.NOISE * 100:
        found.append(
            f"Test accuracy is {abs(points):.1f} points "
            f"{'above' if points >= 0 else 'below'} the textbook's, which is within "
            "the noise of so few epochs."
        )
    return found


def recorded(label: str, done: Climbed) -> None:
    """A climb of another machine, for whoever has not that machine."""
    with st.expander(f"Recorded: {label} · {words.NAMES[done.climb.model]}"):
        st.markdown(in_words(done))
        overview(done.results, done.results, done.limit, done.environment["backend"])
        caption(done)
