"""A server whose worker, data or own life is lost, in a real browser."""

import psutil
import pytest
from playwright.sync_api import expect

from tests.e2e.walk import (
    LONG,
    SLOW,
    enter,
    key,
    progress,
    ready,
    result,
    start,
    start_server,
)

pytestmark = pytest.mark.browser


def test_a_killed_worker_is_shown_within_five_seconds(visitor, server):
    """Kill -9 of the worker fails the run with its reason; the next run works."""
    page = start(visitor(LONG))
    expect(progress(page)).to_be_visible(timeout=SLOW)
    server.busiest().kill()
    expect(page.get_by_text("The worker process ended while")).to_be_visible(
        timeout=5_000
    )
    enter(page, "Epochs", 1)
    key(page, "start_training").click()
    expect(result(page)).to_be_visible(timeout=SLOW)


def test_a_killed_app_leaves_no_process(tmp_path, browser):
    """Kill -9 of the app in the middle of a run ends everything it started."""
    server = start_server(tmp_path)
    page = browser.new_page()
    page.goto(f"{server.url}/{LONG}")
    start(page)
    expect(progress(page)).to_be_visible(timeout=SLOW)
    family = server.family
    assert len(family) >= 3
    server.process.kill()
    server.process.wait()
    _, alive = psutil.wait_procs(family, timeout=15)
    assert alive == []
    page.close()


def test_an_app_without_data_and_network_trains_on_sprites(tmp_path, browser):
    """With damaged data the app says so, and trains on the sprites at once."""
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"not an image")
    server = start_server(tmp_path, FASHION_MNIST_DIR=str(tmp_path))
    page = browser.new_page()
    page.goto(f"{server.url}/Train?epochs=1")
    ready(page)
    expect(page.get_by_text("train-images-idx3-ubyte")).to_be_visible(timeout=SLOW)
    key(page, "start_training").click()
    expect(page.get_by_text("(2,000 of 2,000)").or_(result(page))).to_be_visible(
        timeout=SLOW
    )
    page.close()
    server.process.terminate()
    server.process.wait(20)
