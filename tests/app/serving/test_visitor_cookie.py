import http.cookies
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from itsdangerous import TimestampSigner
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response

from core.serving import visitor_cookie as visitor
from core.serving.visitor_cookie import COOKIE, DAY_SECONDS, LASTS_SECONDS, read
from tests.app import event_loop
from tests.app.ui.client import Client
from to_device.errors import ExplainedError


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("COOKIE_SECRET", "a secret that nobody knows, 32 characters")
    visitor.signer.cache_clear()
    yield
    visitor.signer.cache_clear()


async def pages(scope, receive, send) -> None:
    if scope["path"] == "/_stcore/health":
        answer: Response = PlainTextResponse("ok")
    elif "." in scope["path"]:
        answer = Response("", media_type="text/javascript")
    elif dict(scope["headers"]).get(b"if-none-match"):
        answer = Response(status_code=304)
    else:
        answer = Response("", media_type="text/html")
    await answer(scope, receive, send)


@pytest.fixture
def browser() -> Client:
    return Client(visitor.VisitorCookie(pages))


def test_a_first_page_sets_a_cookie_for_180_days(browser):
    browser.get("/Train")
    cookie = browser.cookie
    assert read(cookie.value)
    assert cookie.key == COOKIE
    assert int(cookie["max-age"]) == LASTS_SECONDS == 180 * 24 * 3600
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (
        True,
        "lax",
        "/",
    )
    assert not cookie["secure"]
    assert browser.headers["cache-control"] == "private, no-cache"
    browser.scheme = "https"
    browser.cookies.clear()
    assert browser.get().cookie["secure"]
    browser.cookies.clear()
    browser.get("/Train", **{"if-none-match": "x"})  # the browser has the page
    assert browser.status == 304
    assert read(browser.cookie.value)


def test_a_cookie_is_renewed_once_a_day_for_the_same_visitor(browser, monkeypatch):
    me = read(browser.get().cookie.value)
    assert browser.get("/Train").cookie is None
    assert read(Client(browser.app).get().cookie.value) != me
    day = time.time() + DAY_SECONDS + 10
    monkeypatch.setattr("time.time", lambda: day)
    assert read(browser.get().cookie.value) == me


@pytest.mark.parametrize("path", ["/_stcore/health", "/static/js/index.js"])
def test_other_answers_than_pages_set_none(browser, path):
    assert browser.get(path).cookie is None


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    "costly", ['a="' + "\\" * 15_000 + '"', r'a="\""', "a;" * 7_000, "=;" * 7_000]
)
def test_cookies_that_take_long_to_read_are_left_out(monkeypatch, kind, costly):
    """What is read stays as little when more comes, and the app's own cookie is in it.

    An app beside this one may have set the other.
    """
    unquoted, found = list[str](), list[str]()
    own = visitor.signer().sign("a" * 32).decode()

    def unquote(text: str) -> str:
        unquoted.append(text)
        return text

    monkeypatch.setattr(http.cookies, "_unquote", unquote)

    async def app(scope, _receive, _send) -> None:
        found.append(visitor.visitor(HTTPConnection(scope)))

    headers = [(b"cookie", f"{COOKIE}={own}; {costly}".encode()), (b"host", b"a")]
    scope = {"type": kind, "method": "POST", "headers": headers}
    event_loop.run(visitor.VisitorCookie(app)(scope, None, None))
    assert found == ["a" * 32]
    assert len(unquoted) <= visitor.MOST_COOKIES
    assert not any("\\" in text for text in unquoted)


def forgeries() -> dict[str, str]:
    mine = visitor.signer().sign("a" * 32).decode()
    other = TimestampSigner("another key" * 5, salt=COOKIE).sign("a" * 32).decode()
    return {
        "empty": "",
        "only the id": "a" * 32,
        "another id": mine.replace("a" * 32, "b" * 32),
        "cut": mine[:-1],
        "without a signature": mine.rpartition(".")[0],
        "another key": other,
        "noise": "\xff\xfe.\x80.é",
        "long": "x" * 5000,
    }


def test_a_forged_cookie_is_replaced_by_a_new_visitors(browser):
    for kind, cookie in forgeries().items():
        browser.cookies[COOKIE] = cookie
        assert read(cookie) == "", kind
        new = read(browser.get().cookie.value)
        assert len(new) == 32
        assert new not in ("a" * 32, "b" * 32)


def test_a_cookie_of_an_earlier_version_is_valid_until_it_is_old(monkeypatch):
    key = "a secret that nobody knows, 32 characters"
    signer = TimestampSigner(key, salt="visitor", digest_method=visitor.sha256)
    cookie, now = signer.sign("a" * 32).decode(), time.time()
    for seconds, who in ((0, "a" * 32), (LASTS_SECONDS + 10, ""), (-9e4, "a" * 32)):
        monkeypatch.setattr(visitor.time, "time", lambda at=now + seconds: at)
        assert read(cookie) == who


def test_the_cookie_of_deleted_data_is_invalid(browser, monkeypatch):
    """Also in a tab that still has it. The newest such ids are in memory."""
    monkeypatch.setattr(visitor, "_deleted", {})
    monkeypatch.setattr(visitor, "MOST", 2)
    cookie = browser.get().cookie.value
    visitor.retire(read(cookie))
    assert read(cookie) == ""
    assert browser.get().cookie.value != cookie
    for other in "bcd":
        visitor.retire(other)
    assert [read(visitor.signer().sign(id).decode()) for id in "bcd"] == ["b", "", ""]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_servers_make_one_key_for_their_user_alone(tmp_path, is_damaged):
    file = tmp_path / "data" / "cookie.key"
    if is_damaged:
        file.parent.mkdir()
        file.touch()
    with ThreadPoolExecutor(8) as threads:
        (key,) = set(threads.map(visitor.key_in, [file] * 16))
    assert (len(key), key) == (64, file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    names = {path.name for path in file.parent.iterdir()}
    assert names <= {"cookie.key", "cookie.key.lock"}


def test_without_a_place_for_its_key_the_app_starts(tmp_path, monkeypatch, caplog):
    (tmp_path / "data").touch()
    monkeypatch.setattr(visitor, "KEY_FILE", tmp_path / "data" / "cookie.key")
    monkeypatch.delenv("COOKIE_SECRET")
    assert read(visitor.signer().sign("me").decode()) == "me"
    assert [record.name for record in caplog.records] == [visitor.__name__]


def test_a_short_secret_is_refused(monkeypatch):
    monkeypatch.setenv("COOKIE_SECRET", "secret")
    with pytest.raises(ExplainedError, match=r"\bCOOKIE_SECRET\b.+\b6\b.+\b32\b"):
        visitor.signer()


def test_inside_another_sites_page_a_second_cookie_is_given(browser):
    """Browsers send one that is Lax to no such page; without TLS no cookie helps."""
    framed = {"sec-fetch-dest": "iframe"}
    assert len(browser.get(**framed).headers.getlist("set-cookie")) == 1
    browser.cookies.clear()
    browser.scheme = "https"
    usual, partitioned = browser.get(**framed).headers.getlist("set-cookie")
    assert usual.split(";")[0] == partitioned.split(";")[0]
    assert "SameSite=lax" in usual
    assert {"SameSite=none", "Secure", "HttpOnly", "Partitioned"} <= {
        *partitioned.split("; ")
    }


@pytest.mark.parametrize(
    ("header", "path"),
    [
        ({}, "/a/b"),
        ({"x-forwarded-prefix": "/ada/"}, "/ada"),
        ({"x-forwarded-context": "/user/ada%40x/8501"}, "/user/ada%40x/8501"),
        ({"x-forwarded-prefix": "/; Domain=other"}, "/"),
    ],
)
def test_the_cookie_is_for_the_apps_own_path(browser, monkeypatch, header, path):
    monkeypatch.setattr(visitor.st, "get_option", {"server.baseUrlPath": "a/b"}.get)
    assert browser.get(**header).cookie["path"] == path
