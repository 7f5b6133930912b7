import json
import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.walk import SLOW, key, ready

pytestmark = pytest.mark.browser


def test_the_device_page_lives_and_explains(visitor):
    """Memory is asked for again and again, a wrong answer is explained, a report comes.

    The timer is the browser's, so nothing but a browser shows that it fires.
    """
    page = ready(visitor("Device?tab=This machine"))
    used = page.get_by_text(re.compile(r"^Memory used\s+\d")).first
    expect(used).to_be_visible(timeout=SLOW)
    before = used.inner_text()
    ballast = bytearray(os.urandom(2**20)) * 512  # half a gigabyte
    expect(used).not_to_have_text(before, timeout=SLOW)
    del ballast

    page.get_by_text("torch was built without CUDA").last.click()
    expect(page.get_by_text("without CUDA never contacts the driver")).to_be_visible()
    page.get_by_text("The driver is missing").last.click()
    expect(page.get_by_text("so a driver must be installed")).to_be_visible()

    page.get_by_text("A report for a forum").click()
    with page.expect_download() as download:
        key(page, "download_report").click()
    report = json.loads(Path(download.value.path()).read_text())
    expect(page.get_by_text(report["verdict"]).first).to_be_visible()
