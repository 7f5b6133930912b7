import csv
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from core.ui import job_panel
from core.ui.course import HOME
from tests.app.e2e.walk import (
    LONG,
    SHORT,
    cancel,
    enter,
    key,
    progress,
    ready,
    result,
    said,
    start,
    stopped,
)

pytestmark = pytest.mark.browser

# Takes the time of the click and of the first frame with a new line on a chart, and
# counts the shapes that the line has from then on.
STOPWATCH = """() => {
    const line = '[data-testid=stVegaLiteChart] [aria-roledescription="line mark"]';
    const shape = () => document.querySelector(line)?.getAttribute("d");
    window.curves = new Set();
    let before;
    const look = () => {
        const curve = shape();
        if (curve && curve !== before) window.firstPoint ??= performance.now();
        if (curve) window.curves.add(curve);
        requestAnimationFrame(look);
    };
    const click = () => {
        window.clicked = performance.now();
        before = shape();
        look();
    };
    document.addEventListener("click", click, {capture: true, once: true});
}"""


@pytest.mark.alone
@pytest.mark.real_data
def test_train_to_the_end_and_evaluate(visitor, capsys):
    expect(result(start(visitor(SHORT)))).to_be_visible()  # warm
    page = ready(visitor("Train?epochs=2"))
    page.evaluate(STOPWATCH)
    key(page, "start_training").click()
    expect(result(page)).to_be_visible()
    first_point = page.evaluate("window.firstPoint - window.clicked") / 1000
    with capsys.disabled():
        print(f"\nfrom click to the first point on the chart: {first_point:.2f} s")
    assert page.evaluate("window.curves.size") > 4  # the loss was seen to fall
    accuracy = float(re.search(r"([\d.]+)%", result(page).inner_text()).group(1))
    assert 80 < accuracy < 95

    page.get_by_text("See what the model got right and wrong").click()
    expect(page.locator("h1")).to_have_text("Evaluate")
    expect(page.get_by_test_id("stMetricValue").first).to_have_text(f"{accuracy:.2f}%")
    page.get_by_role("button", name="Just show me").click()

    # A cell of the confusion matrix shows its images: Shirt mistaken for T-shirt/top.
    cells = page.get_by_test_id("stVegaLiteChart").locator("path[aria-roledescription]")
    cells.nth(60).scroll_into_view_if_needed()
    cells.nth(60).click()
    expect(
        page.get_by_text(re.compile(r"taken for .+: [\d,]+ images?"))
    ).to_be_visible()

    page.get_by_role("tab", name="Confident mistakes").click()
    wrong = page.get_by_role("img", name=re.compile(r"^Test image \d+: "))
    expect(wrong).to_have_count(12)

    expect(page.get_by_test_id("stException")).to_have_count(0)


@pytest.mark.slow
def test_earlier_runs_stay_on_the_chart_and_are_compared(visitor):
    """On Train and on Runs, whichever is faster, or too close to tell.

    There one is taken away, added by its dot, and exported.
    """
    page = start(visitor(SHORT))
    expect(result(page)).to_be_visible()
    enter(page, "Batch size", 512)
    key(page, "start_training").click()
    asked = re.compile(r"\brun \d \(batch 512\).+\brun \d \(batch 256\).*\?")
    expect(page.get_by_text(asked)).to_be_visible()
    told = re.compile(r"\(batch \d+\).+\d s\b.+\d%")
    expect(page.get_by_text(told)).to_be_visible()
    expect(result(page)).to_be_visible()
    losses = page.get_by_test_id("stVegaLiteChart").first
    lines = losses.locator('[aria-roledescription="line mark"]')
    expect(lines).to_have_count(3)  # two means, and the last run's losses

    page.get_by_text("Compare this run with your other runs").click()
    expect(page.locator("h1")).to_have_text("Runs")
    finding = page.get_by_text(re.compile(r"is faster|too close to call"))
    expect(finding).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(2)
    frontier = page.get_by_text(re.compile("o other run is both"))
    expect(frontier).to_be_visible()
    table = page.get_by_test_id("stDataFrame")
    second_box = {"x": 20, "y": 90}
    table.first.click(position=second_box)
    expect(table).to_have_count(1)  # nothing to hold it against
    charts = page.get_by_test_id("stVegaLiteChart")
    charts.last.locator(
        "[aria-roledescription=circle][aria-label*='batch 256']"
    ).click()
    expect(table).to_have_count(2)
    expect(page.get_by_role("button", name="Export")).to_have_count(1)  # drawn anew
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as file:
        key(page, "runs_csv_some").click()
    rows = csv.DictReader(file.value.path().read_text().splitlines())
    assert [row["batch_size"] for row in rows] == ["512", "256"]
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_a_run_belongs_to_its_owner_and_to_no_page(visitor):
    """It goes on through a reload, another page and a second tab.

    Who has its link sees it and can't cancel it; who starts another one meanwhile sees
    their place in the queue. Cancelling ends it everywhere; its curve stays.
    """
    page = start(visitor(LONG))
    expect(progress(page)).to_be_visible()
    page.reload()
    expect(progress(page)).to_be_visible()
    page.get_by_role("link", name="Home").click()
    expect(page.locator("h1")).to_have_text(HOME.title)
    page.get_by_role("link", name="Train").first.click()
    expect(progress(page)).to_be_visible()

    other = visitor(page.url.rpartition("/")[2])
    expect(progress(other)).to_be_visible()
    expect(key(other, "cancel_run")).to_have_count(0)
    next_one = start(visitor(SHORT))
    expect(said(next_one, job_panel.words("queue.place", place=1))).to_be_visible()
    tab = page.context.new_page()
    tab.goto(page.url.partition("?")[0])
    expect(progress(tab)).to_be_visible()
    key(tab, "cancel_run").click()
    for each in (page, other, tab):
        expect(stopped(each)).to_be_visible()
        expect(each.get_by_test_id("stVegaLiteChart").first).to_be_visible()
    expect(key(page, "start_training")).to_be_enabled()
    expect(result(next_one)).to_be_visible()


def test_what_a_left_page_still_asks_for_does_not_empty_the_next(visitor):
    """The browser polls for the run until the next page's first message is there."""
    page = visitor()
    polls: list[bytes] = []

    def relay(socket) -> None:
        server = socket.connect_to_server()

        def pass_on(message: bytes) -> None:
            server.send(message)
            asked = BackMsg.FromString(message).rerun_script
            if asked.fragment_id:
                polls.append(message)
            elif polls:
                server.send(polls[-1])

        socket.on_message(pass_on)

    page.route_web_socket(re.compile("_stcore/stream"), relay)
    page.goto(f"{page.url}{LONG}")
    start(page)
    expect(progress(page)).to_be_visible()
    while not polls:
        page.wait_for_timeout(50)
    page.get_by_role("link", name="Home").click()
    expect(page.locator("h1")).to_have_text(HOME.title)
    ready(page)
    page.wait_for_timeout(1000)
    expect(page.locator("h1")).to_have_text(HOME.title)
    second_tab = page.context.new_page()  # without the relay, which may swallow a click
    second_tab.goto(page.url.split("?")[0].rstrip("/") + "/Train")
    cancel(second_tab)


def test_an_address_that_deceives_is_shown_without_a_link_or_a_picture(visitor):
    task = "https://a.example me@a.example ![b](https://a.example/b) :smile:"
    page = ready(visitor(f"Train?model=transformer&epochs=2&task={quote(task)}"))
    alerts = page.get_by_test_id("stAlert")
    expect(alerts.get_by_text(task[:50])).to_be_visible()
    expect(alerts.locator("a, img")).to_have_count(0)
