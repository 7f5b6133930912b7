"""What a stranger's script may try; its whole text runs in a process of its own.

REFUSED must fail; CAN_ELSEWHERE succeeds without walls, so that no mistake is taken for
a wall. What is `there` are a file, folders, a port, a socket, and the parent process.
"""

import ctypes
import mmap
import multiprocessing
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace as There
from typing import Any

Deed = Callable[[There], Any]

HERE = "127.0.0.1", 0


def call(name: str, *arguments: Any) -> int:
    number = ctypes.CDLL("libseccomp.so.2").seccomp_syscall_resolve_name(name.encode())
    done = ctypes.CDLL(None, use_errno=True).syscall(number, *arguments)
    if done < 0:
        raise OSError(ctypes.get_errno(), name)
    return done


def to_abstract(there: There) -> None:
    socket.socket(socket.AF_UNIX).connect(f"\0{there.abstract}")


def system(_: There) -> None:
    if os.system("true"):
        raise OSError("no shell")


def multiprocess(_: There) -> None:
    multiprocessing.get_context("fork").Process(target=int).start()


def leave_a_child(_: There) -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1)
        os._exit(0)


def sparse(there: There) -> None:
    with open(f"{there.folder}/huge", "wb") as file:
        file.truncate(2**40)


def raise_limits(_: There) -> None:
    endless = resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_DATA, (endless, endless))
    resource.setrlimit(resource.RLIMIT_FSIZE, (endless, endless))


def type_on_the_terminal(_: There) -> None:
    import fcntl

    fcntl.ioctl(0, 0x5412, b"x")  # TIOCSTI


def take_a_lease(there: There) -> None:
    import fcntl

    file = os.open(f"{there.root}/core/run.py", os.O_RDONLY)
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)


def race(there: There) -> None:
    os.symlink("/dev/null", "/tmp/link")
    os.unlink("/tmp/link")
    os.symlink(there.file, "/tmp/link")
    open("/tmp/link").close()


def everywhere(_: There) -> None:
    for folder, folders, _ in os.walk("/"):
        if folder.count("/") > 3:
            folders.clear()
        with suppress(OSError):
            return os.close(os.open(f"{folder}/new", os.O_CREAT | os.O_WRONLY))
    raise OSError("nowhere")


REFUSED: dict[str, Deed] = {
    "TCP": lambda t: socket.create_connection((HERE[0], t.port), 5),
    "TCP of IPv6": lambda _: socket.socket(socket.AF_INET6),
    "UDP": lambda _: socket.socket(type=socket.SOCK_DGRAM).connect((HERE[0], 9)),
    "a Unix socket": lambda _: socket.socket(socket.AF_UNIX),
    "an abstract socket": to_abstract,
    "a pair of sockets": lambda _: socket.socketpair(),
    "netlink": lambda _: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "raw packets": lambda _: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
    "a name in DNS": lambda _: socket.getaddrinfo("localhost", 80),
    "listen": lambda _: socket.create_server(HERE),
    "fork": lambda _: os.fork() or os._exit(0),
    "forkpty": lambda _: os.forkpty()[0] or os._exit(0),
    "os.system": system,
    "os.popen": lambda _: os.popen("true").read(),
    "subprocess": lambda _: subprocess.run([sys.executable, "-V"], check=True),
    "posix_spawn": lambda _: os.posix_spawn(sys.executable, ["python", "-V"], {}),
    "multiprocessing": multiprocess,
    "a child left behind": leave_a_child,
    "a clone past Python": lambda _: call("clone", int(signal.SIGCHLD), 0, 0, 0, 0),
    "a vfork past Python": lambda _: call("vfork"),
    "another program": lambda _: os.execv("/bin/sh", ["sh", "-c", "echo DONE"]),
    "Python once more": lambda _: os.execv(sys.executable, ["python", "-V"]),
    "a program in memory": lambda _: os.memfd_create("program"),
    "a file in /tmp": lambda _: open("/tmp/new", "w"),
    "a file at home": lambda _: open(os.path.expanduser("~/new"), "w"),
    "a file here": lambda _: open("new", "w"),
    "a file in /dev/shm": lambda _: open("/dev/shm/new", "w"),
    "a file anywhere": everywhere,
    "a huge file": sparse,
    "a lease": take_a_lease,
    "a file's end": lambda t: open(t.file, "a"),
    "a device": lambda _: os.mknod("/tmp/memory", 0o20666, os.makedev(1, 1)),
    "a pipe with a name": lambda t: os.mkfifo(f"{t.folder}/pipe"),
    "a folder": lambda t: os.mkdir(f"{t.folder}/new"),
    "a symlink": lambda t: os.symlink("/", f"{t.folder}/link"),
    "a hard link": lambda t: os.link(t.file, f"{t.folder}/link"),
    "a race of links": race,
    "delete": lambda t: os.unlink(t.file),
    "rename": lambda t: os.rename(t.file, f"{t.file}.old"),
    "delete the app": lambda t: os.unlink(f"{t.root}/core/run.py"),
    "change the app": lambda t: open(f"{t.root}/core/run.py", "r+"),
    "change Python": lambda _: open(os.__file__, "r+"),
    "change a mode": lambda t: os.chmod(t.file, 0o777),
    "another's file": lambda t: open(t.file),
    "another's folder": lambda t: os.listdir(t.folder),
    "what others upload": lambda t: os.listdir(f"{t.root}/data"),
    "the cookies' key": lambda t: open(f"{t.root}/data/cookie.key"),
    "the database": lambda t: open(f"{t.root}/data/to-device.sqlite"),
    "the repository": lambda t: open(f"{t.root}/.git"),
    "the settings": lambda t: open(f"{t.root}/.streamlit/config.toml"),
    "the users": lambda _: open("/etc/passwd"),
    "the passwords": lambda _: open("/etc/shadow"),
    "a way around": lambda t: open(f"/usr/lib/../..{t.file}"),
    "the first environment": lambda _: open("/proc/1/environ"),
    "the parent's environment": lambda t: open(f"/proc/{t.parent}/environ"),
    "the parent's memory": lambda t: open(f"/proc/{t.parent}/mem"),
    "the parent's files": lambda t: os.listdir(f"/proc/{t.parent}/fd"),
    "its own /proc": lambda _: os.listdir("/proc/self"),
    "the kernel's settings": lambda _: os.listdir("/sys/kernel"),
    "signal to the parent": lambda t: os.kill(t.parent, 0),
    "signal to the first": lambda _: os.kill(1, 0),
    "signal to all": lambda _: os.kill(-1, 0),
    "signal to its group": lambda _: os.killpg(0, 0),
    "signal past Python": lambda t: call("tkill", t.parent, 0),
    "a handle of the parent": lambda t: os.pidfd_open(t.parent),
    "the parent's limits": lambda t: resource.prlimit(t.parent, resource.RLIMIT_CPU),
    "the parent's core": lambda t: os.sched_setaffinity(t.parent, {0}),
    "ptrace": lambda t: call("ptrace", 16, t.parent, 0, 0),
    "root": lambda _: os.setuid(0),
    "root's groups": lambda _: os.setgroups([0]),
    "a session": lambda _: os.setsid(),
    "higher limits": raise_limits,
    "higher priority": lambda _: os.nice(-5),
    "a mount": lambda _: call("mount", b"none", b"/tmp", b"tmpfs", 0, 0),
    "other namespaces": lambda _: call("unshare", 0x10000000),
    "another root": lambda _: os.chroot("/usr"),
    "type on the terminal": type_on_the_terminal,
    "a new terminal": lambda _: os.openpty(),
    "the GPU": lambda _: os.open("/dev/nvidia0", os.O_RDWR),
    "the GPU's control": lambda _: os.open("/dev/nvidiactl", os.O_RDWR),
    "a virtual machine": lambda _: os.open("/dev/kvm", os.O_RDWR),
    "the machine's memory": lambda _: os.open("/dev/mem", os.O_RDONLY),
    "shared memory": lambda _: mmap.mmap(-1, 4096),
    "address space": lambda _: mmap.mmap(-1, 2**45, mmap.MAP_PRIVATE, mmap.PROT_READ),
}
CAN_ELSEWHERE = """
TCP, TCP of IPv6, UDP, a Unix socket, an abstract socket, a pair of sockets, netlink,
listen, a name in DNS, fork, os.system, subprocess, posix_spawn, multiprocessing,
delete, rename, a child left behind, a program in memory, a file here, a huge file, a
file's end, a pipe with a name, a folder, a symlink, a hard link, change a mode,
another's file, another's folder, the users, a way around, its own /proc, signal to the
parent, signal to its group, a handle of the parent, the parent's limits, a new
terminal, shared memory, address space
"""

# Calls with an entry of their own in the kernel, and what makes them worth a try.
CALLS = """
acct add_key bind bpf chmod chown clock_settime clone copy_file_range delete_module
epoll_create1 eventfd2 execve execveat fallocate fanotify_init finit_module fork
fsconfig fsmount fsopen ftruncate init_module inotify_init1 io_setup io_uring_enter
io_uring_register io_uring_setup ioperm iopl kcmp kexec_load keyctl
landlock_create_ruleset link lookup_dcookie mbind memfd_create memfd_secret
migrate_pages mincore mkdir mknod mlock mlockall modify_ldt mount mount_setattr
move_mount move_pages mq_open msgget name_to_handle_at open_by_handle_at open_tree
openat2 perf_event_open personality pidfd_getfd pidfd_open pidfd_send_signal pivot_root
pkey_alloc process_madvise process_vm_readv process_vm_writev ptrace quotactl reboot
recvfrom remap_file_pages rename request_key rt_sigqueueinfo rt_tgsigqueueinfo
sched_setaffinity sched_setattr sched_setscheduler seccomp semget sendfile sendto
setdomainname setfsuid setgid setgroups sethostname setns setpgid setpriority setresuid
setreuid setrlimit setsid settimeofday setuid shmget signalfd4 socket socketpair splice
statmount swapoff swapon symlink sync syslog tee timer_create timerfd_create tkill
truncate umount2 unlink unshare userfaultfd utimensat vfork vhangup vmsplice
"""


def all_calls(_: There) -> None:
    """Print those that are not refused at once, with whatever arguments."""
    for name in CALLS.split():
        try:
            call(name, 0, 0, 0, 0, 0, 0)
            print(name, "goes through")
        except OSError as error:
            if error.errno != 1:
                print(name, error)


def flood(descriptor: int) -> None:
    while True:
        os.write(descriptor, b"x" * 4096)


def grow(_: There) -> None:
    blocks = []
    while True:
        blocks.append(b"x" * 2**22)


def grow_torch(_: There) -> None:
    import torch

    torch.ones(2**33)


def breed_threads(_: There) -> None:
    while True:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


def close_everything(_: There) -> None:
    os.closerange(0, 64)
    time.sleep(60)


def ignore_signals(_: There) -> None:
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        signal.pause()


def outlive(_: There) -> None:
    """Its threads go on when it ends."""
    threading.Thread(target=time.sleep, args=(60,)).start()


def loop(_: There) -> None:
    while True:
        pass


def machine_code(code: str) -> int:
    """What a function returns that is given as bytes, in hexadecimal."""
    rights = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, rights)
    page.write(bytes.fromhex(code))
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)()


# Each is ended, and told why.
ENDED: dict[str, tuple[str, Deed]] = {
    "an endless loop": ("seconds", loop),
    "a loop that holds the interpreter": ("seconds", lambda _: 3 ** (10**9)),
    "sleep": ("seconds", lambda _: time.sleep(60)),
    "a stopped process": ("seconds", lambda _: os.kill(os.getpid(), signal.SIGSTOP)),
    "signals ignored": ("seconds", ignore_signals),
    "closed descriptors": ("seconds", close_everything),
    "a thread that goes on": ("seconds", outlive),
    "endless output": ("64 kB", lambda _: flood(1)),
    "endless errors": ("64 kB", lambda _: flood(2)),
    "an endless answer": ("1,000 kB", lambda _: flood(int(os.environ["ANSWER_FD"]))),
    "memory at once": ("memory", lambda _: b"x" * 10**10),
    "memory bit by bit": ("memory", grow),
    "thousands of threads": ("thread", breed_threads),
    "SIGKILL": ("Killed", lambda _: os.kill(os.getpid(), signal.SIGKILL)),
    "a core dump": ("Aborted", lambda _: os.abort()),
    # getpid by the entries for programs of 32 bits, which have numbers of their own.
    "int 0x80": ("Bad system call", lambda _: machine_code("b814000000cd80c3")),
    "x32": ("Bad system call", lambda _: machine_code("b8270000400f05c3")),
    "a bad address": ("Segmentation", lambda _: ctypes.string_at(8)),
}


def attempt(deed: Deed, there: dict[str, Any]) -> None:
    try:
        deed(There(**there))
    except Exception as error:
        print(type(error).__name__, error)
        if isinstance(error, MemoryError | RuntimeError):
            raise
    else:
        print("DONE")
