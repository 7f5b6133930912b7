import pytest
from streamlit.testing.v1 import AppTest

from core.jobs.job import Job
from core.ui import job_panel
from core.ui import last_measurement as measured
from core.ui import polling as looks
from core.ui.job_panel import JobPanel, words
from tests.app import samples
from tests.figures import figures
from to_device.errors import ExplainedError

ADDRESS = "core.lessons.compare.race:race"


class FakeEngine:
    """Keeps jobs as they are given; nothing runs."""

    problem = ""
    refuses = ""
    paused = False
    seconds: float | None = None  # until any turn

    def __init__(self, *jobs: Job) -> None:
        self.known = list(jobs)

    def jobs(self, address: str, owner: str) -> list[Job]:
        return [
            job for job in self.known if (job.address, job.owner) == (address, owner)
        ]

    def submit(self, address: str, *arguments: object, lane: str, owner: str) -> None:
        if self.refuses:
            raise ExplainedError(self.refuses)
        job = Job(str(len(self.known)), address, arguments, lane, owner)
        self.known.append(job)

    def job(self, job_id: str) -> Job:
        return next(job for job in self.known if job.id == job_id)

    def wait(self, _job_id: str) -> float | None:
        return self.seconds

    def cancel(self, job_id: str) -> None:
        raise NotImplementedError


@pytest.fixture
def use(monkeypatch):
    """Put an engine with these jobs in the place of the real one.

    `before` is what was measured on this machine last.
    """

    def with_jobs(*jobs: Job, before: Job | None = None) -> FakeEngine:
        engine = FakeEngine(*jobs)
        monkeypatch.setattr(job_panel, "engine", lambda: engine)
        monkeypatch.setattr(job_panel, "visitor", lambda: "me")
        monkeypatch.setattr(looks, "visitor", lambda: "me")
        monkeypatch.setattr(measured, "visitor", lambda: "me")
        monkeypatch.setattr(measured, "newest", lambda *_: before)
        return engine

    return with_jobs


def test_a_job_that_a_stop_of_the_app_ended_says_so_and_can_be_started_again(use):
    cut = Job("0", ADDRESS, (1,), "train", "me", "interrupted", message="It stopped.")
    use(cut)
    at = drawn()
    assert not at.exception
    assert "It stopped." in {element.proto.text for element in at.get("progress")}
    assert "drawn interrupted" in {markdown.value for markdown in at.markdown}
    assert not at.button(key="start").disabled


def drawn(about_one: bool = False) -> AppTest:
    def page(about_one: bool) -> None:
        import streamlit as st

        from core.ui.job_panel import JobPanel

        panel = JobPanel(
            "core.lessons.compare.race:race",
            "The race",
            "start",
            about=lambda number: number == 1 or not about_one,
            measures=True,
        )
        panel.buttons("Start", (1,))
        panel.follow(lambda job: st.markdown(f"drawn {job.status}"), "Nothing yet.")

    at = AppTest.from_function(page, default_timeout=60, args=(about_one,)).run()
    assert not at.exception
    return at


def slots(at: AppTest) -> list[str]:
    return [slot.proto.text for slot in at.get("progress")]


def job(job_id: str, status: str, *arguments: object, **more: object) -> Job:
    return Job(job_id, ADDRESS, arguments, "train", "me", status, **more)


def test_a_double_click_starts_one_job(use):
    engine = use()
    panel = JobPanel(ADDRESS, "The race", "start")
    panel.submit(1)
    panel.submit(1)
    assert len(engine.known) == 1
    engine.known[0] = job("0", "finished", 1)
    panel.submit(2)
    assert [job.arguments for job in engine.known] == [(1,), (2,)]


def test_who_has_measured_nothing_sees_what_others_have(use):
    somebodys = Job("x", ADDRESS, (2,), "train", "ada", "finished", value=samples.RACE)
    use(before=somebodys)
    at = drawn()
    assert at.markdown[0].value.endswith(measured.sentence(somebodys))
    assert at.markdown[1].value == "drawn finished"
    assert not at.button(key="start").disabled
    assert at.button(key="start").proto.type == "secondary"
    use(job("a", "cancelled", 1), before=somebodys)
    assert [text.value for text in drawn().markdown] == ["drawn cancelled"]


@pytest.mark.parametrize(
    ("status", "message", "sentence"),
    [
        ("queued", "", words("queue.place", place=2)),
        ("starting", "Another app is busy.", "The race: Another app is busy."),
        ("running", "", ""),
    ],
)
def test_what_goes_on_can_be_cancelled_and_not_started(use, status, message, sentence):
    use(job("a", status, 1, place=2, message=message))
    at = drawn()
    assert [button.proto.label for button in at.button] == ["Cancel"]
    assert sentence in "".join(slots(at))
    assert bool(at.markdown) == (status != "queued")


@pytest.mark.parametrize(
    ("status", "why", "sentence"),
    [("failed", "why", "why"), ("cancelled", "", "still"), ("cancelled", "why", "why")],
)
def test_a_bad_end_is_shown_above_the_partial_result(use, status, why, sentence):
    use(job("a", status, 1, message=why))
    at = drawn()
    assert len(slots(at)) == 1  # as much as while it went on
    assert sentence in (at.error[0].value if at.error else slots(at)[0])
    assert at.markdown[0].value == f"drawn {status}"
    assert not at.button(key="start").disabled


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(None, ["1"]), (0.3, ["1"]), (40.4, ["1", "40"]), (125.0, ["1", "2"])],
)
def test_the_expected_wait_is_shown_where_it_is_known(use, seconds, told):
    engine, waiting = use(), job("a", "queued", 1, place=1)
    engine.seconds = seconds
    text = job_panel.place_in_queue(waiting)
    assert figures(text) == told
    assert (words("queue.unknown") in text) is (seconds is None)
    engine.paused = True
    assert words("queue.paused") in job_panel.place_in_queue(waiting)


def test_a_refusal_is_shown_beside_the_button(use):
    engine = use()
    engine.refuses = "You have 4 jobs waiting or running."
    at = drawn().button(key="start").click().run()
    assert [warning.value for warning in at.warning] == [engine.refuses]
    assert not at.button(key="start").disabled
    assert not at.run().warning


def test_what_goes_on_with_other_settings_is_found_again(use):
    """A second of the same person waits for it, also when a reload has forgotten it."""
    others = job("x", "finished", 1), job("a", "finished", 1)
    engine = use(*others, job("b", "running", 2))
    panel = JobPanel(ADDRESS, "The race", "start", about=lambda number: number == 1)
    panel.submit(1)
    assert len(engine.known) == 3
    assert panel.job is not None
    assert panel.job.id == "a"
    at = drawn(about_one=True)
    assert len(at.info) == 1
    assert len(slots(at)) == 1
    assert [button.key for button in at.button] == ["cancel_start"]
