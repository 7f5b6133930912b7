import re
import signal
import time

import psutil
import pytest
from playwright.sync_api import expect

from core.ui import job_panel
from tests.app.e2e.walk import (
    LONG,
    SHORT,
    SLOW,
    key,
    progress,
    ready,
    result,
    said,
    start,
)
from tools.server import Server, start_server

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.alone]


def test_a_killed_app_forgets_nothing(tmp_path, browser):
    """Kill -9 in the middle of a run, with two waiting, and a start after it.

    What the app had started ends with it. What had finished opens by its link, what
    waited runs, and what ran says at which step it was interrupted. Until then, pages
    say in the app's own words that it doesn't respond. Ctrl-C then ends all of it too,
    while pages are open.
    """
    server = start_server(tmp_path)
    workers_before_visitors(server)
    people = [browser.new_context().new_page() for _ in range(3)]
    ada, *others = people
    ada.goto(f"{server.url}/{SHORT}")
    expect(result(start(ada))).to_be_visible(timeout=SLOW)
    finished = query(ada)
    reached = result(ada).inner_text()
    ada.goto(f"{server.url}/{LONG}")
    expect(
        start(ada).get_by_text(re.compile(r"Epoch ([3-9]|\d\d+) of 200"))
    ).to_be_visible(timeout=SLOW)
    for place, each in enumerate(others, 1):
        each.goto(f"{server.url}/{SHORT}")
        queued = said(start(each), job_panel.words("queue.place", place=place))
        expect(queued).to_be_visible(timeout=SLOW)
    addresses = [query(each) for each in people]
    (wall,) = others[1:]
    wall.goto(f"{server.url}/Class?projector=1")
    family = server.family
    assert len(family) >= 3
    server.process.kill()
    server.process.wait()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert alive == []
    for page, is_shown in ((ada, True), (wall, False)):  # a class reads on
        dialog = page.locator(".stDialog")
        expect(dialog).to_be_attached(timeout=SLOW)
        expect(dialog).to_be_visible(visible=is_shown)
        expect(dialog).not_to_contain_text("Streamlit")

    server = start_server(tmp_path)
    ada.goto(f"{server.url}/Train?{finished}")
    expect(ready(ada).get_by_text(reached)).to_be_visible(timeout=SLOW)
    expect(ada.get_by_test_id("stVegaLiteChart").first).to_be_visible()
    for page, there in (("Evaluate", "evaluate"), ("Checkpoints", "download_pt")):
        ada.goto(f"{server.url}/{page}?{finished}")
        expect(key(ready(ada), there)).to_be_visible(timeout=SLOW)
    ada.goto(f"{server.url}/Train?{addresses[0]}")
    alert = ready(ada).get_by_test_id("stAlert")
    expect(alert.get_by_text(re.compile(r"\d of [\d,]+\."))).to_be_visible()
    expect(ada.get_by_text("Accuracy after each epoch")).to_be_visible()
    for each, address in zip(others, addresses[1:], strict=True):
        each.goto(f"{server.url}/Train?{address}")
        expect(result(each)).to_be_visible(timeout=SLOW)
    key(ada, "start_again").click()
    expect(progress(ada)).to_be_visible(timeout=SLOW)
    for each in people:
        expect(each.get_by_test_id("stException")).to_have_count(0)
    family = server.family
    server.process.send_signal(signal.SIGINT)
    server.process.wait(60)
    _, alive = psutil.wait_procs(family, timeout=60)
    assert alive == []
    assert "Traceback" not in server.log.read_text()
    for each in people:
        each.context.close()


def workers_before_visitors(server: Server) -> None:
    """One cluster and its two workers start with the server, before anybody comes."""
    deadline = time.monotonic() + 120
    while len(server.family) < 3:
        assert time.monotonic() < deadline, server.log.read_text()
        time.sleep(0.1)
    assert sum("core.jobs.cluster" in each.cmdline() for each in server.family) == 1


def query(page) -> str:
    """What stands in a page's address after the question mark, once a run does."""
    page.wait_for_url("**?run=*")
    return page.url.partition("?")[2]
