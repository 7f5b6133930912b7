"""The Model page: the moves, the transfers, one batch step by step."""

from streamlit.testing.v1 import AppTest

from core.errors import ExplainedError
from core.jobs.engine import Engine
from core.measure import records
from core.ui.move import batch_steps, forgotten, model_to
from tests.pages.walk import metrics, open_page, open_tab, press, texts


def test_the_model_page_moves_and_measures(engine):
    """A press moves every tensor and times it; another one ends with a curve."""
    at = open_page("pages/2_Model.py", tab="Move a model")
    press(at, engine, "move_model", model_to.PANEL.address)
    assert metrics(at)["Tensors moved"] == "6 of 6"
    assert "`model.to(device)` takes" in texts(at.markdown)
    open_tab(at, "What a transfer costs")
    at.radio(key="transfers_guess").set_value("5 to 20 GB/s").run()
    press(at, engine, "measure_transfers", "core.move.transfers:measure")
    assert "A copy of 4 KB takes" in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 1


def test_a_reload_finds_the_move_again(monkeypatch):
    """The timing that a session left behind is shown, and not queued twice."""
    monkeypatch.setattr("core.ui.job_panel.visitor", lambda: "ada")
    page = "pages/2_Model.py", "Move a model"
    open_page(page[0], tab=page[1]).button(key="move_model").click().run()
    at = open_page(page[0], tab=page[1])
    assert metrics(at)["Tensors moved"] == "6 of 6"


def test_a_batch_is_gone_through_step_by_step_and_found_again():
    """The move and five steps, then the next batch; another page changes nothing."""
    at = open_page("pages/2_Model.py")
    shown = []
    for _ in range(8):
        shown.append(texts(at.code))
        at.button(key="step_on").click().run()
        assert not at.exception
    assert len(set(shown)) == 6  # the seventh is the first step of the second batch
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
    """Where the lab fails, each part says so and the rest of the page is there."""

    def ask(*_args, **_options):
        raise ExplainedError("The worker gave no answer.")

    for name in (model_to.ask, batch_steps.batch, forgotten.attempt):
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


def test_a_record_of_another_machine_is_shown_as_recorded(monkeypatch, tmp_path):
    """Its curve comes with its device and date; a damaged one with a notice."""
    points = [
        {"direction": d, "memory": "pinned", "bytes": 4096, "seconds": [1e-5] * 5}
        for d in ("host to device", "device to host")
    ]
    figures = {"date": "2026-11-20", "environment": {"device_name": "Testing card"}}
    records.write({**figures, "transfers": points}, tmp_path)
    damaged = {"date": "2026-11-20", "environment": {"device_name": "Cut card"}}
    records.write({**damaged, "transfers": [{"bytes": 1}]}, tmp_path)
    found = records.records(tmp_path)
    monkeypatch.setattr(records, "records", lambda: found)

    def draw():
        from core.jobs.job import Job
        from core.move.results import Transfer
        from core.ui.move import transfers

        here = Transfer("host to host", "new memory", 4096, (1e-6,) * 5)
        job = Job("id", "path", (), "train", events=(here,))
        transfers.result(job, "5 to 20 GB/s")

    at = AppTest.from_function(draw, default_timeout=60).run()
    assert not at.exception
    (chart,) = at.get("vega_lite_chart")
    assert "facet" in chart.proto.spec
    assert "Testing card, recorded 2026-11-20" in chart.proto.spec
    assert "Cut card" in texts(at.warning)
