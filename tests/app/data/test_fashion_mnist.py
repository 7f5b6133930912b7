from collections.abc import Callable
from pathlib import Path

import pytest

from core.data import fashion_mnist
from tests.app.data.mirror import IMAGES, LABELS, NAMES, Files, bodies, put
from to_device.errors import ExplainedError


@pytest.mark.parametrize("packed", [False, True])
def test_whole_files_are_read(folder: Path, published: Files, packed: bool) -> None:
    for name in NAMES:
        (folder / name).unlink()
    put(folder, published, packed)
    assert fashion_mnist.read() == (folder, bodies(published))


# How files are spoiled, and what the refusal then names.
DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "truncated": (lambda data: data[:-1], r"[\d,]+ of [\d,]+ bytes"),
    "empty": (lambda _: b"", r"\b0 of [\d,]+ bytes"),
    "too long": (lambda data: data + b"x", r"more than [\d,]+ bytes"),
    "altered byte": (lambda data: data[:-9] + b"?" + data[-8:], "SHA-256"),
    "other shape": (lambda data: data[:4] + b"\1" + data[5:], "SHA-256"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", [IMAGES, LABELS])
def test_damaged_files_are_refused(
    folder: Path, name: str, damage: str, packed: bool
) -> None:
    spoil, problem = DAMAGE[damage]
    data = spoil((folder / name).read_bytes())
    (folder / name).unlink()
    put(folder, {name: data}, packed)
    with pytest.raises(ExplainedError, match=problem) as caught:
        fashion_mnist.read()
    assert str(folder / name) in str(caught.value)
    assert "FASHION_MNIST_DIR" in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_missing_files_are_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ExplainedError, match=name) as caught:
        fashion_mnist.read()
    assert "FASHION_MNIST_DIR" in str(caught.value)


def test_damage_in_the_data_folder_is_mended_by_fetching(published: Files) -> None:
    put(fashion_mnist.DATA_FOLDER, {**published, IMAGES: b"half"})
    with pytest.raises(ExplainedError, match=IMAGES) as caught:
        fashion_mnist.read()
    assert fashion_mnist.OTHER_WAYS not in str(caught.value)


@pytest.mark.parametrize("wrong", ["nowhere", "file", "empty"])
def test_wrong_folder_is_an_error(
    published: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: str
) -> None:
    put(fashion_mnist.DATA_FOLDER, published)
    (tmp_path / "file").write_text("a file, not a folder")
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("FASHION_MNIST_DIR", str(tmp_path / wrong))
    assert fashion_mnist.find() == tmp_path / wrong
    with pytest.raises(ExplainedError, match=str(tmp_path / wrong)):
        fashion_mnist.read()


def test_nothing_here_is_an_error_with_ways_out(published: Files) -> None:
    assert published
    assert fashion_mnist.find() is None
    with pytest.raises(ExplainedError) as caught:
        fashion_mnist.read()
    assert fashion_mnist.OTHER_WAYS in str(caught.value)


def test_half_a_copy_does_not_hide_debians_archives(published: Files) -> None:
    put(fashion_mnist.DEBIAN_FOLDER, published, packed=True)
    put(fashion_mnist.DATA_FOLDER, {NAMES[0]: published[NAMES[0]]})
    assert fashion_mnist.read() == (fashion_mnist.DEBIAN_FOLDER, bodies(published))
