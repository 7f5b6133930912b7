import csv
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates

from core.store.tables import Class
from tests import event_loop
from tests.e2e.walk import (
    SLOW,
    key,
    ready,
    result,
    start,
)
from tools.load.person import START, TINY, run_in
from tools.load.record import Record
from tools.load.tab import Browser, Tab
from tools.server import Server, open_class, start_server

pytestmark = pytest.mark.slow

PASSWORD = "correct horse battery"
QUICK = "Train?task=sprites&epochs=1&batch_size=256"
AT_ONCE = 4  # browsers


@pytest.fixture(scope="module")
def school(tmp_path_factory) -> Iterator[tuple[Server, Class]]:
    """A server of its own with a class that is open, where each may begin one run."""
    folder = tmp_path_factory.mktemp("school")
    monday = open_class(folder, 8, runs=1)
    server = start_server(folder, TEACHER_PASSWORD=PASSWORD)
    yield server, monday
    server.process.terminate()
    server.process.wait(60)
    log = server.log.read_text()
    assert "Uncaught app execution" not in log, log


@pytest.fixture
def person(browser, school) -> Iterator[Callable[..., Page]]:
    """Opens a page of the school in a browser of its own."""
    contexts = []

    def open_page(address: str) -> Page:
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 900}))
        page = contexts[-1].new_page()
        page.goto(f"{school[0].url}/{address}")
        return page

    yield open_page
    for context in contexts:
        context.close()


def sign_in(page: Page, password: str) -> None:
    ready(page).get_by_label("Password").fill(password)
    page.get_by_label("Your name").fill("Ms Bird")
    page.get_by_role("button", name="Sign in").click()


def joined(page: Page, server: Server) -> tuple[Page, str]:
    """A student who has pressed Join and begun a run, and what they are called."""
    key(ready(page), "join_class").click()
    told = page.get_by_text(re.compile("^You are "))
    expect(told).to_be_visible(timeout=SLOW)
    name = told.locator("strong").first.inner_text()
    page.goto(f"{server.url}/{QUICK}")
    return start(page), name


@pytest.mark.browser
def test_a_lesson(school, person, tmp_path):
    """From the code on the wall to the table: nobody's run is lost, one is cancelled.

    A wrong password opens nothing; a queue that is paused keeps everybody's place; who
    reloads finds the run; the wall shows who is in.
    """
    server, monday = school
    teacher = person("Teacher")
    sign_in(teacher, "guess")
    expect(teacher.get_by_text("not the password")).to_be_visible(timeout=SLOW)
    sign_in(teacher, PASSWORD)
    expect(key(teacher, "pause_queue")).to_be_visible(timeout=SLOW)
    wall = teacher.context.new_page()
    wall.goto(f"{server.url}/Class?projector=1")
    code = wall.get_by_text(monday.code, exact=True)
    expect(code).to_be_visible(timeout=SLOW)
    door = f"Class?code={code.inner_text()}"

    first = [joined(person(door), server) for _ in range(AT_ONCE)]
    first[0][0].reload()
    for page, _ in first:
        expect(result(page)).to_be_visible(timeout=SLOW)
        page.context.close()

    key(teacher, "pause_queue").click()
    expect(teacher.get_by_text("Resume the queue")).to_be_visible(timeout=SLOW)
    second = [joined(person(door), server) for _ in range(AT_ONCE)]
    for page, _ in second:
        expect(page.get_by_text("teacher paused the queue").first).to_be_visible(
            timeout=SLOW
        )
    (unlucky, name), *others = second
    expect(teacher.get_by_text("0 running, 4 waiting")).to_be_visible(timeout=SLOW)
    key(teacher, f"cancel_{run_in(unlucky.url)}").click()
    told = unlucky.get_by_text("Your teacher canceled this")
    expect(told.first).to_be_visible(timeout=SLOW)
    key(teacher, "pause_queue").click()
    for page, _ in others:
        expect(result(page)).to_be_visible(timeout=SLOW)

    full = person(door)
    key(ready(full), "join_class").click()
    expect(full.get_by_text("That class is full")).to_be_visible(timeout=SLOW)
    expect(wall.get_by_text("8 have joined")).to_be_visible(timeout=SLOW)
    expect(teacher.get_by_text("8 have joined. Nobody is stuck.")).to_be_visible(
        timeout=SLOW
    )
    expect(teacher.get_by_text("Rename or remove somebody")).to_be_visible()
    teacher.get_by_role("tab", name="Afterward").click()
    with teacher.expect_download() as file:
        key(teacher, "class_csv").click()
    file.value.save_as(tmp_path / "class.csv")
    with (tmp_path / "class.csv").open(newline="") as table:
        rows = {row["student"]: row["status"] for row in csv.DictReader(table)}
    assert rows == {each: "finished" for _, each in first + second} | {
        name: "cancelled"
    }


def test_no_student_reaches_what_is_the_teachers(school):
    server, monday = school

    async def new_tab(address: str, password: str = "") -> Tab:
        browser = Browser(server.url)
        await browser.get(address)
        if password:
            form, origin = {"password": password}, {"Origin": server.url}
            url = f"{server.url}/teacher/enter"
            browser._session.post(url, data=form, headers=origin, timeout=60)
        tab = Tab(browser, Record())
        await tab.open(address)
        return tab

    async def begins(tab: Tab) -> str:
        await tab.until(lambda: tab.can_press(START), "button to start with", 90)
        await tab.press(START)
        return " ".join(tab.texts())

    async def cheat() -> None:
        teacher = await new_tab("Teacher", PASSWORD)
        close = teacher._button("close_class")
        assert close
        student = await new_tab(f"Teacher?code={monday.code}&teacher=1")
        guesser = await new_tab("Teacher", "guess")
        press = WidgetStates(widgets=[WidgetState(id=close, trigger_value=True)])
        for tab in (student, guesser):
            assert not tab.can_press("close_class")
            await tab._rerun("a press of nothing", widget_states=press)
            tab.check()
        await teacher.reload()
        assert teacher.can_press("close_class")
        refused = "the most that this class allows"
        assert refused not in await begins(await new_tab(TINY))
        assert refused in await begins(await new_tab(TINY))

    event_loop.run(cheat())
