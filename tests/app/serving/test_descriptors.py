import sys

import pytest

from tests.process import python

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")


def test_the_app_may_open_what_the_system_lets_it() -> None:
    python(
        "-c",
        """
import resource
from core.serving.descriptors import ENOUGH, raise_limit
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
most = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
for _ in range(2):
    raise_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, hard)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 100))
raise_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (100, 100)
""",
    )
