"""Each patch has a test that fails once Starlette doesn't need the patch any more."""

from contextlib import suppress
from typing import Any

import pytest
from starlette import formparsers
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from core.serving import starlette_internals
from core.serving.starlette_internals import MOST_NAME_BYTES
from tests.app import event_loop
from tests.app.serving.connections import mends


async def upload(*parts: str) -> list[str]:
    """The names of the files in a browser's upload, as the server reads them."""
    head = "--b\r\nContent-Disposition: form-data; "
    sent = ["\r\n".join(head + part for part in parts).encode(), b"\r\n--b--\r\n", b""]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": sent.pop(0), "more_body": bool(sent)}

    headers = [(b"content-type", b"multipart/form-data; boundary=b")]
    form = await Request({"type": "http", "headers": headers}, receive).form()
    return [getattr(file, "filename", "") for file in form.values()]


def a_file(name: str) -> str:
    return f'name="{name}"; filename="{name}"\r\n\r\ncontent'


@pytest.mark.parametrize(
    "parts",
    [
        [a_file("a"), a_file("b"), a_file("c")],
        ["name=a\r\n\r\n"] * 500,
        [f"name=a; filename=a{';' * 4_000}\r\n\r\n"],
    ],
)
def test_an_upload_has_one_part_with_a_short_header(parts, monkeypatch):
    """However many more come, no more than one header is read, and not a long one."""
    lengths = list[int]()
    read = formparsers.parse_options_header

    def counted(header: bytes | None) -> Any:
        lengths.append(len(header or b""))
        return read(header)

    monkeypatch.setattr(formparsers, "parse_options_header", counted)

    async def costs() -> bool:
        lengths.clear()
        with suppress(MultiPartException):
            await upload(*parts)
        return len(lengths) > 2 or max(lengths) > MOST_NAME_BYTES

    mends(starlette_internals.refuse_costly_uploads, costs)
    with pytest.raises(MultiPartException):
        event_loop.run(upload(*parts))


def test_an_upload_is_a_file():
    """Its content isn't decoded, however long, by whatever character set it names."""

    async def is_decoded() -> bool:
        with suppress(MultiPartException):
            return bool(await upload("name=a\r\n\r\n" + "text" * 1_000))
        return False

    mends(starlette_internals.refuse_costly_uploads, is_decoded)


@pytest.mark.parametrize("name", ["a.pt", ";" * 255, "\u6587" * 255])
def test_a_file_of_any_name_is_taken(name):
    starlette_internals.refuse_costly_uploads()
    assert event_loop.run(upload(a_file(name))) == [name]
