"""The wardrobe wall: fifty test images in one picture, framed where a run is wrong."""

from functools import lru_cache

import numpy as np
import streamlit as st

from core.results import WALL
from core.ui.charts import Palette, palette
from core.ui.montage import COLUMNS, montage, png, show
from core.ui.runs import Run
from core.ui.server import ask, engine, explained


@st.cache_data(max_entries=4, show_spinner=False)
def images(task: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """The wall's images, uint8 (50, 28, 28), and their true classes.

    Raises ExplainedError.
    """
    which = tuple(range(WALL))
    pixels = ask("core.lessons.evaluate.evaluation:images", task, which)
    return pixels, tuple(ask("core.lessons.evaluate.evaluation:labels", task, which))


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
    show(file, alt)
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
