import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from core import folders

PLANTED: dict[str, Callable[[Path, Path], object]] = {
    "open to others": lambda place, _: (place.mkdir(), place.chmod(0o777)),
    "a link": lambda place, elsewhere: place.symlink_to(elsewhere),
    "a link to nothing": lambda place, _: place.symlink_to("nowhere"),
    "a file": lambda place, _: place.touch(),
}


def test_a_private_folder_is_found_again(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = folders.private("a library")
    (folder / "kept").touch()
    assert (folders.private("a library") / "kept").exists()


@pytest.mark.skipif(os.name != "posix", reason="on Windows, each user has a folder")
@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED)
def test_no_folder_is_private_that_another_user_may_have_made(
    monkeypatch, tmp_path, plant
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (elsewhere := tmp_path / "elsewhere").mkdir()
    plant(tmp_path / f"to-device-{os.getuid()}", elsewhere)
    parent = folders.private("a library").parent
    assert parent.name != f"to-device-{os.getuid()}"
    assert parent.stat().st_mode & 0o777 == 0o700
    assert not [*elsewhere.iterdir()]
