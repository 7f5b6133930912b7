"""How much autograd remembers: the three modes that inference is compared in."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch

MODES: dict[str, Callable[[], AbstractContextManager]] = {
    "gradients": torch.enable_grad,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
}
