"""A dry run of a test suite: what pytest's plugin does where there is torch."""

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, wraps
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors
from torch.utils._pytree import tree_leaves

from to_device.dryrun import cuda, failure
from to_device.dryrun.command import SHARE_OF_MEMORY, available_memory, size
from to_device.dryrun.origins import SET_DATA, Origins
from to_device.dryrun.report import Failure
from to_device.dryrun.script import OURS, Line, Script
from to_device.names import NO_DEVICES, REPORTED, SIMULATED
from to_device.sim import ledger, memory, simulation
from to_device.sim.stand_ins import put

BESIDE_GPU = (
    "--dry-cuda steps aside: this machine has {}, and the tests run on it. To hide a "
    "GPU from NVIDIA or AMD, set CUDA_VISIBLE_DEVICES to nothing."
)
COMPILES = "The test failed, and a dry run skips the torch.compile that it calls."
COPIED = "this line copies a tensor to the CPU, but what it meets stays on the GPU"
TEST_FOLDERS = frozenset(("test", "tests"))  # of a project or of a package
PACK = torch._C._VariableFunctions._pack_padded_sequence  # its lengths are on the CPU
TO_NUMPY = (Tensor.numpy, Tensor.__array__)
# Names of the functions that move a tensor for their caller. In `to`, there may be
# functions without a name.
MOVERS = "to", "<lambda>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"


def install(root: Path, options: Any) -> "Suite | str":
    """Install the device for good, and return the plugin that watches the tests.

    Beside a real accelerator nothing is installed, and a sentence says so. Raises
    ValueError if the device doesn't work here.
    """
    if torch.accelerator.is_available():
        return BESIDE_GPU.format(torch.accelerator.current_accelerator())
    os.environ.update(NO_DEVICES)
    if why_not := simulation.offer():
        raise ValueError(why_not)
    limit = options.dry_cuda_memory
    memory.capacity = (
        size(limit) if limit else int(available_memory() * SHARE_OF_MEMORY)
    )
    suite = Suite(root, options.dry_cuda_own)
    cuda.install(suite.mode)
    suite.mode().__enter__()  # for good, so also while test modules are imported
    if options.dry_cuda_move:
        moving = Moving(root)
        moving.install()
        suite.modes.append(moving)
    for name, module in list(sys.modules.items()):
        if name.startswith("to_device."):
            vars(module)["__tracebackhide__"] = True  # in pytest's tracebacks
    return suite


class Sources(Script):
    """The files that may be to blame: below pytest's root, and in the named folders."""

    def __init__(self, root: Path, own: list[str]) -> None:
        self.main: set[str] = set()
        self.folders = f"{root}{os.sep}", f"{os.getcwd()}{os.sep}"
        self.named = tuple(f"{Path(folder).resolve()}{os.sep}" for folder in own)

    def owns(self, file: str) -> bool:
        return super().owns(file) or (
            file.startswith(self.named) and not file.startswith(OURS)
        )


class Watch:
    """What a test has made the device do since this object was made."""

    def __init__(self) -> None:
        self._before = ledger.counts.since(ledger.Counts())

    @property
    def counts(self) -> ledger.Counts:
        return ledger.counts.since(self._before)

    @property
    def waits(self) -> Any:
        return self.counts.waits

    @property
    def copies(self) -> Any:
        return self.counts.copies


class Suite:
    """Runs each test; once more, with a trace, if it fails for a device's reason.

    The trace, which names the line to change, would make every test slower. The second
    run makes fixtures anew, also those of the module and the session.
    """

    def __init__(self, root: Path, own: list[str]) -> None:
        self.origins = Origins(Sources(root, own), starts_processes=True)
        self.traces = False
        self.modes: list[Moving] = []
        self.root = root
        self.told = False  # whether a report told of a device error of the test
        self.is_installed = False

    def mode(self) -> TorchFunctionMode:
        return Mode(self)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        for item in items if self.modes else ():
            if call := getattr(item, "callspec", None):
                name_cuda(call.params)

    def watch(self) -> Watch:
        return Watch()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        from _pytest.runner import runtestprotocol

        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        self.told, watch, cuda.compiles = False, Watch(), False
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        counts = watch.counts
        busiest = self._busiest(counts.waits)
        if self.told:
            reports = self._traced(item, nextitem, reports)
        for report in reports:
            done: dict[str, Any] = {
                "operations": counts.operations.total(),
                "waits": counts.waits.total(),
                "busiest": busiest,
                "copies": counts.copies.total(),
                "copied": counts.copied.total(),
            }
            if missing := getattr(report, "missing", ""):
                done |= {"missing": missing, "when": report.when}
            if culprit := getattr(report, "culprit", ""):
                done["culprit"] = culprit
            report.user_properties.append((REPORTED, done))
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _busiest(self, waits: Counter[ledger.Event]) -> tuple[str, int] | None:
        """The line where a test waited most often, and how often."""
        lines: Counter[Line] = Counter()
        for event, times in waits.items():
            if event.file:
                lines[Line(event.file, event.line)] += times
        most = lines.most_common(1)
        return (self._place(most[0][0]), most[0][1]) if most else None

    def _traced(self, item: Any, nextitem: Any, first: list[Any]) -> list[Any]:
        """The reports of a second run with a trace, or the first ones if it passes."""
        from _pytest.runner import runtestprotocol

        if not self.is_installed:
            self.origins.install()
            self.is_installed = True
        item.session._setupstate.teardown_exact(None)
        self.told, self.traces = False, True
        try:
            item._initrequest()
            again = runtestprotocol(item, nextitem=nextitem, log=False)
        finally:
            self.traces = False
            self.origins.forget()
        return again if self.told else first

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[None]:
        if call.excinfo is None:
            return (yield)
        before = ledger.counts.since(ledger.Counts())
        report: Any = yield
        # The test didn't read the tensors that pytest shows of a failure.
        vars(ledger.counts).update(vars(before))
        if report.outcome != "failed":
            return report
        error = call.excinfo.value
        missing = self.missing(error)
        told = None if missing else self._told(error)
        if missing := missing or (COMPILES if cuda.compiles and not told else ""):
            report.outcome, report.missing = "skipped", missing
            report.longrepr = (str(item.path), item.location[1] or 0, missing)
        elif told:
            self.told = True
            report.sections.append(("on CUDA", "\n".join(self._lines(told))))
            if told.culprit and told.why:
                report.culprit = self._place(told.culprit)
        return report

    def _told(self, error: BaseException) -> Failure | None:
        """The device error that made a test fail, if one did."""
        causes = filter(failure.is_of_devices, failure.chain(error))
        cause = next(causes, None)
        if cause is None:
            return None
        told, copy = failure.explain(cause, self.origins), self._copy_of_test(cause)
        if copy and told.culprit and not self.is_test(told.culprit):
            return replace(told, culprit=copy, why=COPIED)  # no library is to blame
        return told

    def _copy_of_test(self, error: BaseException) -> Line | None:
        """The line of a test that copied what the failed call was given on the CPU."""
        hosts = [tensor for tensor in failure.given(error, Tensor) if tensor.is_cpu]
        roots = [origin.root for origin in map(self.origins.of, hosts) if origin]
        copies = [r.line for r in roots if r.is_fetched and self.is_test(r.line)]
        return copies[0] if copies and len(copies) == len(hosts) else None

    def is_test(self, line: Line) -> bool:
        return is_test_file(line.file, str(self.root))

    def missing(self, error: BaseException) -> str:
        """Why a test can't be judged here; "" if it can."""
        return next(
            filter(None, map(failure.missing_feature, failure.chain(error))), ""
        )

    def _lines(self, told: Failure) -> Iterator[str]:
        yield f"{told.kind}: {told.message.partition(chr(10))[0]}"
        for argument in told.arguments:
            name, at = argument.name or "a tensor", argument.line
            made = f", made at {self._at(at)}" if at else ""
            yield f"{name} {argument.shape} is on {argument.device}{made}"
        if told.culprit and told.why:
            yield f"The line to change ({told.why}):"
            yield f"  {self._at(told.culprit)}"

    def _at(self, line: Line) -> str:
        return f"{self._place(line)}  {line.code}"

    def _place(self, line: Line) -> str:
        return f"{line.file.removeprefix(f'{self.root}{os.sep}')}:{line.number}"


class Mode(TorchFunctionMode):
    """Sees each function of torch that a test calls."""

    def __init__(self, suite: Suite) -> None:
        super().__init__()
        self.suite = suite

    def __torch_function__(
        self, function: Any, _: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs, suite = kwargs or {}, self.suite
        for moving in suite.modes:
            args, kwargs = moving.arguments(function, args, kwargs)
        if suite.traces and function == SET_DATA:
            suite.origins.note_data(*args)
        try:
            result = cuda.call(function, args, dict(kwargs))
        except Exception as error:
            failure.attach(error, tree_leaves((args, kwargs)))
            raise
        for moving in suite.modes:
            result = moving.result(function, result, kwargs)
        name = getattr(function, "__name__", "")
        if suite.traces and name != "__get__":
            leaves = tree_leaves((args, kwargs))
            tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
            if not any(map(is_functorch_wrapped_tensor, tensors)):
                suite.origins.note(name, result, tensors)
                if name == "to" and result is args[0]:
                    suite.origins.note_kept(result, leaves)
        return result


class Moving:
    """Moves what a test makes to the device, as a test for CUDA would.

    A tensor moves if a test file makes it, and a model once it is made. So what the
    code under test makes without `device=` stays on the CPU, and fails as on CUDA.
    Where a test file names the CPU, the device is meant, in `device="cpu"` as well as
    in `.to("cpu")`: else what belongs together would part. Its own `.cpu()` does copy
    to the CPU, and so does its `.numpy()` first. The lengths that it gives to
    pack_padded_sequence are copied, too.
    """

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.makers = {*_device_constructors()} - {torch.Generator}
        names = "arange empty full ones rand randn tensor zeros"
        self.makers |= {getattr(torch, name) for name in names.split()}
        self.building = threading.local()  # the models whose __init__ runs

    def install(self) -> None:
        """Watch how models are made: those of today, and classes that come later."""
        waiting: list[Any] = [nn.Module]
        seen = set()
        while waiting:
            kind = waiting.pop()
            if kind not in seen:
                seen.add(kind)
                waiting += kind.__subclasses__()
                self._watch(kind)
        before = nn.Module.__init_subclass__

        def init_subclass(cls: Any, **options: Any) -> None:
            before(**options)
            self._watch(cls)

        nn.Module.__init_subclass__ = classmethod(init_subclass)  # type: ignore[assignment]
        from_numpy: Any = torch.from_numpy

        @wraps(from_numpy)
        def moving(array: Any) -> Tensor:
            return self._moved(from_numpy(array))

        # No TorchFunctionMode sees this function, nor the old classes of each dtype.
        put(torch, from_numpy=moving)
        for kind in torch._tensor_classes:
            if kind.__module__ == "torch":
                own = {"own": kind, "dtype": kind.dtype, "moved": self._moved}
                put(torch, **{kind.__name__: TensorClass(kind.__name__, (), own)})
        base_class: Any = torch.Tensor
        make = base_class.__new__

        def make_tensor(cls: Any, *args: Any, **kwargs: Any) -> Any:
            tensor = make(cls, *args, **kwargs)
            return self._moved(tensor) if cls is torch.Tensor else tensor

        base_class.__new__ = staticmethod(make_tensor)
        set_default: Any = torch.set_default_tensor_type
        put(torch, set_default_tensor_type=lambda t: set_default(own_class(t)))

    def _watch(self, kind: Any) -> None:
        init = vars(kind).get("__init__")
        if init is None:
            return

        @wraps(init)
        def wrapper(this: Any, *args: Any, **kwargs: Any) -> None:
            models = vars(self.building).setdefault("models", [])
            models.append(this)
            try:
                init(this, *args, **kwargs)
            finally:
                models.pop()
            if not models and self.is_for_test(sys._getframe(1)):
                this.to(torch.device(SIMULATED))  # "cuda" to who overrides it

        kind.__init__ = wrapper

    def arguments(
        self, function: Any, args: Any, kwargs: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        if function in TO_NUMPY and self.is_of_test(sys._getframe(2)):
            return (args[0].detach().cpu(), *args[1:]), kwargs
        if function is PACK and self.is_of_test(sys._getframe(2)):
            return (args[0], args[1].cpu(), *args[2:]), kwargs
        if function is Tensor.type:
            return tuple(map(own_class, args)), kwargs
        if function is Tensor.to and self.is_move_of_test(sys._getframe(2)):
            named = {name: cuda_for(value) for name, value in kwargs.items()}
            return tuple(map(cuda_for, args)), named
        return args, kwargs

    def result(self, function: Any, result: Any, kwargs: dict[str, Any]) -> Any:
        makes = function in self.makers and not kwargs.get("pin_memory")
        if not (makes and isinstance(result, Tensor)):
            return result
        # torch's own code names its input's device, as in nn.LSTM. What it makes for a
        # model moves later, with the model, so the CPU's generator draws the weights.
        builds = bool(vars(self.building).get("models"))
        return self._moved(result, directly=builds or kwargs.get("device") is not None)

    def _moved(self, tensor: Tensor, *, directly: bool = False) -> Tensor:
        """The tensor on the device, with the numbers that the CPU's generator drew."""
        if not (tensor.is_cpu and self.is_of_test(sys._getframe(2), directly)):
            return tensor
        return tensor.detach().to(SIMULATED).requires_grad_(tensor.requires_grad)

    def is_of_test(self, frame: FrameType | None, directly: bool = False) -> bool:
        """Whether a test file made the call: itself, or through numpy or torch."""
        loaded = map(sys.modules.get, () if directly else ("torch", "numpy"))
        libraries = tuple(str(Path(m.__file__ or "").parent) for m in loaded if m)
        while frame and frame.f_code.co_filename.startswith((OURS, *libraries)):
            frame = frame.f_back
        return frame is not None and self.is_test(frame)

    def is_move_of_test(self, frame: FrameType | None) -> bool:
        """Whether a test file moves a tensor, or what the tensor is a part of."""
        models = str(Path(nn.__file__).parent)
        while frame and not self.is_test(frame):
            code = frame.f_code
            inner = code.co_filename.startswith((OURS, models))
            if not inner and code.co_name not in MOVERS:
                return False
            frame = frame.f_back
        return frame is not None

    def is_for_test(self, frame: FrameType | None) -> bool:
        """Whether a test file made a model: itself, or through functions alone."""
        while frame:
            if self.is_test(frame):
                return True
            names = frame.f_code.co_varnames[:1]
            if names and isinstance(frame.f_locals.get(names[0]), nn.Module):
                return False
            frame = frame.f_back
        return False

    def is_test(self, frame: FrameType) -> bool:
        return is_test_file(frame.f_code.co_filename, self.root)


class TensorClass(type):
    """Stands for torch.FloatTensor, say: moves what a test makes by calling it."""

    own: Any  # torch's own class
    moved: Callable[[Tensor], Tensor]

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return cls.moved(cls.own(*args, **kwargs))

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.own)


def cuda_for(value: Any) -> Any:
    """CUDA, if the value names the CPU; else the value itself."""
    if isinstance(value, torch.device):
        return torch.device(SIMULATED) if value.type == "cpu" else value
    return "cuda" if isinstance(value, str) and value == "cpu" else value


def name_cuda(parameters: dict[str, Any]) -> None:
    """Let a test's parameters name CUDA where they name the CPU.

    Then a library that gets the device makes its tensors there, too. A test that names
    two devices has a reason to.
    """
    devices = [str(value) for value in parameters.values() if cuda.is_device(value)]
    if not any(device.startswith("cuda") for device in devices):
        parameters.update({name: cuda_for(v) for name, v in parameters.items()})


def own_class(value: Any) -> Any:
    return value.own if isinstance(value, TensorClass) else value


@cache
def is_test_file(file: str, root: str) -> bool:
    """Whether a file's name, or its folder in the project or its package, says so."""
    path = Path(file)
    if path.name.startswith(("test_", "conftest")) or path.stem.endswith("_test"):
        return True
    _, installed, inside = file.rpartition(f"{os.sep}site-packages{os.sep}")
    if not installed and not path.is_relative_to(root):
        return False
    folders = (Path(inside) if installed else path.relative_to(root)).parts[:-1]
    return not TEST_FOLDERS.isdisjoint(folders)
