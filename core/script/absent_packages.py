"""What stands in for packages that draw, or that show progress, in a visitor's script.

The server doesn't need them, so they may be absent. A notebook that draws its losses is
to be checked all the same.
"""

import importlib.util
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

PACKAGES = ("matplotlib", "seaborn", "tqdm")
PARTS = 3  # of what a script goes through, such as a figure's axes
RESULTS = {"subplots": 2, "hist": 3}  # how many values a function returns, if not one


class Drawn:
    """Whatever a package has: it takes any arguments, and each of its parts is another.

    Like the package, it reads tensors by NumPy, which takes no tensor on a GPU and none
    that autograd records.
    """

    def __init__(self, name: str = "") -> None:
        self._name = name

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        for value in (*arguments, *more.values()):
            for part in value if isinstance(value, list | tuple) else [value]:
                if hasattr(part, "__array__"):
                    part.__array__()
        count = RESULTS.get(self._name)
        return tuple(Drawn() for _ in range(count)) if count else Drawn()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Drawn(name)

    def __getitem__(self, key: object) -> "Drawn":
        return Drawn()

    def __setitem__(self, key: object, value: object) -> None:
        pass

    def __iter__(self) -> Iterator["Drawn"]:
        return iter([Drawn() for _ in range(PARTS)])

    def __len__(self) -> int:
        return PARTS

    def __enter__(self) -> "Drawn":
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Bar(Drawn):
    """A progress bar, which goes through what it gets."""

    def __init__(self, iterable: Iterable = (), *_: object, **__: object) -> None:
        super().__init__()
        self._iterable = iterable

    def __iter__(self) -> Iterator:
        return iter(self._iterable)

    def __len__(self) -> int:
        return len(self._iterable)  # type: ignore[arg-type]


class Package(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__.partition(".")[0] == "tqdm":
            bars = {"tqdm": Bar, "trange": lambda *ends, **_: Bar(range(*ends))}
            return bars.get(name, Drawn(name))
        return Drawn(name)


class Finder(MetaPathFinder, Loader):
    """Finds packages that aren't there, and all their modules."""

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name.partition(".")[0] not in self.packages:
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Package(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def stand_in() -> None:
    """Let this process import those of PACKAGES that are absent. Call this once."""
    absent = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    sys.meta_path.append(Finder(absent))
