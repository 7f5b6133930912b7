"""Which runs there are: what the store keeps, else what the engine knows."""

from dataclasses import fields

import streamlit as st

from core.errors import ExplainedError
from core.store.results import SETTINGS, RunSummary
from core.ui import runs, server
from core.ui.runs import RUN, Run


def mine() -> list[RunSummary]:
    """All runs of this visitor, the hidden ones too, the newest first.

    Where the database is away, those that are in memory, with a sentence on the page.
    """
    visitor = server.visitor()
    try:
        return server.store().runs.find(visitor, hidden=True, address=RUN)
    except ExplainedError as error:
        st.warning(
            f"{error} These are the runs in memory; they last until the app stops.",
            icon=":material/database_off:",
        )
        jobs = server.engine().jobs(RUN, visitor)
        return [summary(runs.view(each)) for each in reversed(jobs)]


def newest() -> RunSummary | None:
    """The newest run of anybody that has come to its end."""
    try:
        found = server.store().runs.find(address=RUN, status="finished", limit=1)
    except ExplainedError:
        return None
    return found[0] if found else None


def summary(run: Run) -> RunSummary:
    """A run that the engine knows, as the store would list it."""
    job, result = run.job, run.result
    last = run.history[-1] if run.history else None
    known = dict.fromkeys(field.name for field in fields(RunSummary)) | dict(
        id=job.id,
        seq=0,
        visitor=job.owner,
        address=job.address,
        lane=job.lane,
        round=0,
        status=job.status,
        message=job.message,
        submitted=job.submitted,
        started=job.started,
        ended=job.stopped,
        step=run.latest.step if run.latest else 0,
        steps=run.started.steps if run.started else None,
        device_name=run.started.environment.device_name if run.started else None,
        parameters=run.started.parameters if run.started else None,
        accuracy=last.test_accuracy if last else None,
        r2=last.test_r2 if last else None,
        seconds=result.seconds if result else None,
        name="",
        hidden=False,
        withheld=False,
    )
    settings = {name: getattr(run.config, name) for name in SETTINGS}
    return RunSummary(**known | settings)  # type: ignore[arg-type]
