"""core.ui.visitor_routes: a code to come back with, and all of it deleted."""

from types import SimpleNamespace

import pytest
from starlette.applications import Starlette

from core.store.codec import StoreError
from core.store.store import Store
from core.store.visitors import new_code
from core.ui import visitor, visitor_routes
from core.ui.visitor import COOKIE, read
from core.ui.visitor_routes import BACK, DELETED, WRONG, Failures, what_was_said
from tests.store.made_up import finished
from tests.ui.client import Client

CODE, DELETE = "/visitor/code", "/visitor/delete"


@pytest.fixture
def store(tmp_path):
    store = Store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    yield store
    store.close()


@pytest.fixture
def forgotten() -> list[str]:
    """Whose jobs the engine was told to forget."""
    return []


@pytest.fixture
def waited() -> list[float]:
    """How long each try had to wait, in seconds."""
    return []


@pytest.fixture
def app(monkeypatch, store, forgotten, waited) -> Starlette:
    """The routes, with this store, and without waiting."""

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    engine = SimpleNamespace(forget=forgotten.append)
    monkeypatch.setattr(visitor, "_deleted", {})
    monkeypatch.setattr(visitor_routes, "store", lambda: store)
    monkeypatch.setattr(visitor_routes, "engine", lambda: engine)
    monkeypatch.setattr(visitor_routes, "failures", Failures())
    monkeypatch.setattr(visitor_routes.asyncio, "sleep", sleep)
    monkeypatch.setenv("COOKIE_SECRET", "a secret that nobody knows, 32 characters")
    visitor.signer.cache_clear()
    yield Starlette(routes=visitor_routes.ROUTES)
    visitor.signer.cache_clear()


def somebody(app: Starlette, store: Store, **more: str) -> Client:
    """The browser of a visitor whom the store knows."""
    who = store.visitors.new()
    store.writer.flush()
    cookie = visitor.signer().sign(who).decode()
    return Client(app, cookies={COOKIE: cookie}, **more)


def me(browser: Client) -> str:
    return read(browser.cookies.get(COOKIE, ""))


def code_of(browser: Client, store: Store) -> str:
    return store.visitors.get(me(browser)).code


def test_a_code_brings_a_visitor_back(app, store):
    """In another browser, which goes to a page that says so; nothing moves."""
    here, there = somebody(app, store), somebody(app, store)
    who, other = me(here), me(there)
    finished(store, "mine", who)
    finished(store, "theirs", other)
    there.post(CODE, code=code_of(here, store).upper().replace("-", " "))
    assert (there.status, there.headers["location"]) == (303, "../Runs")
    assert me(there) == who
    assert (there.given["httponly"], there.given["samesite"]) == (True, "lax")
    assert what_was_said(who) == BACK
    assert what_was_said(who) is None
    assert [each.id for each in store.runs.find(other)] == ["theirs"]


def test_a_browser_without_a_cookie_comes_back_too(app, store):
    code = code_of(here := somebody(app, store), store)
    assert me(Client(app).post(CODE, code=code)) == me(here)


@pytest.mark.parametrize("code", ["", "wrong", "-", "x" * 5000, "'; --"])
def test_a_wrong_code_is_a_sentence(app, store, code):
    """The browser stays who it was."""
    browser = somebody(app, store)
    before = me(browser)
    browser.post(CODE, code=code)
    assert (browser.status, browser.given) == (303, None)
    assert me(browser) == before
    assert what_was_said(before) == WRONG


def test_who_guesses_is_slowed_down_and_nobody_else(app, store, waited):
    """After a hundred wrong codes the right one still works, at once from elsewhere."""
    code, guesser = code_of(somebody(app, store), store), Client(app, "6.6.6.6")
    for _ in range(100):
        guesser.post(CODE, code=new_code())
    assert waited == sorted(waited)
    assert waited[0] == 0
    assert waited[10] >= 1
    assert 5 <= waited[-1] <= 6
    assert me(Client(app, "10.0.0.7").post(CODE, code=code))
    assert waited[-1] < 0.2
    assert me(guesser.post(CODE, code=code))
    assert waited[-1] <= 6


def test_what_is_remembered_of_guesses_has_an_end(monkeypatch):
    """However many and from wherever; after some minutes all of it is forgotten."""
    failures, now = Failures(), 1000.0
    monkeypatch.setattr(visitor_routes.time, "monotonic", lambda: now)
    for number in range(12_000):
        failures.add(f"address {number}")
    assert len(failures._by_address) <= 10_000
    assert failures.delay("elsewhere") == Failures.MOST_ALL_SECONDS
    now += Failures.LAST_SECONDS + 1
    assert failures.delay("address 11999") == 0
    assert not failures._by_address


@pytest.mark.parametrize("path", [CODE, DELETE])
@pytest.mark.parametrize("origin", ["http://evil", "null", "", "http://course.evil"])
def test_another_sites_page_can_not_send_these_forms(app, store, path, origin):
    browser = somebody(app, store)
    who = me(browser)
    browser.post(path, origin, code=code_of(somebody(app, store), store))
    assert (browser.status, browser.given) == (403, None)
    assert store.visitors.get(who) is not None


def test_links_and_pictures_do_nothing(app, store):
    """Only a form that is sent does."""
    for path in (CODE, DELETE):
        assert somebody(app, store).get(path).status == 405


def test_delete_deletes_and_the_browser_is_a_new_visitor(app, store, forgotten):
    """What goes on is ended first; others keep theirs; the old cookie is nobody's."""
    browser, other = somebody(app, store), somebody(app, store)
    who, cookie = me(browser), browser.cookies[COOKIE]
    for each in (who, me(other)):
        finished(store, f"run of {each}", each)
        store.measurements.keep("a:b", 1, machine="here", visitor=each)
    browser.post(DELETE)
    assert forgotten == [who, who]  # before their rows go, and after
    assert [each.visitor for each in store.runs.find()] == [me(other)]
    assert store.visitors.get(who) is None
    assert store.measurements.of(who) == []
    assert read(cookie) == ""
    assert me(browser) not in ("", who)
    assert what_was_said(me(browser)) == DELETED


def test_a_database_that_is_away_is_a_sentence(app, store, monkeypatch):
    """Nobody loses the cookie of data that is still there."""

    def away(*_) -> None:
        raise StoreError("The database is away.")

    browser = somebody(app, store)
    who = me(browser)
    for path, name in ((CODE, "by_code"), (DELETE, "delete")):
        with monkeypatch.context() as patch:
            patch.setattr(store.visitors, name, away)
            browser.post(path, code="any")
        assert me(browser) == who
        assert "The database is away." in what_was_said(who).text


def test_sentences_that_nobody_reads_are_forgotten():
    for number in range(visitor_routes.MOST_SENTENCES + 1):
        visitor_routes.say(str(number), WRONG)
    assert what_was_said("0") is None
    assert len(visitor_routes._said) == visitor_routes.MOST_SENTENCES
    visitor_routes._said.clear()
