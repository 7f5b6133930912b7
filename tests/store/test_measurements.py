"""core.store.measurements: the newest of this machine."""

import logging

import pytest

from core.store import tables
from core.store.measurements import Measurement
from tests import samples

RACE = "core.compare.race:race"


def test_the_newest_of_this_machine_is_found(store):
    """Nothing that was measured elsewhere, nothing of another kind or subject."""
    results = {
        (1.0, RACE, "here", ""): samples.RACE,
        (3.0, RACE, "elsewhere", ""): samples.RACE,
        (2.0, RACE, "here", "cnn"): samples.CLIMBED,
        (4.0, "core.x:y", "here", ""): [samples.PROFILE],
    }
    for (when, kind, machine, subject), value in results.items():
        store.measurements.keep(
            kind,
            value,
            machine=machine,
            subject=subject,
            provenance=samples.CARD,
            visitor="me",
            measured_at=when,
        )
    store.writer.flush()

    def newest(*arguments):
        found = store.measurements.newest(*arguments)
        return found and (found.measured_at, found.value)

    assert newest(RACE, "here") == (2.0, samples.CLIMBED)
    assert newest(RACE, "here", "") == (1.0, samples.RACE)
    assert newest("core.x:y", "here") == (4.0, [samples.PROFILE])
    assert newest(RACE, "nowhere") is None
    found = store.measurements.newest(RACE, "here", "")
    assert isinstance(found, Measurement)
    assert (found.provenance, found.visitor) == (samples.CARD, "me")


def test_the_app_itself_measures_too(store):
    """In idle time, for nobody."""
    store.measurements.keep(RACE, samples.RACE, machine="here")
    store.writer.flush()
    assert store.measurements.newest(RACE, "here").visitor is None


def test_one_that_can_not_be_read_counts_as_none(store, caplog):
    """The page offers to measure anew; the log says why."""
    store.measurements.keep(RACE, samples.RACE, machine="here")
    damage = tables.measurements.update().values(value='{"version": 0}')
    store.writer.write(lambda each: each.execute(damage))
    with caplog.at_level(logging.WARNING):
        assert store.measurements.newest(RACE, "here") is None
    assert RACE in caplog.text


def test_what_is_no_plain_data_is_refused(store):
    """At once, where it was made."""
    with pytest.raises(TypeError):
        store.measurements.keep(RACE, object(), machine="here")
