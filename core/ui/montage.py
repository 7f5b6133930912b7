"""Many small images as one picture, which draws at once."""

import io
from typing import Literal

import numpy as np
import streamlit as st
from PIL import Image, ImageColor

from core.ui.charts import Palette

COLUMNS = 10
Width = int | Literal["stretch", "content"]
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


def show(file: bytes, alt: str, width: Width = "stretch") -> None:
    """Draw a picture of `png` as it is; of an array Streamlit would make a JPEG."""
    st.image(file, alt=alt, width=width, output_format="PNG")
