"""Interned terms: structurally equal scalar expressions become one object, so that sameness is identity.

`Terms` rebuilds an expression from the leaves with its own stack. What has an effect (a call that is not pure) is the
same as nothing but itself.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.expr import Call, FloatImm, IntImm
from supple.ir.node import Expr, replace
from supple.ir.op import Op

GT_TO_LT: dict[type, type[E.BinaryOp]] = {E.GT: E.LT, E.GE: E.LE}


def operands(e: Expr) -> tuple[Expr, ...]:
    """The operands of a scalar expression; none for leaves and for what is not looked into."""
    if isinstance(e, E.BinaryOp):
        return (e.a, e.b)
    read = _OPERANDS.get(type(e))
    return read(e) if read is not None else ()


def within(root: Any) -> Iterator[Any]:
    """Every term inside of one, itself included, once."""
    stack, seen = [root], set()
    while stack:
        current = stack.pop()
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            stack.extend(operands(current))


def _call_operands(e: Any) -> tuple[Expr, ...]:
    return e.args if is_pure_call(e) else ()


_OPERANDS: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    E.Not: lambda e: (e.a,),
    E.Select: lambda e: (e.condition, e.true_value, e.false_value),
    E.Cast: lambda e: (e.value,),
    E.Ramp: lambda e: (e.base, e.stride),
    E.Broadcast: lambda e: (e.value,),
    E.Shuffle: lambda e: (*e.vectors, *e.indices),
    E.BufferLoad: lambda e: e.indices,
    E.Let: lambda e: (e.value, e.body),
    Call: _call_operands,
}


def is_pure_call(e: Expr) -> bool:
    """Whether an expression is a call of a scalar intrinsic without effect: two calls with equal operands are equal."""
    return (
        isinstance(e, Call)
        and isinstance(e.op, Op)
        and "intrinsic" in e.op.facts
        and e.op.pure
        and not e.attrs
        and all(E.is_scalar(a) for a in e.args)
    )


def intrinsic_name(e: Expr) -> str:
    """``"if_then_else"`` of a pure call of ``tirx.if_then_else``; empty for anything else."""
    return e.op.short_name if is_pure_call(e) else ""  # type: ignore[attr-defined]


def rebuilt(e: Expr, parts: tuple[Expr, ...]) -> Expr:
    """The expression with other operands; the same object when they are the same."""
    if all(new is old for new, old in zip(parts, operands(e), strict=True)):
        return e
    kind = type(e)
    if isinstance(e, E.BinaryOp):
        return kind(*parts)
    if isinstance(e, E.BufferLoad):
        return E.BufferLoad(e.buffer, parts)
    if isinstance(e, Call):
        return replace(e, args=parts)
    make = _MAKE[kind]
    return make(e, *parts)


_MAKE: dict[type, Callable[..., Expr]] = {
    E.Not: lambda e, a: E.Not(a),
    E.Select: lambda e, c, a, b: E.Select(c, a, b),
    E.Cast: lambda e, v: E.Cast(e.dtype, v),
    E.Ramp: lambda e, base, stride: E.Ramp(base, stride, e.lanes),
    E.Broadcast: lambda e, v: E.Broadcast(v, e.lanes),
    E.Shuffle: lambda e, *parts: E.Shuffle(parts[: len(e.vectors)], parts[len(e.vectors) :]),
    E.Let: lambda e, value, body: E.Let(e.var, value, body),
}


class Terms:
    """One table of interned expressions."""

    def __init__(self) -> None:
        self._table: dict[Hashable, Expr] = {}
        self._known: dict[int, Expr] = {}  # ids of interned expressions; the value keeps the id alive
        self._seen: dict[int, tuple[Expr, Expr]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def literal(self, value: int, dtype: str) -> Expr:
        """The interned literal; raises ``OverflowError`` for a number that the dtype does not hold."""
        return self.node(E.const(value, dtype))

    def is_known(self, e: Expr) -> bool:
        """Whether that very object is an interned one."""
        return id(e) in self._known

    def node(self, e: Expr) -> Expr:
        """The interned form of a node whose operands are interned."""
        key = self._key(e)
        found = self._table.get(key)
        if found is None:
            found = self._table[key] = e
            self._known[id(e)] = e
        return found

    def intern(self, e: Expr) -> Expr:
        """The interned form of an expression."""
        if id(e) in self._known:
            return e
        if id(e) in self._seen:
            return self._seen[id(e)][1]
        stack: list[tuple[Expr, bool]] = [(e, False)]
        while stack:
            current, expanded = stack.pop()
            if id(current) in self._known or id(current) in self._seen:
                continue
            parts = operands(current)
            if parts and not expanded:
                stack.append((current, True))
                stack.extend((part, False) for part in parts)
                continue
            made = rebuilt(current, tuple(self._canonical(part) for part in parts))
            self._seen[id(current)] = (current, self.node(made))
        return self._canonical(e)

    def _canonical(self, e: Expr) -> Expr:
        return e if id(e) in self._known else self._seen[id(e)][1]

    def _key(self, e: Expr) -> Hashable:
        kind = type(e)
        if isinstance(e, IntImm):
            return kind, e.value, e.dtype
        if isinstance(e, FloatImm):
            return kind, struct.pack("d", e.value), e.dtype
        if isinstance(e, E.BinaryOp):
            return kind, id(e.a), id(e.b)
        if isinstance(e, E.Cast):
            return kind, e.dtype, id(e.value)
        if isinstance(e, (E.Ramp, E.Broadcast)):
            return kind, e.lanes, *map(id, operands(e))
        if isinstance(e, E.Shuffle):
            return kind, len(e.vectors), *map(id, operands(e))
        if isinstance(e, E.BufferLoad):
            return kind, id(e.buffer), *map(id, e.indices)
        if isinstance(e, E.Let):
            return kind, id(e.var), id(e.value), id(e.body)
        if is_pure_call(e):
            return kind, id(e.op), str(e.ty), *map(id, e.args)  # type: ignore[attr-defined]
        if kind in _OPERANDS and not isinstance(e, Call):
            return kind, *map(id, operands(e))
        return kind, id(e)


def is_index(e: Expr) -> bool:
    """Whether an expression is a scalar integer (not a vector, not a bool)."""
    if not E.is_scalar(e):
        return False
    dtype = E.scalar_dtype(e)
    return dtypes.lanes(dtype) == 1 and dtypes.is_int(dtype)


def is_truth(e: Expr) -> bool:
    """Whether an expression is a scalar bool."""
    return E.is_scalar(e) and E.scalar_dtype(e) == "bool"
