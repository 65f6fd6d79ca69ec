"""How many threads compiled code uses. The pool itself is native (``pool_ir``): one for the whole process."""

from __future__ import annotations

import ctypes

from supple.runtime.native import runtime
from supple.runtime.platforms import pool_platform, usable_cores
from supple.runtime.pool_ir import MOST_THREADS


def num_threads() -> int:
    """How many threads compiled code may use at once, the caller's included."""
    return ctypes.c_int32.from_address(runtime().library.addresses["pool_limit"]).value


def set_num_threads(count: int) -> None:
    """Let compiled code use ``count`` threads, the caller's included; 1 keeps everything on the caller's thread.

    Results do not depend on it, to the bit. It may be called at any time and holds for the whole process from the next
    parallel loop on. The default is the number of cores this process may use, or ``SUPPLE_NUM_THREADS``. Where threads
    are not supported (macOS, Windows) the number stays 1. Raises ``ValueError`` unless ``1 <= count <= 256``,
    ``TypeError`` for what is no integer.
    """
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"set_num_threads: expected an integer, got {type(count).__name__}")
    if not 1 <= count <= MOST_THREADS:
        raise ValueError(f"set_num_threads: expected 1 to {MOST_THREADS} threads, got {count}")
    if pool_platform() is None:
        count = 1
    runtime().set_threads(count, usable_cores())


def worker_count() -> int:
    """How many threads the pool has started in this process (for tests)."""
    return ctypes.c_int32.from_address(runtime().library.addresses["pool_workers"]).value


def shared_jobs() -> int:
    """How many loops were shared among threads until now (for tests)."""
    return ctypes.c_int64.from_address(runtime().library.addresses["pool_jobs"]).value
