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
GUESSES = ("A new one", "The same as the first", "None: an error")


def draw() -> None:
    """The guess, both orders, and what is not equal about them."""
    st.markdown(
        "`DistributedSampler` deals the images out to the ranks. To split them without "
        "overlap, all ranks shuffle alike: the order depends only on a seed and the "
        "epoch, which you set with `sampler.set_epoch(epoch)`.",
        width=PROSE,
    )
    question = "without that line, what order does the second epoch have?"
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
    ways = {"With set_epoch": found.told, "Without": found.forgotten}
    rows = []
    for way, epochs in ways.items():
        for number, ranks in enumerate(epochs, 1):
            dealt = zip(*ranks, strict=True)  # in turn, as cards are
            places = [each for turn in dealt for each in enumerate(turn)]
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
        "Nothing warns you: the loss still falls, but the batches never change. "
        "Wherever you see a `DistributedSampler`, look for `set_epoch`."
    )
    if twice:
        text += (
            f"\n\n{found.images} images can't be shared evenly by "
            f"{len(found.told[0])} ranks, so the first image of the order, {twice[0]} "
            "in the first epoch, is dealt again at the end. Otherwise one rank could "
            "have an extra step, and wait there until a timeout. `drop_last=True` "
            "drops images instead."
        )
    return text
