from core.jobs.cluster import ROOT
from tests.process import python

LOAD = """
import gc, sys
from core import startup

startup.load()
print(gc.get_freeze_count() > 10 * len(gc.get_objects()))
print(*sys.modules)
"""


def test_the_pages_code_is_there_and_costs_no_collection():
    frozen, modules = python("-c", LOAD).stdout.strip().splitlines()[-2:]
    assert frozen == "True"
    files = ROOT.joinpath("core", "ui").rglob("*.py")
    names = {".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files}
    pages = {name for name in names if not name.endswith("__init__")}
    assert pages <= set(modules.split())
    assert "torch" not in modules.split()
