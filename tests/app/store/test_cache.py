from core.store.cache import Cache


def test_the_newest_values_are_kept_until_they_are_dropped():
    asked = []

    def ask(owner: str, number: int) -> int:
        asked.append((owner, number))
        return 10 * number

    kept = Cache(ask, 3)
    for owner, number in (("a", 1), ("b", 2), ("a", 3), ("a", 1), ("a", 4)):
        assert kept(owner, number) == 10 * number
    assert asked == [("a", 1), ("b", 2), ("a", 3), ("a", 4)]
    assert (kept.kept("a", 4), kept.kept("b", 2)) == (40, None)
    kept("b", 2)  # made room for the last one
    kept.drop(lambda arguments, _: arguments[0] == "a")
    asked.clear()
    kept("b", 2)
    kept("a", 4)
    assert asked == [("a", 4)]


def test_a_value_that_is_read_while_it_is_dropped_is_not_kept():
    asked = []

    def ask() -> int:
        asked.append(1)
        if len(asked) == 1:
            kept.drop(lambda *_: True)
        return len(asked)

    kept = Cache(ask, 3)
    assert [kept(), kept(), kept()] == [1, 2, 2]


def test_a_value_that_could_not_be_had_is_asked_for_again():
    answers = iter([ValueError(), 1])

    def ask() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    kept = Cache(ask, 1)
    try:
        kept()
    except ValueError:
        assert kept() == kept() == 1
    else:
        raise AssertionError("the error was kept")
