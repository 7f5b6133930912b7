"""Look closely at a finished run: its answers, and what asking costs."""

import streamlit as st

from core.ui import frame, measured, run_choice
from core.ui.evaluate import evaluation, picture
from core.ui.server import explained
from core.ui.source import code_tabs

frame.begin("Evaluate")
frame.machine()

run, row = run_choice.choose()
if run is None:
    run_choice.nothing_yet(
        ":material/fact_check: The answers of a model to all test images appear here."
    )
    st.stop()
anew = row.button(
    "Evaluate again", type="primary", icon=":material/fact_check:", key="evaluate"
)
done = None
with (
    explained("The evaluation failed"),
    st.spinner("The model is answering all test images"),
):
    if anew:
        evaluation.evaluation.clear(run.id)
    done = evaluation.evaluation(run.id, _anew=anew)

if done is not None:
    found = done.value
    st.subheader("How good is it?")
    evaluation.accuracy(found)
    st.caption(
        "Correct over total on the whole test set, with Wilson's interval. "
        f"{measured.sentence(done)}"
    )

    st.subheader("What does it take for what?")
    st.markdown(
        "A row is what the images are, a column what the model says. "
        "Select a cell to see its images."
    )
    evaluation.confusion(run, found)

    st.subheader("Which classes are hard?")
    evaluation.class_table(found)

    st.subheader("The most confident mistakes")
    if run.config.task == "fashion-mnist":
        st.markdown(
            "In bold what the label says, under it what the model says. About 1 image "
            "in 100 of Fashion-MNIST is arguably mislabelled (issue 166 of "
            "zalandoresearch/fashion-mnist): look before you blame the model."
        )
    evaluation.mistakes(run, found)

st.subheader("Your own picture")
picture.draw(run)

st.subheader("What does evaluating cost?")
st.markdown(
    "The same forward passes three times: with autograd recording as in training, "
    "under `torch.no_grad()`, and under `torch.inference_mode()`. "
    "Measured where training runs, so it waits its turn in the queue. "
    "Autograd keeps what each layer needs for its backward pass: the deeper the model, "
    "the more memory it costs. Compare the ANN with the CNN."
)
evaluation.modes(run)

st.subheader("The code that ran")
code_tabs(
    (
        "Predict",
        "`model.eval()` turns dropout off and freezes batch norm; "
        "`inference_mode()` stops autograd. You need both. From `core/loops.py`.",
        "core.loops:predict",
    ),
    (
        "Score",
        "Correct over total, over all images at once: the mean of the accuracies "
        "of batches would be wrong, since the last batch is smaller. From "
        "`core/loops.py`.",
        "core.loops:score",
    ),
    (
        "The three modes",
        "The measurement above, from `core/evaluate/evaluation.py`.",
        "core.evaluate.evaluation:compare_modes",
    ),
    (
        "Your picture",
        "A photo made into 28×28 grey pixels, from `core/evaluate/picture.py`.",
        "core.evaluate.picture:prepare",
    ),
)

frame.end("Evaluate")
