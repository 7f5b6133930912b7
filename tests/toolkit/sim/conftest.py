"""The rules of the simulated accelerator, tried on itself."""

import pytest

from to_device.sim import simulation


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip them where it is not offered: beside a real accelerator, say."""
    why_not = simulation.offer()
    for item in items:
        if why_not and "tests/toolkit/sim/" in item.path.as_posix():
            item.add_marker(pytest.mark.skip(reason=why_not))
