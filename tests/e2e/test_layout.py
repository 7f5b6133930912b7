"""What is in sight on a phone, and whole on windows of all widths."""

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.walk import LONG, VIEWS, key, progress, ready, start

pytestmark = pytest.mark.browser

CUT = """() => [...document.querySelectorAll(
  ".stSelectbox input, .stSelectbox [data-baseweb=select] div, button p, label p"
)].filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 1)
  .map((e) => e.innerText || e.value)"""


def cut(page: Page) -> list[str]:
    """The names of controls that have too little room."""
    return page.evaluate(CUT)


def test_on_a_phone_progress_stays_in_sight(visitor):
    page = start(visitor(LONG, **VIEWS["phone"]))
    expect(progress(page)).to_be_in_viewport()
    page.get_by_text("Read more").scroll_into_view_if_needed()
    expect(progress(page)).to_be_in_viewport()
    key(page, "cancel_run").click()
    expect(page.get_by_text("Cancelled after")).not_to_be_in_viewport()


@pytest.mark.parametrize("width", [390, 660, 800, 1000, 1280])
def test_no_control_of_train_is_cut(visitor, width):
    size = {"width": width, "height": 900}
    page = ready(visitor("Train?device=sim", viewport=size))
    page.get_by_text("More settings", exact=True).click()
    expect(page.get_by_text("Weight decay")).to_be_visible()
    assert cut(page) == []
    box = key(page, "start_training").bounding_box()
    assert box is not None
    assert box["height"] < 50  # one line
