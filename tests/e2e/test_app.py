"""A learner's ways through the app, in a real browser."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Page, expect

from core.ui.course import LESSONS
from tests.e2e.conftest import start_server

pytestmark = pytest.mark.browser

ADDRESSES = ["", *(Path(lesson.file).stem.partition("_")[2] for lesson in LESSONS)]
VIEWS = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}
SHORT = "Train?task=sprites&epochs=2&batch_size=256"
LONG = "Train?task=sprites&epochs=50"
# Takes the time of the click, and of the first frame with a line on a chart.
STOPWATCH = """() => {
    const line = '[data-testid=stVegaLiteChart] [aria-roledescription="line mark"]';
    const look = () => {
        if (document.querySelector(line)) window.firstPoint = performance.now();
        else requestAnimationFrame(look);
    };
    const click = () => { window.clicked = performance.now(); look(); };
    document.addEventListener("click", click, {capture: true, once: true});
}"""
SLOW = 90_000  # milliseconds; workers load torch when the first page opens


def key(page: Page, name: str):
    """The button with that key."""
    return page.locator(f".st-key-{name} button")


def ready(page: Page) -> Page:
    """The page, once it knows the machine."""
    expect(page.get_by_text("Workers are starting")).to_have_count(0, timeout=SLOW)
    expect(page.get_by_test_id("stApp")).to_have_attribute(
        "data-test-script-state", "notRunning", timeout=SLOW
    )
    return page


def start(page: Page) -> Page:
    key(ready(page), "start_training").click()
    return page


def progress(page: Page):
    return page.get_by_text(re.compile(r"Epoch \d+ of \d+ · step"))


def result(page: Page):
    return page.get_by_text("of the test images are classified correctly")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("address", ADDRESSES)
def test_every_page_opens_cold_by_its_own_address(visitor, address, view):
    """A cold deep link shows its page, without an error or a sideways scroll."""
    page = ready(visitor(address, **VIEWS[view]))
    expect(page.locator("h1")).to_be_visible(timeout=SLOW)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    sideways = page.get_by_test_id("stMain").evaluate(
        "main => main.scrollWidth - main.clientWidth"
    )
    assert sideways <= 2


def test_home_leads_to_training(visitor):
    """The home page's one button leads to the Train page."""
    page = ready(visitor())
    page.get_by_role("button", name="Start training").click()
    expect(page.locator("h1")).to_have_text("Train")


@pytest.mark.real_data
def shirt() -> bytes:
    """A photo, more or less: something dark on a bright wall."""
    drawing = ImageDraw.Draw(image := Image.new("L", (90, 120), 240))
    drawing.rectangle((25, 30, 65, 90), fill=40)
    image.save(file := io.BytesIO(), "PNG")
    return file.getvalue()


def test_train_to_the_end_and_evaluate(visitor, capsys):
    """From the click on Start to a live curve, a result, and its evaluation."""
    expect(result(start(visitor(SHORT)))).to_be_visible(timeout=SLOW)  # warm
    page = ready(visitor("Train?epochs=2"))
    page.evaluate(STOPWATCH)
    key(page, "start_training").click()
    expect(result(page)).to_be_visible(timeout=SLOW)
    first_point = page.evaluate("window.firstPoint - window.clicked") / 1000
    with capsys.disabled():
        print(f"\nfrom click to the first point on the chart: {first_point:.2f} s")
    accuracy = float(re.search(r"([\d.]+)%", result(page).inner_text()).group(1))
    assert 80 < accuracy < 95

    page.get_by_text("See what it got right and wrong").click()
    expect(page.locator("h1")).to_have_text("Evaluate")
    key(page, "evaluate").click()
    expect(page.get_by_text("The most confident mistakes")).to_be_visible(timeout=SLOW)
    expect(page.get_by_test_id("stMetricValue").first).to_have_text(f"{accuracy:.2f}%")
    expect(page.get_by_test_id("stImage")).to_have_count(13, timeout=SLOW)

    # A cell of the confusion matrix shows its images: Shirt taken for T-shirt/top.
    cells = page.get_by_test_id("stVegaLiteChart").locator("path[aria-roledescription]")
    cells.nth(60).scroll_into_view_if_needed()
    cells.nth(60).click()
    expect(page.get_by_text(re.compile(r"taken for .+: [\d,]+ images?"))).to_be_visible(
        timeout=SLOW
    )

    page.get_by_text("A file", exact=True).click()
    picture = {"name": "shirt.png", "mimeType": "image/png", "buffer": shirt()}
    page.locator("input[type=file]").set_input_files(picture)
    expect(page.get_by_text("As the model sees it")).to_be_visible(timeout=SLOW)
    expect(page.get_by_text(re.compile(r"The model says .+ sure"))).to_be_visible()

    key(page, "compare_modes").click()
    expect(page.get_by_text("Peak memory of tensors")).to_be_visible(timeout=SLOW)
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_a_run_is_saved_loaded_resumed_and_taken_home(visitor, tmp_path):
    """From click to download: both files load again, and the script repeats the run."""
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
    for file, kind in zip(files, ("torch.save, zip", "safetensors"), strict=True):
        uploaded(file)
        expect(page.get_by_text(f"6 tensors, {kind}.")).to_be_visible(timeout=SLOW)
    key(page, "evaluate_upload").click()
    expect(page.get_by_text("Evaluated on")).to_be_visible(timeout=SLOW)
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
    key(page, "resume").click()
    expect(page.get_by_text("With the weights alone")).to_be_visible(timeout=SLOW)

    page.get_by_role("tab", name="What can go wrong").click()
    key(page, "try_pickle").click()
    expect(page.get_by_text("does not exist")).to_be_visible(timeout=SLOW)

    page.get_by_role("tab", name="Take it home").click()
    assert '"nbformat": 4' in download("download_notebook").read_text()
    done = subprocess.run(
        [sys.executable, "-I", download("download_script")],
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"test accuracy {accuracy}%" in done.stdout.splitlines()[-1]


def test_earlier_runs_stay_on_the_chart(visitor):
    """A second run is drawn beside the first, each named by what was changed."""
    page = start(visitor(SHORT))
    expect(result(page)).to_be_visible(timeout=SLOW)
    batch_size = page.get_by_role("spinbutton", name="Batch size")
    batch_size.fill("512")
    batch_size.press("Enter")
    key(page, "start_training").click()
    for name in ("1 · batch 256", "2 · batch 512"):
        expect(page.get_by_text(name)).to_be_visible(timeout=SLOW)


def test_cancel_keeps_what_was_learnt(visitor):
    """Cancelling a run ends it, and its curve stays."""
    page = start(visitor(LONG))
    expect(progress(page)).to_be_visible(timeout=SLOW)
    key(page, "cancel_run").click()
    expect(page.get_by_text(re.compile(r"Cancelled after step [\d,]+"))).to_be_visible(
        timeout=SLOW
    )
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible()
    expect(key(page, "start_training")).to_be_enabled()


def test_a_run_goes_on_through_reload_page_change_and_in_a_second_tab(visitor):
    """A run belongs to no page: it is shown again wherever its owner looks."""
    page = start(visitor(LONG))
    expect(progress(page)).to_be_visible(timeout=SLOW)
    page.reload()
    expect(progress(page)).to_be_visible(timeout=SLOW)

    page.get_by_role("link", name="Home").click()
    expect(page.locator("h1")).to_have_text("Run PyTorch on an accelerator")
    page.get_by_role("link", name="Train").first.click()
    expect(progress(page)).to_be_visible(timeout=SLOW)

    tab = page.context.new_page()
    tab.goto(page.url.partition("?")[0])
    expect(progress(tab)).to_be_visible(timeout=SLOW)
    key(tab, "cancel_run").click()
    expect(page.get_by_text("Cancelled after step")).to_be_visible(timeout=SLOW)


def test_a_link_shows_the_run_to_anyone_but_only_its_owner_cancels(visitor):
    """Another person sees the run by its link, without a button to cancel it."""
    page = start(visitor(LONG))
    expect(progress(page)).to_be_visible(timeout=SLOW)
    other = visitor(page.url.rpartition("/")[2])
    expect(progress(other)).to_be_visible(timeout=SLOW)
    expect(key(other, "cancel_run")).to_have_count(0)
    key(page, "cancel_run").click()
    expect(other.get_by_text("Cancelled after step")).to_be_visible(timeout=SLOW)


def test_a_run_is_found_again_after_a_look_at_another(visitor):
    """Evaluating a finished run does not hide the one that goes on."""
    page = start(visitor(SHORT))
    expect(result(page)).to_be_visible(timeout=SLOW)
    epochs = page.get_by_role("spinbutton", name="Epochs")
    epochs.fill("50")
    epochs.press("Enter")
    key(page, "start_training").click()
    expect(progress(page)).to_be_visible(timeout=SLOW)
    page.get_by_role("link", name="Evaluate").first.click()
    key(page, "evaluate").click()
    expect(page.get_by_text("How good is it?")).to_be_visible(timeout=SLOW)
    page.get_by_role("link", name="Train").first.click()
    expect(progress(page)).to_be_visible(timeout=SLOW)
    key(page, "cancel_run").click()
    expect(page.get_by_text("Cancelled after step")).to_be_visible(timeout=SLOW)


def test_two_people_start_at_once(visitor):
    """The second sees its place in the queue, and starts by itself."""
    first, second = start(visitor(LONG)), visitor(SHORT)
    expect(progress(first)).to_be_visible(timeout=SLOW)
    start(second)
    expect(second.get_by_text("Place 1 in the queue, you are next")).to_be_visible(
        timeout=SLOW
    )
    key(first, "cancel_run").click()
    expect(result(second)).to_be_visible(timeout=SLOW)


def test_a_killed_worker_is_shown_within_five_seconds(visitor, server):
    """Kill -9 of the worker fails the run with its reason; the next run works."""
    page = start(visitor(LONG))
    expect(progress(page)).to_be_visible(timeout=SLOW)
    server.busiest().kill()
    expect(page.get_by_text("The worker process ended while")).to_be_visible(
        timeout=5_000
    )
    epochs = page.get_by_role("spinbutton", name="Epochs")
    epochs.fill("1")
    epochs.press("Enter")
    key(page, "start_training").click()
    expect(result(page)).to_be_visible(timeout=SLOW)


def test_the_device_page_lives_and_explains(visitor):
    """Memory is asked for again and again, a wrong answer is explained, a report comes.

    The timer is the browser's, so nothing but a browser shows that it fires.
    """
    page = ready(visitor("Device"))
    used = page.get_by_text(re.compile(r"^Memory used")).first
    expect(used).to_be_visible(timeout=SLOW)
    before = used.inner_text()
    ballast = bytearray(os.urandom(2**20)) * 512  # half a gigabyte
    expect(used).not_to_have_text(before, timeout=SLOW)
    del ballast

    page.get_by_text("torch was built without CUDA").last.click()
    expect(page.get_by_text("It can: such a torch never asks")).to_be_visible()
    page.get_by_text("The driver is missing").last.click()
    expect(page.get_by_text("an answer means that there is one")).to_be_visible()

    with page.expect_download() as download:
        key(page, "download_report").click()
    report = json.loads(Path(download.value.path()).read_text())
    expect(page.get_by_text(report["verdict"]).first).to_be_visible()


def test_bad_values_in_the_address_are_ignored_with_a_notice(visitor):
    """A learner who mistypes an address is told so, and can go on."""
    page = ready(visitor("Train?model=transformer&epochs=2"))
    expect(page.get_by_text("model must be one of ann, cnn")).to_be_visible()
    expect(page.get_by_role("spinbutton", name="Epochs")).to_have_value("2")
    expect(key(page, "start_training")).to_be_enabled()


def test_an_impossible_number_is_answered_in_words(visitor):
    """Too many epochs are not replaced in silence: nothing starts, and it says why."""
    page = ready(visitor(SHORT))
    epochs = page.get_by_role("spinbutton", name="Epochs")
    epochs.fill("99")
    epochs.press("Enter")
    key(page, "start_training").click()
    expect(page.get_by_text("from 1 to 50, not 99")).to_be_visible(timeout=SLOW)
    expect(result(page)).to_have_count(0)


def test_a_learner_finds_a_mistake_and_makes_it_while_another_does_too(visitor):
    """Paste, find, run with many clicks; two people at once, and on a phone."""
    page, other = ready(visitor("Mistakes")), visitor("Mistakes", **VIEWS["phone"])
    page.get_by_label("Paste an error message").fill(
        "RuntimeError: Expected all tensors to be on the same device, but found at "
        "least two devices, cuda:0 and cpu!"
    )
    page.get_by_role("button", name="Find the mistake").click()
    expect(page.get_by_text("It fits best")).to_be_visible(timeout=SLOW)

    key(ready(other), "run_mistake_out_of_memory").click()
    for _ in range(5):
        key(page, "run_mistake_data_not_moved").click()
    expect(page.get_by_text("RuntimeError", exact=True)).to_be_visible(timeout=SLOW)
    expect(page.get_by_text("# RuntimeError")).to_be_visible()
    expect(page.get_by_text("It returns").first).to_be_visible()
    # By its mark, since a machine of another kind may set no limit of memory.
    expect(other.get_by_text("256 MiB")).to_be_visible(timeout=SLOW)
    expect(other.get_by_text("It returns")).to_be_visible()
    for each in (page, other):
        expect(each.get_by_test_id("stException")).to_have_count(0)
        main = each.get_by_test_id("stMain")
        assert main.evaluate("main => main.scrollWidth - main.clientWidth") <= 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_server_has_not_loaded_torch(server):
    """After all of the above, no library of torch is mapped in the server."""
    maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "libtorch" not in maps


def test_a_killed_app_leaves_no_process(tmp_path, browser):
    """Kill -9 of the app in the middle of a run ends everything it started."""
    server = start_server(tmp_path)
    page = browser.new_page()
    page.goto(f"{server.url}/{LONG}")
    start(page)
    expect(progress(page)).to_be_visible(timeout=SLOW)
    family = server.family
    assert len(family) >= 3
    server.process.kill()
    server.process.wait()
    _, alive = psutil.wait_procs(family, timeout=15)
    assert alive == []
    page.close()


def test_an_app_without_data_and_network_trains_on_sprites(tmp_path, browser):
    """With damaged data the app says so, and trains on the sprites at once."""
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"not an image")
    server = start_server(tmp_path, FASHION_MNIST_DIR=str(tmp_path))
    page = browser.new_page()
    page.goto(f"{server.url}/Train?epochs=1")
    ready(page)
    expect(page.get_by_text("train-images-idx3-ubyte")).to_be_visible(timeout=SLOW)
    key(page, "start_training").click()
    expect(page.get_by_text("(2,000 of 2,000)").or_(result(page))).to_be_visible(
        timeout=SLOW
    )
    page.close()
    server.process.terminate()
    server.process.wait(20)


def test_a_fit_is_drawn_while_it_is_learnt(visitor):
    """In regression, the model's line changes its shape before the run has ended."""
    query = "task=regression&criterion=gaussian&epochs=50&batch_size=16"
    page = start(visitor(f"Train?{query}"))
    expect(progress(page)).to_be_visible(timeout=SLOW)
    lines = page.get_by_test_id("stVegaLiteChart").first.locator(
        'path[aria-roledescription="line mark"]'
    )
    expect(lines).to_have_count(2, timeout=SLOW)  # the model's, then the curve's own
    first = lines.first.get_attribute("d")
    assert first
    expect(lines.first).not_to_have_attribute("d", first, timeout=SLOW)
    expect(progress(page)).to_be_visible()
    key(page, "cancel_run").click()
    expect(page.get_by_text("What was learnt until then stays here")).to_be_visible(
        timeout=SLOW
    )
    expect(lines).to_have_count(2)


def test_the_ladder_is_climbed_guessed_cancelled_and_resumed(visitor):
    """A result hides until it is guessed; what was measured outlives a cancel."""
    page = ready(visitor("Speed"))
    page.get_by_role("combobox", name="Task").click()
    page.get_by_role("option", name="Sprites").click()
    epochs = page.get_by_role("spinbutton", name="Epochs on each rung")
    epochs.fill("1")
    epochs.press("Enter")
    key(ready(page), "run_ladder").click()
    table = page.locator("[data-testid=stDataFrame]").first
    expect(table).to_be_visible(timeout=SLOW)  # the textbook needs no guess
    key(page, "ladder_next").click()
    expect(page.get_by_text("num_workers=2").first).to_be_visible()
    expect(page.get_by_text("It is measured. Guess, and it shows.")).to_be_visible(
        timeout=SLOW
    )
    page.get_by_text("More than that").click()
    expect(page.get_by_text("times as fast as the textbook loop")).to_be_visible()
    key(page, "cancel_ladder").click()
    expect(page.get_by_text("can be resumed")).to_be_visible(timeout=SLOW)
    key(page, "run_ladder").click()
    expect(page.get_by_text("Resume the climb")).to_be_visible()
    expect(table).to_be_visible()
    key(page, "cancel_ladder").click()
    expect(page.get_by_text("can be resumed")).to_be_visible(timeout=SLOW)
