"""The visitor's own GPU: here Chromium's software GPU, right but slow."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from core.lessons.compare.race_verdict import words
from tests.app.e2e.walk import SLOW, filled, key, ready
from tools.server import CHROMIUM, FLAGS, Server

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.alone]

GPU = [
    "--enable-unsafe-webgpu",
    "--enable-features=Vulkan",
    "--use-webgpu-adapter=swiftshader",
    "--use-vulkan=swiftshader",
    "--disable-vulkan-surface",
]
STATUS = words.table("your_gpu.status")
LEARNS = re.compile(r"GPU: .+ 2\.\d\d .+ 0\.\d\d\.")  # the loss, at first and at last
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


def told(page: Page, status: str) -> Locator:
    """The line on how the measurement goes on, if it is this one."""
    return page.get_by_text(re.compile(filled(STATUS[status])))


def press(page: Page) -> None:
    expect(key(page, "your_gpu")).to_be_enabled()
    key(page, "your_gpu").click()


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("delete Navigator.prototype.gpu", "no_webgpu"),
        ("GPU.prototype.requestAdapter = async () => null", "no_adapter"),
        (
            "Object.defineProperty(window, 'isSecureContext', { value: false })",
            "insecure",
        ),
    ],
)
def test_without_a_gpu_one_sentence_says_so(gpu_page, script, status):
    page = gpu_page(script)
    expect(told(page, status)).to_be_visible()
    expect(key(page, "your_gpu")).to_be_disabled()
    page.get_by_role("tab", name="The race").click()
    expect(page.get_by_text(words("race.heading"))).to_be_visible()


@pytest.mark.parametrize(
    ("script", "status"),
    [
        (
            SHADER.replace("CHANGED", "code + 'nonsense'"),
            "shader",
        ),
        (
            SHADER.replace("CHANGED", "code.replace('sums +=', 'sums -=')"),
            "wrong",
        ),
        (
            "GPUDevice.prototype.createComputePipelineAsync = "
            "function () { this.destroy(); return new Promise(() => {}) }",
            "lost",
        ),
        (
            "const create = GPUDevice.prototype.createBuffer; "
            "GPUDevice.prototype.createBuffer = function (buffer) "
            "{ return create.call(this, { ...buffer, size: 2 ** 40 }) }",
            "failed",
        ),
        (
            "const get = window.fetch; window.fetch = (address, ...more) => "
            "get(`${address}`.includes('your-gpu/') ? 'http://nowhere.invalid' "
            ": address, ...more)",
            "gone",
        ),
    ],
)
def test_a_failed_gpu_shows_a_reason_and_can_be_tried_again(gpu_page, script, status):
    page = gpu_page(script)
    expect(told(page, "software")).to_be_visible()
    press(page)
    expect(told(page, status)).to_be_visible(timeout=VERY_SLOW)
    expect(key(page, "your_gpu")).to_be_enabled()


def test_the_gpus_results_are_pytorchs_after_a_pause_too(gpu_page):
    page = gpu_page()
    page.get_by_text(words("your_gpu.same")).click()
    never = words.table("your_gpu.answers")[-1]
    page.locator(".st-key-your_gpu_guess").get_by_text(never).click()
    press(page)
    expect(told(page, "warm_up")).to_be_visible(timeout=VERY_SLOW)
    page.evaluate("""() => {
        Object.defineProperty(document, "hidden", { value: true, configurable: true })
        document.dispatchEvent(new Event("visibilitychange"))
    }""")
    expect(told(page, "background")).to_be_visible()
    page.evaluate("""() => {
        delete document.hidden
        document.dispatchEvent(new Event("visibilitychange"))
    }""")
    first = page.get_by_text(STATUS["round"].format(round=1, rounds=7))
    expect(first).to_be_visible(timeout=VERY_SLOW)
    expect(told(page, "done")).to_be_visible(timeout=VERY_SLOW)
    software = words("your_gpu.software").partition("{name}")[2].partition("**")[0]
    expect(page.get_by_text(software).first).to_be_attached()
    expect(page.get_by_text(LEARNS)).to_be_visible()
    expect(page.get_by_text(words("your_gpu.notes.wrong"))).to_have_count(0)
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(3)
    page.reload()
    expect(page.get_by_text(LEARNS)).to_be_visible()


def test_the_work_ends_with_the_page(gpu_page):
    page = gpu_page(ENDED)
    press(page)
    expect(told(page, "training")).to_be_visible(timeout=VERY_SLOW)
    assert not page.evaluate("window.ended")
    page.get_by_role("tab", name="The race").click()
    page.wait_for_function("window.ended")
