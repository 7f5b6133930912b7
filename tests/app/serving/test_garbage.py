from tests.process import python

ALLOCATE = """
import gc, weakref
from core.serving import garbage

class Ring: pass

def full() -> int:
    return gc.get_stats()[2]["collections"]

def grow() -> list:
    return [[n] for n in range(400_000)]

before = full()
old = grow()
by_python = full() - before

garbage.freeze()
before, ring = full(), Ring()
ring.itself, lost = ring, weakref.ref(ring)
gc.collect(1)  # it is old now
del ring
new = grow()
frozen, there = full() - before, lost() is not None
first, second = garbage.collect(), garbage.collect()
print(by_python > 0, frozen, there, first, second, lost())
"""


def test_full_collections_are_made_only_when_they_are_due():
    printed = python("-c", ALLOCATE).stdout.split()
    assert printed == ["True", "0", "True", "True", "False", "None"]
