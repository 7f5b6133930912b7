import pytest
from playwright.sync_api import BrowserContext, Page, expect

from core.ui.course import HOME, PAGES
from tests.app.e2e.walk import (
    LONG,
    PHONE,
    SHORT,
    SLOW,
    key,
    progress,
    ready,
    result,
    start,
    stopped,
)

pytestmark = pytest.mark.browser

CUT = """() => [...document.querySelectorAll(
  ".stSelectbox :is(input, [data-baseweb=select] div), :is(button, label, .stMain a) p"
)].filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 1)
  .map((e) => e.innerText || e.value)"""

# So that no page is shorter than the last one, whose scroll position the browser keeps.
LONG_PAGES = ".stMainBlockContainer { min-height: 9000px }"
SHIFT = """
  window.shift = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((entry) => {
    if (!entry.hadRecentInput) window.shift += entry.value;
  })).observe({ type: "layout-shift", buffered: true });
"""
STILL = 0.05  # the browser's score below which a page stands still


def cut(page: Page) -> list[str]:
    """The names of controls that have too little room."""
    return page.evaluate(CUT)


def test_on_a_phone_progress_stays_in_sight_and_the_menu_closes(visitor):
    page = start(visitor(LONG, **PHONE, user_agent="Mozilla/5.0 (Android) Mobile"))
    expect(progress(page)).to_be_in_viewport()
    page.get_by_text("Read more").scroll_into_view_if_needed()
    expect(progress(page)).to_be_in_viewport()
    key(page, "cancel_run").click()
    # The end is told once, and then nothing covers what stands further down.
    expect(page.get_by_test_id("stToast")).to_be_in_viewport()
    page.get_by_text("Read more").scroll_into_view_if_needed()
    expect(stopped(page)).not_to_be_in_viewport()
    menu = page.get_by_test_id("stSidebar")
    page.get_by_test_id("stExpandSidebarButton").tap()
    page.add_style_tag(content=LONG_PAGES)
    menu.get_by_text("Model", exact=True).tap()
    expect(menu).not_to_be_in_viewport()
    expect(page.locator("h1", has_text="Model")).to_be_in_viewport()
    ready(page).get_by_role("tab", name="One batch").click()
    step = key(ready(page), "step_on")
    step.click()
    page.get_by_text("Seed 0, batches of 64").scroll_into_view_if_needed()
    expect(step).to_be_in_viewport()
    step.click()
    expect(page.get_by_text("Batch 1", exact=True)).to_be_in_viewport()


def test_a_page_that_has_turned_white_is_loaded_again(visitor):
    page = ready(visitor("Device"))
    page.evaluate("document.getElementById('root').replaceChildren()")
    expect(page.locator("h1")).to_be_visible(timeout=SLOW)


@pytest.mark.parametrize("width", [390, 660, 800, 1000, 1280])
def test_no_control_is_cut(visitor, server, width):
    size = {"width": width, "height": 900}
    page = ready(visitor("Train?device=sim", viewport=size))
    page.get_by_text("More settings", exact=True).click()
    expect(page.get_by_text("Weight decay")).to_be_visible()
    assert cut(page) == []
    box = key(page, "start_training").bounding_box()
    assert box is not None
    assert box["height"] < 50  # one line
    for address in ("", "Mistakes"):
        page.goto(f"{server.url}/{address}")
        expect(page.locator("h1")).to_be_visible()
        assert cut(ready(page)) == []


def shift(context: BrowserContext, address: str) -> float:
    """How much the parts of a page push each other about while it loads."""
    page = context.new_page()
    page.goto(address)
    expect(page.locator("h1")).to_be_visible(timeout=SLOW)
    expect(page.locator("html.arriving")).to_have_count(0, timeout=SLOW)
    page.wait_for_timeout(300)
    score: float = ready(page).evaluate("window.shift")
    page.close()
    return score


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_no_page_moves_while_it_loads(visitor, contexts, browser, server, size):
    """By a stranger without anything of the app, and again by somebody with a run."""
    width, height = size
    viewport = {"viewport": {"width": width, "height": height}}
    trained = start(visitor(SHORT, **viewport))
    expect(result(trained)).to_be_visible(timeout=SLOW)
    trained.context.add_init_script(SHIFT)
    scores = {}
    for page in PAGES:
        address = f"{server.url}/{'' if page is HOME else page.title}"
        contexts.append(browser.new_context(**viewport))
        contexts[-1].add_init_script(SHIFT)
        scores[page.title, "stranger"] = shift(contexts[-1], address)
        scores[page.title, "with a run"] = shift(trained.context, address)
    assert {name: score for name, score in scores.items() if score >= STILL} == {}
