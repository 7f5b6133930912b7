"""core.ui.visitor: who a browser is, and that nobody can say they are another."""

import stat
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from itsdangerous import TimestampSigner
from starlette.responses import PlainTextResponse, Response

from core.errors import ExplainedError
from core.ui import visitor
from core.ui.visitor import COOKIE, DAY_SECONDS, LASTS_SECONDS, VisitorCookie, read
from tests.ui.client import Client


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    """A key of the test's own."""
    monkeypatch.setenv("COOKIE_SECRET", "a secret that nobody knows, 32 characters")
    visitor.signer.cache_clear()
    yield
    visitor.signer.cache_clear()


async def pages(scope, receive, send) -> None:
    """As Streamlit answers."""
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
    """A browser that was never here."""
    return Client(VisitorCookie(pages))


def test_a_first_page_brings_a_cookie_that_lasts(browser):
    """For 180 days, not for scripts and other sites, and never from a shared cache."""
    browser.get("/Train")
    given = browser.given
    assert read(given.value)
    assert given.key == COOKIE
    assert int(given["max-age"]) == LASTS_SECONDS == 180 * 24 * 3600
    assert (given["httponly"], given["samesite"], given["path"]) == (True, "lax", "/")
    assert not given["secure"]
    assert browser.headers["cache-control"] == "private, no-cache"


def test_the_cookie_of_an_encrypted_page_is_never_sent_in_the_clear(browser):
    browser.scheme = "https"
    assert browser.get().given["secure"]


def test_who_comes_back_is_who_they_were(browser):
    """The cookie is renewed once a day, so that it lasts from the newest visit on."""
    me = read(browser.get().given.value)
    assert browser.get("/Train").given is None
    day = time.time() + DAY_SECONDS + 10
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time", lambda: day)
        assert read(browser.get().given.value) == me
    assert read(Client(browser.app).get().given.value) != me


def test_a_page_that_the_browser_has_kept_brings_a_cookie_too(browser):
    """Else whoever deletes cookies but not the cache would have none."""
    browser.get("/Train", **{"if-none-match": "x"})
    assert browser.status == 304
    assert read(browser.given.value)


@pytest.mark.parametrize("path", ["/_stcore/health", "/static/js/index.js"])
def test_what_is_no_page_brings_none(browser, path):
    """Who looks whether the server is alive is no visitor."""
    assert browser.get(path).given is None


def forgeries() -> dict[str, str]:
    """Cookies that this server did not give."""
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


def test_a_forged_cookie_is_nobody(browser):
    """It is replaced by that of a new visitor."""
    for kind, cookie in forgeries().items():
        browser.cookies[COOKIE] = cookie
        assert read(cookie) == "", kind
        found = read(browser.get().given.value)
        assert len(found) == 32
        assert found not in ("a" * 32, "b" * 32)


def test_an_old_cookie_is_nobody(browser, monkeypatch):
    cookie = browser.get().given.value
    later = time.time() + LASTS_SECONDS + 10
    monkeypatch.setattr(visitor.time, "time", lambda: later)
    assert read(cookie) == ""


def test_a_clock_that_was_set_back_makes_nobody_a_stranger(browser, monkeypatch):
    cookie = browser.get().given.value
    earlier = time.time() - DAY_SECONDS
    monkeypatch.setattr(visitor.time, "time", lambda: earlier)
    assert read(cookie)


def test_who_deleted_their_data_is_nobody(browser, monkeypatch):
    """Also in a tab that still has the cookie; not too many are remembered."""
    monkeypatch.setattr(visitor, "_deleted", {})
    monkeypatch.setattr(visitor, "MOST", 2)
    cookie = browser.get().given.value
    visitor.retire(read(cookie))
    assert read(cookie) == ""
    assert browser.get().given.value != cookie
    for other in "bcd":
        visitor.retire(other)
    assert list(visitor._deleted) == ["c", "d"]


def test_the_key_is_made_once_and_for_the_app_alone(tmp_path):
    """Servers that start at once agree on it; only their user may read it."""
    file = tmp_path / "data" / "cookie.key"
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(visitor.kept_key, [file] * 16))
    assert keys == {file.read_text()}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {each.name for each in file.parent.iterdir()} <= {
        "cookie.key",
        "cookie.key.lock",
    }


def test_a_damaged_key_is_made_anew(tmp_path):
    """As an empty file that a full disk has left."""
    file = tmp_path / "cookie.key"
    file.touch()
    assert len(visitor.kept_key(file)) == 64


def test_a_key_that_can_not_be_kept_is_told_and_used(tmp_path, monkeypatch, caplog):
    """The app starts; its log says that all will be new after a restart."""
    (tmp_path / "data").touch()
    monkeypatch.setattr(visitor, "KEY_FILE", tmp_path / "data" / "cookie.key")
    monkeypatch.delenv("COOKIE_SECRET")
    assert read(visitor.signer().sign("me").decode()) == "me"
    assert "after a restart all visitors will be new" in caplog.text


def test_a_secret_that_can_be_guessed_is_refused(monkeypatch):
    monkeypatch.setenv("COOKIE_SECRET", "secret")
    with pytest.raises(ExplainedError, match="6 characters, and has to have 32"):
        visitor.signer()
