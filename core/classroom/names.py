"""Names of people and classes: two friendly words, or a name that somebody chose."""

import random
import re
import unicodedata
from collections.abc import Collection

from to_device.errors import ExplainedError
from to_device.words import Words

words = Words(__file__)

SHORTEST, LONGEST, LONGEST_OF_CLASS = 2, 24, 60  # lengths of names, in characters
# How the wall and the pages name people without a name in the class
APP, TEACHER, OUTSIDER = "The app itself", "The teacher", "Somebody outside the class"
RESERVED = (
    *(APP, TEACHER, OUTSIDER, "The app", "Teacher", "Your teacher"),
    *("You", "Nobody", "Somebody"),
)
MARKS = 2  # the most accents on a letter; some scripts need two
BETWEEN = " -'’.,"
# Alphabets with letters that look alike; a word may have letters from only one of them.
LOOKALIKE = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"}
LOOKALIKE |= {"GEORGIAN", "LISU"}
NO_INK = "\u115f\u1160\u3164\uffa0"  # letters of Korean that are drawn as a blank
# Cyrillic, then Greek letters, one of whose cases looks like the Latin letter below;
# then letters of Lisu, what is taken for an l, an o, or an a, and letters of Cherokee
AS_LATIN = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445"
    "\u0456\u0458\u0455\u0501\u04bb\u04cf\u051b\u051d"
    "\u03b1\u03b2\u03b5\u03b6\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7"
    "\ua4d0\ua4d1\ua4d3\ua4d4\ua4d6\ua4d7\ua4d9\ua4da\ua4dc\ua4dd\ua4df\ua4e0\ua4e1\ua4e2"
    "\ua4e3\ua4e6\ua4e7\ua4ea\ua4eb\ua4ec\ua4ee\ua4f0\ua4f2\ua4f3\ua4f4"
    "i1\u01310\u0251"
    "\u13aa\u13f4\u13df\u13a0\u13ac\u13c0\u13bb\u13ab\u13e6\u13de\u13b7\u13e2"
    "\u13a1\u13d2\u13da\u13a2\u13d9\u13b3\u13a9\u13c3",
    "abekmhopctylljsdhlqwabezhlkmnoptyxbpdtgkjczfmnlsrvhwxyaeloullloa"
    "abcdeghjklmprrstvwyz",
)
ACCENTS = re.compile("[\u0300-\u036f]")  # of Latin, Greek, and Cyrillic letters
SMALL_CAPITAL = re.compile("LATIN LETTER SMALL CAPITAL ([A-Z])")
FIRST, SECOND = words("names.first").split(), words("names.second").split()


def friendly(taken_names: Collection[str] = ()) -> str:
    """A random name that isn't taken, such as "Amber Otter"."""
    folded = set(map(fold, taken_names))
    while True:
        name = f"{random.choice(FIRST)} {random.choice(SECOND)}"
        if len(folded) > len(FIRST) * len(SECOND) // 2:
            name += f" {random.randrange(100_000)}"
        if fold(name) not in folded:
            return name


def tidy(text: str, taken_names: Collection[str] = (), longest: int = LONGEST) -> str:
    """The tidied name. Raises ExplainedError if it is taken or can't be a name.

    A name can't contain Markdown, become a link, or change the direction of writing.
    """
    name = " ".join(unicodedata.normalize("NFC", text[:1000]).split())
    if not SHORTEST <= len(name) <= longest:
        raise ExplainedError(words("names.length", least=SHORTEST, most=longest))
    marks = 0
    for place, character in enumerate(name):
        kind = unicodedata.category(character)[0]
        marks = marks + 1 if kind == "M" else 0
        fits = (kind in "LN" and character not in NO_INK) or (
            place > 0 and (kind == "M" or character in BETWEEN) and marks <= MARKS
        )
        is_list = character == "." and name[:place].isdigit()  # in Markdown, "1. Ada"
        if not fits or is_list:
            raise ExplainedError(words("names.letters"))
    if "www." in unicodedata.normalize("NFKC", name).casefold():
        raise ExplainedError(words("names.letters"))
    for word in unicodedata.normalize("NFKC", name).split():
        if len({script(letter) for letter in word} - {""}) > 1:
            raise ExplainedError(words("names.alphabets"))
    if fold(name) in map(fold, RESERVED):
        raise ExplainedError(words("names.reserved"))
    if fold(name) in map(fold, taken_names):
        raise ExplainedError(words("names.taken"))
    return name


def script(letter: str) -> str:
    """The letter's alphabet, if it is one of LOOKALIKE; otherwise, ""."""
    alphabet = unicodedata.name(letter, "").partition(" ")[0]
    return alphabet if alphabet in LOOKALIKE else ""


def fold(name: str) -> str:
    """A key that is the same for names that look the same.

    They may differ in case, accents, or punctuation, or have letters or digits that
    look like others.
    """
    parts = unicodedata.normalize("NFKD", name).casefold().translate(AS_LATIN)
    plain = ACCENTS.sub("", unicodedata.normalize("NFKD", parts))
    folded = unicodedata.normalize("NFC", "".join(map(_full_size, plain)))
    return "".join(filter(str.isalnum, folded))


def _full_size(letter: str) -> str:
    """The letter itself, or the Latin one that it is a small capital of."""
    small = SMALL_CAPITAL.fullmatch(unicodedata.name(letter, ""))
    return small[1].lower() if small else letter
