"""Which rank sees which images, and set_epoch forgotten, as the Scale page shows it."""

import pandas as pd
import streamlit as st

from core.scale.results import Orders
from core.ui import guess
from core.ui.charts import scale as charts
from core.ui.frame import PROSE
from core.ui.lab import SIDES
from core.ui.server import engine, explained
from core.ui.source import code_tabs

IMAGES = 11
GUESSES = ("A new order", "The order of the first epoch", "An error is raised")


def draw() -> None:
    """The guess, both orders, and what is not equal about them."""
    st.markdown(
        "`DistributedSampler` gives each rank its share of the images. All ranks have "
        "to draw the same order, so the order depends on a seed and on the number of "
        "the epoch alone, which you tell it: `sampler.set_epoch(epoch)`.",
        width=PROSE,
    )
    question = "without that line, what does the second epoch bring?"
    guessed = guess.ask("set_epoch_guess", question, GUESSES)
    if guess.missing(guessed):
        return
    with explained("The orders can't be drawn"):
        found = _orders(IMAGES)
        chart, words = st.columns(SIDES)
        chart.altair_chart(
            charts.orders(frame(found)),
            alt="The images of each rank in three epochs, with set_epoch and without",
        )
        with words:
            _judge(found, guessed)
            st.markdown(in_words(found))
        with st.expander("The code that ran", icon=":material/code:"):
            code_tabs(("The orders", "", "core.scale.sampler:orders"))


@st.cache_data(show_spinner=False, max_entries=4)
def _orders(images: int) -> Orders:
    return engine().ask("core.scale.sampler:both", images)


def frame(found: Orders) -> pd.DataFrame:
    """A row for each image that a rank is fed."""
    ways = {"With set_epoch": found.told, "Forgotten": found.forgotten}
    rows = []
    for way, epochs in ways.items():
        for number, ranks in enumerate(epochs, 1):
            places = [(r, image) for r, share in enumerate(ranks) for image in share]
            rows += [
                (way, f"Epoch {number}", place, str(image), f"rank {rank}")
                for place, (rank, image) in enumerate(places)
            ]
    return pd.DataFrame(rows, columns=["way", "epoch", "place", "image", "rank"])


def _judge(found: Orders, guessed: str | None) -> None:
    same = len(set(found.forgotten)) == 1
    right = GUESSES[1] if same else GUESSES[0]
    guess.judge(
        "Without `set_epoch`, every epoch has the order of the first, and each rank "
        "sees the same images again and again."
        if same
        else "The orders differ, even without `set_epoch`.",
        guessed,
        right,
    )


def in_words(found: Orders) -> str:
    """That nothing tells of it, and why an image comes twice."""
    fed = [image for share in found.told[0] for image in share]
    twice = sorted({image for image in fed if fed.count(image) > 1})
    text = (
        "No error tells you: the loss still falls, on batches that never change. Look "
        "for the line whenever you see a `DistributedSampler`."
    )
    if twice:
        text += (
            f"\n\n{found.images} images can't be shared evenly by "
            f"{len(found.told[0])} ranks, so image {twice[0]} comes twice in the "
            "first epoch: all ranks need equally many steps, or one would wait for "
            "the others forever."
        )
    return text
