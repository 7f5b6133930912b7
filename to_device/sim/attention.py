"""What a transformer's layer does in one call, made of smaller operations.

In evaluation without gradients, nn.TransformerEncoderLayer and nn.MultiheadAttention
each call one operation. CUDA's kernels for it run these steps one after another. So the
device also counts the memory of each, and a pass without values knows each one's size.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from to_device.sim import refusals
from to_device.sim.memory import aten

# The kinds of masks are numbers: for each pair of places, for each row, or for both.
OF_ROWS = 1


def attention(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
    """Does what aten::_native_multi_head_attention does."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        _check(aten._native_multi_head_attention.default, args, kwargs)
        return _attention(*args, **kwargs)


def encoder_layer(*args: Any, **kwargs: Any) -> Tensor:
    """Does what aten::_transformer_encoder_layer_fwd does."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        _check(aten._transformer_encoder_layer_fwd.default, args, kwargs)
        return _encoder_layer(*args, **kwargs)


def _check(op: Any, args: Any, kwargs: Any) -> None:
    refusals.check_process()
    given = (*args, *kwargs.values())
    if strangers := [x for x in given if isinstance(x, Tensor) and x.is_cpu]:
        refusals.check_same_device(op, args, kwargs, strangers)


def _attention(
    query: Tensor,
    _key: Tensor,  # the query again, and so is the value
    _value: Tensor,
    width: int,
    heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    rows, length, _ = query.shape
    parts = F.linear(query, qkv_weight, qkv_bias)
    parts = parts.view(rows, length, 3, heads, width // heads)
    q, k, v = parts.permute(2, 0, 3, 1, 4).unbind()
    scores = (q / math.sqrt(width // heads)) @ k.transpose(-2, -1)
    if mask is not None:
        mask = mask.bool()
        mask = mask.view(rows, 1, 1, length) if mask_type == OF_ROWS else mask
        scores.masked_fill_(mask, -math.inf)
    weights = scores.softmax(-1)
    mixed = (weights @ v).transpose(1, 2).reshape(rows, length, width)
    output = F.linear(mixed, proj_weight, proj_bias)
    if not need_weights:
        return output, None
    return output, weights.mean(1) if average_attn_weights else weights


def _encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    def norm_1(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    def attend(x: Tensor) -> Tensor:
        layer = (qkv_weight, qkv_bias, proj_weight, proj_bias, mask)
        options = (False, True, mask_type)
        return _attention(x, x, x, embed_dim, num_heads, *layer, *options)[0]

    def feed(x: Tensor) -> Tensor:
        activate = F.gelu if use_gelu else F.relu
        hidden = activate(F.linear(x, ffn_weight_1, ffn_bias_1))
        return F.linear(hidden, ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(norm_1(src))
        return x + feed(norm_2(x))
    x = norm_1(src + attend(src))
    return norm_2(x + feed(x))
