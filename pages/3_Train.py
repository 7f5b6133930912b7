"""Train a model, live, and compare it with the runs before."""

from dataclasses import fields

import streamlit as st

from core import config as configs
from core.config import RECIPES, RunConfig
from core.reports import Download
from core.ui import frame, live, runs, words
from core.ui.course import lesson
from core.ui.server import engine, visitor
from core.ui.source import lines_with, source

FETCH = "core.fashion_mnist:download"
HERE = lesson("Train")

frame.begin(HERE)
frame.wait_for_machine()
state = st.session_state
machine = engine().machine()
data = machine["fashion_mnist"] if machine else {"source": "", "problem": None}
has_data = data["source"] is not None and data["problem"] is None

# What the address asks for: a run to show, or settings to begin with.
query = dict(st.query_params)
asked_run = query.pop("run", None)
if asked_run and asked_run != state.get("run_id"):
    state.run_id = asked_run
if query:
    preset, state.notices = RunConfig.from_strings(query)
    for field in fields(RunConfig):
        state[field.name] = getattr(preset, field.name)
    for name in query:
        del st.query_params[name]
if "task" not in state:
    for field in fields(RunConfig):
        state[field.name] = field.default
    state.task_is_default = True
if state.get("task_is_default") and not has_data:
    state.task = "sprites"

for notice in state.pop("notices", []):
    st.warning(notice, icon=":material/info:")
if machine and data["problem"]:
    st.error(
        f"{data['problem']} Until then, train on the sprites.",
        title="Fashion-MNIST is damaged",
        icon=":material/error:",
    )
elif machine and not has_data:
    st.info(
        "Fashion-MNIST is not on this machine, so you train on the **sprites**: the "
        "same ten kinds of clothes, drawn by a program. Everything else is the same.",
        icon=":material/info:",
    )


def show_fetch(job) -> None:
    if job.status == "failed":
        st.error(job.message, title="Fashion-MNIST was not fetched")
    elif job.status == "finished":
        st.success("Fashion-MNIST is here. Choose it as the task.")
    else:
        progress = job.events[-1] if job.events else None
        done, total = 0, 1
        if isinstance(progress, Download):
            done, total = progress.done_bytes, progress.total_bytes
        text = f"Fetching Fashion-MNIST: {words.size(done)} of {words.size(total)}"
        st.progress(min(1.0, done / total), text if done else "Asking the mirror")


if machine and not has_data:
    fetching = [job for job in engine().jobs(FETCH) if not job.ended]
    if fetching:
        state.fetch_id = fetching[0].id
    elif st.button("Fetch Fashion-MNIST (31 MB)", icon=":material/download:"):
        state.fetch_id = engine().submit(FETCH, lane="lab")
if "fetch_id" in state:
    live.follow_job(state.fetch_id, "Fetching Fashion-MNIST", show_fetch)


def use_recipe() -> None:
    """Another model brings its own recipe."""
    for name, value in RECIPES[state.model].items():
        state[name] = value


def task_was_chosen() -> None:
    state.task_is_default = False


def start() -> None:
    """Queue the run that the controls describe."""
    settings = {field.name: state[field.name] for field in fields(RunConfig)}
    if state.feed != "dataloader":
        settings |= {"num_workers": 0, "pin_memory": False}
    try:
        config = RunConfig(**settings)
    except ValueError as error:
        state.notices = [f"{error} Nothing was started."]
        return
    state.run_id = runs.start(config)


def choice(label: str, key: str, options, **more) -> None:
    st.segmented_control(
        label,
        options,
        required=True,
        format_func=lambda value: words.NAMES[value],
        key=key,
        persist_state="session",
        **more,
    )


def number(label: str, key: str, low, high, **more) -> None:
    st.number_input(
        label, low, high, key=key, width=150, persist_state="session", **more
    )


if "run_id" not in state and (own := runs.runs(visitor())):
    state.run_id = own[-1].id  # another tab, or a reload: here it goes on
current = runs.run(state.get("run_id"))
alive = current is not None and not current.job.ended
mine = current is not None and current.job.owner == visitor()
devices = [d["device"].partition(":")[0] for d in machine["devices"]] if machine else []

with st.container(border=True):
    with st.container(horizontal=True, vertical_alignment="bottom"):
        choice("Task", "task", configs.TASKS, on_change=task_was_chosen)
        choice("Model", "model", configs.MODELS, on_change=use_recipe)
        choice(
            "Device",
            "device",
            ("auto", *(devices or ["cpu"])),
            help="Auto is the accelerator if there is one, else the CPU.",
        )
        choice(
            "Feed",
            "feed",
            configs.FEEDS,
            help="Where batches come from: decoded once into memory, living on the "
            "device, or the textbook's DataLoader that opens every image every time.",
        )
        choice(
            "Learning-rate schedule",
            "schedule",
            configs.SCHEDULES,
            help="One-cycle climbs to the rate below, then falls to nearly nothing.",
        )
        st.toggle(
            "Flip images",
            key="augment",
            persist_state="session",
            help="Mirror half of the training images, drawn anew each epoch.",
        )
    with st.container(horizontal=True):
        number("Epochs", "epochs", *configs.RANGES["epochs"])
        number("Batch size", "batch_size", *configs.RANGES["batch_size"], step=16)
        number("Learning rate", "learning_rate", 0.0, None, step=1e-4, format="%g")
        number("Seed", "seed", *configs.RANGES["seed"])
        if state.feed == "dataloader":
            number("Loader workers", "num_workers", *configs.RANGES["num_workers"])
    with st.container(horizontal=True):
        st.button(
            "Start training",
            type="primary",
            icon=":material/play_arrow:",
            key="start_training",
            on_click=start,
            disabled=alive and mine,
        )
        if alive and mine:
            st.button(
                "Cancel",
                icon=":material/stop:",
                key="cancel_run",
                on_click=engine().cancel,
                args=(current.id,),
            )

if current is not None:
    st.query_params["run"] = current.id
    live.follow_run(current.id)
    if current.job.ended and current.history:
        with st.container(horizontal=True, vertical_alignment="center"):
            if current.result is not None:
                st.page_link(
                    "pages/4_Evaluate.py",
                    label="See what it got right and wrong",
                    icon=":material/fact_check:",
                    query_params={"run": current.id},
                )
            st.page_link(
                HERE.file,
                label="Link to this run, for anyone",
                icon=":material/link:",
                query_params={"run": current.id},
            )
else:
    if state.get("run_id"):
        st.warning(
            "This server does not know that run. Runs are kept until the server "
            "restarts, the newest 500 of them.",
            icon=":material/search_off:",
        )
        st.query_params.pop("run", None)
        del state.run_id
    going = [each for each in runs.runs() if not each.job.ended]
    if going:
        st.page_link(
            HERE.file,
            label=f"A run is going on here, {len(going) - 1} waiting: watch it",
            icon=":material/visibility:",
            query_params={"run": going[0].id},
        )
    st.markdown(
        ":material/show_chart: The loss of your run appears here, live, a moment after "
        "you press **Start training**. The settings above are a good first run."
    )

shown = current.config.model if current else state.model
st.subheader("The code that ran" if current else "The code that will run")
loop, model, moves = st.tabs(["The loop", "The model", "The two moves"])
with loop:
    st.markdown(
        "The five steps that never change: `zero_grad`, forward, loss, `backward`, "
        "`step`. From `core/loops.py`."
    )
    st.code(source("core/loops.py", "train_epoch"), line_numbers=True)
with model:
    st.markdown("The layers, from `core/models.py`.")
    st.code(source("core/models.py", shown.upper()), line_numbers=True)
with moves:
    st.markdown(
        "The model is moved **once**, before the loop; the batch is moved **in every "
        "step**, inside it. Forget one, and PyTorch says that it expected all tensors "
        "to be on the same device."
    )
    st.code(
        "# once, in core/run.py\n"
        + lines_with("core/run.py", "run", ".to(device)")
        + "\n\n# in every step, in core/loops.py\n"
        + lines_with("core/loops.py", "train_epoch", ".to(device)")
    )

frame.question(
    "batch_size",
    "You make the batch four times as large and train for as many epochs. "
    "What becomes of the steps?",
    {
        "As many steps as before": "An epoch is one pass over all images. With four "
        "times as many in a step, a quarter of the steps is enough. Try it above and "
        "compare the runs over steps.",
        "A quarter of the steps": "Yes. Each step costs a little more, but there are "
        "fewer of them, so an epoch is faster; and the weights are updated less often, "
        "so it may learn less in it. Compare your runs over seconds, then over epochs.",
        "Four times the steps": "The other way round: an epoch is one pass over all "
        "images, and a larger batch takes a larger bite. Try it above and compare.",
    },
    right="A quarter of the steps",
)
frame.end(HERE)
