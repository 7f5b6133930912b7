import hashlib
from pathlib import Path

import pytest

from core.data import fashion_mnist
from tests.app.data.mirror import NAMES, Files, header, put


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Files:
    """A small dataset in the place of the real one, and no file of it here yet."""
    files, shapes = {}, {}
    for name in NAMES:
        count = 30 if name.startswith("train") else 20
        shape = (count, 28, 28) if "images" in name else (count,)
        body = hashlib.shake_256(name.encode()).digest(count * 28 * 28)
        files[name] = header(shape) + body[: count * (784 if "images" in name else 1)]
        shapes[name] = shape
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    monkeypatch.setattr(fashion_mnist, "SHAPES", shapes)
    monkeypatch.setattr(fashion_mnist, "SHA256", sums)
    monkeypatch.setattr(fashion_mnist, "DATA_FOLDER", tmp_path / "data")
    monkeypatch.setattr(fashion_mnist, "DEBIAN_FOLDER", tmp_path / "debian")
    monkeypatch.delenv("FASHION_MNIST_DIR", raising=False)
    return files


@pytest.fixture
def folder(published: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A whole copy, unpacked, in the folder that FASHION_MNIST_DIR names."""
    folder = tmp_path / "mine"
    put(folder, published)
    monkeypatch.setenv("FASHION_MNIST_DIR", str(folder))
    return folder
