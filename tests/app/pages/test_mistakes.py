import difflib
import os
import re
from pathlib import Path
from unittest.mock import Mock

import pytest
from prometheus_client import generate_latest
from streamlit.testing.v1 import AppTest

from core.jobs.admission import Limits
from core.jobs.engine import Engine
from core.lessons.mistakes import catalogue_page as mistakes
from core.lessons.mistakes.catalogue import BY_SLUG, GROUPS, MISTAKES
from core.script.edits import CHOICE
from core.serving.monitoring import REGISTRY
from tests.app.pages.walk import open_page, open_tab, status, texts, wait, write_code
from to_device.explain.causes import knowledge


def show(at: AppTest, slug: str) -> None:
    """Open a mistake by its address."""
    at.query_params["mistake"] = slug
    at.run()


def make(at: AppTest, engine: Engine, slug: str) -> None:
    """Open a mistake, press its button, wait until it has been run, draw the page."""
    show(at, slug)
    at.button(key=f"run_mistake_{slug}").click().run()
    wait(engine, engine.jobs(mistakes.RUN)[-1].id)
    at.run()


def find_mistake(at: AppTest, text: str, whole: bool = True) -> AppTest:
    """Paste a text into the search of the Mistakes page, or type it up to there."""
    at.session_state["pasted_error"] = {"value": {"text": text, "whole": whole}}
    return at.run()


def opened(at: AppTest) -> str:
    """The slug of the mistake whose card is open: there is one."""
    (key,) = [
        button.key for button in at.button if button.key.startswith("run_mistake_")
    ]
    return key.removeprefix("run_mistake_")


def test_all_mistakes_can_be_opened_from_their_page():
    at = open_page("pages/4_Mistakes.py")
    assert opened(at) == MISTAKES[0].slug
    found = 0
    for group in GROUPS:
        at.button_group(key="mistake_kind").set_value(group).run()
        assert BY_SLUG[opened(at)].group == group
        assert at.selectbox(key="listed_mistake").value == opened(at)
        found += len(at.selectbox(key="listed_mistake").options)
    assert found == len(MISTAKES)
    at.button_group(key="mistake_kind").set_value("training").run()
    at.selectbox(key="listed_mistake").set_value("no_zero_grad").run()
    assert opened(at) == "no_zero_grad"
    assert at.query_params["mistake"] == "no_zero_grad"
    assert at.selectbox(key="listed_mistake").value == "no_zero_grad"
    show(at, MISTAKES[0].slug)  # a link leads to another group
    assert at.button_group(key="mistake_kind").value == MISTAKES[0].group != "training"


def test_the_message_comes_before_the_cause(engine):
    at = open_page("pages/4_Mistakes.py", mistake="numpy_requires_grad")
    slug, job = "numpy_requires_grad", engine.jobs(mistakes.FAILURES)[-1]
    wait(engine, job.id, lambda job: slug in dict(job.events))  # others may be to come
    at.run()
    why = BY_SLUG["numpy_requires_grad"].why
    assert "requires grad" in texts(at.error)
    assert why not in texts(at.markdown)
    at.button(key="cause_numpy_requires_grad").click().run()
    assert why in texts(at.markdown)
    assert "detach()" in texts(at.code)


def test_a_loud_mistake_shows_its_message_and_its_fix(engine):
    at = open_page("pages/4_Mistakes.py", mistake="numpy_requires_grad")
    at.radio(key="line_numpy_requires_grad").set_value(2).run()
    make(at, engine, "numpy_requires_grad")
    (judged,) = (info.value for info in at.info)
    assert re.findall(r"\d+", judged) == ["4", "2"]  # the line that raised, the guess
    assert "+ outputs = model(inputs).detach()" in texts(at.code)
    for _ in range(2):
        assert not at.exception
        assert "requires grad" in texts(at.error)
        assert len(at.success) == 1
        assert "→ return outputs.numpy().mean()" in texts(at.code)
        at.switch_page("home.py").run()
        at.switch_page("pages/4_Mistakes.py")
        show(at, "numpy_requires_grad")


def test_a_silent_mistake_shows_both_figures(engine):
    at = open_page("pages/4_Mistakes.py", mistake="list_never_trained")
    assert BY_SLUG["list_never_trained"].why not in texts(at.markdown)
    assert not [code for code in at.code if "ModuleList" in code.value]
    make(at, engine, "list_never_trained")
    assert BY_SLUG["list_never_trained"].why in texts(at.markdown)
    for parameters in ("650", "109,386"):  # of the broken model, and of the fixed one
        assert parameters in texts(at.markdown)
    assert not at.error


def test_a_pasted_error_is_answered_above_its_mistake():
    at = open_page("pages/4_Mistakes.py", mistake="out_of_memory")
    assert opened(at) == "out_of_memory"
    assert "256 MiB" in texts(at.markdown)
    find_mistake(at, "IndexError: Target 37 is out of bounds.")
    assert not at.exception
    assert opened(at) == "label_outside_classes"
    assert at.query_params["error"] == "label_outside"
    assert "mistake" not in at.query_params
    assert "labels = labels - 1" in texts(at.code)
    find_mistake(at, "RuntimeError: Cannot re-initialize SIM in forked subprocess.")
    assert "num_workers" not in texts(at.info)
    assert "forked" in texts(at.markdown)
    message = "Input type (simFloatType) and weight type (torch.FloatTensor) should be"
    find_mistake(at, f"RuntimeError: {message} the same")
    assert opened(at) == "model_not_moved"


@pytest.mark.usefixtures("engine")
def test_a_worker_reads_a_long_log_since_the_server_would_stand_still(monkeypatch):
    monkeypatch.setattr("core.lessons.mistakes.answer_page.explain", None)
    log = "step 1, loss 2.31\n" * 2000 + "IndexError: Target 37 is out of bounds."
    at = find_mistake(open_page("pages/4_Mistakes.py"), log)
    assert not at.exception
    assert at.query_params["error"] == "label_outside"
    assert "labels = labels - 1" in texts(at.code)


def test_home_reads_what_errors_mean_only_for_an_error(monkeypatch):
    read = Mock(wraps=knowledge)
    monkeypatch.setattr("core.lessons.mistakes.answer_page.knowledge", read)
    assert not open_page("home.py").exception
    read.assert_not_called()
    at = open_page("home.py", error="label_outside")
    assert "labels = labels - 1" in texts(at.code)
    read.assert_called_once_with()


def test_home_answers_too_and_leads_to_the_mistake():
    at = find_mistake(open_page("home.py"), "IndexError: Target 37 is out of bounds.")
    assert not at.exception
    assert "labels = labels - 1" in texts(at.code)
    links = [link.proto.query_string for link in at.get("page_link")]
    assert "mistake=label_outside_classes" in links


def test_the_address_of_a_cause_tells_it_without_a_text():
    at = open_page("pages/4_Mistakes.py", error="no_kernel_image")
    assert "architecture" in texts(at.markdown)
    assert not [button for button in at.button if button.key.startswith("run_mistake_")]
    assert open_page("pages/4_Mistakes.py", error="<b>").session_state is not None


@pytest.mark.parametrize(
    ("text", "icon"),
    [
        ("ModuleNotFoundError: No module named 'x'", ":material/search_off:"),
        ("RuntimeError: CUDA error: nobody knows it", ":material/help:"),
    ],
)
def test_where_nothing_is_known_no_other_error_is_shown(text, icon):
    at = find_mistake(open_page("pages/4_Mistakes.py"), text)
    assert not at.exception
    assert [info.icon for info in at.info] == [icon]
    assert not [button for button in at.button if button.key.startswith("run_mistake_")]
    assert "error" not in at.query_params


def unanswered() -> float:
    """How many pasted errors had no answer, as the metrics say."""
    return REGISTRY.get_sample_value("to_device_unanswered_errors_total")


def test_half_a_sentence_that_says_nothing_is_no_question():
    before = unanswered()
    at = find_mistake(open_page("pages/4_Mistakes.py"), "my gpu", whole=False)
    assert opened(at) == MISTAKES[0].slug
    find_mistake(at, "my gpu and a dragon")
    assert unanswered() == before + 1
    find_mistake(at, "my gpu is slower than the cpu", whole=False)
    assert at.query_params["error"] == "gpu_slower"
    find_mistake(at, "")
    assert "error" not in at.query_params
    at.query_params["error"] = "gpu_slower"
    find_mistake(at, "", whole=False)  # the page is opened by its address
    assert at.query_params["error"] == "gpu_slower"


@pytest.mark.parametrize("script", ["home.py", "pages/4_Mistakes.py"])
@pytest.mark.parametrize("error", ["Target 37 is out of bounds.", "CUDA: nobody knows"])
def test_a_pasted_text_is_stored_nowhere(script, error, caplog, capfd):
    caplog.set_level("DEBUG")
    at = find_mistake(open_page(script), f"my_secret = 7\nRuntimeError: {error}")
    assert not at.exception
    assert "secret" not in str(at.query_params)
    assert set(at.query_params) <= {"error"}
    file = Path(os.environ["DATABASE_URL"].removeprefix("sqlite:///"))
    parts = list(file.parent.glob(f"{file.name}*"))  # the log of its changes as well
    assert file in parts
    assert not [part for part in parts if b"my_secret" in part.read_bytes()]
    printed = capfd.readouterr()
    assert "my_secret" not in caplog.text + printed.out + printed.err
    figures = generate_latest(REGISTRY).decode()
    assert "unanswered_errors_total" in figures
    assert "my_secret" not in figures


def test_an_unknown_mistake_in_the_address_is_a_notice():
    at = open_page("pages/4_Mistakes.py", mistake="<b>nosuch</b>")
    assert len(at.warning) == 1
    assert opened(at) == MISTAKES[0].slug


def test_a_mistake_that_is_refused_is_a_sentence(monkeypatch, engine):
    at = open_page("pages/4_Mistakes.py", mistake="cuda_hard_coded")
    with monkeypatch.context() as patch:
        patch.setattr(engine.admission, "limits", Limits(max_waiting_jobs=0))
        at.button(key="run_mistake_cuda_hard_coded").click().run()
    assert not at.exception
    assert len(at.warning) == 1
    make(at, engine, "cuda_hard_coded")
    assert not at.warning
    assert at.success


def test_a_class_that_makes_mistakes_at_once_gets_places(monkeypatch, engine):
    at = open_page("pages/4_Mistakes.py", mistake="cuda_hard_coded")
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "_dispatch", lambda _: None)  # the lab is busy
        at.button(key="run_mistake_cuda_hard_coded").click().run()
        show(at, "numpy_requires_grad")
        assert not at.button(key="run_mistake_numpy_requires_grad").disabled
        at.switch_page("home.py").run()
        at.switch_page("pages/4_Mistakes.py")
        show(at, "cuda_hard_coded")
        assert engine.jobs(mistakes.RUN)[-1].place == 1
        assert "1" in status(at)
        assert at.button(key="run_mistake_cuda_hard_coded").disabled
    wait(engine, engine.jobs(mistakes.RUN)[-1].id)
    assert at.run().success


def check_script(at: AppTest, text: str) -> AppTest:
    """Paste a script at the end of the page, and have it checked."""
    write_code(at, "script", text)
    return at.button(key="check_my_script").click().run()


ONLY_CUDA = """\
import torch

net = torch.nn.Linear(3, 2).cuda()
net(torch.rand(4, 3).cuda())
"""


def test_a_checked_script_comes_back_corrected(monkeypatch):
    at = check_script(open_page("pages/4_Mistakes.py"), ONLY_CUDA)
    at.button(key="correct_my_script").click().run()
    assert not at.exception
    line = f"device = {CHOICE}\n"
    corrected = ONLY_CUDA.replace(".cuda()", ".to(device)")
    corrected = corrected.replace("torch\n\n", f"torch\n\n{line}\n")
    assert [code for code in at.code if code.value == corrected.rstrip("\n")]
    (button,) = [b for b in at.get("download_button") if "corrected" in b.proto.id]
    assert not button.proto.disabled
    # The server doesn't compare the scripts again when it redraws the page.
    monkeypatch.setattr(difflib, "SequenceMatcher", None)
    assert [code for code in at.run().code if f"+{line}".rstrip() in code.value]
    assert not at.exception
    check_script(at, corrected)  # the earlier correction is gone
    assert corrected not in [code.value for code in at.code]
    assert not [b for b in at.button if b.key == "correct_my_script"]


def page_with_a_finding() -> None:
    import streamlit as st

    from core.lessons.mistakes import script_page
    from core.script.check import Checked
    from core.script.syntax import Problem

    finding = Problem(1, "sure", "what is wrong", "no_such_mistake")
    st.session_state.checked = "x = 1", Checked((finding,), ran=True)
    script_page.draw()


def page_with_a_correction() -> None:
    import streamlit as st

    from core.lessons.mistakes import script_page
    from core.script.check import Checked
    from core.script.correction import Correction

    st.session_state.checked = "x = 1", Checked(is_idle=True, ran=True)
    st.session_state.corrected = Correction("x = 2", Checked())
    script_page.draw()


@pytest.mark.usefixtures("engine")
def test_a_correction_without_a_comparison_is_shown_as_a_whole():
    at = AppTest.from_function(page_with_a_correction, default_timeout=60).run()
    assert not at.exception
    assert [tab.label for tab in at.tabs] == ["Whole script"]
    assert "x = 2" in [code.value for code in at.code]


@pytest.mark.usefixtures("engine")
def test_a_finding_of_no_known_mistake_has_no_link():
    at = AppTest.from_function(page_with_a_finding, default_timeout=60).run()
    assert not at.exception
    assert "what is wrong" in texts(at.markdown)
    assert not at.get("page_link")


def test_a_pasted_script_is_pointed_at_line_by_line():
    at = open_page("pages/4_Mistakes.py")
    check_script(
        at, "for x, y in batches:\n    loss(x, y).backward()\n    optimizer.step()"
    )
    assert not at.exception
    assert "**Line 3**" in texts(at.markdown)
    links = [link.proto.query_string for link in at.get("page_link")]
    assert "mistake=no_zero_grad" in links
    assert len(check_script(at, "x = 1").success) == 1
    assert "Line 1" in texts(check_script(at, "def f(:").warning)
    assert len(check_script(at, "").info) == 1


def test_a_script_is_checked_on_home_too():
    at = open_tab(open_page("home.py"), True, key="home_script")
    infos = len(at.info)
    assert len(check_script(at, "").info) == infos + 1
