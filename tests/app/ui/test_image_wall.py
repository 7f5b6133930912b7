import base64
import io
from types import SimpleNamespace

import numpy as np
from PIL import Image
from streamlit.elements.lib import image_utils

from core.ui import image_wall as wall
from core.ui.charts import DARK, LIGHT
from tests.figures import figures


def color(text: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(text[1:]))


def test_the_ground_and_the_ink_are_the_themes():
    blank, full = np.zeros((1, 28, 28), np.uint8), np.full((1, 28, 28), 255, np.uint8)
    side = 28 * wall.ZOOM
    for colors in (LIGHT, DARK):
        picture = wall.montage(np.concatenate([blank, full]), colors)
        assert tuple(picture[side // 2, side // 2]) == color(colors.ground)
        assert tuple(picture[side // 2, side]) == color(colors.page)
        assert tuple(picture[side // 2, -1]) == color(colors.text)
        assert picture.shape == (side, 2 * side + wall.GAP, 3)


def test_the_browser_gets_the_images_as_ink_on_nothing(monkeypatch):
    drawn = np.random.default_rng(0).integers(0, 256, (50, 28, 28), np.uint8)
    monkeypatch.setattr(wall, "images", lambda _: (drawn, (0,) * 50))
    wall.sprite.cache_clear()
    picture = Image.open(io.BytesIO(wall.sprite("sprites", dark=True))).convert("RGBA")
    wall.sprite.cache_clear()
    assert picture.size == (10 * 28 * wall.ZOOM, 5 * 28 * wall.ZOOM)
    pixels = np.asarray(picture)[:: wall.ZOOM, :: wall.ZOOM]
    assert (pixels[:28, 28:56, 3] == drawn[1]).all()
    assert (pixels[28:56, :28, 3] == drawn[10]).all()
    assert tuple(pixels[5, 5, :3]) == color(DARK.text)


def run_of(*walls: tuple[int, ...], ended: bool = False) -> SimpleNamespace:
    """A run whose epochs ended with these predicted classes."""
    history = [SimpleNamespace(wall=wall) for wall in walls]
    config = SimpleNamespace(epochs=5)
    job = SimpleNamespace(ended=ended)
    return SimpleNamespace(history=history, config=config, job=job, result=None)


def test_a_number_of_mistakes_that_goes_up_is_explained_while_it_trains():
    labels = (0, 1, 2, 3)
    better, worse = (0, 1, 2, 0), (0, 1, 0, 0)
    assert "chance" in wall.caption(run_of(better, worse), labels, "your")
    assert "chance" not in wall.caption(run_of(worse, better), labels, "your")
    stopped = wall.caption(run_of(better, worse, ended=True), labels, "your")
    assert "chance" not in stopped
    assert figures(stopped) == ["2", "50"]  # wrong ones, of the wall's images


def test_a_drawing_of_another_size_asks_no_worker(monkeypatch):
    calls = []
    monkeypatch.setattr(wall.st, "session_state", {})
    monkeypatch.setattr(wall, "ask", lambda *arguments, **_: calls.append(arguments))
    run = SimpleNamespace(id="a run")
    for n, ink in enumerate((b"", bytes(wall.INK**2 + 1), bytes(10**6))):
        drawn = {"n": n, "ink": base64.b64encode(ink).decode()}
        assert wall._answer(run, drawn)["problem"] == wall.words("wall.size")
    dot = {"n": 9, "ink": base64.b64encode(b"\xff" + bytes(wall.INK**2 - 1)).decode()}
    assert wall._answer(run, dot)["problem"] == wall.words("wall.little")
    monkeypatch.setattr(wall.st, "session_state", {})
    for sent in ({"n": "x" * 10**6, "ink": ""}, {"n": 1}, "no drawing"):
        assert wall._answer(run, sent) == {}
    assert not calls


def test_a_row_of_many_is_no_wider_than_streamlit_leaves_as_it_is():
    images = np.zeros((50, 28, 28), np.uint8)
    for columns in (10, 17, 25):
        picture = wall.montage(images, LIGHT, columns=columns)
        assert picture.shape[1] <= image_utils.MAXIMUM_CONTENT_WIDTH
        assert picture.shape[0] > 0
