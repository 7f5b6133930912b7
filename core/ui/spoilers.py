"""Which results an open class may not see yet, since its members guess them first.

A member sees a result after guessing it. While the class's wall shows the guesses, but
not the result, no page shows the result either, and once the wall has shown the result,
every page does.
"""

from core.ui.server import room, visitor

FIRST_RUN = "first_run_guess"  # key of the guess what a first run will reach


def is_student(who: str = "") -> bool:
    """Whether a class is open, and `who` (by default this visitor) isn't its teacher.

    People who haven't joined count as students: they may be about to join.
    """
    who = who or visitor()
    return bool(who) and room().open is not None and not room().is_teacher(who)


def on_wall() -> tuple[str | None, ...]:
    """The open class, the guess that its wall shows, and the results that it has shown.

    Empty if no class is open.
    """
    classroom = room().open
    return (classroom.id, classroom.revealed, classroom.told) if classroom else ()


def are_held(key: str, who: str = "") -> bool:
    """Whether the wall shows the guesses with this key, and holds the result back."""
    return is_student(who) and room().revealed == key and not room().with_result


def are_told(key: str, who: str = "") -> bool:
    """Whether the wall has shown the result, so that no more guesses count."""
    return is_student(who) and key in room().told


def shown(key: str) -> tuple[tuple, str] | None:
    """The right answers, and the figure, that the wall has shown; None before that."""
    classroom = room().open
    if classroom is None or not are_told(key):
        return None
    answers, figure = room().shown(classroom.id).get(key) or ((), "")
    return (tuple(answers), figure) if figure else None


def is_too_late(key: str) -> bool:
    """Whether the open class may no longer guess, since a member knows the result."""
    return key in room().told or (key == FIRST_RUN and room().has_results)


def is_first_run_known() -> bool:
    return is_student() and is_too_late(FIRST_RUN)
