import io
import re
import zlib

import numpy as np
import pytest
from PIL import Image

from core.data import datasets
from core.lessons.evaluate import picture
from tests.process import HOUR
from to_device.errors import ExplainedError

SPRITE = 5


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """On a machine that is busy, any picture may take long."""
    monkeypatch.setattr(picture, "SECONDS", HOUR)


def encoded(pixels: np.ndarray, form: str = "PNG", **options) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, form, **options)
    return buffer.getvalue()


def sprite() -> np.ndarray:
    return datasets.load("sprites").test.images[SPRITE, 0].numpy()


def photo(pixels: np.ndarray, wall: int = 235) -> np.ndarray:
    """The piece of clothing, dark on a bright wall, off the middle, 10 times larger."""
    canvas = np.full((500, 400), wall, dtype=np.uint8)
    large = np.asarray(Image.fromarray(pixels).resize((280, 280)), dtype=float) / 255
    canvas[150:430, 20:300] = (wall * (1 - large)).astype(np.uint8)
    return canvas


def likeness(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of two pictures, -1 to 1."""
    return float(np.corrcoef(a.ravel().astype(float), b.ravel().astype(float))[0, 1])


def is_the_sprite(prepared: picture.Picture) -> bool:
    return likeness(prepared.pixels, picture.prepare(encoded(sprite())).pixels) > 0.9


def test_a_picture_of_the_dataset_stays_much_as_it_is():
    prepared = picture.prepare(encoded(sprite()))
    assert not prepared.negated
    assert (prepared.pixels.shape, prepared.pixels.dtype) == ((28, 28), np.uint8)
    assert is_the_sprite(picture.prepare(encoded(prepared.pixels)))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP", "GIF"])
def test_a_photo_becomes_what_the_dataset_has(form):
    prepared = picture.prepare(encoded(photo(sprite()), form))
    assert prepared.negated
    assert is_the_sprite(prepared)


def test_what_is_seen_fills_the_frame_and_sits_in_the_middle():
    wide = np.full((300, 300), 255, dtype=np.uint8)
    wide[200:260, 20:220] = 30
    rows, columns = np.nonzero(picture.prepare(encoded(wide)).pixels)
    assert columns.min() == 0
    assert columns.max() == 27
    assert abs(int(rows.min()) - (27 - int(rows.max()))) <= 1


def test_the_background_becomes_exactly_black():
    for wall in (160, 200, 250):
        pixels = picture.prepare(encoded(photo(sprite(), wall))).pixels
        assert (pixels == 0).mean() > 0.2


def test_a_transparent_picture_lies_on_white():
    cut_out = np.zeros((100, 100, 4), dtype=np.uint8)
    cut_out[30:70, 30:70] = (20, 20, 20, 255)
    prepared = picture.prepare(encoded(cut_out))
    assert prepared.negated
    assert prepared.pixels.max() > 200


def test_a_photo_that_lies_on_its_side_is_turned():
    tall = np.full((200, 100), 255, dtype=np.uint8)
    tall[20:180, 40:60] = 0
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    prepared = picture.prepare(encoded(tall, "JPEG", exif=exif))
    rows, columns = np.nonzero(prepared.pixels > 100)
    assert np.ptp(columns) > np.ptp(rows)


@pytest.mark.parametrize("form", ["16-bit", "palette", "CMYK", "animated"])
def test_rarer_kinds_of_pictures_are_seen_as_they_are(form):
    gray = Image.fromarray(photo(sprite()))
    buffer = io.BytesIO()
    if form == "16-bit":
        Image.fromarray(np.asarray(gray).astype(np.uint16) * 257).save(buffer, "PNG")
    elif form == "palette":
        gray.putalpha(gray.point(lambda value: 255 * (value < 235)))
        gray.convert("RGBA").quantize(16).save(buffer, "PNG")
    elif form == "CMYK":
        gray.convert("CMYK").save(buffer, "JPEG")
    else:
        frames = [gray.rotate(90), gray.rotate(180)]
        gray.save(buffer, "GIF", save_all=True, append_images=frames)
    prepared = picture.prepare(buffer.getvalue())
    assert prepared.negated
    assert is_the_sprite(prepared)


def test_the_largest_picture_fits_into_its_memory(monkeypatch):
    wall = Image.new("P", (7000, 7000), 1)
    wall.putpalette([0, 0, 0, 240, 240, 240])
    wall.paste(0, (1000, 1000, 4000, 6000))
    wall.save(buffer := io.BytesIO(), "PNG", compress_level=1, transparency=2)
    assert picture.prepare_apart(buffer.getvalue()).negated
    monkeypatch.setattr(picture, "MEMORY_BYTES", 40_000_000)
    with pytest.raises(
        ExplainedError, match=re.escape(picture.words("picture.memory"))
    ):
        picture.prepare_apart(buffer.getvalue())


def test_a_picture_that_takes_too_long_is_a_sentence(monkeypatch):
    monkeypatch.setattr(picture, "SECONDS", 0.0)
    with pytest.raises(ExplainedError, match=r"\b0 s.*PNG"):
        picture.prepare_apart(encoded(sprite()))


def line(height: int, width: int) -> np.ndarray:
    """A hair on a wall."""
    pixels = np.full((400, 400), 255, dtype=np.uint8)
    pixels[10 : 10 + height, 10 : 10 + width] = 0
    return pixels


NO_PICTURE, NOTHING, THIN = (
    picture.words(f"picture.{key}") for key in ("no_picture", "nothing", "thin")
)
POSTSCRIPT = (
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
)


def bomb() -> bytes:
    """A small file that says it holds 40,000 × 40,000 pixels."""
    whole = bytearray(encoded(np.zeros((1, 1), dtype=np.uint8)))
    whole[16:24] = (40_000).to_bytes(4, "big") * 2
    whole[29:33] = zlib.crc32(whole[12:29]).to_bytes(4, "big")
    return bytes(whole)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", NO_PICTURE),
        (b"no picture at all" * 100, NO_PICTURE),
        (encoded(np.full((50, 50), 128, dtype=np.uint8)), NOTHING),
        (encoded(np.zeros((1, 1), dtype=np.uint8)), NOTHING),
        (encoded(photo(sprite()), "JPEG")[:2000], "damaged"),
        (b"x" * (picture.MOST_BYTES + 1), "10 MB"),
        (bomb(), picture.words("picture.pixels")),
        (encoded(line(380, 2)), THIN),
        (encoded(line(2, 380)), THIN),
        (encoded(np.repeat([0, 255], 50_000).astype(np.uint8)[:, None]), THIN),
        (POSTSCRIPT, NO_PICTURE),
        (encoded(sprite(), "TIFF"), NO_PICTURE),
    ],
    ids=[
        *("empty", "text", "one-shade", "one-pixel", "truncated", "large", "bomb"),
        *("hair", "lying-hair", "column", "postscript", "unnamed-format"),
    ],
)
def test_what_is_no_picture_of_clothing_is_a_sentence(data, message):
    with pytest.raises(ExplainedError, match=re.escape(message)):
        picture.prepare_apart(data)
