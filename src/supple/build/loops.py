"""Small builders of loop statements, for compute definitions that are not formulas (see ``te.extern``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from supple.ir import expr as E
from supple.ir.expr import Var, as_expr, int64
from supple.ir.loop import (
    AllocBuffer,
    AssertStmt,
    Buffer,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    While,
    seq,
)
from supple.ir.node import Expr, Stmt
from supple.ir.types import prim_type


def loop(extent: Any, body: Callable[[Var], Stmt], name: str = "i", start: Any = 0) -> Stmt:
    """``for name in range(start, start + extent)``."""
    var = Var(name, prim_type("int64"))
    return For(var, as_expr(start), as_expr(extent), ForKind.SERIAL, body(var))


def nest(extents: Sequence[Any], body: Callable[..., Stmt], names: Sequence[str] | None = None) -> Stmt:
    """One loop in the other, ``body(*variables)`` inside."""
    variables = [Var(n, prim_type("int64")) for n in names or [f"i{d}" for d in range(len(extents))]]
    statement = body(*variables)
    for var, extent in zip(reversed(variables), reversed(extents), strict=True):
        statement = For(var, int64(0), as_expr(extent), ForKind.SERIAL, statement)
    return statement


def store(buffer: Any, value: Any, *indices: Any) -> Stmt:
    """``buffer[indices] = value``; ``buffer`` is a tensor of the DSL or a buffer variable."""
    target: Var = getattr(buffer, "buffer", buffer)
    return BufferStore(target, as_expr(value, target.dtype), tuple(as_expr(i) for i in indices))


def filled(buffer: Any, shape: Sequence[Any], value: Callable[..., Any], letter: str) -> Stmt:
    """``buffer[i, j, ...] = value(i, j, ...)`` for every index; ``letter`` begins the loops' names."""
    return nest(shape, lambda *i: store(buffer, value(*i), *i), [f"{letter}{d}" for d in range(len(shape))])


def when(condition: Expr, then: Stmt, otherwise: Stmt | None = None) -> Stmt:
    """``if condition: then else: otherwise``."""
    return IfThenElse(condition, then, otherwise)


def require(condition: Expr, message: str) -> Stmt:
    """Fail with ``message`` while running unless the condition holds."""
    return AssertStmt(condition, (message,))


def while_(condition: Expr, *body: Stmt) -> Stmt:
    """``while condition: body``."""
    return While(condition, seq(list(body)))


class Cell:
    """A scalar variable that can be assigned: a local buffer of one element."""

    def __init__(self, dtype: str, name: str) -> None:
        self.buffer = Buffer(name, (int64(1),), dtype, "local")

    @property
    def value(self) -> Expr:
        return E.BufferLoad(self.buffer, (int64(0),))

    def set(self, value: Any) -> Stmt:
        return store(self.buffer, value, 0)


def with_cells(cells: Sequence[Cell], *body: Stmt) -> Stmt:
    """The statements, with storage for the cells."""
    return seq([*(AllocBuffer(cell.buffer) for cell in cells), *body])


def do(*body: Stmt) -> Stmt:
    """Statements in order."""
    return seq(list(body))
