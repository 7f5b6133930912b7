"""The Model page: the moves, the transfers, one batch step by step."""

from core.errors import ExplainedError
from core.jobs.engine import Engine
from core.lessons.model import batch_steps_page, model_to_page
from tests.pages.walk import metrics, open_page, open_tab, press, texts


def test_the_model_page_moves_and_measures(engine):
    at = open_page("pages/2_Model.py", tab="Move a model")
    press(at, engine, "move_model", model_to_page.PANEL.address)
    assert metrics(at)["Tensors moved"] == "6 of 6"
    assert "`model.to(device)` takes" in texts(at.markdown)
    open_tab(at, "What a transfer costs")
    at.radio(key="transfers_guess").set_value("5 to 20 GB/s").run()
    press(at, engine, "measure_transfers", "core.lessons.model.transfers:measure")
    assert "A copy of 4 KB takes" in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 1


def test_a_reload_finds_the_move_again(monkeypatch):
    monkeypatch.setattr("core.ui.job_panel.visitor", lambda: "ada")
    page = "pages/2_Model.py", "Move a model"
    open_page(page[0], tab=page[1]).button(key="move_model").click().run()
    at = open_page(page[0], tab=page[1])
    assert metrics(at)["Tensors moved"] == "6 of 6"


def test_a_batch_is_gone_through_step_by_step_and_found_again():
    at = open_page("pages/2_Model.py")
    steps = []
    for _ in range(8):
        steps.append(texts(at.code))
        at.button(key="step_on").click().run()
        assert not at.exception
    assert len(set(steps)) == 6  # the seventh is the first step of the second batch
    assert (at.session_state.batch_number, at.session_state.batch_place) == (2, 2)
    at.switch_page("pages/3_Train.py").run()
    at.switch_page("pages/2_Model.py").run()
    assert "→ outputs = model(inputs)" in texts(at.code)
    at.button(key="step_back").click().run()
    assert at.session_state.batch_place == 1
    assert "it works" in texts(at.success)
    at.toggle(key="forget_labels").set_value(True).run()
    assert "RuntimeError" in texts(at.error)
    assert "→     loss = criterion(outputs, labels)" in texts(at.code)


def test_a_lab_without_an_answer_leaves_the_page_standing(monkeypatch):
    def ask(*_args, **_options):
        raise ExplainedError("The worker gave no answer.")

    for name in (model_to_page.ask, batch_steps_page.batch, model_to_page.attempt):
        name.clear()
    monkeypatch.setattr(Engine, "ask", ask)
    at, unanswered = open_page("pages/2_Model.py"), 0
    for tab in ("One batch, step by step", "Move a model", "In place, or a copy?"):
        open_tab(at, tab)
        if tab == "Move a model":
            at.button(key="move_model").click().run()
        assert not at.exception
        unanswered += texts(at.error).count("no answer")
    assert unanswered == 4
    assert len(at.title) == 1
