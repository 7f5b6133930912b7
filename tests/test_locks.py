"""What locks/ has, and that whatever is installed here is installed from there."""

import re
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.process import ROOT
from tools.lock import CPU_INDEX, HEADER, LISTS, TORCH, entries

LOCKS = {file.stem: file.read_text("utf-8") for file in (ROOT / "locks").glob("*.txt")}
CPU = {"torch-cpu", "oldest-cpu"}


def included(file: Path) -> str:
    """The text of a list or lock, and of those that it includes."""
    text = file.read_text("utf-8")
    for name in re.findall(r"^-r (\S+)$", text, re.MULTILINE):
        text += included(file.parent / name)
    return text


def requirements(text: str) -> list[Requirement]:
    """The requirements of a list, or the packages of a lock."""
    lines = re.findall(r"^\w[^#\\\n]*", text, re.MULTILINE)
    return [Requirement(line) for line in lines]


@cache
def versions(*locks: str) -> dict[str, str]:
    """The version of each package. AssertionError if a package has two."""
    found: dict[str, str] = {}
    for lock in locks:
        for package in requirements(included(ROOT / "locks" / f"{lock}.txt")):
            (pin,) = package.specifier
            assert pin.operator == "=="
            assert found.setdefault(package.name, pin.version) == pin.version
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_only_exact_versions_with_hashes(lock):
    text = LOCKS[lock].removeprefix(HEADER)
    parts = entries(text)
    rest = [line for line in text.splitlines(True) if not line.startswith("-")]
    assert "".join(parts) == "".join(rest)
    for entry in parts:
        hashed = r" [^\\]*\\\n(    --hash=sha256:[0-9a-f]{64}( \\)?\n)+"
        assert re.fullmatch(
            rf"[a-z0-9-]+==[\w.]+{'' if lock in CPU else hashed}\n?", entry
        )
    options = set(re.findall(r"^-.*", text, re.MULTILINE))
    if lock in CPU:  # one index, and nothing but what only this index has
        assert options == {f"--index-url {CPU_INDEX}"}
        assert versions(lock).keys() == {*TORCH}
        assert versions(lock).items() <= versions(lock.removesuffix("-cpu")).items()
    else:
        assert {line.partition(" ")[0] for line in options} <= {"-r"}


@pytest.mark.parametrize("lock", LISTS)
def test_a_lock_has_what_its_list_names_and_what_that_needs(lock):
    for torch in [["oldest"], ["torch"]] if lock in ("worker", "dev") else [[]]:
        locked = versions(lock, *torch)
        for package in requirements(included(ROOT / LISTS[lock])):
            assert locked[canonicalize_name(package.name)] in package.specifier
    for name in locked:
        try:
            needed = map(Requirement, metadata.requires(name) or ())
        except metadata.PackageNotFoundError:
            continue
        for package in needed:
            if package.marker is None or package.marker.evaluate({"extra": ""}):
                assert locked[canonicalize_name(package.name)] in package.specifier


def test_one_version_of_each_package_is_installed_and_its_license_is_listed():
    versions(*LISTS, "torch")
    table = (ROOT / "docs" / "licenses.md").read_text("utf-8").partition("## Lib")[2]
    named = set(re.findall(r"[\w-]+", table))
    assert versions("web", "worker", "torch").keys() <= named


def test_no_lock_but_that_of_torch_needs_an_index_of_its_own():
    for lock in LISTS:
        assert versions(lock).keys().isdisjoint(versions("torch"))


# Here the wheel is built and installed, as other projects install it.
AS_A_LIBRARY = re.compile(r'(?:^|[ "])\.(?:\[app\])?(?:$|[ "])')


def installs() -> list[str]:
    """Each command of this project that installs Python packages."""
    files = [ROOT / "Makefile", ROOT / "README.md", *(ROOT / "docs").glob("hosting.md")]
    files += [ROOT / ".devcontainer" / "devcontainer.json"]
    for folder in ("deploy", ".ci"):
        files += [file for file in (ROOT / folder).rglob("*") if file.is_file()]
    text = "\n".join(file.read_text("utf-8").replace("\\\n", "") for file in files)
    found = re.findall(r"\bpip\"? install ([^\n`&]*)", text)
    return [command.strip() for command in found]


def test_everything_is_installed_from_the_locks():
    commands = [c for c in installs() if not AS_A_LIBRARY.search(c)]
    assert len(commands) > 10
    for command in commands:
        files = re.findall(r"-r (\S+)", command)
        assert files, command
        assert all("locks/" in file for file in files)
        assert "index" not in command
        torch_alone = "--no-deps" in command and "torch" in command.lower()
        assert "--require-hashes" in command or torch_alone
