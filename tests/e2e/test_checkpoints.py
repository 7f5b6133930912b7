import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.walk import SHORT, SLOW, key, ready, result, start

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_run_is_saved_loaded_resumed_and_taken_home(visitor, tmp_path):
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

    def uploaded(path: Path) -> None:
        chooser = page.locator(".st-key-upload_checkpoint input[type=file]")
        chooser.set_input_files(path)

    files = [download("download_pt"), download("download_safetensors")]
    page.get_by_role("tab", name="Load").click()
    kinds = ("a zip file from torch.save", "safetensors")
    for file, kind in zip(files, kinds, strict=True):
        uploaded(file)
        expect(page.get_by_text(f"6 tensors, saved as {kind}.")).to_be_visible(
            timeout=SLOW
        )
    key(page, "evaluate_upload").click()
    expect(page.get_by_text("On all the test images.")).to_be_visible(timeout=SLOW)
    expect(
        page.get_by_test_id("stMetricValue").get_by_text(f"{accuracy}%")
    ).to_have_count(1)
    broken = tmp_path / "broken.pt"
    broken.write_bytes(files[0].read_bytes()[:9999])
    uploaded(broken)
    expect(page.get_by_text("truncated or damaged")).to_be_visible(timeout=SLOW)

    page.get_by_role("tab", name="Round trip").click()
    key(page, "round_trip").click()
    expect(page.get_by_text("Logits that differ")).to_be_visible(timeout=SLOW)
    page.get_by_text("Going further").last.click()
    key(page, "resume").click()
    expect(page.get_by_text("With the weights alone")).to_be_visible(timeout=SLOW)

    page.get_by_role("tab", name="What can go wrong").click()
    key(page, "run_mistake_pickle_refused").click()
    expect(page.get_by_text("The whole traceback")).to_be_visible(timeout=SLOW)

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
