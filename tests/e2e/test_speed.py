import pytest
from playwright.sync_api import expect

from tests.e2e.walk import SLOW, enter, key, ready

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_the_ladder_is_climbed_guessed_cancelled_and_resumed(visitor):
    page = ready(visitor("Speed"))
    page.get_by_role("combobox", name="Task").click()
    page.get_by_role("option", name="Sprites").click()
    page.get_by_role("button", name="More", exact=True).first.click()
    enter(page, "Epochs per rung", 1)
    page.keyboard.press("Escape")
    key(ready(page), "run_ladder").click()
    bars = page.locator(".drawing svg")
    expect(bars).to_have_count(1, timeout=SLOW)  # the textbook needs no guess
    key(page, "rung_two_workers").click()
    expect(page.get_by_text("num_workers=2").first).to_be_visible()
    expect(page.get_by_text("This rung has been measured")).to_be_visible(timeout=SLOW)
    page.locator(".st-key-guess_two_workers").get_by_text("Over 2×").click()
    expect(page.get_by_text("times as fast as").first).to_be_visible()
    expect(bars).to_have_count(2)
    key(page, "cancel_ladder").click()
    expect(page.get_by_text("you can resume")).to_be_visible(timeout=SLOW)
    key(page, "run_ladder").click()
    expect(key(page, "cancel_ladder")).to_be_visible()
    expect(bars).to_have_count(2)
    key(page, "cancel_ladder").click()
    expect(page.get_by_text("you can resume")).to_be_visible(timeout=SLOW)
