"""The learner's own GPU, measured by their browser, as the Compare page shows it."""

import time
import uuid
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.lessons.compare.your_gpu_result import (
    KINDS,
    NAMES,
    ROUNDS,
    WORKS,
    YOURS,
    BrowserGpu,
    literal,
    read,
)
from core.lessons.compare.your_gpu_work_page import SECONDS, WORK, prepared
from core.measure import rounding
from core.measure.environment import Machine
from core.serving.request_source import is_direct
from core.ui import (
    answers,
    charts,
    controls,
    dataset,
    figures,
    format,
    guess,
    runs,
    server,
)
from core.ui.charts import LINES, MIDDLE
from core.ui.frame import PROSE
from core.ui.lab import SIDES, Finding, Lab
from to_device.errors import ExplainedError, quoted
from to_device.words import capitalized

# The keys of kept answers. The Device page also reads the first: the GPU's name.
NAME, RESULT, SHARED = "your_gpu_name", "your_gpu_result", "your_gpu_shared"
COMPONENT, RUN = "your_gpu_component", "your_gpu_run"
MEASURE = "core.lessons.compare.your_gpu:measure"
STEADY = 0.95  # a GPU whose endurance is below this has slowed down
SOURCE, SHADER = (
    Path(__file__).with_name(f"your_gpu.{suffix}").read_text("utf-8")
    for suffix in ("js", "wgsl")
)
_component = st.components.v2.component(
    "your_gpu", html='<p role="status"></p>', css="p { margin: 0 }", js=SOURCE
)


class YourGpu(Lab):
    key = "your_gpu"
    file = "your-gpu"
    address = "core.lessons.compare.your_gpu:prepare"
    kept = RESULT
    finding_above = True
    code = (
        ("For the GPU, in WGSL", partial(st.code, SHADER, "rust", line_numbers=True)),
        (
            "For the CPU, in PyTorch",
            "core.lessons.compare.your_gpu:work",
            "core.loops:train_epoch",
        ),
    )

    @st.fragment
    def draw(self, machine: Machine) -> None:
        state = st.session_state
        report = state.get(COMPONENT, {}).get("report")
        if report:
            with server.noticed():
                self._follow(report)
        else:  # the tab is new, or was closed meanwhile, which ends a run
            state.pop(RUN, None)
        gpu = answers.of_visitor().get(RESULT)
        st.header(self.words["heading"])
        st.markdown(self.words["text"], width=PROSE)
        guessed = self._ask(machine, None, gpu is not None)
        same = is_direct(st.context.headers) and answers.toggle(
            self.words["same"], "your_gpu_same"
        )
        busy = st.toggle(self.words["keep_busy"], key="your_gpu_busy")
        st.button(
            self.words["start"],
            key=self.key,
            type="primary",
            icon=":material/timer:",
            on_click=self._start,
            args=(machine, "torch" if same else "browser", busy),
            disabled=not report or RUN in state,
        )
        server.tell_notice()
        go, _ = state.get(RUN, (None, None))
        # `now` makes the data new on each draw, so that a browser that forgot the
        # earlier data gets them again.
        data = {"words": self.words["status"], "go": go, "now": time.time()}
        # Streamlit redraws the page after each report, so the callback does nothing.
        _component(key=COMPONENT, data=data, on_report_change=lambda: None)
        if gpu is not None:
            job = Job("", self.address, (), "train", status="finished", value=gpu)
            self.show(job, guessed)
        if guessed not in (None, guess.HELD):  # the others' results are hints
            share(self.words, gpu)
        self._draw_code(gpu is not None)

    def _start(self, machine: Machine, against: str, busy: bool) -> None:
        own = (run for run in runs.finished() if run.visitor == server.visitor())
        own = (run for run in own if run.model == "ann")
        # The shader's model takes pixels of 0 to 1.
        run = next((run for run in own if not run.normalize), None)
        task = run.task if run else dataset.default_task(machine)
        works = [task, *([f"{task}/{run.id}"] if run else [])]
        with server.noticed():
            if against == "torch" and server.engine().going_on():
                raise ExplainedError(self.words["occupied"])
            (_, losses), *_ = map(prepared, works)
            go = {"id": uuid.uuid4().hex, "against": against, "busy": busy}
            go |= {"works": [f"{WORK}/{name}" for name in works]}
            go |= {"wgsl": SHADER, "answer": {}}
            facts = {"own_weights": run is not None, "expected": losses}
            st.session_state[RUN] = go, facts | {"against": against}

    def _follow(self, report: dict[str, Any]) -> None:
        """Keep the GPU's name, and follow the run that is going on.

        A problem or a result ends the run, and a result is kept. If the browser asks
        for the CPU's times, the workers measure them.
        """
        if (name := literal(report["name"])) != answers.of_visitor().get(NAME):
            answers.keep(NAME, name)
        go, facts = st.session_state.get(RUN, ({}, {}))
        if not go or report.get("id") != go["id"]:
            return
        if "problem" in report or "result" in report:
            del st.session_state[RUN]
            if "result" in report:
                answers.keep(RESULT, read(report["result"], **facts))
        elif go["against"] == "torch" and report["round"] != go["answer"].get("round"):
            # Each work once, however often a forged report has it.
            asked = ((k, n) for k, n in report["works"] if n in WORKS.get(k, ()))
            works = list(dict.fromkeys(asked))
            answer = go["answer"] = {"round": report["round"]}
            try:
                answer["seconds"], facts["environment"] = server.ask(
                    MEASURE, works, seconds=SECONDS
                )
            except ExplainedError as error:
                answer["problem"] = str(error)

    def finding(self, gpu: BrowserGpu) -> Finding:
        if gpu.kind == "software":
            return Finding(self.words["software"].format(name=quoted(gpu.name)))
        right = "At no size" if gpu.outcome == "nowhere" else None
        if gpu.crossover:
            right = f"At {gpu.crossover:,} and above"
        text = f"{self.words['findings'][gpu.outcome]} {versus(gpu, 'product')}"
        return Finding(text.format(gpu.crossover), right)

    def chart(self, gpu: BrowserGpu) -> None:
        draw_times(gpu, "product", "Rows of the square matrices")

    def lines(self, gpu: BrowserGpu) -> list[str]:
        noted = [(work.kind, work.size, work.note) for work in gpu.works]
        noted += gpu.left_out
        lines = [self.words["checked"]]
        for note, text in self.words["notes"].items():
            if names := [label(kind, size) for kind, size, why in noted if why == note]:
                lines.append(f"{capitalized(', '.join(names))}: {text}")
        return lines

    def below(self, gpu: BrowserGpu) -> None:
        left, right = st.columns(SIDES, gap="medium")
        with left:
            weights = self.words["own" if gpu.own_weights else "fresh"]
            st.markdown(f"**{weights}** {versus(gpu, 'forward')}")
            draw_times(gpu, "forward", "Images in a batch")
        with right:
            draw_training(gpu)
        numbers, verdicts = lesson_figures(gpu), {"crossover": gpu.outcome}
        lessons = dict(self.words["lessons"])
        if gpu.paces:
            numbers["share"] = f"{gpu.endurance:.0%}"
            verdicts["heat"] = "cool" if gpu.endurance >= STEADY else "hot"
        else:
            del lessons["heat"]
        for name, lesson in lessons.items():
            parts = lesson["text"], lesson.get(verdicts.get(name), "")
            text = f"**{lesson['title']}** {' '.join(parts)}"
            st.markdown(text.format(**numbers), width=PROSE)
            script, python = st.columns(SIDES)
            script.code(lesson["js"], language="javascript", wrap_lines=True)
            python.code(lesson["torch"], wrap_lines=True)

    def caption(self, gpu: BrowserGpu) -> str:
        name, other = quoted(gpu.name), opponent(gpu)
        return self.words["caption"].format(n=ROUNDS, name=name, other=other)


def label(kind: str, size: int) -> str:
    noun = {"product": "size", "forward": "batch", "step": "training step, batch"}
    return f"{noun[kind]} {size:,}"


def opponent(gpu: BrowserGpu) -> str:
    if gpu.environment is None:
        return "one thread in your browser"
    threads = format.counted(gpu.environment.threads, "thread")
    return f"PyTorch on this machine's CPU ({threads})"


def versus(gpu: BrowserGpu, kind: str) -> str:
    """Which side is faster at the largest size that both did; "" if there is none."""
    for work in reversed(gpu.of(kind)):
        if work.speedup:
            names = opponent(gpu), "your GPU", "pairs of rounds"
            sentence = work.speedup.sentence(*names)
            return f"{capitalized(label(kind, work.size))}: {sentence}"
    return ""


def draw_times(gpu: BrowserGpu, kind: str, title: str) -> None:
    """Draw times over sizes, both logarithmic. A band shows the rounds' middle half."""
    readings = [reading for reading in gpu.readings if reading.work == kind]
    frame = figures.readings(readings, "size", "who", microseconds=1e6)
    x = alt.X("size:Q").title(title).scale(type="log", nice=False, padding=12)
    y = alt.Y("microseconds:Q").title("Time, logarithmic").scale(type="log")
    colors = charts.palette()
    hues = [colors.accelerator, colors.cpu]
    chart = alt.Chart(frame).encode(
        x=x.axis(charts.ticks(sorted(set(frame["size"])), format=",d")),
        y=y.axis(charts.microseconds()),
        color=charts.hues("who", [YOURS, gpu.opponent], hues, **LINES),
        tooltip=["who", "size", *charts.middle_half("µs")],
    )
    lines = charts.lines(chart, points=60, band=True).properties(height=MIDDLE)
    st.altair_chart(lines, alt=f"Time by {title.lower()}")


def draw_training(gpu: BrowserGpu) -> None:
    if not gpu.losses:
        return
    apart = max(abs(a - b) for a, b in zip(gpu.losses, gpu.expected, strict=True))
    st.markdown(
        f"**The ANN learns on your GPU: its loss falls from {gpu.losses[0]:.2f} to "
        f"{gpu.losses[-1]:.2f}.** At every step, the loss is within "
        f"{apart:.7f} of PyTorch's."
    )
    losses = enumerate(gpu.losses, 1)
    chart = alt.Chart(pd.DataFrame(losses, columns=["step", "loss"])).encode(
        x=alt.X("step:Q").title("Step"),
        y=alt.Y("loss:Q").title("Loss"),
        color=alt.value(charts.palette().accelerator),
    )
    st.altair_chart(charts.lines(chart).properties(height=MIDDLE), alt="Loss by step")
    for work in gpu.of("step"):
        text = f"A step of {work.size} images takes {rounding.precise(work.seconds)}."
        st.markdown(f"{text} {versus(gpu, 'step')}")


def lesson_figures(gpu: BrowserGpu) -> dict[str, str]:
    """The figures that the lessons' texts quote, keyed by placeholder."""
    products, batches = gpu.of("product"), gpu.of("forward")
    small, large, few, many = products[0], products[-1], batches[0], batches[-1]
    seconds = {"small": small.seconds, "large": large.seconds, "forward": many.seconds}
    seconds |= {n: median(getattr(gpu, n)) for n in ("waited", "there", "back")}
    # The mean: a coarse clock may show 0 for most calls, so the median could be 0.
    # If it shows 0 for all of them, the browser sends a nanosecond.
    seconds["unwaited"] = fmean(gpu.unwaited)
    times = {k: rounding.precise(s) if s > 1e-8 else "0 s" for k, s in seconds.items()}
    return times | {
        "first": f"{gpu.crossover or 0:,}",
        "clocked": f"{gpu.clocked:,}",
        "least": f"{small.size:,}",
        "most": f"{large.size:,}",
        "longer": rounding.times(large.seconds / small.seconds),
        "work": f"{(large.size // small.size) ** 3:,}",
        "few": format.counted(few.size, "image"),
        "many": format.counted(many.size, "image"),
        "slow": rounding.rounded(few.size / few.seconds),
        "fast": rounding.rounded(many.size / many.seconds),
    }


def share(words: Any, gpu: BrowserGpu | None) -> None:
    """Draw the chart of the class's GPUs, and a button that adds this GPU."""
    open_class = server.room().open
    if open_class is None or not server.room().may_see(server.visitor()):
        return
    st.markdown(f"**{words['class_heading']}**")
    if answers.of_visitor().get(SHARED):
        st.button(words["unshare"], on_click=answers.keep, args=(SHARED, None))
    elif gpu and server.room().member(server.visitor()):
        st.markdown(words["what_is_shared"], width=PROSE)
        mine = {"name": gpu.name, "kind": gpu.kind, "speed": gpu.speed}
        mine |= {"against": gpu.against, "from": gpu.crossover}
        st.button(words["share"], on_click=answers.keep, args=(SHARED, mine))
    with server.explained("The list of the class's GPUs can't be read"):
        shared = server.store().answers.of_class(open_class.id, (SHARED,))[SHARED]
        # A name that a browser reports may say anything, so a teacher sees whose it is.
        is_teacher = server.room().is_teacher(server.visitor())
        names = server.room().names(open_class.id) if is_teacher else {}
        rows = shared.items()
        draw_class(words, [g | {"who": names.get(who, "")} for who, g in rows if g])


def draw_class(words: Any, shared: Iterable[dict[str, Any]]) -> None:
    """Draw a dot for each GPU; `who` is its owner's name, for a tooltip, or ""."""
    ranked = sorted(shared, key=lambda gpu: gpu["speed"], reverse=True)
    st.markdown(words["class_chart" if ranked else "nobody"])
    if not ranked:
        return
    frame = pd.DataFrame(ranked)
    frame["speed"] /= 1e9
    frame["against"] = frame["against"].map(NAMES)
    frame["name"] = [f"{place}. {name}" for place, name in enumerate(frame["name"], 1)]
    frame["text"] = [
        f"{rounding.rounded(gpu['speed'] / 1e9, 3)}, "
        + (f"wins at {gpu['from']:,} and above" if gpu["from"] else "no clear win")
        for gpu in ranked
    ]
    colors = charts.palette()
    shades = [colors.accelerator, colors.further[1], colors.quiet]
    x = alt.X("speed:Q").title("Billions of operations per second, log scale")
    x = x.scale(type="log", domain=[frame["speed"].min() / 2, frame["speed"].max() * 2])
    names = charts.rows(frame, "name", limit=90 if controls.on_phone() else 200)
    kinds = charts.hues("kind", KINDS, shades, columns=2)
    tips = charts.tips(name="GPU", kind="Kind", against="Compared with")
    tips += charts.tips(who="Whose") if frame["who"].any() else []
    chart = charts.dots(names, x, "text", color=kinds, tooltip=tips)
    st.altair_chart(chart, alt="Speed of each GPU in the class")
