"""Make the classic mistakes on purpose, and find yours by its message."""

import streamlit as st

from core.mistakes.script.check import RULES
from core.ui import check_script, frame, mistakes
from core.ui.server import engine
from core.ui.source import code_tabs

FIXTURES = ("batch", "new_model", "steps", "hits", "saved", "ScaledLoss", "DeviceQueue")

frame.begin("Mistakes", wide=True)
left, right = st.columns([3, 8])
with left:
    found = mistakes.searched()
    chosen = mistakes.opened(found)
    mistakes.listed(found, chosen)
with right:
    mistakes.card(chosen)
    machine = engine().machine()
    if machine and len(machine.devices) == 1:
        with st.popover("Without an accelerator", icon=":material/info:"):
            st.markdown(
                "Mistakes that need an accelerator run on `meta` here, a torch device "
                "that has shapes but no numbers. Like a GPU, it doesn't mix with the "
                "CPU. Their fixes run on `meta` and on the CPU. **Run it** uses a "
                "separate process, which is allowed to crash."
            )
    with st.expander("The code behind this page", icon=":material/code:"):
        code_tabs(
            (
                "Running",
                "One version, in a process of its own. From `core/mistakes/runner.py`.",
                "core.mistakes.runner:half",
                "core.mistakes.runner:attempt",
            ),
            (
                "Finding",
                "Your text is compared with the messages that the mistakes raised "
                "here. From `core/mistakes/search.py`.",
                "core.mistakes.search:Corpus",
            ),
            (
                "Checking a script",
                f"Your script is parsed, and {len(RULES)} rules look at its syntax "
                "tree. This is one. From `core/mistakes/script/`.",
                "core.mistakes.script.moving:copy_not_kept",
                "core.mistakes.script.check:check",
            ),
            (
                "What they share",
                "The functions that the mistakes call. "
                "From `core/mistakes/examples/fixtures.py`.",
                *(f"core.mistakes.examples.fixtures:{name}" for name in FIXTURES),
            ),
        )

st.subheader("Check my script")
check_script.draw()

frame.end("Mistakes")
