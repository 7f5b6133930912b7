"""Marks tests of what a process may do whose kernel has Landlock."""

import ctypes
import sys

import pytest


def version() -> int:
    if sys.platform != "linux":
        return 0
    return ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)


landlock = pytest.mark.skipif(
    version() < 6, reason="this kernel has no Landlock, or an old one"
)
