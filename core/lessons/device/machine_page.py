"""The devices of this machine as the Device page shows them, and the page's report."""

import json
from dataclasses import asdict
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from core.lessons.device.device_result import DeviceDetails, DeviceLoad
from core.ui import answers as visitor_answers
from core.ui import charts, controls, course, format, frame, hosts, simulated
from core.ui.server import KeptAnswer, engine, explained, in_child
from core.ui.source import source
from to_device.diagnose.machine import Diagnosis, Facts
from to_device.errors import quoted
from to_device.words import Words

words = Words(__file__)

LIVE_SECONDS = 2.0
LABELS: dict[str, str] = words.table("cards.labels")

# Answers about the machine, which all visitors share. They are renewed after a while,
# since a driver may be fixed or a GPU be plugged in while the app runs.
facts: KeptAnswer[Facts] = KeptAnswer(
    partial(in_child, "to_device.diagnose.facts:probe"), 20
)
devices: KeptAnswer[list[DeviceDetails]] = KeptAnswer(
    lambda: engine().ask("core.lessons.device.hardware:describe"), 20
)
answers: KeptAnswer[dict[str, str]] = KeptAnswer(
    partial(in_child, "core.lessons.device.idioms:answers"), 20
)
simulated_answers: KeptAnswer[dict[str, str]] = KeptAnswer(
    partial(in_child, "core.lessons.device.idioms:simulated_answers"), 600
)


@st.cache_data(ttl=LIVE_SECONDS / 2, show_spinner=False)
def live() -> dict[str, DeviceLoad]:
    loads = engine().ask("core.lessons.device.hardware:now")
    return {load.device: load for load in loads}


@st.fragment(run_every=LIVE_SECONDS)
def watch(page_facts: Facts) -> None:
    """Redraw the page when the newest facts differ from those on the page."""
    if facts.newest not in (None, page_facts):
        st.rerun()


@st.fragment(run_every=LIVE_SECONDS)
def cards() -> None:
    """Draw a list of all machines, then a card for each device of a worker."""
    hosts.table()
    with explained("The devices could not be described"):
        loads = live()
        for device in devices():
            with st.container(border=True):
                _card(device, loads.get(device.device))
        if sum(device.backend == "CUDA" for device in devices()) > 1:
            st.caption(words("cards.workers"))
    # The Compare page has stored the name of the GPU that the browser uses.
    if name := visitor_answers.of_visitor().get("your_gpu_name"):
        st.markdown(f"**On your side:** your browser computes on {quoted(name)}.")
    tab = {"tab": "Your GPU"}
    course.link(
        course.page("Compare"),
        "Your own GPU, measured in this browser",
        query_params=tab,
    )


def _card(device: DeviceDetails, load: DeviceLoad | None) -> None:
    color = frame.device_color(device.backend)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(device.device, icon=":material/memory:", color=color)
        st.markdown(f"**{device.device_name}**")
        if load is not None and load.total_bytes:
            note = (
                "Memory used by all programs, updated every {seconds} "
                "seconds. Train in another browser tab and watch this number."
            ).format(seconds=f"{LIVE_SECONDS:.0f}")
            st.markdown(f":small[{note}]")
    used, total = (load.used_bytes, load.total_bytes) if load else (None, None)
    figures: dict[str, Any] = {}
    if used is not None and total:
        st.vega_lite_chart(
            pd.DataFrame({"share": [used / total]}),
            charts.share(device.backend),
            key=f"memory_{device.device}",
            alt=f"{used / total:.0%} of the memory is used",
        )
        figures["Memory used"] = format.size(used)
        figures["Memory free"] = format.size(total - used)
        is_shared = device.details.get("shared_memory", False)
        shared = ", shared with the CPU" if is_shared else ""
        figures["Total memory"] = f"{format.size(total)}{shared}"
    if load and load.busy_percent is not None:
        figures["Busy"] = f"{load.busy_percent}% of the time"
    if load and load.celsius is not None:
        figures["Temperature"] = f"{load.celsius} °C"
    for name, label in LABELS.items():
        if name in device.details:
            value = device.details[name]
            text = ", ".join(value) or "none" if isinstance(value, list) else value
            figures[label] = text
    with st.grid(min_column_width=150):
        for label, text in figures.items():
            about = (
                "All usable cores except one, unless `OMP_NUM_THREADS` is set."
                if label == LABELS["threads"]
                else None
            )
            st.markdown(f"{label}  \n**{text}**", help=about)


def idioms(answers: dict[str, str]) -> None:
    st.markdown("All three pieces of code just ran on this machine.")
    for name, texts in words.table("idioms").items():
        left, right = st.columns([2, 1], gap="medium")
        code = source(f"core.lessons.device.idioms:{name}")
        left.code(code, line_numbers=True, wrap_lines=True)
        with right:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{texts['label']}** gives")
                on = "CPU" if answers[name] == "cpu" else "accelerator"
                st.badge(answers[name], color=frame.device_color(on))
            st.markdown(texts["misses"])


def simulated_idioms(answers: dict[str, str], with_sim: dict[str, str]) -> None:
    with (
        st.expander("With a simulated GPU", icon=":material/memory:"),
        simulated.outline("idioms", explained=True),
    ):
        rows = [
            f"| **{texts['label']}** | `{answers[name]}` | `{with_sim[name]}` |"
            for name, texts in words.table("idioms").items()
        ]
        st.markdown("\n".join([words("simulated.head"), *rows]))
        st.markdown(words("simulated.why"), width=frame.PROSE)


def trap(answers: dict[str, str]) -> None:
    """Explain that torch's answer may name an accelerator that isn't there."""
    text = words("trap.unchecked", answer=answers["unchecked"])
    name = (
        "Many scripts also print the GPU's name. On this machine, "
        "these lines printed `{printed}`:"
    ).format(printed=answers["printed"])
    with st.expander("A trap, and the GPU's name", icon=":material/warning:"):
        st.markdown(f"{text}\n\n{name}", width=frame.PROSE)
        st.code(source("core.lessons.device.idioms:announced"), wrap_lines=True)


def report(diagnosis: Diagnosis, facts: Facts, devices: list[DeviceDetails]) -> None:
    """Draw the page's facts as JSON, to be pasted into a question in a forum."""
    rows = [vars(device) | device.details for device in devices]
    machine = engine().machine()
    contents = {
        "verdict": diagnosis.verdict,
        "cause": diagnosis.cause,
        "python": machine.devices[0].python if machine else None,
        "facts": {k: v for k, v in asdict(facts).items() if k != "releases"},
        "devices": [{k: row[k] for k in row if k != "details"} for row in rows],
        "answers": answers(),
    }
    text = json.dumps(contents, indent=2)
    st.markdown(words("code.report"), width=frame.PROSE)
    name, kind = "device-report.json", "application/json"
    controls.download("Download the report", text, name, "download_report", mime=kind)
    st.code(text, language="json", wrap_lines=True, height=300)
