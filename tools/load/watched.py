"""`python -m tools.load.watched`: how much longer a run takes that somebody watches.

The same run on a server of its own, in turn: watched to its end, and left alone by a
person who closes the tab and comes back when it has ended. The person has no browser,
so that only the server's part is measured; on a machine with nothing else on it.
"""

import argparse
import asyncio
import re
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from core.measure.speedup import paired
from tools.load.person import SERVED, START, run_in
from tools.load.record import Record
from tools.load.tab import Browser, Tab
from tools.server import start_server

PATIENCE = 300.0  # seconds that a run may take


async def seconds(url: str, address: str, watched: bool, pause: float) -> float:
    """Train once; the seconds of the run, as its page tells them."""
    browser, record = Browser(url), Record()
    tab = Tab(browser, record)

    def ended() -> bool:
        return any(SERVED in text for text in tab.texts())

    await tab.open(address)
    await tab.until(lambda: tab.can_press(START), "button to start with", 90)
    await tab.press(START)
    began = time.monotonic()
    if not watched:
        run = run_in(tab.query)
        await tab.close()
        await asyncio.sleep(pause)
        tab = Tab(browser, record)
        await tab.open(f"Train?run={run}")
    await tab.until(ended, "end of the run", PATIENCE)
    passed = time.monotonic() - began
    told = re.search(r"([\d.]+) s in all", " ".join(tab.texts()))
    assert told, tab
    await tab.close()
    kind = f"watched, {len(record.look) / passed:.1f} looks a second" * watched
    print(f"{told[1]} s {kind or 'alone'}", flush=True)
    return float(told[1])


async def measure(url: str, address: str, runs: int) -> None:
    """Print the ratio of pairs of runs, after one that warms up."""
    first = await seconds(url, address, True, 0)
    found: dict[bool, list[float]] = {True: [], False: []}
    for number in range(runs):
        # Either comes first as often as the other.
        for watched in (number % 2 == 0, number % 2 != 0):
            took = await seconds(url, address, watched, 1.2 * first)
            found[watched].append(took)
    ratio = paired(found[True], found[False])
    low, high = ratio.interval
    print(
        f"watched {median(found[True]):.1f} s, alone {median(found[False]):.1f} s: "
        f"{ratio.ratio:.3f} times as long ({low:.3f} to {high:.3f}, n = {ratio.n})"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.load.watched", description=__doc__
    )
    parser.add_argument("--runs", type=int, default=8, help="of each kind")
    parser.add_argument("--address", default="Train?epochs=20", help="what is trained")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = start_server(Path(folder))
        try:
            asyncio.run(measure(server.url, given.address, given.runs))
        finally:
            server.process.terminate()
            server.process.wait(20)
    return 0


if __name__ == "__main__":
    sys.exit(main())
