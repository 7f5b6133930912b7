"""The class as a student sees it: the chart, the quest, the queue, the guesses."""

import pandas as pd
import streamlit as st

from core.classroom.board import Best, neighbors
from core.store.codec import StoreError
from core.ui import figures, format
from core.ui.charts import classroom as charts
from core.ui.charts.base import FONT_PIXELS, MIDDLE, TALL
from core.ui.classroom import gathered, guesses
from core.ui.classroom.gathered import Gathered, Waiting
from core.ui.course import page
from core.ui.links import link
from core.ui.looks import PATIENT_SECONDS
from core.ui.server import engine, room, visitor

MOST_WAITING = 4  # that are told one by one
TRAIN = page("Train")


def draw() -> None:
    """All of it, anew every few seconds."""
    opened, me = room().open, visitor()

    @st.fragment(run_every=PATIENT_SECONDS)
    def look() -> None:
        now = room().open
        may = room().member(me) or room().is_teacher(me)
        if now is None or opened is None or now.id != opened.id or not may:
            st.rerun()
        try:
            found = gathered.now()
        except StoreError as error:
            st.warning(str(error), icon=":material/database_off:")
            return
        _all(found, me)

    look()


def _all(found: Gathered, me: str) -> None:
    left, right = st.columns([6, 4], gap="medium")
    with left:
        st.markdown(headline(found))
        chart(found, me, TALL)
        _caption()
    with right:
        _quest(found, me)
        _queue(found, me)
    guesses.draw(found.guesses)


def headline(found: Gathered) -> str:
    """How many have reached the target, and the fastest of them."""
    assert found.opened is not None
    target = f"{found.opened.rules.target:.0%} on {format.NAMES[found.task]}"
    if not found.order:
        return f"**The quest: reach {target} in the fewest seconds.** Nobody has yet."
    first, count = found.order[0], len(found.order)
    reached = "One of" if count == 1 else f"{count} of"
    return (
        f"**{reached} {len(found.names)} reached {target}, the fastest in "
        f"{first.seconds:.1f} s.**"
    )


def chart(
    found: Gathered,
    me: str,
    height: int = MIDDLE,
    pixels: int = FONT_PIXELS,
    anonymous: bool = False,
) -> None:
    """A point a person's best; empty axes before there is one."""
    assert found.opened is not None
    machine = engine().machine()
    known = {d.device_name: d.backend for d in machine.devices} if machine else {}
    rows = [
        (
            "Somebody" if anonymous else each.name,
            each.seconds,
            each.accuracy,
            known.get(each.device or "", "CPU"),
            format.NAMES[each.task],
            "You" if each.visitor == me else "",
        )
        for each in found.best
    ]
    columns = ["who", "seconds", "accuracy", "backend", "task", "mine"]
    data = pd.DataFrame(rows, columns=columns)
    st.vega_lite_chart(
        data,
        charts.scatter(
            tuple(sorted(set(data["backend"]))) or ("CPU",),
            tuple(sorted({*data["task"], format.NAMES[found.task]})),
            found.opened.rules.target,
            height,
            pixels,
        ),
        height=height,
        key="class_scatter",
        alt=f"Test accuracy against seconds of the best runs of {len(rows)} people",
    )


def _caption() -> None:
    st.caption(
        "Each point is somebody's best run: the fastest above the dashed line, else "
        "the most accurate."
    )


def _quest(found: Gathered, me: str) -> None:
    """My place and who is next to me, or what is missing."""
    assert found.opened is not None
    st.subheader("The quest", anchor=False)
    target = found.opened.rules.target
    mine = [each for each in found.best if each.visitor == me]
    st.markdown(standing(found.order, mine, me, found.task, target))
    if found.order:
        right = st.column_config.TextColumn(alignment="right")
        figures.table(
            (
                (
                    f"{place}",
                    f"{each.name} (you)" if each.visitor == me else each.name,
                    f"{each.seconds:.1f}",
                    f"{each.accuracy:.1%}",
                )
                for place, each in neighbors(found.order, me)
            ),
            ("Place", "Who", "Seconds", "Accuracy"),
            "Places in the quest",
            column_config={"Seconds": right, "Accuracy": right},
        )
    link(TRAIN, "Train a model")


def standing(
    order: tuple[Best, ...], mine: list[Best], me: str, task: str, target: float
) -> str:
    """Where I am, in a sentence."""
    for place, each in enumerate(order, 1):
        if each.visitor == me:
            return f"You are **number {place}** of {len(order)}."
    here = next((each for each in mine if each.task == task), None)
    if here is None:
        return f"You haven't trained on {format.NAMES[task]} yet."
    missing = (target - here.accuracy) * 100
    return f"Your best is **{here.accuracy:.1%}**: {missing:.1f} points to go."


def _queue(found: Gathered, me: str) -> None:
    """Who is here, what runs and who waits."""
    st.subheader("Right now", anchor=False)
    names = sorted(name for who, name in found.names.items() if who in found.here)
    count = f"{len(names)} of {len(found.names)} here"
    with st.popover(count, icon=":material/groups:", type="tertiary"):
        st.markdown("\n".join(f"- {name}" for name in names) or "Nobody.")
    st.markdown("  \n".join(queue_lines(found, me)))


def queue_lines(found: Gathered, me: str, anonymous: bool = False) -> list[str]:
    """What runs, then who waits, a line each; the rest is counted."""

    def line(each: Waiting) -> str:
        name = "Somebody" if anonymous else found.names.get(each.visitor, "A guest")
        name = "**You**" if each.visitor == me else name
        if each.place:
            return f"{each.place}. {name}: {each.what}"
        done = f", {each.share:.0%}" if each.share is not None else ""
        return f"{name}: {each.what}{done}"

    running = [each for each in found.queue if not each.place]
    waiting = [each for each in found.queue if each.place]
    lines = [f":material/play_arrow: {line(each)}" for each in running]
    shown = [e for e in waiting if e.place <= MOST_WAITING or e.visitor == me]
    lines += [f":material/hourglass_top: {line(each)}" for each in shown]
    if rest := len(waiting) - len(shown):
        lines.append(f"and {rest} more")
    if engine().paused:
        lines.insert(0, ":material/pause: Your teacher has paused the queue.")
    return lines or ["Nothing trains right now."]
