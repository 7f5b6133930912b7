"""Many images in one picture."""

import io

import numpy as np
from PIL import Image
from streamlit.elements.lib import image_utils
from streamlit.testing.v1 import AppTest

from core.ui import wall
from core.ui.charts import DARK, LIGHT


def color(text: str) -> tuple[int, ...]:
    """#rrggbb as three numbers."""
    return tuple(bytes.fromhex(text[1:]))


def test_the_ground_and_the_ink_are_the_themes():
    blank, full = np.zeros((1, 28, 28), np.uint8), np.full((1, 28, 28), 255, np.uint8)
    for colors in (LIGHT, DARK):
        middle = wall.FRAME + 28
        picture = wall.montage(np.concatenate([blank, full]), frozenset(), colors)
        right = middle + 28 * wall.ZOOM + 2 * wall.FRAME + wall.GAP
        assert tuple(picture[middle, middle]) == color(colors.ground)
        assert tuple(picture[middle, right]) == color(colors.text)
        gap = 28 * wall.ZOOM + 2 * wall.FRAME
        assert tuple(picture[middle, gap]) == color(colors.page)


def test_what_is_wrong_is_framed_and_nothing_else():
    images = np.zeros((12, 28, 28), np.uint8)
    picture = wall.montage(images, frozenset({11}), LIGHT)
    step = 28 * wall.ZOOM + 2 * wall.FRAME + wall.GAP
    red = (picture == color(LIGHT.wrong)).all(axis=2)
    assert red[step, step]
    assert red.sum() == (step - wall.GAP) ** 2 - (28 * wall.ZOOM) ** 2


def test_the_file_is_the_picture():
    picture = wall.montage(np.zeros((50, 28, 28), np.uint8), frozenset({0}), DARK)
    read = np.asarray(Image.open(io.BytesIO(wall.png(picture))))
    assert (read == picture).all()
    assert read.shape[1] > read.shape[0] * 1.9


def test_a_row_of_many_is_no_wider_than_streamlit_leaves_as_it_is():
    images = np.zeros((50, 28, 28), np.uint8)
    for columns in (10, 17, 25):
        picture = wall.montage(images, frozenset(), LIGHT, columns=columns)
        assert picture.shape[1] <= image_utils.MAXIMUM_CONTENT_WIDTH
        assert picture.shape[0] > 0


def shown_wide() -> None:
    """A page with a picture as wide as one can be."""
    import numpy as np

    from core.ui import wall

    wall.show_png(wall.png(np.zeros((20, wall.WIDEST, 3), np.uint8)), "wide")


def test_the_browser_gets_a_png():
    at = AppTest.from_function(shown_wide, default_timeout=60).run()
    (image,) = at.get("image")
    assert image.proto.imgs[0].url.endswith(".png")
