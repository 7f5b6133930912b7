"""A state_dict held against our architectures: does it fit, and what differs.

The tensors have been checked by then, see core.checkpoints.upload.
"""

import torch
from torch import Tensor

from core import models, state_dict
from core.checkpoints.results import Opened
from core.checkpoints.round_trip import describe
from core.config import IMAGE_MODELS


def match(
    kind: str,
    tensors: dict[str, Tensor],
    saved_from: dict[int, str],
    notes: list[str],
    model: str | None,
) -> Opened:
    """The tensors of a file beside the architecture `model`, or the most alike one.

    `kind` is the file's format, `saved_from` as core.checkpoints.round_trip.read says,
    `notes` what else to tell of the file, a sentence each.
    """
    model = model or max(IMAGE_MODELS, key=lambda name: _likeness(name, tensors))
    expected = _expected(model)
    renamed = {} if set(expected) == set(tensors) else _rename(tensors, expected)
    named = {renamed.get(name, name): tensor for name, tensor in tensors.items()}
    missing = tuple(name for name in expected if name not in named)
    unexpected = tuple(name for name in named if name not in expected)
    misshapen = tuple(
        (name, _form(named[name]), _form(tensor))
        for name, tensor in expected.items()
        if name in named and not _alike(named[name], tensor)
    )
    described = describe(tensors, saved_from)
    checkpoint = None
    if not missing and not unexpected and not misshapen:
        casts = {each.dtype for each in described if "float" in each.dtype} - {
            "float32"
        }
        notes += [f"The {cast} numbers became float32." for cast in sorted(casts)]
        checkpoint = state_dict.pack(
            {
                name: named[name].detach().to(tensor.dtype, copy=True).contiguous()
                for name, tensor in expected.items()
            }
        )
    return Opened(
        kind,
        described,
        tuple(notes),
        model,
        missing,
        unexpected,
        misshapen,
        tuple(renamed.items()),
        checkpoint,
    )


def _expected(model: str) -> dict[str, Tensor]:
    """Names and shapes of an architecture, without its numbers."""
    with torch.device("meta"):
        return models.build(model).state_dict()


def _likeness(model: str, tensors: dict[str, Tensor]) -> float:
    """How many of all shapes, the model's and the file's, both have; 0 to 1."""
    ours = {tensor.shape for tensor in _expected(model).values()}
    theirs = {tensor.shape for tensor in tensors.values()}
    return len(ours & theirs) / len(ours | theirs)


def _rename(tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> dict[str, str]:
    """Their names to ours, where shapes leave no doubt; else {}.

    Either all shapes agree in order, or each (last part of the name, shape) is there
    once: safetensors sorts by name, so that the order of the layers is lost.
    """
    if [t.shape for t in tensors.values()] == [t.shape for t in expected.values()]:
        return dict(zip(tensors, expected, strict=True))

    def by_form(state: dict[str, Tensor]) -> dict[tuple, str]:
        return {(n.rpartition(".")[2], tuple(t.shape)): n for n, t in state.items()}

    theirs, ours = by_form(tensors), by_form(expected)
    once = len(theirs) == len(tensors) and len(ours) == len(expected)
    if once and set(theirs) == set(ours):
        return {theirs[form]: ours[form] for form in theirs}
    return {}


def _alike(theirs: Tensor, ours: Tensor) -> bool:
    """Whether a tensor can take the place: floats for floats, in the same shape."""
    kinds = theirs.is_floating_point() == ours.is_floating_point()
    return kinds and theirs.shape == ours.shape and theirs.dtype != torch.bool


def _form(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
