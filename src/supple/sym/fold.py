"""Values of operators on numbers: what an evaluator and a constant folder share.

Integers are mathematical (a result that does not fit in the dtype is not folded); ``x // 0`` and ``x % 0`` are 0 where
they are evaluated, and never folded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.expr import FloatImm, IntImm
from supple.ir.node import Expr


def trunc_div(a: int, b: int) -> int:
    """``a / b`` rounded towards 0; 0 for a divisor of 0."""
    if b == 0:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a >= 0) == (b >= 0) else -quotient


def trunc_mod(a: int, b: int) -> int:
    """The remainder of `trunc_div`; 0 for a divisor of 0."""
    return a - b * trunc_div(a, b) if b else 0


INTEGER: dict[type, Callable[..., int]] = {
    E.Add: operator.add,
    E.Sub: operator.sub,
    E.Mul: operator.mul,
    E.FloorDiv: lambda a, b: a // b if b else 0,
    E.FloorMod: lambda a, b: a % b if b else 0,
    E.Div: trunc_div,
    E.Mod: trunc_mod,
    E.Min: min,
    E.Max: max,
    E.EQ: lambda a, b: int(a == b),
    E.NE: lambda a, b: int(a != b),
    E.LT: lambda a, b: int(a < b),
    E.LE: lambda a, b: int(a <= b),
    E.GT: lambda a, b: int(a > b),
    E.GE: lambda a, b: int(a >= b),
    E.And: lambda a, b: int(bool(a) and bool(b)),
    E.Or: lambda a, b: int(bool(a) or bool(b)),
    E.Not: lambda a: int(not a),
    E.Select: lambda c, a, b: a if c else b,
}
"""Node kind -> its value on Python ints."""

DIVISIONS = (E.FloorDiv, E.FloorMod, E.Div, E.Mod)

_FLOAT: dict[type, Callable[[Any, Any], Any]] = {
    E.Add: operator.add,
    E.Sub: operator.sub,
    E.Mul: operator.mul,
    E.Min: np.minimum,
    E.Max: np.maximum,
    E.EQ: operator.eq,
    E.NE: operator.ne,
    E.LT: operator.lt,
    E.LE: operator.le,
}


def fold(e: Expr, parts: tuple[Expr, ...]) -> Expr | None:
    """The literal of an operator on literals; None when it is not to be folded."""
    kind = type(e)
    if all(isinstance(part, IntImm) for part in parts):
        numbers = [part.value for part in parts]  # type: ignore[attr-defined]
        if kind in DIVISIONS and numbers[1] == 0:
            return None
        if isinstance(e, E.Cast):
            return _cast(numbers[0], e.dtype)
        if kind not in INTEGER:
            return None
        return _literal(INTEGER[kind](*numbers), E.scalar_dtype(e))
    if kind in _FLOAT and all(isinstance(part, FloatImm) for part in parts):
        dtype = dtypes.to_numpy(parts[0].dtype).type  # type: ignore[attr-defined]
        with np.errstate(all="ignore"):
            value = _FLOAT[kind](*(dtype(part.value) for part in parts))  # type: ignore[attr-defined]
        return E.const(value.item(), E.scalar_dtype(e))
    return None


def _cast(value: int, dtype: str) -> Expr | None:
    if dtypes.lanes(dtype) != 1:
        return None
    if dtypes.is_bool(dtype):
        return IntImm(int(value != 0), dtype)
    if dtypes.is_float(dtype):
        return FloatImm(float(dtypes.to_numpy(dtype).type(value)), dtype)
    return _literal(value, dtype)


def _literal(value: int, dtype: str) -> Expr | None:
    try:
        return IntImm(value, dtype)
    except OverflowError:
        return None
