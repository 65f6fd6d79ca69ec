"""What a process makes once."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def once(make: Callable[[], T]) -> Callable[[], T]:
    """The value of a function without arguments, made at the first call and kept for ever.

    Unlike with `functools.cache`, threads that come first together get one value: of two loaded libraries one would be
    freed while code at its addresses is in use.
    """
    lock = threading.RLock()
    kept: list[T] = []

    @functools.wraps(make)
    def get() -> T:
        if not kept:
            with lock:
                if not kept:
                    kept.append(make())
        return kept[0]

    return get
