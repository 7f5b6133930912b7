"""core.ui.classroom.teacher.sign_in: the password by a form, and who is a teacher."""

import time
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette

from core.classroom.password import VARIABLE
from core.classroom.room import Room
from core.store.store import Store
from core.ui import visitor
from core.ui.classroom.teacher import sign_in
from core.ui.visitor_routes import Failures, what_was_said
from tests.ui.client import Client

RIGHT, WRONG = "open sesame", "open, sesame"
ENTER = "/teacher/enter"


@pytest.fixture
def waited() -> list[float]:
    return []


@pytest.fixture
def room() -> Room:
    store = Store.passing("")
    yield Room(store.classes)
    store.close()


@pytest.fixture
def app(monkeypatch, room, waited) -> Starlette:
    """The route, without waiting, on a server where nobody has signed in."""

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setenv(VARIABLE, RIGHT)
    monkeypatch.setenv("COOKIE_SECRET", "a secret that nobody knows, 32 characters")
    monkeypatch.setattr(sign_in, "room", lambda: room)
    monkeypatch.setattr(sign_in, "_signed_in", {})
    monkeypatch.setattr(sign_in, "failures", Failures())
    monkeypatch.setattr(sign_in.asyncio, "sleep", sleep)
    sign_in.password.cache_clear()
    visitor.signer.cache_clear()
    yield Starlette(routes=sign_in.ROUTES)
    sign_in.password.cache_clear()
    visitor.signer.cache_clear()


def somebody(app: Starlette, name: str, **more: str) -> Client:
    """A browser with the cookie of that visitor."""
    cookie = visitor.signer().sign(name).decode()
    return Client(app, cookies={visitor.COOKIE: cookie}, **more)


def teacher(browser: Client, monkeypatch) -> object:
    """Whom a page takes that browser for."""
    context = SimpleNamespace(cookies=browser.cookies)
    monkeypatch.setattr(sign_in.st, "context", context)
    monkeypatch.setattr(sign_in.st, "user", SimpleNamespace(to_dict=dict))
    monkeypatch.setattr(sign_in.st, "logout", lambda: None)
    return sign_in.teacher()


def test_who_knows_the_password_is_a_teacher(app, room, monkeypatch):
    """Until signing out; in two browsers at once, each by their own name."""
    one, other = somebody(app, "one"), somebody(app, "two")
    one.post(ENTER, password=RIGHT, name="  Ms   Bird ")
    other.post(ENTER, password=RIGHT)
    assert one.given["httponly"]
    assert what_was_said("one") == sign_in.WELCOME
    assert teacher(one, monkeypatch).name == "Ms Bird"
    assert teacher(other, monkeypatch).name == "Teacher"
    assert room.is_teacher("one")
    assert teacher(one, monkeypatch)
    sign_in.sign_out()
    assert teacher(one, monkeypatch) is None
    assert not room.is_teacher("one")
    assert teacher(other, monkeypatch)


def test_others_are_not(app, monkeypatch):
    """With a wrong password, a made-up or an old cookie, or from another site."""
    browser = somebody(app, "student")
    browser.post(ENTER, password=WRONG)
    assert what_was_said("student") == sign_in.WRONG
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
    nobody = Client(app)
    nobody.post(ENTER, password=RIGHT)
    assert sign_in.COOKIE not in nobody.cookies


def test_who_guesses_waits_and_the_teacher_elsewhere_does_not(app, waited, monkeypatch):
    """A hundred tries, each slower than the one before, up to seconds."""
    guesser = somebody(app, "guesser", address="10.0.0.9")
    monkeypatch.setattr(sign_in, "password", lambda: SimpleNamespace(fits=lambda _: 0))
    for number in range(100):
        guesser.post(ENTER, password=str(number))
    assert waited == sorted(waited)
    assert waited[-1] > 5
    monkeypatch.undo()


def test_the_right_one_still_works_from_elsewhere(app, waited, monkeypatch):
    """While somebody guesses at another address."""
    for _ in range(100):
        sign_in.failures.add("10.0.0.9")
    browser = somebody(app, "ms bird", address="10.0.0.2")
    browser.post(ENTER, password=RIGHT)
    assert waited[-1] < 0.2
    assert teacher(browser, monkeypatch)


@pytest.mark.parametrize(
    ("user", "may"),
    [
        ({"is_logged_in": True, "email": "Bird@School.example"}, True),
        ({"is_logged_in": False, "email": "bird@school.example"}, False),
        ({"is_logged_in": True, "email": "student@school.example"}, False),
        ({"is_logged_in": True}, False),
        ({}, False),
        (
            {
                "is_logged_in": True,
                "email": "bird@school.example",
                "email_verified": False,
            },
            False,
        ),
    ],
)
def test_who_may_teach_by_their_account(user, may):
    """Only whose address is named, and verified where that is told."""
    assert sign_in.may_teach(user, " bird@school.example, ,owl@school.example") == may
    assert not sign_in.may_teach(user, "")
