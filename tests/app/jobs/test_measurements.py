import logging

import pytest
from sqlalchemy import delete

from core import registry
from core.config import RunConfig
from core.jobs import measurements as measured
from core.jobs.job import Job, Stored
from core.store import addresses
from core.store.store import Store
from core.store.tables import Visitor
from tests.app import samples
from tests.app.jobs.follow import finish
from tests.app.store.made_up import newest

RACE = "core.lessons.compare.race:race"
RESULTS = {
    RACE: samples.RACE,
    "core.lessons.compare.step_profile:measure": (samples.PROFILE,),
    "core.lessons.speed.vectorize:measure": samples.VECTORIZED,
}

measured.KINDS.update(RESULTS)  # as the pages of the labs do


def job(address: str, value: object, status: str = "finished", **more: object) -> Job:
    arguments = (RunConfig(), samples.RACE.candidates, 3)
    fields = {"value": value, "machine": "here", "owner": "me", "stopped": 1e9, **more}
    return Job("id", address, arguments, "train", status=status, **fields)


@pytest.fixture
def store(open_store, file_url) -> Store:
    return open_store(file_url)


SAME = ("address", "arguments", "value", "owner", "stopped", "machine", "status")


@pytest.mark.parametrize("address", RESULTS)
def test_what_was_measured_is_the_same_after_a_restart(
    store, open_store, file_url, address
):
    before = job(address, RESULTS[address])
    measured.keep(store.measurements, before)
    store.close()
    measurement = newest(open_store(file_url), address)
    after = measured.as_job(measurement)
    for name in SAME:
        assert getattr(after, name) == getattr(before, name), name
    environments = measured.environments(before.value)
    assert environments
    assert measurement.provenance["environments"] == environments


def test_an_unfinished_measurement_is_not_stored(store, caplog):
    for candidate in (
        job(RACE, samples.RACE, "cancelled"),
        job(RACE, samples.RACE, "failed"),
        job(RACE, samples.RACE, machine=""),
        job("core.training:run", samples.RACE),
    ):
        measured.keep(store.measurements, candidate)
    with caplog.at_level(logging.WARNING):
        measured.keep(store.measurements, job(RACE, object()))
    assert [record.name for record in caplog.records] == [measured.__name__]
    store.writer.flush()
    assert store.measurements.of("me") == []
    assert newest(store, RACE) is None


@pytest.mark.parametrize(("owner", "after"), [("me", measured.FORGOTTEN), ("", "")])
def test_what_a_person_measured_is_never_the_servers(store, owner, after):
    measured.keep(store.measurements, job(RACE, samples.RACE, owner=owner))
    store.writer.write(lambda session: session.execute(delete(Visitor)))
    assert measured.as_job(newest(store, RACE)).owner == after


def test_a_run_is_what_is_measured_of_it():
    assert measured.subject((Stored("run"), RunConfig())) == "run"
    assert measured.subject((RunConfig(), 3)) == ""


def test_a_record_has_the_addresses_that_other_programs_read():
    (file,) = measured.FOLDER.glob("*.json")
    text = file.read_text("utf-8").rstrip()
    named = addresses.with_names(text)
    assert '{"class": "core.' not in named
    assert addresses.with_addresses(named) == text


def test_a_record_is_of_its_jobs_even_after_they_move(monkeypatch):
    (before, *_) = [job for job in measured.recorded() if job.address == RACE]
    monkeypatch.setitem(registry.JOBS, "race", "elsewhere.sprint:sprint")
    jobs = measured.recorded.__wrapped__()
    (after, *_) = [job for job in jobs if job.address == "elsewhere.sprint:sprint"]
    assert (after.id, after.value) == (before.id, before.value)


def test_a_job_ends_with_the_machine_that_its_figures_are_of(engine):
    """Both kinds of workers, with threads of their own, call the machine the same."""
    identity = engine.ask("core.devices:describe").identity
    assert len(identity) == 16
    done = finish(engine, engine.submit("tests.app.jobs.follow:count", 1))
    assert done.machine == identity
