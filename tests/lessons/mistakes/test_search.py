"""An error message finds the mistake that it belongs to, or none."""

import json
import re
from pathlib import Path

import pytest

from core.lessons.mistakes import runner
from core.lessons.mistakes.catalogue import MESSAGES, MISTAKES, Failure
from core.lessons.mistakes.search import (
    MOST_CHARACTERS,
    MOST_MATCHES,
    Index,
    message_in,
    split_traceback,
    words,
)
from core.ui.source import source

LOUD = [each.slug for each in MISTAKES if each.loud]
TWO_DEVICES = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least "
    "two devices, cuda:0 and cpu!"
)
# Messages that learners bring, from other machines, versions and programs, with the
# mistake of each; symptoms without an error, with all that may be behind them; texts
# that fit none; and what people quoted in public threads on GitHub, by the thread.
MESSAGES_FILE = Path(__file__).with_name("messages.json")
FOUND, SYMPTOMS, NOT_FOUND, THREADS = json.loads(MESSAGES_FILE.read_text()).values()


@pytest.fixture(scope="module")
def failures() -> dict[str, Failure]:
    """What the loud mistakes raise here."""
    return runner.failures()


@pytest.fixture(scope="module")
def index(failures) -> Index:
    sources = {each.slug: source(each.address("broken")) for each in MISTAKES}
    return Index(failures, sources)


def moved(traceback: str) -> str:
    """The traceback as another machine would print it: other folders and lines."""
    text = re.sub(r'File "(?!torch)', 'File "/home/ana/course/', traceback)
    text = text.replace('File "torch', 'File "/opt/venv/site-packages/torch')
    return re.sub(r"line (\d+)", lambda found: f"line {int(found[1]) + 77}", text)


def test_all_loud_mistakes_are_known(failures):
    # Only Linux limits the memory of a process on the CPU.
    assert {*failures, "out_of_memory"} == set(LOUD)


@pytest.mark.parametrize("slug", LOUD)
def test_a_whole_traceback_finds_its_mistake_first(index, failures, slug):
    for text in (failures[slug].traceback, moved(failures[slug].traceback)):
        best, *others = index.find(text)
        assert best.slug == slug
        assert all(best.score > 1.02 * other.score for other in others)


@pytest.mark.parametrize("slug", LOUD[8:])
def test_a_message_alone_finds_its_mistake(index, failures, slug):
    failure = failures[slug]
    assert index.find(f"{failure.kind}: {failure.message}")[0].slug == slug


@pytest.mark.parametrize("text", FOUND)
def test_what_learners_bring_is_found(index, text):
    assert index.find(text)[0].slug == FOUND[text]


@pytest.mark.parametrize("thread", THREADS)
def test_a_message_from_a_public_thread_is_known(index, thread):
    meant, text = THREADS[thread]
    if meant == "message":
        assert message_in(text)
    else:
        assert message_in(text) is None
        assert index.find(text)[0].slug == meant


def test_what_is_said_of_a_message_is_of_that_one():
    said = {each: message_in(text) for each, (_, text) in THREADS.items()}
    found = [each for each in said.values() if each]
    assert len(found) == len(set(found)) == len(MESSAGES)


@pytest.mark.parametrize("text", SYMPTOMS)
def test_a_symptom_finds_the_silent_mistakes_behind_it(index, text):
    assert {match.slug for match in index.find(text)} >= set(SYMPTOMS[text])


@pytest.mark.parametrize("text", NOT_FOUND)
def test_where_none_fits_none_is_found(index, text):
    assert index.find(text) == []
    assert message_in(text) is None


def test_every_title_finds_its_mistake(index):
    for each in MISTAKES:
        assert each.slug in [match.slug for match in index.find(each.title)]


@pytest.mark.parametrize("text", ["A" * 20_000, "Aa" * 10_000, 'File "' * 3_000])
def test_a_text_made_to_be_slow_is_not(index, text):
    assert index.find(text) == []
    # A pattern that backtracked over all of it would need half an hour for this one.
    assert words("Aa" * 500_000) == {"aa": 500_000}


def test_few_are_found_and_the_best_comes_first(index, failures):
    found = index.find(failures["data_not_moved"].message)
    scores = [match.score for match in found]
    assert 1 < len(found) <= MOST_MATCHES
    assert scores == sorted(scores, reverse=True)


def test_only_the_end_of_a_long_text_is_read(index):
    log = "epoch 1 of 5, step 7\n" * MOST_CHARACTERS
    assert index.find(log + TWO_DEVICES)[0].slug == "data_not_moved"
    assert index.find(f"{TWO_DEVICES}\n" + "lorem ipsum " * MOST_CHARACTERS) == []


def test_without_messages_words_still_find():
    index = Index({}, {each.slug: "" for each in MISTAKES})
    assert index.find("softmax")[0].slug == "softmax_before_loss"


def test_a_traceback_falls_into_code_and_error():
    text = (
        'ValueError: first\n\nTraceback:\n  File "a/_b/c.py", line 1, in hidden\n'
        '    secret()\n  File "a.py", line 2, in seen\n    shown()\n    ^^^^^^^\n'
        "RuntimeError: last\nand more"
    )
    code, error = split_traceback(text)
    assert error == "RuntimeError: last\nand more"
    assert "shown()" in code
    assert "seen" in code
    assert "secret" not in code
    assert "^" not in code
