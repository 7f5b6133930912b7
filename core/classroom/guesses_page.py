"""The class's guesses on Home, Device, Compare, and Speed, beside what was measured."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any, NamedTuple, Self

import altair as alt
import pandas as pd
import streamlit as st

from core.classroom.sign_in_page import button
from core.home import first_run_page as first_run
from core.lessons.compare import race_page as race
from core.lessons.compare.candidates import candidates, tell_apart
from core.lessons.compare.race_result import Race
from core.lessons.compare.timing_pitfalls_page import GUESSES as TIMING_GUESSES
from core.lessons.compare.timing_pitfalls_page import TimingPitfalls
from core.lessons.device.parallel_page import TIMES, Parallel
from core.lessons.device.parallel_result import Multiplications
from core.lessons.speed.climb_result import GUESSES as RUNG_GUESSES
from core.lessons.speed.climb_result import RUNGS, Climbed, answers, gain_of
from core.lessons.speed.climb_result import measured as measured_rungs
from core.measure.rounding import times
from core.registry import JOBS, RUN
from core.store.tables import Class, RunSummary
from core.ui import charts, guess, runs, spoilers
from core.ui import last_measurement as measured
from core.ui.charts import LATER, Chart, Palette
from core.ui.format import counted
from core.ui.lab import Lab
from core.ui.polling import PATIENT_SECONDS
from core.ui.server import engine, room, store, tell_notice
from to_device.words import Words

words = Words(__file__)

BARS_WIDTH = 640  # pixels; a phone has fewer
# The right answers, and the measured figure as text; None if not measured yet
Measured = tuple[tuple, str] | None


@dataclass(frozen=True)
class Guess:
    key: str  # identifies the stored answers
    title: str
    address: str  # function of the job whose result answers the question
    # Reads the right answers from the job's result. This function isn't compared,
    # because Streamlit copies the chosen Guess, and then the two functions differ.
    read: Callable[[Any], Measured] = field(compare=False)
    options: tuple[str, ...] = ()  # answers in order; () if they depend on settings
    # All answers that somebody could have chosen, if they depend on settings
    known: Callable[[Any], Collection[str]] = field(default=tuple, compare=False)

    def choices(self, results: Mapping[str, Any]) -> Collection[str]:
        """The answers that count: a program may have stored any others."""
        return self.options or self.known(results.get(self.address))

    def measured(self, results: Mapping[str, Any]) -> Measured:
        """The answers that may be right, and the figure; None without a measurement.

        `results` are jobs' results by address. A measurement may allow several answers.
        """
        result = results.get(self.address)
        return self.read(result) if result else None


class Tally(NamedTuple):
    answers: Counter[Any]  # how many gave each answer; "Just show me" isn't counted
    right: Measured
    members: int
    missing: list[str]  # names of members who can still guess, or press "Just show me"
    # Names of the members without a guess who have pressed it or came too late
    silent: list[str]
    is_hidden: bool = False  # whether `right` is left out because of who reads this

    @property
    def turnout(self) -> str:
        """Text such as "4 of 5 have guessed"."""
        count = self.answers.total()
        return f"{count} of {self.members} {'has' if count == 1 else 'have'} guessed"

    def without_result(self) -> Self:
        return self._replace(right=None, is_hidden=True)


def _of_lab(
    key: str,
    kind: type[Lab],
    figure: Callable[[Any], str],
    *options: str,
    **more: Any,
) -> Guess:
    def read(result: Any) -> Measured:
        finding = kind().finding(result)
        return (finding.right, figure(result)) if finding and finding.right else None

    title = words.table("guesses.titles")[key]
    return Guess(key, title, kind.address, read, options, **more)


def _racers(newest: Race | None) -> set[str]:
    """The names of all that can race on this machine, or raced last, and CLOSE."""
    machine = engine().machine()
    racers = [*candidates(machine)] if machine else []
    racers += newest.candidates if newest else ()
    pairs = (tell_apart(racer, racer) for racer in racers)
    return {guess.CLOSE, *(racer.name for pair in pairs for racer in pair)}


def _one_core(result: Multiplications) -> str:
    return result.speedup("Python loop", "One core").figure


def _rung(name: str, climbed: Climbed) -> Measured:
    result = measured_rungs(climbed.results).get(name)
    gain = result and gain_of(result, climbed.results)
    return (answers(gain), gain.figure) if gain else None


def _first_runs(class_runs: Sequence[RunSummary]) -> Measured:
    # `class_runs` begins with the newest run, so `shares` keeps each visitor's first.
    finished = [run for run in class_runs if run.status == "finished"]
    shares = {run.visitor: run.accuracy for run in finished if run.accuracy}
    if not shares:
        return None
    middle = round(median(shares.values()), 2)
    count = len(shares)
    going_on = ("queued", "running")
    waited_for = {run.visitor for run in class_runs if run.status in going_on}
    of_runs = f"the median of {counted(count, 'first run')}"
    if more := len(waited_for - shares.keys()):
        of_runs += f", and {more} more to come"
    return first_run.fitting(middle), f"{100 * middle:.0f} of 100, {of_runs}"


GUESSES = (
    Guess(
        spoilers.FIRST_RUN,
        words("guesses.titles.first_run_guess"),
        RUN,
        _first_runs,
        first_run.IMAGES,
    ),
    _of_lab("multiply_guess", Parallel, _one_core, *TIMES),
    _of_lab(
        race.GUESS,
        race.RaceLab,
        lambda race: race.speedup().of_winner.figure,
        known=_racers,
    ),
    _of_lab(
        "timing_guess",
        TimingPitfalls,
        lambda lab: f"{times(lab.first_call.ratio)}×",
        *TIMING_GUESSES,
    ),
    *(
        Guess(
            f"guess_{rung.name}",
            f"Speed: {rung.title}",
            JOBS["ladder"],
            partial(_rung, rung.name),
            RUNG_GUESSES,
        )
        for rung in RUNGS[1:]
    ),
)
Tallies = dict[Guess, Tally]


def _results() -> dict[str, Any]:
    """The newest result of each question's job, except for runs, by address."""
    jobs = map(measured.newest, {question.address for question in GUESSES})
    return {job.address: job.value for job in jobs if job}


def choices() -> dict[str, Collection[str]]:
    """For each question's key, the answers that count."""
    results = _results()
    return {question.key: question.choices(results) for question in GUESSES}


def of_class(class_id: str) -> Tallies:
    """A tally for each question: the class's answers, and the measured answer."""
    keys, names = [question.key for question in GUESSES], room().names(class_id)
    answers, results = store().answers.of_class(class_id, keys), _results()
    results[RUN] = store().runs.find(
        hidden=True, address=RUN, class_id=class_id, withheld=False
    )
    tallies, shown = {}, room().shown(class_id)
    for question in GUESSES:
        counts = Counter(dict.fromkeys(question.options, 0))
        known = tuple(question.choices(results))
        counts.update(a for a in answers[question.key].values() if a in known)
        done = names if spoilers.is_too_late(question.key) else answers[question.key]
        missing = [names[who] for who in names if who not in done]
        silent = [
            names[who]
            for who in names
            if who in done and answers[question.key].get(who) not in known
        ]
        right = question.measured(results)
        if question.key in shown:
            fitting, figure = shown[question.key]
            right = tuple(fitting), figure
        tallies[question] = Tally(counts, right, len(names), missing, silent)
    return tallies


def draw(tallies: Tallies) -> None:
    """Draw the class's answers, but only to questions that the visitor has answered."""
    mine = {
        question: tally if _shows(question) else tally.without_result()
        for question, tally in tallies.items()
        if guess.of(question.key) is not None or spoilers.are_told(question.key)
    }
    st.header("What the class guessed", anchor=False)
    if mine:
        choose(mine)
    else:
        st.markdown(words("guesses.none"))


def _shows(question: Guess) -> bool:
    is_of_runs = question.key == spoilers.FIRST_RUN
    return guess.shows(question.key) and not (is_of_runs and runs.are_hidden())


@st.fragment(run_every=PATIENT_SECONDS)
def reveal(classroom: Class) -> None:
    """Draw the answers for the teacher, with a button that shows them on the projector.

    Once the answers are on the projector, the button adds the measured result.
    """
    tell_notice(toast=True)
    tallies = of_class(classroom.id)
    question = choose(tallies)
    if not classroom.is_open:
        return
    label, icon, key = "Show the guesses on the wall", "cast", question.key
    if key in room().told:  # in this class, its result has been on the wall before
        label = "Show the guesses and the result on the wall"
    is_on, tally = room().revealed == key, tallies[question]
    step, with_result = "reveal_guess", False
    if is_on and not room().with_result and tally.right is not None:
        label, step, with_result = "Show the result on the wall", "reveal_result", True
    elif is_on:
        label, icon, key = "Take the guesses off the wall", "visibility_off", ""
        step = "hide_guess"
    with st.container(horizontal=True):
        right = tally.right if with_result else None
        result = with_result, right
        button(label, step, icon, room().reveal, key, question.title, *result)
        if step == "reveal_result":  # a teacher may have shown the wrong question
            off = "Take the guesses off the wall", "hide_guess", "visibility_off"
            button(*off, room().reveal, "", question.title, False, type="tertiary")
    if tally.answers.total():
        if tally.missing:
            st.markdown(words("guesses.missing", names=", ".join(tally.missing)))
        if tally.silent:
            why = "Too late to guess, or *Just show me* was pressed"
            st.markdown(f"{why}: **{', '.join(tally.silent)}**")


def choose(tallies: Tallies) -> Guess:
    """Draw a choice of questions, and the answers to the chosen question.

    At first, it's the question on the wall, or else the last one with an answer.
    """
    keys = [question.key for question in tallies]
    totals = [tally.answers.total() for tally in tallies.values()]
    last = max((place for place, total in enumerate(totals) if total), default=0)
    on_wall = room().revealed
    question = st.selectbox(
        "Question",
        list(tallies),
        keys.index(on_wall) if on_wall in keys else last,
        format_func=lambda question: question.title,
        key="class_guess",
        label_visibility="collapsed",
    )
    answers, right, *_ = tallies[question]
    st.markdown(finding(tallies[question]))
    if answers.total():
        names = tuple(map(str, answers))
        st.vega_lite_chart(
            pd.DataFrame({"answer": names, "people": answers.values()}),
            chart(names, right[0] if right else ()),
            width=BARS_WIDTH,
            key="class_guesses",
            alt="How many people in the class gave each answer",
        )
    return question


def finding(tally: Tally) -> str:
    if tally.is_hidden:
        return f"**{tally.turnout}.** You'll see the result later."
    if tally.right is None:
        return f"**{tally.turnout}.** There is no result yet."
    fitting, figure = tally.right
    if len(fitting) != 1:
        either = " or ".join(f"“{answer}”" for answer in fitting) or "several answers"
        return f"**{tally.turnout}. Measured: {figure}, which allows {either}.**"
    (right,) = fitting
    people = tally.answers[right]
    return (
        f"**{tally.turnout}. Measured: {figure}.** {people} guessed right: “{right}”."
    )


@charts.live
def chart(colors: Palette, answers: tuple[str, ...], right: tuple[str, ...]) -> Chart:
    """A bar for each answer, green if it may be right. Columns: answer, people."""
    axes = alt.Chart(LATER).encode(
        x=alt.X("people:Q").axis(None).scale(domainMin=0, padding=28),
        y=alt.Y("answer:N")
        .title(None)
        .sort(list(answers))
        .axis(labelLimit=220, labelColor=colors.text),
    )
    names = [*dict.fromkeys((*answers, *right))]
    hues = [colors.right if name in right else colors.quiet for name in names]
    hue = alt.Color("answer:N").legend(None).scale(domain=names, range=hues)
    texts = axes.mark_text(align="left", dx=6).encode(text="people:Q")
    bars = axes.mark_bar(height=16).encode(color=hue)
    return alt.layer(bars, texts).properties(height=alt.Step(30))
