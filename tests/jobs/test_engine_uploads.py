"""Files that take long to open keep nobody from asking, against a real cluster."""

import time
from concurrent.futures import ThreadPoolExecutor

from core.jobs.engine import Engine
from core.jobs.turns import UPLOADS_AT_ONCE

ADDRESS = "tests.jobs.test_engine_uploads:rest"


def rest(seconds: float) -> tuple[float, float]:
    """Runs in the lab worker: when it began and when it ended."""
    began = time.monotonic()
    time.sleep(seconds)
    return began, time.monotonic()


def test_many_uploads_keep_nobody_from_asking(engine: Engine) -> None:
    """While two files are opened and ten more wait, questions are answered."""

    def upload(number: int) -> tuple[float, float]:
        return engine.ask(ADDRESS, 0.5, lane="upload", owner=f"eve {number}")

    with ThreadPoolExecutor(12) as people:
        uploads = [people.submit(upload, number) for number in range(12)]
        while not any(each.done() for each in uploads):
            time.sleep(0.01)
        _, answered = engine.ask(ADDRESS, 0.0, owner="ada")
        spans = [each.result() for each in uploads]
    assert answered < sorted(spans)[6][0]
    for moment, _ in spans:
        open_then = sum(began <= moment < ended for began, ended in spans)
        assert open_then <= UPLOADS_AT_ONCE
