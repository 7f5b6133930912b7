"""core.store.visitors: who came, and comes back."""

from core.store.visitors import SEEN_SECONDS, WORDS, new_code
from tests.store.made_up import finished


def test_a_visitor_comes_back_with_a_code(store):
    """However it was typed; another code is nobody's."""
    visitor = store.visitors.new()
    store.writer.flush()
    found = store.visitors.get(visitor)
    assert found.id == visitor
    assert store.visitors.by_code(found.code) == found
    typed = f"  {found.code.upper().replace('-', ' ')}. "
    assert store.visitors.by_code(typed) == found
    for wrong in ("", "-", new_code(), found.code[:-1], found.code + "a"):
        assert store.visitors.by_code(wrong) is None


def test_codes_can_be_read_aloud_and_not_guessed():
    """Four words of five letters, consonants and vowels in turn: 64 bits."""
    codes = {new_code() for _ in range(1000)}
    assert len(codes) == 1000
    for code in codes:
        words = code.split("-")
        assert [len(word) for word in words] == [5] * WORDS
        assert all(word[1] in "aiou" and word[3] in "aiou" for word in words)


def test_a_visit_is_written_down_once_an_hour(store, monkeypatch):
    """Not at every click."""
    now = 1000.0 + SEEN_SECONDS
    monkeypatch.setattr("core.store.visitors.time.time", lambda: now)
    visitor = store.visitors.new()
    for later, seen in ((10.0, 0.0), (SEEN_SECONDS, SEEN_SECONDS)):
        monkeypatch.setattr("core.store.visitors.time.time", lambda at=later: now + at)
        store.visitors.touch(visitor)
        store.writer.flush()
        assert store.visitors.get(visitor).seen == now + seen


def test_who_starts_a_run_is_known(store):
    """Also with the cookie of a visitor whose row is gone."""
    finished(store, "a", "somebody")
    assert store.visitors.get("somebody").code
    store.visitors.touch("somebody else")
    store.writer.flush()
    assert store.visitors.get("somebody else").code


def test_delete_deletes(store):
    """Runs, curves and measurements of this visitor, and nothing of another's."""
    for visitor in ("me", "you"):
        finished(store, f"run of {visitor}", visitor)
        store.measurements.keep("a:b", 1, machine="here", visitor=visitor)
    store.visitors.delete("me")
    assert store.visitors.get("me") is None
    assert [each.id for each in store.runs.find()] == ["run of you"]
    assert store.runs.checkpoint("run of me") is None
    assert store.measurements.of("me") == []
    assert len(store.measurements.of("you")) == 1


def test_what_was_deleted_is_not_in_the_file(file_url, open_store):
    """Who deletes their data need not fear whoever reads the disk."""
    secret, store = "a name that I gave", open_store(file_url)
    finished(store, "a", "me")
    store.runs.rename("a", "me", secret)
    folder = store.database.path.parent

    def found() -> bool:
        files = (file.read_bytes() for file in folder.iterdir())
        return any(secret.encode() in data for data in files)

    assert found()
    store.visitors.delete("me")
    assert not found()
