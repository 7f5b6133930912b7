"""Look closely at a finished run: its answers, and what asking costs."""

import streamlit as st

from core.ui import frame, measured, run_choice
from core.ui.evaluate import costs, evaluation, picture
from core.ui.sections import sections
from core.ui.server import explained
from core.ui.source import code_tabs

frame.begin("Evaluate")
frame.machine()

run, row = run_choice.choose()
if run is None:
    evaluation.before_any_run()
    frame.end("Evaluate")
    st.stop()
anew = row.button("Evaluate again", icon=":material/fact_check:", key="evaluate")
done, guessed = None, None
with (
    explained("The evaluation failed"),
    st.spinner("The model is answering all test images"),
):
    if anew:
        evaluation.evaluation.clear(run.id)
    done = evaluation.evaluation(run.id, _anew=anew)

if done is not None:
    found, metrics = done.value, st.container()
    guessed = evaluation.guess_hardest(run, found)
    with metrics:
        evaluation.accuracy(found, guessed)
    if guessed is not None:
        evaluation.confusion(run, found)
        st.caption(
            "Each row is what the images really are, each column what the model says. "
            "The hardest class comes first. Select a cell to see its images. Accuracy "
            "is the number correct over the total, with Wilson's interval. "
            f"{measured.sentence(done)}"
        )


def hard() -> None:
    if done is not None and guessed is not None:
        evaluation.class_table(done.value, guessed)
    elif done is not None:
        st.markdown("Guess which class is the hardest first.")


def sure() -> None:
    if done is not None:
        evaluation.mistakes(run, done.value)
        if run.config.task == "fashion-mnist":
            st.markdown(
                "The label is in bold; below it is what the model says. Some images of "
                "Fashion-MNIST are arguably mislabeled (issue 166 of "
                "zalandoresearch/fashion-mnist): look before you blame the model.",
                width=frame.PROSE,
            )


def own() -> None:
    picture.draw(run)


def cost() -> None:
    st.markdown(
        "The same forward passes in three ways: with autograd recording as in training "
        "(though `backward()` is never called), under `torch.no_grad()`, and under "
        "`torch.inference_mode()`. Autograd keeps "
        "what each layer needs for its backward pass: the deeper the model and the "
        "larger its activations, the more memory that takes. So both the ANN and the "
        "CNN are measured, whichever one this run trained.",
        width=frame.PROSE,
    )
    costs.modes(run)
    costs.precisions(run)


def code() -> None:
    code_tabs(
        (
            "Predict",
            "`model.eval()` turns dropout off and freezes batch norm; "
            "`inference_mode()` stops autograd. You need both. From `core/loops.py`.",
            "core.loops:predict",
        ),
        (
            "Score",
            "Number correct over total, once, for all images: averaging the batches' "
            "accuracies goes wrong as soon as the last batch is smaller. From "
            "`core/loops.py`.",
            "core.loops:score",
        ),
        (
            "The three modes",
            "What “The cost” measures, from `core/evaluate/evaluation.py`.",
            "core.evaluate.evaluation:compare_modes",
        ),
        (
            "The precisions",
            "How the price of precision is measured, from "
            "`core/evaluate/precision.py`.",
            "core.evaluate.precision:answers",
            "core.evaluate.precision:tf32",
        ),
        (
            "Your picture",
            "How a photo becomes 28×28 gray pixels, from `core/evaluate/picture.py`.",
            "core.evaluate.picture:prepare",
        ),
    )


sections(
    {
        "Hard classes": hard,
        "Confident mistakes": sure,
        "Your own picture": own,
        "The cost": cost,
        "The code": code,
    },
    always=("Your own picture",),
)
frame.end("Evaluate")
