"""Turn a picture of a piece of clothing into an image like Fashion-MNIST's.

The dataset's images were made like this (Xiao, Rasul and Vollgraf, arXiv:1708.07747,
section 2): trim what has the color of the corners, shrink the longer side to 28
pixels, sharpen, center on 28×28, negate, convert to 8-bit gray. The original pictures
were taken in a studio, on white. Here, the background is measured at the picture's
edge, and the picture is negated only if the background is brighter than the object.
"""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageFilter, ImageOps, UnidentifiedImageError

from core.jobs import child_process
from to_device.errors import ExplainedError, quoted
from to_device.words import Words

words = Words(__file__)

SIZE = 28
# Pillow may read only these formats. Otherwise, it would call Ghostscript, which would
# run PostScript files.
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF")
MOST_BYTES = 10_000_000
MOST_PIXELS = 50_000_000  # most phones save pictures of 12 million
MEMORY_BYTES = 600_000_000  # limit for the process that opens a picture
# Time limit for the same process: a PNG of MOST_PIXELS takes up to 6 s on a busy core.
SECONDS = 10.0
WORKING_SIZE = 512  # pixels along the longest edge, for all steps before the last
# If a gray value (0 to 1) differs by less than this from the background's, the pixel is
# background.
CONTRAST = 0.12

# If a smaller share of the pixels differs from the background, the difference is noise.
LEAST_SHARE = 1e-3


@dataclass(frozen=True)
class Picture:
    """A prepared picture, and the steps that led to it."""

    gray: Any  # uint8 (height, width)
    lifted: Any  # the same, with a black background
    trimmed: Any  # the same, without the background around the object
    pixels: Any  # uint8 (28, 28), as the model sees it
    negated: bool

    @property
    def steps(self) -> dict[str, Any]:
        """Each step's name and its image."""
        return {
            "In gray": self.gray,
            "Inverted" if self.negated else "Background removed": self.lifted,
            "Trimmed": self.trimmed,
            "28×28": self.pixels,
        }


@dataclass(frozen=True)
class Sent:
    """A Picture as a process sends it: for each image, its height and its pixels."""

    images: tuple[tuple[int, bytes], ...]
    negated: bool


def prepare_apart(data: bytes) -> Picture:
    """Call `prepare` in a separate process, since a harmful file may crash it."""
    try:
        sent: Sent = child_process.call(
            "core.lessons.evaluate.picture:prepare_and_send",
            data,
            seconds=SECONDS,
            memory_bytes=MEMORY_BYTES,
            hostile=True,
        )
        return _received(sent)
    except child_process.ChildDiedError as error:
        raise ExplainedError(
            f"The app could not open the picture in a separate process. {error} Save "
            "a smaller version as PNG or JPEG."
        ) from None


def prepare_and_send(data: bytes) -> Sent:
    """The part of `prepare_apart` that runs in the child process."""
    done = prepare(data)
    images = (done.gray, done.lifted, done.trimmed, done.pixels)
    return Sent(tuple((len(image), image.tobytes()) for image in images), done.negated)


def _received(sent: Sent) -> Picture:
    """Raises UnreadableAnswerError if these aren't the images of a Picture."""
    try:
        images = [
            np.frombuffer(pixels, dtype=np.uint8).reshape(height, -1)
            for height, pixels in sent.images
        ]
        gray, lifted, trimmed, pixels = images
    except ValueError:
        raise child_process.UnreadableAnswerError from None
    sides = {side for image in images for side in image.shape}
    if (
        pixels.shape != (SIZE, SIZE)
        or not 1 <= min(sides) <= max(sides) <= WORKING_SIZE
    ):
        raise child_process.UnreadableAnswerError
    return Picture(gray, lifted, trimmed, pixels, sent.negated)


def prepare(data: bytes) -> Picture:
    """Turn the bytes of an image file into 28×28 gray pixels.

    Raises ExplainedError if that can't be done.
    """
    return in_gray(np.asarray(_open(data), dtype=np.float32) / 255)


def in_gray(gray: np.ndarray) -> Picture:
    """Like `prepare`, for gray pixels (height, width) from 0 (black) to 1 (white)."""
    width = max(1, min(gray.shape) // 50)  # pixels of the border, which is background
    border = np.ones(gray.shape, dtype=bool)
    border[width:-width, width:-width] = False
    background = float(np.median(gray[border]))
    difference = gray - background
    object_there = np.abs(difference) > CONTRAST
    if object_there.mean() < LEAST_SHARE:
        raise ExplainedError(words("picture.nothing"))
    negated = float(difference[object_there].mean()) < 0
    lifted = np.clip(-difference if negated else difference, 0, None)
    lifted[~object_there] = 0
    lifted /= background if negated else 1 - background

    rows = np.flatnonzero(object_there.any(axis=1))
    columns = np.flatnonzero(object_there.any(axis=0))
    trimmed = lifted[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    if _is_thin(gray) or _is_thin(trimmed):
        raise ExplainedError(words("picture.thin"))
    small = ImageOps.contain(Image.fromarray(_as_bytes(trimmed)), (SIZE, SIZE))
    small = small.filter(ImageFilter.UnsharpMask(radius=1, percent=60))
    centered = Image.new("L", (SIZE, SIZE))
    left, top = (SIZE - small.width) // 2, (SIZE - small.height) // 2
    centered.paste(small, (left, top))
    pixels = np.asarray(centered)
    return Picture(
        _as_bytes(gray), _as_bytes(lifted), _as_bytes(trimmed), pixels, negated
    )


def _open(data: bytes) -> Image.Image:
    """The picture in gray and upright, with at most WORKING_SIZE pixels per side."""
    if len(data) > MOST_BYTES:
        raise ExplainedError(
            f"The file is {len(data) / 1e6:.0f} MB, and the limit is "
            f"{MOST_BYTES / 1e6:.0f} MB. Save a smaller version."
        )
    try:
        image: Image.Image = Image.open(io.BytesIO(data), formats=FORMATS)
        if image.width * image.height > MOST_PIXELS:
            raise ExplainedError(words("picture.pixels"))
        image.draft("L", (WORKING_SIZE, WORKING_SIZE))  # shrinks a JPEG as it is read
        ImageOps.exif_transpose(image, in_place=True)
        if image.mode.startswith("I;16"):  # convert() would turn values over 255 white
            image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        if image.has_transparency_data:
            image = image if image.mode == "RGBA" else image.convert("RGBA")
            image.thumbnail((WORKING_SIZE, WORKING_SIZE))
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
        image = image.convert("L")
    except UnidentifiedImageError:
        raise ExplainedError(words("picture.no_picture")) from None
    except Image.DecompressionBombError:
        raise ExplainedError(words("picture.pixels")) from None
    except MemoryError:
        raise ExplainedError(words("picture.memory")) from None
    except (OSError, SyntaxError, ValueError) as error:  # Pillow on a damaged file
        message = (
            f"The picture is damaged: {quoted(error)}. Open the file in "
            "an image editor, and export it as PNG or JPEG."
        )
        raise ExplainedError(message) from None
    image.thumbnail((WORKING_SIZE, WORKING_SIZE))
    return image


def _is_thin(pixels: np.ndarray) -> bool:
    """Whether the short edge is under a pixel if the long edge shrinks to SIZE."""
    return max(pixels.shape) > SIZE * min(pixels.shape)


def _as_bytes(values: np.ndarray) -> np.ndarray:
    """uint8 from 0 to 255, for floats from 0 to 1."""
    return (np.clip(values, 0, 1) * 255).round().astype(np.uint8)
