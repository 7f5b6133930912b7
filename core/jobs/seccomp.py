"""Confine a process for good, before it runs what a stranger wrote.

    python -m core.jobs.seccomp MEMORY -m MODULE ARGUMENTS
    python -m core.jobs.seccomp MEMORY -c CODE ARGUMENTS

Each of these commands confines its own process, which then runs the module or
the code, and can't start another process. Of some 400 system calls, the
process keeps those that Python and torch need; all others raise
PermissionError. core.jobs.confined_code starts this module in bubblewrap.
"""

import ctypes
import errno
import os
import resource
import runpy
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

CALLS = """
access brk chdir clock_getres clock_gettime clock_nanosleep close close_range dup dup2
dup3 exit exit_group faccessat faccessat2 fstat fstatfs futex futex_waitv getcpu
getcwd getdents64 getegid geteuid getgid getgroups getitimer getpgid getpgrp getpid
getppid getrandom getresgid getresuid getrlimit getrusage getsid gettid gettimeofday
getuid lseek lstat madvise membarrier mprotect mremap munmap nanosleep newfstatat open
openat pause pipe pipe2 poll ppoll pread64 preadv pselect6 pwrite64 read readlink
readlinkat readv restart_syscall rseq rt_sigaction rt_sigpending rt_sigprocmask
rt_sigreturn rt_sigsuspend rt_sigtimedwait sched_getaffinity sched_getparam
sched_getscheduler sched_yield select set_robust_list set_tid_address setitimer
sigaltstack stat statfs statx sysinfo time times umask uname wait4 waitid write writev
arch_prctl
"""

# Calls that reach other processes, or leave something in the kernel that outlives this
# one, such as shared memory, which no limit counts
REACHING = """
socket connect fork vfork setsid setpgid execve execveat kill tkill ptrace
process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_open
pidfd_getfd pidfd_send_signal io_uring_setup rt_sigqueueinfo rt_tgsigqueueinfo
shmget shmat msgget semget mq_open add_key request_key keyctl unshare setns
setpriority ioprio_set migrate_pages move_pages kcmp bpf perf_event_open userfaultfd
"""
# Calls that change what a file is to others without opening it, so that neither
# Landlock nor a limit on writing applies
ABOUT_FILES = """
chmod fchmod fchmodat chown fchown lchown fchownat utime utimes futimesat utimensat
setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
"""
# Newer ones, which an older libseccomp doesn't know: fchmodat2, setxattrat,
# removexattrat, and file_setattr have the same number on all processors.
NEW_ABOUT_FILES = 452, 463, 466, 469
# Calls whose first argument is a process; only 0 is allowed, which is the caller
ABOUT = "prlimit64 sched_setaffinity sched_setscheduler sched_setparam sched_setattr"

# Numbers of <seccomp.h> and of the kernel's headers, the same on all processors.
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
UNEQUAL, EQUAL, MASKED_EQUAL = 1, 4, 7
# Flags of mmap that are refused: RLIMIT_DATA doesn't count memory mapped with them.
MAP_SHARED, MAP_GROWSDOWN, MAP_ANONYMOUS = 0x1, 0x100, 0x20
# Flags of clone, which may start a thread, but no process and no namespace.
CLONE_THREAD, CLONE_NEW = 0x10000, 0x7E020080
# What ioctl and prctl may be asked to do.
IS_A_TERMINAL, CLOSE_ON_EXEC, BYTES_TO_READ = 0x5401, 0x5451, 0x541B
SET_NAME, GET_NAME, NAME_MEMORY = 15, 16, 0x53564D41
# What fcntl may be asked to do: copy a file's number, and tell or set its flags.
COPY, GET_FLAG, SET_FLAG, GET_STATUS, SET_STATUS, COPY_CLOSED = 0, 1, 2, 3, 4, 1030
# What it may not be asked to do: choose which signal an open file sends to whom, and
# take a lease, for which all who open the file have to wait.
SET_OWNER, SET_SIGNAL, SET_OWNER_EX, SET_LEASE, NOTIFY = 8, 10, 15, 1024, 1026
INT = 0xFFFFFFFF  # the kernel doesn't read the other bits of an int

LIBRARIES_BYTES = 16 * 2**30  # address space for the files that torch maps


class _Compare(ctypes.Structure):
    """A condition on one argument of a system call.

    `argument` is the argument's number, from 0. With EQUAL as `how`, the
    argument must be `a`, and with UNEQUAL, it must not be. With MASKED_EQUAL,
    the argument's bits in the mask `a` must be `b`.
    """

    _fields_ = [
        ("argument", ctypes.c_uint),
        ("how", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    ]


def limit(memory_bytes: int) -> None:
    """Forbid file writes and core dumps; limit memory, CPU time, and threads."""
    for name, most in {
        "AS": memory_bytes + LIBRARIES_BYTES,
        "CORE": 0,
        "CPU": 120,
        "DATA": memory_bytes,
        "FSIZE": 0,
        "MEMLOCK": 0,
        "NOFILE": 64,
        "NPROC": 64,  # threads
    }.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))


class Filter:
    """A filter of system calls; a call that no rule names gets the action `otherwise`.

    Raises OSError without libseccomp, or if the kernel refuses the filter.
    """

    def __init__(self, otherwise: int) -> None:
        self._library = ctypes.CDLL("libseccomp.so.2")
        self._library.seccomp_init.restype = ctypes.c_void_p
        self._rules = ctypes.c_void_p(self._library.seccomp_init(otherwise))
        # The filter can't see the arguments of clone3. After ENOSYS, the C library
        # tries clone, whose arguments the filter can see.
        self.add(REFUSE | errno.ENOSYS, "clone3")

    def add(
        self, action: int, name: str | int, *conditions: tuple[int, int, int, int]
    ) -> None:
        """Add a rule on the system call with this name or number."""
        resolve = self._library.seccomp_syscall_resolve_name
        number: int = resolve(name.encode()) if isinstance(name, str) else name
        if number < 0:  # this processor has no such call
            return
        array = (_Compare * len(conditions))(*(_Compare(*c) for c in conditions))
        error = self._library.seccomp_rule_add_array(
            self._rules, ctypes.c_uint32(action), number, len(conditions), array
        )
        if error:
            raise OSError(-error, f"seccomp: {name}")

    def load(self) -> None:
        if error := self._library.seccomp_load(self._rules):
            raise OSError(-error, "seccomp: the kernel doesn't accept the filter")


def give_up_calls() -> None:
    """Have the kernel refuse system calls that this function doesn't allow.

    It allows CALLS, and a few other calls if their arguments are harmless.
    """
    rules = Filter(REFUSE | errno.EPERM)
    for name in CALLS.split():
        rules.add(ALLOW, name)
    rules.add(ALLOW, "clone", (0, MASKED_EQUAL, CLONE_THREAD | CLONE_NEW, CLONE_THREAD))
    rules.add(ALLOW, "mmap", (3, MASKED_EQUAL, MAP_SHARED | MAP_GROWSDOWN, 0))
    for own in ("kill", "tgkill"):
        rules.add(ALLOW, own, (0, EQUAL, os.getpid(), 0))
    rules.add(ALLOW, "prlimit64", (0, EQUAL, 0, 0))
    for number in (IS_A_TERMINAL, CLOSE_ON_EXEC, BYTES_TO_READ):
        rules.add(ALLOW, "ioctl", (1, EQUAL, number, 0))
    for number in (COPY, GET_FLAG, SET_FLAG, GET_STATUS, SET_STATUS, COPY_CLOSED):
        rules.add(ALLOW, "fcntl", (1, EQUAL, number, 0))
    for number in (SET_NAME, GET_NAME, NAME_MEMORY):
        rules.add(ALLOW, "prctl", (0, EQUAL, number, 0))
    rules.load()


def give_up_processes_and_sockets() -> None:
    """Have the kernel refuse REACHING, ABOUT_FILES, and calls ABOUT other processes.

    It also refuses memory that children could share, since no limit counts it. A
    process that has imported torch keeps all other calls. Raises OSError without
    libseccomp.
    """
    rules, refused = Filter(ALLOW), REFUSE | errno.EPERM
    calls: list[str | int] = [*REACHING.split(), *ABOUT_FILES.split()]
    for call in (*calls, *NEW_ABOUT_FILES):
        rules.add(refused, call)
    for flag in (MAP_SHARED | MAP_ANONYMOUS, MAP_GROWSDOWN):
        rules.add(refused, "mmap", (3, MASKED_EQUAL, flag, flag))
    for name in ABOUT.split():
        rules.add(refused, name, (0, UNEQUAL, 0, 0))
    rules.add(refused, "tgkill", (0, UNEQUAL, os.getpid(), 0))
    for number in (SET_OWNER, SET_SIGNAL, SET_OWNER_EX, SET_LEASE, NOTIFY):
        rules.add(refused, "fcntl", (1, MASKED_EQUAL, INT, number))
    rules.add(refused, "clone", (0, MASKED_EQUAL, CLONE_THREAD, 0))
    rules.load()


def attempt(outside: str) -> None:
    """Try what this process must not do, and print what succeeds.

    `outside` is a file that the process must not read. Raises RuntimeError if the
    process can't have threads, which torch needs.
    """
    threading.Thread(target=int).start()
    deeds: dict[str, Callable[[], Any]] = {
        "open a socket": socket.socket,
        "start a process": lambda: os.fork() or os._exit(0),
        "start a program": lambda: os.execv(sys.executable, ["python", "-V"]),
        "read another file": lambda: os.open(outside, os.O_RDONLY),
        "read about other processes": lambda: os.listdir("/proc/1"),
        "write a file": lambda: os.open("/tmp", os.O_TMPFILE | os.O_WRONLY),
        "signal other processes": lambda: os.kill(1, 0),
        "see a GPU": lambda: os.stat("/dev/nvidiactl"),
    }
    for name, deed in deeds.items():
        with suppress(OSError):
            deed()
            print(name)


def main() -> None:
    _, memory, option, code, *arguments = sys.argv
    limit(int(memory))
    give_up_calls()
    tempfile.tempdir = "/tmp"  # else tempfile looks for a writable folder, and fails
    sys.argv = [option, *arguments]
    if option == "-m":
        runpy.run_module(code, run_name="__main__", alter_sys=True)
    else:
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    main()
