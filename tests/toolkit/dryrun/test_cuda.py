import json

import pytest

from tests.process import python
from tests.toolkit.dryrun.dry_run import dry_run
from to_device.dryrun.report import DEVICE_ERROR, OK

# Collects what pickle doesn't write as a name of torch.
PICKLING = """
import json, pickle, torch, torch._dynamo, torch.distributed

def is_found(value):
    try:
        return pickle.loads(pickle.dumps(value)) is value
    except Exception:
        return False

modules = torch, torch.cuda, torch.accelerator, torch.distributed
facts = {
    "lost": [
        f"{module.__name__}.{name}"
        for module in modules
        for name, value in vars(module).items()
        if callable(value) and not is_found(value)
    ]
}
"""


def test_what_a_machine_with_cuda_answers() -> None:
    report = dry_run("""
        import io, torch
        CLASSES = "CUDAGraph device Event FloatTensor Stream".split()
        x = torch.rand(2).to("cuda")
        assert x.is_cuda and x.device.type == "cuda" and str(x.device) == "cuda:0"
        assert "cuda:0" in repr(x) and x.type() == "torch.cuda.FloatTensor"
        assert torch.cuda.device_count() == 1 and torch.cuda.memory_allocated() > 0
        assert torch.cuda.get_device_properties(0).L2_cache_size > 0
        double = torch.ones(2).type(dtype=torch.float64)
        assert double.is_cpu and double.type() == "torch.DoubleTensor"
        there = double.type(dtype="torch.cuda.HalfTensor", non_blocking=True)
        assert there.is_cuda and there.dtype is torch.float16
        assert there.type(dtype=torch.int64).is_cuda
        none = torch.cuda.FloatTensor()
        assert none.is_cuda and none.shape == (0,)
        graph: torch.cuda.CUDAGraph | None = None
        for name in CLASSES:
            assert isinstance(getattr(torch.cuda, name), type)
        with torch.cuda.device(0), torch.cuda.device(x.device):
            torch.cuda.reset_accumulated_memory_stats()
        file = io.BytesIO()
        torch.save(x, file)
        for place in (None, "cuda", "cuda:0", torch.device("cuda")):
            file.seek(0)
            assert torch.load(file, map_location=place).is_cuda
        with torch.autocast("cuda", dtype=torch.float16):
            assert (x.view(1, 2) @ x.view(2, 1)).dtype == torch.float16
        with torch.device("cuda"):
            assert torch.nn.Linear(2, 2).weight.is_cuda
        torch.set_default_device("cuda")
        assert torch.zeros(1).is_cuda
    """)
    assert report.status == OK, report.failure


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_a_transformer_takes_masks_on_the_cpu_in_training_alone(where: str) -> None:
    """As on CUDA, which runs a layer as one operation in evaluation."""
    report = dry_run(f"""
        import torch
        from torch import nn
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        encoder = nn.TransformerEncoder(layer, 2, mask_check=False).cuda()
        x = torch.rand(3, 5, 8, device="cuda")
        mask = nn.Transformer.generate_square_subsequent_mask(5).to("{where}")
        encoder(x, mask=mask).sum().backward()
        encoder.eval()
        with torch.no_grad():
            encoder(x)
            encoder(x, src_key_padding_mask=torch.zeros(3, 5).bool().cuda())
            encoder(x, mask=mask)
    """)
    assert report.status == (DEVICE_ERROR if where == "cpu" else OK), report.failure
    if where == "cpu":
        assert report.failure
        assert report.failure.line
        assert report.failure.culprit
        assert (report.failure.line.number, report.failure.culprit.number) == (13, 7)
        devices = [argument.device for argument in report.failure.arguments]
        assert devices.count("cpu") == 1
        assert len(devices) < 8  # of the layer's dozen parameters, a few are told


def test_what_stands_in_for_torch_is_pickled_by_its_name() -> None:
    ours = dry_run(PICKLING).facts["lost"]
    torchs = json.loads(python("-c", PICKLING + "print(json.dumps(facts))").stdout)
    assert set(ours) <= set(torchs["lost"])
