"""The app under a path of its own, and inside another site's page."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest
import requests
from playwright.sync_api import Page, expect

from core import models, state_dict
from core.serving.visitor_cookie import COOKIE
from core.store.tables import Class
from tests.app.e2e import caddy
from tests.app.e2e.walk import (
    SHORT,
    SLOW,
    enter_wrong_code,
    key,
    model_comes_back,
    ready,
    result,
    start,
    upload,
)
from tools.server import free_port, open_class, start_server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    caddy.needed,
]

PATH = "user/ada/proxy/8501"
PASSWORD = "correct horse battery"


@contextmanager
def proxy(folder: Path, settings: str) -> Iterator[None]:
    """Caddy with these settings of its sites."""
    options = "admin off\n skip_install_trust\n http_port {$HTTP_PORT}"
    file = folder / "Caddyfile"
    file.write_text(f"{{\n {options}\n}}\n{settings}")
    with caddy.running(file, folder):
        yield


@contextmanager
def app(folder: Path, **settings: str) -> Iterator[str]:
    """The address of an app with these settings."""
    server = start_server(folder, **settings)
    try:
        yield server.url
    finally:
        server.process.terminate()
        server.process.wait(60)


@pytest.fixture(params=["stripped", "whole"])
def mounted(request, tmp_path) -> Iterator[tuple[str, Class]]:
    """The address below a proxy that strips the path of the app, or leaves it whole."""
    settings = {"TEACHER_PASSWORD": PASSWORD}
    if request.param == "whole":
        settings["STREAMLIT_SERVER_BASE_URL_PATH"] = PATH
    monday = open_class(tmp_path, 8)
    site = f"http://127.0.0.1:{free_port()}"
    with app(tmp_path, **settings) as url:
        sites = f"""
        {site} {{
            handle /{PATH}/* {{
                {f"uri strip_prefix /{PATH}" if request.param == "stripped" else ""}
                reverse_proxy {urlsplit(url).netloc} {{
                    header_up X-Forwarded-Prefix /{PATH}
                }}
            }}
            respond "Not the app's." 404
        }}
        """
        with proxy(tmp_path, sites):
            yield f"{site}/{PATH}", monday


def test_a_lesson_below_a_path(mounted, browser, contexts, tmp_path):
    site, monday = mounted
    contexts.append(browser.new_context(viewport={"width": 1280, "height": 900}))
    contexts[0].set_default_timeout(SLOW)
    page, strays = contexts[0].new_page(), []
    page.on("response", lambda a: strays.append(a.url) if a.status >= 400 else None)
    looked_for = re.compile(r"/\w+/_stcore/")  # the server, below a page's address
    page.goto(f"{site}/")
    ready(page).get_by_role("link", name="Train").first.click()
    expect(page).to_have_url(f"{site}/Train", timeout=SLOW)
    page.goto(f"{site}/{SHORT}")
    expect(result(start(page))).to_be_visible(timeout=SLOW)
    page.get_by_role("button", name="Share this run").click()
    link = page.get_by_test_id("stCode").get_by_text("?run=").inner_text()
    there, query, run = link.strip().partition("?run=")
    assert there == f"{site}/Train"
    page.get_by_role("link", name="See what the model got right").click()
    expect(page).to_have_url(f"{site}/Evaluate{query}{run}", timeout=SLOW)

    page.goto(f"{site}/Checkpoints")
    model_comes_back(page, tmp_path)
    page.goto(f"{site}/Runs")
    enter_wrong_code(page)
    assert page.url.startswith(f"{site}/Runs")

    page.goto(f"{site}/Teacher")
    ready(page).get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(key(page, "pause_queue")).to_be_visible(timeout=SLOW)
    page.goto(f"{site}/Class?projector=1")
    door = f"{site}/Class?code={monday.code}"
    code = page.get_by_role("img", name=f"A QR code that opens {door}")
    expect(code.first).to_be_attached(timeout=SLOW)
    contexts.append(browser.new_context())
    student = contexts[1].new_page()
    student.goto(door)
    key(ready(student), "join_class").click(timeout=SLOW)
    expect(student.get_by_text("You are ").first).to_be_visible(timeout=SLOW)
    cookies = contexts[0].cookies(site)
    assert {each["path"] for each in cookies if each["httpOnly"]} == {f"/{PATH}"}
    assert requests.get(f"{site}/livez", timeout=20).ok
    assert [each for each in strays if not looked_for.search(each)] == []


def test_inside_another_sites_page_a_visitor_stays_the_same(
    browser, contexts, tmp_path
):
    """As a Space shows it: a reload finds the runs; a code and a file go through."""
    port = free_port()
    hub, space = (f"https://{name}.localhost:{port}" for name in ("hub", "space"))
    shown = f'<iframe src="{space}{{query}}" width="1200" height="850"></iframe>'
    context = browser.new_context(ignore_https_errors=True)
    contexts.append(context)
    context.set_default_timeout(SLOW)
    page = context.new_page()

    def embedded(address: str) -> Page:
        page.goto(f"{hub}/?/{address}")
        frame = next(each for each in page.frames if each.url.startswith(space))
        return ready(cast(Page, frame))

    with ExitStack() as stack:
        no_token = {"STREAMLIT_SERVER_ENABLE_XSRF_PROTECTION": "false"}
        url = stack.enter_context(app(tmp_path, **no_token))
        sites = f"""
        {space} {{
            tls internal
            reverse_proxy {urlsplit(url).netloc}
        }}
        {hub} {{
            tls internal
            header Content-Type text/html
            respond `{shown}`
        }}
        """
        stack.enter_context(proxy(tmp_path, sites))
        frame = embedded(SHORT)
        key(frame, "start_training").click()
        expect(result(frame)).to_be_visible(timeout=SLOW)
        frame = embedded("Checkpoints")  # only this visitor sees the run
        expect(key(frame, "download_pt")).to_be_visible(timeout=SLOW)
        model = state_dict.save(models.build("ann"))
        (tmp_path / "model.pt").write_bytes(model)
        upload(frame, tmp_path / "model.pt")
        frame = embedded("Runs")
        frame.get_by_role("button", name="Continue in another browser").click()
        code = frame.get_by_test_id("stCode").inner_text().strip()
        frame = embedded("Runs")
        enter_wrong_code(frame)
        frame.get_by_role("button", name="Continue in another browser").click()
        expect(frame.get_by_test_id("stCode")).to_have_text(code)
        (cookie,) = (each for each in context.cookies() if each["name"] == COOKIE)
        assert (cookie["sameSite"], cookie["secure"]) == ("None", True)
        assert cookie["partitionKey"].startswith("https://hub.localhost")


def test_by_another_name_the_app_does_not_answer(tmp_path):
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
    with app(tmp_path, STREAMLIT_SERVER_ALLOWED_HOSTS="x.org 127.0.0.1") as url:

        def status(host: str, path: str, **headers: str) -> int:
            headers["Host"] = host
            return requests.get(
                f"{url}/{path}", headers=headers, timeout=20
            ).status_code

        for path, more in (("Train", {}), ("livez", {}), ("_stcore/stream", upgrade)):
            assert status("rebound.org", path, **more) == 400
        assert status("x.org", "Train") == status("127.0.0.1:80", "livez") == 200
