"""Save what was trained, load it elsewhere, prove that it is the same, take it home."""

import streamlit as st

from core.mistakes.catalogue import BY_SLUG
from core.ui import frame, mistakes, run_choice, take_home
from core.ui.checkpoints import resume, round_trip, saved, upload
from core.ui.sections import sections
from core.ui.server import engine
from core.ui.source import show

frame.begin("Checkpoints")
machine = engine().machine()
devices = [each.device for each in machine.devices] if machine else ["cpu"]
run, _ = run_choice.choose()


def save() -> None:
    st.markdown(
        "The file saved here holds only the model's `state_dict`: a dictionary of "
        "names and tensors. The layers themselves stay in your code.",
        width=frame.PROSE,
    )
    if run is None:
        run_choice.nothing_yet()
        saved.untrained()
    else:
        saved.draw(run)
        st.markdown("**The code that ran**, from `core/state_dict.py`:")
        show("core.state_dict:save")
        st.markdown("**In a script of your own** you need this file and the class:")
        st.code(saved.plain_script(run))


def load() -> None:
    st.markdown(
        "Your file is opened in a process of its own, with limited memory and time, "
        "and never with `weights_only=False`. You'll see which entries are missing, "
        "unexpected, or of the wrong shape."
    )
    upload.draw(machine, run.config.task if run else None)
    st.markdown(
        "**The code that runs.** `weights_only=True` accepts tensors and refuses "
        "programs. `map_location` says where the tensors go, whatever device they were "
        "saved from: a stranger's file is kept in the host's memory until it is known "
        "to fit. From `core/checkpoints/round_trip.py` and `core/state_dict.py`."
    )
    show("core.checkpoints.round_trip:read", "core.state_dict:load")


def trip() -> None:
    st.subheader("Is it the same model?")
    st.markdown(
        "The trained model classifies all test images, is saved on one device, loaded "
        "on another, and classifies them again. Every logit is compared."
    )
    if len(devices) == 1:
        st.markdown(round_trip.ON_ONE_DEVICE)
    if run is None:
        run_choice.nothing_yet()
    else:
        round_trip.draw(run, devices)
    show("core.checkpoints.round_trip:measure")

    st.subheader("Does training go on as before?")
    st.markdown(
        "To resume you need more than the weights: the optimizer's moments, the place "
        "in the schedule, the epoch, and the state of every random generator. Here one "
        "run trains straight through. Another stops in the middle, is saved, loaded "
        "into new objects, and goes on. A third goes on from what many people save: "
        "the weights alone."
    )
    if run is None:
        run_choice.nothing_yet()
    else:
        resume.draw(run)
    show("core.training:Training.state_dict", "core.training:Training.load_state_dict")


def wrong() -> None:
    st.markdown(
        "Three mistakes with files, each made on purpose, with the fix beside it. The "
        "first is dangerous: a file from `torch.save` holds a pickle, and a pickle can "
        "name any function and have it called when the file is opened. Whoever made "
        "the file can then do whatever you can. `weights_only=True` knows the few "
        "functions that rebuild tensors and refuses all others; with "
        "`weights_only=False`, opening a file means running it."
    )
    for slug in ("pickle_refused", "cuda_checkpoint", "wrong_architecture"):
        mistakes.card(BY_SLUG[slug], opened=True)
    st.markdown(
        "If all names begin with `module.`, the model was wrapped when it was saved, "
        "in `DataParallel` for example: rename the keys, and leave `strict` alone."
    )


def home() -> None:
    if run is None:
        run_choice.nothing_yet()
    else:
        take_home.downloads(run)
        st.markdown("**The heart of the script**, which repeats your run:")
        take_home.preview(run.result)


sections(
    {
        "Save": save,
        "Load": load,
        "Round trip": trip,
        "What can go wrong": wrong,
        "Take it home": home,
    },
    always=("Load",),
)
frame.end("Checkpoints")
