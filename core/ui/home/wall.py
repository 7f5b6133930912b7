"""The wardrobe wall: fifty test images in one picture, framed where a run is wrong."""

import io
from functools import lru_cache

import numpy as np
import streamlit as st
from PIL import Image

from core.results import WALL
from core.ui.charts.base import Palette, palette
from core.ui.runs import Run
from core.ui.server import ask

COLUMNS = 10
ZOOM = 3  # pixels of the picture for a pixel of an image
FRAME, GAP = 5, 5  # pixels of the picture


@st.cache_data(max_entries=4, show_spinner=False)
def images(task: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """The wall's images, uint8 (50, 28, 28), and their true classes.

    Asked once of the workers. Raises ExplainedError.
    """
    which = tuple(range(WALL))
    pixels = ask("core.evaluate.evaluation:images", task, which)
    return pixels, tuple(ask("core.evaluate.evaluation:labels", task, which))


def montage(
    images: np.ndarray, wrong: frozenset[int], colors: Palette, zoom: int = ZOOM
) -> np.ndarray:
    """Images (n, 28, 28) in rows of ten: uint8 (height, width, 3), in the theme's ink.

    Those at the places `wrong` are framed.
    """
    ground, ink, frame, page = (
        np.array(Image.new("RGB", (1, 1), color).getpixel((0, 0)), float)
        for color in (colors.ground, colors.text, colors.wrong, colors.page)
    )
    side = images.shape[1] * zoom
    tile, columns = side + 2 * FRAME, min(COLUMNS, len(images))
    rows = -(-len(images) // columns)
    picture = np.empty((rows * (tile + GAP) - GAP, columns * (tile + GAP) - GAP, 3))
    picture[:] = page
    for place, image in enumerate(images):
        row, column = divmod(place, columns)
        top, left = row * (tile + GAP), column * (tile + GAP)
        around = frame if place in wrong else ground
        picture[top : top + tile, left : left + tile] = around
        share = image.repeat(zoom, 0).repeat(zoom, 1)[:, :, np.newaxis] / 255
        inner = slice(top + FRAME, top + FRAME + side)
        across = slice(left + FRAME, left + FRAME + side)
        picture[inner, across] = ground + share * (ink - ground)
    return picture.round().astype(np.uint8)


@lru_cache(maxsize=128)  # of some 40 kB; a look at a run that goes on costs nothing
def _png(task: str | None, wrong: frozenset[int], colors: Palette) -> bytes:
    """The wall of a task; without one, as many empty tiles."""
    pixels = images(task)[0] if task else np.zeros((WALL, 28, 28), np.uint8)
    return png(montage(pixels, wrong, colors))


def png(picture: np.ndarray) -> bytes:
    """The file that a browser gets."""
    Image.fromarray(picture).save(file := io.BytesIO(), "PNG")
    return file.getvalue()


def wrong(run: Run | None, labels: tuple[int, ...]) -> frozenset[int] | None:
    """The places where the run's newest epoch is wrong; None before there is one."""
    answers = run.history[-1].wall if run and run.history else ()
    if not answers:
        return None
    pairs = zip(answers, labels, strict=True)
    return frozenset(i for i, (said, true) in enumerate(pairs) if said != true)


def draw(task: str | None, framed: frozenset[int]) -> None:
    """The picture; without a task, the place where it will be."""
    alt = f"{WALL} test images of clothes, {COLUMNS} in a row"
    if framed:
        places = ", ".join(str(place + 1) for place in sorted(framed))
        alt += f"; framed in red, since the model is wrong: {places}"
    st.image(_png(task, framed, palette()), alt=alt, width="stretch")
