import os
import re

import pytest
from playwright.sync_api import expect

from tests.app.e2e.walk import SLOW, ready

pytestmark = pytest.mark.browser


def test_memory_is_asked_for_again_and_again(visitor):
    """The timer is the browser's, so nothing but a browser shows that it fires."""
    page = ready(visitor("Device?tab=This machine"))
    used = page.get_by_text(re.compile(r"^Memory used\s+\d")).first
    expect(used).to_be_visible(timeout=SLOW)
    before = used.inner_text()
    ballast = bytearray(os.urandom(2**20)) * 512  # half a gigabyte
    expect(used).not_to_have_text(before, timeout=SLOW)
    del ballast
