"""What the tests of the pages share: how a page is opened, read and pressed."""

import ast
import json
import re
import time
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from streamlit.testing.v1 import AppTest

from core.classroom.room import Teacher
from core.config import RunConfig
from core.jobs.cluster import ROOT
from core.jobs.engine import Engine
from core.jobs.job import Job
from core.ui import course
from core.ui.guess import JUST_SHOW
from core.ui.lab import Lab
from core.watch import Watch
from tests.app.jobs import follow
from tests.app.ui.vega import missing

PAGES = sorted(
    (path.relative_to(ROOT).as_posix() for path in ROOT.glob("pages/*.py")),
    key=lambda path: int(path.removeprefix("pages/").partition("_")[0]),
)
TEACHER = Teacher("ms bird's browser", "Ms Bird")
SHORT = RunConfig(task="sprites", epochs=1, batch_size=256)
HOSTILE = (  # what a link that was made to deceive might say
    "[evil](https://evil.example)",
    "![evil](https://evil.example/a.png)",
    "https://evil.example",
    "www.evil.example",
    "me@evil.example",
    ":red[evil]",
    ":material/warning: evil :smile:",
    "$evil$",
    "<b>evil</b>",
    "`evil` ``[evil](https://evil.example)",
    "x\n\n# evil\r\n- evil",
    "\u202eevil\0",
    "`" * 59 + "evil" * 1000,
)
MARKDOWN = ("markdown", "caption", "error", "info", "success", "warning")
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
CURVE = RunConfig.with_recipe(task="regression", epochs=1)


def labs(page: str) -> list[Lab]:
    """The labs that a page lists, in its order; the page isn't drawn for this."""
    tree = ast.parse((ROOT / page).read_text("utf-8"))
    lists = [
        node
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LABS")
    ]
    names: dict[str, Any] = {}
    exec(compile(ast.Module(lists, []), page, "exec"), names)
    return [kind() for kind in names.get("LABS", ())]


def all_labs() -> list[Lab]:
    return [lab for page in course.PAGES for lab in labs(page.file)]


def open_page(page: str, **query: str) -> AppTest:
    """A page of the app as it is drawn for an address with this query."""
    at = AppTest.from_file(str(ROOT / "home.py"), default_timeout=60).run()
    at.switch_page(page)
    for name, value in query.items():
        at.query_params[name] = value
    return drawn(at.run())


def drawn(at: AppTest) -> AppTest:
    """The page, drawn without an error, and with the columns that its charts need."""
    assert not at.exception
    assert not any(map(missing, at.get("vega_lite_chart")))
    return at


def open_tab(at: AppTest, name: str | bool, key: str = "tab") -> AppTest:
    """The page with that tab open; only then what is in it is drawn.

    Of the tabs of another key, or an expander: it is open, or not.
    """
    at.query_params.pop(key, None)  # it was set by the open page
    at.session_state[key] = name
    return drawn(at.run())


def write_code(at: AppTest, key: str, text: str) -> None:
    """Write that into the field for code of that key; it counts with the next press."""
    at.session_state[key] = {"value": text}


def code_in(at: AppTest, number: int = 0) -> dict[str, Any]:
    """The data of a field for code on the page, counted from 0."""
    return [data for data in component_data(at) if "placeholder" in data][number]


def component_data(at: AppTest) -> list[dict[str, Any]]:
    return [json.loads(component.proto.json) for component in at.get("bidi_component")]


def show_lab(
    name: str, value: object, guess: object = JUST_SHOW, arguments: tuple = ()
) -> AppTest:
    """A result as another machine brings it, drawn by the lab of this name."""

    def draw(name, value, guess, arguments):
        from core.jobs.job import Job
        from tests.app.pages.walk import all_labs

        (lab,) = (lab for lab in all_labs() if lab.name == name)
        job = Job("id", name, arguments, "train", status="finished", value=value)
        lab.show(job, guess)

    args = (name, value, guess, arguments)
    return drawn(AppTest.from_function(draw, args=args, default_timeout=60).run())


def texts(elements) -> str:
    return "\n".join(str(element.value) for element in elements)


def status(at: AppTest) -> str:
    """What the page says of how far jobs are, and of how they ended."""
    return "\n".join(slot.proto.text for slot in at.get("progress"))


def outside_code(at: AppTest) -> str:
    """All that the page says in Markdown, less its code spans."""
    return CODE_SPAN.sub("", "\n".join(texts(getattr(at, kind)) for kind in MARKDOWN))


def until_cancelled(watch: Watch) -> None:
    """A job that goes on until somebody cancels it, or for five minutes."""
    for _ in watch.until_cancelled(range(6000)):
        time.sleep(0.05)


def finished_run(engine: Engine, config: RunConfig = SHORT) -> str:
    job_id = engine.submit("core.training:run", config)
    wait(engine, job_id)
    return job_id


def wait(
    engine: Engine, job_id: str, until: Callable[[Job], bool] = lambda _: False
) -> Job:
    """The job, once it has ended, or has come as far as that."""
    follow.wait(lambda: (job := engine.job(job_id)).ended or until(job), seconds=400)
    return engine.job(job_id)


def metrics(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def press(at: AppTest, engine: Engine, key: str, path: str) -> AppTest:
    """Press a button, wait for the job that it starts, draw the page again."""
    at.button(key=key).click().run()
    return finish(at, engine, engine.jobs(path)[-1].id)


def finish(at: AppTest, engine: Engine, job_id: str) -> AppTest:
    """Wait for a job, and draw the page again: without an error, whatever it is."""
    wait(engine, job_id)
    assert not drawn(at.run()).error
    return at


def reversed_times(value: Any) -> Any:
    """The same result with the opposite order: what was fastest is now slowest.

    Each positive float becomes the smallest times the largest of its field, divided by
    itself, and a bit less, so that it changes even if the field has only this one.
    """
    ends: dict[str, tuple[float, float]] = {}

    def see(value: Any, name: str = "") -> Any:
        if isinstance(value, float) and value > 0:
            low, high = ends.get(name, (value, value))
            ends[name] = min(low, value), max(high, value)
        return _walk(value, name, see)

    def change(value: Any, name: str = "") -> Any:
        if isinstance(value, float) and value > 0:
            low, high = ends[name]
            return 0.9 * low * high / value
        return _walk(value, name, change)

    see(value)
    return change(value)


def _walk(value: Any, name: str, visit: Callable[[Any, str], Any]) -> Any:
    """The value with each of its parts replaced by what `visit` returns for it."""
    if isinstance(value, tuple):
        return tuple(visit(part, name) for part in value)
    if isinstance(value, dict):
        return {key: visit(part, name) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, RunConfig):
        changed = {f.name: visit(getattr(value, f.name), f.name) for f in fields(value)}
        return replace(value, **changed)
    return value
