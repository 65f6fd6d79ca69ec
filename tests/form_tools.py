"""Programs of the call forms, run by the interpreter and as native code, on their own copies of the arguments."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

import supple
from supple.interp.graph import Interpreter
from supple.ir.module import IRModule
from supple.runtime import VirtualMachine, native
from supple.runtime.tensor import ShapeTuple
from supple.script import from_source


def module(text: str) -> IRModule:
    """A program as a module."""
    parsed = from_source(text)
    return parsed if isinstance(parsed, IRModule) else IRModule.from_expr(parsed)


def machine(text: str) -> VirtualMachine:
    """A program compiled and loaded."""
    return VirtualMachine(supple.compile(module(text)), supple.cpu())


def settled() -> tuple[int, int]:
    """Native objects and arenas that are alive now."""
    gc.collect()
    return native.live_objects(), native.live_arenas()


def same(a: Any, b: Any) -> None:
    """Two results are equal: structure, kinds and values."""
    if isinstance(b, (tuple, list)):
        assert isinstance(a, tuple) and len(a) == len(b), (a, b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif b is None or isinstance(b, (str, bool, int)):
        assert a == b
    else:
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def copied(value: Any) -> Any:
    """A value on memory of its own."""
    if isinstance(value, (tuple, list)) and not isinstance(value, ShapeTuple):
        return type(value)(copied(v) for v in value)
    return value.copy() if isinstance(value, np.ndarray) else value


def both(text: str, *args: Any, times: int = 2) -> Any:
    """The result of ``main``, after comparing interpreter and native code in results, effects and failures; nothing
    native may be left behind."""
    before = settled()
    mod = module(text)
    vm = VirtualMachine(supple.compile(mod), supple.cpu())
    result = None
    for _ in range(times):
        mine, theirs = copied(args), copied(args)
        expected = Interpreter(mod).run("main", *mine)
        result = vm["main"](*theirs)
        same(result, expected)
        for a, b in zip(theirs, mine, strict=True):
            same(a, b)
    del theirs, expected, mine
    shown = copied(result)
    del result, vm, mod
    assert settled() == before, "native objects are left"
    return shown
