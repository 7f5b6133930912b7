import re

import pytest

from core.classroom import names
from to_device.errors import ExplainedError


def test_a_made_up_name_is_valid_and_not_taken_however_many_are():
    made_up = []
    for _ in range(2000):
        made_up.append(names.friendly(made_up[-50:]))
    assert {names.tidy(name) for name in made_up} == set(made_up)
    all_pairs = [
        f"{first} {second}" for first in names.FIRST for second in names.SECOND
    ]
    assert names.friendly(all_pairs) not in all_pairs


def why(key: str) -> str:
    """A regular expression for the product's own sentence."""
    return re.escape(names.words(key))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("  Zoë   B ", "Zoë B"),
        ("Jean-Luc", "Jean-Luc"),
        ("李小龙", "李小龙"),
        ("O'Neil 2", "O'Neil 2"),
        ("9b, room 2", "9b, room 2"),
        ("प्रिया", "प्रिया"),
    ],
)
def test_a_name_of_any_script_is_allowed_and_tidied(typed, name):
    assert names.tidy(typed) == name


@pytest.mark.parametrize(
    "typed",
    [
        *("", " ", "x", "x" * 25, "a" * 10**6),
        *("a\u202eb", "a\u200bb", "a\x00b", "a\ud800b", "a" + "\u0301" * 9),
        *("**Ada**", "[a](b)", "<b>Ada", ":red[Ada]", "`Ada`", "$a$", "a|b", "a\\b"),
        *("Ada\u3164", "\u3164\u3164", "\u115fAda"),  # Korean letters without ink
        *("1. Ada", "- Ada", "# Ada", "Ada 🦊", "WWW.Ada.example", "ｗww.ada"),
    ],
)
def test_short_long_invisible_or_markdown_names_are_refused(typed):
    with pytest.raises(ExplainedError) as caught:
        names.tidy(typed)
    length = names.words("names.length", least=names.SHORTEST, most=names.LONGEST)
    assert str(caught.value) in (length, names.words("names.letters"))


@pytest.mark.parametrize(
    "typed", ["\u0410da", "Ad\u0430 L", "\u0391nna", "\u041e'Neil"]
)
def test_a_word_of_letters_from_several_alphabets_is_refused(typed):
    with pytest.raises(ExplainedError, match=why("names.alphabets")):
        names.tidy(typed)
    assert names.tidy("Ада L") == "Ада L"  # a word of each


TINY = "\u1d1b\u1d07\u1d00\u1d04\u029c\u1d07\u0280"  # teacher, in small capitals
CHEROKEE = "\u13a2\u13ac\u13aa\u13df\u13bb\u13ac\u13d2"


@pytest.mark.parametrize(
    "typed",
    ["The teacher", "The Teacher.", "You", "Teaċher", "ŤEACHER", TINY, CHEROKEE],
)
def test_nobody_has_a_name_by_which_the_wall_means_somebody_else(typed):
    with pytest.raises(ExplainedError, match=why("names.reserved")):
        names.tidy(typed)
    assert names.tidy("Teacher Tim")


def test_a_name_that_looks_like_one_of_another_alphabet_is_taken():
    cyrillic = "\u0421\u043e\u0440\u0430"
    lisu, dotless = "\ua4ee\ua4d3\ua4ee", "Al\u0131ce"
    for name, taken in (
        *((cyrillic, "Copa"), ("COPA", cyrillic), (lisu, "Ada"), (dotless, "Alice")),
        *(("AIice", "Alice"), ("0tter", "Otter"), ("Il1", "lll")),
    ):
        with pytest.raises(ExplainedError, match=why("names.taken")):
            names.tidy(name, [taken])
    assert names.tidy("Анна", ["Anna"]) == "Анна"


@pytest.mark.parametrize("typed", ["ada lovelace", "Ada-Lovelace", "ＡＤＡ lovelace"])
def test_a_name_that_looks_like_a_taken_one_is_refused(typed):
    with pytest.raises(ExplainedError, match=why("names.taken")):
        names.tidy(typed, ["Ada Lovelace"])
