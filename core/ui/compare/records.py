"""Records of other machines, shown beside what is measured here."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.compare.results import Crossover, Race, StepProfile, TimingLab
from core.measure import records
from core.measure.records import Record
from core.speed.headline import Climbed

SECTIONS: dict[str, type[Any]] = {  # of a record, with what each is a list of
    "races": Race,
    "crossovers": Crossover,
    "labs": TimingLab,
    "breakdowns": StepProfile,
    "climbs": Climbed,
}


def recordings() -> list[Record]:
    """The records that the learner wants to see beside what is measured here."""
    found, notices = records.records()
    for notice in notices:
        st.warning(notice, icon=":material/info:")
    found = [each for each in found if SECTIONS.keys() & each.figures.keys()]
    if not found:
        return []
    labels = {each.label: each for each in found}
    chosen = st.multiselect(
        "Also show what was recorded on",
        list(labels),
        default=list(labels)[:1],
        key="recordings",
    )
    return [labels[label] for label in chosen]


def of(chosen: Sequence[Record], section: str) -> list[tuple[str, Any]]:
    """What the records hold of a section, each with its label."""
    found: list[tuple[str, Any]] = []
    for record in chosen:
        each, problem = record.section(section, SECTIONS[section])
        if problem:
            st.warning(problem, icon=":material/info:")
        found.extend((record.label, one) for one in each)
    return found
