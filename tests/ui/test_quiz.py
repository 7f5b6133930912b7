"""core.ui.quiz: the questions at a lesson's end, as they are drawn."""

import pytest
from streamlit.testing.v1 import AppTest

from core.store.store import Store
from core.ui import answers, course, quiz
from core.ui.course import LESSONS
from tests.pages.walk import texts

FIRST, *LATER = LESSONS[0].questions


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    opened = Store(f"sqlite:///{tmp_path / 'app.sqlite'}")
    monkeypatch.setattr(answers, "store", lambda: opened)
    monkeypatch.setattr(answers, "visitor_of_cookie", lambda: "me")
    monkeypatch.setattr(quiz, "visitor", lambda: "me")
    yield opened
    opened.close()


def page() -> None:
    from core.ui import quiz
    from core.ui.course import LESSONS

    quiz.draw(LESSONS[0])


def wrong(question) -> str:
    return next(each for each in question.answers if each != question.right)


def said(at: AppTest) -> str:
    return texts([*at.markdown, *at.info, *at.success])


def test_one_question_is_asked_and_nothing_told_until_it_is_answered():
    """Its answers in the order of the visitor; no score, no explanation."""
    at = AppTest.from_function(page, default_timeout=60).run()
    (asked,) = at.radio
    assert asked.label == FIRST.text
    assert asked.options == FIRST.shuffled("me")
    assert asked.value is None
    assert not [each for each in FIRST.answers.values() if each in said(at)]
    assert "first try" not in said(at)


def test_the_first_try_counts_and_every_try_explains_itself(store):
    """A wrong one, then the right one; both are kept, and found after a reload."""
    at = AppTest.from_function(page, default_timeout=60).run()
    chosen = [wrong(FIRST), FIRST.right]
    for each in chosen:
        at.radio[0].set_value(each).run()
        assert FIRST.answers[each] in said(at)
    assert "**0 of 1** right on the first try, 3 to go" in said(at)
    assert store.answers.of("me") == {FIRST.key: chosen}
    at = AppTest.from_function(page, default_timeout=60).run()
    assert at.radio[0].label == LATER[0].text  # that one is done
    assert "**0 of 1** right on the first try" in said(at)


def test_the_way_leads_from_question_to_question():
    """The next one by a button, any by its number, and the score in the end."""
    at = AppTest.from_function(page, default_timeout=60).run()
    for question in (FIRST, *LATER):
        assert at.radio[0].label == question.text
        at.radio[0].set_value(question.right).run()
        if at.button:
            at.button[0].click().run()
    assert not at.button
    assert "**4 of 4** right on the first try. This lesson is done" in said(at)
    at.segmented_control[0].set_value(0).run()
    assert at.radio[0].label == FIRST.text
    assert at.radio[0].value == FIRST.right


def test_a_broken_bank_is_a_sentence(monkeypatch):
    """Where the questions would be."""
    monkeypatch.setattr(course, "BROKEN", "question 1 of Device has no 'key'.")
    at = AppTest.from_function(page, default_timeout=60).run()
    assert "question 1 of Device has no 'key'" in texts(at.error)
