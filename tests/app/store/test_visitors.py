import time
from contextlib import suppress
from types import SimpleNamespace

import pytest
from sqlalchemy import update

from core.store.tables import Answer
from core.store.visitors import (
    LONGEST_ANSWER,
    MOST_OF_VISITOR,
    SEEN_SECONDS,
    WORDS,
    Visitors,
    new_code,
)
from tests.app.store.made_up import finished
from to_device.errors import ExplainedError


def test_a_visitor_comes_back_with_a_code_however_it_is_typed(store):
    store.visitors.touch("me")
    store.writer.flush()
    visitor = store.visitors.get("me")
    assert store.visitors.by_code(visitor.code) == visitor
    typed = f"  {visitor.code.upper().replace('-', ' ')}. "
    assert store.visitors.by_code(typed) == visitor
    for wrong in ("", "-", new_code(), visitor.code[:-1], visitor.code + "a"):
        assert store.visitors.by_code(wrong) is None


def test_codes_are_four_words_of_five_letters_with_64_bits():
    codes = {new_code() for _ in range(1000)}
    assert len(codes) == 1000
    for code in codes:
        words = code.split("-")
        assert [len(word) for word in words] == [5] * WORDS
        assert all(word[1] in "aiou" and word[3] in "aiou" for word in words)


@pytest.mark.parametrize("jump", [0, 3 * SEEN_SECONDS, -SEEN_SECONDS])
def test_a_visit_is_written_once_an_hour(store, monkeypatch, jump):
    """Also if somebody sets the clock, which only moves the date."""
    now, clock = 1e9, "core.store.visitors.time"
    seen = now
    monkeypatch.setattr(f"{clock}.time", lambda: now)
    for moment, written in ((0, True), (10, False), (SEEN_SECONDS, True)):
        monkeypatch.setattr(f"{clock}.monotonic", lambda at=moment: at)
        now += jump + 1
        seen = now if written else seen
        store.visitors.touch("me")
        store.writer.flush()
        assert store.visitors.get("me").seen == seen


def test_a_visit_takes_no_longer_after_many_visitors():
    """If each of them copied the others, they would take 10 s."""
    written: list[object] = []
    writer = SimpleNamespace(put=written.append)
    visitors = Visitors(SimpleNamespace(), writer)  # type: ignore[arg-type]
    began = time.thread_time()
    for number in range(20_000):
        visitors.touch(f"visitor {number}")
        visitors.touch("visitor 0")
    assert time.thread_time() - began < 2
    assert len(written) == 20_000


def test_the_newest_answer_to_each_question_is_stored(store):
    store.answers.keep("me", "race", 0)
    store.answers.keep("me", "race", [1, "CPU"])
    store.answers.keep("me", "ladder", "10×")
    store.answers.keep("you", "race", 2)
    assert store.answers.of("me") == {"race": [1, "CPU"], "ladder": "10×"}


def test_an_answer_of_another_version_takes_no_other_answer_away(store):
    for visitor in ("me", "you"):
        store.answers.keep(visitor, "race", "CPU")
        store.answers.keep(visitor, "ladder", "10×")
    store.writer.flush()
    stale = update(Answer).where(Answer.question == "race", Answer.visitor == "me")
    store.writer.now(lambda session: session.execute(stale.values(value='"old"')))
    assert store.answers.of("me") == {"ladder": "10×"}
    assert store.answers.of("you") == {"race": "CPU", "ladder": "10×"}
    store.answers.keep("me", "race", "GPU")  # it's made again
    assert store.answers.of("me")["race"] == "GPU"


def test_one_answer_and_all_of_a_visitors_answers_have_a_limit(store):
    with pytest.raises(ExplainedError):
        store.answers.keep("me", "code", "x" * LONGEST_ANSWER)
    many = 2 * MOST_OF_VISITOR // LONGEST_ANSWER
    kept = 0
    for number in range(many):
        with suppress(ExplainedError):
            store.answers.keep("me", f"code {number}", "x" * (LONGEST_ANSWER - 100))
            kept += 1
    assert MOST_OF_VISITOR // LONGEST_ANSWER <= kept < many
    store.answers.keep("me", "code 0", "y" * (LONGEST_ANSWER - 100))  # in its place
    store.answers.keep("me", "race", "CPU")
    store.answers.keep("you", "code", "x" * (LONGEST_ANSWER - 100))
    assert len(store.answers.of("me")) == kept + 1


def test_a_visitor_is_deleted_with_runs_measurements_and_answers(store):
    for visitor in ("me", "you"):
        finished(store, f"run of {visitor}", visitor)
        store.measurements.keep("a:b", 1, machine="here", visitor=visitor)
        store.answers.keep(visitor, "race", 2)
    store.visitors.delete("me")
    assert store.visitors.get("me") is None
    assert [run.id for run in store.runs.find()] == ["run of you"]
    assert store.runs.checkpoint("run of me") is None
    assert store.measurements.of("me") == []
    assert len(store.measurements.of("you")) == 1
    assert store.answers.of("me") == {}
    assert store.answers.of("you") == {"race": 2}


def test_what_was_deleted_is_not_in_the_file(file_url, open_store):
    secret, store = "a name that I gave", open_store(file_url)
    finished(store, "a", "me")
    store.runs.rename("a", "me", secret)
    folder = store.database.path.parent

    def is_in_the_file() -> bool:
        files = (file.read_bytes() for file in folder.iterdir())
        return any(secret.encode() in data for data in files)

    assert is_in_the_file()
    store.visitors.delete("me")
    assert not is_in_the_file()
