"""Each module here has an engine of its own: what one leaves behind stays there."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from core.jobs.engine import Engine
    from core.store.store import Store


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Store"]:
    """The store of the module's engine."""
    from core.store.store import Store

    store = Store(f"sqlite:///{tmp_path_factory.mktemp('jobs') / 'kept.sqlite'}")
    yield store
    store.close()


@pytest.fixture(scope="module")
def engine(kept: "Store") -> Iterator["Engine"]:
    from core.jobs.engine import Engine

    engine = Engine(store=kept)
    engine.ask("core.devices:describe", seconds=120)
    yield engine
    engine.close()
