"""`core.bench --record` piece by piece: a piece that fails costs no other."""

from core import bench
from tools.accelerator.step import Part, Results, Setting, SkipError, work_through

UNTRIED = "pinned copies, graphs, energy, and who wins a race."
# What each may take, at most: about twice what an NVIDIA H100 with 16 cores needed, and
# a guess for labs, epoch, loader and time_to_accuracy, which did not run there. By
# worth: the first are shown on most pages.
SECONDS = {
    "races": 40.0,
    "labs": 60.0,
    "breakdowns": 60.0,
    "crossovers": 130.0,
    "transfers": 10.0,
    "climbs": 240.0,
    "epoch": 120.0,
    "loader": 140.0,
    "memory": 10.0,
    "vectorize": 20.0,
    "copies": 10.0,
    "time_to_accuracy": 420.0,
}
REPEATS = 5


def run(setting: Setting, results: Results) -> None:
    repeats = 1 if setting.tiny else REPEATS
    pieces = bench.pieces(setting.task, setting.device, repeats, setting.tiny)
    parts = [Part(name, seconds, pieces[name]) for name, seconds in SECONDS.items()]

    def record() -> dict[str, str]:
        """The file that core/reference takes."""
        found = [results.parts[name]["found"] for name in pieces if results.done(name)]
        if not found:
            raise SkipError("There is no piece of it.")
        lacking = [name for name in pieces if not results.done(name)]
        head = bench.head(setting.task, setting.device)
        path = bench.record({**head, **bench.merged(found)}, setting.folder)
        return {"file": path.name, "lacks": ", ".join(lacking)}

    work_through([*parts, Part("record", 1.0, record, last=True)], setting, results)
