"""A person with a real browser, who sees what the others only would."""

import asyncio
import re
import time

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    expect,
)

from tools.load.person import JOIN, SERVED, START, TINY, run_in
from tools.load.record import Record, Turn

PAGES = ("Train", "Class")  # that they open


class Witness:
    """Starts, watches and leaves, with a context of their own in that browser."""

    def __init__(
        self,
        number: int,
        url: str,
        patience: float,
        browser: Browser,
        door: str = "",
    ) -> None:
        self.number, self._url, self._patience = number, url, patience
        self.habit = "watches in a browser"
        self._browser, self._door = browser, door
        self._context: BrowserContext | None = None

    async def visit(self, record: Record, _: asyncio.Event) -> None:
        """Train once; what goes wrong, in the console too, is in the record."""

        def tell(what: str) -> None:
            record.errors.append(f"{self.number} (witness): {what}")

        def listen(message: ConsoleMessage) -> None:
            # The frontend looks for the server below the page's own address first.
            where = message.location["url"]
            looked_for = any(f"/{page}/_stcore/" in where for page in PAGES)
            if message.type == "error" and not looked_for:
                tell(f"console: {message.text}")

        if self._context is None:
            self._context = await self._browser.new_context()
        page = await self._context.new_page()
        page.on("pageerror", lambda error: tell(f"page: {error}"))
        page.on("console", listen)
        try:
            if self._door:
                await self._join(page)
            await self._train(page, record)
        except (AssertionError, Error) as error:
            tell(str(error).partition("\n")[0])
        finally:
            await page.close()

    async def _join(self, page: Page) -> None:
        """Once; whoever comes again is in."""
        await page.goto(f"{self._url}/{self._door}")
        join = page.locator(f".st-key-{JOIN} button")
        known = page.get_by_text("You are ")
        await expect(join.or_(known).first).to_be_visible(timeout=90_000)
        if await join.count():
            await join.click()
        await expect(known.first).to_be_visible(timeout=30_000)

    async def _train(self, page: Page, record: Record) -> None:
        start = page.locator(f".st-key-{START} button")
        began = time.monotonic()
        await page.goto(f"{self._url}/{TINY}")
        await expect(start).to_be_enabled(timeout=90_000)
        record.browser_page.append(time.monotonic() - began)
        before = run_in(page.url)
        pressed = time.monotonic()
        await start.click()
        await page.wait_for_url(lambda url: run_in(url) not in ("", before))
        taken = time.monotonic()
        record.browser_click.append(taken - pressed)
        record.turns.append(turn := Turn(self.number, pressed, taken))
        told = page.get_by_text(SERVED)
        await expect(told).to_be_visible(timeout=self._patience * 1000)
        turn.served = time.monotonic()
        for kind in ("stException", "stAlertContentError"):
            await expect(page.get_by_test_id(kind)).to_have_count(0)
        metric = page.get_by_test_id("stMetric").filter(has_text="Samples/s")
        value = metric.get_by_test_id("stMetricValue")
        await expect(value).to_have_text(re.compile(r"\d"))  # drawn after the sentence
        turn.samples_per_second = float((await value.inner_text()).replace(",", ""))
