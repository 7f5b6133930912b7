import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.walk import SHORT, SLOW, key, ready, result, start

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_run_is_taken_home_as_a_script(visitor, tmp_path):
    page = start(visitor(SHORT))
    expect(result(page)).to_be_visible(timeout=SLOW)
    accuracy = re.search(r"([\d.]+)%", result(page).inner_text()).group(1)
    page.goto(page.url.replace("/Train", "/Checkpoints"))
    ready(page)

    def download(name: str) -> Path:
        with page.expect_download() as caught:
            key(page, name).click()
        path = tmp_path / caught.value.suggested_filename
        caught.value.save_as(path)
        return path

    page.get_by_role("tab", name="Take it home").click()
    assert '"nbformat": 4' in download("download_notebook").read_text()
    assert download("download_drawing").name == "sprites.py"
    done = subprocess.run(
        [sys.executable, "-s", download("download_script")],
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"test accuracy {accuracy}%" in done.stdout.splitlines()[-1]
