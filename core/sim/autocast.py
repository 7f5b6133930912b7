"""Autocast: which operations the device does in 16 bits, and which in 32.

The lists are CUDA's, shortened to what networks are made of:
https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from core.config import SIMULATED
from core.sim.operations import operation

KEY = "AutocastPrivateUse1"

IN_16_BITS = """
linear matmul mm bmm addmm baddbmm conv1d conv2d conv3d conv_transpose2d.input prelu
scaled_dot_product_attention
"""

IN_32_BITS = """
softmax.int log_softmax.int nll_loss cross_entropy_loss mse_loss l1_loss smooth_l1_loss
layer_norm group_norm exp log log1p log2 log10 pow.Tensor_Scalar reciprocal rsqrt sinh
cosh tan binary_cross_entropy_with_logits kl_div cosine_similarity cumsum cumprod sum
sum.dim_IntList prod norm.Scalar softplus cdist erfinv
"""


def register(every: torch.library.Library, ours: torch.library.Library) -> None:
    """Tell PyTorch; operations in neither list take what they get."""
    every.fallback(torch.library.fallthrough_kernel, KEY)
    for names, in_16_bits in ((IN_16_BITS, True), (IN_32_BITS, False)):
        for name in names.split():
            ours.impl(name, _casting(operation(name), in_16_bits), KEY)


def _casting(op: Any, in_16_bits: bool) -> Callable:
    """The operation, on tensors that are cast first."""
    this_key = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, KEY))

    def cast(value: Any) -> Any:
        if not (isinstance(value, Tensor) and value.is_floating_point()):
            return value
        if value.device.type != SIMULATED or value.dtype == torch.float64:
            return value
        return value.to(
            torch.get_autocast_dtype(SIMULATED) if in_16_bits else torch.float32
        )

    def called(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(this_key):
            return op(*map(cast, args), **{k: cast(v) for k, v in kwargs.items()})

    return called
