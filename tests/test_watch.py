"""core.watch: how a long job tells of its progress, and hears that it is cancelled."""

import pytest

from core.errors import CancelledError, ExplainedError
from core.watch import UNWATCHED, Watch


def test_without_anybody_a_job_goes_on() -> None:
    """Whatever is reported is dropped, and nothing is ever cancelled."""
    UNWATCHED.report("something")
    UNWATCHED.check()
    assert list(UNWATCHED.each("abc")) == ["a", "b", "c"]


def test_what_is_reported_arrives() -> None:
    """As it is, in order."""
    told: list[int] = []
    watch = Watch(told.append)
    watch.report(1)
    watch.report(2)
    assert told == [1, 2]


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_items_end_where_somebody_cancels(taken: int) -> None:
    """The cancel is heard before the next item is handed out, once an item."""
    answers = iter([False] * taken + [True])
    items = Watch(cancelled=answers.__next__).each("abc")
    assert [next(items) for _ in range(taken)] == list("abc")[:taken]
    with pytest.raises(CancelledError):
        next(items)


def test_work_is_not_begun_after_a_cancel() -> None:
    """Before it, the work's own value comes back."""
    done: list[str] = []
    answers = iter([False, True])
    work = Watch(cancelled=answers.__next__).checked(lambda: done.append("x") or 7)
    assert work() == 7
    with pytest.raises(CancelledError):
        work()
    assert done == ["x"]


def tell(what: str, watch: Watch) -> str:
    watch.report(what)
    return what.upper()


def test_a_part_is_done_here_or_elsewhere() -> None:
    """By a function of this process, or of another machine's by its address."""
    told: list[str] = []
    here = Watch(told.append, host="a", elsewhere=lambda *asked: asked)
    assert [here.at(host, tell, "x") for host in ("a", "")] == ["X", "X"]
    assert told == ["x", "x"]
    assert here.at("b", tell, "x") == ("b", "tests.test_watch:tell", ("x",))
    with pytest.raises(ExplainedError, match="`b`"):
        UNWATCHED.at("b", tell, "x")
