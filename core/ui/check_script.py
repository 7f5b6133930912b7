"""Check my script: one is pasted, and lines are pointed at; it is read, never run."""

import re
from itertools import groupby

import streamlit as st

from core.mistakes.catalogue import BY_SLUG
from core.mistakes.script.check import RULES, Checked
from core.mistakes.script.finding import Finding
from core.mistakes.script.reading import MOST_BYTES
from core.ui import code_editor, course
from core.ui.links import link
from core.ui.server import ask, explained

CHECK = "core.mistakes.script.check:check_apart"
NEWLINE = re.compile(r"\r\n?|\n")  # as Python counts lines; str.splitlines has more
SURENESS: dict[str, tuple[str, str]] = {
    "sure": ("Sure", "red"),
    "likely": ("Likely", "gray"),
    "look": ("Look at this", "gray"),
}
LABEL = "Paste a training script, or the cells of a notebook"
PLACEHOLDER = """\
model = Net()
optimizer = torch.optim.Adam(model.parameters())
for inputs, labels in loader:
    ..."""

ABOUT = f"""\
It looks for {len(RULES)} mistakes that can be seen in the code alone, from a copy that
is thrown away to a clock that doesn't wait for the GPU. Others only show when the code
runs. Each line that it points at says how sure it is:

- :red-badge[Sure] It's a mistake.
- :gray-badge[Likely] It's one, unless something else in your project makes up for it.
- :gray-badge[Look at this] It's fine in some scripts."""


@st.fragment
def draw() -> None:
    """The place to paste a script, and what was found in it."""
    state = st.session_state
    left, right = st.columns([6, 5], gap="medium")
    with left, st.form("check_script"):
        st.markdown(LABEL)
        field = st.container()
        st.markdown(":small[Your script is read line by line. It isn't run or kept.]")
        if st.form_submit_button("Check my script", icon=":material/fact_check:"):
            state.pop("checked", None)
            text = code_editor.text("script")[: MOST_BYTES + 1]
            with explained("The script was not checked"), st.spinner("Reading it"):
                state.checked = text, ask(CHECK, text)
        text, checked = state.get("checked", ("", Checked()))
        with field:
            code_editor.draw(
                LABEL,
                "script",
                text,
                placeholder=PLACEHOLDER,
                marked=[each.line for each in checked.findings]
                or code_editor.lines_in(checked.unreadable),
            )
    with right:
        if "checked" in state:
            _found(*state.checked)
        else:
            st.markdown(ABOUT)


def _found(text: str, checked: Checked) -> None:
    """What was found, or that nothing was, which proves little."""
    if checked.unreadable:
        st.warning(checked.unreadable, icon=":material/info:")
    elif not text.strip():
        st.info("Paste a script first.", icon=":material/content_paste:")
    elif not checked.findings:
        st.success(
            f"None of the {len(RULES)} mistakes was found. Your script was read, not "
            "run, so running it may still fail.",
            icon=":material/check:",
        )
    else:
        found = len(checked.findings)
        sure = sum(each.sureness == "sure" for each in checked.findings)
        st.markdown(
            f"**{found} found, {sure} of them sure.** There may be more: it knows "
            f"{len(RULES)} mistakes, in the ways they are usually written."
        )
        lines = NEWLINE.split(text)
        for number, findings in groupby(checked.findings, lambda each: each.line):
            with st.container(border=True):
                st.markdown(f"**Line {number}**")
                st.code(lines[number - 1].strip(), wrap_lines=True)
                for finding in findings:
                    _say(finding)


def _say(finding: Finding) -> None:
    """How sure it is, what to do, and the mistake to make on purpose."""
    word, color = SURENESS[finding.sureness]
    st.markdown(f":{color}-badge[{word}] {finding.say}")
    if finding.slug:
        page = course.page("Mistakes")
        link(
            page,
            BY_SLUG[finding.slug].title,
            query_params={"mistake": finding.slug},
        )
