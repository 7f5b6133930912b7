"""core.jobs.elsewhere: a machine that has gone; test_cluster.py has what is there."""

from unittest.mock import patch

from core.jobs import elsewhere
from core.jobs.elsewhere import GONE, call_on
from core.jobs.job import Outcome
from tests.jobs.follow import finish


def call_nobody(is_cancelled: bool) -> None:
    """As a job that has a part of it done where nobody is."""
    with patch.multiple(elsewhere, LOOK_SECONDS=0.05, GONE_SECONDS=0.1):
        call_on("a", Outcome, ("finished",), lambda: is_cancelled)


def test_a_machine_that_has_gone_is_not_waited_for(engine):
    """Nor once somebody has cancelled."""
    call = "tests.jobs.test_elsewhere:call_nobody"
    gone = finish(engine, engine.submit(call, False))
    assert (gone.status, gone.message) == ("failed", GONE.format("`a`"))
    assert finish(engine, engine.submit(call, True)).status == "cancelled"
