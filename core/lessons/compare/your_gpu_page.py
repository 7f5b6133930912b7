"""The learner's own GPU, measured by their browser, as the Compare page shows it."""

import time
import uuid
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from core.errors import ExplainedError, quoted
from core.jobs.job import Job, Stored
from core.lessons.compare.your_gpu_result import (
    BATCH_SIZES,
    KINDS,
    NAMES,
    SIZES,
    WORKS,
    BrowserGpu,
    Work,
    literal,
    read,
)
from core.measure.environment import Machine
from core.serving.visitor_code import is_direct
from core.ui import answers, charts, controls, dataset, format, runs
from core.ui.charts import LINES, MIDDLE, Chart
from core.ui.frame import PROSE
from core.ui.lab import SIDES, Finding, Guess, Lab
from core.ui.server import ask, engine, explained, room, store, visitor
from core.words import capitalized

# Kept answers; Device shows the name.
NAME, RESULT, SHARED = "your_gpu_name", "your_gpu_result", "your_gpu_shared"
COMPONENT, YOURS, NEVER = "your_gpu_component", "Your GPU", "At no size"
ROUND_SECONDS = 60.0  # for an answer of the workers
SOURCE = Path(__file__).with_name("your_gpu.js").read_text("utf-8")
SHADER = Path(__file__).with_name("your_gpu.wgsl").read_text("utf-8")
_component = st.components.v2.component(
    "your_gpu", html='<p role="status"></p>', css="p { margin: 0 }", js=SOURCE
)


def show_shader() -> None:
    st.code(SHADER, language="rust", line_numbers=True)


def ignore() -> None:
    """Do nothing, since the page is redrawn after any message of the component."""


class YourGpu(Lab):
    key, order, file = "your_gpu", 6, "your-gpu"
    address = "core.lessons.compare.your_gpu:prepare"
    finding_above = True
    code = (
        ("For the GPU, in WGSL", show_shader),
        ("For the CPU, in PyTorch", "core.lessons.compare.your_gpu:work"),
    )

    def asks(self, *_: Any) -> Guess:
        sizes = [f"At {size:,} and above" for size in SIZES]
        return Guess("your_gpu_guess", self.words["question"], [*sizes, NEVER])

    @st.fragment
    def draw(self, machine: Machine) -> None:
        state = st.session_state
        said = state.get(COMPONENT, {})
        if "gpu" not in said:  # the tab was closed meanwhile, which has ended a run
            state.pop("your_gpu_go", None)
        elif (name := literal(said["gpu"]["name"])) != answers.given().get(NAME):
            answers.keep(NAME, name)
        shown = self._take(said) or answers.given().get(RESULT)
        st.subheader(self.words["heading"])
        st.markdown(self.words["text"], width=PROSE)
        guessed = self._ask(machine, None, shown is not None)
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
            disabled="gpu" not in said or "your_gpu_go" in state,
        )
        if refusal := state.pop("your_gpu_refused", ""):
            st.warning(refusal, icon=":material/block:")
        self._mount(said)
        if shown is not None:
            job = Job("", self.address, (), "train", status="finished", value=shown)
            self.show(job, guessed)
        share(self.words, shown)
        self._draw_code(shown is not None)

    def _start(self, machine: Machine, against: str, busy: bool) -> None:
        state, mine = st.session_state, newest_ann()
        task = mine.task if mine else dataset.default_task(machine)
        checkpoint = Stored(mine.id) if mine else None
        try:
            if against == "torch" and engine().going_on():
                raise ExplainedError(self.words["occupied"])
            work = ask(self.address, checkpoint, task, seconds=ROUND_SECONDS)
        except ExplainedError as error:
            state.your_gpu_refused = str(error)
            return
        go = {"id": uuid.uuid4().hex, "against": against, "busy": busy}
        state.your_gpu_go = go | {"work": work, "own": mine is not None}
        state.your_gpu_rounds, state.your_gpu_answer = [], {}

    def _mount(self, said: dict[str, Any]) -> None:
        """Draw the component, and send it the data it asked for."""
        go = st.session_state.get("your_gpu_go")
        work = go["work"] if go and said.get("have") != go["id"] else None
        data = {"words": self.words["status"], "wgsl": SHADER, "work": work}
        # The time makes each message new: the browser may have forgotten an old one.
        data |= {"sizes": SIZES, "batches": BATCH_SIZES, "now": time.time()}
        if go:
            data["go"] = {name: go[name] for name in ("id", "against", "busy")}
            data["cpu"] = self._round(said.get("round"), go["id"])
        _component(
            key=COMPONENT,
            data=data,
            on_gpu_change=ignore,
            on_problem_change=ignore,
            on_have_change=ignore,
            on_round_change=ignore,
            on_result_change=ignore,
        )

    def _round(self, asked: Any, run: str) -> dict[str, str]:
        """Repeat on this machine's CPU what the GPU has just done, once per round."""
        state = st.session_state
        is_new = asked and asked["round"] != state.your_gpu_answer.get("round")
        if is_new and asked["round"].startswith(run):
            works = [(k, n) for k, n in asked["works"] if n in WORKS.get(k, ())]
            answer = {"round": asked["round"], "problem": ""}
            try:
                round_ = "core.lessons.compare.your_gpu:measure"
                times, environment = ask(round_, works, seconds=ROUND_SECONDS)
                state.your_gpu_rounds.append((works, times))
                state.your_gpu_environment = environment
            except ExplainedError as error:
                answer["problem"] = str(error)
            state.your_gpu_answer = answer
        return state.your_gpu_answer

    def _take(self, said: dict[str, Any]) -> BrowserGpu | None:
        """The figures of a run that has just ended, or None; kept with the answers."""
        state = st.session_state
        go, result = state.get("your_gpu_go"), said.get("result") or {}
        if go and (said.get("problem") or {}).get("id") == go["id"]:
            del state.your_gpu_go
        if not go or result.get("id") != go["id"]:
            return None
        del state.your_gpu_go
        known = {"against": go["against"], "own_weights": go["own"]}
        known["expected"] = go["work"]["losses"]
        try:
            found = read(result, state.your_gpu_rounds, **known)
        except ValueError as error:
            state.your_gpu_refused = str(error)
            return None
        if go["against"] == "torch":
            found = replace(found, environment=state.your_gpu_environment)
        answers.keep(RESULT, found)
        return found

    def finding(self, gpu: BrowserGpu) -> Finding:
        if gpu.kind == "software":
            return Finding(self.words["software"].format(name=quoted(gpu.name)))
        compared = gpu.compared("product")
        if not compared:
            return Finding(self.words["alone"])
        first, text = gpu.crossover, versus(gpu, compared[-1])
        if first is None:
            return Finding(f"Your GPU doesn't win at the largest size. {text}", NEVER)
        right = f"At {first:,} and above"
        return Finding(f"**Your GPU wins {right.lower()}.** {text}", right)

    def chart(self, gpu: BrowserGpu) -> None:
        draw_times(gpu, "product", "Rows of the square matrices")

    def lines(self, gpu: BrowserGpu) -> list[str]:
        compared = gpu.compared(*WORKS)
        tied = [work for work in compared if work.speedup.winner is None]
        found = [self.words["checked"]]
        if tied:
            names = ", ".join(label(work.kind, work.size) for work in tied)
            found.append(f"Too close to call: {names}.")
        for why, text in self.words["left_out"].items():
            missing = [label(kind, size) for kind, size, w in gpu.left_out if w == why]
            if missing:
                found.append(f"{', '.join(missing)}: {text}")
        return found

    def below(self, gpu: BrowserGpu) -> None:
        left, right = st.columns(SIDES, gap="medium")
        with left:
            said = "".join(versus(gpu, work) for work in gpu.compared("forward")[-1:])
            own = "own" if gpu.own_weights else "fresh"
            st.markdown(f"**{self.words[own]}** {said}")
            draw_times(gpu, "forward", "Images in a batch")
        with right:
            draw_training(gpu)
        for name, fields in lessons(gpu).items():
            lesson = self.words["lessons"][name]
            text = f"**{lesson['title']}** {lesson['text'].format(**fields)}"
            st.markdown(text, width=PROSE)
            script, python = st.columns(SIDES)
            script.code(lesson["js"], language="javascript")
            python.code(lesson["torch"])

    def caption(self, gpu: BrowserGpu) -> str:
        n = max((len(work.gpu) for work in gpu.works), default=0)
        name, other = quoted(gpu.name), opponent(gpu)
        return self.words["caption"].format(n=n, name=name, other=other)


def newest_ann() -> Any:
    """The visitor's newest finished run of the ANN, or None."""
    mine = (run for run in runs.finished() if run.visitor == visitor())
    return next((run for run in mine if run.model == "ann"), None)


def label(kind: str, size: int) -> str:
    noun = {"product": "size", "forward": "batch", "step": "training step, batch"}
    return f"{noun.get(kind, '')} {size:,}"


def opponent(gpu: BrowserGpu) -> str:
    if gpu.environment is None:
        return "one thread in your browser"
    threads = format.counted(gpu.environment.threads, "thread")
    return f"PyTorch on this machine's CPU ({threads})"


def versus(gpu: BrowserGpu, work: Work) -> str:
    sentence = work.speedup.sentence(opponent(gpu), "your GPU", "pairs of rounds")
    return f"{capitalized(label(work.kind, work.size))}: {sentence}"


def draw_times(gpu: BrowserGpu, kind: str, title: str) -> None:
    """Times over sizes, both logarithmic, with the middle half of the rounds."""
    rows = []
    for work in gpu.of(kind):
        for name, seconds in ((YOURS, work.gpu), (NAMES[gpu.against], work.cpu)):
            if seconds:
                middle = median(seconds), *format.middle_half(seconds)
                time = format.precise(middle[0])
                rows.append((work.size, name, *(1e6 * each for each in middle), time))
    if not rows:
        return
    columns = ["size", "who", "microseconds", "low", "high", "time"]
    frame = pd.DataFrame(rows, columns=columns)
    x = alt.X("size:Q").title(title).scale(type="log", nice=False, padding=12)
    y = alt.Y("microseconds:Q").title("Time, logarithmic").scale(type="log")
    chart = alt.Chart(frame).encode(
        x=x.axis(charts.ticks(sorted(set(frame["size"])), format=",d")),
        y=y.axis(charts.microseconds()),
        color=hues(gpu),
        tooltip=["who", "size", *charts.middle_half("µs")],
    )
    lines = charts.lines(chart, points=60, band=True).properties(height=MIDDLE)
    st.altair_chart(lines, alt=f"Time by {title.lower()}")


def hues(gpu: BrowserGpu) -> alt.Color:
    colors = charts.palette()
    names = [YOURS, NAMES[gpu.against]]
    return charts.hues("who", names, [colors.accelerator, colors.cpu], **LINES)


def draw_training(gpu: BrowserGpu) -> None:
    if not gpu.losses:
        return
    apart = max(abs(a - b) for a, b in zip(gpu.losses, gpu.expected, strict=True))
    fallen = f"from {gpu.losses[0]:.2f} to {gpu.losses[-1]:.2f}"
    st.markdown(
        f"**The ANN learns on your GPU: its loss falls {fallen}.** At every step, the "
        f"loss is within {apart:.1g} of PyTorch's."
    )
    losses = enumerate(gpu.losses, 1)
    chart = alt.Chart(pd.DataFrame(losses, columns=["step", "loss"])).encode(
        x=alt.X("step:Q").title("Step"),
        y=alt.Y("loss:Q").title("Loss"),
        color=alt.value(charts.palette().accelerator),
    )
    st.altair_chart(charts.lines(chart).properties(height=MIDDLE), alt="Loss by step")
    for work in gpu.of("step"):
        text = f"A step of {work.size} images takes {format.precise(median(work.gpu))}."
        st.markdown(f"{text} {versus(gpu, work) if work.cpu else ''}")


def lessons(gpu: BrowserGpu) -> dict[str, dict[str, str]]:
    """The figures of each measured lesson, by the lesson's name in the words."""
    forward = gpu.of("forward")
    if not (forward and gpu.unwaited and gpu.waited and gpu.there and gpu.back):
        return {}
    last = forward[-1]
    rates = [format.rounded(each.size / median(each.gpu)) for each in forward]
    time = {
        name: format.precise(median(getattr(gpu, name)))
        for name in ("unwaited", "waited", "there", "back")
    }
    time["computing"] = format.precise(median(last.gpu))
    said = {
        "crossover": {},
        "stopwatch": time | {"size": f"{gpu.clocked:,}"},
        "moving": time | {"images": format.counted(last.size, "image")},
        "batch": {"slow": rates[0], "fast": rates[-1], "size": f"{last.size:,}"},
    }
    if gpu.paces:
        share = f"{gpu.paces[-1] / max(gpu.paces):.0%}"
        said["heat"] = {"seconds": str(len(gpu.paces)), "share": share}
    return said


def share(words: Any, gpu: BrowserGpu | None) -> None:
    """A button that adds the figures to those of the class."""
    opened = room().open
    if opened is None or not room().may_see(visitor()):
        return
    st.markdown(f"**{words['class_heading']}**")
    if answers.given().get(SHARED):
        st.button(words["unshare"], on_click=answers.keep, args=(SHARED, None))
    elif gpu and gpu.of("product") and room().member(visitor()):
        st.markdown(words["what_is_shared"], width=PROSE)
        mine = {"name": gpu.name, "kind": gpu.kind, "speed": gpu.speed}
        mine |= {"against": gpu.against, "from": gpu.crossover}
        st.button(words["share"], on_click=answers.keep, args=(SHARED, mine))
    with explained("The list of the class's GPUs can't be read"):
        kept = store().answers.of_class(opened.id, (SHARED,))[SHARED].values()
        draw_class(words, filter(None, kept))


def draw_class(words: Any, shared: Iterable[dict[str, Any]]) -> None:
    rows = []
    ranked = sorted(shared, key=lambda each: each["speed"], reverse=True)
    for place, each in enumerate(ranked, 1):
        wins = f"wins at {each['from']:,} and above" if each["from"] else "never wins"
        speed, other = each["speed"] / 1e9, NAMES[each["against"]]
        text = f"{format.rounded(speed, 3)}, {wins}"
        rows.append((f"{place}. {each['name']}", each["kind"], speed, text, other))
    st.markdown(words["class_chart" if rows else "nobody"])
    if not rows:
        return
    frame = pd.DataFrame(rows, columns=["name", "kind", "speed", "text", "other"])
    colors = charts.palette()
    shades = [colors.accelerator, colors.further[1], colors.quiet]
    x = alt.X("speed:Q").title("Billions of operations per second, log scale")
    x = x.scale(type="log", domain=[frame["speed"].min() / 2, frame["speed"].max() * 2])
    names = charts.rows(frame, "name", limit=90 if controls.on_phone() else 200)
    kinds = charts.hues("kind", KINDS, shades, columns=2)
    tips = charts.tips(name="GPU", kind="Kind", other="Compared with")
    chart: Chart = charts.dots(names, x, "text", color=kinds, tooltip=tips)
    st.altair_chart(chart, alt="Speed of each GPU in the class")
