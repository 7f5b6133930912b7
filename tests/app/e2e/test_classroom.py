from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates

from core.store.tables import Class
from tests.app import event_loop
from tests.app.e2e.walk import PHONE, SLOW, barriers, key, ready
from tools.load.person import START, TINY
from tools.load.record import Record
from tools.load.tab import Browser, Tab
from tools.server import Server, open_class, start_server

pytestmark = pytest.mark.slow

PASSWORD = "correct horse battery"


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


@pytest.mark.browser
def test_nothing_keeps_people_from_using_the_class_pages(school, browser, contexts):
    """What axe-core finds for a student and, on each tab, for the teacher.

    Then the teacher closes the class, and a student's page follows without a reload.
    """
    server, monday = school
    contexts += [browser.new_context(**PHONE), browser.new_context()]
    student, teacher = (context.new_page() for context in contexts)
    student.goto(f"{server.url}/Class?code={monday.code}")
    assert barriers(ready(student)) == []
    key(student, "join_class").click()
    expect(student.get_by_role("heading", name="Right now")).to_be_visible(timeout=SLOW)
    assert barriers(ready(student)) == []
    teacher.goto(f"{server.url}/Teacher")
    assert barriers(ready(teacher)) == []
    teacher.get_by_label("Password").fill(PASSWORD)
    teacher.get_by_role("button", name="Sign in").click()
    expect(key(teacher, "pause_queue")).to_be_visible(timeout=SLOW)
    for tab in teacher.get_by_role("tab").all():
        tab.click()
        expect(tab).to_have_attribute("aria-selected", "true")
        assert barriers(ready(teacher)) == [], tab.inner_text()
    student.goto(f"{server.url}/Train")
    limits = student.get_by_text("In your class")
    expect(limits).to_be_visible(timeout=SLOW)
    teacher.get_by_role("button", name="More").click()
    key(teacher, "close_class").click()
    key(teacher, "sure").click()
    expect(limits).to_have_count(0, timeout=SLOW)
