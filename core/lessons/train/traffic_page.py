"""What crosses between host and simulated accelerator in each step of a run."""

import streamlit as st

from core.results import Traffic
from core.ui import figures, format, simulated
from core.ui.runs import Run
from core.words import Words

HEAD = "| Line | To the device | Back | The host waits |\n| --- | --: | --: | --: |\n"
words = Words(__file__)


def draw(run: Run) -> None:
    """Bytes each way and waits in a step, in all and by the line that causes them."""
    traffic: Traffic | None = None
    if (told := run.result or run.latest) is not None:
        traffic = told.traffic
    if traffic is None:
        return
    text = words.table("traffic")
    with simulated.outline("traffic", explained=True):
        st.markdown(text["question"])
        values = {
            "To the device": format.size(traffic.per_step("to_device")),
            "Back to the host": format.size(traffic.per_step("to_host")),
            "Waits of the host": f"{traffic.per_step('waits'):.2f}",
        }
        figures.metrics(values)
        rows = (
            f"| `{each.code.partition('  #')[0]}` ({each.file}, line {each.line}) "
            f"| {format.size(each.to_device / traffic.steps)} "
            f"| {format.size(each.to_host / traffic.steps)} "
            f"| {each.waits / traffic.steps:.2f} |"
            for each in traffic.crossings
        )
        # Markdown fits a phone, where a dataframe is a window to scroll in.
        st.markdown(HEAD + "\n".join(rows))
        crossing = [each for each in traffic.crossings if each.to_device]
        way = "waits" if any(each.waits for each in crossing) else "goes_on"
        if run.config.feed == "device":
            way = "lies_there"
        fetched = "each" if run.config.item_each_step else "together"
        st.markdown(f"{text[way]} {text[fetched]} {text['same']}")
