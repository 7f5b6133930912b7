"""core.ui.sidebar_jobs: what of a visitor's goes on, in the sidebar of every page."""

from core.config import RunConfig
from core.ui import runs
from tests.jobs.follow import wait
from tests.pages.walk import open_page


def links(at) -> list[str]:
    return [each.proto.label for each in at.get("page_link")]


def test_what_goes_on_is_told_on_another_page(engine):
    """With the way to it, until the visitor has seen that it is over."""
    at = open_page("pages/10_Runs.py")
    config = RunConfig(task="sprites", epochs=50)
    run_id = engine.submit(runs.RUN, config, owner=at.session_state["visitor"])
    wait(lambda: engine.job(run_id).status == "running")
    at.run()
    (link,) = (each for each in links(at) if each.startswith("Train: "))
    assert link.endswith("%")
    engine.cancel(run_id)
    wait(lambda: engine.job(run_id).ended)
    assert not any(each.startswith("Train: ") for each in links(at.run()))
