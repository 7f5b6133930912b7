"""Collections of garbage: when they are due, and not whenever Python likes."""

import tomllib

from core.jobs.cluster import ROOT
from tests.process import python

ALLOCATE = """
import gc, weakref
from core.ui import garbage

class Ring: pass

def full() -> int:
    return gc.get_stats()[2]["collections"]

def grow() -> list:
    return [[n] for n in range(400_000)]

left_alone = full()
old = grow()
left_alone = full() - left_alone

garbage.spare_what_lives()
spared, ring = full(), Ring()
ring.itself, lost = ring, weakref.ref(ring)
gc.collect(1)  # it is old now
del ring
new = grow()
spared, there = full() - spared, lost() is not None
first, second = garbage.collect(), garbage.collect()
print(left_alone > 0, spared, there, first, second, lost())
"""


def test_full_collections_are_made_when_they_are_due_only():
    """Python makes some while much is allocated; spared, none until it is asked.

    Then garbage goes that is old, and it is not looked for again before there is more.
    """
    told = python("-c", ALLOCATE).stdout.split()
    assert told == ["True", "0", "True", "True", "False", "None"]


def test_streamlit_makes_no_full_collection_after_each_look():
    """With it 16 of 30 people were served in three minutes, without it all of them."""
    settings = tomllib.loads((ROOT / ".streamlit/config.toml").read_text("utf-8"))
    assert settings["runner"]["postScriptGC"] is False
