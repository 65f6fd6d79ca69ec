"""Small builders of the loop level: numbers, sequences of statements, and kinds that nodes are told apart by."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from supple.base.dtypes import is_float
from supple.ir.expr import Var, as_expr, const, is_buffer, match_dtypes, scalar_dtype
from supple.ir.expr_operators import scalar_operation
from supple.ir.loop import Evaluate, SeqStmt
from supple.ir.node import Expr, Stmt


def div(a: Any, b: Any) -> Expr:
    """The quotient; of integers it is rounded to zero."""
    left, right = match_dtypes(a, b)
    return scalar_operation("truediv" if is_float(scalar_dtype(left)) else "truncdiv", left, right)


def indexdiv(a: Any, b: Any) -> Expr:
    """The quotient of two indices, which are not negative."""
    return scalar_operation("floordiv", a, b)


def indexmod(a: Any, b: Any) -> Expr:
    """The remainder of two indices, which are not negative."""
    return scalar_operation("mod", a, b)


def convert(value: Any) -> Any:
    """A number as a literal (int32, float32, bool), a sequence as a tuple of expressions, an expression as it is.

    Raises ``TypeError`` for anything else.
    """
    if isinstance(value, (list, tuple)):
        return tuple(convert(v) for v in value)
    if isinstance(value, (Expr, bool, int, float)):
        return value if isinstance(value, Expr) else const(value)
    raise TypeError(f"convert: expected a number, an expression or a sequence of them, got {type(value).__name__}")


def stmt_seq(*args: Expr | Stmt | int) -> Stmt:
    """Statements one after the other; an expression is evaluated. One alone is itself."""
    made = [arg if isinstance(arg, Stmt) else Evaluate(as_expr(arg)) for arg in args]
    return made[0] if len(made) == 1 else SeqStmt(tuple(made))


def stmt_list(stmt: Stmt) -> list[Stmt]:
    """The statements of a sequence, of sequences inside too; another statement alone."""
    found: list[Stmt] = []
    stack = [stmt]
    while stack:
        current = stack.pop()
        if isinstance(current, SeqStmt):
            stack.extend(reversed(current.seq))
        else:
            found.append(current)
    return found


def buffer_data(buffer: Var) -> Expr:
    """The storage of a buffer: ``buffer.data``. Raises ``TypeError`` for any other variable."""
    if not is_buffer(buffer):
        raise TypeError(f"buffer_data: expected a buffer, got {buffer!r}")
    source: Expr = buffer.data
    return source


class BufferAccessKind(enum.IntEnum):
    """What a buffer is touched for."""

    READ = 1
    WRITE = 2


class CallEffectKind:
    """What calling an operator may do, from nothing to anything."""

    ExprAnnotation = 0
    Pure = 1
    ReadState = 2
    UpdateState = 3
    Opaque = 3


__all__: Sequence[str] = [
    "BufferAccessKind",
    "CallEffectKind",
    "buffer_data",
    "convert",
    "div",
    "indexdiv",
    "indexmod",
    "stmt_list",
    "stmt_seq",
]
