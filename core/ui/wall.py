"""Many small images as one picture, which draws at once.

The wardrobe wall is fifty test images, framed where a run is wrong.
"""

import io
from functools import lru_cache
from typing import Literal

import numpy as np
import streamlit as st
from PIL import Image, ImageColor

from core.results import WALL
from core.ui.charts import Palette, palette
from core.ui.runs import Run
from core.ui.server import ask, engine, explained

Width = int | Literal["stretch", "content"]
COLUMNS = 10
ZOOM = 3  # pixels of the picture for a pixel of an image
FRAME, GAP = 5, 5  # pixels of the picture
WIDEST = 1460  # pixels; Streamlit would shrink a wider picture each time it is drawn


def montage(
    images: np.ndarray,
    wrong: frozenset[int],
    colors: Palette,
    zoom: int = ZOOM,
    columns: int = COLUMNS,
) -> np.ndarray:
    """Images (n, 28, 28) in rows: uint8 (height, width, 3), in the ink of the theme.

    Those at the places `wrong` are framed. The zoom is less where a row would be wider
    than WIDEST.
    """
    ground, ink, frame, page = (
        np.array(ImageColor.getrgb(color), float)
        for color in (colors.ground, colors.text, colors.wrong, colors.page)
    )
    columns = min(columns, len(images))
    most = (WIDEST // columns - GAP - 2 * FRAME) // images.shape[1]
    side = images.shape[1] * (zoom := min(zoom, most))
    tile = side + 2 * FRAME
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


def png(picture: np.ndarray) -> bytes:
    Image.fromarray(picture).save(file := io.BytesIO(), "PNG")
    return file.getvalue()


def show(
    images: np.ndarray,
    alt: str,
    width: Width = "stretch",
    wrong: frozenset[int] = frozenset(),
    zoom: int = ZOOM,
    columns: int = COLUMNS,
) -> None:
    """Draw a montage."""
    show_png(png(montage(images, wrong, palette(), zoom, columns)), alt, width)


def show_png(file: bytes, alt: str, width: Width = "stretch") -> None:
    """Draw a picture of `png` as it is; of an array Streamlit would make a JPEG."""
    st.image(file, alt=alt, width=width, output_format="PNG")


# The wall


@st.cache_data(max_entries=4, show_spinner=False)
def images(task: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """The wall's images, uint8 (50, 28, 28), and their true classes.

    Raises ExplainedError.
    """
    return ask("core.lessons.evaluate.evaluation:images", task, tuple(range(WALL)))


@lru_cache(maxsize=128)  # some 40 kB each; a run that goes on is drawn every second
def _png(
    task: str | None, wrong: frozenset[int], colors: Palette, columns: int
) -> bytes:
    """The wall of a task; without a task, as many empty tiles."""
    pixels = images(task)[0] if task else np.zeros((WALL, 28, 28), np.uint8)
    return png(montage(pixels, wrong, colors, columns=columns))


def wrong(run: Run | None, labels: tuple[int, ...]) -> frozenset[int] | None:
    """The places where the run's newest epoch is wrong; None before the first epoch."""
    answers = run.history[-1].wall if run and run.history else ()
    if not answers:
        return None
    pairs = zip(answers, labels, strict=True)
    return frozenset(i for i, (said, true) in enumerate(pairs) if said != true)


def draw(
    task: str, run: Run | None, whose: str, columns: int = COLUMNS
) -> frozenset[int] | None:
    """Draw the wall with a caption; returns the framed places, as `wrong` does.

    Until the workers have answered its tiles are empty.
    """
    labels: tuple[int, ...] = ()
    if engine().machine() is not None:
        with explained("The pictures did not come"):
            labels = images(task)[1]
    framed = wrong(run, labels) if labels else None
    alt = f"{WALL} test images of clothes, {columns} in a row"
    if framed:
        places = ", ".join(str(place + 1) for place in sorted(framed))
        alt += f"; framed in red, since the model is wrong: {places}"
    file = _png(task if labels else None, framed or frozenset(), palette(), columns)
    show_png(file, alt)
    if framed is None or run is None:
        caption = (
            f"None of these {WALL} images is used for training. The ones your model "
            "gets wrong will be framed in red."
        )
    else:
        which = f"{whose} model".capitalize()
        if not run.job.ended:
            which = f"After epoch {len(run.history)} of {run.config.epochs} it"
        caption = f"{which} gets **{len(framed)} of these {WALL}** wrong."
        caption += " They're framed in red." * bool(framed)
    st.markdown(f":small[{caption}]")
    return framed
