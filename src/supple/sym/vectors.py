"""Simplification of vectors: arithmetic on ramps and broadcasts becomes arithmetic on their scalars."""

from __future__ import annotations

from collections.abc import Callable

from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.node import Expr

Build = Callable[..., Expr]


def simplify_vector(e: Expr, build: Build) -> Expr | None:
    """``ramp(a, s) + broadcast(b)`` as ``ramp(a + b, s)`` and the like; None where nothing applies."""
    if not isinstance(e, E.BinaryOp):
        return None
    a, b = e.a, e.b
    if isinstance(a, E.Broadcast) and isinstance(b, E.Broadcast) and a.lanes == b.lanes:
        return build(lambda value: E.Broadcast(value, a.lanes), build(type(e), a.value, b.value))
    if not dtypes.is_int(E.scalar_dtype(e)):
        return None
    if isinstance(e, (E.Add, E.Sub)):
        return _sum(type(e), a, b, build)
    if isinstance(e, E.Mul):
        if isinstance(a, E.Broadcast):
            a, b = b, a
        if isinstance(a, E.Ramp) and isinstance(b, E.Broadcast):
            return _ramp(build(E.Mul, a.base, b.value), build(E.Mul, a.stride, b.value), a.lanes, build)
    return None


def _sum(kind: type, a: Expr, b: Expr, build: Build) -> Expr | None:
    if isinstance(a, E.Ramp) and isinstance(b, E.Ramp):
        return _ramp(build(kind, a.base, b.base), build(kind, a.stride, b.stride), a.lanes, build)
    if isinstance(a, E.Ramp) and isinstance(b, E.Broadcast):
        return _ramp(build(kind, a.base, b.value), a.stride, a.lanes, build)
    if isinstance(a, E.Broadcast) and isinstance(b, E.Ramp):
        zero = E.const(0, E.scalar_dtype(b.stride))
        stride = b.stride if kind is E.Add else build(E.Sub, build(lambda: zero), b.stride)
        return _ramp(build(kind, a.value, b.base), stride, b.lanes, build)
    return None


def _ramp(base: Expr, stride: Expr, lanes: int, build: Build) -> Expr:
    if isinstance(stride, E.IntImm) and stride.value == 0:
        return build(lambda value: E.Broadcast(value, lanes), base)
    return build(lambda first, step: E.Ramp(first, step, lanes), base, stride)
