"""Each module here has an engine of its own: what one leaves behind stays there."""

from collections.abc import Iterator

import pytest

from core.jobs.engine import Engine


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine()
    engine.ask("core.devices:describe", seconds=120)
    yield engine
    engine.close()
