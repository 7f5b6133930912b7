from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    expect,
    sync_playwright,
)

from tests.app.e2e.walk import SLOW
from tools.server import CHROMIUM, FLAGS, Server, start_server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test in a browser has a second try; what failed in the first is reported."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    assert CHROMIUM, "install Debian's chromium"
    expect.set_options(timeout=SLOW)
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
    server.process.wait(60)
    log = server.log.read_text()
    assert "Uncaught app execution" not in log, log
    assert "ScriptRunContext" not in log, log
    assert "libtorch" not in libraries


@pytest.fixture
def contexts() -> Iterator[list[BrowserContext]]:
    """One for each visitor of a test."""
    contexts: list[BrowserContext] = []
    yield contexts
    for context in contexts:
        context.close()


@pytest.fixture
def visitor(
    browser: Browser, server: Server, contexts: list[BrowserContext]
) -> Callable[..., Page]:
    """Opens a page as a new person: visitor("Train?task=sprites", ...)."""

    def open_page(address: str = "", **options) -> Page:
        options.setdefault("viewport", {"width": 1280, "height": 900})
        contexts.append(browser.new_context(**options))
        contexts[-1].set_default_timeout(SLOW)
        page = contexts[-1].new_page()
        page.goto(f"{server.url}/{address}")
        return page

    return open_page


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """A test that failed tells what stood on its pages: its error alone rarely does."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        for context in item.funcargs.get("contexts", ()):
            for page in context.pages:
                with suppress(Error):
                    text = page.locator("body").inner_text(timeout=5000)
                    report.longrepr.addsection(f"On {page.url}", text)
    return report
