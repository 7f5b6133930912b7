"""Marks tests of what a confined process may do, with Landlock and libseccomp."""

import ctypes
import sys
from contextlib import suppress

import pytest


def version() -> int:
    if sys.platform != "linux":
        return 0
    return ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)


def filters_calls() -> bool:
    with suppress(OSError):
        return bool(ctypes.CDLL("libseccomp.so.2"))
    return False


landlock = pytest.mark.skipif(
    version() < 6 or not filters_calls(),
    reason="no libseccomp, or a kernel without Landlock or with an old one",
)
