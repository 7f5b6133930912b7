"""Make the classic mistakes on purpose, and find yours by its message."""

import streamlit as st

from core.mistakes.catalogue import BY_SLUG, MISTAKES
from core.ui import frame, mistakes
from core.ui.server import engine
from core.ui.source import code_tabs

FIXTURES = ("batch", "new_model", "steps", "hits", "saved", "ScaledLoss", "DeviceQueue")

frame.begin("Mistakes")
machine = engine().machine()
first = mistakes.searched()
for place, slug in enumerate(first):
    mistakes.card(BY_SLUG[slug], opened=place == 0)

rest = [mistake for mistake in MISTAKES if mistake.slug not in first]
st.subheader("Loud: an exception")
st.markdown(
    "These stop the program. **Run it** makes the mistake, in a process that may die "
    "of it, and then its fix."
)
if machine and len(machine.devices) == 1:
    st.markdown(
        "There is no accelerator here. The mistakes that need one run on `meta`, a "
        "device of torch that has shapes but no numbers: it mixes with the CPU as "
        "little as a GPU does. Their fixes run on `meta` and on the CPU."
    )
for mistake in rest:
    if mistake.loud:
        mistakes.card(mistake)

st.subheader("Silent: a wrong number")
st.markdown(
    "These raise nothing. Both halves run on the sprites, from the same seed, and what "
    "the mistake costs is measured."
)
for mistake in rest:
    if not mistake.loud:
        mistakes.card(mistake)

st.subheader("The code around them")
code_tabs(
    (
        "Running",
        "One half, in a process of its own. From `core/mistakes/runner.py`.",
        "core.mistakes.runner:half",
        "core.mistakes.runner:attempt",
    ),
    (
        "Finding",
        "A text is compared with what the mistakes raised here. "
        "From `core/mistakes/search.py`.",
        "core.mistakes.search:Corpus",
    ),
    (
        "What they begin with",
        "The functions that the mistakes call. "
        "From `core/mistakes/examples/fixtures.py`.",
        *(f"core.mistakes.examples.fixtures:{name}" for name in FIXTURES),
    ),
)

frame.end("Mistakes")
