"""core.jobs.elsewhere: a part of a job on another machine, in every way it can end."""

from collections.abc import Iterator

import pytest
from distributed import Client, LocalCluster

from core.errors import CancelledError, ExplainedError
from core.jobs import elsewhere
from core.jobs.elsewhere import GONE, call_on
from core.jobs.job import Outcome


@pytest.fixture(scope="module", autouse=True)
def machine() -> Iterator[Client]:
    """One that is called b, with a training worker."""
    takes = {"train": 1, "on b": 1}
    about = {"processes": False, "dashboard_address": None, "protocol": "tcp"}
    there = LocalCluster(n_workers=1, resources=takes, **about)
    with there as cluster, Client(cluster) as client:
        yield client


def never() -> bool:
    return False


def test_its_value_comes_back():
    """Or why there is none."""
    assert call_on("b", Outcome, ("finished", 7), never) == 7
    with pytest.raises(ExplainedError, match="Too bad"):
        call_on("b", Outcome, ("failed", None, "Too bad."), never)
    with pytest.raises(CancelledError):
        call_on("b", Outcome, ("cancelled",), never)


def test_a_machine_that_has_gone_is_not_waited_for(monkeypatch):
    """Nor one that is there, once somebody has cancelled."""
    monkeypatch.setattr(elsewhere, "LOOK_SECONDS", 0.05)
    with pytest.raises(CancelledError):
        call_on("a", Outcome, ("finished",), lambda: True)
    monkeypatch.setattr(elsewhere, "GONE_SECONDS", 0.1)
    with pytest.raises(ExplainedError) as told:
        call_on("a", Outcome, ("finished",), never)
    assert str(told.value) == GONE.format("`a`")
