"""A state_dict held against our architectures: does it fit, and what differs.

The tensors have been checked by then, see core.checkpoints.upload.
"""

import re

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
                # A plain tensor, whatever the file's had beside its numbers.
                name: torch.empty(tensor.shape, dtype=tensor.dtype).copy_(
                    named[name].detach()
                )
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

    Either all shapes agree in order, or for each (last part of the name, shape) there
    are as many: safetensors sorts by name, so that the order of the layers is lost. Of
    several, "conv2.weight" is taken before "conv10.weight"; in our models these are
    the counters of batch norm, which do nothing once a model is trained.
    """
    if [t.shape for t in tensors.values()] == [t.shape for t in expected.values()]:
        return dict(zip(tensors, expected, strict=True))

    def by_form(state: dict[str, Tensor]) -> dict[tuple, list[str]]:
        forms: dict[tuple, list[str]] = {}
        for name in sorted(state, key=_natural):
            form = name.rpartition(".")[2], tuple(state[name].shape)
            forms.setdefault(form, []).append(name)
        return forms

    theirs, ours = by_form(tensors), by_form(expected)
    if {form: len(n) for form, n in theirs.items()} != {
        form: len(n) for form, n in ours.items()
    }:
        return {}
    return {
        their: our
        for form in theirs
        for their, our in zip(theirs[form], ours[form], strict=True)
    }


def _natural(name: str) -> list[str | int]:
    """To sort by: numbers in a name by what they are worth."""
    parts = re.split(r"(\d+)", name)  # every second one is a number
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]


def _alike(theirs: Tensor, ours: Tensor) -> bool:
    """Whether a tensor can take the place: floats for floats, in the same shape."""
    kinds = theirs.is_floating_point() == ours.is_floating_point()
    return kinds and theirs.shape == ours.shape and theirs.dtype != torch.bool


def _form(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
