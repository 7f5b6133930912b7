"""One picture of the wall, and what the model that was just trained says to it."""

from itertools import chain, zip_longest

import pandas as pd
import streamlit as st

from core.data.fashion_mnist import CLASSES  # the sprites have the same
from core.results import WALL
from core.ui import montage
from core.ui.charts import home as charts
from core.ui.charts.base import palette
from core.ui.home import wall
from core.ui.runs import Run, run
from core.ui.server import ask, explained

SHOWN = 3  # classes
SIDE = 84  # of the picture on the screen, in pixels
HEIGHT = 92  # of the chart beside it, from the first moment on


@st.cache_data(max_entries=512, show_spinner=False)
def probabilities(run_id: str, place: int) -> tuple[float, ...]:
    """What a finished run's model makes of an image of the wall: one for each class."""
    finished = run(run_id)
    assert finished is not None
    pixels = wall.images(finished.config.task)[0][place]
    address = "core.evaluate.evaluation:probabilities"
    return ask(address, finished.checkpoint, finished.config, pixels)


def draw(shown: Run, wrong: frozenset[int], whose: str) -> None:
    """A picture, the likeliest classes, and a button for another one."""
    state = st.session_state
    turn = state.setdefault("picture_turn", 0)
    place = order(wrong)[turn % WALL]
    found = None
    with st.container(border=True):
        with explained("No prediction"):
            found = probabilities(shown.id, place)
            pixels, labels = wall.images(shown.config.task)
        if found is None:
            return
        true = labels[place]
        likeliest = sorted(range(len(found)), key=lambda i: -found[i])[:SHOWN]
        said = likeliest[0]
        st.markdown(f"**What does {whose} model think this is?**")
        framed = frozenset({0} if said != true else ())
        tile = montage.montage(pixels[place : place + 1], framed, palette())
        with st.container(horizontal=True, vertical_alignment="center"):
            alt = f"Test image {place}: {CLASSES[true]}"
            montage.show(montage.png(tile), alt, SIDE)
            st.vega_lite_chart(
                table(found, likeliest, true),
                charts.answers(tuple(CLASSES[each] for each in likeliest)),
                height=HEIGHT,
                alt=f"The {SHOWN} likeliest classes and their probabilities",
            )
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(verdict(CLASSES[said], CLASSES[true]), width="stretch")
            st.button(
                "Another one",
                icon=":material/arrow_forward:",
                key="another_picture",
                on_click=another,
            )


def another() -> None:
    """Turn to the next picture."""
    st.session_state.picture_turn += 1


def order(wrong: frozenset[int]) -> list[int]:
    """The wall's places, one that is right and one that is wrong in turn."""
    right = [place for place in range(WALL) if place not in wrong]
    pairs = chain.from_iterable(zip_longest(right, sorted(wrong)))
    return [place for place in pairs if place is not None]


def table(found: tuple[float, ...], likeliest: list[int], true: int) -> pd.DataFrame:
    """What the chart shows: the true class is green, another that is said red."""
    marks = {likeliest[0]: "wrong", true: "right"}
    rows = [(CLASSES[i], found[i], marks.get(i, "other")) for i in likeliest]
    return pd.DataFrame(rows, columns=["class", "p", "mark"])


def verdict(said: str, true: str) -> str:
    """The answer in a sentence."""
    if said == true:
        return f"**{said}**: right."
    return f"**{said}**: wrong, the label says **{true}**."
