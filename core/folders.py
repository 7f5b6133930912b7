"""Where the app's files are, and where it keeps what it makes or downloads."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]  # the folder in which core/ is
CONTENT = ROOT / "content"  # what a teacher may edit
DATA = Path(os.environ.get("DATA_DIR") or ROOT / "data").expanduser().absolute()
