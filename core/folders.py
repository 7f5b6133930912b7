"""Where the app's files are, and where it keeps what it makes or downloads."""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]  # the folder in which core/ is
CONTENT = ROOT / "content"  # what a teacher may edit
DATA = Path(os.environ.get("DATA_DIR") or ROOT / "data").expanduser().absolute()


def private(name: str) -> Path:
    """A folder for temporary files to which no other user of this machine can write.

    Another user could make a folder first, if its name is known, and so choose what is
    in it. The folder stays, for what a library wants to find there again.
    """
    base = Path(tempfile.gettempdir())
    if os.name == "posix":
        folder = base / f"to-device-{os.getuid()}"
        with suppress(FileExistsError):
            folder.mkdir(0o700)
        found = folder.lstat()
        is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
        if not is_ours or found.st_mode & 0o077:
            folder = Path(tempfile.mkdtemp(prefix="to-device-"))
        base = folder
    (base / name).mkdir(exist_ok=True)
    return base / name
