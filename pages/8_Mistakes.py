"""Make the classic mistakes on purpose, and find yours by its message."""

import streamlit as st

from core.mistakes.catalogue import BY_SLUG, MISTAKES
from core.mistakes.search import MOST_CHARACTERS
from core.ui import frame, mistakes
from core.ui.course import lesson
from core.ui.server import engine
from core.ui.source import code_tabs

HERE = lesson("Mistakes")

frame.begin(HERE)
state = st.session_state
machine = engine().machine()
learning = mistakes.learn_messages()

with st.form("find_mistake"):
    st.text_area(
        "Paste an error message or a traceback",
        key="pasted_error",
        height=120,
        placeholder="RuntimeError: Expected all tensors to be on the same device ...",
        persist_state="session",
    )
    if st.form_submit_button("Find the mistake", icon=":material/search:"):
        state.searched_error = state.pasted_error.strip()[-MOST_CHARACTERS:]
        st.query_params.pop("mistake", None)

wanted = st.query_params.get("mistake")
text = state.get("searched_error", "")
first: list[str] = []
if wanted in BY_SLUG:
    first = [wanted]
    st.subheader("The mistake of this link")
elif wanted is not None:
    st.warning(
        "The address names a mistake that is not on this page. All that are stand "
        "below.",
        icon=":material/info:",
    )
elif text:
    with st.spinner("Comparing it with what the mistakes raise on this machine"):
        index = mistakes.index(learning)
    if index is None:
        st.warning(
            "The mistakes could not be run yet, so there is nothing to compare with. "
            "Press the button again in a moment.",
            icon=":material/hourglass_top:",
        )
    elif first := [match.slug for match in index.find(text)]:
        st.subheader("It fits best")
        if len(first) > 1:
            st.markdown(
                "The best first. A whole traceback tells more than its last line: the "
                "code it names decides between mistakes with the same message."
            )
    else:
        st.info(
            f"None of the {len(MISTAKES)} mistakes fits that text. Paste the last "
            "lines of the traceback too, or look through the list.",
            icon=":material/search_off:",
        )
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
        *(
            f"core.mistakes.examples.fixtures:{name}"
            for name in ("batch", "new_model", "steps", "ScaledLoss", "DeviceQueue")
        ),
    ),
)

frame.question(
    "mistakes",
    "You call `model.to(device)`, and `inputs.to(device)` in every step. PyTorch still "
    "says that it found tensors on two devices. What is wrong?",
    {
        "The model has to be moved in every step too": "A module is moved in place, "
        "once, with all its parameters. Moving it again changes nothing.",
        "The copy that `.to` returned was not kept": "Yes. A tensor stays where it is: "
        "write `inputs = inputs.to(device)`. Only a module moves in place.",
        "The batch is too large for the device": "Then memory would run out, which is "
        "another exception. Run **Out of memory** above and compare.",
    },
    right="The copy that `.to` returned was not kept",
)
frame.end(HERE)
