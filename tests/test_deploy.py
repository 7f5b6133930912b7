import re

from tests.process import ROOT

MIB = {"m": 1, "MiB": 1, "g": 1024, "GiB": 1024}


def mebibytes(key: str, text: str) -> int:
    found = re.search(rf"\b{key}: (\d+)(\w+)", text)
    assert found
    return int(found[1]) * MIB[found[2]]


def test_the_proxy_has_memory_for_all_requests_that_it_takes() -> None:
    """Each takes 100 kB or more; Caddy frees memory before Docker ends it."""
    proxy = (ROOT / "deploy/compose.yaml").read_text().partition("  web:")[0]
    most = re.search(r"\{\$MOST:(\d+)\}", (ROOT / "deploy/Caddyfile").read_text())
    assert most
    aimed_at, limit = mebibytes("GOMEMLIMIT", proxy), mebibytes("mem_limit", proxy)
    assert int(most[1]) * 100_000 / 2**20 < aimed_at < 0.9 * limit
