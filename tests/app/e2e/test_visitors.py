import re

import pytest
from playwright.sync_api import Page, expect

from core.runs.delete_my_data_page import DELETED
from core.runs.my_data_page import BACK, WRONG
from core.ui import runs
from tests.app import event_loop
from tests.app.e2e.walk import SHORT, SLOW, key, ready, result, start
from tools.load.record import Record
from tools.load.tab import Browser, Tab

YOUR_DATA = "Runs"  # the page where it is
CODE = re.compile("[a-z]{5}(-[a-z]{5}){3}")


def code(page: Page, url: str) -> str:
    """The visitor's code, as this tab shows it after a load."""
    page.goto(f"{url}/{YOUR_DATA}")
    ready(page).get_by_role("button", name="Continue in another browser").click()
    shown = page.get_by_test_id("stCode")
    expect(shown).to_be_visible(timeout=SLOW)
    return shown.inner_text().strip()


def enter_code(page: Page, text: str) -> None:
    """Into the form beside the visitor's own."""
    page.get_by_label("A code from another browser").fill(text)
    page.get_by_role("button", name="Use this code").click()


def test_the_first_websocket_brings_the_cookie_of_its_page(server):

    async def shown(tab: Tab) -> str:
        await tab.open(YOUR_DATA)
        found = [text for text in tab.texts() if CODE.fullmatch(text)]
        await tab.close()
        return found[0]

    async def codes() -> list[str]:
        one, other = (Browser(server.url) for _ in range(2))
        tabs = [Tab(browser, Record()) for browser in (one, one, other)]
        return [await shown(tab) for tab in (*tabs, tabs[0])]

    first, second, another, again = event_loop.run(codes())
    assert first == second == again != another


@pytest.mark.browser
@pytest.mark.slow
def test_who_is_one_visitor_and_who_another(visitor, server):
    """Two tabs, a reload and a restarted browser are one, from the first run on.

    Another browser is another visitor, until the code is entered there. What is deleted
    is gone from both, and from the run's link.
    """
    page = start(visitor(SHORT))  # the first that this browser sees of the app
    expect(result(page)).to_be_visible(timeout=SLOW)
    link, tab = page.url, page.context.new_page()
    mine = code(tab, server.url)
    assert code(tab, server.url) == mine
    kept = page.context.storage_state()
    kept["cookies"] = [each for each in kept["cookies"] if each["expires"] > 0]
    assert code(visitor(storage_state=kept), server.url) == mine
    forged = [{**each, "value": f"f{each['value']}"} for each in kept["cookies"]]
    assert code(visitor(storage_state={"cookies": forged}), server.url) != mine

    other = visitor()
    theirs = code(other, server.url)
    assert theirs != mine
    enter_code(other, theirs[::-1])
    expect(other.get_by_text(WRONG.text)).to_be_visible(timeout=SLOW)
    assert code(other, server.url) == theirs
    enter_code(other, mine)
    expect(other.get_by_text(BACK.text)).to_be_visible(timeout=SLOW)
    assert code(other, server.url) == mine
    other.goto(f"{server.url}/Train")
    expect(result(other)).to_be_visible(timeout=SLOW)

    assert code(tab, server.url) == mine
    tab.keyboard.press("Escape")
    key(tab, "delete_my_data").click()
    tab.get_by_role("button", name="Delete everything").click()
    expect(tab.get_by_text(DELETED.text)).to_be_visible(timeout=SLOW)
    assert code(other, server.url) != mine
    other.goto(link)
    unknown = other.get_by_text(runs.words("runs.unknown"))
    expect(unknown).to_be_visible(timeout=SLOW)
