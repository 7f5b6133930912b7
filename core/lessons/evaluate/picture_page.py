"""One picture and a trained model's prediction for it, as Evaluate shows them."""

import random

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from core.data.fashion_mnist import CLASSES  # sprites have the same
from core.lessons.evaluate.picture import Picture
from core.results import RunResult
from core.store.cache import Cache
from core.ui import charts, controls, image_wall
from core.ui.charts import Chart
from core.ui.runs import Run
from core.ui.server import FORGET, ask, ask_once, explained, visitor
from to_device.errors import quoted
from to_device.words import Words

words = Words(__file__)

MOST = 16  # prepared pictures that are kept
ZOOM = 6  # screen pixels for a pixel of the 28×28 image


def draw(run: Run) -> None:
    result = run.result
    assert result is not None
    sources = ("A test image", "A file", "The camera")
    source = st.radio("Picture", sources, horizontal=True, key="picture_source")
    file, problem = None, "No prediction"
    if source == "A file":
        file = st.file_uploader(
            "A picture of a piece of clothing on a plain background",
            type=["png", "jpg", "jpeg", "webp", "bmp", "gif"],
            key="picture_file",
            max_upload_size=10,
        )
        # If the uploader refuses a new file, it keeps the earlier file. So say which
        # file the problem is about.
        problem += f" for {quoted(file.name)}" if file else ""
    elif source == "The camera":
        prompt = "Hold a piece of clothing in front of a plain wall"
        file = st.camera_input(prompt, key="picture_photo")
    if file is None and source != "A test image":
        return
    with explained(problem):
        if file is None:
            pixels, caption = _test_image(result)
        else:
            with st.spinner("Shrinking the picture to 28×28 pixels"):
                picture = _prepared(visitor(), file.file_id, file.getvalue())
            _steps(picture)
            pixels, caption = picture.pixels, "As the model sees it"
        with st.spinner("The model is looking at the picture"):
            address = "core.lessons.evaluate.evaluation:probabilities"
            probabilities = ask(address, run.checkpoint, result.config, pixels)
        best = int(np.argmax(probabilities))
        left, right = st.columns([1, 3])
        with left:
            image_wall.show(
                pixels[np.newaxis], f"{caption}, enlarged", "content", zoom=ZOOM
            )
            st.markdown(caption)
        with right:
            st.markdown(
                f"The model says **{CLASSES[best]}** and is "
                f"{probabilities[best]:.1%} sure."
            )
            st.altair_chart(
                probability_chart(probabilities, result.environment.backend),
                alt="The probability of each of the ten classes",
            )
        if file:
            st.markdown(words("picture.photo"))


def _test_image(result: RunResult) -> tuple[np.ndarray, str]:
    total = result.test_total
    with controls.row():
        number = st.number_input(
            "Test image number",
            min_value=0,
            max_value=total - 1,
            step=1,
            key="picture_number",
            width=220,
        )
        st.button(
            "A random image",
            icon=":material/casino:",
            key="picture_random",
            on_click=_random,
            args=(total,),
        )
    address = "core.lessons.evaluate.evaluation:images"
    (image,), (label,) = ask_once(address, result.config.task, (int(number),))
    return image, f"Test image {number:,}: **{CLASSES[label]}**"


def _random(total: int) -> None:
    st.session_state.picture_number = random.randrange(total)


@st.cache_data(max_entries=MOST, show_spinner=False)  # an entry takes 1 MB
def _prepared(owner: str, file_id: str, _data: bytes) -> Picture:
    path = "core.lessons.evaluate.picture:prepare_apart"
    picture = ask(path, _data, seconds=60, lane="upload")
    _prepared_for(owner, file_id)
    return picture


# The keys of `_prepared`, which can't list its own
_prepared_for = Cache(lambda *key: key, MOST)


def _forget(visitor: str, _: object) -> None:
    def is_theirs(_: object, key: tuple[str, ...]) -> bool:
        if key[0] == visitor:
            _prepared.clear(*key)
        return key[0] == visitor

    _prepared_for.drop(is_theirs)


FORGET.append(_forget)


def _steps(picture: Picture) -> None:
    with st.grid(min_column_width=140):
        for name, pixels in picture.steps.items():
            with st.container(gap="xxsmall"):
                st.image(pixels, width=140, alt=name, output_format="PNG")
                st.markdown(f":small[{name}]")
    why = "We didn't invert the picture, because its background is already dark."
    if picture.negated:
        why = "We also inverted it, because its background is brighter than the object."
    st.markdown(
        "Like the dataset's images, your picture was converted to gray, cropped, "
        f"shrunk to 28 pixels, and centered. {why}"
    )


def probability_chart(values: tuple[float, ...], backend: str) -> Chart:
    colors = charts.palette()
    frame = pd.DataFrame({"class": CLASSES, "p": values})
    frame["best"] = frame.index == frame["p"].idxmax()
    x = alt.X("p:Q").title("Probability").scale(domain=[0, 1])
    return charts.bars(
        charts.rows(frame, "class"),
        x.axis(charts.ticks((0, 0.25, 0.5, 0.75, 1), format=".0%")),
        alt.Text("p:Q").format(".1%"),
        24,
        height=14,
        color=charts.either("datum.best", colors.of(backend), colors.quiet),
    )
