"""Scheduler and workers as the documents start them, killed and started again."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from distributed.comm.core import CommClosedError
from distributed.core import connect

from core.jobs import dask_connection
from core.jobs.cluster import ROOT, security
from core.jobs.dask_connection import words
from core.jobs.engine import Engine
from tests.app.jobs.by_hand import Elsewhere, commands
from tests.app.jobs.follow import RUN, Counted, finish, lanes, status, wait
from tests.app.jobs.follow import SHORT as SHORT_RUN

HERE = "tests.app.jobs.test_cluster_processes"
COUNT = "tests.app.jobs.follow:count"
LONG, SHORT = 4000, 8

pytestmark = [pytest.mark.slow, pytest.mark.alone]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    folder = tmp_path_factory.mktemp("elsewhere")
    subprocess.run([ROOT / "deploy" / "certificates", "here"], cwd=folder, check=True)
    parts = dict(
        zip(("scheduler", "workers"), commands("docs/how-it-works.md"), strict=True)
    )
    cluster = Elsewhere(parts, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DASK_CERTIFICATES", str(folder / "certificates" / "here"))
        yield cluster
    cluster.end()


@pytest.fixture(scope="module")
def app(elsewhere: Elsewhere) -> Iterator[Engine]:
    """The engine of an app that the third line of docs/how-it-works.md starts."""
    engine = Engine(elsewhere.address)
    engine.ask("core.devices:describe", seconds=120)
    wait(lambda: lanes(engine)["train"])
    yield engine
    engine.close()


def begun(app: Engine, job_id: str) -> str:
    wait(lambda: (job := app.job(job_id)).progress.latest or len(job.events) > 3)
    return job_id


def one_that_runs_and_two_that_wait(app: Engine) -> list[str]:
    ids = [app.submit(COUNT, steps) for steps in (LONG, SHORT, SHORT)]
    begun(app, ids[0])
    return ids


def all_but_the_first_ran_once(app: Engine, ids: list[str], message: str) -> None:
    """The first was lost with a sentence; the others ran in order, all heard."""
    first, *others = (finish(app, job_id) for job_id in ids)
    assert (first.status, first.message) == ("failed", message)
    assert others[0].started < others[1].started
    for job in others:
        assert job.value == SHORT
        assert job.events == tuple(map(Counted, range(SHORT)))


def test_workers_started_by_hand_can_do_everything(app):
    assert app.ask("core.jobs.child_process:call", "os:getpid") > 0
    assert finish(app, app.submit(f"{HERE}:batches_of_a_loader")).value == 4


def batches_of_a_loader() -> int:
    from torch.utils.data import DataLoader

    return len(list(DataLoader(range(8), batch_size=2, num_workers=1)))


def test_a_scheduler_that_comes_back_soon_costs_only_the_run(app, elsewhere):
    ids = one_that_runs_and_two_that_wait(app)
    elsewhere.kill("scheduler")
    elsewhere.start("scheduler")
    all_but_the_first_ran_once(app, ids, words("elsewhere.lost"))


def test_a_scheduler_that_comes_back_late_costs_only_the_run(
    app, elsewhere, monkeypatch
):
    monkeypatch.setattr(app._connection._client, "_timeout", 0.5)
    monkeypatch.setattr(dask_connection, "CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(dask_connection, "RETRY_SECONDS", 0.5)
    ids = one_that_runs_and_two_that_wait(app)
    lost = app._connection._client
    elsewhere.kill("scheduler")
    wait(lambda: lost.status == "closed" and "can't be reached" in app.problem)
    assert [status(app, job_id) for job_id in ids] == ["failed", "queued", "queued"]
    elsewhere.start("scheduler")
    all_but_the_first_ran_once(app, ids, words("elsewhere.lost"))
    assert app.problem == ""
    wait(lambda: lanes(app)["train"])


def test_a_scheduler_that_hangs_is_as_good_as_gone(app, elsewhere, monkeypatch):
    ids = one_that_runs_and_two_that_wait(app)
    with elsewhere.stopped("scheduler"), monkeypatch.context() as patience:
        patience.setattr(dask_connection, "ANSWER_SECONDS", 0.5)
        wait(lambda: app.lanes() is None)
        wait(lambda: app.problem == words("workers.away"))
        wait(lambda: status(app, ids[0]) == "failed")
        assert [status(app, job_id) for job_id in ids[1:]] == ["queued", "queued"]
    all_but_the_first_ran_once(app, ids, words("elsewhere.lost"))


def test_workers_that_are_killed_cost_only_the_run(app, elsewhere):
    """The command that started them too; what had not begun begins later."""
    other = Engine(elsewhere.address)
    ids = one_that_runs_and_two_that_wait(app)
    waiting = other.submit(COUNT, SHORT)
    wait(lambda: other.job(waiting).message == words("workers.shared"))
    elsewhere.kill("workers")
    wait(lambda: not lanes(app)["train"])
    elsewhere.start("workers")
    all_but_the_first_ran_once(app, ids, words("workers.lost_worker"))
    assert finish(other, waiting).status == "finished"
    other.close()


def test_a_job_that_no_worker_could_take_has_failed(app, monkeypatch):
    monkeypatch.setattr("core.jobs.dask_connection.NO_WORKER_SECONDS", 0.1)
    job = finish(app, app.submit(COUNT, SHORT, lane="nobody"))
    assert (job.status, job.message) == ("failed", words("elsewhere.no_worker"))


def test_a_run_whose_app_is_gone_ends(app, elsewhere):
    closed = Engine(elsewhere.address)
    begun(closed, closed.submit(COUNT, LONG))
    closed.close()
    assert finish(app, app.submit(COUNT, SHORT)).status == "finished"


def deaf_job(engine: Engine, file: Path) -> tuple[str, int]:
    job_id = engine.submit(f"{HERE}:hear_nothing", str(file))
    wait(lambda: status(engine, job_id) == "running")
    file.touch()
    wait(file.read_text)
    return job_id, int(file.read_text())


def hear_nothing(file: str) -> None:
    """Once the file is there, hold the interpreter's lock, and have a child."""
    while not Path(file).exists():
        time.sleep(0.02)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(file).write_text(str(child.pid))
    re.match(r"(a+)+$", "a" * 60 + "b")


def test_a_job_that_hears_nothing_ends_with_its_worker(app, monkeypatch, tmp_path):
    monkeypatch.setattr(dask_connection, "CANCEL_SECONDS", 0.5)
    deaf, child = deaf_job(app, tmp_path / "pid")
    following = app.submit(COUNT, SHORT)
    app.cancel(deaf)
    assert finish(app, deaf).status == "cancelled"
    assert finish(app, following).status == "finished"
    wait(lambda: not psutil.pid_exists(child))


def test_a_job_that_hears_nothing_does_not_outlive_its_app(
    app, elsewhere, monkeypatch, tmp_path
):
    monkeypatch.setattr(dask_connection, "CANCEL_SECONDS", 0.5)
    closed = Engine(elsewhere.address)
    deaf_job(closed, tmp_path / "pid")
    closed.close()
    assert finish(app, app.submit(COUNT, SHORT)).status == "finished"


@pytest.fixture
def machines(tmp_path, monkeypatch) -> Iterator[Elsewhere]:
    """Two and a scheduler, as docs/hosting.md starts them; only the first trains."""
    monkeypatch.chdir(tmp_path)
    subprocess.run([ROOT / "deploy" / "certificates", "first", "second"], check=True)
    text = (ROOT / "docs" / "hosting.md").read_text("utf-8")
    (settings,) = re.findall(r"^(DASK_.*) python -m streamlit run app.py", text, re.M)
    lines = [*commands("docs/hosting.md"), settings]
    here = (line.replace("demo.example.org", "127.0.0.1") for line in lines)
    scheduler, first, second, settings = here
    cluster = Elsewhere(
        {
            "scheduler": f"{scheduler} --port 8786",
            "first": first,
            "second": f"{second} --lanes lab",
        },
        tmp_path,
    )
    for setting in settings.replace("8786", cluster.port).split():
        monkeypatch.setenv(*setting.split("="))
    yield cluster
    cluster.end()


def knock(address: str, folder: str | None = None) -> None:
    """As one who has these certificates, or none; CommClosedError where refused."""

    async def connect_and_leave() -> None:
        tls = security(folder=folder).get_connection_args("client") if folder else {}
        await (await connect(address, timeout=30, **tls)).close()

    # The main thread has Playwright's event loop where browsers were tested before.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, connect_and_leave()).result()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates")
def test_machines_that_know_each_other_by_certificates(machines, tmp_path):
    app = Engine()

    def names() -> list[str]:
        return [host.name for host in app.hosts()]

    def succeeds() -> bool:
        return finish(app, app.submit(COUNT, SHORT, lane="lab")).value == SHORT

    try:
        wait(lambda: names() == ["first", "second"])
        wait(lambda: all(host.machine for host in app.hosts()))
        assert succeeds()
        run = finish(app, app.submit(RUN, replace(SHORT_RUN, host="first")))
        assert (run.status, run.worker) == ("finished", "first-train-0")
        machines.leave("second")
        wait(lambda: names() == ["first"])
        assert succeeds()
        machines.start("second")
        wait(lambda: names() == ["first", "second"])
        machines.leave("first")
        wait(lambda: names() == ["second"])
        assert succeeds()
    finally:
        app.close()
    nobody_else_is_let_in(os.environ["DASK_SCHEDULER_ADDRESS"], tmp_path / "other")


def nobody_else_is_let_in(address: str, folder: Path) -> None:
    knock(address, "certificates/first")
    with pytest.raises(CommClosedError):
        knock(address.replace("tls://", "tcp://"))
    folder.mkdir()
    subprocess.run([ROOT / "deploy" / "certificates", "third"], cwd=folder, check=True)
    stranger = folder / "certificates" / "third"
    with pytest.raises(CommClosedError):
        knock(address, str(stranger))
    shutil.copy("certificates/first/ca.pem", stranger)  # it trusts them, not they it
    with pytest.raises(CommClosedError):
        knock(address, str(stranger))
