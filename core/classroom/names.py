"""What people in a class are called: two friendly words, or what they choose."""

import random
import unicodedata
from collections.abc import Collection

from core.errors import ExplainedError

SHORTEST, LONGEST = 2, 24  # characters of a person's
LONGEST_OF_CLASS = 60
MARKS = 2  # that one letter may carry, as some scripts need
BETWEEN = " -'’.,"

FIRST = """
    Amber Brave Bright Calm Cheerful Clever Coral Cozy Crisp Curious Daring Eager
    Early Fancy Gentle Golden Happy Honest Humble Jolly Kind Lively Lucky Merry
    Mellow Mighty Nimble Noble Olive Patient Polite Proud Quick Quiet Ruby Silver
    Sincere Steady Sunny Swift Tidy Velvet Violet Warm Wise Witty Young Zesty
    """.split()  # noqa: SIM905
SECOND = """
    Badger Beaver Bison Camel Cheetah Crane Deer Dolphin Eagle Falcon Ferret Finch
    Fox Gecko Gibbon Hare Heron Ibex Jackdaw Kestrel Kiwi Koala Lemur Lion Llama
    Lynx Magpie Marten Mole Moose Newt Ocelot Otter Owl Panda Pelican Penguin Puffin
    Quail Raven Robin Salmon Seal Stork Swan Tapir Tiger Toad Turtle Wombat
    """.split()  # noqa: SIM905

LENGTH = f"A name has {SHORTEST} to {{}} characters. Choose another."
LETTERS = (
    "A name begins with a letter or a digit and is made of letters, digits, spaces, "
    "hyphens, commas and periods. Choose another."
)
TAKEN = "Somebody in this class has that name already. Choose another."


def friendly(taken: Collection[str] = ()) -> str:
    """Two words that nobody in the class is called yet: "Amber Otter"."""
    known = {alike(each) for each in taken}
    while True:
        name = f"{random.choice(FIRST)} {random.choice(SECOND)}"
        if len(known) > len(FIRST) * len(SECOND) // 2:
            name += f" {random.randrange(100_000)}"
        if alike(name) not in known:
            return name


def chosen(text: str, taken: Collection[str] = (), longest: int = LONGEST) -> str:
    """The name that somebody chose, tidied; ExplainedError where it can't be theirs.

    What it is made of means nothing in Markdown, and turns no line around.
    """
    name = " ".join(unicodedata.normalize("NFC", text[:1000]).split())
    if not SHORTEST <= len(name) <= longest:
        raise ExplainedError(LENGTH.format(longest))
    marks = 0
    for place, character in enumerate(name):
        kind = unicodedata.category(character)[0]
        marks = marks + 1 if kind == "M" else 0
        fits = kind in "LN" or (
            place > 0 and (kind == "M" or character in BETWEEN) and marks <= MARKS
        )
        is_list = character == "." and name[:place].isdigit()  # as in "1. Ada"
        if not fits or is_list:
            raise ExplainedError(LETTERS)
    if alike(name) in map(alike, taken):
        raise ExplainedError(TAKEN)
    return name


def alike(name: str) -> str:
    """What is the same of names that a person would take for the same."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(filter(str.isalnum, folded))
