"""A lab: learners guess what a measurement will show, start it, and see the result.

A lesson declares its labs in `_page` modules, and its page lists them in the order of
their tabs; docs/adding-a-lab.md shows how. This file has what all labs do: hide the
result until the learner has guessed, follow the job live, compare its finding with the
guess, and add a caption, files, and the code.
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import streamlit as st

from core.jobs import measurements
from core.jobs.job import Job
from core.measure.environment import Machine
from core.ui import controls, figures, format, guess, last_measurement
from core.ui.frame import PROSE
from core.ui.job_panel import JobPanel, reported, slot
from core.ui.runs import Run
from core.ui.server import engine
from core.ui.source import Part, code_tabs, show
from to_device.words import Words

SIDES = [6, 4]  # widths of a chart and of the words beside it


@dataclass(frozen=True)
class Guess:
    """A question for the learner; `key` identifies its widget and the stored answer."""

    key: str
    question: str
    options: Sequence[Any]
    say: Callable[[Any], str] = str  # returns an option as the learner reads it


@dataclass(frozen=True)
class Finding:
    """The result in one sentence, and the option that the result proves right.

    `right` is a tuple if the readings allow several options, and None if the result
    can't judge a guess. `among` has this result's options. A guess that isn't one of
    them was about another result, and isn't judged.
    """

    sentence: str
    right: Any = None
    say: Callable[[Any], str] = guess.within
    among: Sequence[Any] | None = None

    def judge(self, guessed: Any | None) -> None:
        is_other = self.among is not None and guessed not in self.among
        guessed = None if self.right is None or is_other else guessed
        guess.judge(self.sentence, guessed, self.right, self.say)


class Lab:
    """A measurement that learners start, and its part of a page.

    This class asks for the guess, draws the result, and judges the guess. A subclass in
    `<name>_page.py` declares what differs. The subclass's texts are in the table `name`
    of the folder's words.toml: title (of the tab), heading, text, question, answers,
    start (the button), empty (what will appear), code (the words above the code), and
    code_of (the end of the code's title). Only start is required. Methods with a
    parameter `result` get what `gather` returns for the job.
    """

    name = ""  # default: the file's name without _page
    address = ""  # function that measures; default: `measure` in the file without _page
    kept = ""  # key of the answer that holds the result, if no job measures it
    key = ""  # the start button's key
    job_name = "The measurement"  # the subject of sentences about the lab's job
    panel: Mapping[str, Any] = {}  # further fields of the lab's JobPanel
    event: type = object  # class of the job's progress reports
    noun = "reading"  # what the page calls a progress report, in the singular
    # For each tab of code: the tab's name, then its parts for core.ui.source.show
    code: Sequence[tuple[str, *tuple[Part, ...]]] = ()
    asks_below = False  # whether the guess is below the settings, not beside them
    # Whether only an accelerator answers the lab's question. On a machine without one,
    # another machine's recording is open from the start.
    needs_accelerator = False
    finding_above = False  # whether the finding is above the chart, as on a phone
    judged: Literal["finished", "ended", "always"] = "finished"  # when to judge guesses
    file = ""  # name of the CSV and JSON files with the result; "": no files
    words: Mapping[str, Any]  # the lab's table in words.toml
    suffix = ""  # makes widget keys unique if a page shows a recorded result, too
    kinds: ClassVar[list[type["Lab"]]] = []  # all labs whose modules are imported

    def __init_subclass__(cls) -> None:
        module = sys.modules[cls.__module__]
        measuring = cls.__module__.removesuffix("_page")
        cls.name = cls.name or measuring.rpartition(".")[2]
        cls.address = cls.address or f"{measuring}:measure"
        cls.words = Words(str(module.__file__)).table(cls.name)
        Lab.kinds.append(cls)
        guess.GATES[cls.kept or cls.address] = cls.may_see
        last_measurement.OPEN_GUESSES[cls.address] = cls.open_guesses
        if cls.panel.get("measures", True):
            measurements.KINDS.add(cls.address)

    def __init__(self, run: Run | None = None) -> None:
        """With a run, the lab measures the model of that run."""
        fields: dict[str, Any] = {"job_name": self.job_name, "measures": True}
        fields |= self.panel
        self.model: tuple = ()
        if run is not None:
            self.model = run.checkpoint, run.config
            fields["about"] = lambda *arguments: arguments == self.model
            fields["subject"] = run.id
        self.job = JobPanel(self.address, key=self.key, **fields)

    def settings(self, machine: Machine) -> tuple:
        """Draw settings; return the job's arguments. Raises ValueError if invalid."""
        return self.model or self.defaults(machine)

    def defaults(self, machine: Machine) -> tuple:
        """The job's arguments until somebody chooses others."""
        return (machine.devices[0].device,)

    def asks(self, machine: Machine, arguments: tuple | None) -> Guess | None:  # noqa: ARG002
        """The guess to ask for: by default, the question and answers in words.toml.

        `arguments` are the job's, or None if the lab asks before they are chosen.
        """
        if answers := self.words.get("answers"):
            return Guess(f"{self.name}_guess", self.words["question"], answers)
        return None

    @classmethod
    def may_see(cls, job: Job, who: str, given: guess.Given) -> bool:
        """Whether `who`, who gave these answers, may see the job's result."""
        if (machine := engine().machine()) is None:
            return False
        question = cls().asks(machine, job.arguments)
        return question is None or guess.shows(question.key, who, given)

    @classmethod
    def open_guesses(cls, job: Job) -> float:
        """How many guesses the job's result allows; infinite if it judges none."""
        lab = cls()
        finding = lab.finding(lab.gather(job))
        if finding is None or finding.right is None:
            return math.inf
        return len(finding.right) if isinstance(finding.right, tuple) else 1

    def progress(self, job: Job) -> str | tuple[str, float]:
        """How far the job is, in words, or in words and as a share from 0 to 1."""
        count = format.counted(len(reported(job, self.event)), self.noun)
        return f"Measuring: {count} so far"

    def gather(self, job: Job) -> Any:
        """The job's result, or what the job has reported so far; None draws nothing."""
        return job.value

    def chart(self, result: Any) -> None: ...

    def finding(self, result: Any) -> Finding | None: ...

    def lines(self, result: Any) -> Sequence[str] | None:
        """The sentences of the bullets beside the chart; None for no bullets."""

    def below(self, result: Any) -> None:
        """Draw what follows below the chart, at full width."""

    def caption(self, result: Any) -> str | None:
        """How the result was measured, for its caption; None for no caption."""

    def more(self, machine: Machine) -> str | None:
        """Sentences on this machine, drawn after the lab's `text`, or None."""

    def before(self, arguments: tuple | None) -> None:
        """Draw what stands in the place of a result until there is one."""

    @property
    def title(self) -> str:
        return self.words["title"]

    def draw(self, machine: Machine) -> None:
        if heading := self.words.get("heading"):
            st.header(heading)
        if text := f"{self.words.get('text', '')} {self.more(machine) or ''}".strip():
            st.markdown(text, width=PROSE)
        ran = self.job.ran
        guessed = arguments = None
        row, refusal = controls.row(), st.container()
        with row:
            if not self.asks_below:
                guessed = self._ask(machine, None, ran)
            with controls.startable(refusal):
                arguments = self.settings(machine)
            self.job.buttons(self.words["start"], arguments)
        if self.asks_below:
            with controls.row():
                guessed = self._ask(machine, arguments, ran)
        empty = self.words.get("empty", "")
        shown = self.job.follow(lambda job: self.show(job, guessed), empty)
        recordings = measurements.recorded_by(self.address)
        # A machine with only a CPU lacks what the lab measures.
        lacks = self.needs_accelerator and not machine.has_accelerator
        if not shown and not (recordings and lacks):
            self.before(arguments)
        for index, recorded in enumerate(recordings):
            self._draw_recorded(recorded, opened=lacks and index == 0)
        self._draw_code(ran)

    def _draw_recorded(self, recorded: Job, opened: bool) -> None:
        with st.expander(measurements.label(recorded), expanded=opened):
            another = copy(self)
            another.suffix = f"_{recorded.id}"
            another.show(recorded)

    def _ask(self, machine: Machine, arguments: tuple | None, ran: bool) -> Any | None:
        prompt = self.asks(machine, arguments)
        if prompt is None:
            return guess.JUST_SHOW
        return guess.ask(prompt.key, prompt.question, prompt.options, prompt.say, ran)

    def show(self, job: Job, guessed: Any | None = guess.JUST_SHOW) -> None:
        """Draw the job's progress, then its result once the learner has guessed."""
        if not job.ended:
            progress = self.progress(job)
            slot(*((progress,) if isinstance(progress, str) else progress))
        result = self.gather(job)
        if not result:
            return
        if guess.missing(guessed):
            if job.ended:
                self.before(job.arguments)
            return
        finished = job.status == "finished"
        judged = {"finished": finished, "ended": job.ended, "always": True}[self.judged]
        finding = self.finding(result) if judged else None
        above = self.finding_above or controls.on_phone()
        if finding and above:
            finding.judge(guessed)
        chart, words = st.columns(SIDES)
        with chart:
            self.chart(result)
        with words:
            if finding and not above:
                finding.judge(guessed)
            if judged and (lines := self.lines(result)):
                figures.bullets(lines)
        self.below(result)
        if finished:
            results = result if isinstance(result, tuple) else (result,)
            if caption := self.caption(result):
                figures.caption(caption, results[0])
            if self.file:
                rows = [row for result in results for row in result.rows()]
                controls.download_rows(f"{self.file}{self.suffix}", rows)

    def _draw_code(self, ran: bool) -> None:
        title = "The code that ran" if ran else "The code that will run"
        if name := self.words.get("code_of"):
            title = f"{title}: {name}"
        with st.expander(title, icon=":material/code:"):
            if text := self.words.get("code"):
                st.markdown(text)
            if len(self.code) == 1:
                show(*self.code[0][1:])
            else:
                code_tabs(*self.code)


def sections(
    labs: Iterable[type[Lab]], machine: Machine
) -> dict[str, Callable[[], None]]:
    """The labs for frame.sections: {title: function that draws the lab}."""
    return {lab.title: partial(lab.draw, machine) for lab in (kind() for kind in labs)}
