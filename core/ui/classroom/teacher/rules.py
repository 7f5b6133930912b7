"""What students may do, and what they see: the rules of a class, and a link to start.

What is limited or fixed holds on the server. What is hidden is only not drawn, and what
the link presets may be changed.
"""

from typing import Any
from urllib.parse import urlencode
from zlib import crc32

import streamlit as st

from core.classroom.room import Teacher
from core.classroom.rules import CONTROLS, SETTINGS, Rules
from core.config import CHOICES, DEVICES, LABELS, MODELS, RunConfig
from core.store.classes import Class
from core.ui import controls, format, hosts
from core.ui.classroom.door import address
from core.ui.classroom.teacher.acts import act
from core.ui.server import room

CALLED = LABELS | {"steps": "Steps", "repeats": "Repeats", "images": "Images per epoch"}


def draw(chosen: Class) -> None:
    """Limits on the left, controls on the right; nothing changes until it is saved."""
    rules: Rules = chosen.rules
    # Rules that were changed elsewhere meanwhile are shown, not written over.
    of = f"{chosen.id}_{crc32(repr(rules).encode())}"
    left, right = st.columns(2, gap="medium")
    with left:
        limits = _limits(of, rules)
    with right:
        shown, link = _controls(of, rules)
    # No callback: it would save what was there before the newest change.
    label, icon = "Save the rules", ":material/save:"
    if st.button(label, type="primary", icon=icon, key="save_rules"):
        act(_save, chosen.id, limits | shown)
        st.rerun()
    st.markdown("**The link that presets Train**, for everybody in the room:")
    st.code(link, language=None, wrap_lines=True)


def _limits(of: str, rules: Rules) -> dict[str, Any]:
    st.markdown("**What each may do**")
    found: dict[str, Any] = {}
    with st.grid(columns=2, min_column_width=140):
        for name, label in (
            ("runs", "Runs each"),
            ("epochs", "Most epochs"),
            ("seconds", "Seconds a job"),
        ):
            found[name] = st.number_input(
                label,
                value=getattr(rules, name),
                min_value=1,
                step=1,
                placeholder="Any",
                key=f"{name}_{of}",
            )
        percent = round(100 * rules.target, 1)
        found["target"] = st.number_input(
            "Target, % accuracy",
            value=percent,
            min_value=1.0,
            max_value=99.9,
            step=0.5,
            format="%g",
            key=f"target_{of}",
        )
    found["target"] /= 100
    for name, label, options in (
        ("models", "Models", MODELS),
        ("devices", "Devices", DEVICES),
    ):
        found[name] = tuple(
            st.multiselect(
                label,
                options,
                default=getattr(rules, name),
                format_func=lambda each: format.NAMES.get(each, each),
                placeholder="All",
                key=f"{name}_{of}",
            )
        )
    found["anonymous"] = st.toggle(
        "Hide the names on the projector", rules.anonymous, key=f"anonymous_{of}"
    )
    return found


def _controls(of: str, rules: Rules) -> tuple[dict[str, Any], str]:
    """What is fixed and hidden; and a link with that, and with what is only preset."""
    st.markdown("**What they see on Train, Compare and Speed**")
    hidden = st.multiselect(
        "Controls that are hidden",
        CONTROLS,
        default=rules.hidden,
        format_func=CALLED.__getitem__,
        placeholder="None",
        key=f"hidden_{of}",
    )
    preset = st.multiselect(
        "Settings that are preset or fixed",
        SETTINGS,
        default=list(rules.fixed),
        format_func=CALLED.__getitem__,
        placeholder="None",
        key=f"preset_{of}",
    )
    values, fixed = {}, {}
    for name in preset:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            values[name] = _value(of, name, rules)
            key = f"fixed_{name}_{of}"
            if st.toggle("Fixed for all", name in rules.fixed, key=key):
                fixed[name] = values[name]
    link = address("Train", urlencode(values))
    return {"hidden": tuple(hidden), "fixed": fixed}, link


def _value(of: str, name: str, rules: Rules) -> str:
    """A setting's value, as it stands in an address."""
    now = rules.settings.get(name, getattr(RunConfig.with_recipe(), name))
    label, key = CALLED[name], f"value_{name}_{of}"
    if isinstance(now, str):
        options = CHOICES.get(name) or hosts.options(now) or [now]
        return str(controls.choice(label, key, options, index=options.index(now)))
    if isinstance(now, bool):
        return str(st.toggle(label, now, key=key)).lower()
    if isinstance(now, int):
        return str(st.number_input(label, value=now, step=1, key=key, width=190))
    found = st.number_input(
        label, value=now, step=1e-4, format="%g", key=key, width=190
    )
    return f"{found:g}"


def _save(teacher: Teacher, class_id: str, values: dict[str, Any]) -> None:
    """ValueError, a sentence, for rules that can't be."""
    told = "changed the rules: " + ", ".join(
        f"{name} {value}" for name, value in values.items() if value not in (None, ())
    )
    room().change(teacher, class_id, told=told, rules=Rules(**values))
