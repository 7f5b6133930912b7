import asyncio
import http.client
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
import requests
from playwright.sync_api import expect

from core.jobs.cluster import ROOT
from core.serving.visitor_cookie import COOKIE
from tests.app import event_loop
from tests.app.e2e import caddy
from tests.app.e2e.walk import (
    SHORT,
    SLOW,
    enter_wrong_code,
    model_comes_back,
    ready,
    result,
    start,
)
from tools.load.record import Record
from tools.load.tab import XSRF, Browser, Tab
from tools.server import Server, free_port

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    caddy.needed,
]

SELF_SIGNED = ssl._create_unverified_context()  # Caddy is its own authority here
PROBES = ("livez", "healthz", "metrics")
PRIVATE = [
    *PROBES,
    *("metrics/", "%6detrics", "_stcore/metrics", "Train/_stcore/metrics"),
]


@contextmanager
def served(folder: Path, **settings: str) -> Iterator[str]:
    """The address that people open, as deploy/Caddyfile serves it."""
    address = f"localhost:{free_port()}"
    file = ROOT / "deploy/Caddyfile"
    with caddy.running(file, folder, SITE=address, **settings):
        yield f"https://{address}"


@pytest.fixture(scope="module")
def site(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    app = urlsplit(server.url).netloc
    with served(tmp_path_factory.mktemp("caddy"), APP=app) as address:
        yield address


@pytest.fixture(scope="module")
def sites(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of two apps; one server plays both."""
    app = urlsplit(server.url).netloc
    folder = tmp_path_factory.mktemp("caddy")
    with served(folder, APPS="2", APP=app, APP_2=app) as address:
        yield address


def get(address: str, **more) -> requests.Response:
    return requests.get(address, verify=False, timeout=20, **more)


def test_pages_work_through_it_and_break_no_rule(visitor, site, server, tmp_path):
    """Charts, a run that is watched, a form, a file: the browser refuses nothing.

    The websocket's cookie is one that no other site and no plain connection gets. What
    people wait for is measured.
    """
    refused = []
    page = visitor(ignore_https_errors=True)
    page.on("console", lambda m: refused.append(m.text) if "Policy" in m.text else None)
    page.goto(f"{site}/{SHORT}")
    expect(result(start(page))).to_be_visible(timeout=SLOW)
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible()
    (cookie,) = (each for each in page.context.cookies(site) if each["name"] == COOKIE)
    assert (cookie["secure"], cookie["httpOnly"]) == (True, True)
    page.goto(f"{site}/Runs")
    enter_wrong_code(page)
    page.goto(f"{site}/Checkpoints")
    model_comes_back(page, tmp_path)
    page.goto(f"{site}/Model")
    ready(page)
    assert refused == []
    measured = requests.get(f"{server.url}/metrics", timeout=20).text
    assert 'to_device_look_seconds_count{of="part"}' in measured
    assert 'to_device_look_seconds_count{of="page"}' in measured


def sent_to(address: str, **cookies: str) -> str:
    """Where somebody without these cookies or with them is sent from an address."""
    answer = get(address, cookies=cookies, allow_redirects=False)
    assert answer.status_code == 302
    return urlsplit(answer.headers["Location"])._replace(scheme="", netloc="").geturl()


def test_several_apps_share_the_visitors(sites):
    chosen = [sent_to(sites) for _ in range(40)]
    assert {*chosen} == {"/1/", "/2/"}  # one of 10^12 times, chance doesn't use both
    assert sent_to(sites, app="2") == "/2/"
    assert sent_to(f"{sites}/Class?class=x", app="2") == "/2/Class?class=x"
    assert sent_to(f"{sites}/2") == "/2/"
    assert {sent_to(sites, app="3") for _ in range(40)} == {"/1/", "/2/"}
    assert sent_to(f"{sites}/3/Train", app="1") == "/1/3/Train"  # there is no third


def test_each_of_several_apps_works_below_its_path(visitor, sites):
    page = visitor(ignore_https_errors=True)
    page.goto(f"{sites}/2/{SHORT}")
    expect(result(start(page))).to_be_visible(timeout=SLOW)
    cookies = {each["name"]: each for each in page.context.cookies(f"{sites}/2/Train")}
    assert (cookies["app"]["value"], cookies["app"]["path"]) == ("2", "/")
    assert cookies[COOKIE]["path"].startswith("/2")  # the other app has another one
    page.goto(sites)
    expect(page).to_have_url(f"{sites}/2/", timeout=SLOW)


def test_it_keeps_private_what_is(site, sites, server):
    paths = [*(f"{site}/{path}" for path in PRIVATE)]
    paths += [f"{sites}/{at}{path}" for path in PRIVATE for at in ("", "1/", "2/")]
    assert {get(path).status_code for path in paths} == {404}
    for probe in PROBES:
        assert requests.get(f"{server.url}/{probe}", timeout=20).ok


def test_it_says_what_browsers_may_do(site):
    headers = get(site).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe-eval" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["strict-transport-security"]
    assert "server" not in headers


def put(address: str, content: bytes, token: str) -> int:
    """The status of an upload."""
    try:
        return requests.put(
            address,
            files={"file": content},
            headers={"X-Xsrftoken": token},
            cookies={XSRF: token},
            verify=False,
        ).status_code
    except requests.ConnectionError:  # on a busy machine, Caddy hangs up before the end
        return 413


def test_a_body_that_is_too_large_does_not_reach_the_app(site, server):

    async def upload() -> list[int]:
        browser = Browser(server.url)
        tab = Tab(browser, Record())
        await tab.open("Device")
        address = f"{site}/_stcore/upload_file/{tab._session}"
        token = browser._session.cookies[XSRF]
        statuses = [
            await asyncio.to_thread(
                put, f"{address}/{size}", bytes(size * 1_000_000), token
            )
            for size in (20, 23)
        ]
        await tab.close()
        return statuses

    assert event_loop.run(upload()) == [204, 413]


def test_requests_beyond_the_most_are_refused(tmp_path):
    """So many wait for an app that doesn't answer; the next one is told at once."""
    with socket.create_server(("127.0.0.1", 0)) as app:
        port = app.getsockname()[1]
        with (
            served(tmp_path, APP=f"127.0.0.1:{port}", MOST="3") as site,
            ExitStack() as waiting,
        ):
            for _ in range(3):
                asked = http.client.HTTPSConnection(
                    "localhost", urlsplit(site).port, context=SELF_SIGNED
                )
                waiting.callback(asked.close)
                asked.request("GET", "/")
                waiting.enter_context(app.accept()[0])
            assert get(site).status_code == 503


def guess(site: str, source: str, pretended: str) -> float:
    """Seconds until a wrong code from this address is answered."""
    where = urlsplit(site)
    connection = http.client.HTTPSConnection(
        "localhost", where.port, source_address=(source, 0), context=SELF_SIGNED
    )
    headers = {
        "Origin": site,
        "X-Forwarded-For": pretended,
        "Content-Type": "application/x-www-form-urlencoded",
    }
    began = time.monotonic()
    connection.request("POST", "/visitor/code", urlencode({"code": "no"}), headers)
    assert connection.getresponse().status == 303
    connection.close()
    return time.monotonic() - began


def test_who_guesses_codes_is_slowed_down_by_their_own_address(site):
    slow = [guess(site, "127.0.0.2", f"10.0.0.{n}") for n in range(6)][-1]
    others = [guess(site, f"127.0.0.{n}", "127.0.0.2") for n in range(3, 9)]
    assert min(others) < slow / 2  # the least: each may meet a busy moment
