"""The accuracy and the mistakes of a model, as the Evaluate page shows them."""

import time
import uuid
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.jobs.measurements import KINDS, keep
from core.lessons.evaluate.evaluate_result import ClassScore, Evaluation
from core.ui import charts, controls, dataset, figures, format, guess, image_wall, runs
from core.ui import last_measurement as measured
from core.ui.charts import Chart
from core.ui.course import page
from core.ui.runs import Run
from core.ui.server import (
    FORGET,
    ask,
    ask_once,
    engine,
    explained,
    store,
    visitor,
)
from core.ui.source import code_tabs
from to_device.words import Words

words = Words(__file__)
CONFUSION = words("answers.confusion")
MISLABELED = words("answers.mislabeled")

EVALUATE = "core.lessons.evaluate.evaluation:evaluate"
IMAGES = "core.lessons.evaluate.evaluation:images"
KINDS.add(EVALUATE)
PICTURES = 12  # how many misclassified images the page shows
# How many images of the chosen cell of the confusion matrix are shown: in all, per row.
OF_A_CELL, IN_A_ROW = 16, 4
MATRIX_HEIGHT = 420  # pixels
STRONGEST = 0.6  # share of the full color in the cell with the largest share of errors
ZOOM = 4  # screen pixels for a pixel of an image
INTERVAL = "95% interval"


@st.cache_data(max_entries=64, show_spinner=False)
def evaluate(run_id: str, _anew: bool = False) -> Job:
    """A job whose value is the Evaluation of a finished run's model.

    All visitors share the job, which the database keeps when the app restarts. With
    `_anew`, the stored job is not used.
    """
    if not _anew and (stored := measured.newest(EVALUATE, run_id)):
        return stored
    run = runs.run(run_id)
    assert run is not None
    arguments = run.checkpoint, run.config
    job = Job(uuid.uuid4().hex, EVALUATE, arguments, "question", visitor(), "finished")
    evaluation = ask(EVALUATE, *arguments, seconds=60)
    now, machine = time.time(), measured.machine()
    job = replace(job, value=evaluation, stopped=now, machine=machine)
    keep(store().measurements, job)
    return job


def _forget(_: str, models: Iterable[str]) -> None:
    for run_id in models:
        evaluate.clear(run_id)


FORGET.append(_forget)


def may_see(job: Job, who: str, given: guess.Given) -> bool:
    """Whether `who`, who gave these answers, may see a model's evaluation."""
    _, config = job.arguments
    return guess.shows(guess_key(config.task), who, given)


guess.GATES[EVALUATE] = may_see


def before_any_run() -> None:
    st.markdown("You haven't trained an image model yet.")
    if st.button("Train one", type="primary", icon=":material/play_arrow:"):
        st.switch_page(page("Train").file)
    task = dataset.default_task(engine().machine())
    image_wall.draw(task, None, "", beside=True)


def guess_key(task: str) -> str:
    return f"hardest_{task}"


def guess_hardest(run: Run, evaluation: Evaluation) -> str | None:
    """Ask which class is the hardest, once for each task.

    Returns the answer, or None until the visitor has answered.
    """
    key = guess_key(run.config.task)
    if (guessed := guess.of(key)) is None:
        with controls.row():
            names = [score.name for score in evaluation.classes]
            guess.ask(key, "which class is the hardest for the model?", names)
        guess.missing(guessed, "The confusion matrix and the table by class are")
        # As a first hint, draw the model's answers to some test images.
        image_wall.draw(run.config.task, run, "this", beside=True)
    return guessed


def accuracy(evaluation: Evaluation, guessed: str | None = guess.JUST_SHOW) -> None:
    """Show the accuracy, its interval and, after a guess, the hardest class."""
    low, high = evaluation.interval
    metrics = {
        "Test accuracy": f"{evaluation.accuracy:.2%}",
        INTERVAL: f"{100 * low:.1f}–{high:.1%}",
        f"Correct of {evaluation.total:,}": f"{evaluation.correct:,}",
    }
    if guessed:
        hardest = _hardest_first(evaluation)[0]
        metrics[f"Hardest: {hardest.name}"] = f"{hardest.recall:.0%}"
    note = (
        "A test with {total} different images would give a slightly "
        "different accuracy. In about 95 of 100 such tests, an "
        "interval computed this way contains the true accuracy."
    ).format(total=f"{evaluation.total:,}")
    figures.metrics(metrics, {INTERVAL: note})


def _hardest_first(evaluation: Evaluation) -> list[ClassScore]:
    return sorted(evaluation.classes, key=lambda score: score.recall)


def _surest(evaluation: Evaluation, indices: Iterable[int], most: int) -> list[int]:
    return sorted(indices, key=lambda index: -evaluation.confidences[index])[:most]


def mistakes(run: Run, evaluation: Evaluation) -> None:
    """Show the mistakes in which the model was most confident."""
    pairs = enumerate(zip(evaluation.targets, evaluation.predictions, strict=True))
    wrong = [index for index, (target, prediction) in pairs if target != prediction]
    if not wrong:
        st.markdown("There are no mistakes. The model got all the images right.")
        return
    indices = _surest(evaluation, wrong, PICTURES)
    names = [score.name for score in evaluation.classes]
    with (
        explained("The images could not be loaded"),
        st.grid(columns=6, min_column_width=100),
    ):
        images, _ = ask_once(IMAGES, run.config.task, tuple(indices))
        for index, image in zip(indices, images, strict=True):
            true = names[evaluation.targets[index]]
            answer = names[evaluation.predictions[index]]
            answer += f", {evaluation.confidences[index]:.1%} sure"
            with st.container(gap="xxsmall"):
                alt = f"Test image {index}: {true}, mistaken for {answer}"
                image_wall.show(image[np.newaxis], alt, "content", zoom=ZOOM)
                st.markdown(f"**{true}**  \n:small[{answer}]")


@st.fragment
def confusion(run: Run, evaluation: Evaluation) -> None:
    names = [score.name for score in evaluation.classes]
    counts = np.array(evaluation.confusion)
    # The most common mistake: its true class and its predicted class.
    pair = max(permutations(range(len(names)), 2), key=counts.__getitem__)
    left, right = st.columns([6, 4], gap="medium")
    with left:
        true, predicted = pair
        count, images = counts[pair], evaluation.classes[true].images
        st.markdown(
            f"**Most common mistake: {names[true]} taken for {names[predicted]}**, "
            f"{count:,} of {images:,}"
            if count
            else "**All the images are classified correctly.**"
        )
        event = st.altair_chart(
            confusion_chart(
                evaluation.confusion,
                names,
                [score.name for score in _hardest_first(evaluation)],
                (names[true], names[predicted]),
            ),
            on_select="rerun",
            key=f"confusion_{run.id}",
            alt="Confusion matrix: true classes against predicted classes",
        )
    if selected := event.selection.get("cell"):
        (cell,) = selected[:1]
        pair = names.index(cell["true"]), names.index(cell["predicted"])
    with right:
        _cell(run, evaluation, pair)


def _cell(run: Run, evaluation: Evaluation, pair: tuple[int, int]) -> None:
    """Show those images of a cell of the matrix that the model was surest of.

    `pair` has the true class and the predicted class.
    """
    true, predicted = (evaluation.classes[index].name for index in pair)
    answers = zip(evaluation.targets, evaluation.predictions, strict=True)
    indices = [index for index, answer in enumerate(answers) if answer == pair]
    verdict = "recognized" if true == predicted else f"mistaken for **{predicted}**"
    st.markdown(f"**{true}** {verdict}: {format.counted(len(indices), 'image')}")
    indices = _surest(evaluation, indices, OF_A_CELL)
    if not indices:
        return
    with explained("The images could not be loaded"):
        images, _ = ask_once(IMAGES, run.config.task, tuple(indices))
        confidences = [evaluation.confidences[index] for index in indices]
        share = f"{max(confidences):.1%} to {min(confidences):.1%} sure"
        alt = f"{len(indices)} test images: {true}, {verdict}, {share}"
        image_wall.show(images, alt.replace("*", ""), zoom=ZOOM, columns=IN_A_ROW)
        st.markdown(f":small[The most confident images come first: {share}.]")


def class_table(evaluation: Evaluation, guessed: str) -> None:
    scores = _hardest_first(evaluation)
    hardest = scores[0]
    if guessed != guess.JUST_SHOW:
        share = f"the model recognizes {hardest.recall:.0%} of these images"
        text = f"**{hardest.name}** is the hardest class: {share}."
        guess.judge(text, guessed, hardest.name, say=str)
    meanings = words.table("columns")
    percent: Any = st.column_config.NumberColumn  # a phone is too narrow for bars
    if not controls.on_phone():
        percent = partial(st.column_config.ProgressColumn, min_value=0, max_value=100)
    figures.table(
        [
            (s.name, 100 * s.precision, 100 * s.recall, 100 * s.f1, s.images)
            for s in scores
        ],
        ["Class", *meanings, "Images"],
        "Precision, recall, and F1 of each class",
        formats={"Images": "localized"},
        column_config={name: percent(name, format="%.1f%%") for name in meanings},
    )
    st.caption(" ".join(f"**{name}**: {text}" for name, text in meanings.items()))


def confusion_chart(
    counts: tuple[tuple[int, ...], ...],
    classes: list[str],
    order: list[str],
    first_cell: tuple[str, str],
) -> Chart:
    """The confusion matrix: rows are true classes, columns are predicted classes.

    Selecting a cell gives (true, predicted). At first, `first_cell` is selected.
    Right answers are gray. The shade of an error shows its share of the row. The
    classes stand in the given `order`.
    """
    table = pd.DataFrame(counts, classes, classes).rename_axis("true").reset_index()
    frame = table.melt("true", var_name="predicted", value_name="count")
    of_class = frame.groupby("true")["count"].transform("sum")
    frame["share"] = frame["count"] / of_class.clip(lower=1)
    frame["right"] = frame["true"] == frame["predicted"]
    worst = frame.loc[~frame["right"], "share"].max() or 1
    colors = charts.palette()
    names: Any = {"labelOverlap": False, "labelColor": colors.text}
    chart = alt.Chart(frame).encode(
        x=alt.X("predicted:N")
        .sort(order)
        .title("Predicted")
        .axis(labelAngle=-40, **names),
        y=alt.Y("true:N").sort(order).title("True").axis(**names),
    )
    fields = ["true", "predicted"]
    cell = alt.selection_point(
        name="cell",
        fields=fields,
        on="click",
        clear=False,
        toggle=False,
        value=[dict(zip(fields, first_cell, strict=True))],
    )
    stroke = alt.value(colors.text), alt.value("transparent")
    # The square root makes small shares visible. The largest share gets the fraction
    # STRONGEST of the full color, so that the text on it is legible.
    scale = {"domain": [0, worst / STRONGEST**2], "type": "pow", "exponent": 0.5}
    shade = charts.shades("share", colors.ground, colors.wrong, **scale)
    return charts.heat_map(
        chart,
        alt.condition("datum.right", alt.value(colors.quiet), shade),
        alt.condition("datum.count > 0", "count:Q", alt.value("")),
        colors,
        select=cell,
        fillOpacity=charts.either("datum.right", 0.3, 1),
        tooltip=charts.tips(true="True", predicted="Predicted", count="Images")
        + charts.tips(".1%", share="Share of the class's images"),
        stroke=alt.condition(cell, *stroke, empty=False),
        strokeWidth=alt.value(2),
    ).properties(height=MATRIX_HEIGHT)


def code() -> None:
    code_tabs(
        ("Predict", words("code.predict"), "core.loops:predict"),
        ("Score", words("code.score"), "core.loops:score"),
        (
            "Your picture",
            words("code.prepare"),
            "core.lessons.evaluate.picture:prepare",
        ),
    )
