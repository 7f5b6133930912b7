"""The visitor's own GPU: here Chromium's software GPU, right but slow."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.app.e2e.walk import SLOW, key, ready
from tools.server import CHROMIUM, FLAGS, Server

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.alone]

GPU = [
    "--enable-unsafe-webgpu",
    "--enable-features=Vulkan",
    "--use-webgpu-adapter=swiftshader",
    "--use-vulkan=swiftshader",
    "--disable-vulkan-surface",
]
LEARNS = re.compile(r"on your GPU: its loss falls from 2\.\d\d to 0\.\d\d\.")
VERY_SLOW = 2 * SLOW  # a hundred training steps take it many seconds
CODE = "GPUDevice.prototype.createShaderModule"
SHADER = f"""
const create = {CODE}
{CODE} = function ({{ code }}) {{ return create.call(this, {{ code: CHANGED }}) }}"""
ENDED = """
const destroy = GPUDevice.prototype.destroy
GPUDevice.prototype.destroy = function () { window.ended = true; destroy.call(this) }
"""


@pytest.fixture(scope="module")
def with_gpu(browser: Browser) -> Iterator[Browser]:
    flags = [*(flag for flag in FLAGS if flag != "--disable-gpu"), *GPU]
    launched = browser.browser_type.launch(executable_path=CHROMIUM, args=flags)
    yield launched
    launched.close()


@pytest.fixture
def gpu_page(
    with_gpu: Browser, server: Server, contexts: list[BrowserContext]
) -> Callable[[str], Page]:
    """Opens the tab in a browser in which this script has run before."""

    def open_tab(script: str = "") -> Page:
        contexts.append(with_gpu.new_context(viewport={"width": 1280, "height": 900}))
        contexts[-1].set_default_timeout(SLOW)
        contexts[-1].add_init_script(script)
        page = contexts[-1].new_page()
        page.goto(f"{server.url}/Compare?tab=Your+GPU")
        return ready(page)

    return open_tab


def press(page: Page) -> None:
    expect(key(page, "your_gpu")).to_be_enabled()
    key(page, "your_gpu").click()


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("delete Navigator.prototype.gpu", "This browser doesn't support WebGPU"),
        ("GPU.prototype.requestAdapter = async () => null", "but can't find a GPU"),
        (
            "Object.defineProperty(window, 'isSecureContext', { value: false })",
            "only on localhost and at addresses",
        ),
    ],
)
def test_without_a_gpu_one_sentence_says_so(gpu_page, script, sentence):
    page = gpu_page(script)
    expect(page.get_by_text(sentence)).to_be_visible()
    expect(key(page, "your_gpu")).to_be_disabled()
    page.get_by_role("tab", name="The race").click()
    expect(page.get_by_text("Which candidate is faster?")).to_be_visible()


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (
            SHADER.replace("CHANGED", "code + 'nonsense'"),
            "compiler rejected the program",
        ),
        (
            SHADER.replace("CHANGED", "code.replace('sums +=', 'sums -=')"),
            "results don't agree with PyTorch's",
        ),
        (
            "GPUDevice.prototype.createComputePipelineAsync = "
            "function () { this.destroy(); return new Promise(() => {}) }",
            "The browser lost the GPU",
        ),
        (
            "const create = GPUDevice.prototype.createBuffer; "
            "GPUDevice.prototype.createBuffer = function (buffer) "
            "{ return create.call(this, { ...buffer, size: 2 ** 40 }) }",
            "The GPU stopped with an error",
        ),
    ],
)
def test_a_failed_gpu_shows_a_reason_and_can_be_tried_again(gpu_page, script, sentence):
    page = gpu_page(script)
    expect(page.get_by_text("but its speed means nothing")).to_be_visible()
    press(page)
    expect(page.get_by_text(sentence)).to_be_visible(timeout=VERY_SLOW)
    expect(key(page, "your_gpu")).to_be_enabled()


def test_the_gpus_results_are_pytorchs_after_a_pause_too(gpu_page):
    page = gpu_page()
    page.get_by_text("The app runs on this computer too").click()
    page.locator(".st-key-your_gpu_guess").get_by_text("At no size").click()
    press(page)
    expect(page.get_by_text("Warming up")).to_be_visible(timeout=VERY_SLOW)
    page.evaluate("""() => {
        Object.defineProperty(document, "hidden", { value: true, configurable: true })
        document.dispatchEvent(new Event("visibilitychange"))
    }""")
    expect(page.get_by_text("Paused, since this tab is in")).to_be_visible()
    page.evaluate("""() => {
        delete document.hidden
        document.dispatchEvent(new Event("visibilitychange"))
    }""")
    expect(page.get_by_text("Round 1 of 7")).to_be_visible(timeout=VERY_SLOW)
    expect(page.get_by_text("Done. All times shown")).to_be_visible(timeout=VERY_SLOW)
    expect(page.get_by_text("is not a GPU").first).to_be_attached()
    expect(page.get_by_text(LEARNS)).to_be_visible()
    expect(page.get_by_text("disagrees")).to_have_count(0)
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(3)
    page.reload()
    expect(page.get_by_text(LEARNS)).to_be_visible()


def test_the_work_ends_with_the_page(gpu_page):
    page = gpu_page(ENDED)
    press(page)
    expect(page.get_by_text("Training the ANN")).to_be_visible(timeout=VERY_SLOW)
    assert not page.evaluate("window.ended")
    page.get_by_role("tab", name="The race").click()
    page.wait_for_function("window.ended")
