"""Each rank's images with and without set_epoch, on the Scale page."""

import altair as alt
import pandas as pd
import streamlit as st

from core.ui import charts, guess
from core.ui.frame import PROSE
from core.ui.lab import SIDES
from core.ui.server import ask_once, explained
from core.ui.source import code_tabs
from to_device.words import Words

IMAGES = 11
Order = list[list[list[int]]]  # for each epoch, each rank's images
GUESSES = ("In a new order", "In the same order as before", "There's an error instead")

words = Words(__file__)


def draw() -> None:
    st.markdown(words("sampler.text"), width=PROSE)
    answer = guess.ask(
        "set_epoch_guess",
        "without `set_epoch`, in what order do the images come in the second epoch?",
        GUESSES,
    )
    if guess.missing(answer):
        return
    with explained("The orders can't be shown"):
        address = "core.lessons.scale.sampler:orders"
        right, wrong = (ask_once(address, IMAGES, calls) for calls in (True, False))
        chart, beside = st.columns(SIDES)
        chart.altair_chart(
            panels({"With set_epoch": right, "Without": wrong}),
            alt="Each rank's images in three epochs, with and without set_epoch",
        )
        with beside:
            if all(epoch == wrong[0] for epoch in wrong):
                guess.judge(words("sampler.same"), answer, GUESSES[1])
            else:
                guess.judge(
                    "The orders differ, even without `set_epoch`.", answer, GUESSES[0]
                )
            st.markdown(in_words(right))
        with st.expander("The code that ran", icon=":material/code:"):
            code_tabs(("The orders", "core.lessons.scale.sampler:orders"))


def panels(orders: dict[str, Order]) -> charts.Chart:
    """A chart of the images that each rank sees: a panel per order, a row per epoch."""
    rows = []
    for way, epochs in orders.items():
        for number, shares in enumerate(epochs, 1):
            turns = zip(*shares, strict=True)  # the ranks' first images, ...
            places = [image for turn in turns for image in enumerate(turn)]
            rows += [
                (way, f"Epoch {number}", place, str(image), f"rank {rank}")
                for place, (rank, image) in enumerate(places)
            ]
    frame = pd.DataFrame(rows, columns=["way", "epoch", "place", "image", "rank"])
    colors = charts.palette()
    ranks = list(dict.fromkeys(frame["rank"]))
    cells = alt.Chart(frame).encode(
        x=alt.X("place:O").title(None).axis(None),
        y=alt.Y("epoch:N").title(None).sort(None),
        tooltip=charts.tips(epoch="When", rank="Rank", image="Image"),
    )
    hues = charts.hues("rank", ranks, colors.runs[: len(ranks)], symbolOpacity=0.3)
    boxes = cells.mark_rect(opacity=0.3, stroke=colors.page, strokeWidth=2)
    texts = cells.mark_text(fontSize=13).encode(text="image:N")
    size = {"width": alt.Step(24), "height": alt.Step(30)}
    chart = alt.layer(boxes.encode(color=hues), texts).properties(**size)
    panel = alt.Row("way:N").title(None).sort(list(orders))
    return chart.facet(row=panel.header(labelAnchor="start", labelOrient="top"))


def in_words(order: Order) -> str:
    """Say that nothing warns of a forgotten set_epoch, and why images come twice."""
    shares = order[0]
    images = sorted(image for share in shares for image in share)
    repeats = [image for image in images if images.count(image) > 1]
    if not repeats:
        return words("sampler.unnoticed")
    counts = {"images": IMAGES, "ranks": len(shares)}
    twice = words("sampler.twice", **counts, image=repeats[0])
    return f"{words('sampler.unnoticed')}\n\n{twice}"
