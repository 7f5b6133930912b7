"""Run the script that Train shows, a training run as most people write it."""

from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from core.data import fashion_mnist, sprites


def run(script: str, draws: bool) -> str:
    """Run a script that core.runs.export has made, and return what it prints.

    If the script `draws` its images, its `import sprites` is replaced by our module.
    Otherwise, Fashion-MNIST's files are put in place, so that nothing is downloaded.
    Run this in a separate process, since it changes the working folder.
    """
    printed = StringIO()
    with TemporaryDirectory() as folder, chdir(folder), redirect_stdout(printed):
        if not draws:
            raw = Path("data/FashionMNIST/raw")
            raw.mkdir(parents=True)
            for name, content in fashion_mnist.files()[1].items():
                (raw / name).write_bytes(content)
        exec(script.replace("import sprites", ""), {"sprites": sprites})
    return printed.getvalue()
