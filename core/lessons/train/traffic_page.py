"""What crosses between host and simulated accelerator in each step of a run."""

import streamlit as st

from core.results import Crossing, Traffic
from core.ui import figures, format, simulated
from core.ui.runs import Run
from core.words import Words

words = Words(__file__)


def draw(run: Run) -> None:
    """Bytes each way and waits in a step, in all and by the line that causes them."""
    traffic: Traffic | None = None
    if (told := run.result or run.latest) is not None:
        traffic = told.traffic
    if traffic is None:
        return
    text, crossings = words.table("traffic"), traffic.crossings
    with simulated.outline("traffic"):
        st.markdown(text["question"])
        values = {
            "To the device": format.size(traffic.per_step("to_device")),
            "Back to the host": format.size(traffic.per_step("to_host")),
            "Waits of the host": _mean(traffic.per_step("waits")),
        }
        figures.metrics(values)
        # A list, since a table of such lines is wider than a phone.
        st.markdown("\n".join(_line(each, traffic.steps) for each in crossings))
        waits = any(each.waits for each in crossings if each.to_device)
        way = "waits" if waits else "goes_on"
        if run.config.feed == "device":
            way = "lies_there"
        fetched = "each" if run.config.item_each_step else "together"
        st.markdown(f"{text[way]} {text[fetched]} {text['same']}")


def _line(crossing: Crossing, steps: int) -> str:
    """`inputs = inputs.to(device)` (core/loops.py): 50 kB to the device, 1 wait"""
    there, back = crossing.to_device / steps, crossing.to_host / steps
    parts = [f"{format.size(there)} to the device"] if there else []
    parts += [f"{format.size(back)} back"] if back else []
    waits = _mean(crossing.waits / steps)
    parts += [f"{waits} wait{'s' * (waits != '1')}"] if waits != "0" else []
    code = crossing.code.partition("  #")[0]
    return f"- `{code}` ({crossing.file}): **{', '.join(parts)}**"


def _mean(waits: float) -> str:
    return f"{waits:.2f}".rstrip("0").rstrip(".")
