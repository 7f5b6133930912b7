"""How tests read and press a page in a browser."""

import re
from importlib import resources
from pathlib import Path

from playwright.sync_api import Page, expect

from core.runs.my_data_page import WRONG

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
SHORT = "Train?task=sprites&epochs=2&batch_size=256"
# Minutes; no test waits for its end.
LONG = "Train?task=sprites&epochs=200&batch_size=16"
SLOW = 90_000  # milliseconds; workers load torch when the server starts


def key(page: Page, name: str):
    """The button with that key."""
    return page.locator(f".st-key-{name} button")


def ready(page: Page) -> Page:
    """The page, once it knows the machine and is shown; before, nothing takes focus."""
    expect(page.get_by_text("Loading torch")).to_have_count(0, timeout=SLOW)
    expect(page.get_by_test_id("stApp")).to_have_attribute(
        "data-test-script-state", "notRunning", timeout=SLOW
    )
    expect(page.locator("html.arriving")).to_have_count(0, timeout=SLOW)
    return page


def enter(page: Page, label: str, number: int) -> None:
    """Write a number into the box with that label."""
    box = page.get_by_role("spinbutton", name=label)
    box.fill(str(number))
    box.press("Enter")


def start(page: Page) -> Page:
    """The page, with a run started on it."""
    key(ready(page), "start_training").click()
    return page


def cancel(page: Page) -> None:
    """Cancel the page's run, which would hold up those of the next tests."""
    key(page, "cancel_run").click()
    expect(stopped(page)).to_be_attached()


def said(page: Page, pattern: str):
    """The line on how far the run is, or how it ended, if it has these figures."""
    return page.get_by_test_id("stProgress").get_by_text(re.compile(pattern))


def progress(page: Page):
    """The line with the epoch and the step of a run that goes on."""
    return said(page, r"\d+ of \d+ · .+\d")


def stopped(page: Page):
    """The line with the step after which a run was canceled."""
    return said(page, r"^[^·]*\d of [\d,]+\.")


def result(page: Page):
    """The sentence that a finished run ends with, with its accuracy and its images."""
    return said(page, r"\d\.\d\d%.+\([\d,]+ of [\d,]+\)")


def filled(text: str) -> str:
    """A regular expression for one of the product's texts, whatever its fields say."""
    parts = re.split(r"\{\w+\}", text)
    return ".+".join(re.sub(r"[.*+?^$()|\[\]\\]", r"\\\g<0>", part) for part in parts)


def model_comes_back(page: Page, folder: Path) -> None:
    """On Checkpoints: the run's model is downloaded, and opens when it is uploaded."""
    with page.expect_download() as file:
        key(ready(page), "download_pt").click()
    file.value.save_as(folder / "model.pt")
    upload(page, folder / "model.pt")


def upload(page: Page, file: Path) -> None:
    page.get_by_role("tab", name="Load").click()
    page.locator(".st-key-upload_checkpoint input[type=file]").set_input_files(file)
    expect(page.get_by_test_id("stAlertContentSuccess")).to_be_visible(timeout=SLOW)


def enter_wrong_code(page: Page) -> None:
    """On Runs, into the form of the visitor's code."""
    ready(page).get_by_role("button", name="Continue in another browser").click()
    page.get_by_label("A code from another browser").fill("no code")
    page.get_by_role("button", name="Use this code").click()
    expect(page.get_by_text(WRONG.text)).to_be_visible(timeout=SLOW)


def sideways(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    return page.get_by_test_id("stMain").evaluate(
        "main => main.scrollWidth - main.clientWidth"
    )


def barriers(page: Page) -> list[str]:
    """What axe-core finds that keeps people from using the page: rules and elements."""
    if not page.evaluate("'axe' in window"):
        script = resources.files("axe_playwright_python") / "axe.min.js"
        page.evaluate(script.read_text("utf-8"))
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
    return [
        f"{rule['id']}: {node['html'][:200]}"
        for rule in found
        if rule["impact"] in ("serious", "critical") or rule["id"] == "heading-order"
        for node in rule["nodes"]
    ]
