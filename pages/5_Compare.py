"""Race two devices, see where timing goes wrong, and where the time goes."""

import streamlit as st

from core.config import FEEDS, IMAGE_MODELS, RunConfig
from core.ui import dataset, format, frame
from core.ui.compare import panels as compare
from core.ui.compare import race
from core.ui.course import lesson
from core.ui.server import engine
from core.ui.source import source

HERE = lesson("Compare")

frame.begin(HERE)
state = st.session_state
machine = engine().machine()
if machine is None:
    st.markdown(":material/hourglass: The workers are loading torch.")
    st.stop()
has_data = dataset.is_here(machine)
devices = [each.device for each in machine.devices]
task = "fashion-mnist" if has_data else "sprites"
records = compare.recordings()

st.subheader("The race")
if len(devices) == 1:
    st.markdown(
        "There is no accelerator here, so one CPU thread races all of them. The rules "
        "are the same as between a CPU and a GPU."
    )
with st.container(border=True):
    pair = race.pair(machine)
    wanted = None
    try:
        config, steps, repeats = race.settings(has_data)
        wanted = (config, pair, steps, repeats)
    except ValueError as error:
        st.warning(f"{error} Nothing can be started.", icon=":material/info:")
elsewhere = compare.of(records, "races")
compare.measure(
    "core.compare.race:race",
    "Start the race",
    "compare",
    wanted,
    "The race",
    lambda job: race.draw(
        job, [each for each in elsewhere if race.fits(each[1], race.gather(job))]
    ),
    ":material/flag: Both train the same model on the same batches and evaluate it, in "
    "turn, after a warm-up. Who wins, by how much and why appears here.",
)
for label, other in elsewhere:
    race.recorded(label, other)

st.subheader("Why is your timing wrong?")
guessed = compare.guess(len(devices) > 1)
compare.measure(
    "core.compare.timing_pitfalls:measure",
    "Time it",
    "time_it",
    (devices[0],) if guessed else None,
    "The measurement",
    lambda job: compare.lab(job, guessed),
    ":material/timer: Choose a guess, then time it: every call appears here.",
)
for label, other in compare.of(records, "labs"):
    with st.expander(f"Recorded: {label}"):
        compare.draw_lab(other)

st.subheader("Where the time goes")
st.markdown(
    "One training step with each feed on each device, taken apart by `torch.profiler`."
)
model = st.selectbox(
    "Model",
    IMAGE_MODELS,
    format_func=format.NAMES.__getitem__,
    key="profiled_model",
    width=152,
)
profiled = RunConfig.with_recipe(task=task, model=model)
feeds = ("dataloader", *(feed for feed in FEEDS if feed != "dataloader"))
parts_elsewhere = compare.of(records, "breakdowns")
profiling = compare.measure(
    "core.compare.step_profile:measure",
    "Take it apart",
    "take_apart",
    (profiled, tuple((feed, name) for name in devices for feed in feeds)),
    "The profile",
    lambda job: compare.breakdown(
        job, [e for e in parts_elsewhere if e[1].config.model == job.arguments[0].model]
    ),
    ":material/bar_chart: A bar for each, in its five parts, appears here, and which "
    "part is the bottleneck.",
)
if not profiling and parts_elsewhere:
    compare.draw_breakdown([], parts_elsewhere)

st.subheader("The crossover map")
st.markdown(
    "From which size on is the second contender worth it? A training step of a "
    "two-layer MLP is timed over batch size and width, coarse to fine, for as long as "
    f"you say. The contenders are those of the race: {pair[0].name} and {pair[1].name}."
)
budget = st.selectbox(
    "Time",
    compare.BUDGETS,
    index=1,
    format_func="{} seconds".format,
    key="budget",
    width=152,
)
compare.measure(
    "core.compare.crossover:measure",
    "Measure the map",
    "measure_map",
    (pair, float(budget)),
    "The map",
    compare.crossover,
    ":material/grid_on: The map appears here, cell by cell, with the line where both "
    "are equally fast.",
)
for label, other in compare.of(records, "crossovers"):
    with st.expander(f"Recorded: {label}"):
        compare.draw_map(other.cells, other.candidates)
        compare.map_caption(other)

st.subheader("The code that ran")
trial, timer, ranges, cell = st.tabs(["A heat", "Three ways", "The ranges", "A cell"])
with trial:
    st.markdown(
        "The race calls this for each contender in turn: the loops of the course, with "
        "a clock that is read when the device is idle. From `core/compare/race.py`."
    )
    st.code(source("core.compare.race:trial"), line_numbers=True)
with timer:
    st.markdown(
        "Naive, with synchronize, with warm-up. From `core/compare/timing_pitfalls.py`."
    )
    st.code(source("core.compare.timing_pitfalls:time_it"), line_numbers=True)
with ranges:
    st.markdown(
        "A step with a range around each part. From `core/compare/step_profile.py`."
    )
    st.code(source("core.compare.step_profile:step"), line_numbers=True)
with cell:
    st.markdown("What a cell of the map times. From `core/compare/crossover.py`.")
    st.code(source("core.compare.crossover:training_step"), line_numbers=True)

frame.question(
    "unsynchronized",
    "You time `model(x)` on a GPU with two looks at the clock and read 0.1 ms. "
    "What do you know?",
    {
        "The forward pass takes 0.1 ms": "Only if you waited for the device before "
        "both looks. The call returns when the work is queued, not when it is done.",
        "Queueing it takes 0.1 ms": "Yes. Synchronize before the clock starts and "
        "before it stops, leave the first calls out, and repeat.",
        "The GPU is broken": "It is well. You asked how long the call takes to return, "
        "and it returns at once.",
    },
    right="Queueing it takes 0.1 ms",
)
frame.end(HERE)
