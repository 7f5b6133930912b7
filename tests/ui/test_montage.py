"""core.ui.montage: many images in one picture."""

import io

import numpy as np
from PIL import Image

from core.ui import montage
from core.ui.charts.base import DARK, LIGHT


def color(text: str) -> tuple[int, ...]:
    """#rrggbb as three numbers."""
    return tuple(bytes.fromhex(text[1:]))


def test_the_ground_and_the_ink_are_the_themes():
    """Nothing of an image is the ground, all of it the ink; between them the page."""
    blank, full = np.zeros((1, 28, 28), np.uint8), np.full((1, 28, 28), 255, np.uint8)
    for colors in (LIGHT, DARK):
        middle = montage.FRAME + 28
        picture = montage.montage(np.concatenate([blank, full]), frozenset(), colors)
        right = middle + 28 * montage.ZOOM + 2 * montage.FRAME + montage.GAP
        assert tuple(picture[middle, middle]) == color(colors.ground)
        assert tuple(picture[middle, right]) == color(colors.text)
        gap = 28 * montage.ZOOM + 2 * montage.FRAME
        assert tuple(picture[middle, gap]) == color(colors.page)


def test_what_is_wrong_is_framed_and_nothing_else():
    """The frame is around the image at its place, in its row of ten."""
    images = np.zeros((12, 28, 28), np.uint8)
    picture = montage.montage(images, frozenset({11}), LIGHT)
    step = 28 * montage.ZOOM + 2 * montage.FRAME + montage.GAP
    red = (picture == color(LIGHT.wrong)).all(axis=2)
    assert red[step, step]
    assert red.sum() == (step - montage.GAP) ** 2 - (28 * montage.ZOOM) ** 2


def test_the_file_is_the_picture():
    """A PNG loses nothing."""
    picture = montage.montage(np.zeros((50, 28, 28), np.uint8), frozenset({0}), DARK)
    read = np.asarray(Image.open(io.BytesIO(montage.png(picture))))
    assert (read == picture).all()
    assert read.shape[1] > read.shape[0] * 1.9
