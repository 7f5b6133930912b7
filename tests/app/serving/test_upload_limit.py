import asyncio
import time
from types import SimpleNamespace

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from core.serving import upload_limit
from core.serving.upload_limit import UploadLimit
from tests.app import event_loop

FORM = [(b"content-type", b"multipart/form-data; boundary=----WebKitFormBoundary1")]
SIZE_OF = upload_limit.size_of


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> MemoryUploadedFileManager:
    files = MemoryUploadedFileManager("/upload")
    gone = {"gone"}
    sessions = SimpleNamespace(get_session_info=lambda name: name not in gone or None)
    server = SimpleNamespace(uploaded_file_mgr=files, _session_mgr=sessions)
    monkeypatch.setattr(runtime, "get_instance", lambda: server)
    return files


@pytest.fixture
def limit(
    files: MemoryUploadedFileManager, monkeypatch: pytest.MonkeyPatch
) -> UploadLimit:
    """Around a server that takes uploads: 100 bytes a session, 300 in all.

    As many as 200 more may be arriving. Only contents count, except where a test says
    otherwise.
    """
    monkeypatch.setattr(upload_limit, "size_of", lambda file: len(file.data))
    monkeypatch.setattr(upload_limit, "SESSION_BYTES", 100)
    monkeypatch.setattr(upload_limit, "STORED_BYTES", 300)
    monkeypatch.setattr(upload_limit, "ARRIVING_BYTES", 200)
    monkeypatch.setattr(upload_limit, "LOOK_BYTES", 10)

    async def streamlit(scope, receive, _send) -> None:
        data, more = b"", True
        while more:
            message = await receive()
            data, more = data + message["body"], message["more_body"]
        *_, session, name = scope["path"].split("/")
        files.add_file(session, UploadedFileRec(name, name, "", data))

    return UploadLimit(streamlit)


async def put(
    limit: UploadLimit,
    session: str,
    name: str,
    size: int,
    release=None,
    client="::1",
    breaks_off: bool = False,
):
    """Upload so many bytes, ten at a time; before the last ten wait for `release`.

    Or else it breaks off there.
    """
    pieces = [b"x" * 10] * (size // 10)

    async def receive() -> dict:
        if breaks_off and len(pieces) == 1:
            raise ClientDisconnect
        if release and len(pieces) == 1:
            await release.wait()
        body = pieces.pop()
        return {"type": "http.request", "body": body, "more_body": bool(pieces)}

    path = f"/base/_stcore/upload_file/{session}/{name}"
    scope = {"type": "http", "method": "PUT", "path": path, "headers": FORM}
    scope["client"] = client, 1
    await limit(scope, receive, None)


def stored(files: MemoryUploadedFileManager) -> dict[str, list[str]]:
    return {key: list(names) for key, names in files.file_storage.items() if names}


def test_who_breaks_off_and_begins_anew_gives_way_to_a_class(limit, files) -> None:
    async def upload() -> list[BaseException | None]:
        for number in range(5):
            await put(
                limit, "evil", f"{number}", 90, client="10.0.0.1", breaks_off=True
            )
        release = asyncio.Event()
        students = [
            asyncio.create_task(put(limit, f"{n}", "own", 40, release, "10.0.0.2"))
            for n in range(6)
        ]
        evil = asyncio.create_task(put(limit, "evil", "new", 90, release, "10.0.0.1"))
        await asyncio.sleep(0.01)
        release.set()
        return await asyncio.gather(*students, evil, return_exceptions=True)

    *of_class, of_evil = event_loop.run(upload())
    assert of_class == [None] * 6
    assert isinstance(of_evil, HTTPException)
    assert len(stored(files)) == 6


def test_a_session_keeps_its_newest_files(limit, files) -> None:

    async def upload() -> None:
        await put(limit, "calm", "mine", 50)
        for number in range(15):
            await put(limit, "greedy", str(number), 40)

    event_loop.run(upload())
    assert stored(files) == {"calm": ["mine"], "greedy": ["13", "14"]}


def test_the_session_that_holds_most_makes_room_for_others(limit, files) -> None:

    async def upload() -> None:
        await put(limit, "calm", "mine", 30)
        for number in range(10):
            await put(limit, f"greedy {number}", "a", 50)
            await put(limit, f"greedy {number}", "b", 50)
        await put(limit, "late", "mine", 60)

    event_loop.run(upload())
    assert stored(files)["calm"] == stored(files)["late"] == ["mine"]
    assert files._total_bytes <= 300


def test_many_small_files_are_no_long_way_to_make_room(limit, files) -> None:
    dropped = []

    def remove(session: str, name: str) -> None:
        dropped.append(name)
        MemoryUploadedFileManager.remove_file(files, session, name)

    async def upload() -> None:
        for number in range(5):
            for small in range(2):
                await put(limit, f"greedy {number}", f"{small}", 10)
            await put(limit, f"greedy {number}", "large", 40)
        files.remove_file = remove
        await put(limit, "calm", "mine", 50)

    event_loop.run(upload())
    assert dropped == ["large", "large"]
    assert stored(files)["calm"] == ["mine"]


def test_a_session_that_has_ended_leaves_no_file(limit, files) -> None:
    event_loop.run(put(limit, "gone", "mine", 50))
    assert stored(files) == {}


def test_files_without_content_count_too(limit, files, monkeypatch) -> None:
    monkeypatch.setattr(upload_limit, "size_of", SIZE_OF)
    monkeypatch.setattr(upload_limit, "SESSION_BYTES", 2_500)
    monkeypatch.setattr(upload_limit, "STORED_BYTES", 9_000)

    async def upload() -> None:
        for number in range(10):
            await put(limit, "greedy", f"{number}", 10)

    event_loop.run(upload())
    assert stored(files) == {"greedy": ["7", "8", "9"]}


def test_neither_many_files_nor_many_pieces_hold_the_server_up(
    limit, files, monkeypatch
) -> None:
    sizes = []
    monkeypatch.setattr(upload_limit, "SESSION_FILES", 3)
    monkeypatch.setattr(upload_limit, "LOOK_BYTES", 50)

    async def upload() -> None:
        for number in range(10):
            await put(limit, "greedy", f"{number}", 10)
        monkeypatch.setattr(upload_limit, "size_of", lambda _: sizes.append(10) or 10)
        await put(limit, "calm", "in ten pieces", 100)

    event_loop.run(upload())
    assert stored(files)["greedy"] == ["6", "7", "8", "9"]
    assert len(sizes) == 4  # files of others, at the only look that may drop them


def test_what_is_on_its_way_counts_for_its_session(limit, files) -> None:

    async def upload() -> None:
        release = asyncio.Event()
        slow = asyncio.create_task(put(limit, "slow", "a", 100, release))
        await asyncio.sleep(0)
        with pytest.raises(HTTPException) as refused:
            await put(limit, "slow", "b", 20)
        assert refused.value.status_code == 413
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        await put(limit, "slow", "b", 20)

    event_loop.run(upload())
    assert stored(files) == {"slow": ["b"]}
    assert not limit.uploads


def test_what_is_on_its_way_takes_no_room_from_files_of_others(limit, files) -> None:
    """Also if nearly all of it has arrived, from many addresses, and stands still."""

    async def upload() -> None:
        release = asyncio.Event()
        for name in ("a", "b", "c"):
            await put(limit, name, "mine", 90, client=f"192.0.2.{name}")
        slow = [
            asyncio.create_task(
                put(limit, f"{i}", "a", 90, release, f"192.0.2.{i % 3}")
            )
            for i in range(12)
        ]
        await asyncio.sleep(0)
        assert set(stored(files)) == {"a", "b", "c"}
        await put(limit, "late", "mine", 20, client="192.0.2.9")
        assert set(stored(files)) == {"a", "b", "c", "late"}
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

    event_loop.run(upload())


@pytest.mark.parametrize("client", ["192.0.2.9", "192.0.2.1"])
def test_a_small_upload_ends_the_largest_of_who_has_most(limit, files, client) -> None:
    """At once, also if that one stands still, and the others go on."""

    async def upload() -> None:
        release = asyncio.Event()
        greedy = [
            asyncio.create_task(put(limit, f"{size}", "a", size, release, "192.0.2.1"))
            for size in (60, 90, 40)
        ]
        calm = asyncio.create_task(put(limit, "calm", "mine", 40, release, "192.0.2.2"))
        await asyncio.sleep(0)
        await put(limit, "late", "mine", 30, client=client)
        with pytest.raises(HTTPException) as ended:
            await asyncio.wait_for(greedy[1], 5)
        assert ended.value.status_code == 413
        release.set()
        await asyncio.gather(greedy[0], greedy[2], calm)

    event_loop.run(upload())
    assert set(stored(files)) == {"late", "60", "40", "calm"}


def test_uploads_that_stand_still_end_before_those_of_a_class(
    limit, files, monkeypatch
) -> None:
    async def upload() -> None:
        release = asyncio.Event()
        slow = [
            asyncio.create_task(
                put(limit, f"{i}", "a", 70, release, f"192.0.2.{i % 3}")
            )
            for i in range(3)
        ]
        await asyncio.sleep(0)
        later = time.monotonic() + 60
        monkeypatch.setattr(upload_limit.time, "monotonic", lambda: later)
        people = [
            asyncio.create_task(put(limit, name, "a", 40, release, "192.0.2.9"))
            for name in "abcdef"
        ]
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(*people)
        ends = await asyncio.gather(*slow, return_exceptions=True)
        assert any(isinstance(end, HTTPException) for end in ends)

    event_loop.run(upload())
    assert set("abcdef") <= set(stored(files))


def test_the_address_that_holds_most_makes_room_for_others(limit, files) -> None:
    """However many sessions it has; a new file that would be the most is refused."""

    async def upload() -> None:
        await put(limit, "calm", "mine", 60, client="192.0.2.2")
        for number in range(10):
            await put(limit, f"greedy {number}", "a", 50, client="192.0.2.1")
        await put(limit, "late", "mine", 80, client="192.0.2.3")
        assert stored(files)["calm"] == stored(files)["late"] == ["mine"]
        for number in range(4, 10):
            name, address = f"{number}", f"192.0.2.{number}"
            await put(limit, name, "mine", 50, client=address)
        with pytest.raises(HTTPException):
            await put(limit, "greedier", "a", 90, client="192.0.2.10")

    event_loop.run(upload())
    assert {*"456789"} <= set(stored(files))
    assert files._total_bytes <= 300


@pytest.mark.usefixtures("files")
def test_an_upload_that_is_broken_off_ends_without_an_error() -> None:
    async def streamlit(_scope, _receive, _send) -> None:
        raise ClientDisconnect

    limit = UploadLimit(streamlit)
    event_loop.run(put(limit, "a", "mine", 10))
    assert not limit.uploads


UPLOAD = "/_stcore/upload_file/s/f"


@pytest.mark.parametrize(("method", "path"), [("PUT", ""), ("DELETE", UPLOAD)])
def test_other_requests_pass(method: str, path: str) -> None:
    calls = []

    async def streamlit(*arguments) -> None:
        calls.append(arguments)

    arguments = ({"type": "http", "method": method, "path": path}, object(), object())
    event_loop.run(UploadLimit(streamlit)(*arguments))
    assert calls == [arguments]


@pytest.mark.parametrize(
    "kind",
    [
        b"application/x-www-form-urlencoded",
        b"multipart/form-data" + b";" * 10_000 + b"boundary=a",
        b"multipart/form-data; boundary=a; charset=punycode",
        b"multipart/form-data; charset=punycode; boundary=a",
        b"multipart/form-data; boundary=" + b"a" * 101,
        b"",
    ],
)
def test_a_form_that_takes_long_to_read_is_refused_unread(kind: bytes) -> None:
    statuses = list[int]()

    async def send(message) -> None:
        statuses.append(message.get("status", 0))

    headers = [(b"content-type", kind)]
    scope = {"type": "http", "method": "PUT", "path": UPLOAD, "headers": headers}
    event_loop.run(UploadLimit(None)(scope, None, send))
    assert statuses[0] == 415
