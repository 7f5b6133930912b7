"""The Evaluate page: the answers of a run, its modes, a picture of one's own."""

import io

from PIL import Image, ImageDraw

from core.ui.evaluate import evaluation
from tests.pages.walk import metrics, open_page, press, texts


def test_evaluate_shows_the_answers(engine, run_id):
    """Evaluating a finished run shows the accuracy that the run ended with."""
    at = open_page("pages/4_Evaluate.py", run=run_id)
    at.button(key="evaluate").click().run()
    assert not at.exception
    shown = metrics(at)
    result = engine.job(run_id).value
    assert shown["Test accuracy"] == f"{result.test_accuracy:.2%}"
    assert shown["Correct"] == f"{result.test_correct:,} of {result.test_total:,}"
    assert len(at.get("image")) == evaluation.PICTURES + 1  # and the one to predict


def test_a_reload_finds_the_answers_again(monkeypatch, run_id):
    """Without a second press, in a new session; somebody else has to press."""
    for visitor, presses in (("ada", True), ("ada", False), ("bob", False)):
        monkeypatch.setattr(evaluation, "visitor", lambda name=visitor: name)
        at = open_page("pages/4_Evaluate.py", run=run_id)
        if presses:
            at.button(key="evaluate").click().run()
        assert ("Test accuracy" in metrics(at)) == (visitor == "ada")


def test_evaluate_measures_the_three_modes(engine, run_id):
    """The comparison runs in the queue and ends with a chart each for time, memory."""
    at = open_page("pages/4_Evaluate.py", run=run_id)
    press(at, engine, "compare_modes", "core.evaluate.evaluation:compare_modes")
    assert len(at.get("vega_lite_chart")) == 3  # one is of a prediction


def test_a_picture_is_predicted(run_id):
    """A test image by its number, a file, a photo: all end with ten probabilities."""
    at = open_page("pages/4_Evaluate.py", run=run_id)
    at.number_input(key="picture_number").set_value(7).run()
    assert not at.error
    assert "Test image 7" in texts(at.markdown)
    assert "The model says" in texts(at.markdown)
    at.radio(key="picture_source").set_value("A file").run()
    assert "The model says" not in texts(at.markdown)
    drawn = io.BytesIO()
    shirt = ImageDraw.Draw(image := Image.new("L", (90, 120), 240))
    shirt.rectangle((25, 30, 65, 90), fill=40)
    image.save(drawn, "PNG")
    uploader = at.file_uploader(key="picture_file")
    uploader.upload("shirt.png", drawn.getvalue(), "image/png").run()
    assert not at.error
    assert "The model says" in texts(at.markdown)
    assert "Photos are unlike the training set" in texts(at.markdown)
    at.file_uploader(key="picture_file").upload("x.png", b"none", "image/png").run()
    assert not at.exception
    assert "not a picture" in texts(at.error)
    at.radio(key="picture_source").set_value("The camera").run()
    assert not at.error
    image.save(photo := io.BytesIO(), "JPEG")
    at.camera_input(key="picture_photo").upload("me.jpg", photo.getvalue()).run()
    assert not at.error
    assert "The model says" in texts(at.markdown)
