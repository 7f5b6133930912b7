"""`core.bench --record` piece by piece: a piece that fails costs no other."""

from core import bench
from tools.accelerator.step import Part, Results, Setting, SkipError, work_through

UNTRIED = "pinned copies, graphs, energy, and who wins a race."
# Each part's limit in seconds: about twice what an NVIDIA H100 with 16 cores needed.
# time_to_accuracy, which never ran there, has a guess. The climb took 59 s there with
# 20,000 images, and over 165 s with all 60,000. Parts that most pages show come first.
SECONDS = {
    "races": 40.0,
    "labs": 45.0,
    "breakdowns": 60.0,
    "crossovers": 130.0,
    "transfers": 10.0,
    "climbs": 400.0,
    "epoch": 160.0,
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
        found = [results.parts[name]["found"] for name in SECONDS if results.done(name)]
        if not found:
            raise SkipError("There is no piece of it.")
        lacking = [name for name in SECONDS if not results.done(name)]
        head = bench.head(setting.task, setting.device)
        path = bench.record({**head, **bench.merged(found)}, setting.folder)
        return {"file": path.name, "lacks": ", ".join(lacking)}

    work_through([*parts, Part("record", 1.0, record, last=True)], setting, results)
