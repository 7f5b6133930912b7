import os
import re

import pytest
import torch

from core.lessons.scale import data_parallel, ranks
from core.lessons.scale.scale_result import SIZES, RankLoss
from core.watch import Watch
from tests.app import samples
from tests.process import python
from to_device.words import Words


def test_two_ranks_share_the_images_and_agree_on_the_model():
    reports = []
    done = data_parallel.run(
        2, "sprites", "ann", 256, 1, watch=Watch(report=reports.append)
    )
    assert [end.rank for end in done.ends] == [0, 1]
    assert {end.images for end in done.ends} == {done.train_images // 2}
    assert done.agree
    first, second = done.ends
    assert first.losses[0].loss != second.losses[0].loss
    assert first.correct > 0.5 * done.test_images
    assert second.correct is None
    assert {report.rank for report in reports if isinstance(report, RankLoss)} == {0, 1}
    assert (done.backend, done.environment.threads) == ("gloo", 1)


@pytest.mark.slow
def test_torchrun_starts_it_as_the_page_says():
    text = Words(str(data_parallel.__file__))("data_parallel.code")
    (line,) = re.findall("`(torchrun .*?)`", text)
    _, *options = line.split()
    env = {**os.environ, "FASHION_MNIST_DIR": "nowhere", "GLOO_SOCKET_IFNAME": "lo"}
    done = python("-m", "torch.distributed.run", *options, env=env)
    ends = re.findall(r"rank (\d): 6,000 images, parameters (\w+)", done.stdout)
    assert sorted(rank for rank, _ in ends) == ["0", "1"], done.stderr
    assert len({parameters for _, parameters in ends}) == 1


@pytest.mark.parametrize("gpus", range(6))
def test_runs_that_are_compared_exchange_by_the_same_backend(gpus, monkeypatch):
    started = []

    def run(*_, backend: str, **__) -> tuple:
        started.append(backend)
        return ()

    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(ranks.dist, "is_nccl_available", lambda: True)
    monkeypatch.setattr(ranks, "run", run)
    monkeypatch.setattr(ranks.devices, "environment", lambda _: samples.PROCESSOR)
    done = [data_parallel.run(count, "sprites", "ann", 64, 1) for count in SIZES]
    backends = [run.backend for run in done]
    assert (
        backends == started == ["nccl" if gpus >= max(SIZES) else "gloo"] * len(SIZES)
    )


def test_a_model_has_another_fingerprint_once_a_number_changes():
    model = torch.nn.Linear(2, 2)
    before = data_parallel.fingerprint(model.parameters())
    assert data_parallel.fingerprint(model.parameters()) == before
    with torch.no_grad():
        model.bias[0] = torch.nextafter(model.bias[0], torch.tensor(9.0))
    assert data_parallel.fingerprint(model.parameters()) != before
