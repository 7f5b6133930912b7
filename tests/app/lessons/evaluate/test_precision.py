import torch

from core import models, state_dict
from core.config import RunConfig
from core.lessons.evaluate import precision
from core.lessons.evaluate.precision import BFLOAT16, FLOAT32, TF32


def test_precisions_are_compared_with_float32() -> None:
    checkpoint = state_dict.save(models.build("ann"))
    costs = precision.compare(checkpoint, RunConfig(task="sprites"))
    full, *others = costs
    assert (full.precision, full.changed) == (FLOAT32, 0)
    assert {cost.precision for cost in others} <= {TF32, BFLOAT16}
    for cost in costs:
        assert len(cost.seconds) == precision.REPEATS
        assert abs(cost.correct - full.correct) <= cost.changed <= cost.images


def test_tf32_is_allowed_only_meanwhile() -> None:
    matmul, conv = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, conv.allow_tf32
    for allowed in (True, False):
        with precision.tf32(allowed):
            assert (matmul.allow_tf32, conv.allow_tf32) == (allowed, allowed)
        assert (matmul.allow_tf32, conv.allow_tf32) == before
