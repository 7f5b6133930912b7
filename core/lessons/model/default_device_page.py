"""Which tensors are made on a default device, as the Model page shows it."""

from functools import partial
from typing import Any

import streamlit as st

from core.measure import rounding
from core.ui import controls, frame, guess, simulated
from core.ui.server import KeptAnswer, explained, in_child
from to_device.words import Words

words = Words(__file__)

GUESSES = (  # expressions of core.lessons.model.set_default_device
    "torch.tensor([1.0, 2.0])",
    "torch.zeros_like(existing)",
    "nn.Linear(3, 1).weight",
)
default_device: KeptAnswer[dict[str, Any]] = KeptAnswer(
    partial(in_child, "core.lessons.model.set_default_device:compare"), 600
)


def draw() -> None:
    """Ask for a guess, then show on which device each tensor is made."""
    with explained("The default device could not be tried"):
        with st.spinner("Creating tensors"):
            comparison = default_device()
        question = words("default_device.question")
        with controls.row():
            guessed = guess.ask(
                "default_device_guess", question, GUESSES, "`{}`".format
            )
        if guess.missing(guessed):
            return
        with simulated.outline("default_device", device=comparison["device"]):
            _places(comparison, guessed)
        without, with_setting = map(rounding.precise, comparison["cost"])
        price = words("default_device.price", without=without, setting=with_setting)
        st.markdown(price, width=frame.PROSE)


def _places(comparison: dict[str, Any], guessed: str | None) -> None:
    device, block, setting = (comparison[key] for key in ("device", "block", "setting"))
    st.markdown(
        f"We ran each expression with **`{device}`** as the default "
        "device: inside `with torch.device(...)`, and after "
        "`torch.set_default_device(...)`."
    )
    moved = [text for text, place in block["made"].items() if place == device]
    if right := next((text for text in GUESSES if text not in moved), None):
        finding = f"`{right}` ends up on the CPU, and the other two on `{device}`."
        guess.judge(finding, guessed, right, "`{}`".format)
    stayed = [text for text in block["made"] if text not in moved]
    with st.grid(min_column_width=300):
        for where, expressions in ((device, moved), ("cpu", stayed)):
            with st.container(border=True, height="stretch"):
                st.badge(f"Made on {where}", color=frame.device_color(where.upper()))
                st.code("\n".join(expressions), wrap_lines=True)
    different = [k for k in block["made"] if block["made"][k] != setting["made"][k]]
    if different:
        st.markdown(
            "With `set_default_device`, these tensors end up on a different device: "
            f"`{'`, `'.join(different)}`."
        )
    st.markdown(words("default_device.lasts"))
    # A table in Markdown, since a dataframe would have to be scrolled on a phone.
    zeros = "torch.zeros(3)"
    st.markdown(
        "| | With the block | With the setting |\n| --- | --- | --- |\n"
        "| Inside the block, or right after `set_default_device` "
        f"| `{block['made'][zeros]}` | `{setting['made'][zeros]}` |\n"
        f"| In another thread | `{block['thread']}` | `{setting['thread']}` |\n"
        f"| Later in the script | `{block['after']}` | `{setting['after']}` |"
    )
    if comparison["shuffle"]:
        st.markdown(words("default_device.shuffle"))
        simulated.message(comparison["shuffle"])
        st.markdown("Give the loader a generator on the device:")
        st.code(
            f"generator = torch.Generator({device!r})\n"
            "DataLoader(data, shuffle=True, generator=generator)",
            wrap_lines=True,
        )
        error = comparison["generator"]
        st.markdown(
            f"This fails here, too: `{error}`" if error else "This code works here."
        )
