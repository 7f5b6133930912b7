"""Test images: as one picture, and as the wall, whose images react to a click.

The wall has fifty test images. The images that a run's model gets wrong are framed in
red. The wall also shows what the model says about the chosen image or about a drawing.
"""

import base64
import io
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from PIL import Image, ImageColor
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core.config import IMAGE_TASKS
from core.data.fashion_mnist import CLASSES  # the sprites have the same classes
from core.results import WALL
from core.ui.charts import DARK, LIGHT, Palette, palette
from core.ui.runs import Run
from core.ui.server import ask, engine, explained
from to_device.errors import ExplainedError
from to_device.words import Words

COLUMNS = 10
ZOOM = 3  # side of an image's pixel, in pixels of the picture
GAP = 5  # between two images, in pixels of the picture
WIDEST = 1460  # pixels; Streamlit would shrink a wider picture each time it is drawn
ANSWER_SECONDS = 5.0
DRAWING = "wall_drawing"
INK = 56  # side of a drawing in pixels, as image_wall.js sends it
HTML = Path(__file__).with_suffix(".html").read_text("utf-8")
LEAST_INK = 0.03  # share of a drawing's pixels; with less ink, the model isn't asked
words = Words(__file__)


def montage(
    images: np.ndarray,
    colors: Palette,
    zoom: int = ZOOM,
    columns: int = COLUMNS,
) -> np.ndarray:
    """Put images, uint8 (n, 28, 28), into rows of a picture, uint8 (height, width, 3).

    The picture has the theme's `colors`. The zoom is smaller if rows would be wider
    than WIDEST.
    """
    ground, ink, page = (
        np.array(ImageColor.getrgb(color), float)
        for color in (colors.ground, colors.text, colors.page)
    )
    columns = min(columns, len(images))
    zoom = min(zoom, (WIDEST // columns - GAP) // images.shape[1])
    shares = images.repeat(zoom, 1).repeat(zoom, 2)[..., np.newaxis] / 255
    side, rows = shares.shape[1], -(-len(images) // columns)
    tiles = np.full((rows * columns, side + GAP, side + GAP, 3), page)
    tiles[: len(images), :side, :side] = ground + shares * (ink - ground)
    picture = tiles.reshape(rows, columns, *tiles.shape[1:]).swapaxes(1, 2)
    picture = picture.reshape(rows * (side + GAP), columns * (side + GAP), 3)
    return picture[:-GAP, :-GAP].round().astype(np.uint8)


def png(picture: np.ndarray) -> bytes:
    Image.fromarray(picture).save(file := io.BytesIO(), "PNG")
    return file.getvalue()


def show(
    images: np.ndarray,
    alt: str,
    width: Any = "stretch",
    zoom: int = ZOOM,
    columns: int = COLUMNS,
) -> None:
    # Streamlit would turn an array into a JPEG.
    file = png(montage(images, palette(), zoom, columns))
    st.image(file, alt=alt, width=width, output_format="PNG")


_wall = st.components.v2.component(
    "wall",
    html=HTML.format(
        tiles="<button></button>" * WALL,
        rows="<div><b></b><i></i><span></span></div>" * len(CLASSES),
    ),
    css=Path(__file__).with_suffix(".css").read_text("utf-8"),
    js=Path(__file__).with_suffix(".js").read_text("utf-8"),
)


@cache
def images(task: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """The wall's images, uint8 (50, 28, 28), and their true classes."""
    return ask("core.lessons.evaluate.evaluation:images", task, tuple(range(WALL)))


@cache
def sprite(task: str, dark: bool) -> bytes:
    """A PNG for CSS: the wall's images without gaps, on a transparent background."""
    pixels = images(task)[0].repeat(ZOOM, 1).repeat(ZOOM, 2)
    rows = pixels.reshape(-1, COLUMNS, *pixels.shape[1:]).swapaxes(1, 2)
    picture = Image.fromarray(rows.reshape(rows.shape[0] * rows.shape[1], -1), "P")
    picture.putpalette(ImageColor.getrgb((DARK if dark else LIGHT).text) * 256)
    picture.save(file := io.BytesIO(), "PNG", transparency=bytes(range(256)))
    return file.getvalue()


async def send_sprite(request: Request) -> Response:
    """Send a sprite, which browsers keep: the content at its address never changes."""
    task, theme = request.path_params["task"], request.path_params["theme"]
    if task not in IMAGE_TASKS:
        return Response(status_code=404)
    try:
        picture = await run_in_threadpool(sprite, task, theme == "dark")
    except ExplainedError:
        return Response(status_code=503)
    headers = {"Cache-Control": "max-age=604800, immutable"}
    return Response(picture, media_type="image/png", headers=headers)


ROUTES = [Route("/wall/{task}-{theme}.png", send_sprite)]


def wrong(
    run: Run | None, labels: tuple[int, ...], back: int = 1
) -> frozenset[int] | None:
    """Indices of the images that the run got wrong in the epoch `history[-back]`.

    None if the model has given no answers in that epoch.
    """
    answers = run.history[-back].wall if run and len(run.history) >= back else ()
    if not answers or not labels:
        return None
    pairs = zip(answers, labels, strict=True)
    return frozenset(i for i, (answer, label) in enumerate(pairs) if answer != label)


def draw(task: str, run: Run | None, whose: str, beside: bool = False) -> None:
    """Draw the wall with a caption, and the model's answer to the chosen image.

    The answer is below the wall, or `beside` it if there is room. Until the workers
    have answered, the wall's tiles are empty.
    """
    labels: tuple[int, ...] = ()
    if engine().machine() is not None:
        with explained("The images could not be loaded"):
            labels = images(task)[1]
    st.markdown(f":small[{caption(run, labels, whose)}]")
    _board(task, run, labels, beside)


def caption(run: Run | None, labels: tuple[int, ...], whose: str) -> str:
    """Sentences on how many images the model gets wrong."""
    now, before = wrong(run, labels), wrong(run, labels, back=2)
    if run is None or now is None:
        return (
            f"Your model never trains on these {WALL} test images. "
            "Those that it gets wrong will be framed in red."
        )
    which = f"{whose} model gets".capitalize()
    if not run.job.ended:
        epochs = f"{len(run.history)} of {run.config.epochs}"
        which = f"After epoch {epochs}, {whose} model gets"
    elif run.result is None:
        which = f"When the run stopped, {whose} model got"
    text = f"{which} **{len(now)} of these {WALL} images** wrong."
    if before is not None and len(now) > len(before) and not run.job.ended:
        return f"{text} {words('wall.more', before=len(before))}"
    return f"{text} They're framed in red." if now else text


@st.fragment
def _board(task: str, run: Run | None, labels: tuple[int, ...], beside: bool) -> None:
    last = run.history[-1] if run and run.history and labels else None
    colors = palette()
    sketch = None
    if run is not None and run.result is not None:
        sketch = _answer(run, st.session_state.get("wall", {}).get("drawing"))
    theme = "dark" if colors.text == DARK.text else "light"
    names = ("text", "right", "wrong", "quiet")
    _wall(
        key="wall",
        data={
            "run": run.id if run else "",
            "ended": run is not None and run.job.ended,
            "images": f"wall/{task}-{theme}.png" if labels else "",
            "labels": labels,
            "classes": CLASSES,
            "said": last.wall if last else (),
            "percent": base64.b64encode(last.percent if last else b"").decode(),
            "colors": {name: getattr(colors, name) for name in names},
            "words": words.table("wall.answer"),
            "beside": beside,
            "sketch": sketch,
            # The time makes each message new. If a message is the same as an earlier
            # one, Streamlit sends only a reference, which the browser may not know.
            "now": time.time(),
        },
        on_drawing_change=lambda: None,
    )


def _answer(run: Run, drawing: Any) -> dict[str, Any]:
    """What a finished run's model says about a drawing; {} without an answer."""
    answer = st.session_state.get(DRAWING, {})
    match drawing:  # a program may send anything, and the page sends `n` back
        case {"n": int(), "ink": str()}:
            pass
        case _:
            drawing = None
    # Each drawing is sent to the model only once.
    if drawing and (run.id, drawing["n"]) != (answer.get("run"), answer.get("n")):
        answer = {"run": run.id, "n": drawing["n"]}
        address = "core.lessons.evaluate.evaluation:drawing"
        try:
            ink = base64.b64decode(drawing["ink"])
            if len(ink) != INK * INK:
                raise ValueError(words("wall.size"))
            if len(ink) - ink.count(0) < LEAST_INK * len(ink):
                raise ValueError(words("wall.little"))
            arguments = run.checkpoint, run.config, ink
            pixels, shares = ask(address, *arguments, seconds=ANSWER_SECONDS)
            answer["pixels"] = base64.b64encode(pixels).decode()
            answer["percent"] = [round(100 * share) for share in shares]
        except (ExplainedError, ValueError) as error:
            answer["problem"] = str(error)
        st.session_state[DRAWING] = answer
    return answer if answer.get("run") == run.id else {}
