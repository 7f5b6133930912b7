import weakref

import torch

from to_device.dryrun.origins import Origin

TENSORS = [torch.ones(2) for _ in range(4)]


def test_the_root_is_the_end_of_the_chain_even_if_a_source_comes_later() -> None:
    first, second, third, late = (Origin(weakref.ref(t), [], []) for t in TENSORS)
    assert first.root is first
    second.take([first])
    third.take([second])
    assert third.root is first
    first.follow(late)
    for origin in (first, second, third):
        assert origin.root is [*origin.chain()][-1] is late
