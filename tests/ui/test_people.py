from core.ui import people


def test_a_person_with_two_tabs_is_one_until_both_are_closed():
    for who in ("ana", "ana", "bo"):
        people.count(who, 1)
    assert people.who() >= {"ana", "bo"}
    people.count("ana", -1)
    assert "ana" in people.who()
    people.count("ana", -1)
    people.count("bo", -1)
    assert people.who().isdisjoint({"ana", "bo"})
