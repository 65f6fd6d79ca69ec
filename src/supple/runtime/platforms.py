"""What differs by platform: the C library, the size of stacks, how much memory there is."""

from __future__ import annotations

import ctypes
import os
import sys
import threading

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
