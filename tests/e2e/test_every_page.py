"""Every page, opened in a real browser."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from core.ui.course import LESSONS
from tests.e2e.walk import SLOW, VIEWS, ready, sideways

pytestmark = pytest.mark.browser

ADDRESSES = ["", *(Path(lesson.file).stem.partition("_")[2] for lesson in LESSONS)]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("address", ADDRESSES)
def test_every_page_opens_cold_by_its_own_address(visitor, address, view):
    """A cold deep link shows its page, without an error or a sideways scroll."""
    page = ready(visitor(address, **VIEWS[view]))
    expect(page.locator("h1")).to_be_visible(timeout=SLOW)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert sideways(page) <= 2


def test_home_leads_to_training(visitor):
    """The home page's one button leads to the Train page."""
    page = ready(visitor())
    page.get_by_role("button", name="Start training").click()
    expect(page.locator("h1")).to_have_text("Train")
