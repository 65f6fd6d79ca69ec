"""Intervals of scalar integer expressions, read off their operators one by one."""

from __future__ import annotations

import math
from collections.abc import Callable

from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.expr import Call, IntImm, Var
from supple.ir.node import Expr
from supple.sym.facts import dtype_interval
from supple.sym.poly import Interval, mul_intervals
from supple.sym.terms import intrinsic_name, operands

ANYTHING: Interval = (-math.inf, math.inf)


def hull(*intervals: Interval) -> Interval:
    """The smallest interval that holds all of them."""
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _quotients(a: Interval, b: Interval, divide: Callable[[float, float], float]) -> Interval:
    """Every ``a / b``; a divisor of 0 gives 0. Quotients are extreme at the ends and beside 0."""
    divisors = [d for d in (b[0], b[1], -1, 1) if b[0] <= d <= b[1] and d != 0]
    ends = [divide(x, d) for x in a for d in divisors]
    if b[0] <= 0 <= b[1]:
        ends.append(0)
    return min(ends), max(ends)


def floor_quotient(x: float, y: float) -> float:
    """``x // y`` with infinities as limits: what is infinite in the divisor gives 0 or -1."""
    if math.isinf(y):
        if math.isinf(x):
            return math.copysign(math.inf, x) * math.copysign(1, y)
        return 0 if x == 0 or (x > 0) == (y > 0) else -1
    if math.isinf(x):
        return x if y > 0 else -x
    return int(x) // int(y)


def trunc_quotient(x: float, y: float) -> float:
    """``x / y`` rounded towards 0, with infinities as limits."""
    if math.isinf(y) and not math.isinf(x):
        return 0
    if math.isinf(x):
        return math.copysign(math.inf, x) * math.copysign(1, y)
    quotient = abs(int(x)) // abs(int(y))
    return quotient if (x >= 0) == (y >= 0) else -quotient


def _floordiv(a: Interval, b: Interval) -> Interval:
    return _quotients(a, b, floor_quotient)


def _floormod(a: Interval, b: Interval) -> Interval:
    if b[0] > 0 and a[0] >= 0 and a[1] < b[0]:
        return a
    if b[0] == b[1] and b[0] != 0 and not math.isinf(b[0]) and not math.isinf(a[0]) and a[0] // b[0] == a[1] // b[0]:
        return a[0] % b[0], a[1] % b[0]  # all in one period
    low, high = min(b[0] + 1, 0), max(b[1] - 1, 0)
    if b[0] >= 0 and a[0] >= 0:
        high = min(high, a[1])
    return low, high


def _truncmod(a: Interval, b: Interval) -> Interval:
    nearest = 0 if b[0] <= 0 <= b[1] else min(abs(b[0]), abs(b[1]))
    if max(abs(a[0]), abs(a[1])) < nearest:
        return a
    size = max(abs(b[0]), abs(b[1])) - 1
    size = max(size, 0)
    return max(min(a[0], 0), -size), min(max(a[1], 0), size)


_BINARY: dict[type, Callable[[Interval, Interval], Interval]] = {
    E.Add: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    E.Sub: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    E.Mul: mul_intervals,
    E.FloorDiv: _floordiv,
    E.FloorMod: _floormod,
    E.Div: lambda a, b: _quotients(a, b, trunc_quotient),
    E.Mod: _truncmod,
    E.Min: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    E.Max: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}

_SMALL_SHIFT = 62


def _shift_left(a: Interval, b: Interval) -> Interval:
    if b[0] < 0 or b[1] > _SMALL_SHIFT:
        return ANYTHING
    return mul_intervals(a, (1 << int(b[0]), 1 << int(b[1])))


def _shift_right(a: Interval, b: Interval) -> Interval:
    if b[0] < 0 or b[1] > _SMALL_SHIFT:
        return hull(a, (0, 0), (-1, -1)) if a[0] < 0 else (0, a[1])
    return _quotients(a, (1 << int(b[0]), 1 << int(b[1])), floor_quotient)


def _bitwise_and(a: Interval, b: Interval) -> Interval:
    if a[0] >= 0 and b[0] >= 0:
        return 0, min(a[1], b[1])
    if a[0] >= 0 or b[0] >= 0:
        return 0, (a[1] if a[0] >= 0 else b[1])
    return ANYTHING


def _bitwise_union(a: Interval, b: Interval) -> Interval:
    top = max(a[1], b[1])
    if a[0] < 0 or b[0] < 0 or math.isinf(top):
        return ANYTHING
    return 0, (1 << int(top).bit_length()) - 1


_CALLS: dict[str, Callable[..., Interval]] = {
    "likely": lambda a: a,
    "if_then_else": lambda c, a, b: a if c == (1, 1) else b if c == (0, 0) else hull(a, b),
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "bitwise_and": _bitwise_and,
    "bitwise_or": _bitwise_union,
    "bitwise_xor": _bitwise_union,
    "popcount": lambda a: (0, 64),
    "clz": lambda a: (0, 64),
}


_WRAPPING = frozenset({"shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor", "popcount", "clz"})


def _combine(e: Expr, parts: tuple[Interval, ...]) -> Interval:
    kind = type(e)
    if kind in _BINARY:
        return _BINARY[kind](parts[0], parts[1])
    if isinstance(e, E.Select):
        return _CALLS["if_then_else"](*parts)
    if isinstance(e, E.Let):
        return parts[1]
    own = dtype_interval(dtypes.element(E.scalar_dtype(e)))
    if isinstance(e, E.Cast):
        inside = own[0] <= parts[0][0] and parts[0][1] <= own[1]
        return parts[0] if inside and _is_whole(e.value) else own
    if isinstance(e, E.Broadcast):
        return parts[0]
    if isinstance(e, E.Ramp):
        return hull(parts[0], _BINARY[E.Add](parts[0], mul_intervals(parts[1], (0, e.lanes - 1))))
    name = intrinsic_name(e)
    if name in _CALLS:
        interval = _CALLS[name](*parts)
        if name not in _WRAPPING:
            return interval
        fits = own[0] <= interval[0] and interval[1] <= own[1]
        return interval if fits else own
    return own


def _is_whole(e: Expr) -> bool:
    return dtypes.row(E.scalar_dtype(e)).kind in ("int", "uint", "bool")


def structural_interval(
    e: Expr,
    variable: Callable[[Var], Interval],
    memo: dict[int, Interval],
    learnt: Callable[[Expr, Interval], Interval] | None = None,
) -> Interval:
    """An interval that holds every value of ``e`` (of the mathematical integers; ``x // 0`` is 0).

    ``memo`` is filled by ids: it must live no longer than the facts behind ``variable`` and the expressions.
    """
    bound: dict[int, Interval] = {}
    stack: list[tuple[Expr, int]] = [(e, 0)]
    while stack:
        current, stage = stack.pop()
        if id(current) in memo:
            continue
        if isinstance(current, IntImm):
            memo[id(current)] = (current.value, current.value)
            continue
        if isinstance(current, Var):
            memo[id(current)] = bound[id(current)] if id(current) in bound else variable(current)
            continue
        parts = operands(current) if _worth(current) else ()
        if isinstance(current, E.Let) and stage < 2:
            stack.append((current, stage + 1))
            if stage == 0:
                stack.append((current.value, 0))
            else:
                bound[id(current.var)] = memo[id(current.value)]
                stack.append((current.body, 0))
            continue
        if parts and stage == 0:
            stack.append((current, 1))
            stack.extend((part, 0) for part in parts)
            continue
        interval = _combine(current, tuple(memo[id(part)] for part in parts)) if parts else _leaf(current)
        memo[id(current)] = interval if learnt is None else learnt(current, interval)
    return memo[id(e)]


def _worth(e: Expr) -> bool:
    """Whether looking into an expression tells more than its dtype does."""
    if isinstance(e, (E.CompareOp, E.Not, E.BufferLoad)):
        return False
    return not isinstance(e, Call) or intrinsic_name(e) in _CALLS


def _leaf(e: Expr) -> Interval:
    if not E.is_scalar(e):
        return ANYTHING
    return dtype_interval(dtypes.element(E.scalar_dtype(e)))


def as_ints(interval: Interval, top: int) -> tuple[int, int]:
    """The interval as two Python ints between ``-top`` and ``top``."""
    low, high = interval
    clipped_low = -top if low <= -top else top if low >= top else int(low)
    clipped_high = top if high >= top else -top if high <= -top else int(high)
    return clipped_low, clipped_high
