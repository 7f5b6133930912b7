"""core.ui.people: who is here."""

from core.ui.people import People


def test_a_person_with_two_tabs_is_one_until_both_are_closed():
    """However often their tabs come and go."""
    here = People()
    for who in ("ana", "ana", "bo"):
        here.come(who)
    assert len(here) == 2
    here.go("ana")
    assert len(here) == 2
    here.go("ana")
    here.go("bo")
    assert len(here) == 0
