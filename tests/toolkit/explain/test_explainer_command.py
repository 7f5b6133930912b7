"""`to-device explain` as a command."""

import json
import os
import subprocess
import sys

import pytest

from tests.process import python


def test_a_reader_that_ends_early_is_no_error():
    """As in `to-device explain log.txt | head -1`."""
    reader, pipe = os.pipe()
    os.close(reader)
    program = [sys.executable, "-m", "to_device", "explain"]
    ended = subprocess.run(program, input=b"", stdout=pipe, stderr=subprocess.PIPE)
    os.close(pipe)
    assert ended.stderr == b""


def run(*options: str, text: str, status: int = 0) -> str:
    command = ("-m", "to_device", "explain", *options)
    ended = python(*command, input=text.encode(), status=status)
    return ended.stdout + ended.stderr


def test_the_program_reads_a_pipe_or_a_file(tmp_path):
    text = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
    output = run(text=text)
    assert output.startswith("The GPU's memory is full.")
    file = tmp_path / "log.txt"
    file.write_text(text)
    answer = json.loads(run(str(file), "--json", text=""))
    assert (answer["sure"], answer["slug"]) == (True, "out_of_memory")
    assert answer["title"] in output
    assert answer["text"] in output
    assert json.loads(run("--json", text="KeyError: 'x'", status=1)) is None


@pytest.mark.parametrize("file", ["missing.txt", ""], ids=["missing", "a folder"])
def test_an_unreadable_file_is_reported_in_a_sentence(tmp_path, file):
    output = run(str(tmp_path / file), text="", status=2)
    assert f"can't read {tmp_path / file}" in output
    assert "Traceback" not in output


def test_it_needs_nothing_but_python():
    script = "import to_device.explain.explainer as e; e.explain('CUDA'); import sys; "
    script += "assert not {'torch', 'streamlit', 'pandas', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-S", "-c", script], check=True)
