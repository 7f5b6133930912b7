"""Save a trained model, load it elsewhere, prove that the copy is the same."""

from functools import partial

import streamlit as st

from core.lessons.checkpoints import download_page, round_trip_page, upload_page
from core.runs import export
from core.runs import finished_run_page as finished_run
from core.ui import frame
from core.ui.server import engine
from core.ui.source import code_tabs
from to_device.names import SIMULATED

frame.begin("Checkpoints")
machine = engine().machine()
devices = [device.device for device in machine.devices] if machine else ["cpu"]
if machine and machine.simulates:
    devices.insert(0, SIMULATED)
run, _ = finished_run.choose()


def home() -> None:
    if run is None:
        finished_run.nothing_yet()
    else:
        finished_run.take_home(run)
        st.markdown("**The heart of the script**, which trains just as your run did:")
        st.code(export.heart(run.result), line_numbers=True)


frame.sections(
    {
        "Save": partial(download_page.draw, run),
        "Load": partial(upload_page.draw, machine, run.config.task if run else None),
        "Round trip": partial(round_trip_page.draw, run, devices),
        "What can go wrong": upload_page.wrong,
        "Take it home": home,
    },
    always=("Load",),
    more=("What can go wrong", "Take it home"),
)
with st.expander("The code behind this page", icon=":material/code:"):
    code_tabs(
        ("Save", "core.state_dict:save"),
        ("Round trip", "core.lessons.checkpoints.round_trip:measure"),
        (
            "Resume",
            "core.training:Training.state_dict",
            "core.training:Training.load_state_dict",
        ),
    )
frame.end("Checkpoints")
