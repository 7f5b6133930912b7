"""The real app in a real browser."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tools.chromium import CHROMIUM, FLAGS
from tools.server import Server, start_server


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    assert CHROMIUM, "install Debian's chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all; after them no page has failed, and none has loaded torch."""
    server = start_server(tmp_path_factory.mktemp("server"))
    yield server
    maps = Path(f"/proc/{server.process.pid}/maps")  # only Linux has it
    libraries = maps.read_text() if maps.exists() else ""
    server.process.terminate()
    server.process.wait(20)
    log = server.log.read_text()
    assert "Uncaught app execution" not in log, log
    assert "ScriptRunContext" not in log, log
    assert "libtorch" not in libraries


@pytest.fixture
def visitor(browser: Browser, server: Server) -> Iterator[Callable[..., Page]]:
    """Opens a page as a new person: visitor("Train?task=sprites", ...)."""
    contexts = []

    def open_page(address: str = "", **options) -> Page:
        options.setdefault("viewport", {"width": 1280, "height": 900})
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.goto(f"{server.url}/{address}")
        return page

    yield open_page
    for context in contexts:
        context.close()
