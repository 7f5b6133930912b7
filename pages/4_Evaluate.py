"""Look closely at a finished run: what it got right and wrong, and what asking costs."""

import numpy as np
import pandas as pd
import streamlit as st

from core.errors import ExplainedError
from core.reports import Evaluation
from core.ui import charts, frame, live, runs, words
from core.ui.course import lesson
from core.ui.runs import Run
from core.ui.server import engine
from core.ui.source import source

COMPARE = "core.evaluation:compare_modes"
PICTURES = 12
ZOOM = 4  # screen pixels for a pixel of an image
HERE = lesson("Evaluate")

frame.begin(HERE)
frame.wait_for_machine()
state = st.session_state

if "run" in st.query_params:
    state.run_id = st.query_params["run"]
finished = [each for each in runs.runs() if each.result is not None][::-1]

if state.get("run_id") and not any(each.id == state.run_id for each in finished):
    asked = runs.run(state.run_id)
    if asked is None:
        st.warning(
            "This server does not know that run. Runs are kept until the server "
            "restarts, the newest 500 of them.",
            icon=":material/search_off:",
        )
    else:
        st.info(
            f"The run you come from is {asked.job.status}; only a finished run can be "
            "evaluated.",
            icon=":material/info:",
        )
if not finished:
    st.markdown(
        ":material/fact_check: The answers of a model to all test images appear here. "
        "No run has finished on this server yet."
    )
    st.page_link("pages/3_Train.py", label="Train one", icon=":material/play_arrow:")
    st.stop()


def label(run_id: str) -> str:
    run = by_id[run_id]
    config = run.config
    return (
        f"{words.NAMES[config.model]} on {words.NAMES[config.task]}, "
        f"{config.epochs} epochs, batch {config.batch_size}, "
        f"lr {config.learning_rate:g}: {run.result.test_accuracy:.2%}"
    )


@st.cache_data(max_entries=64, show_spinner=False)
def evaluation(run_id: str) -> Evaluation:
    """Asked of the lab worker once for each run."""
    run = by_id[run_id]
    return engine().ask(
        "core.evaluation:evaluate", run.result.checkpoint, run.config, seconds=60
    )


@st.cache_data(max_entries=256, show_spinner=False)
def pictures(task: str, indices: tuple[int, ...]) -> np.ndarray:
    """Test images, enlarged without blur: uint8 (n, 112, 112)."""
    images = engine().ask("core.evaluation:images", task, indices)
    return images.repeat(ZOOM, axis=1).repeat(ZOOM, axis=2)


def gallery(run: Run, found: Evaluation, indices: list[int]) -> None:
    """Images with what they are, what the model says, and how sure it is."""
    names = [each.name for each in found.classes]
    images = pictures(run.config.task, tuple(indices))
    with st.grid(min_column_width=130):
        for index, image in zip(indices, images, strict=True):
            true = names[found.targets[index]]
            predicted = names[found.predictions[index]]
            said = f"{predicted}, {found.confidences[index]:.1%} sure"
            with st.container(gap="xxsmall"):
                st.image(image, alt=f"Test image {index}: {true}, taken for {said}")
                st.markdown(f"**{true}**  \n:small[{said}]")


by_id = {each.id: each for each in finished}
if state.get("run_id") not in by_id:
    state.run_id = finished[0].id
with st.container(horizontal=True, vertical_alignment="bottom"):
    chosen = st.selectbox(
        "Run",
        list(by_id),
        index=list(by_id).index(state.run_id),
        format_func=label,
        help="All finished runs of this server, the newest first.",
    )
    pressed = st.button(
        "Evaluate", type="primary", icon=":material/fact_check:", key="evaluate"
    )
run = by_id[chosen]
state.run_id = chosen
st.query_params["run"] = chosen
if pressed:
    state.setdefault("evaluated", set()).add(chosen)

if chosen not in state.get("evaluated", ()):
    st.markdown(
        ":material/grid_on: Press **Evaluate**: the model answers all "
        f"{run.result.test_total:,} test images, and you see where it goes wrong."
    )
else:
    try:
        with st.spinner("The model is answering all test images"):
            found = evaluation(chosen)
    except ExplainedError as error:
        st.error(str(error), title="The evaluation failed", icon=":material/error:")
        st.stop()
    backend = found.environment["backend"]
    low, high = found.interval

    st.subheader("How good is it?")
    with st.container(horizontal=True):
        st.metric("Test accuracy", f"{found.accuracy:.2%}", border=True, width=200)
        st.metric("95 % interval", f"{low:.1%} – {high:.1%}", border=True, width=240)
        st.metric(
            "Correct", f"{found.correct:,} of {found.total:,}", border=True, width=240
        )
    st.caption(
        f"Correct over total on the whole test set; Wilson's interval. Evaluated on "
        f"{words.provenance(found.environment)}."
    )

    st.subheader("What does it take for what?")
    st.markdown(
        "A row is what the images are, a column what the model says. "
        "Select a cell to see its images."
    )
    names = [each.name for each in found.classes]
    event = st.altair_chart(
        charts.confusion(found.confusion, names),
        on_select="rerun",
        key=f"confusion_{chosen}",
        alt="Confusion matrix: true classes against predicted classes",
    )
    selected = event.selection.get("cell") or []
    if selected:
        true, predicted = selected[0]["true"], selected[0]["predicted"]
        pair = (names.index(true), names.index(predicted))
        answers = zip(found.targets, found.predictions, strict=True)
        indices = [i for i, answer in enumerate(answers) if answer == pair]
        indices.sort(key=lambda i: -found.confidences[i])
        if indices:
            some = ", the surest first" if len(indices) > PICTURES else ""
            st.markdown(
                f"**{true}** taken for **{predicted}**: {len(indices):,} images{some}"
            )
            gallery(run, found, indices[:PICTURES])
        else:
            st.markdown(f"No **{true}** was taken for **{predicted}**.")

    st.subheader("Which classes are hard?")
    st.dataframe(
        pd.DataFrame(
            [
                (each.name, each.precision, each.recall, each.f1, each.images)
                for each in found.classes
            ],
            columns=["Class", "Precision", "Recall", "F1", "Images"],
        ),
        hide_index=True,
        height="content",
        column_config={
            column: st.column_config.ProgressColumn(
                column, help=text, format="percent", min_value=0, max_value=1
            )
            for column, text in {
                "Precision": "Of the images called so, the share that are so",
                "Recall": "Of the images that are so, the share called so",
                "F1": "Harmonic mean of precision and recall",
            }.items()
        },
        alt="Precision, recall and F1 of each class",
    )

    st.subheader("The most confident mistakes")
    wrong = [
        index
        for index in range(found.total)
        if found.targets[index] != found.predictions[index]
    ]
    wrong.sort(key=lambda index: -found.confidences[index])
    if wrong:
        st.markdown(
            "In bold what the label says, under it what the model says."
            + (
                " About 1 image in 100 of Fashion-MNIST is arguably mislabelled "
                "(zalandoresearch/fashion-mnist, issue 166): look before you blame "
                "the model."
                if run.config.task == "fashion-mnist"
                else ""
            )
        )
        gallery(run, found, wrong[:PICTURES])
    else:
        st.markdown("There is none: all test images are classified correctly.")

st.subheader("What does evaluating cost?")
st.markdown(
    "The same forward passes three times: with autograd recording as in training, "
    "under `torch.no_grad()`, and under `torch.inference_mode()`. "
    "Measured where training runs, so it waits its turn in the queue."
)
costs = state.setdefault("cost_jobs", {})
asked = engine().job(costs.get(chosen, ""))
if st.button(
    "Measure it",
    icon=":material/timer:",
    key="compare_modes",
    disabled=asked is not None and not asked.ended,
):
    costs[chosen] = engine().submit(COMPARE, run.result.checkpoint, run.config)


def show_costs(job) -> None:
    if job.status == "failed":
        st.error(job.message, title="The measurement failed")
        return
    if job.status != "finished":
        st.info("Measuring: one warm-up, then five repeats of each, in turn.")
        return
    measured = job.value
    environment = measured[0].environment
    table = pd.DataFrame(
        [
            (
                each.mode,
                float(np.median(each.seconds)) * 1e3,
                min(each.seconds) * 1e3,
                max(each.seconds) * 1e3,
                (each.peak_bytes or 0) / 1e6,
            )
            for each in measured
        ],
        columns=["mode", "milliseconds", "low", "high", "megabytes"],
    )
    backend = environment["backend"]
    left, right = st.columns(2)
    with left:
        st.markdown("**Milliseconds**, median")
        st.altair_chart(
            charts.mode_costs(table, "milliseconds", "ms", backend),
            alt="Milliseconds in each autograd mode",
        )
    with right:
        st.markdown("**Peak memory** of tensors")
        if measured[0].peak_bytes is None:
            st.markdown(f"{environment['backend']} does not tell.")
        else:
            st.altair_chart(
                charts.mode_costs(
                    table[["mode", "megabytes"]], "megabytes", "MB", backend
                ),
                alt="Peak memory in each autograd mode, in megabytes",
            )
    st.caption(
        f"{measured[0].images:,} test images in batches of 1,000; the line spans the "
        f"least and the most of n = {len(measured[0].seconds)} repeats after one "
        f"warm-up. {words.provenance(environment)}."
    )


if chosen in costs:
    live.follow_job(costs[chosen], "The measurement", show_costs)

st.subheader("The code that ran")
loop, score, modes = st.tabs(["Predict", "Score", "The three modes"])
with loop:
    st.markdown(
        "`model.eval()` turns dropout off and freezes batch norm; `inference_mode()` "
        "stops autograd. You need both. From `core/loops.py`."
    )
    st.code(source("core/loops.py", "predict"), line_numbers=True)
with score:
    st.markdown(
        "Correct over total, over all images at once: the mean of the accuracies of "
        "batches would be wrong, since the last batch is smaller. From `core/loops.py`."
    )
    st.code(source("core/loops.py", "score"), line_numbers=True)
with modes:
    st.markdown("The measurement above, from `core/evaluation.py`.")
    st.code(source("core/evaluation.py", "compare_modes"), line_numbers=True)

frame.question(
    "eval_mode",
    "You evaluate under torch.inference_mode() but forget model.eval(). What happens?",
    {
        "Nothing, inference mode includes it": "They are two different things: "
        "inference mode is about autograd, eval() about how dropout and batch norm "
        "behave. Forget eval(), and those two go on as in training.",
        "Dropout and batch norm go on as in training": "Yes. Nothing complains, and "
        "the accuracy is wrong: it depends on the batch that an image happens to be in.",
        "PyTorch raises an error": "If only it did. The result is wrong in silence, "
        "which is why both calls stand in the function above.",
    },
    right="Dropout and batch norm go on as in training",
)
frame.end(HERE)
