from core.jobs.cluster import ROOT
from tests.process import python

LOAD = """
import gc, sys, time
from core.serving import startup

def best() -> float:
    def collect() -> float:
        began = time.perf_counter()
        gc.collect()
        return time.perf_counter() - began
    return min(collect() for _ in range(5))

before = best()
startup.load()
print(best() / before)
print(*sys.modules)
"""


def test_the_pages_code_is_there_and_costs_no_collection():
    ratio, modules = python("-c", LOAD).stdout.strip().splitlines()[-2:]
    assert float(ratio) < 0.1
    files = ROOT.joinpath("core", "ui").rglob("*.py")
    names = {".".join(each.relative_to(ROOT).with_suffix("").parts) for each in files}
    pages = {name for name in names if not name.endswith("__init__")}
    assert pages <= set(modules.split())
    assert "torch" not in modules.split()
