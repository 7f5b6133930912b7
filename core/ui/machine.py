"""The devices of this machine as the Device page shows them, and its report."""

from dataclasses import asdict
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from core.machine.diagnosis import CAUSES
from core.machine.results import DeviceDetails, DeviceLoad, Diagnosis, Facts
from core.ui import controls, format, frame, guess, hosts
from core.ui.charts import base as charts
from core.ui.kept import KeptAnswer
from core.ui.server import apart, engine, explained
from core.ui.source import source

LIVE_SECONDS = 2.0
WATCHED = (
    f"Memory used by all programs, updated every {LIVE_SECONDS:.0f} seconds. Train in "
    "another browser tab and watch it here."
)
GUESSES = (  # expressions of core.machine.default_device
    "torch.tensor([1.0, 2.0])",
    "torch.zeros_like(existing)",
    "nn.Linear(3, 1).weight",
)
# In the order in which they are shown; all of them from core.machine.hardware.
LABELS = {
    "compute_capability": "Compute capability",
    "architecture": "Architecture",
    "multiprocessors": "Multiprocessors",
    "cores": "Cores",
    "logical_cores": "Logical cores",
    "threads": "Threads in training",
    "fast_formats": "Formats faster than float32",
    "lacks": "Can't compute in",
    "vectors": "Vector instructions",
    "kernels": "Used by torch",
    "blas": "Matrix library",
    "driver": "Driver",
    "runtime": "Runtime",
}
THREADS = "All usable cores but one, unless `OMP_NUM_THREADS` is set."

MISSES = {
    "classic": "Finds NVIDIA GPUs, and AMD GPUs too, since ROCm calls itself `cuda`. "
    "**Misses** MPS and XPU: on a Mac or an Intel GPU it answers `cpu`, and all you "
    "notice is that training takes a long time.",
    "with_mps": "Finds Apple silicon as well. **Misses** XPU and whatever comes next: "
    "each new kind of device needs one more `if` in each of your scripts.",
    "any_accelerator": "Finds CUDA, ROCm, XPU and MPS. **Misses** torch before 2.6, "
    "where it does not exist. Like the others, it takes the driver's word for it: you "
    "only find out whether this build of torch has code for your GPU when you compute.",
}


# Everyone sees the same machine: a class that opens the page asks the worker once. It
# is asked anew since a driver may be fixed while the app runs, or a GPU be plugged in.
facts: KeptAnswer[Facts] = KeptAnswer(partial(apart, "core.machine.facts:probe"), 20)
devices: KeptAnswer[list[DeviceDetails]] = KeptAnswer(
    lambda: engine().ask("core.machine.hardware:describe"), 20
)
answers: KeptAnswer[dict[str, str]] = KeptAnswer(
    lambda: engine().ask("core.machine.idioms:answers"), 20
)
default_device: KeptAnswer[dict[str, Any]] = KeptAnswer(
    partial(apart, "core.machine.default_device:compare"), 600
)


@st.cache_data(ttl=LIVE_SECONDS / 2, show_spinner=False)
def live() -> dict[str, DeviceLoad]:
    """Memory and load of each device, by its name."""
    return {each.device: each for each in engine().ask("core.machine.hardware:now")}


def verdict(found: Diagnosis) -> None:
    """What is trained on and why: blue for the CPU, orange for the accelerator."""
    if found.state == "broken":
        st.error(f"**{found.verdict}**", icon=":material/error:")
    with st.container(border=True):
        if found.state != "broken":
            on = "CPU" if found.state == "cpu" else "accelerator"
            st.badge(on, icon=":material/memory:", color=frame.device_color(on))
            st.markdown(f"#### {found.verdict}")
        st.markdown(found.why)
        st.markdown(f"**What to do:** {found.way_out}")
        if found.command:
            st.code(found.command, language="bash", wrap_lines=True)


@st.fragment(run_every=LIVE_SECONDS)
def watch(shown: Facts) -> None:
    """The page is drawn anew where the facts that it has `shown` are no longer so."""
    if facts.newest not in (None, shown):
        st.rerun()


@st.fragment(run_every=LIVE_SECONDS)
def cards() -> None:
    """A card a device: what it is, and how full and how busy it is now.

    Below all machines, where there are several: the cards are of the one that answers.
    """
    hosts.table()
    with explained("The devices could not be described"):
        figures = live()
        for device in devices():
            with st.container(border=True):
                _card(device, figures.get(device.device))


def _card(device: DeviceDetails, load: DeviceLoad | None) -> None:
    color = frame.device_color(device.backend)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(device.device, icon=":material/memory:", color=color)
        st.markdown(f"**{device.device_name}**")
        if load is not None and load.total_bytes:
            st.markdown(f":small[{WATCHED}]")
    used, total = (load.used_bytes, load.total_bytes) if load else (None, None)
    shown: dict[str, Any] = {}
    if used is not None and total:
        st.vega_lite_chart(
            pd.DataFrame({"share": [used / total]}),
            charts.share(device.backend),
            key=f"memory_{device.device}",
            alt=f"{used / total:.0%} of the memory is used",
        )
        shown["Memory used"] = format.size(used)
        shown["Memory free"] = format.size(total - used)
        shared = ", the CPU's too" if device.shared_memory else ""
        shown["Total memory"] = f"{format.size(total)}{shared}"
    if load and load.busy_percent is not None:
        shown["Busy"] = f"{load.busy_percent}% of the time"
    if load and load.celsius is not None:
        shown["Temperature"] = f"{load.celsius} °C"
    told = _told(device)
    shown |= {label: _text(told[key]) for key, label in LABELS.items() if key in told}
    with st.grid(min_column_width=150):
        for label, text in shown.items():
            note = THREADS if label == LABELS["threads"] else None
            st.markdown(f"{label}  \n**{text}**", help=note)


def _told(device: DeviceDetails) -> dict[str, Any]:
    """What the device does tell."""
    return {name: each for name, each in asdict(device).items() if each is not None}


def _text(value: Any) -> str:
    return (", ".join(value) or "none") if isinstance(value, list) else str(value)


def idioms(answers: dict[str, str]) -> None:
    """Three ways to ask for a device: what each answers here, and what it misses."""
    labels = ("The classic line", "With MPS", "torch.accelerator")
    for label, (name, misses) in zip(labels, MISSES.items(), strict=True):
        left, right = st.columns([6, 5], gap="medium")
        left.code(source(f"core.machine.idioms:{name}"))
        with right:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{label}** answers")
                on = "CPU" if answers[name] == "cpu" else "accelerator"
                st.badge(answers[name], color=frame.device_color(on))
            st.markdown(misses)


def trap(answers: dict[str, str], best: DeviceDetails) -> None:
    """An answer of torch.accelerator that is no check, the one that is, and a name."""
    checked = (
        " Since torch 2.7 `current_accelerator(check_available=True)` asks both at "
        f"once: here it answers **`{answers['checked']}`**."
        if answers["checked"]
        else ""
    )
    kind = best.device.partition(":")[0]
    name = (
        f"`torch.{kind}.get_device_name()` answers **{best.device_name}**."
        if kind in ("cuda", "xpu")
        else "On an NVIDIA or AMD GPU, `torch.cuda.get_device_name()` gives you its "
        "name; on an Intel GPU, `torch.xpu.get_device_name()` does."
    )
    st.markdown(
        "One trap: without `is_available()` in front, "
        "`torch.accelerator.current_accelerator()` tells you what this torch was "
        "**built** for, whether or not it's there. On this machine it answers "
        f"**`{answers['unchecked']}`**.{checked}\n\n**What is it called?** {name}",
        width=frame.PROSE,
    )


def report(
    found: Diagnosis, known: Facts, described: list[DeviceDetails]
) -> dict[str, Any]:
    """All that the page knows, to be pasted into a question on a forum."""
    machine = engine().machine()
    return {
        "verdict": found.verdict,
        "cause": found.cause,
        "python": machine.devices[0].python if machine else None,
        "facts": {k: v for k, v in asdict(known).items() if k != "releases"},
        "devices": [_told(each) for each in described],
        "answers": answers(),
    }


def default_places(compared: dict[str, Any]) -> None:
    """Which expressions follow a default device, which don't, and for how long.

    Once the learner has guessed: `existing` is a tensor that was on the CPU before.
    """
    device, block, setting = (compared[key] for key in ("device", "block", "setting"))
    question = (
        "with another default device, which is still made on the CPU, where "
        "`existing` is?"
    )
    with controls.row():
        guessed = guess.ask("default_device_guess", question, GUESSES, "`{}`".format)
    if guess.missing(guessed):
        return
    why = (
        " There is no accelerator here, so `meta` stands in for it: a device whose "
        "tensors have a shape but no data."
        if device == "meta"
        else ""
    )
    st.markdown(
        f"Each expression ran with **`{device}`** as the default device: in a block, "
        "`with torch.device(...)`, and after the setting, "
        f"`torch.set_default_device(...)`.{why}"
    )
    moved = [text for text, place in block["made"].items() if place == device]
    for right in [text for text in GUESSES if text not in moved][:1]:
        found = f"`{right}` is made on the CPU, the other two on `{device}`."
        guess.judge(found, guessed, right, "`{}`".format)
    stayed = [text for text in block["made"] if text not in moved]
    with st.grid(min_column_width=300):
        for where, expressions in ((device, moved), ("cpu", stayed)):
            with st.container(border=True, height="stretch"):
                color = "gray" if where == "meta" else frame.device_color(where.upper())
                st.badge(f"Made on {where}", color=color)
                st.code("\n".join(expressions))
    different = [k for k in block["made"] if block["made"][k] != setting["made"][k]]
    if different:
        st.markdown(
            f"After the setting, it is different for `{'`, `'.join(different)}`."
        )
    _lasting(compared)


def _lasting(compared: dict[str, Any]) -> None:
    """How long a block and a setting last, and what the setting breaks."""
    device, block, setting = (compared[key] for key in ("device", "block", "setting"))
    st.markdown(
        "It is a default for **new** tensors made from numbers. Those that exist stay "
        "where they are, tensors made to match them (`zeros_like`) land on the same "
        "device, and you still move your data with `.to(device)`. The block and the "
        "setting differ in how long they last. Where `torch.zeros(3)` ends up:"
    )
    # Markdown fits a phone, where a dataframe is a window to scroll in.
    zeros = "torch.zeros(3)"
    st.markdown(
        "| | With the block | With the setting |\n| --- | --- | --- |\n"
        f"| Right there | `{block['made'][zeros]}` | `{setting['made'][zeros]}` |\n"
        f"| In another thread | `{block['thread']}` | `{setting['thread']}` |\n"
        f"| Afterwards | `{block['after']}` | `{setting['after']}` |"
    )
    without, with_it = compared["cost"]
    st.markdown(
        "It also has a price: PyTorch then intercepts every call you make to it from "
        "Python, even those that don't create a tensor. Adding two small tensors on "
        f"the CPU takes **{format.precise(without)}** without the setting and "
        f"**{format.precise(with_it)}** with it. These are the best of many tries; the "
        "chain under “Why a GPU is fast” has the typical time of such a call.\n\n"
        'A variable called `device` sets nothing: after `device = "cuda"`, '
        "`torch.zeros(3)` is still on the CPU. It counts only where you pass it: "
        "`torch.zeros(3, device=device)`.",
        width=frame.PROSE,
    )
    if compared["shuffle"]:
        st.markdown(
            "After the setting, a `DataLoader` with `shuffle=True` fails, although "
            "nobody gave it a generator: its sampler makes one on the CPU.\n\n"
            f"`{compared['shuffle']}`\n\nGive it one on the device:"
        )
        st.code(
            f"generator = torch.Generator({device!r})\n"
            "DataLoader(data, shuffle=True, generator=generator)"
        )
        said = compared["generator"]
        st.markdown(f"Here that fails too: `{said}`" if said else "Here that works.")


def causes(found: Diagnosis) -> str:
    """All possible causes of a diagnosis, with the one that applies here."""
    return "\n".join(
        f"{number}. `{cause.__name__}`: {(cause.__doc__ or '').partition('.')[0]}"
        + (" **← this machine**" if cause.__name__ == found.cause else "")
        for number, cause in enumerate(CAUSES, 1)
    )
