"""How much native stack compiled code may use: what differs by platform lives here."""

from __future__ import annotations

import sys
import threading

_MIB = 1 << 20


def stack_budget() -> int:
    """Bytes of stack below the entry that nested compiled calls may take before ``RecursionError``.

    Half of the stack's size, which leaves room for what Python used before and for callbacks; at most 4 MiB.
    """
    if threading.current_thread() is not threading.main_thread() and threading.stack_size():
        size = threading.stack_size()
    elif sys.platform == "linux":
        size = _linux_stack_limit()
    elif sys.platform == "darwin":
        size = 8 * _MIB if threading.current_thread() is threading.main_thread() else _MIB // 2
    else:
        size = _MIB
    return min(size // 2, 4 * _MIB)


def _linux_stack_limit() -> int:
    import resource  # not at module level: Windows has no such module

    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return 8 * _MIB if soft == resource.RLIM_INFINITY else soft
