"""The learner's own GPU, measured by their browser, as the Compare page shows it."""

import uuid
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from core.errors import ExplainedError
from core.jobs.job import Job
from core.lessons.compare.your_gpu_result import (
    BATCH_SIZES,
    KINDS,
    NAMES,
    SIZES,
    BrowserGpu,
    read,
)
from core.measure.environment import Machine
from core.measure.speedup import paired
from core.serving.visitor_code import is_direct
from core.ui import answers, charts, dataset, format, runs
from core.ui.charts import LINES, MIDDLE, Chart
from core.ui.frame import PROSE
from core.ui.lab import SIDES, Finding, Guess, Lab
from core.ui.server import ask, engine, room, store, visitor

RESULT, SHARED = "your_gpu_result", "your_gpu_shared"  # kept answers
COMPONENT = "your_gpu_component"
FILE = Path(__file__).with_name("your_gpu.js")
SHADER = FILE.with_suffix(".wgsl").read_text("utf-8")
ROUND_SECONDS = 60.0  # for an answer of the workers
NEVER = "At no size here"
_component = st.components.v2.component(
    "your_gpu",
    html='<p role="status"></p><progress hidden></progress>',
    css="p { margin: 0 } progress { width: 100%; accent-color: currentColor }",
    js=FILE.read_text("utf-8"),
)


def ignore() -> None:
    """The page is drawn anew whatever the component says."""


def show_shader() -> None:
    st.code(SHADER, language="rust", line_numbers=True)


class YourGpu(Lab):
    key, order, file = "your_gpu", 5, "your-gpu"
    address = "core.lessons.compare.your_gpu:prepare"
    finding_above = True
    code = (
        ("The GPU's, in WGSL", show_shader),
        ("The CPU's, in PyTorch", "core.lessons.compare.your_gpu:work"),
    )

    def asks(self, *_: Any) -> Guess:
        sizes = [f"From {size:,} on" for size in SIZES]
        return Guess("your_gpu_guess", self.words["question"], [*sizes, NEVER])

    @st.fragment
    def draw(self, machine: Machine) -> None:
        st.subheader(self.words["heading"])
        st.markdown(self.words["text"], width=PROSE)
        state = st.session_state
        said = state.get(COMPONENT, {})
        if "gpu" not in said:  # the tab was closed meanwhile, which has ended a run
            state.pop("your_gpu_go", None)
        shown = self._take(said) or answers.given().get(RESULT)
        guessed = self._ask(machine, None, shown is not None)
        same = is_direct(st.context.headers) and answers.toggle(
            self.words["same"], "your_gpu_same"
        )
        against = "torch" if same else "browser"
        busy = st.toggle(self.words["keep_busy"], key="your_gpu_busy")
        st.button(
            self.words["start"],
            key=self.key,
            type="primary",
            icon=":material/timer:",
            on_click=self._start,
            args=(machine, against, busy),
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
        checkpoint = runs.Stored(mine.id) if mine else None
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
        """Draw the component; what it asked for is sent with its data."""
        go = st.session_state.get("your_gpu_go")
        work = go["work"] if go and said.get("have") != go["id"] else None
        data = {"words": self.words["status"], "wgsl": SHADER, "work": work}
        data |= {"sizes": SIZES, "batches": BATCH_SIZES}
        if go:
            data["go"] = {name: go[name] for name in ("id", "against", "busy")}
            data["cpu"] = self._round(said.get("round"))
        _component(
            key=COMPONENT,
            data=data,
            on_gpu_change=ignore,
            on_problem_change=ignore,
            on_have_change=ignore,
            on_round_change=ignore,
            on_result_change=ignore,
        )

    def _round(self, asked: Any) -> dict[str, str]:
        """This machine's CPU does what the GPU has just done, once."""
        state = st.session_state
        if asked and asked["round"] != state.your_gpu_answer.get("round"):
            works = tuple((str(kind), int(size)) for kind, size in asked["works"])
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
        """What a run that has just ended has measured; kept with the answers."""
        state = st.session_state
        go, result = state.get("your_gpu_go"), said.get("result") or {}
        if go and (said.get("problem") or {}).get("id") == go["id"]:
            del state.your_gpu_go
        if not go or result.get("id") != go["id"]:
            return None
        del state.your_gpu_go
        cpu, environment = [], None
        if go["against"] == "torch":
            cpu, environment = state.your_gpu_rounds, state.your_gpu_environment
        losses, own = go["work"]["losses"], go["own"]
        try:
            found = read(result, go["against"], losses, own, cpu, environment)
        except ValueError as error:
            state.your_gpu_refused = str(error)
            return None
        answers.keep(RESULT, found)
        return found

    def finding(self, gpu: BrowserGpu) -> Finding:
        """From which size on the GPU wins, and by how much at the largest."""
        if gpu.is_software:
            return Finding(self.words["software"].format(name=gpu.name))
        compared = [work for work in gpu.of("product") if work.speedup]
        if not compared:
            return Finding(self.words["alone"])
        first, last = gpu.crossover("product"), compared[-1]
        over = paired(last.cpu, last.gpu)
        text = (
            f"At {last.size:,} × {last.size:,}, your GPU is "
            f"**{format.times(over.median)} times** as fast as {who(gpu)} "
            f"({' to '.join(map(format.times, over.interval))})."
        )
        if first is None:
            text = f"Your GPU doesn't win at the largest sizes. {text}"
            return Finding(text, NEVER)
        return Finding(
            f"Your GPU wins **from {first:,} × {first:,} on**. {text}",
            f"From {first:,} on",
        )

    def chart(self, gpu: BrowserGpu) -> None:
        draw_times(gpu, "product", "Rows of the square matrices")

    def lines(self, gpu: BrowserGpu) -> list[str]:
        """What was computed, what was left out, and what was checked."""
        close = [
            format.counted(work.size, noun)
            for noun, kind in (("row", "product"), ("image", "forward"))
            for work in gpu.of(kind)
            if work.speedup and work.speedup.winner is None
        ]
        found = [self.words["checked"]]
        if close:
            found.append(f"Too close to call: {', '.join(close)}.")
        for why, text in self.words["left_out"].items():
            sizes = [f"{kind} {size:,}" for kind, size, w in gpu.left_out if w == why]
            if sizes:
                found.append(f"{', '.join(sizes)}: {text}")
        return found

    def below(self, gpu: BrowserGpu) -> None:
        left, right = st.columns(SIDES, gap="medium")
        with left:
            st.markdown(f"**{self.words['own' if gpu.own_weights else 'fresh']}**")
            draw_times(gpu, "forward", "Images in a batch")
        with right:
            draw_training(gpu)
        for lesson, text in zip(self.words["lessons"], lesson_texts(gpu), strict=True):
            if text:
                words, code = st.columns(SIDES, gap="medium")
                words.markdown(f"**{lesson['title']}** {text} {lesson['text']}")
                code.code(lesson["js"], language="javascript")
                code.code(lesson["torch"], language="python")

    def caption(self, gpu: BrowserGpu) -> str:
        n = max((len(work.gpu) for work in gpu.works), default=0)
        return self.words["caption"].format(n=n, name=gpu.name, other=who(gpu))


def who(gpu: BrowserGpu) -> str:
    """What the GPU was compared with."""
    if gpu.environment:
        threads = format.counted(gpu.environment.threads, "thread")
        return f"PyTorch on this machine's CPU ({threads})"
    return "one thread of your browser"


def newest_ann() -> Any:
    """The visitor's own newest finished run of the ANN; None without one."""
    mine = (run for run in runs.finished() if run.visitor == visitor())
    return next((run for run in mine if run.model == "ann"), None)


def times(gpu: BrowserGpu, kind: str) -> pd.DataFrame:
    """A row for each size and who did it: size, who, µs, low, high, time."""
    rows = []
    for work in gpu.of(kind):
        for name, seconds in (("Your GPU", work.gpu), (NAMES[gpu.against], work.cpu)):
            if seconds:
                middle = median(seconds), *format.middle_half(seconds)
                in_words = format.precise(middle[0])
                rows.append((work.size, name, *(1e6 * t for t in middle), in_words))
    return pd.DataFrame(rows, columns=["size", "who", "µs", "low", "high", "time"])


def draw_times(gpu: BrowserGpu, kind: str, title: str) -> None:
    frame = times(gpu, kind)
    if frame.empty:
        return
    st.altair_chart(
        time_chart(frame, title, NAMES[gpu.against]), alt=f"Time by size: {title}"
    )


def time_chart(frame: pd.DataFrame, title: str, other: str) -> Chart:
    """Times over sizes, both logarithmic, with the middle half of the rounds."""
    colors = charts.palette()
    x = alt.X("size:Q").title(title).scale(type="log", nice=False, padding=12)
    y = alt.Y("µs:Q").title("Time, logarithmic").scale(type="log")
    axis = charts.ticks(sorted(set(frame["size"])), format=",d")
    chart = alt.Chart(frame).encode(
        x=x.axis(axis),
        y=y.axis(charts.microseconds()),
        color=charts.hues(
            "who", ["Your GPU", other], [colors.accelerator, colors.cpu], **LINES
        ),
        tooltip=["who", "size", *charts.middle_half("µs")],
    )
    return charts.lines(chart, points=60, band=True).properties(height=MIDDLE)


def draw_training(gpu: BrowserGpu) -> None:
    """The loss of each training step on the GPU, over torch's."""
    if not gpu.losses:
        return
    apart = max(abs(a - b) for a, b in zip(gpu.losses, gpu.expected, strict=True))
    text = f"from {gpu.losses[0]:.2f} to {gpu.losses[-1]:.2f} on your GPU**"
    st.markdown(f"**The loss falls {text}, at most {apart:.1g} from PyTorch's.")
    pairs = {"PyTorch, CPU": gpu.expected, "Your GPU": gpu.losses}
    rows = [
        (step, name, loss)
        for name, losses in pairs.items()
        for step, loss in enumerate(losses, 1)
    ]
    colors = charts.palette()
    chart = alt.Chart(pd.DataFrame(rows, columns=["step", "who", "loss"])).encode(
        x=alt.X("step:Q").title("Step"),
        y=alt.Y("loss:Q").title("Loss"),
        color=charts.hues("who", pairs, [colors.cpu, colors.accelerator], **LINES),
        strokeDash=alt.StrokeDash("who:N")
        .legend(None)
        .scale(domain=list(pairs), range=[[1, 0], [5, 5]]),
    )
    st.altair_chart(
        charts.lines(chart).properties(height=MIDDLE), alt="Loss over steps"
    )


def lesson_texts(gpu: BrowserGpu) -> list[str]:
    """What each lesson of the words says of these figures; empty: nothing."""
    said = [""] * 4
    if gpu.waited and gpu.unwaited:
        short, right = median(gpu.unwaited), median(gpu.waited)
        said[0] = (
            f"A product of size {gpu.clocked:,}: {format.precise(short)} on a clock "
            f"that doesn't wait, {format.precise(right)} on one that does."
        )
    forward = gpu.of("forward")
    if forward and gpu.there and gpu.back:
        there, back = median(gpu.there), median(gpu.back)
        last = forward[-1]
        said[1] = (
            f"{last.size:,} images: {format.precise(there)} to get there, "
            f"{format.precise(median(last.gpu))} to compute, "
            f"{format.precise(back)} back."
        )
        rates = [work.size / median(work.gpu) for work in (forward[0], last)]
        said[2] = (
            f"{format.rounded(rates[0])} images/s at batch {forward[0].size:,}, "
            f"{format.rounded(rates[1])} at batch {last.size:,}."
        )
    if len(gpu.paces) > 1:
        said[3] = (
            f"In the last of {len(gpu.paces)} seconds of steady work your GPU did "
            f"{gpu.paces[-1] / max(gpu.paces):.0%} of its best second's products."
        )
    return said


def share(words: Any, gpu: BrowserGpu | None) -> None:
    """With one click the figures join those of the class."""
    opened = room().open
    if opened is None or not room().may_see(visitor()):
        return
    st.markdown(f"**{words['class_heading']}**")
    shared = answers.given().get(SHARED)
    if shared:
        st.button(words["unshare"], on_click=answers.keep, args=(SHARED, None))
    elif gpu and gpu.speed and room().member(visitor()):
        st.markdown(words["what_is_shared"])
        mine = {"name": gpu.name, "kind": gpu.kind, "speed": gpu.speed}
        mine |= {"against": gpu.against, "from": gpu.crossover("product")}
        st.button(words["share"], on_click=answers.keep, args=(SHARED, mine))
    with_gpus = store().answers.of_class(opened.id, (SHARED,))[SHARED].values()
    draw_class(words, [each for each in with_gpus if each])


def draw_class(words: Any, shared: Sequence[dict[str, Any]]) -> None:
    """A dot for each GPU of the class, the fastest first."""
    if not shared:
        st.markdown(words["nobody"])
        return
    rows = []
    for place, each in enumerate(sorted(shared, key=lambda each: -each["speed"]), 1):
        wins = f"wins from {each['from']:,}" if each["from"] else "wins at no size"
        speed, other = f"{each['speed'] / 1e9:,.3g} GFLOPS", NAMES[each["against"]]
        text = f"{speed}, {wins} against {other}"
        rows.append(
            (f"{place}. {each['name']}", each["kind"], each["speed"] / 1e9, text)
        )
    frame = pd.DataFrame(rows, columns=["name", "kind", "gflops", "text"])
    colors = charts.palette()
    x = alt.X("gflops:Q").title("GFLOPS, logarithmic, as the browsers claim")
    hues = charts.hues(
        "kind", KINDS, [colors.accelerator, colors.further[1], colors.quiet]
    )
    chart = charts.dots(
        charts.rows(frame, "name"), x.scale(type="log"), "text", color=hues
    )
    st.altair_chart(chart, alt="Speed of each GPU of the class")
