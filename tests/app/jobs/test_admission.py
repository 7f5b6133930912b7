import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count

import pytest

from core.config import RunConfig
from core.jobs import admission
from core.jobs.admission import (
    SHORT_SECONDS,
    Admission,
    Asker,
    Limits,
    Questions,
    overdue,
    words,
)
from core.jobs.estimates import longer, spoken, work
from core.jobs.job import Job
from core.jobs.queue import Queue
from tests.app.jobs.follow import RUN, done, job, wait
from tests.figures import figures
from to_device.errors import ExplainedError

NO_TURN = re.escape(words("questions.no_turn"))
DEFAULT, HALF_AN_HOUR = RunConfig(), RunConfig.with_recipe(model="cnn", epochs=50)
IDS = count()


class Server:
    def __init__(self, **limits: int) -> None:
        self.admission, self.queue = Admission(limits=Limits(**limits)), Queue()

    def submit(
        self,
        owner: str,
        config: RunConfig = DEFAULT,
        lane: str = "train",
        network: str = "",
    ) -> Job:
        todo = work(RUN, (config,))
        job = Job(str(next(IDS)), RUN, (config,), lane, owner, work=todo)
        job = replace(job, network=network)
        self.admission.check(job, self.queue)
        self.queue.add(job)
        return job

    def did(self, config: RunConfig, seconds: float) -> None:
        self.admission.estimates.learn(done(seconds, config))

    def refused(self, *arguments: object, **more: str) -> str:
        with pytest.raises(ExplainedError) as error:
            self.submit(*arguments, **more)
        return str(error.value)


def too_much_work(most: float) -> str:
    """The refusal of a long job, for which there would be more seconds of work."""
    return words("refused.work", most=spoken(most), short=spoken(SHORT_SECONDS))


def test_a_person_has_so_many_and_the_server_as_many_as_it_wants():
    server = Server(max_jobs_per_person=2)
    running = server.submit("ada")
    server.queue.take(running)
    server.submit("ada", DEFAULT, "lab")
    assert server.refused("ada") == words("refused.many", jobs="2 jobs")
    for other in ("bob", "", "", ""):
        server.submit(other)
    server.queue.remove(running.id)
    server.submit("ada")


def test_the_queue_has_an_end():
    server = Server(max_waiting_jobs=3)
    for number in range(3):
        server.submit(f"cookie {number}")
    assert server.refused("bob") == words("refused.full", count=3)
    server.submit("bob", DEFAULT, "lab")


def test_short_jobs_fill_three_times_as_much_of_the_queue_as_long_ones():
    """Then hundreds with a run of seconds are served, and nobody waits for a day."""
    server = Server(max_waiting_seconds=600)
    server.did(HALF_AN_HOUR, 100.0)
    server.did(DEFAULT, 5.0)
    for number in range(6):
        server.submit(f"long {number}", HALF_AN_HOUR)
    assert server.refused("eve", HALF_AN_HOUR) == too_much_work(600)
    for number in range(240):
        server.submit(f"short {number}")
    assert server.refused("bob") == words("refused.full", count=246)


def test_in_a_full_queue_the_network_with_the_most_jobs_makes_room():
    server = Server(max_waiting_jobs=5)

    def asks(owner: str, network: str) -> Job | None:
        return server.admission.gives_way(
            job(owner=owner, network=network), server.queue
        )

    for number in range(4):
        server.submit(f"cookie {number}", network="one")
    assert asks("bob", "another") is None
    server.submit("ada")  # a member of a class, or of an unknown network
    newest = asks("bob", "another")
    assert newest.owner == "cookie 3"
    server.queue.remove(newest.id)
    server.submit("bob", network="another")
    full = words("refused.full", count=5)
    assert server.refused("eve", network="one") == full
    assert asks("carol", "another").owner == "cookie 2"
    server.queue.remove(asks("carol", "another").id)
    server.submit("carol", network="another")
    assert server.refused("dan", network="another") == full


@pytest.mark.parametrize(("long", "short"), [(None, None), (600.0, 60.0)])
def test_a_script_with_fresh_cookies_queues_no_hours_of_work(long, short):
    """Twenty long runs: those that make an hour wait, and a class still fits."""
    server = Server()
    if long is not None:
        server.did(HALF_AN_HOUR, long)
        server.did(DEFAULT, short)
    hour = 3600 // int(long or 300)
    for number in range(hour):
        server.submit(f"cookie {number}", HALF_AN_HOUR)
    for number in range(hour, 20):
        refusal = server.refused(f"cookie {number}", HALF_AN_HOUR)
        assert refusal == too_much_work(3600)
    for number in range(100):
        server.submit(f"person {number}")


def test_a_run_that_would_be_cut_is_refused_at_once():
    server = Server(max_job_seconds=100)
    server.did(DEFAULT, 65)
    twice = replace(DEFAULT, epochs=2 * DEFAULT.epochs)
    times = {"expected": longer(130, 100), "most": spoken(100)}
    assert server.refused("ada", twice) == words("refused.long", **times)


def test_no_job_is_thought_to_take_longer_than_jobs_may_take():
    """As when a clock goes on during a laptop's sleep, as some do."""
    server = Server(max_job_seconds=100)
    server.did(DEFAULT, 3 * 3600)
    assert server.admission.estimates.seconds(server.submit("ada")) == 100


def test_limits_are_set_by_the_environment(monkeypatch):
    monkeypatch.setenv("MAX_JOB_SECONDS", "90")
    monkeypatch.setenv("MAX_WAITING_JOBS", "")
    assert Limits.from_environment() == Limits(max_job_seconds=90)
    assert Admission().seconds("") == 90
    assert figures(overdue(90)) == ["90"]


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", "²"])
def test_a_limit_that_is_no_number_is_a_sentence(monkeypatch, text):
    monkeypatch.setenv("MAX_WAITING_JOBS", text)
    with pytest.raises(ExplainedError, match="MAX_WAITING_JOBS"):
        Limits.from_environment()


@pytest.mark.parametrize(("in_all", "per_person"), [(4, 2), (2, 1)])
def test_one_person_cannot_fill_the_queue(in_all, per_person):
    questions, owners = Questions(in_all, per_person), list[str]()
    go_on = threading.Event()

    def ask(owner: str) -> None:
        with questions.turn(owner, 60):
            owners.append(owner)
            go_on.wait(60)

    with ThreadPoolExecutor(4) as people:
        people.map(ask, ("eve", "eve", "eve", "ada"))
        wait(lambda: sorted(owners) == ["ada", *["eve"] * per_person])
        go_on.set()
    assert sorted(owners) == ["ada", "eve", "eve", "eve"]


def order_of(askers: list[Asker]) -> list[str]:
    """Whom one place serves first, if all of them wait for it."""
    questions, owners = Questions(1, 1), list[str]()

    def ask(asker: Asker) -> None:
        with questions.turn(asker, 60):
            owners.append(asker.owner)

    with ThreadPoolExecutor(len(askers)) as people, questions.turn("first", 5):
        for number, asker in enumerate(askers, 2):
            people.submit(ask, asker)
            wait(lambda number=number: questions.ahead("x") == number)
    return owners


def test_addresses_take_turns_however_many_cookies_each_has():
    flood = [Asker(f"flood {n}", address="a") for n in range(6)]
    ada, bob = Asker("ada", address="b"), Asker("bob", address="c")
    order = order_of([*flood, ada, bob])
    assert {*order[:3]} == {"flood 0", "ada", "bob"}


def test_members_come_first_and_new_cookies_last():
    now = time.monotonic()
    new = [Asker(f"new {n}", since=now) for n in range(3)]
    outside = [Asker(f"outside {n}", person="outside") for n in range(2)]
    order = order_of([*new, *outside, Asker("member")])
    assert order == ["member", "outside 0", "outside 1", "new 0", "new 1", "new 2"]


def test_people_who_count_as_one_share_a_place():
    questions = Questions(2, 1)
    with questions.turn(Asker("eve", "outside"), 5):
        with (
            pytest.raises(ExplainedError, match=NO_TURN),
            questions.turn(Asker("mallory", "outside"), 0.05),
        ):
            pytest.fail("that place is taken")
        with questions.turn(Asker("ada"), 5):
            pass


def test_a_turn_that_does_not_come_is_a_sentence():
    questions = Questions(1, 1)
    with questions.turn("ada", 5):
        for owner in ("ada", "bob"):
            with (
                pytest.raises(ExplainedError, match=NO_TURN),
                questions.turn(owner, 0.05),
            ):
                pytest.fail("there is one thread")
        with questions.turn("", 0):  # the server's own is no guest
            pass
    for owner in ("ada", "bob"):
        with questions.turn(owner, 0.05):
            pass


def test_how_many_come_first_is_known_before_one_waits():
    questions = Questions(2, 1)
    assert questions.ahead("ada") == 0
    with questions.turn("ada", 5):
        assert [questions.ahead(owner) for owner in ("ada", "bob")] == [1, 0]
        with questions.turn("bob", 5):
            assert [questions.ahead(owner) for owner in ("ada", "eve")] == [1, 1]
    assert questions.ahead("ada") == 0


def test_many_open_questions_are_refused(monkeypatch):
    """A person who opens a hundred tabs takes no hundred threads of the server."""
    monkeypatch.setattr(admission, "OPEN_QUESTIONS", 1)
    questions = Questions(1, 1)
    for _ in range(2):
        with (
            pytest.raises(ExplainedError, match=re.escape(words("questions.too_many"))),
            questions.turn("ada", 5),
            questions.turn("ada", 5),
        ):
            pytest.fail("she has enough")


def test_many_open_questions_of_an_address_are_refused_whoever_asks(monkeypatch):
    """But not those of a class of a hundred behind it, in two tabs each."""
    assert admission.OPEN_OF_ADDRESS >= 200
    monkeypatch.setattr(admission, "OPEN_OF_ADDRESS", 2)
    questions = Questions(4, 2)

    def turn(owner: str, address: str):
        return questions.turn(Asker(owner, address=address), 5)

    for _ in range(2):
        with turn("flood 0", "a"), turn("flood 1", "a"), turn("ada", "b"):
            here = re.escape(words("questions.too_many_here"))
            with pytest.raises(ExplainedError, match=here), turn("flood 2", "a"):
                pytest.fail("they have enough")


@pytest.mark.parametrize(
    ("most", "times", "age"),
    [(2, 1, 0), (3, 2, 7 * 86_400)],  # a newer cookie, and an older one that asks twice
)
def test_a_person_takes_a_place_of_those_who_flood_the_same_address(
    monkeypatch, most, times, age
):
    monkeypatch.setattr(admission, "OPEN_OF_ADDRESS", most)
    questions, refused = Questions(1, 1), list[str]()
    now = time.monotonic()

    def flood() -> None:
        try:
            with questions.turn(Asker("flood", address="a", since=now - age), 60):
                pass
        except ExplainedError as error:
            refused.append(str(error))

    with (
        ThreadPoolExecutor(times) as people,
        questions.turn(Asker("bob", address="a"), 5),
    ):
        for _ in range(times):
            people.submit(flood)
        wait(lambda: questions.ahead("x") == 1 + times)
        ada = Asker("ada", address="a", since=now - 3600)
        with (
            pytest.raises(ExplainedError, match=NO_TURN),
            questions.turn(ada, 0.05),
        ):
            pytest.fail("the place is taken")
        wait(lambda: refused == [words("questions.too_many_here")])
    assert questions.ahead("x") == 0


def test_only_those_wake_whose_turn_it_is(monkeypatch):
    """If each who waits looked who is next, 40 would look 20,000 times."""
    looks = []
    rank = Asker.rank
    monkeypatch.setattr(Asker, "rank", lambda self: looks.append(self) or rank(self))
    order = order_of([Asker(f"{n}", address=f"{n}") for n in range(40)])
    assert order == [f"{n}" for n in range(40)]
    assert len(looks) <= 1 + 40 * 41 / 2
