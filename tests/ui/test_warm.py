"""What the server has done before its first visitor comes."""

import socket

from core.jobs.cluster import ROOT
from core.ui import warm
from tests.process import python

LOAD = """
import gc, sys, time
from core.ui import warm

def best() -> float:
    def collect() -> float:
        began = time.perf_counter()
        gc.collect()
        return time.perf_counter() - began
    return min(collect() for _ in range(5))

before = best()
warm.load()
print(best() / before)
print(*sys.modules)
"""


def test_the_pages_code_is_there_and_costs_no_collection():
    """Collecting garbage takes a tenth of the time at most, and torch stays out."""
    ratio, modules = python("-c", LOAD).stdout.strip().splitlines()[-2:]
    assert float(ratio) < 0.1
    files = ROOT.joinpath("core", "ui").rglob("*.py")
    names = {".".join(each.relative_to(ROOT).with_suffix("").parts) for each in files}
    pages = {name for name in names if not name.endswith("__init__")}
    assert pages <= set(modules.split())
    assert "torch" not in modules.split()


def test_answers_do_not_wait_for_each_other():
    """A connection to a socket like Streamlit's sends small packets at once."""
    with socket.socket() as listening:  # says no protocol
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        warm.send_at_once()
        with socket.create_connection(listening.getsockname()):
            connection, _ = listening.accept()
            with connection:
                assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
