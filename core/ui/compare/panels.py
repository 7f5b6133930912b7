"""The timing lab, the breakdown and the crossover map, as the Compare page shows them.

Each is drawn in the same way from what was measured here and from a record.
"""

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import pandas as pd
import streamlit as st

from core.compare import rows as flat
from core.compare.candidates import Candidate
from core.compare.results import (
    PARTS,
    WAYS,
    Cell,
    Crossover,
    Race,
    Reading,
    StepProfile,
    TimingLab,
    equal_points,
)
from core.jobs.engine import Job
from core.measure import records
from core.measure.records import Record
from core.speed.ladder import Climbed
from core.ui import downloads, format
from core.ui import guess as guesses
from core.ui.charts import compare as charts
from core.ui.server import engine, visitor
from core.ui.train import live

Draw = Callable[[Job], None]
SECTIONS: dict[str, type[Any]] = {  # of a record, with what each is a list of
    "races": Race,
    "crossovers": Crossover,
    "labs": TimingLab,
    "breakdowns": StepProfile,
    "climbs": Climbed,
}


def recordings() -> list[Record]:
    """The records that the learner wants to see beside what is measured here."""
    found, notices = records.records()
    for notice in notices:
        st.warning(notice, icon=":material/info:")
    found = [each for each in found if SECTIONS.keys() & each.figures.keys()]
    if not found:
        return []
    labels = {each.label: each for each in found}
    chosen = st.multiselect(
        "Beside what is measured here, show what was recorded on",
        list(labels),
        default=list(labels)[:1],
        key="recordings",
    )
    return [labels[label] for label in chosen]


def of(chosen: Sequence[Record], section: str) -> list[tuple[str, Any]]:
    """What the records hold of a section, each with its label."""
    found: list[tuple[str, Any]] = []
    for record in chosen:
        each, problem = record.section(section, SECTIONS[section])
        if problem:
            st.warning(problem, icon=":material/info:")
        found.extend((record.label, one) for one in each)
    return found


def measure(
    path: str,
    label: str,
    key: str,
    arguments: tuple | None,
    what: str,
    draw: Draw,
    empty: str,
) -> bool:
    """A button that queues the job at `path`, and the newest such job of this visitor.

    Answers whether there is one; if not, `empty` says what will appear. Without
    arguments there is nothing to start.
    """
    own = engine().jobs(path, visitor())
    job = own[-1] if own else None
    going_on = job is not None and not job.ended

    def start() -> None:
        if arguments is not None:
            engine().submit(path, *arguments, owner=visitor())

    with st.container(horizontal=True):
        st.button(
            label,
            icon=":material/timer:" if key != "compare" else ":material/flag:",
            type="primary" if key == "compare" else "secondary",
            key=key,
            on_click=start,
            disabled=going_on or arguments is None,
        )
        if job is not None and going_on:
            st.button(
                "Cancel",
                icon=":material/stop:",
                key=f"cancel_{key}",
                on_click=engine().cancel,
                args=(job.id,),
            )
    if job is None:
        st.markdown(empty)
        return False
    if engine().problem and not job.ended:
        st.error(engine().problem, title="There are no workers; your job waits")
    live.follow_job(job.id, what, draw)
    return True


def ended_badly(job: Job, what: str) -> None:
    """The sentence for a job that did not come to its end."""
    if job.status == "failed":
        st.error(job.message, title=f"{what} failed", icon=":material/error:")
    elif job.status == "cancelled":
        st.info("Cancelled. What was measured until then stays here.")


# Why is your timing wrong?

GUESSES = ("About as long", "Two to ten times as long", "More than ten times as long")


def guess(accelerator: bool) -> str | None:
    """What the learner expects, before anything is measured."""
    st.markdown(
        "The product of two square matrices, timed 20 times in each of three ways. "
        + (
            "The accelerator works through a queue, and `a @ b` returns as soon as it "
            "is queued."
            if accelerator
            else "On the CPU `a @ b` returns when the product is there, so nothing has "
            "to be waited for. What is left is the first call."
        )
    )
    return guesses.ask(
        "timing_guess",
        "how long does the first call take, compared with a later one?",
        GUESSES,
    )


def lab(job: Job, guessed: str | None) -> None:
    """The readings, once the learner has guessed."""
    ended_badly(job, "The measurement")
    done: TimingLab | None = job.value
    if done is None:
        if not job.ended:
            ways = [e.way for e in job.events if isinstance(e, Reading)]
            st.info(
                f"Measuring, each way in a process of its own: {len(ways)} of "
                f"{len(WAYS)} done."
            )
        return
    if guesses.missing(guessed):
        return
    assert guessed is not None
    factor = first_call(done)
    truth = GUESSES[0 if factor < 2 else 1 if factor <= 10 else 2]
    text = f"The first call took **{factor:.3g} times** as long as a later one. "
    guesses.judge(text.strip(), guessed.lower(), guessed == truth)
    draw_lab(done)
    downloads.both("timing", flat.of_lab(done))


def first_call(done: TimingLab) -> float:
    """The first call over a later one, both synchronized."""
    (honest,) = (r.seconds for r in done.readings if r.way == "synchronize")
    return honest[0] / median(honest[1:])


def draw_lab(done: TimingLab) -> None:
    """Every call on a chart, the figures that each way would report, the threads."""
    calls = [
        (reading.way, call, seconds * 1e3)
        for reading in done.readings
        for call, seconds in enumerate(reading.seconds, 1)
    ]
    st.altair_chart(
        charts.readings(
            pd.DataFrame(calls, columns=["way", "call", "milliseconds"]), WAYS
        ),
        alt="Milliseconds of each call for three ways of timing, logarithmic",
    )
    later = {r.way: median(r.seconds[1:]) for r in done.readings}
    st.dataframe(
        pd.DataFrame(
            [
                (
                    reading.way,
                    format.precise(reading.seconds[0]),
                    format.precise(later[reading.way]),
                    f"{format.precise(min(reading.seconds[1:]))} to "
                    f"{format.precise(max(reading.seconds[1:]))}",
                    format.precise(sum(reading.seconds) / len(reading.seconds)),
                )
                for reading in done.readings
            ],
            columns=["Timed", "First call", "Later, median", "Spread", "Mean of all"],
        ),
        hide_index=True,
        height="content",
        alt="First call, median, spread and mean for each way of timing",
    )
    environment = done.environment
    if environment.backend == "CPU":
        stands_out = first_call(done) >= 2
        st.markdown(
            "On the CPU, naive and synchronized readings mean the same. "
            + (
                "Only the first call stands out: a warm-up leaves it out, a mean over "
                "all calls hides it."
                if stands_out
                else "Here the first call does not even stand out of the others; on an "
                "accelerator, which has more to set up, it does."
            )
        )
    else:
        short = later["synchronize and warm-up"] / later["naive"]
        st.markdown(
            f"After the first call, the naive clock reads 1/{short:.3g} of the truth: "
            "it times how fast the work is queued."
            if short > 1.5
            else "Here the naive clock reads nearly the truth: it had to wait for a "
            "full queue. Do not count on it."
        )
    st.caption(
        f"{done.size:,} × {done.size:,}, n = {len(done.readings[0].seconds)} calls in "
        f"each way, each way in a new process. {format.provenance(environment)}. "
        f"{done.date[:10]}."
    )
    _threads(done)


def _threads(done: TimingLab) -> None:
    st.markdown("**The CPU's own trap: threads**")
    rows, sentences = [], []
    for size in dict.fromkeys(each.size for each in done.threads):
        found = {e.threads: e.seconds for e in done.threads if e.size == size}
        rows += [
            (
                f"{size:,} × {size:,}",
                threads,
                format.precise(median(seconds)),
                f"{format.precise(min(seconds))} to {format.precise(max(seconds))}",
            )
            for threads, seconds in found.items()
        ]
        if len(found) > 1:
            most = max(found)
            factor = median(found[1]) / median(found[most])
            sentences.append(
                f"At {size:,} × {size:,}, {most} threads are {factor:.2f} times as "
                "fast as one."
            )
    st.dataframe(
        pd.DataFrame(rows, columns=["Matrices", "Threads", "Median", "Spread"]),
        hide_index=True,
        height="content",
        alt="The same product with one thread and with all of them",
    )
    st.markdown(
        " ".join(sentences)
        + " Threads help where there is enough to share and a core is free for each; "
        "so say how many there were when you quote a time."
    )
    n = len(done.threads[0].seconds)
    st.caption(
        f"n = {n} after a warm-up. {done.cpu_environment.device_name}, torch "
        f"{done.cpu_environment.torch}, {done.date[:10]}."
    )


# Where the time goes

REMEDIES = {
    "load": "Making the batch is the bottleneck: the processor works while the model "
    "waits. Decode once and keep tensors, or give the loader workers.",
    "copy": "The copy to the device is the bottleneck. Send uint8 instead of floats, "
    "use pinned memory, or keep the data on the device.",
    "forward": "The forward pass is the bottleneck: the arithmetic itself, or the time "
    "to start each operation where the batch is small.",
    "backward": "The backward pass is the bottleneck: about twice the arithmetic of "
    "the forward pass. A faster device or a smaller model is what helps.",
    "optimizer": "The optimizer is the bottleneck: it touches every parameter in every "
    "step, whatever the batch. A larger batch means fewer steps.",
}


def breakdown(job: Job, elsewhere: Sequence[tuple[str, StepProfile]]) -> None:
    """Stacked bars, a sentence for each, and the traces."""
    ended_badly(job, "The profile")
    found = [e for e in job.events if isinstance(e, StepProfile)]
    if job.value is not None:
        found = list(job.value)
    elif not job.ended:
        st.info(f"Profiling: {len(found)} of {len(job.arguments[1])} done.")
    if not found:
        return
    draw_breakdown(found, elsewhere)
    downloads.both("breakdown", flat.of_breakdown(found))
    traces = {_bar(each): each.trace for each in found if each.trace is not None}
    if traces and job.ended:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            chosen = st.selectbox("Trace", list(traces), key="trace", width=260)
            st.download_button(
                "Trace for Perfetto",
                traces[chosen],
                "trace.json.gz",
                "application/gzip",
                icon=":material/download:",
                key="trace_gz",
                on_click="ignore",
            )
        st.markdown("Open it at [ui.perfetto.dev](https://ui.perfetto.dev).")
    missing = [_bar(each) for each in found if each.trace is None]
    if missing:
        st.markdown(f"Too large to keep: the trace of {', '.join(missing)}.")


def draw_breakdown(
    found: Sequence[StepProfile], elsewhere: Sequence[tuple[str, StepProfile]] = ()
) -> None:
    """The bars of what was measured here, then of what was recorded."""
    here = [(_bar(each), each, False) for each in found]
    there = [(f"{_bar(each)}, {label}", each, True) for label, each in elsewhere]
    rows = [
        (bar, part, each.typical(part) * 1e3, each.typical(part) / step, recorded)
        for bar, each, recorded in here + there
        for step in [each.typical("step")]
        for part in PARTS
    ]
    columns = ["bar", "part", "milliseconds", "share", "recorded"]
    st.altair_chart(
        charts.parts(pd.DataFrame(rows, columns=columns), PARTS),
        alt="Milliseconds of load, copy, forward, backward and optimizer in a step",
    )
    lines = []
    for bar, each, _ in here + there:
        lines.append(
            f"- **{bar}**: {format.precise(each.typical('step'))} a step, "
            f"{each.share:.0%} of it **{each.largest}**. {REMEDIES[each.largest]}"
        )
    st.markdown("\n".join(lines))
    first = found[0] if found else elsewhere[0][1]
    alone = ", ".join(format.precise(median(e.unprofiled)) for e in found)
    covered = ", ".join(f"{each.covered:.0%}" for each in found)
    st.caption(
        f"{format.NAMES[first.config.model]}, batch {first.config.batch_size:,}; mean "
        f"over the middle half of n = {len(first.step)} steps after a warm-up. "
        "zero_grad is counted with the forward pass. Each range ends when the device "
        "has done its work, so nothing overlaps. "
        + (
            f"The parts add up to {covered} of the step; without the profiler a step "
            f"takes {alone}. "
            if found
            else ""
        )
        + f"{format.provenance(first.environment)}. {first.date[:10]}."
    )


def _bar(each: StepProfile) -> str:
    return f"{format.NAMES[each.feed]} on {each.environment.backend}"


# The crossover map

BUDGETS = (10, 30, 60, 120)  # seconds


def crossover(job: Job) -> None:
    """The map as far as it is measured."""
    ended_badly(job, "The map")
    done: Crossover | None = job.value
    cells = [event for event in job.events if isinstance(event, Cell)]
    candidates: tuple[Candidate, Candidate] = job.arguments[0]
    if done is not None:
        cells = list(done.cells)
    elif not job.ended:
        st.info(f"Measuring, coarse to fine: {len(cells)} cells so far.")
    if not cells:
        if done is not None:
            st.warning("The time was over before the first cell. Give it more.")
        return
    draw_map(cells, candidates)
    if done is not None:
        map_caption(done)
        downloads.both("crossover", flat.of_crossover(done))


def draw_map(cells: Sequence[Cell], candidates: tuple[Candidate, Candidate]) -> None:
    """The heat map with the line where both are equal, and what it says."""
    first, second = candidates
    rows = []
    for cell in cells:
        found = cell.speedup
        low, high = found.interval
        rows.append(
            (
                math.log2(cell.batch_size),
                math.log2(cell.width),
                cell.batch_size,
                cell.width,
                math.log2(found.median),
                f"{found.median:.2g}",
                f"{low:.2g} to {high:.2g}",
            )
        )
    columns = ["batch", "width", "batch_size", "hidden", "log2", "label", "interval"]
    table = pd.DataFrame(rows, columns=columns)
    points = pd.DataFrame(
        [(math.log2(x), math.log2(y)) for x, y in equal_points(cells)],
        columns=["x", "y"],
    )
    # One line where each row of the map is crossed at most once; else points alone.
    in_rows = points[points["y"].isin(table["width"])]
    points["joined"] = not in_rows["y"].duplicated().any()
    most = max(1.0, table["log2"].abs().max())
    backends = (first.backend, second.backend)
    st.altair_chart(
        charts.crossover(table, points, backends, most),
        alt=f"Speed-up of {second.name} over {first.name}, over batch size and width",
    )
    st.markdown(map_in_words(cells, candidates))


def map_in_words(cells: Sequence[Cell], candidates: tuple[Candidate, Candidate]) -> str:
    """Who wins how many cells, and where the first contender is to be preferred."""
    first, second = candidates
    winners = [cell.speedup.winner for cell in cells]
    text = (
        f"A number says how many times as fast **{second.name}** is as "
        f"**{first.name}**; the diamonds stand where they are equal. Of {len(cells)} "
        f"cells {second.name} wins {winners.count(1)}, {first.name} "
        f"{winners.count(0)}; {winners.count(None)} are too close to call."
    )
    on_cpu = [index for index in (0, 1) if candidates[index].device == "cpu"]
    index = on_cpu[0] if on_cpu else 0
    kept = [c for c, winner in zip(cells, winners, strict=True) if winner == index]
    if not kept:
        return text
    largest = max(kept, key=lambda cell: cell.width * cell.batch_size)
    stay = f"take {candidates[index].name}: it is faster and cheaper"
    if len(on_cpu) == 1:
        stay = "stay on the CPU: it is faster and cheaper"
    return (
        f"{text} Where {candidates[index].name} wins, {stay}. The largest such cell is "
        f"batch size {largest.batch_size:,} with {largest.width:,} hidden units."
    )


def map_caption(done: Crossover) -> None:
    """How it was measured, and why cells are missing."""
    missing = done.planned - len(done.cells)
    why = done.stopped or f"The {done.budget_seconds:.0f} seconds were over."
    left_out = f"{missing} of {done.planned} cells were not measured. {why} "
    where = [format.provenance(each) for each in done.environments]
    st.caption(
        (left_out if missing else "")
        + "A training step of 784-width-10, data on the device; each cell is the "
        f"median ratio of n = {done.cells[0].speedup.n} pairs of readings after a "
        f"warm-up. {'; '.join(dict.fromkeys(where))}. {done.date[:10]}."
    )
