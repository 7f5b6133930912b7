from collections import Counter
from collections.abc import Iterator
from math import ceil

import pytest
from streamlit.testing.v1 import AppTest

from core.ui import frame
from core.ui.course import LESSONS, Lesson
from tests.app.pages.walk import open_page, open_tab

MOST_WORDS = dict.fromkeys((lesson.title for lesson in LESSONS), 900) | {"Device": 700}
FIRST_WORDS = 350
WORDS_A_MINUTE = 200
FOLDED = ("expander", "expandable", "popover", "status", "code")


def words(node: object, tab: str = "") -> Iterator[tuple[str, str]]:
    """The tab and the word, of all in sight: no code, nothing from Practice on."""
    if getattr(node, "type", "") in FOLDED:
        return
    for child in getattr(node, "children", {}).values():
        if child.type == "header" and child.value == "Practice":
            return
        yield from words(child, child.label if child.type == "tab" else tab)
    if not hasattr(node, "children"):
        texts = [getattr(node, name, "") for name in ("label", "value")]
        if getattr(node, "type", "") != "selectbox":  # its list is closed
            texts += getattr(node, "options", [])
        for text in texts:
            if isinstance(text, str):
                yield from ((tab, word) for word in text.split())


def opened(lesson: Lesson, run_id: str) -> AppTest:
    """The lesson's page; Evaluate's with a run whose hardest class was guessed."""
    if lesson.title != "Evaluate":
        return open_page(lesson.file)
    at = open_page(lesson.file, run=run_id)
    return at.button(key="show_hardest_sprites").click().run()


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.title)
def test_a_page_is_read_in_the_minutes_that_it_promises(lesson: Lesson, run_id: str):
    """All places of the course, without what is folded or code; the rest is for doing.

    What is in sight when the page opens is short.
    """
    at = opened(lesson, run_id)
    first = sum(1 for _ in words(at.main))
    most: Counter[str] = Counter()
    for tab in ["", *(tab.label for tab in at.tabs if tab.label != frame.MORE)]:
        if tab:
            open_tab(at, tab, "code_The loop" if lesson.title == "Train" else "tab")
        most |= Counter(tab for tab, _ in words(at.main))
    total = sum(most.values())
    print(f"{lesson.title}: {first} words, {total} in all, {dict(most)}")
    assert first <= FIRST_WORDS
    assert total <= MOST_WORDS[lesson.title]
    assert lesson.minutes > ceil(total / WORDS_A_MINUTE)
