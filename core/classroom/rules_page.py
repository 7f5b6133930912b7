"""A class's rules, which its teacher sets, and a link to Train with presets.

The server enforces limits and fixed settings. Hidden controls are just not drawn, and
anybody can change a preset.
"""

from typing import Any
from urllib.parse import urlencode
from zlib import crc32

import streamlit as st

from core.classroom.joining_page import address
from core.classroom.room import Teacher
from core.classroom.rules import CONTROLS, QUESTS, SETTINGS, WITHIN, Rules
from core.classroom.sign_in_page import act
from core.config import CHOICES, DEVICES, LABELS, MODELS, RunConfig
from core.store.tables import Class
from core.ui import controls, format, hosts
from core.ui.server import room, tell_error
from to_device.words import Words

words = Words(__file__)


UNSAVED = "unsaved_rules"  # key of the id of the class whose rules aren't saved
REFUSED = "rules_error"  # key of why the rules weren't saved
# What is entered stays while another tab or page is open, until it is saved.
KEPT: dict[str, Any] = {"persist_state": "session"}


def are_unsaved(classroom: Class) -> bool:
    return bool(st.session_state.get(UNSAVED) == classroom.id)


def draw(classroom: Class) -> None:
    """Draw limits on the left, controls on the right, and a button that saves them."""
    rules: Rules = classroom.rules
    # The widgets' keys depend on the rules. So if another tab saves other rules, this
    # tab draws new widgets with those rules. Its old widgets would overwrite the rules.
    suffix = f"{classroom.id}_{crc32(repr(rules).encode())}"
    left, right = st.columns(2, gap="medium")
    with left:
        values = _limits(suffix, rules)
    with right:
        presets, link = _controls(suffix, rules)
    # The button has no callback, because Streamlit would call it with the values from
    # before the newest change.
    values |= presets
    changed = [name for name in values if values[name] != getattr(rules, name)]
    st.session_state[UNSAVED] = classroom.id if changed else ""
    with st.container(key="rules_bar"):  # stays on the screen, as page.css says
        with st.container(horizontal=True, vertical_alignment="center"):
            saves = st.button(
                "Save the rules",
                type="primary" if changed else "secondary",
                icon=":material/save:",
                key="save_rules",
            )
            if changed:
                st.badge("Rules not saved", icon=":material/edit:", color="orange")
        if saves and changed:
            act(_save, classroom, values, at=REFUSED)
            if "rules_saved" in st.session_state:
                st.rerun()
        tell_error(REFUSED)
        if st.session_state.pop("rules_saved", False):
            st.success(
                "Saved. The rules apply from now on. Jobs that are already in the "
                "queue keep their settings, but get the new time limit.",
                icon=":material/check:",
            )
    st.markdown("**This link opens Train with the preset settings:**")
    st.code(link, language=None, wrap_lines=True)


def _limits(suffix: str, rules: Rules) -> dict[str, Any]:
    st.markdown("**What each person may do**")
    values: dict[str, Any] = {}
    with st.grid(columns=2, min_column_width=140):
        for name, label in words.table("limits").items():
            values[name] = st.number_input(
                label,
                value=getattr(rules, name),
                min_value=1,
                step=1,
                placeholder="Any",
                key=f"{name}_{suffix}",
                **KEPT,
            )
        percent = st.number_input(
            "Target, % accuracy",
            value=round(100 * rules.target, 1),
            min_value=1.0,
            max_value=99.9,
            step=0.5,
            format="%g",
            key=f"target_{suffix}",
            **KEPT,
        )
    goals = words.table("quests")
    fields = {"target": f"{percent:g}", "task": "the task", "within": WITHIN}
    values["target"] = percent / 100
    values["quest"] = st.selectbox(
        "The quest",
        QUESTS,
        index=QUESTS.index(rules.quest),
        format_func=lambda quest: goals[quest].format(**fields),
        key=f"quest_{suffix}",
        **KEPT,
    )
    values["own_seeds"] = st.toggle(
        "A different seed for each member",
        rules.own_seeds,
        key=f"own_seeds_{suffix}",
        **KEPT,
        help=words("rules.own_seeds"),
    )
    for name, options in (("models", MODELS), ("devices", DEVICES)):
        values[name] = tuple(
            st.multiselect(
                name.capitalize(),
                options,
                default=getattr(rules, name),
                format_func=lambda option: format.NAMES.get(option, option),
                placeholder="All",
                key=f"{name}_{suffix}",
                **KEPT,
            )
        )
    hide = "Hide the names on the projector"
    key = f"anonymous_{suffix}"
    values["anonymous"] = st.toggle(hide, rules.anonymous, key=key, **KEPT)
    return values


def _controls(suffix: str, rules: Rules) -> tuple[dict[str, Any], str]:
    """Draw the controls for hidden, fixed and preset settings.

    Returns the hidden and fixed settings, as fields of Rules, and a link that opens
    Train with the presets.
    """
    st.markdown("**What they see on Train, Compare, and Speed**")
    hidden = st.multiselect(
        "Hidden controls",
        CONTROLS,
        default=rules.hidden,
        format_func=LABELS.__getitem__,
        placeholder="None",
        key=f"hidden_{suffix}",
        **KEPT,
    )
    preset = st.multiselect(
        "Preset or fixed settings",
        SETTINGS,
        default=list(rules.fixed),
        format_func=LABELS.__getitem__,
        placeholder="None",
        key=f"preset_{suffix}",
        **KEPT,
    )
    values, fixed = {}, {}
    for name in preset:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            values[name] = _value(suffix, name, rules)
            key = f"fixed_{name}_{suffix}"
            if st.toggle("Fixed for all", name in rules.fixed, key=key, **KEPT):
                fixed[name] = values[name]
    link = address("Train", urlencode(values))
    return {"hidden": tuple(hidden), "fixed": fixed}, link


def _value(suffix: str, name: str, rules: Rules) -> str:
    """Draw a control for a setting; returns its value as text, as in an address."""
    value = rules.settings.get(name, getattr(RunConfig.with_recipe(), name))
    label, key = LABELS[name], f"value_{name}_{suffix}"
    if isinstance(value, str):
        options = CHOICES.get(name) or hosts.options(value) or [value]
        return str(controls.choice(label, key, options, index=options.index(value)))
    if isinstance(value, bool):
        return str(st.toggle(label, value, key=key, **KEPT)).lower()
    if isinstance(value, int):
        field = {"key": key, "width": 190, **KEPT}
        return str(st.number_input(label, value=value, step=1, **field))
    field = {"key": key, "width": 190, "format": "%g", **KEPT}
    number = st.number_input(label, value=value, step=1e-4, **field)
    return f"{number:g}"


def _save(teacher: Teacher, classroom: Class, values: dict[str, Any]) -> None:
    changes = "; ".join(
        f"{name.replace('_', ' ')}: {value}"
        for name, value in values.items()
        if value != getattr(classroom.rules, name)
    )
    log = f"changed the rules: {changes}"
    room().change(teacher, classroom.id, log, rules=Rules(**values))
    st.session_state.rules_saved, st.session_state[UNSAVED] = True, ""
