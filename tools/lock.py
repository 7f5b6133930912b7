"""Write locks/: the exact files that everything here is installed from.

    python -m tools.lock            # after a change to a list of requirements
    python -m tools.lock --upgrade  # with the newest versions that the lists allow

The lists of requirements say which versions are allowed. uv chooses one version of each
package for all lists, systems, and versions of Python, and keeps the versions in
locks/ that are still allowed. pip then accepts only files with the SHA-256 that PyPI
listed when the lock was written.

torch.txt has torch, torchvision, and the CUDA libraries that they need on Linux. No
other lock has these, so torch-cpu.txt can take its place. The builds without CUDA are
on PyTorch's own index, and nothing else is installed from there. Their versions are
exact, but without hashes. oldest.txt and oldest-cpu.txt have the oldest torch that is
allowed.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "locks"
LISTS = {  # a lock's name, and the list that it belongs to
    "web": "requirements-web.txt",
    "worker": "requirements-worker.txt",
    "dev": "requirements-dev.txt",
    "ci": ".ci/requirements.txt",
}
TORCH = ("torch", "torchvision")
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PYPI = "https://pypi.org/simple"
HEADER = "# Written by python -m tools.lock\n"


def entries(text: str) -> list[str]:
    """Each package of a lock, with its version, its marker, and its hashes."""
    return re.findall(r"^\w.*\n(?: .*\n)*", text, re.MULTILINE)


def name(entry: str) -> str:
    return entry.partition("==")[0].partition("[")[0]


def resolve(
    wanted: str, *, keep: str = "", fixed: str = "", oldest: bool = False
) -> list[str]:
    """The entries of all that the requirements need.

    `keep` has entries that are kept if the requirements allow them, `fixed` has entries
    that are kept in any case. Raises CalledProcessError if nothing fits.
    """
    with TemporaryDirectory() as folder:
        lock, constraints = Path(folder, "lock.txt"), Path(folder, "fixed.txt")
        lock.write_text(keep, "utf-8")
        constraints.write_text(fixed, "utf-8")
        command = [
            *(sys.executable, "-m", "uv", "pip", "compile", "--no-config", "--quiet"),
            *("--universal", "--python-version", "3.11", "--default-index", PYPI),
            # Whatever pip built from source would need packages that have no hashes.
            *("--generate-hashes", "--only-binary", ":all:"),
            *("--no-header", "--no-annotate", "--constraints", str(constraints)),
            *("--resolution", "lowest-direct" if oldest else "highest"),
            *("--output-file", str(lock), "-"),
        ]
        subprocess.run(command, input=wanted, text=True, cwd=ROOT, check=True)
        return entries(lock.read_text("utf-8"))


def write(lock: str, found: list[str], first: str = "") -> None:
    (LOCKS / f"{lock}.txt").write_text(HEADER + first + "".join(found), "utf-8")


def write_torch(lock: str, found: list[str]) -> set[str]:
    """Write both kinds of torch. Returns the names that no other lock may have."""
    parts = [
        entry
        for entry in found
        # On other systems, PyPI's torch has no CUDA.
        if name(entry) in TORCH or "sys_platform == 'linux'" in entry.partition("\n")[0]
    ]
    write(lock, parts)
    exact = [re.sub(r" .*\n", "\n", e, count=1, flags=re.DOTALL) for e in parts]
    exact = [entry for entry in exact if name(entry) in TORCH]
    write(f"{lock}-cpu", exact, f"--index-url {CPU_INDEX}\n")
    return {*map(name, parts)}


def present(*locks: str) -> str:
    """The entries of these locks, each once, as far as the locks exist."""
    files = [LOCKS / f"{lock}.txt" for lock in locks]
    texts = [file.read_text("utf-8") for file in files if file.exists()]
    return "".join(sorted({entry for text in texts for entry in entries(text)}))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.lock",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--upgrade", action="store_true")
    upgrade = parser.parse_args().upgrade
    LOCKS.mkdir(exist_ok=True)

    keep = "" if upgrade else present(*LISTS, "torch")
    every = "".join(resolve("".join(f"-r {f}\n" for f in LISTS.values()), keep=keep))
    worker = (ROOT / LISTS["worker"]).read_text("utf-8")
    torch = "".join(re.findall(rf"^(?:{'|'.join(TORCH)})\b.*\n", worker, re.MULTILINE))
    of_torch = write_torch("torch", resolve(torch, fixed=every))
    rest = "".join(entry for entry in entries(every) if name(entry) not in of_torch)
    keep = "" if upgrade else present("oldest")
    write_torch("oldest", resolve(torch, keep=keep, fixed=rest, oldest=True))

    found = {
        lock: [
            entry
            for entry in resolve(f"-r {file}\n", fixed=every)
            if name(entry) not in of_torch
        ]
        for lock, file in LISTS.items()
    }
    app = {*found["web"], *found["worker"]}
    found["dev"] = [entry for entry in found["dev"] if entry not in app]
    for lock, needed in found.items():
        write(lock, needed, "-r app.txt\n" if lock == "dev" else "")
    write("app", [], "-r web.txt\n-r worker.txt\n")


if __name__ == "__main__":
    main()
