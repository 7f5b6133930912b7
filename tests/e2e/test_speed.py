"""The Speed page, in a real browser."""

import pytest
from playwright.sync_api import expect

from tests.e2e.walk import SLOW, enter, key, ready

pytestmark = pytest.mark.browser


def test_the_ladder_is_climbed_guessed_cancelled_and_resumed(visitor):
    """A result hides until it is guessed; what was measured outlives a cancel."""
    page = ready(visitor("Speed"))
    page.get_by_role("combobox", name="Task").click()
    page.get_by_role("option", name="Sprites").click()
    enter(page, "Epochs on each rung", 1)
    key(ready(page), "run_ladder").click()
    table = page.locator("[data-testid=stDataFrame]").first
    expect(table).to_be_visible(timeout=SLOW)  # the textbook needs no guess
    key(page, "ladder_next").click()
    expect(page.get_by_text("num_workers=2").first).to_be_visible()
    expect(page.get_by_text("It is measured. Guess, and it shows.")).to_be_visible(
        timeout=SLOW
    )
    page.get_by_text("More than that").click()
    expect(page.get_by_text("times as fast as the textbook loop")).to_be_visible()
    key(page, "cancel_ladder").click()
    expect(page.get_by_text("can be resumed")).to_be_visible(timeout=SLOW)
    key(page, "run_ladder").click()
    expect(page.get_by_text("Resume the climb")).to_be_visible()
    expect(table).to_be_visible()
    key(page, "cancel_ladder").click()
    expect(page.get_by_text("can be resumed")).to_be_visible(timeout=SLOW)
