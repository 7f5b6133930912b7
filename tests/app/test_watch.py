import pytest

from core.errors import CancelledError
from core.watch import Watch


@pytest.mark.parametrize("count", [0, 1, 2])
def test_items_end_where_somebody_cancels(count: int) -> None:
    answers = iter([False] * count + [True])
    items = Watch(cancelled=answers.__next__).until_cancelled("abc")
    assert [next(items) for _ in range(count)] == list("abc")[:count]
    with pytest.raises(CancelledError):
        next(items)


def test_work_is_not_begun_after_a_cancel() -> None:
    done: list[str] = []
    answers = iter([False, True])
    work = Watch(cancelled=answers.__next__).unless_cancelled(
        lambda: done.append("x") or 7
    )
    assert work() == 7
    with pytest.raises(CancelledError):
        work()
    assert done == ["x"]
