import asyncio

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from core.serving import forms
from core.serving.forms import Failures, Sentence, TooBusyError, Turns
from tests.app import event_loop
from tests.app.ui.client import Client


@pytest.fixture
def app() -> Starlette:
    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse(repr(await forms.posted(request)))

    return Starlette(routes=[Route("/", answer, methods=["POST"])])


def test_fields_of_a_form_are_read_up_to_a_limit(app):
    read = {"name": "a b", "code": "x"}
    assert Client(app).post("/", **read).body == repr(read)
    assert Client(app).post("/", code="x" * forms.LONGEST).body == "{}"


def test_a_form_that_is_broken_off_is_refused():
    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    headers = [(b"host", b"course"), (b"sec-fetch-site", b"same-origin")]
    request = Request({"type": "http", "method": "POST", "headers": headers}, receive)
    with pytest.raises(HTTPException) as refused:
        event_loop.run(forms.posted(request))
    assert refused.value.status_code == 400


@pytest.mark.parametrize(
    "origin",
    ["http://evil", "null", "", "http://course.evil", "http://[", "http://[x]"],
)
def test_a_form_of_another_sites_page_is_not_read(app, origin):
    client = Client(app).post("/", origin, code="x")
    assert (client.status, client.body) == (403, forms.OTHER_SITE)


def test_counted_failures_have_a_limit_and_are_forgotten_after_minutes(monkeypatch):
    failures, now = Failures(), 1000.0
    monkeypatch.setattr(forms.time, "monotonic", lambda: now)
    failures.add("the first")
    assert failures.delay("the first") > failures.delay("elsewhere") > 0
    for number in range(Failures.MOST):
        failures.add(f"address {number}")
    everywhere = failures.delay("elsewhere")
    assert failures.delay("the first") == everywhere == Failures.MOST_ALL_SECONDS
    assert failures.delay("address 1") == everywhere + Failures.OWN_SECONDS
    now += Failures.LAST_SECONDS + 1
    assert failures.delay("address 1") == 0


def test_a_full_queue_drops_the_newest_cookie_of_the_fullest_address():
    """In a class behind one address, a flood doesn't keep the teacher out."""
    turns, served = Turns(3), list[str]()

    async def ask(who: str, address: str, age: float) -> None:
        async with turns.turn(address, who, age):
            served.append(who)

    async def flood() -> list[BaseException | None]:
        async with turns.turn("elsewhere"):
            asked = [
                asyncio.ensure_future(ask(who, address, age))
                for who, address, age in (
                    *(("flood 1", "class", 1.0), ("teacher", "class", 3600.0)),
                    *(("ada", "home", 0.0), ("flood 2", "class", 0.0)),
                    ("flood 3", "class", 0.0),
                )
            ]
            await asyncio.sleep(0)
        return await asyncio.gather(*asked, return_exceptions=True)

    ends = event_loop.run(flood())
    assert [isinstance(end, TooBusyError) for end in ends] == [False] * 3 + [True] * 2
    assert served == ["flood 1", "ada", "teacher"]


NEW = [(f"new {number}", f"address {number}", 1.0) for number in range(40)]
KEPT = [(f"kept {number % 4}", "class", 9_000.0) for number in range(40)]


@pytest.mark.parametrize(("others", "age"), [(NEW, 60.0), (KEPT, 5.0)])
def test_neither_many_addresses_nor_kept_cookies_keep_a_teacher_out(others, age):
    turns, served = Turns(3), list[str]()

    async def ask(who: str, address: str, age: float) -> None:
        async with turns.turn(address, who, age):
            served.append(who)

    async def flood() -> None:
        async with turns.turn("elsewhere"):
            asked = []
            for visit in (*others, ("teacher", "class", age), *others):
                asked.append(asyncio.ensure_future(ask(*visit)))
                await asyncio.sleep(0)
        await asyncio.gather(*asked, return_exceptions=True)

    event_loop.run(flood())
    assert "teacher" in served


def test_a_sentence_is_shown_once_and_the_oldest_are_dropped(monkeypatch):
    monkeypatch.setattr(forms, "_sentences", {})
    sentence = Sentence("warning", "No.")
    for number in range(forms.MOST_SENTENCES + 1):
        forms.say(str(number), sentence)
    assert forms.pop_sentence("0") is None
    assert forms.pop_sentence("1") == sentence
    assert forms.pop_sentence("1") is None
