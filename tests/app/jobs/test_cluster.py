import argparse
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import dask
import pytest

from core.jobs.cluster import (
    CERTIFICATES,
    NO_NEWS,
    is_news,
    machine_name,
    security,
    words,
)
from tests.process import ROOT, python
from to_device.errors import ExplainedError

APP = "-m streamlit run app.py --server.headless true --server.port 0"
pytestmark = [
    pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates"),
    pytest.mark.skipif(os.name != "posix", reason="a script of the shell"),
]


def make(folder: Path, *machines: str) -> Path:
    """The script in this folder; returns where the folders of machines are."""
    script = ROOT / "deploy" / "certificates"
    subprocess.run([script, *machines], cwd=folder, check=True, capture_output=True)
    return folder / "certificates"


@pytest.fixture
def mine(tmp_path) -> Path:
    return make(tmp_path, "mine") / "mine"


def test_the_script_changes_nothing_that_is_good(tmp_path):
    folder = make(tmp_path, "one", "two")
    before = {file: file.read_bytes() for file in folder.rglob("*.pem")}
    assert {file.name for file in folder.glob("one/*")} == {*CERTIFICATES}
    (folder / "two" / "cert.pem").unlink()
    make(tmp_path, "one", "two", "three")
    changed = {file for file, was in before.items() if file.read_bytes() != was}
    assert changed == {folder / "two" / "cert.pem", folder / "two" / "key.pem"}
    for machine in ("one", "two", "three"):
        assert security(folder=str(folder / machine)).require_encryption
    assert {file.stat().st_mode & 0o777 for file in folder.rglob("key.pem")} == {0o600}
    assert {file.stat().st_mode & 0o077 for file in folder.rglob("*")} == {0}


def test_unusable_certificates_are_reported(mine):
    (mine / "cert.pem").write_text("nothing")
    with pytest.raises(ExplainedError, match=f"{mine}.*PEM"):
        security(folder=str(mine))
    (mine / "key.pem").chmod(0o640)
    with pytest.raises(ExplainedError, match=r"chmod 600 .*key\.pem"):
        security(folder=str(mine))
    for name in reversed(CERTIFICATES):
        (mine / name).unlink()
        with pytest.raises(ExplainedError, match=f"mine/{name}"):
            security(folder=str(mine))


def test_an_address_has_to_fit_the_certificates(mine, monkeypatch):
    """Plain TCP is never spoken by who has some; TLS can't be by who has none."""
    with pytest.raises(ExplainedError, match=r"tls://.+tcp://a:1"):
        security("tcp://a:1", str(mine))
    with pytest.raises(ExplainedError, match="DASK_CERTIFICATES"):
        security("tls://a:1")
    monkeypatch.setenv("DASK_CERTIFICATES", str(mine))
    assert security("tls://a:1").tls_worker_key == str(mine / "key.pem")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "setting", "why"),
    [
        ("-m core.jobs.cluster scheduler", "DASK_CERTIFICATES", "/none/ca.pem"),
        (
            "-m core.jobs.cluster workers tls://127.0.0.1:1",
            "DASK_CERTIFICATES",
            "/none/ca.pem",
        ),
        ("-m core.jobs.cluster scheduler", "NONE", words("certificates.scheduler")),
        ("-m core.jobs.cluster workers tls://a:1", "NONE", "DASK_CERTIFICATES"),
        ("-m core.jobs.cluster workers tcp://a:1", "NONE", "tls://"),
        (APP, "DASK_SCHEDULER_ADDRESS", "tls://"),
        (APP, "DASK_CERTIFICATES", "/none/ca.pem"),
        (APP, "MAX_JOB_SECONDS", "MAX_JOB_SECONDS"),
        (APP, "COOKIE_SECRET", "32"),
    ],
)
def test_a_wrong_setting_ends_all_three_with_a_sentence(command, setting, why):
    env = os.environ | {setting: "/none"}
    text = python(*command.split(), env=env, status=1).stderr
    assert text.count("\n") == 1
    assert why in text


def test_settings_of_dask_do_as_well(mine):
    comm = "distributed.comm"
    tls = {f"{comm}.tls.ca-file": str(mine / "ca.pem")}
    with dask.config.set({f"{comm}.require-encryption": True, **tls}):
        assert security("tls://a:1").get_tls_config_for_role("worker")["ca_file"]
        with pytest.raises(ExplainedError, match=r"tls://.+tcp://a:1"):
            security("tcp://a:1")


@pytest.mark.parametrize(
    ("text", "is_logged"),
    [(f"{NO_NEWS[0]} %r", False), (f"{NO_NEWS[1]}: %r", False), ("%r", True)],
)
def test_no_traceback_tells_that_a_client_has_gone(text, is_logged):
    record = logging.LogRecord("a", logging.CRITICAL, "", 0, text, ("<TCP>",), None)
    assert is_news(record) == is_logged


def test_a_machine_has_a_name_that_a_run_can_ask_for():
    assert machine_name("Bär 2.lan") == "Bär 2.lan"
    with pytest.raises(argparse.ArgumentTypeError, match="63"):
        machine_name("[a link](https://evil.example)")


@pytest.mark.slow
def test_no_code_runs_that_another_user_has_put_into_the_common_folder(tmp_path):
    planted = tmp_path / "dask-scratch-space"
    planted.mkdir()
    (planted / "torch.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (tmp_path / "precious").write_text("as it was")
    for name in ("global.lock", "purge.lock"):
        (planted / name).symlink_to(tmp_path / "precious")
    with subprocess.Popen(
        [sys.executable, "-m", "core.jobs.cluster"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()  # the address
        started = {process.stdout.readline().partition("\t")[0] for _ in range(2)}
        process.stdin.close()
    assert len(started) == 2
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "precious").read_text() == "as it was"
