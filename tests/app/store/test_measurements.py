import logging

from sqlalchemy import update

from core.store.tables import Measurement
from tests.app import samples
from tests.app.store.made_up import newest

RACE = "core.lessons.compare.race:race"
PROFILE = "core.lessons.compare.step_profile:measure"


def test_the_newest_of_a_kind_machine_and_subject_is_found(store):
    for when, kind, machine, subject, value in (
        (1.0, RACE, "here", "", samples.RACE),
        (3.0, RACE, "elsewhere", "", samples.RACE),
        (2.0, RACE, "here", "cnn", samples.CLIMBED),
        (4.0, PROFILE, "here", "", [samples.PROFILE]),
    ):
        more = dict(provenance=samples.CARD, visitor="me", measured_at=when)
        store.measurements.keep(kind, value, machine=machine, subject=subject, **more)
    store.writer.flush()

    def newest_value(*arguments):
        measurement = newest(store, *arguments)
        return measurement and (measurement.measured_at, measurement.value)

    assert newest_value(RACE, "here") == (2.0, samples.CLIMBED)
    assert newest_value(RACE, "here", "") == (1.0, samples.RACE)
    assert newest_value(PROFILE, "here") == (4.0, [samples.PROFILE])
    assert newest_value(RACE, "nowhere") is None
    measurement = newest(store, RACE, "here", "")
    assert (measurement.provenance, measurement.visitor) == (samples.CARD, "me")


def test_a_measurement_that_can_not_be_read_is_logged_and_counts_as_none(store, caplog):
    store.measurements.keep(RACE, samples.RACE, machine="here")
    damage = update(Measurement).values(value='{"version": 0}')
    store.writer.write(lambda session: session.execute(damage))
    with caplog.at_level(logging.WARNING):
        assert newest(store, RACE) is None
    assert RACE in caplog.text
