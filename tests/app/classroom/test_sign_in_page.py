import asyncio
import threading
import time
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.requests import Request

from core.classroom import sign_in_page as sign_in
from core.classroom.room import Room
from core.classroom.sign_in_page import PASSWORD
from core.serving import visitor_cookie as visitor
from core.serving.forms import Failures, Turns, pop_sentence
from core.store.store import Store
from tests.app import event_loop
from tests.app.ui.client import Client
from to_device.errors import ExplainedError

RIGHT, WRONG = "open sesame", "open, sesame"
ENTER = "/teacher/enter"
ACCOUNT = {
    "is_logged_in": True,
    "email": "bird@school.example",
    "email_verified": True,
}


@pytest.fixture
def waited() -> list[float]:
    """Seconds that each try had to wait."""
    return []


@pytest.fixture
def room() -> Room:
    store = Store.temporary("")
    yield Room(store.classes)
    store.close()


@pytest.fixture
def app(monkeypatch, room, waited) -> Starlette:
    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setenv(PASSWORD, RIGHT)
    monkeypatch.setenv("COOKIE_SECRET", "a secret that nobody knows, 32 characters")
    monkeypatch.setattr(sign_in, "room", lambda: room)
    monkeypatch.setattr(sign_in, "_sign_ins", {})
    monkeypatch.setattr(sign_in, "failures", Failures())
    without_waits = SimpleNamespace(**vars(asyncio) | {"sleep": sleep})
    monkeypatch.setattr(sign_in, "asyncio", without_waits)
    sign_in.password.cache_clear()
    visitor.signer.cache_clear()
    yield Starlette(routes=sign_in.ROUTES)
    sign_in.password.cache_clear()
    visitor.signer.cache_clear()


def browser_of(app: Starlette, name: str, **more: str) -> Client:
    cookie = visitor.signer().sign(name).decode()
    return Client(app, cookies={visitor.COOKIE: cookie}, **more)


def teacher(browser: Client, monkeypatch) -> object:
    """The teacher that a page takes that browser for."""
    context = SimpleNamespace(cookies=browser.cookies)
    monkeypatch.setattr(sign_in.st, "context", context)
    monkeypatch.setattr(sign_in.st, "user", SimpleNamespace(to_dict=dict))
    monkeypatch.setattr(sign_in.st, "logout", lambda: None)
    return sign_in.teacher()


def test_the_password_signs_in_each_browser_until_it_signs_out(app, room, monkeypatch):
    browser, other = browser_of(app, "one"), browser_of(app, "two")
    browser.post(ENTER, password=RIGHT, name="  Ms   Bird ")
    other.post(ENTER, password=RIGHT)
    assert browser.cookie["httponly"]
    assert browser.cookie["samesite"] == "lax"
    assert pop_sentence("one") is None
    assert teacher(other, monkeypatch).name == "Teacher"
    assert teacher(browser, monkeypatch).name == "Ms Bird"
    assert room.is_teacher("one")
    sign_in.sign_out()
    assert teacher(browser, monkeypatch) is None
    assert not room.is_teacher("one")
    assert not sign_in.is_cut_off()
    assert teacher(other, monkeypatch)
    assert not sign_in.is_cut_off()


def test_a_teacher_whom_a_restart_signs_out_is_told(app, monkeypatch):
    browser, student = browser_of(app, "one"), browser_of(app, "student")
    browser.post(ENTER, password=RIGHT)
    monkeypatch.setattr(sign_in, "_sign_ins", {})  # as after a restart
    assert teacher(browser, monkeypatch) is None
    assert sign_in.is_cut_off()
    assert teacher(student, monkeypatch) is None
    assert not sign_in.is_cut_off()


def test_nothing_but_the_password_signs_in(app, room, monkeypatch):
    browser = browser_of(app, "student")
    browser.post(ENTER, password=WRONG)
    assert pop_sentence("student") == sign_in.WRONG
    assert sign_in.COOKIE not in browser.cookies
    for made_up in ("", "x", "student"):
        browser.cookies[sign_in.COOKIE] = made_up
        assert teacher(browser, monkeypatch) is None
    assert browser.post(ENTER, "http://evil", password=RIGHT).status == 403
    browser.post(ENTER, password=RIGHT)
    assert teacher(browser, monkeypatch)
    later = time.time() + sign_in.LASTS_SECONDS + 1
    monkeypatch.setattr(sign_in.time, "time", lambda: later)
    assert teacher(browser, monkeypatch) is None
    assert not room.is_teacher("student")
    nobody = Client(app)
    nobody.post(ENTER, password=RIGHT)
    assert sign_in.COOKIE not in nobody.cookies


def test_guessing_is_slowed_down_at_its_own_address_only(app, waited, monkeypatch):
    guesser = browser_of(app, "guesser", address="10.0.0.9")
    with monkeypatch.context() as patch:
        patch.setattr(sign_in, "fits", lambda _: False)
        for number in range(100):
            guesser.post(ENTER, password=str(number))
    assert waited == sorted(waited)
    assert waited[-1] > 5
    browser = browser_of(app, "ms bird", address="10.0.0.2")
    browser.post(ENTER, password=RIGHT)
    assert waited[-1] < 0.2
    assert teacher(browser, monkeypatch)


@pytest.mark.usefixtures("app")
def test_a_flood_of_attempts_is_refused_and_holds_up_no_other_address(monkeypatch):
    """They hold none of the threads that files need, either."""
    release, tried, threads = threading.Event(), [], set()

    def fits(typed: str) -> bool:
        threads.add(threading.current_thread().name)
        release.wait(60)
        tried.append(typed)
        return typed == RIGHT

    monkeypatch.setattr(sign_in, "fits", fits)
    monkeypatch.setattr(sign_in, "turns", Turns(5))

    async def enter(address: str, password: str) -> int:
        async def receive() -> dict:
            return {
                "type": "http.request",
                "body": urlencode({"password": password}).encode(),
            }

        headers = [(b"host", b"course"), (b"origin", b"http://course")]
        scope = {"type": "http", "client": (address, 1), "headers": headers}
        return (await sign_in.enter(Request(scope, receive))).status_code

    async def flood() -> tuple[list[int], int]:
        attempts = [asyncio.create_task(enter("10.0.0.9", "no")) for _ in range(30)]
        while sum(task.done() for task in attempts) < 24:
            await asyncio.sleep(0.01)
        teacher = asyncio.create_task(enter("10.0.0.2", RIGHT))
        while sum(task.done() for task in attempts) < 25:
            await asyncio.sleep(0.01)
        release.set()
        return await asyncio.gather(*attempts), await teacher

    codes, of_teacher = event_loop.run(flood())
    assert (codes.count(503), codes.count(303)) == (25, 5)
    assert of_teacher == 303
    assert tried.index(RIGHT) <= 2
    assert len(threads) == 1


@pytest.mark.parametrize("password", ["", "open sesame", "open sesame, please"])
def test_a_password_that_could_be_guessed_is_a_warning_at_the_start(
    password, monkeypatch, caplog
):
    monkeypatch.setenv(PASSWORD, password)
    sign_in.warn_of_password()
    assert len(caplog.messages) == (0 < len(password) < sign_in.ADVISED)
    assert not password or password not in caplog.text


@pytest.mark.parametrize(
    ("user", "may"),
    [
        (ACCOUNT | {"email": "Bird@School.example"}, True),
        (ACCOUNT | {"is_logged_in": False}, False),
        (ACCOUNT | {"email": "student@school.example"}, False),
        ({"is_logged_in": True}, False),
        ({}, False),
        (ACCOUNT | {"email_verified": False}, False),
        ({k: v for k, v in ACCOUNT.items() if k != "email_verified"}, False),
    ],
)
def test_an_account_needs_an_address_that_is_listed_and_verified(user, may):
    assert sign_in.may_teach(user, " bird@school.example, ,owl@school.example") == may
    assert not sign_in.may_teach(user, "")


@pytest.fixture
def set_password(monkeypatch):
    """Starts the app with another password, or with none."""

    def start(text: str | None) -> None:
        if text is None:
            monkeypatch.delenv(PASSWORD, raising=False)
        else:
            monkeypatch.setenv(PASSWORD, text)
        sign_in.password.cache_clear()

    yield start
    sign_in.password.cache_clear()


def test_only_the_password_fits_and_only_a_salted_digest_is_kept(set_password):
    set_password("Käse und Brot")
    assert sign_in.fits("Käse und Brot")
    for wrong in ("", "käse und brot", "Käse und Brot ", "x" * 10_000):
        assert not sign_in.fits(wrong)
    digest = sign_in.password()
    assert "Brot" not in repr(digest)
    set_password("Käse und Brot")
    assert digest != sign_in.password()


@pytest.mark.parametrize("text", [None, ""])
def test_without_a_password_nothing_fits(set_password, text):
    set_password(text)
    assert sign_in.password() is None
    assert not sign_in.fits("")


def test_a_short_password_is_refused_without_showing_it(set_password):
    set_password("secret")
    with pytest.raises(ExplainedError, match=r"\b6\b") as error:
        sign_in.password()
    assert "secret" not in str(error.value)
