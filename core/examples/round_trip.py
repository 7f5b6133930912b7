"""How the functions of core.lessons.checkpoints.round_trip are called."""

import torch

from core.lessons.checkpoints.round_trip import (
    load_as_saved,
    load_for_the_device,
    load_on_the_cpu,
    saved_on,
)


def try_load_as_saved() -> None:
    file = saved_on(torch.device("cuda"))
    print(load_as_saved(file))


def try_load_on_the_cpu() -> None:
    file = saved_on(torch.device("cuda"))
    print(load_on_the_cpu(file))


def try_load_for_the_device() -> None:
    file = saved_on(torch.device("cuda"))
    print(load_for_the_device(file))
