"""Check a pasted script: the app reads it, runs it, and shows problems at its lines."""

from itertools import groupby

import streamlit as st

from core.lessons.mistakes.catalogue import BY_SLUG
from core.lessons.mistakes.catalogue_page import link_to
from core.script.check import USES_DATASETS, Checked
from core.script.correction import Correction
from core.script.lint_rules import RULES
from core.script.syntax import MOST_BYTES
from core.serving.execution_policy import mode
from core.ui import code_editor, controls
from core.ui.server import engine, explained, run_code
from to_device.dryrun.report import NEWLINE
from to_device.words import Words

words = Words(__file__)

CHECK = "core.script.check:check_in_child"
CORRECT = "core.script.correction:correct"
SURENESS: dict[str, tuple[str, str]] = {
    "sure": ("Sure", "red"),
    "likely": ("Likely", "gray"),
    "look": ("Look at this", "gray"),
}


@st.fragment
def draw() -> None:
    state = st.session_state
    policy = mode(engine().ask)
    left, right = st.columns([6, 5], gap="medium")
    with left, st.form("check_script"):
        st.markdown(words("script.label"))
        field = st.container()
        only_read = (
            ":small[We read your script line by line, but don't run it. It stays in "
            f"this browser tab, and we don't keep it. {policy.why}]"
        )
        st.markdown(only_read if policy.kind == "off" else words("script.run"))
        icon = ":material/fact_check:"
        if st.form_submit_button("Check my script", icon=icon, key="check_my_script"):
            state.pop("checked", None)
            state.pop("corrected", None)
            text = code_editor.text("script")[: MOST_BYTES + 1]
            with explained("The script was not checked"):
                checked = run_code("Checking your script", CHECK, text, policy.kind)
                state.checked = text, checked
        text, checked = state.get("checked", ("", Checked()))
        with field:
            code_editor.draw(
                words("script.label"),
                "script",
                text,
                placeholder=words("script.placeholder"),
                marked=[problem.line for problem in checked.problems]
                or code_editor.lines_in(checked.unreadable),
            )
    with right, st.container(key="answer_script"):
        if "checked" in state:
            _findings(*state.checked)
        else:
            listed = words("script.listed")
            with st.expander("What we look for", icon=":material/rule:"):
                st.markdown(words("script.about", count=len(RULES), listed=listed))


def _findings(text: str, checked: Checked) -> None:
    count = len(RULES)
    if checked.ran and USES_DATASETS.search(text):
        st.caption(words("script.datasets"))
    if checked.why_not and not checked.unreadable:
        st.warning(
            "Your script didn't run to the end, so we may have missed "
            f"mistakes. {checked.why_not}",
            icon=":material/info:",
        )
    if checked.unreadable:
        st.warning(checked.unreadable, icon=":material/info:")
    elif not text.strip():
        st.info("Paste a script first.", icon=":material/content_paste:")
    elif checked.is_idle and not checked.problems:
        st.info(words("script.idle"), icon=":material/memory:")
        _offer_correction(text, "Move it to the GPU")
    elif not checked.problems:
        none = (
            words("script.ran")
            if checked.ran
            else f"The code has none of the {count} mistakes that we look for. "
            "To find out whether the model and the batches are on the "
            "same device, run `to-device dryrun train.py` on a computer "
            "without a GPU."
        )
        draw_text = st.info if checked.why_not else st.success
        draw_text(none, icon=":material/check:")
    else:
        counts = {
            "found": len(checked.problems),
            "sure": sum(problem.sureness == "sure" for problem in checked.problems),
        }
        how = (
            "We ran your script for a few steps and read its code."
            if checked.ran
            else "We read your script's code but didn't run it to the end."
        )
        st.markdown(
            (
                "**{found} found, {sure} marked “Sure”.** {how} The script may contain "
                "other mistakes."
            ).format(**counts, how=how)
        )
        if checked.is_idle:
            st.info(words("script.idle"), icon=":material/memory:")
        and_move = ", and move it to the GPU" if checked.is_idle else ""
        _offer_correction(text, f"Correct it{and_move}")
        lines = NEWLINE.split(text)
        for number, problems in groupby(checked.problems, lambda problem: problem.line):
            with st.container(border=True):
                st.markdown(f"**Line {number}**")
                st.code(lines[number - 1].strip(), wrap_lines=True)
                for problem in problems:
                    label, color = SURENESS[problem.sureness]
                    st.markdown(f":{color}-badge[{label}] {problem.say}")
                    if problem.slug in BY_SLUG:
                        link_to(problem.slug)


def _offer_correction(text: str, label: str) -> None:
    """A button that corrects the script, and then the corrected one."""
    state = st.session_state
    icon = ":material/build:"
    if st.button(label, key="correct_my_script", icon=icon, help=words("script.how")):
        policy = mode(engine().ask)
        with explained("The script was not corrected"):
            state.corrected = run_code(
                "Correcting your script", CORRECT, text, policy.kind
            )
    if "corrected" in state:
        _correction(text, state.corrected)


def _correction(text: str, corrected: Correction) -> None:
    if corrected.text == text.removeprefix("\ufeff"):
        st.info(
            "We found no change that helps. Each line above says what to do about it.",
            icon=":material/info:",
        )
        return
    left = corrected.checked.problems
    if corrected.runs_without:
        ran = words("script.runs")
    elif corrected.checked.ran and corrected.why_not:
        ran = words("script.needs_gpu", why=corrected.why_not)
    elif corrected.checked.ran:
        ran = words("script.still_fails")
    else:
        ran = "**Changed, but not run.** These changes follow from the code alone."
    with st.container(border=True, key="corrected_script"):
        st.markdown(ran)
        if corrected.beside:
            lines = [
                f"- Line {line}: {say}" if line else f"- {say}"
                for line, say in corrected.beside
            ]
            also = "This was wrong, too, where the script hadn't come to before:"
            st.markdown("\n".join([also, "", *lines]))
        shown = [("Whole script", corrected.text, "python")]
        if corrected.changes:
            shown.insert(0, ("Changes", corrected.changes, "diff"))
        tabs = st.tabs([name for name, *_ in shown])
        for tab, (_, code, language) in zip(tabs, shown, strict=True):
            tab.code(code, language=language, wrap_lines=True)
        controls.download(
            "Download the corrected script",
            corrected.text,
            "corrected.py",
            "download_corrected",
        )
        if left:
            lines = [f"- Line {item.line}: {item.say}" for item in left]
            st.markdown("\n".join(["What is left for you to decide:", "", *lines]))
