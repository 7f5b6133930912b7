"""Save what was trained, load it elsewhere, prove that it is the same, take it home."""

from functools import partial

import streamlit as st

from core.lessons.checkpoints import (
    download_page,
    resume_page,
    round_trip_page,
    upload_page,
)
from core.runs import export_page as take_home
from core.runs import run_choice_page as run_choice
from core.ui import frame
from core.ui.server import engine

frame.begin("Checkpoints")
machine = engine().machine()
devices = [device.device for device in machine.devices] if machine else ["cpu"]
run, _ = run_choice.choose()


def trip() -> None:
    round_trip_page.draw(run, devices)
    resume_page.draw(run)


def home() -> None:
    if run is None:
        run_choice.nothing_yet()
    else:
        take_home.downloads(run)
        st.markdown("**The heart of the script**, which repeats your run:")
        take_home.preview(run.result)


frame.sections(
    {
        "Save": partial(download_page.draw, run),
        "Load": partial(upload_page.draw, machine, run.config.task if run else None),
        "Round trip": trip,
        "What can go wrong": upload_page.wrong,
        "Take it home": home,
    },
    always=("Load",),
)
frame.end("Checkpoints")
