"""The controls of a training run: their presets, their widgets, what they make."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import streamlit as st

from core import config as configs
from core.config import CRITERIA_FOR, FAST, MODELS_FOR, RECIPES, RunConfig
from core.errors import ExplainedError
from core.ui import controls, format, hosts, runs
from core.ui.classroom import held
from core.ui.course import page
from core.ui.links import link
from core.ui.server import visitor
from core.ui.train import beside

SETTINGS = tuple(field.name for field in fields(RunConfig))
MORE = (  # that are always among "More settings"
    *("device", "host", "feed", "learning_rate", "schedule", "weight_decay", "seed"),
    "augment",
)
OPEN = "more_settings"  # the key that says whether these are drawn
HELP = {
    "criterion": "MSE, or a normal distribution's likelihood with a noise scale that "
    "is learned: a loss with a parameter of its own.",
    "device": "Auto is the accelerator if there is one, else the CPU.",
    "host": "Any is the first free machine. Pick one, and the run waits for it.",
    "feed": "Where batches come from: decoded once into memory, living on the device, "
    "or the textbook's DataLoader that fetches every sample by itself.",
    "schedule": "Of the learning rate: one-cycle climbs to it, then falls to nothing.",
    "weight_decay": "How strongly AdamW pulls the weights toward 0.",
    "num_workers": "Processes that open images while the model trains; 0 is none.",
    "pin_memory": "Batches wait in page-locked memory, from which an accelerator "
    "fetches them by itself. Only on the way to one does that save anything.",
    "non_blocking": "The CPU goes on while a batch travels to the accelerator. From "
    "memory that is not pinned it could not: such a batch is copied to pinned memory "
    "on the way, and the CPU waits for that.",
    "augment": "Mirror half of the training images, drawn anew each epoch.",
}


def preset(query: Mapping[str, str], has_data: bool) -> list[str]:
    """Set the controls as the address asks; returns a sentence for each bad value.

    Without Fashion-MNIST the task is sprites, unless somebody asks for another.
    """
    state = st.session_state
    notices: list[str] = []
    if query or "task" not in state:
        config, notices = RunConfig.from_strings(query)
        use(config)
        state.task_is_default = "task" not in query
    if state.get("task_is_default"):
        state.task = RunConfig.task if has_data else "sprites"
    if state.get("held") != (rules := held.rules()):  # since the class has opened, say
        state.held = rules
        _fit()
    return notices


def _fit() -> None:
    """Change what the class does not leave to choose, or not as it stands."""
    state = st.session_state
    state.update(held.fitting({name: state[name] for name in SETTINGS}))


def use(config: RunConfig) -> None:
    """Set the controls to these settings."""
    st.session_state.task_is_default = False
    for name in SETTINGS:
        st.session_state[name] = getattr(config, name)
    _fit()


def differ(config: RunConfig) -> bool:
    """Whether the controls show other settings."""
    try:
        return chosen() != config
    except ValueError:
        return True


def chosen() -> RunConfig:
    """The configuration that the controls show; ValueError where it can't be."""
    state = st.session_state
    settings = {name: state[name] for name in SETTINGS}
    if settings["feed"] != "dataloader":
        settings |= {"num_workers": 0, "pin_memory": False}
    if not settings["pin_memory"]:
        settings["non_blocking"] = RunConfig.non_blocking
    return RunConfig(**settings)


def startable() -> bool:
    """Whether a run can have the settings that are shown; if not, it says why."""
    with controls.startable(st.container()):
        return bool(chosen())
    return False


def start(config: RunConfig | None = None) -> None:
    """Queue a run, else the one that the controls describe.

    For a button. Not in the page's own file: a function there would hold all that the
    page has drawn from until the garbage collector comes.
    """
    state = st.session_state
    try:
        if going_on := runs.going_on(visitor()):
            # A second press comes with the address that was there before the first.
            state.run_id = going_on[-1].id
            state.notices = [
                "You already have a run in progress; it was not started twice."
            ]
        else:
            state.run_id = runs.start(config or chosen())
        st.query_params["run"] = state.run_id
    except (ValueError, ExplainedError) as error:
        state.notices = [f"{error} Nothing was started."]


def draw(devices: list[str], folded: bool) -> None:
    """All of them, for a machine with these devices; `folded`, with the fast setting.

    Else that comes below the button that starts.
    """
    if folded:
        with st.expander("Settings", icon=":material/tune:"):
            _draw(devices)
            fast_setting()
    else:
        _draw(devices)


def _draw(devices: list[str]) -> None:
    """Those that are turned most, then the others."""
    if told := held.sentence():
        st.markdown(f":small[:material/groups: {told}]")
    task = st.session_state.task
    _choice("Task", "task", configs.TASKS, on_change=_task_was_chosen)
    if not held.hides("model"):
        st.segmented_control(
            "Model",
            held.among("model", MODELS_FOR[task]),
            required=True,
            format_func=lambda name: format.NAMES[name],
            on_change=_model_was_chosen,
            **_common("model"),
        )
    epochs, batch_size = st.columns(2)
    with epochs:
        _number("Epochs", "epochs", 1)
    with batch_size:
        _number("Batch size", "batch_size", 1)
    if not held.hides_all(MORE):
        more = st.expander("More settings", key=OPEN, on_change="rerun")
        if more.open:
            with more:
                _more(task, devices)


def _more(task: str, devices: list[str]) -> None:
    if len(CRITERIA_FOR[task]) > 1:
        _choice("Criterion", "criterion", CRITERIA_FOR[task])
    if machines := hosts.options(st.session_state.host):
        _choice("Machine", "host", machines)
    _choice("Device", "device", ("auto", *devices))
    _choice("Feed", "feed", configs.FEEDS)
    _number("Learning rate", "learning_rate", 1e-4, format="%g")
    _choice("Schedule", "schedule", configs.SCHEDULES)
    _number("Weight decay", "weight_decay", 1e-2, format="%g")
    _number("Seed", "seed", 1)
    if st.session_state.feed == "dataloader":
        _number("Loader workers", "num_workers", 1)
        none = devices == ["cpu"]
        label = "Pinned memory" + ": no accelerator here" * none
        _toggle(label, "pin_memory", none)
        if st.session_state.pin_memory:
            _toggle("Non-blocking copies", "non_blocking", none)
    if task in configs.IMAGE_TASKS:
        _toggle("Flip images", "augment")


def _toggle(label: str, key: str, disabled: bool = False) -> None:
    if not held.hides(key):
        common = _common(key)
        st.toggle(label, **common | {"disabled": disabled or common["disabled"]})


def _choice(label: str, key: str, options: Sequence[str], **more: Any) -> None:
    if held.hides(key):
        return
    options = held.among(key, options)
    if st.session_state[key] not in options:  # cuda asked for where there is none
        options = (*options, st.session_state[key])
    common = _common(key) | {"width": "stretch"}
    controls.choice(label, options=options, **common, **more)


def _number(label: str, key: str, step: float, **more: Any) -> None:
    # Without limits here: a widget drops what it does not allow without a word, and
    # trains with the value before. RunConfig says what is wrong.
    if not held.hides(key):
        st.number_input(label, step=step, **_common(key), **more)


def _common(key: str) -> dict[str, Any]:
    """What every control has."""
    return {
        "key": key,
        "persist_state": "session",
        "help": HELP.get(key),
        "disabled": held.fixed(key) is not None,
    }


def fast_setting() -> None:
    """The button that sets the controls to the fast setting, and back again."""
    if st.session_state.model not in FAST or held.holds(FAST["ann"]):
        return
    fast = not _is_fast()
    # Without help=: a button with a tooltip stands in the page twice, once hidden.
    st.button(
        "Use the fast setting" if fast else "Back to the default setting",
        icon=":material/fast_forward:" if fast else ":material/undo:",
        key="fast_setting",
        type="tertiary",
        on_click=_use_recipe,
        args=(fast,),
    )
    state = st.session_state
    text = beside.both_settings(state.task, state.model) or (
        "All data on the device, larger batches, and a learning rate that rises, then "
        "falls to nothing. Is it faster here? Train once with each setting, and the "
        "answer stands here."
    )
    st.markdown(f":small[{text}]")
    link(page("Speed"), "What makes it fast")


def _is_fast() -> bool:
    """Whether the controls are at the fast setting, be it of this model or another."""
    return any(
        all(st.session_state[name] == value for name, value in recipe.items())
        for recipe in FAST.values()
    )


def _use_recipe(fast: bool) -> None:
    """Set the controls to the model's recipe: the fast one if there is, or the default.

    All that a fast recipe sets, so that the way back from it is a whole one.
    """
    state = st.session_state
    fast = fast and state.model in FAST
    config = RunConfig.with_recipe(task=state.task, model=state.model, fast=fast)
    for name in next(iter(FAST.values())):
        state[name] = getattr(config, name)
    _fit()


def _model_was_chosen() -> None:
    """Another model brings its own recipe, the fast one where that was in use."""
    if _is_fast():
        _use_recipe(fast=True)
    else:
        st.session_state.update(RECIPES[st.session_state.model])
        _fit()


def _task_was_chosen() -> None:
    """A task brings a model and a criterion, unless those that are chosen fit."""
    state = st.session_state
    state.task_is_default = False
    # A run of another task that has ended steps aside; one that goes on is watched.
    shown = runs.run(state.get("run_id"))
    state.aside = shown.id if shown and shown.job.ended else ""
    if state.criterion not in CRITERIA_FOR[state.task]:
        state.criterion = CRITERIA_FOR[state.task][0]
    if state.model not in MODELS_FOR[state.task]:
        state.model = MODELS_FOR[state.task][0]
        _model_was_chosen()
