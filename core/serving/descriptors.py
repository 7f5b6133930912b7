"""The limit on open files and connections, which systemd and macOS set low."""

import sys
from contextlib import suppress

ENOUGH = 65_536  # more than any firewall rule of deploy/ lets in


def raise_limit() -> None:
    """Allow as many open connections as the system's administrator does."""
    if sys.platform == "win32":
        return  # it has no such limit
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):  # macOS has a second limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
