"""What the tests of the pages share: how a page is opened, read and pressed."""

import time

from streamlit.testing.v1 import AppTest

from core.config import RunConfig
from core.jobs.cluster import ROOT
from core.jobs.engine import Engine

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("pages/*.py"))
SHORT = RunConfig(task="sprites", epochs=1, batch_size=256)
CURVE = RunConfig.with_recipe(task="regression", epochs=1)


def open_page(page: str, **query: str) -> AppTest:
    """A page of the app as it is drawn for an address with this query."""
    at = AppTest.from_file(str(ROOT / "home.py"), default_timeout=60).run()
    at.switch_page(page)
    for name, value in query.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception
    return at


def texts(elements) -> str:
    """What elements say, one below the other."""
    return "\n".join(str(element.value) for element in elements)


def finished_run(engine: Engine, config: RunConfig = SHORT) -> str:
    """Train to the end, and return the run's id."""
    job_id = engine.submit("core.training:run", config)
    while not engine.job(job_id).ended:
        time.sleep(0.05)
    return job_id


def metrics(at: AppTest) -> dict[str, str]:
    """The value under each label."""
    return {metric.label: metric.value for metric in at.metric}


def press(at: AppTest, engine: Engine, key: str, path: str) -> AppTest:
    """Press a button, wait for the job that it starts, draw the page again."""
    at.button(key=key).click().run()
    job = engine.jobs(path)[-1]
    while not engine.job(job.id).ended:
        time.sleep(0.05)
    at.run()
    assert not at.exception
    assert not at.error
    return at
