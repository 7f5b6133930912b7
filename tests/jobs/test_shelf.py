"""Bytes put aside."""

import sqlite3

import psutil
import pytest

from core.errors import ExplainedError
from core.jobs.shelf import Shelf, Stored


def test_what_is_put_aside_is_found_until_it_is_removed():
    """Under its name, the newest; what is removed twice is no error."""
    shelf = Shelf()
    shelf.put("a", b"old")
    shelf.put("a", b"new")
    assert shelf.get(Stored("a")) == b"new"
    shelf.remove("a")
    shelf.remove("a")
    with pytest.raises(ExplainedError, match="no longer kept"):
        shelf.get(Stored("a"))


def test_it_lies_in_no_memory_of_the_process():
    """Forty megabytes put aside make the process no ten larger."""
    shelf, process = Shelf(), psutil.Process()
    content = bytes(range(256)) * 1760  # 450 kB, as a checkpoint has
    shelf.put("warm up", content)
    before = process.memory_info().rss
    for number in range(100):
        shelf.put(str(number), content)
    assert process.memory_info().rss - before < 10e6
    assert shelf.get(Stored("99")) == content


def test_a_full_disk_loses_nothing():
    """What the disk does not take stays in memory, and is found as the rest."""
    shelf = Shelf()
    shelf.put("a", b"before")
    shelf._database.execute("PRAGMA max_page_count = 1")
    with pytest.raises(sqlite3.Error):
        shelf._database.execute("INSERT INTO shelf VALUES ('x', zeroblob(1000000))")
    shelf.put("b", bytes(1_000_000))
    assert shelf.get(Stored("a")) == b"before"
    assert shelf.get(Stored("b")) == bytes(1_000_000)
    shelf.remove("b")
    with pytest.raises(ExplainedError):
        shelf.get(Stored("b"))
