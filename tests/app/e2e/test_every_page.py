import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, TimeoutError, expect

from core.home.first_run_page import USUAL
from core.ui import image_wall
from core.ui.course import LESSONS, RUNS
from tests.app.e2e.walk import (
    LONG,
    PHONE,
    SLOW,
    barriers,
    filled,
    key,
    ready,
    result,
    sideways,
)

pytestmark = pytest.mark.browser


@dataclass(frozen=True)
class Sight:
    """What a page shows by itself, and what its main button brings: CSS selectors."""

    real: str  # a picture, a chart, something measured
    button: str = ""  # the key of the main button; "": another test presses it
    brings: tuple[str, ...] = ()  # what is in sight then, without scrolling
    skip: str = ""  # the key of the button that shows a result without a guess
    cancel: str = ""  # the key of the button that ends what goes on


CHART = "[data-testid=stVegaLiteChart]:visible"
OWN_CHART = f"{CHART}:not(details *)"  # not of a recording
IMAGE = "[data-testid=stImage] img:visible"
DRAWING = "[role=img] > svg"
TEXT = "rgb(231, 233, 236)"  # in the dark
TILE = ".images button"  # a picture on the wall
ANSWER = image_wall.words.table("wall.answer")
RIGHT, WRONG, DRAWN = (filled(ANSWER[each]) for each in ("right", "wrong", "drawn"))
# By address. A page joins with a line; what it brings should come soon.
SIGHTS = {
    "": Sight(TILE),
    "Device": Sight(DRAWING),
    "Evaluate": Sight(TILE),  # its button is for a finished run
    "Checkpoints": Sight(CHART),
    "Runs": Sight("text=You haven't trained here yet"),  # its button leads to Train
    LONG: Sight(
        TILE,
        "start_training",
        (CHART, "text=Test accuracy", TILE),
        cancel="cancel_run",
    ),
    "Model": Sight("[data-testid=stCode] span"),  # the scripts before and after
    "Model?tab=One batch, step by step": Sight(DRAWING, "step_on", (DRAWING,)),
    "Compare": Sight(
        CHART,
        "compare",
        # Its own race, and not the recorded one below it
        ("[data-testid=stMain] [data-testid=stProgress]", OWN_CHART),
        "show_race_guess",
        "cancel_compare",
    ),
    "Speed": Sight(  # the code that is climbed with, and how far the climb is
        "[data-testid=stCode] span",
        "run_ladder",
        ("[data-testid=stMain] [data-testid=stProgress]",),
        cancel="cancel_ladder",
    ),
    "Scale": Sight(  # the first batch as the ranks share it, and then their losses
        IMAGE, "run_ranks", (CHART,), cancel="cancel_run_ranks"
    ),
    "Mistakes": Sight(
        "[data-testid=stAlertContentError]",
        "run_mistake_model_not_moved",
        ("[data-testid=stAlertContentSuccess]",),
    ),
}


def expect_in_sight(wanted: Locator) -> None:
    """The first comes to be in the window, which nobody has scrolled.

    A loss chart cuts off a line's highest steps, some hundredths of its height.
    """
    expect(wanted.first).to_be_visible(timeout=SLOW)
    expect(wanted.first).to_be_in_viewport(ratio=0.95, timeout=SLOW)


def fits(page: Page) -> bool:
    """Whether the page is whole, and no wider than the window once it has settled."""
    expect(page.locator("h1")).to_be_visible(timeout=SLOW)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    for _ in range(20):
        if sideways(page) <= 2:
            return True
        page.wait_for_timeout(250)  # charts follow a new width of the window
    return False


@pytest.mark.parametrize("address", SIGHTS)
def test_a_page_opens_cold_by_its_address_and_shows_something_real(visitor, address):
    """At 1280 × 900, and then what its main button brings.

    What is selected is legible in the dark, and stands out; there and on a phone,
    nothing sticks out. At first and at last, axe-core finds nothing that keeps people
    from using it.
    """
    sight = SIGHTS[address]
    page = ready(visitor(address))
    assert fits(page)
    expect_in_sight(page.locator(sight.real))
    assert barriers(page) == []
    if sight.button:
        key(ready(page), sight.button).click()
        if sight.skip:  # the guess, which is offered once there is something to show
            key(page, sight.skip).click()
        for each in sight.brings:
            expect_in_sight(page.locator(each))
    if sight.cancel:
        with suppress(TimeoutError):  # it has ended by itself
            key(page, sight.cancel).click(timeout=5000)
    page.emulate_media(color_scheme="dark")
    for chosen in page.locator("[aria-checked=true], [aria-selected=true]").all():
        expect(chosen).to_have_css("color", TEXT)
    for chosen in page.locator(".stButtonGroup [data-selected=true]").all():
        expect(chosen).to_have_css("border-top-color", TEXT)
    page.set_viewport_size(PHONE["viewport"])
    assert fits(ready(page))
    assert barriers(page) == []


def test_every_page_is_looked_at():
    there = {Path(each.file).stem.partition("_")[2] for each in (*LESSONS, RUNS)}
    assert {address.partition("?")[0] for address in SIGHTS} == there | {""}


@pytest.mark.alone
@pytest.mark.slow
def test_home_trains_a_model_and_shows_what_it_says(visitor):
    page = ready(visitor())
    page.get_by_text(USUAL, exact=True).click()
    key(page, "train_now").press("Enter")
    expect(key(page, "cancel_run")).to_be_focused()  # though the guess went away, too
    line = '[data-testid=stVegaLiteChart] [aria-roledescription="line mark"]'
    expect(page.locator(line).first).to_be_visible(timeout=SLOW)
    # Once both runs of the race have ended.
    expect(key(page, "next_lesson")).to_be_visible(timeout=5 * SLOW)
    expect(result(page)).to_be_visible()
    said, tiles = page.locator(".says"), page.locator(".images button")
    expect(said).to_have_text(re.compile(WRONG))  # the first one asked about
    expect(page.locator(".images .wrong").first).to_be_visible()
    tiles.nth(3).click()
    expect(tiles.nth(3)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("ArrowDown")
    expect(tiles.nth(13)).to_have_attribute("aria-pressed", "true")
    expect(said).to_have_text(re.compile(f"{RIGHT}|{WRONG}"))
    for shown in (result(page), page.locator(line).first, said):
        expect_in_sight(shown)
    page.get_by_role("button", name="Draw your own").click()
    box = page.locator(".pad").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 80, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 80, box["y"] + 130, steps=9)
    page.mouse.move(box["x"] + 130, box["y"] + 130, steps=9)
    page.mouse.up()
    expect(said).to_have_text(re.compile(DRAWN), timeout=SLOW)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    card = ready(page).locator(".st-key-lesson_2")
    card.click(position={"x": 9, "y": 9})  # a corner: the whole card is a link
    expect(page.locator("h1")).to_have_text("Model")
