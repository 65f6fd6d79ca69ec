"""What differs by platform: the C library, the size of stacks, how much memory there is, what threads are made of."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_MIB = 1 << 20


def c_library() -> ctypes.CDLL:
    """The process's C library, where compiled code finds ``malloc`` and ``memcpy``."""
    return ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)


def physical_memory() -> int:
    """Bytes of memory of this machine; a very large number where that cannot be known."""
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names or "SC_PAGE_SIZE" not in names:
        return 1 << 62
    pages = os.sysconf("SC_PHYS_PAGES")
    return pages * os.sysconf("SC_PAGE_SIZE") if pages > 0 else 1 << 62


def stack_budget() -> int:
    """Bytes of stack below the entry that nested compiled calls may take before ``RecursionError``.

    Half of the stack's size, which leaves room for what Python used before and for callbacks; at most 4 MiB.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main and threading.stack_size():
        size = threading.stack_size()
    elif sys.platform == "linux":
        size = _linux_stack_limit()
    elif sys.platform == "darwin":
        size = 8 * _MIB if is_main else _MIB // 2
    else:
        size = _MIB
    return min(size // 2, 4 * _MIB)


def _linux_stack_limit() -> int:
    import resource  # not at module level: Windows has no such module

    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return 8 * _MIB if soft == resource.RLIM_INFINITY else soft


# -------------------------------------------------------------------------------------------------------------- threads


@dataclass(frozen=True, slots=True)
class PoolPlatform:
    """What the pool of threads is made of: addresses of functions by name, the numbers of the system calls that
    sleep on a word and tell a thread's number, and the instruction for a loop that waits, with its declaration."""

    symbols: Mapping[str, int]
    futex: int
    gettid: int
    pause: str
    declarations: str


WAITING = {
    "x86_64": (202, 186, "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()\n"),
    "aarch64": (98, 178, "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)\n"),
}
"""By machine, the last four fields of `PoolPlatform`."""

_POOL_FUNCTIONS = (
    "syscall",
    "clock_gettime",
    "sched_yield",
    "madvise",
    "sched_getcpu",
    "sched_getaffinity",
    "sched_setaffinity",
    "pthread_create",
    "pthread_detach",
    "pthread_sigmask",
)


@functools.cache
def pool_platform() -> PoolPlatform | None:
    """What threads need here; None where compiled code runs on the caller's thread alone (anything but 64-bit Linux on
    x86-64 and AArch64)."""
    row = WAITING.get(platform.machine().lower())
    if sys.platform != "linux" or row is None or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    library = c_library()
    symbols: dict[str, int] = {}
    for name in _POOL_FUNCTIONS:
        if not hasattr(library, name):
            return None
        symbols[name] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    return PoolPlatform(symbols, *row)


def call_in_child(handler: int) -> None:
    """Have the native function at an address called in every child that a fork of this process makes."""
    library = c_library()
    pointer = ctypes.c_void_p
    if hasattr(library, "pthread_atfork"):  # musl; glibc has it in its static part only
        failed = library.pthread_atfork(None, None, pointer(handler))
    elif hasattr(library, "__register_atfork"):
        failed = library.__getattr__("__register_atfork")(None, None, pointer(handler), None)
    else:
        os.register_at_fork(after_in_child=ctypes.PYFUNCTYPE(None)(handler))
        return
    if failed:
        raise MemoryError("the handler for forks could not be registered")


def usable_cores() -> int:
    """How many processor cores this process may use: those of its affinity, the hardware threads of one core counted
    once, and no more than a container's share allows."""
    if not hasattr(os, "sched_getaffinity"):
        return max(1, os.cpu_count() or 1)
    cpus = os.sched_getaffinity(0)
    cores: set[str] = set()
    for cpu in cpus:
        place = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            cores.add(place.read_text().strip())
        except OSError:  # hidden in some containers: each counts
            cores.add(str(cpu))
    return max(1, min(len(cores), _container_share()))


def _container_share() -> int:
    """The processors that a control group grants, rounded up; a large number without a limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError):  # no such group, or "max"
        return 1 << 16
