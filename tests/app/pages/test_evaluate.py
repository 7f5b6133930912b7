import io
import re

from PIL import Image, ImageDraw
from streamlit.testing.v1 import AppTest

from core.jobs.measurements import subject
from core.lessons.evaluate import evaluation_page as evaluation
from core.lessons.evaluate import picture_page
from core.lessons.evaluate.evaluation_page import EVALUATE
from core.ui import last_measurement as measured
from tests.app.pages.walk import metrics, open_page, open_tab, press, texts
from to_device.errors import ExplainedError


def evaluated(run_id: str) -> AppTest:
    """The page of a run, for who has looked for the hardest class before."""
    at = open_page("pages/5_Evaluate.py", run=run_id)
    return at.button(key="show_hardest_sprites").click().run()


def test_the_hardest_class_is_guessed_first(run_id):
    at = open_page("pages/5_Evaluate.py", run=run_id)
    question = at.radio(key="hardest_sprites")
    assert not [label for label in metrics(at) if label.startswith("Hardest")]
    question.set_value(question.options[0]).run()
    (label,) = [label for label in metrics(at) if label.startswith("Hardest")]
    hardest = label.partition(": ")[2]
    assert f"**{hardest}**" in texts(at.info) + texts(at.success)
    assert "hardest_sprites" not in [radio.key for radio in at.radio]


def test_evaluate_opens_with_the_answers(engine, run_id):
    at = evaluated(run_id)
    figures = metrics(at)
    result = engine.job(run_id).value
    assert figures["Test accuracy"] == f"{result.test_accuracy:.2%}"
    assert figures[f"Correct of {result.test_total:,}"] == f"{result.test_correct:,}"
    # The matrix' commonest mistake, in one picture, and the one to predict.
    assert len(at.get("image")) == 1 + 1
    open_tab(at, "Confident mistakes")
    assert len(at.get("image")) == 1 + evaluation.PICTURES + 1
    assert re.search(r"\btorch \d", texts(at.caption))


def test_the_columns_of_the_classes_are_explained_beside_them(run_id):
    """In a text, since a phone shows no tooltip."""
    at = evaluated(run_id)
    (table,) = (t.value for t in at.dataframe if "Class" in t.value)
    for column in table.columns.drop(["Class", "Images"]):
        assert f"**{column}**: " in texts(at.caption)


def test_the_answers_are_asked_once_and_again_on_demand(monkeypatch, run_id):
    addresses, ask, jobs = [], evaluation.ask, []

    def note(address: str, *arguments, **more):
        addresses.append(address)
        return ask(address, *arguments, **more)

    monkeypatch.setattr(evaluation, "ask", note)
    monkeypatch.setattr(evaluation, "keep", lambda _, job: jobs.append(job))
    evaluation.evaluate.clear()
    for _ in range(2):
        at = open_page("pages/5_Evaluate.py", run=run_id)
        assert addresses.count(EVALUATE) == 1
    at.button(key="evaluate").click().run()
    assert addresses.count(EVALUATE) == 2
    assert [(subject(job.arguments), job.status) for job in jobs] == [
        (run_id, "finished")
    ] * 2
    evaluation.evaluate.clear()
    monkeypatch.setattr(
        measured,
        "newest",
        lambda kind, of: jobs[-1] if (kind, of) == (EVALUATE, run_id) else None,
    )
    assert "Test accuracy" in metrics(at.run())
    assert addresses.count(EVALUATE) == 2


def test_an_evaluation_that_fails_leaves_the_rest_of_the_page(monkeypatch, run_id):

    def fail(*_arguments, **_more):
        raise ExplainedError("The lab has no room.")

    evaluation.evaluate.clear()
    monkeypatch.setattr(evaluation, "ask", fail)
    at = open_page("pages/5_Evaluate.py", run=run_id)
    assert "no room" in texts(at.error)
    assert at.number_input(key="picture_number")


def test_evaluate_measures_the_three_modes(engine, run_id):
    at = open_tab(evaluated(run_id), "The cost")
    at.radio(key="modes_guess").set_value("1.5 to 5 times as much")
    at.radio(key="precision_guess").set_value("Less than 2").run()
    press(at, engine, "compare_modes", "core.lessons.evaluate.evaluation:compare_modes")
    assert len(at.get("vega_lite_chart")) == 4  # and matrix, prediction
    assert "**CNN**" in texts(at.markdown)
    assert ("**11.7 MB**" in texts(at.markdown)) == engine.machine().simulates
    press(at, engine, "compare_precisions", "core.lessons.evaluate.precision:compare")
    assert re.search(r"\d of 2,000\b", texts(at.markdown))


def test_a_picture_is_predicted(run_id):
    at = open_page("pages/5_Evaluate.py", run=run_id)
    at.number_input(key="picture_number").set_value(7).run()
    assert not at.error
    assert "Test image 7" in texts(at.markdown)
    charts = len(at.get("vega_lite_chart"))  # with that of the ten probabilities
    at.radio(key="picture_source").set_value("A file").run()
    assert len(at.get("vega_lite_chart")) == charts - 1
    drawn = io.BytesIO()
    shirt = ImageDraw.Draw(image := Image.new("L", (90, 120), 240))
    shirt.rectangle((25, 30, 65, 90), fill=40)
    image.save(drawn, "PNG")
    uploader = at.file_uploader(key="picture_file")
    uploader.upload("shirt.png", drawn.getvalue(), "image/png").run()
    assert not at.error
    assert len(at.get("vega_lite_chart")) == charts
    assert picture_page.words("picture.photo") in texts(at.markdown)
    at.file_uploader(key="picture_file").upload("x.png", b"none", "image/png").run()
    assert not at.exception
    assert "not a picture" in texts(at.error)
    at.radio(key="picture_source").set_value("The camera").run()
    assert not at.error
    image.save(photo := io.BytesIO(), "JPEG")
    at.camera_input(key="picture_photo").upload("me.jpg", photo.getvalue()).run()
    assert not at.error
    assert len(at.get("vega_lite_chart")) == charts
