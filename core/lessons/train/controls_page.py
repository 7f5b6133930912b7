"""A run's controls, which the page's address may set, and the run's start."""

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any

import streamlit as st

from core import config as configs
from core.config import CRITERIA_FOR, FAST, MODELS_FOR, RECIPES, RunConfig
from core.jobs.estimates import spoken
from core.runs import comparison
from core.ui import class_rules, controls, format, hosts, runs
from core.ui.course import link, page
from core.ui.runs import Run
from core.ui.server import engine, room, visitor
from to_device.errors import ExplainedError
from to_device.names import SIMULATED
from to_device.words import Words

SETTINGS = tuple(field.name for field in fields(RunConfig))
MORE = (  # the settings that are always in the expander "More settings"
    *("device", "host", "feed", "learning_rate", "schedule", "weight_decay", "seed"),
    *("augment", "half", "label_smoothing", "dropout", "normalize", "mirror"),
    "item_each_step",
)
EXACT = 2**53  # floats above this can't represent every whole number
OPEN = "more_settings"  # the key of the expander
LEFT = "left_run"  # in the session's state: the run shown before a start, and its time
LATE_SECONDS = 15.0  # for which a browser on a busy machine may name that run
BOTH = ("the usual setting", "the fast setting")
words = Words(__file__)


def preset(query: Mapping[str, str], has_data: bool) -> list[str]:
    """Set the controls by the page's address; return a sentence for each bad value."""
    state = st.session_state
    notices: list[str] = []
    if query or "task" not in state:
        config, notices = RunConfig.from_strings(query)
        use(config)
        state.task_is_default = "task" not in query
    if state.get("task_is_default"):
        default = RunConfig.task if has_data else "sprites"
        state.task = class_rules.fixed("task") or default
    if state.get("held") != (rules := class_rules.rules()):  # the class has new rules
        state.held = rules
        _fit()
        _remember()
    return notices


def _fit() -> None:
    """Change the settings that the class doesn't allow."""
    state = st.session_state
    state.update(class_rules.fitting({name: state[name] for name in SETTINGS}))


def use(config: RunConfig) -> None:
    st.session_state.update({"task_is_default": False} | vars(config))
    _fit()
    _remember()


def _remember() -> None:
    state = st.session_state
    state.untouched = {name: state[name] for name in SETTINGS}


def touched() -> bool:
    """Whether a person has changed the settings since the page set them."""
    state = st.session_state
    settings = (
        name for name in SETTINGS if name != "task" or not state.task_is_default
    )
    return any(state[name] != state.untouched[name] for name in settings)


def differ(config: RunConfig) -> bool:
    """Whether the controls show other settings than `config`."""
    try:
        return chosen() != config
    except ValueError:
        return True


def chosen() -> RunConfig:
    """The configuration that the controls show; raises ValueError if it is invalid."""
    state = st.session_state
    settings = {name: state[name] for name in SETTINGS}
    for name in configs.RANGES:
        value = float(settings[name])
        if value.is_integer() and value < EXACT:
            settings[name] = int(value)
    if settings["feed"] != "dataloader":
        settings |= {"num_workers": 0, "pin_memory": False}
    if not settings["pin_memory"]:
        settings["non_blocking"] = RunConfig.non_blocking
    return RunConfig(**settings)


def startable() -> bool:
    """Whether a run can have the settings on screen; if not, show why."""
    with controls.startable(st.container()):
        config = chosen()
        class_rules.rules().check(runs.RUN, (config,))
        if text := patience(config):
            st.caption(text)
        return True
    return False


def duration() -> None:
    """Say how long a run with the settings on screen takes, if something tells."""
    with suppress(ValueError):  # `startable` has said what is wrong
        if seconds := runs.expected_seconds(chosen()):
            text = f"About {format.roughly(seconds)} on this machine"
            st.caption(f":material/schedule: {text}")


def start(config: RunConfig | None = None) -> None:
    """Queue a run, by default with the settings that the controls show."""
    # This callback isn't in the page's own file: there, everything that the page has
    # drawn would stay in memory until the garbage collector runs.
    state = st.session_state
    try:
        if going_on := runs.going_on(visitor()):
            # The button was pressed twice: the address doesn't name the first run yet.
            state.run_id = going_on[-1].id
            state.notices = [
                "You already have a run in progress, so we didn't start a second one."
            ]
        else:
            before = state.get("run_id")
            state.run_id = runs.start(config or chosen())
            state[LEFT] = before, time.monotonic()
        st.query_params["run"] = state.run_id
    except (ValueError, ExplainedError) as error:
        state.notices = [f"{error} Nothing was started."]


def asked(run_id: str | None) -> str | None:
    """The run that the address names; None if it names the one left a moment ago.

    What the browser has sent before it knew of the new run still names the old one.
    """
    left, when = st.session_state.get(LEFT, (None, 0.0))
    is_late = run_id == left and time.monotonic() - when < LATE_SECONDS
    return None if is_late else run_id


def draw(devices: list[str]) -> None:
    if rules := _class_rules():
        st.markdown(f":small[:material/groups: {rules}]")
    task = st.session_state.task
    _choice("Task", "task", configs.TASKS, on_change=_task_was_chosen)
    if not class_rules.hides("model"):
        st.segmented_control(
            "Model",
            class_rules.among("model", MODELS_FOR[task]),
            required=True,
            format_func=lambda name: format.NAMES[name],
            on_change=_model_was_chosen,
            **_common("model"),
        )
    epochs, batch_size = st.columns(2)
    with epochs:
        _number("Epochs", "epochs")
    with batch_size:
        _number("Batch size", "batch_size")
    if not all(map(class_rules.hides, MORE)):
        more = st.expander("More settings", key=OPEN, on_change="rerun")
        if more.open:
            with more:
                _more(task, devices)


def _class_rules() -> str:
    """A summary of the class's rules for a run; "" without rules."""
    rules, parts = class_rules.rules(), []
    if rules.epochs:
        parts.append(f"up to {format.counted(rules.epochs, 'epoch')}")
    if rules.runs:
        parts.append(f"up to {format.counted(rules.runs, 'run')} each")
    if rules.seconds:
        parts.append(f"up to {spoken(rules.seconds)} per run")
    for allowed in filter(None, (rules.models, rules.devices)):
        parts.append(f"{' or '.join(format.NAMES[name] for name in allowed)} only")
    own = ("seed",) if rules.own_seeds else ()
    names = [
        name for name in rules.fixed if not class_rules.hides(name) and name not in own
    ]
    if names:
        fixed = " and ".join(configs.LABELS[name].lower() for name in names)
        parts.append(f"the same {fixed} for everybody")
    if own and "seed" in rules.fixed:
        parts.append(f"your own seed ({rules.fixed['seed']})")
    whose = "your class"
    if room().member(visitor()) is None and not room().is_teacher(visitor()):
        whose = "the class that is using this machine"
    return f"In {whose}: {', '.join(parts)}." if parts else ""


def _more(task: str, devices: list[str]) -> None:
    if len(CRITERIA_FOR[task]) > 1:
        _choice("Criterion", "criterion", CRITERIA_FOR[task])
    if machines := hosts.options(st.session_state.host):
        _choice("Machine", "host", machines)
    _choice("Device", "device", ("auto", *devices))
    _choice("Feed", "feed", configs.FEEDS)
    _number("Learning rate", "learning_rate", 1e-4)
    _choice("Schedule", "schedule", configs.SCHEDULES)
    _number("Weight decay", "weight_decay", 1e-2)
    _number("Seed", "seed")
    if st.session_state.feed == "dataloader":
        _number("Loader workers", "num_workers")
        only_cpu = devices == ["cpu"]
        label = "Pinned memory: no accelerator here" if only_cpu else "Pinned memory"
        _toggle(label, "pin_memory", only_cpu)
        if st.session_state.pin_memory:
            _toggle("Non-blocking copies", "non_blocking", only_cpu)
    if task in configs.IMAGE_TASKS:
        _toggle("Flip images", "augment")
        _tuning()
    _toggle(configs.LABELS["item_each_step"], "item_each_step")


def _tuning() -> None:
    """The settings that only the fast setting changes, if any of them is in use."""
    state = st.session_state
    if all(state[name] == value for name, value in configs.PLAIN.items()):
        return
    for name, value in configs.PLAIN.items():
        if isinstance(value, bool):
            _toggle(configs.LABELS[name], name)
        else:
            _number(configs.LABELS[name], name, 0.05)


def patience(config: RunConfig) -> str:
    """How long a CNN takes to train here; "" for a faster model."""
    if config.model != "cnn" or config.device == SIMULATED:
        return ""
    same = {name: getattr(config, name) for name in ("task", "model", "feed", "device")}
    for before in runs.stored_runs(status="finished", **same):
        if before.seconds and before.batch_size == config.batch_size:
            seconds = before.seconds / before.epochs * config.epochs
            return f"An earlier run makes us expect about {format.roughly(seconds)}."
    return words("patience")


def _toggle(label: str, key: str, disabled: bool = False) -> None:
    if not class_rules.hides(key):
        common = _common(key)
        st.toggle(label, **common | {"disabled": disabled or common["disabled"]})


def _choice(label: str, key: str, options: Sequence[str], **more: Any) -> None:
    if class_rules.hides(key):
        return
    options = class_rules.among(key, options)
    if st.session_state[key] not in options:  # the address may name a missing device
        options = (*options, st.session_state[key])
    common = _common(key) | {"width": "stretch"}
    controls.choice(label, options=options, **common, **more)


def _number(label: str, key: str, step: float = 1.0) -> None:
    # Take any float, and let RunConfig say what is wrong. A widget of whole numbers
    # would silently take 2.5 as 2, and a widget with limits would keep its last value.
    if not class_rules.hides(key):
        st.number_input(label, step=step, format="%g", **_common(key))


def _common(key: str) -> dict[str, Any]:
    return {
        "key": key,
        "persist_state": "session",
        "help": words.table("help").get(key),
        "disabled": class_rules.fixed(key) is not None,
    }


def fast_setting(compared: Collection[str] = ()) -> None:
    """Draw the button of the fast setting, and what it changes or whether it is faster.

    `compared` has the ids of the runs that the page compares elsewhere.
    """
    state = st.session_state
    if state.model not in FAST or class_rules.holds(FAST["ann"]):
        return
    fast = not _is_fast()
    # Without help=, since Streamlit draws a button with a tooltip twice, once hidden.
    st.button(
        "Use the fast setting" if fast else "Back to the usual setting",
        icon=":material/fast_forward:" if fast else ":material/undo:",
        key="fast_setting",
        type="tertiary",
        on_click=_use_recipe,
        args=(fast,),
    )
    batch = FAST[state.model]["batch_size"]
    text, both = words("fast", batch=batch), both_settings(state.task, state.model)
    if not both:
        text = f"{text} {words('is_it')}"
    elif not {run.id for run, _ in both} <= {*compared}:
        text = comparison.finding(*zip(*both, strict=True))
    st.markdown(f":small[{text}]")
    tab = {"tab": "Seconds to 92.5%"}
    link(page("Speed"), "Why the fast setting is fast", query_params=tab)


def both_settings(task: str, model: str) -> list[tuple[Run, str]]:
    """The runs with the usual and the fast setting, named; [] until both have run."""
    plain_runs: list[tuple[Run, str]] = []
    for job in engine().jobs(runs.RUN, visitor()):
        config = job.arguments[0]
        settings = {"task": task, "model": model, "device": config.device}
        for fast, name in enumerate(BOTH):
            recipe = RunConfig.with_recipe(
                fast=bool(fast), seed=config.seed, **settings
            )
            is_plain = job.status == "finished" and not job.progress.changes
            # Runs on the simulated accelerator are left out, since they aren't timed.
            if is_plain and config == recipe and config.device != SIMULATED:
                plain_runs.append((runs.view(job), name))
    on = [runs.summary(run).device_name for run, _ in plain_runs]
    plain_runs = [
        pair for pair, device in zip(plain_runs, on, strict=True) if device == on[-1]
    ]
    both = {name for _, name in plain_runs} == set(BOTH)
    return plain_runs if both else []


def _is_fast() -> bool:
    """Whether the controls show the fast setting of any model."""
    return any(
        all(st.session_state[name] == value for name, value in recipe.items())
        for recipe in FAST.values()
    )


def _use_recipe(fast: bool) -> None:
    state = st.session_state
    fast = fast and state.model in FAST
    config = RunConfig.with_recipe(task=state.task, model=state.model, fast=fast)
    # Change only the settings of the fast recipes, so that going back restores them.
    state.update({name: getattr(config, name) for name in FAST["ann"]})
    _fit()


def _model_was_chosen() -> None:
    """Use the new model's recipe, or its fast recipe if a fast recipe was in use."""
    if _is_fast():
        _use_recipe(fast=True)
    else:
        st.session_state.update(RECIPES[st.session_state.model])
        _fit()


def _task_was_chosen() -> None:
    """Choose another model and criterion if the chosen ones don't fit the new task."""
    state = st.session_state
    state.task_is_default = False
    # If the old task's run has ended, put it aside. A live run stays on the page.
    run = runs.run(state.get("run_id"))
    state.aside = run.id if run and run.job.ended else ""
    if state.model not in MODELS_FOR[state.task]:
        state.model = MODELS_FOR[state.task][0]
        _model_was_chosen()
