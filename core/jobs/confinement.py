"""What a process gives up before it opens what a stranger sent.

A process may give up rights for itself and for all that it will start, and never gets
them back. Reading files and UDP stay possible: there is nothing to tell them to.
"""

import ctypes
import os
import sys
from contextlib import suppress

# Read by the drivers when a program first asks for a device, which must not have been.
NO_DEVICES = {
    "CUDA_VISIBLE_DEVICES": "",
    "HIP_VISIBLE_DEVICES": "",
    "ROCR_VISIBLE_DEVICES": "",
    "ONEAPI_DEVICE_SELECTOR": "*:cpu",
}

# Numbers of <linux/landlock.h> and <sys/prctl.h>, the same on all processors.
CREATE_RULESET, RESTRICT_SELF = 444, 446
SET_NO_NEW_PRIVILEGES = 38
READ_FILES_AND_FOLDERS = 1 << 2 | 1 << 3
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # how many there are, by Landlock's version
ALL_FILE_RIGHTS = 16  # since version 5
NETWORK_RIGHTS = 1 << 0 | 1 << 1  # bind and connect TCP, since version 4
SCOPES = 1 << 0 | 1 << 1  # abstract sockets and signals of others, since version 6


def confine() -> None:
    """From now on this process sees no GPU, writes no file, and dumps no core.

    On Linux since 5.13 it starts no program either and creates no file; since 6.7 it
    opens no TCP connection, since 6.12 it sends no signal to others. On macOS MPS can't
    be hidden, on Windows only the devices are given up.
    """
    hide_devices()
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with suppress(OSError):  # a kernel without Landlock
            _restrict_files_and_network()


def hide_devices() -> None:
    """Let torch find no accelerator in this process."""
    os.environ.update(NO_DEVICES)


class _Ruleset(ctypes.Structure):
    """What is forbidden wherever no rule allows it; there will be no rule."""

    _fields_ = [
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    ]


def _restrict_files_and_network() -> None:
    """Landlock: the kernel's way for a process to confine itself without being root."""
    libc = ctypes.CDLL(None, use_errno=True)

    def checked(result: int) -> int:
        if result < 0:
            raise OSError(ctypes.get_errno(), "Landlock is not available")
        return result

    version = checked(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1))
    rights = (1 << FILE_RIGHTS.get(version, ALL_FILE_RIGHTS)) - 1
    ruleset = _Ruleset(
        rights & ~READ_FILES_AND_FOLDERS,
        NETWORK_RIGHTS if version >= 4 else 0,
        SCOPES if version >= 6 else 0,
    )
    # An older kernel takes a longer struct than it knows if the rest of it is zeros.
    size = ctypes.c_size_t(ctypes.sizeof(ruleset))
    handle = checked(libc.syscall(CREATE_RULESET, ctypes.byref(ruleset), size, 0))
    try:
        checked(libc.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        checked(libc.syscall(RESTRICT_SELF, handle, 0))
    finally:
        os.close(handle)
