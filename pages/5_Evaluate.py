"""A finished run: which images its model gets wrong, and what inference costs."""

from functools import partial

import streamlit as st

from core.lessons.evaluate import evaluation_page as evaluation
from core.lessons.evaluate import picture_page as picture
from core.lessons.evaluate.costs_page import Modes, Precisions
from core.lessons.mistakes.catalogue_page import link_to
from core.runs import finished_run_page as finished_run
from core.ui import frame
from core.ui import last_measurement as measured
from core.ui.server import explained

LABS = (Modes, Precisions)

frame.begin("Evaluate")
machine = frame.machine()

run, row = finished_run.choose()
if run is None:
    evaluation.before_any_run()
    frame.end("Evaluate")
    st.stop()
anew = row.button("Evaluate again", icon=":material/fact_check:", key="evaluate")
done, guessed = None, None
with (
    explained("The evaluation failed"),
    st.spinner("The model is classifying all the test images"),
):
    if anew:
        evaluation.evaluate.clear(run.id)
    done = evaluation.evaluate(run.id, _anew=anew)

if done is not None:
    metrics = st.container()
    guessed = evaluation.guess_hardest(run, done.value)
    with metrics:
        evaluation.accuracy(done.value, guessed)
    if guessed is not None:
        evaluation.confusion(run, done.value)
        st.caption(f"{evaluation.CONFUSION} {measured.sentence(done)}")


def hard() -> None:
    if done is not None and guessed is not None:
        evaluation.class_table(done.value, guessed)
    elif done is not None:
        st.markdown("First, guess which class is the hardest.")


def sure() -> None:
    if done is not None:
        evaluation.mistakes(run, done.value)
        if run.config.task == "fashion-mnist":
            st.markdown(evaluation.MISLABELED, width=frame.PROSE)


def cost() -> None:
    for kind in LABS:
        kind(run).draw(machine)


frame.sections(
    {
        "Hard classes": hard,
        "Confident mistakes": sure,
        "Your own picture": partial(picture.draw, run),
        "The cost": cost,
    },
    always=("Your own picture",),
    more=("The cost",),
)
with st.expander("The code behind this page", icon=":material/code:"):
    evaluation.code()
    for slug in ("no_eval_mode", "mean_of_batch_means"):
        link_to(slug)
frame.end("Evaluate")
