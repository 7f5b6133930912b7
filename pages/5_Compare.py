"""Race two devices, see where timing goes wrong, and where the time goes."""

import streamlit as st

from core.ui import dataset, frame
from core.ui.compare import crossover, race, records, step_profile, timing_pitfalls
from core.ui.source import code_tabs

frame.begin("Compare")
machine = frame.machine()
devices = [each.device for each in machine.devices]
recorded = records.recordings()

st.subheader("The race")
if len(devices) == 1:
    st.markdown(
        "There is no accelerator here, so one CPU thread races all of them. The rules "
        "are the same as between a CPU and a GPU."
    )
pair = race.draw(machine, dataset.is_here(machine), recorded)

st.subheader("Why is your timing wrong?")
timing_pitfalls.draw(devices, recorded)

st.subheader("Where the time goes")
st.markdown(
    "One training step with each feed on each device, taken apart by `torch.profiler`."
)
step_profile.draw(dataset.default_task(machine), devices, recorded)

st.subheader("The crossover map")
st.markdown(
    "From which size on is the second contender worth it? A training step of a "
    "two-layer MLP is timed over batch size and width, coarse to fine, for as long as "
    f"you say. The contenders are those of the race: {pair[0].name} and {pair[1].name}."
)
crossover.draw(pair, recorded)

st.subheader("The code that ran")
code_tabs(
    (
        "A heat",
        "The race calls this for each contender in turn: the loops of the course, with "
        "a clock that is read when the device is idle. From `core/compare/race.py`.",
        "core.compare.race:trial",
    ),
    (
        "Three ways",
        "Naive, with synchronize, with warm-up. From "
        "`core/compare/timing_pitfalls.py`.",
        "core.compare.timing_pitfalls:time_it",
    ),
    (
        "The ranges",
        "A step with a range around each part. From `core/compare/step_profile.py`.",
        "core.compare.step_profile:step",
    ),
    (
        "A cell",
        "What a cell of the map times. From `core/compare/crossover.py`.",
        "core.compare.crossover:training_step",
    ),
)

frame.end("Compare")
