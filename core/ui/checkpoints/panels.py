"""What the Checkpoints page draws: a saved run, its round trip, resuming."""

from math import ceil
from typing import Any

import pandas as pd
import streamlit as st

from core.checkpoints.results import RESUME_IMAGES, PartLosses, Resumed, RoundTrip
from core.config import RunConfig
from core.errors import ExplainedError
from core.jobs.engine import Job
from core.ui import format, runs
from core.ui.charts import checkpoints as charts
from core.ui.checkpoints import export, upload
from core.ui.runs import Run
from core.ui.server import engine, visitor
from core.ui.train import live

ROUND_TRIP = "core.checkpoints.round_trip:measure"
RESUME = "core.checkpoints.resume:compare"


@st.cache_data(max_entries=64, show_spinner=False)
def _asked(path: str, run_id: str) -> Any:
    """What a quick function says of a run's checkpoint, asked once of the worker."""
    finished = runs.run(run_id)
    assert finished is not None
    assert finished.result is not None
    return engine().ask(path, finished.result.checkpoint)


def saved(run: Run) -> None:
    """What is in a run's checkpoint, and its downloads."""
    assert run.result is not None
    checkpoint = run.result.checkpoint
    try:
        tensors = _asked("core.checkpoints.round_trip:inspect", run.id)
        safetensors = _asked("core.checkpoints.round_trip:to_safetensors", run.id)
    except ExplainedError as error:
        st.error(str(error), title="The checkpoint could not be read")
        return
    name = export.file_name(run)
    with st.container(horizontal=True):
        st.metric("Tensors", len(tensors), border=True, width=130)
        st.metric("Parameters", f"{run.result.parameters:,}", border=True, width=170)
        st.metric("File", format.size(len(checkpoint)), border=True, width=150)
    with st.container(horizontal=True):
        st.download_button(
            "Download .pt",
            checkpoint,
            f"{name}.pt",
            key="download_pt",
            type="primary",
            icon=":material/download:",
            on_click="ignore",
        )
        st.download_button(
            "Download .safetensors",
            safetensors,
            f"{name}.safetensors",
            key="download_safetensors",
            icon=":material/download:",
            on_click="ignore",
        )
    upload.tensor_table(tensors)
    where = run.result.environment
    st.markdown(
        f"Trained on {where.device_name} ({where.backend}). Each tensor was "
        "moved to the CPU before it was saved, so that the file loads anywhere."
    )
    if run.config.model == "cnn":
        st.markdown(
            "Running means and variances of batch norm are in it too: they are not "
            "parameters, but without them the model answers something else."
        )


def plain_script(run: Run) -> str:
    """How a script of the learner's own loads the download."""
    return (
        "import torch\n\n"
        f'state_dict = torch.load("{export.file_name(run)}.pt",\n'
        '                        map_location="cpu", weights_only=True)\n'
        f"model = {run.config.model.upper()}()  # the class from core/models.py\n"
        "model.load_state_dict(state_dict)\n"
        "model.to(device).eval()"
    )


def round_trip(run: Run, devices: list[str]) -> None:
    """The controls of the round trip, and what it showed."""
    assert run.result is not None
    jobs = st.session_state.setdefault("round_trips", {})
    job = engine().job(jobs.get(run.id, ""))

    def pick(label: str, options: list[str], key: str) -> str:
        return st.selectbox(
            label,
            options,
            format_func=lambda name: format.NAMES.get(name, name),
            key=key,
            width=170,
        )

    with st.container(horizontal=True, vertical_alignment="bottom"):
        save_on = pick("Saved on", devices, "save_on")
        load_on = pick("Loaded on", devices[::-1], "load_on")
        dtype = pick("Numbers in the file", ["float32", "float16"], "file_dtype")
        pressed = st.button(
            "Save, load, compare",
            type="primary",
            icon=":material/compare_arrows:",
            key="round_trip",
            disabled=job is not None and not job.ended,
        )
    if pressed:
        jobs[run.id] = engine().submit(
            ROUND_TRIP,
            run.result.checkpoint,
            run.config,
            save_on,
            load_on,
            dtype,
            owner=visitor(),
        )
    if run.id in jobs:
        live.follow_job(jobs[run.id], "The comparison", _round_trip_result)
    else:
        st.markdown(
            ":material/difference: The greatest difference between the model's answers "
            "before and after appears here."
        )


def _round_trip_result(job: Job) -> None:
    if job.status == "failed":
        st.error(job.message, title="The comparison failed")
        return
    if job.status != "finished":
        st.info("Saving, loading, and answering all test images twice.")
        return
    found: RoundTrip = job.value
    with st.container(horizontal=True):
        st.metric(
            "Greatest difference",
            f"{found.greatest_difference:.3g}",
            border=True,
            width=170,
        )
        st.metric(
            "Logits that differ",
            f"{found.differing_values:,} of {found.values:,}",
            border=True,
            width=250,
        )
        st.metric(
            "Predictions that differ",
            f"{found.differing_predictions:,} of {found.images:,}",
            border=True,
            width=230,
        )
    way = f"{found.saved_on} → file of {found.dtype} → {found.loaded_on}"
    if found.differing_values == 0:
        st.success(
            f"{way}: **the same model.** All {found.values:,} logits are equal, bit "
            "for bit.",
            icon=":material/check_circle:",
        )
    elif found.dtype == "float16":
        st.info(
            f"{way}: a float16 has 11 significant bits, a float32 24. The file is half "
            "as large, and the model is nearly, not exactly, the one that was saved.",
            icon=":material/info:",
        )
    else:
        st.info(
            f"{way}: the weights are equal; two devices add the same numbers in "
            "another order, and floats round at every sum. That is what is left.",
            icon=":material/info:",
        )
    st.caption(
        f"{format.size(found.bytes)} in the file. Compared on the host; loaded on "
        f"{format.provenance(found.environment)}."
    )


def resume(run: Run) -> None:
    """The comparison of training through with resuming, live."""
    jobs = st.session_state.setdefault("resumes", {})
    job = engine().job(jobs.get(run.id, ""))
    alive = job is not None and not job.ended
    with st.container(horizontal=True, vertical_alignment="bottom"):
        half = st.number_input(
            "Epochs before, and after",
            1,
            5,
            1 if run.config.model == "cnn" else 2,
            key="resume_epochs",
            width=220,
        )
        pressed = st.button(
            "Train and resume",
            type="primary",
            icon=":material/resume:",
            key="resume",
            disabled=alive,
        )
        if alive:
            st.button(
                "Cancel",
                icon=":material/stop:",
                key="cancel_resume",
                on_click=engine().cancel,
                args=(jobs[run.id],),
            )
    if pressed:
        settings = {**vars(run.config), "epochs": 2 * half, "feed": "memory"}
        config = RunConfig(**settings | {"num_workers": 0, "pin_memory": False})
        jobs[run.id] = engine().submit(RESUME, config, owner=visitor())
        st.rerun()
    if run.id in jobs:
        live.follow_job(jobs[run.id], "The comparison", _resumed)
    else:
        st.markdown(
            ":material/show_chart: The curves appear here as they are trained, with "
            f"this run's settings, on the first {RESUME_IMAGES:,} training images."
        )


def _resumed(job: Job) -> None:
    config: RunConfig = job.arguments[0]
    per_epoch = ceil(RESUME_IMAGES / config.batch_size)
    steps, half = per_epoch * config.epochs, per_epoch * config.epochs // 2
    reports = [each for each in job.events if isinstance(each, PartLosses)]
    rows = [
        (charts.PARTS[each.part], step, loss)
        for each in reports
        for step, loss in each.losses
    ]
    found: Resumed | None = job.value
    if job.status == "failed":
        st.error(job.message, title="The comparison failed")
    elif job.status == "cancelled":
        st.info("Cancelled. What was trained until then stays here.")
    elif found is None:
        part = charts.PARTS[reports[-1].part] if reports else "The first step"
        st.progress(min(1.0, len(rows) / (2.5 * steps)), part)
    else:
        _resumed_result(found)
    machine = engine().machine()
    backend = machine.devices[0].backend if machine else "CPU"
    if found is not None:
        backend = found.environment.backend
    st.vega_lite_chart(
        pd.DataFrame(rows, columns=["part", "step", "loss"]),
        charts.resumed(backend, steps, half),
        key="chart_resumed",
        alt="Loss over steps: trained through, resumed, and with only the weights",
    )
    if found is not None:
        st.caption(
            f"{found.epochs} epochs of {RESUME_IMAGES:,} images, interrupted at step "
            f"{found.at_step:,}. {format.provenance(found.environment)}."
        )


def _resumed_result(found: Resumed) -> None:
    with st.container(horizontal=True):
        st.metric(
            "Greatest difference",
            f"{found.greatest_loss_difference:.3g}",
            border=True,
            width=200,
            help="Of the losses, trained through against resumed, over all steps.",
        )
        st.metric(
            "Weights that differ",
            f"{found.differing_weights:,} of {found.weights:,}",
            border=True,
            width=260,
        )
        st.metric(
            "With the weights alone",
            f"{found.weights_only_difference:.3g}",
            border=True,
            width=210,
            help="Greatest difference of the losses after loading only the weights.",
        )
    contents, size = ", ".join(found.contents), format.size(found.bytes)
    if found.greatest_loss_difference == 0 and found.differing_weights == 0:
        st.success(
            "**Resumed as if it had never stopped**: the same curve and the same "
            f"weights, bit for bit. In the file ({size}): {contents}.",
            icon=":material/check_circle:",
        )
    else:
        st.info(
            "Resumed along nearly the same curve. Some kernels of this device add in "
            "an order that differs from run to run, so two runs without an "
            f"interruption differ too. In the file ({size}): {contents}.",
            icon=":material/info:",
        )
