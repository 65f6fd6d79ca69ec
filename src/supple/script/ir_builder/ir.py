"""``I`` for building: ``with I.ir_module(): ...``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from supple.ir.module import IRModule
from supple.script.ir_builder.base import IRBuilder


@contextmanager
def ir_module() -> Iterator[IRModule]:
    """A module: the functions built inside are added to it."""
    builder = IRBuilder.current()
    mod = IRModule()
    with builder.opened(mod):
        yield mod
    builder.result = mod
