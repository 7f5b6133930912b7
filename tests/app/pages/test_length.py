from collections import Counter
from collections.abc import Iterator
from math import ceil

import pytest

from core.ui.course import LESSONS, Lesson
from tests.app.pages.walk import open_page, open_tab

MOST_WORDS = dict.fromkeys((lesson.title for lesson in LESSONS), 900) | {"Device": 700}
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
        for text in [*texts, *getattr(node, "options", [])]:
            if isinstance(text, str):
                yield from ((tab, word) for word in text.split())


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.title)
def test_a_page_is_read_in_the_minutes_that_it_promises(lesson: Lesson) -> None:
    """All tabs, without what is folded or code; what remains is for doing."""
    at = open_page(lesson.file)
    most: Counter[str] = Counter()
    for tab in ["", *(tab.label for tab in at.tabs)]:
        if tab:
            open_tab(at, tab)
        most |= Counter(tab for tab, _ in words(at.main))
    total = sum(most.values())
    print(f"{lesson.title}: {total} words, {dict(most)}")
    assert total <= MOST_WORDS[lesson.title]
    assert lesson.minutes > ceil(total / WORDS_A_MINUTE)
