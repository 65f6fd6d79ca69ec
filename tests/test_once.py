"""What a process makes once, whichever threads ask for it first."""

from __future__ import annotations

import threading
import time

import pytest

from supple.base.once import once


def test_threads_that_come_together_get_one_value() -> None:
    made: list[object] = []

    @once
    def value() -> object:
        time.sleep(0.01)
        made.append(object())
        return made[-1]

    found: list[object] = []
    together = threading.Barrier(4)

    def ask() -> None:
        together.wait()
        found.append(value())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and found == [made[0]] * 4 and value() is made[0]


def test_what_fails_is_tried_again() -> None:
    calls = []

    @once
    def value() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise OSError("not yet")
        return 7

    with pytest.raises(OSError, match="not yet"):
        value()
    assert value() == value() == 7 and len(calls) == 2
