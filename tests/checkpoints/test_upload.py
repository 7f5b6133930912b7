"""Checkpoints from strangers: what is one of ours is found, all else is a sentence."""

import io
import json
import pickle
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from core import models
from core.checkpoints import dangers, upload
from core.checkpoints.results import Opened
from core.config import IMAGE_MODELS, RunConfig
from core.data import datasets
from core.errors import ExplainedError
from core.evaluate import evaluation
from core.jobs import sandbox
from core.run import to_checkpoint

pytestmark = pytest.mark.usefixtures("one_thread")

GIGABYTE = 2**30
WRITES = ("os.mkdir", "os.rename", "os.system", "subprocess.Popen", "socket.connect")


def saved(content: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    torch.save(content, file, **options)
    return file.getvalue()


def weights(model: str = "ann") -> dict[str, Tensor]:
    torch.manual_seed(0)
    return dict(models.build(model).state_dict())


def with_first(change: Callable[[Tensor], Tensor]) -> bytes:
    """A checkpoint of the ANN, its first weights changed."""
    state = weights()
    return saved({**state, "layers.1.weight": change(state["layers.1.weight"])})


def archive(compression: int = zipfile.ZIP_STORED, **entries: bytes) -> bytes:
    """A zip archive; in names, "__" stands for "/"."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as target:
        for name, content in entries.items():
            target.writestr(name.replace("__", "/"), content)
    return file.getvalue()


def header(text: str, length: int | None = None) -> bytes:
    """A file of safetensors that is all header."""
    return struct.pack("<Q", len(text) if length is None else length) + text.encode()


def nested(levels: int) -> bytes:
    """A pickle of lists in lists in lists."""
    return b"\x80\x02" + b"]" * levels + b"a" * (levels - 1) + b"."


def legacy_with_huge_storage() -> bytes:
    """The old format names a storage's size before its bytes: this one claims 8 GB."""
    file = saved({"a": torch.zeros(1000)}, _use_new_zipfile_serialization=False)
    size, claimed = b"M\xe8\x03", b"J\xff\xff\xff\x7f"
    assert size in file
    return file.replace(size, claimed)


def lying_about_its_size() -> bytes:
    """A zip whose index says that 1,200 bytes hold 20 million floats."""
    file, content = io.BytesIO(), saved({"a": torch.zeros(300)})
    with (
        zipfile.ZipFile(io.BytesIO(content)) as source,
        zipfile.ZipFile(file, "w") as target,
    ):
        for entry in source.infolist():
            size, claimed = b"M\x2c\x01", b"J\x00\x2d\x31\x01"
            target.writestr(entry, source.read(entry).replace(size, claimed))
    return file.getvalue()


def quantized() -> Tensor:
    return torch.quantize_per_tensor(torch.zeros(128, 784), 0.1, 0, torch.qint8)


def sparse() -> Tensor:
    return torch.eye(4).to_sparse()


GOOD = saved(weights())
TENSORS = safetensors.torch.save(weights())
ONE = torch.zeros(1)
MANY = range(5000)

HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "empty"),
    "image": (lambda: b"\x89PNG\r\n\x1a\n" + bytes(100), "a PNG image"),
    "text": (lambda: b"hello, world\n" * 9, "does not begin like one"),
    "plain pickle": (lambda: pickle.dumps(dangers.Payload(Path("x"))), "plain pickle"),
    "two bytes of a zip": (lambda: b"PK", "truncated"),
    "half of a zip": (lambda: GOOD[: len(GOOD) // 2], "truncated"),
    "a zip but for its end": (lambda: GOOD[:-30], "truncated"),
    "a zip with a hole": (lambda: GOOD[:900] + GOOD[5000:], "truncated"),
    "half of the old format": (
        lambda: saved(weights(), _use_new_zipfile_serialization=False)[:100_000],
        "truncated",
    ),
    "half of safetensors": (lambda: TENSORS[: len(TENSORS) // 2], "truncated"),
    "zip bomb": (
        lambda: archive(zipfile.ZIP_DEFLATED, a__data_pkl=b"", bomb=bytes(50_000_000)),
        "zip bomb",
    ),
    "other zip": (lambda: archive(word__document=b"text"), "no data.pkl"),
    "path in a zip": (
        lambda: archive(**{".._____evil__data.pkl": b"x"}),
        "leads out of its folder",
    ),
    "absolute path in a zip": (
        lambda: archive(**{"__etc__passwd": b"x"}),
        "leads out of its folder",
    ),
    "script": (
        lambda: archive(**{"m__data.pkl": b"x", "m__code__m.py": b"x"}),
        "TorchScript",
    ),
    "huge index": (
        lambda: archive(**{"m__data.pkl": b"]" * 3_000_000}),
        "names and shapes alone",
    ),
    "thousands of tensors": (
        lambda: saved({f"layer{i}": torch.zeros(1) for i in MANY}),
        "entries",
    ),
    "thousands of names": (
        lambda: saved({f"k{i}": ONE for i in MANY}),
        "5,000 entries",
    ),
    "thousands in safetensors": (
        lambda: safetensors.torch.save({f"k{i}": torch.zeros(1) for i in MANY}),
        "5,000 entries",
    ),
    "NaN": (lambda: with_first(lambda t: t / 0 * 0), "100,352 numbers that are NaN"),
    "infinity": (lambda: with_first(lambda t: t.abs() / 0), "NaN or infinite"),
    "tiny file, huge tensor": (
        lambda: saved({"layers.1.weight": ONE.expand(100_000, 100_000)}),
        "claims 4e+04 MB",
    ),
    "many views of one tensor": (
        lambda: saved({f"k{i}": torch.zeros(1).expand(40) for i in range(9)}),
        "would grow",
    ),
    "old format, huge storage": (legacy_with_huge_storage, "more memory|truncated"),
    "a lie about sizes": (lying_about_its_size, "truncated|claims"),
    "payload": (lambda: dangers.make_payload(Path("x")), "`io.open`"),
    "whole model": (lambda: saved(models.build("ann")), "`core.models.ANN`"),
    "header too long": (lambda: header("{}", 2**62), "claims 4,611,686"),
    "header of brackets": (lambda: header('{"a":' + "[" * 100_000), "truncated"),
    "header without tensors": (lambda: header("{}"), "no tensor"),
    "header of nonsense": (lambda: header('{"a": {"dtype": "X"}}'), "truncated"),
    "header of huge shapes": (
        lambda: header(
            json.dumps(
                {"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}
            )
        ),
        "truncated",
    ),
    "complex": (lambda: with_first(lambda t: t + 0j), "complex"),
    "sparse": (lambda: with_first(lambda _: sparse()), "sparse"),
    "quantized": (lambda: with_first(lambda _: quantized()), "quantized"),
    "meta": (lambda: with_first(lambda t: t.to("meta")), "meta"),
    "a tensor": (lambda: saved(ONE), "one Tensor, not a state_dict"),
    "a list": (lambda: saved([ONE]), "one list, not a state_dict"),
    "no tensors": (lambda: saved({"epoch": 3}), "no tensor"),
    "empty wrappers": (
        lambda: saved({"state_dict": {"model": {"net": {"module": {}}}}}),
        "no tensor",
    ),
    "names that are numbers": (lambda: saved({1: ONE}), "`1`, which no layer"),
    "an endless name": (lambda: saved({"a" * 10_000: ONE}), "which no layer"),
    "lists in lists": (
        lambda: archive(**{"m__data.pkl": nested(100_000), "m__version": b"3"}),
        "list|truncated",
    ),
}


def watch() -> list[str]:
    """From now on, whatever Python writes in this process is added to the list."""
    written: list[str] = []

    def look(event: str, arguments: tuple) -> None:
        if event == "open" and set(str(arguments[1])) & set("wax+"):
            written.append(str(arguments[0]))
        elif event in WRITES:
            written.append(event)

    sys.addaudithook(look)
    return written


def obey(path: Path) -> list[str]:
    """Runs in a child: do what the payload asks for; what was seen of it."""
    written = watch()
    function, arguments = dangers.Payload(path).__reduce__()
    function(*arguments).close()
    return written


def watched(file: bytes) -> tuple[str, list[str], int]:
    """Runs in a child: the sentence, what was written, and the peak of memory."""
    import resource

    written = watch()
    try:
        upload.open_untrusted(file, None)
        said = ""
    except ExplainedError as error:
        said = str(error)
    return said, written, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB on Linux")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused(name: str) -> None:
    """One sentence, nothing written, no process lost, less than a gigabyte."""
    make, sentence = HOSTILE[name]
    said, written, peak_bytes = sandbox.call(
        "tests.checkpoints.test_upload:watched",
        make(),
        seconds=upload.SECONDS,
        memory_bytes=upload.MEMORY_BYTES,
    )
    assert any(each in said for each in sentence.split("|")), said
    assert "Traceback" not in said
    assert "\n" not in said
    assert len(said) < 400
    assert written == []
    assert peak_bytes < GIGABYTE


def test_the_payload_is_real_and_the_watch_sees_it(tmp_path: Path) -> None:
    """Whoever obeys the payload writes its file, and is seen doing it."""
    marker = tmp_path / "marker"
    assert sandbox.call("tests.checkpoints.test_upload:obey", marker) == [str(marker)]
    assert marker.exists()


def test_too_large_is_refused_unopened(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file above the limit is refused without a process being started for it."""
    monkeypatch.setattr(sandbox, "call", None)
    with pytest.raises(ExplainedError, match="20 MB"):
        upload.open_safely(bytes(upload.MAX_BYTES + 1), "a.pt")


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/root/a.pt", "a\\b.pt", "..", "a\n.pt", "a\0.pt"]
)
def test_paths_in_names_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that could lead elsewhere is refused before the file is looked at."""
    monkeypatch.setattr(sandbox, "call", None)
    with pytest.raises(ExplainedError, match="Rename the file"):
        upload.open_safely(GOOD, name)


def test_a_stuck_file_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where opening takes too long the child is ended, and that is said."""
    monkeypatch.setattr(upload, "SECONDS", 0.0)
    with pytest.raises(ExplainedError, match="process of its own failed"):
        upload.open_safely(GOOD, "a.pt")


def test_names_are_harmless_on_a_page() -> None:
    """Markup in a name does not leave the sentence about it."""
    shown = upload._shown("<b>`x`</b>[a](http://b)\n# c")
    assert not set(shown[1:-1]) & set("<>`[]()#\n")


# What fits


def opened(file: bytes, model: str | None = None) -> Opened:
    return upload.open_untrusted(file, model)


def state(found: Opened) -> dict[str, Tensor]:
    assert found.checkpoint is not None
    return torch.load(io.BytesIO(found.checkpoint), weights_only=True)


def same(found: Opened, model: str = "ann") -> bool:
    mine, expected = state(found), weights(model)
    assert list(mine) == list(expected)
    return all(torch.equal(mine[name], expected[name]) for name in expected)


def prefixed(prefix: str) -> dict[str, Tensor]:
    return {f"{prefix}{name}": tensor for name, tensor in weights().items()}


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (weights(), ""),
        ({"state_dict": weights(), "epoch": 3}, "`state_dict`; beside it"),
        ({"model_state_dict": weights()}, "`model_state_dict`"),
        ({"model": {"state_dict": weights()}}, "`state_dict`"),
        (prefixed("module."), "DataParallel"),
        (prefixed("_orig_mod."), "torch.compile"),
        (prefixed("module._orig_mod."), "torch.compile"),
        ({**weights(), "epoch": 3}, "left out: `epoch`"),
        ({n: t.double() for n, t in weights().items()}, "float64 numbers"),
        ({n: nn.Parameter(t) for n, t in weights().items()}, ""),
    ],
)
def test_the_usual_ways_of_saving_fit(content: Any, note: str) -> None:
    """Bare, wrapped, prefixed or cast: the weights arrive, and it is said what was."""
    found = opened(saved(content))
    assert found.model == "ann"
    assert same(found)
    assert note in " ".join(found.notes)
    assert bool(note) == bool(found.notes)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_floats_are_cast(dtype: torch.dtype) -> None:
    """Half the bits become float32, with a note, and are the rounded weights."""
    rounded = {name: tensor.to(dtype) for name, tensor in weights().items()}
    found = opened(saved(rounded))
    assert "became float32" in found.notes[0]
    for name, tensor in state(found).items():
        assert torch.equal(tensor, rounded[name].float())


@pytest.mark.parametrize("model", ["ann", "cnn"])
def test_all_three_formats_fit(model: str) -> None:
    """The zip, the format before torch 1.6, and safetensors hold the same."""
    zipped = opened(to_checkpoint(_built(model)))
    old = opened(saved(weights(model), _use_new_zipfile_serialization=False))
    safe = opened(
        safetensors.torch.save({n: t.contiguous() for n, t in weights(model).items()})
    )
    for found in (zipped, old, safe):
        assert found.model == model
        assert same(found, model)
    assert len({found.format for found in (zipped, old, safe)}) == 3
    assert {each.device for each in zipped.tensors} == {"cpu"}
    assert {each.device for each in safe.tensors} == {"not recorded"}


def _built(model: str) -> nn.Module:
    torch.manual_seed(0)
    return models.build(model)


def test_the_device_in_the_file_is_told() -> None:
    """A file that was saved from CUDA says so, and opens on a machine without it."""
    found = opened(dangers.saved_from_cuda(GOOD, "cuda:3"))
    assert {each.device for each in found.tensors} == {"cuda:3"}
    assert same(found)


def test_other_names_are_matched_in_order() -> None:
    """Names of another script fit by their shapes in order, also for the CNN."""
    for model in IMAGE_MODELS:
        other = {f"net.l{i}.w": t for i, t in enumerate(weights(model).values())}
        found = opened(saved(other))
        assert same(found, model)
        assert [ours for _, ours in found.renamed] == list(weights(model))


def test_other_names_are_matched_when_sorted() -> None:
    """Safetensors sorts names, and the ANN's shapes still leave no doubt."""
    layers = ("fc1", "fc2", "fc3")
    names = [f"{layer}.{part}" for layer in layers for part in ("weight", "bias")]
    found = opened(
        safetensors.torch.save(dict(zip(names, weights().values(), strict=True)))
    )
    assert same(found)
    assert dict(found.renamed)["fc2.bias"] == "layers.3.bias"


# What does not fit


def test_differences_are_listed() -> None:
    """A missing, an unexpected and a misshapen entry are each named, nothing loads."""
    content = weights()
    content["extra"] = content.pop("layers.5.bias")
    content["layers.3.bias"] = torch.zeros(65)
    found = opened(saved(content))
    assert found.model == "ann"
    assert found.missing == ("layers.5.bias",)
    assert found.unexpected == ("extra",)
    assert found.misshapen == (("layers.3.bias", "float32 (65,)", "float32 (64,)"),)
    assert found.checkpoint is None


def test_integers_do_not_stand_in_for_floats() -> None:
    """Weights that are whole numbers are misshapen, though their shape is right."""
    found = opened(with_first(lambda t: t.long()))
    assert [each[0] for each in found.misshapen] == ["layers.1.weight"]
    assert found.checkpoint is None


def test_another_architecture_can_be_asked_for() -> None:
    """The ANN's file held against the CNN lacks all that a CNN has."""
    found = opened(GOOD, "cnn")
    assert (len(found.missing), len(found.unexpected)) == (26, 6)
    assert found.checkpoint is None


# Together with scripts that know nothing of this app

PLAIN = """
import sys
import torch
from torch import nn
torch.set_num_threads(1)
folder = sys.argv[1]
data = torch.load(folder + "/data.pt", weights_only=True)
images, labels = data["images"].float() / 255, data["labels"]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 128)
        self.fc2 = nn.Linear(128, 64)
        self.fc3 = nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.fc3(torch.relu(self.fc2(x)))

def correct(model):
    with torch.no_grad():
        return int((model(images).argmax(1) == labels).sum())

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(60):
    batch = torch.randint(len(labels), (64,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
    optimizer.step()
torch.save({"model_state_dict": model.state_dict()}, folder + "/plain.pt")

ours = nn.Module()
ours.layers = nn.Sequential(
    nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(),
    nn.Linear(64, 10),
)
ours.load_state_dict(torch.load(folder + "/ours.pt", weights_only=True))
print(correct(model), correct(ours.layers))
"""


def test_a_plain_script_and_this_app_agree(tmp_path: Path) -> None:
    """Its checkpoint is as good here as there, and ours is as good there as here."""
    test = datasets.load("sprites").test
    torch.save({"images": test.images, "labels": test.labels}, tmp_path / "data.pt")
    config = RunConfig(task="sprites")
    (tmp_path / "ours.pt").write_bytes(to_checkpoint(_built("ann")))
    done = subprocess.run(
        [sys.executable, "-I", "-c", PLAIN, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    theirs_there, ours_there = map(int, done.stdout.split())
    found = upload.open_safely((tmp_path / "plain.pt").read_bytes(), "plain.pt")
    assert found.checkpoint is not None
    assert dict(found.renamed)["fc1.weight"] == "layers.1.weight"
    theirs_here = evaluation.evaluate(found.checkpoint, config, "cpu").correct
    ours = (tmp_path / "ours.pt").read_bytes()
    ours_here = evaluation.evaluate(ours, config, "cpu").correct
    assert (theirs_here, ours_here) == (theirs_there, ours_there)
    assert theirs_here > 400
