"""Conditions on a loop's place become loops of their own: what they choose is then known before a vector is read.

for j in range(N): Y[j] = T.if_then_else(j < n, A[j], B[j - n])     # before: each element asks

for j in range(n): Y[j] = A[j]                                      # after
for j in range(N - n): Y[j + n] = B[j]

So are a concatenation along the axis, and the borders of a padding. Only what is evaluated lazily is looked at: a
`T.Select` reads both sides anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from supple.analysis.lazy import is_lazy
from supple.analysis.nest import Axis
from supple.ir import expr as E
from supple.ir.expr import Call, IntImm, Var
from supple.ir.loop import BufferStore
from supple.ir.node import Expr, Node
from supple.ir.walk import containing, pre_order, transform
from supple.schedule import loops as L
from supple.sym.linear import detect_linear_equation
from supple.sym.simplify import SHAPES

MOST = 8
"""Parts of a loop: each is code of its own."""

NARROW = 1 << 30
"""Sizes and distances below which 32-bit conditions do not wrap."""


@dataclass(frozen=True, slots=True)
class Part:
    """The iterations of an axis from ``first`` up to ``end``, in which they store so. Both in 64 bits, in terms of the
    outer axes."""

    first: Expr
    end: Expr
    store: BufferStore


@dataclass(frozen=True, slots=True)
class _Cut:
    """A comparison that holds before a place of the axis (else from there on)."""

    place: Expr
    before: bool


def parts(store: BufferStore, axis: Axis) -> list[Part]:
    """The parts of an axis in which the conditions on it are known; one part where there are none."""
    extent = L.plain(axis.extent)
    cuts = {id(node): cut for node in _comparisons(store.value, axis.var) if (cut := _cut(node, axis)) is not None}
    places = _in_order([cut.place for cut in cuts.values()])
    if not places or len(places) >= MOST:
        return [Part(L.number(0), extent, store)]
    placed = {node: (_position(cut.place, places), cut.before) for node, cut in cuts.items()}
    ends = [L.plain(E.Min(E.Max(place, L.number(0)), extent)) for place in places]
    found: list[Part] = []
    for n, (first, end) in enumerate(zip([L.number(0), *ends], [*ends, extent], strict=True)):
        known = {node: (n <= place) is before for node, (place, before) in placed.items() if place is not None}
        if L.constant(L.sub(end, first)) != 0:
            found.append(Part(first, end, _decided(store, known)))
    return found or [Part(L.number(0), extent, store)]


def _comparisons(value: Expr, var: Var) -> list[E.CompareOp]:
    """The comparisons with a variable that conditions of what is evaluated lazily consist of."""
    varies = containing(value, lambda node: node is var)
    pending = [node.args[0] for node in pre_order(value) if isinstance(node, Call) and is_lazy(node)]
    found: dict[int, E.CompareOp] = {}
    seen: set[int] = set()
    while pending:
        condition = pending.pop()
        if id(condition) in seen:  # parts are shared
            continue
        seen.add(id(condition))
        if isinstance(condition, (E.And, E.Or)):
            pending.extend((condition.a, condition.b))
        elif isinstance(condition, E.Not):
            pending.append(condition.a)
        elif isinstance(condition, (E.LT, E.LE, E.GT, E.GE)) and id(condition) in varies:
            found[id(condition)] = condition
    return list(found.values())


def _cut(e: E.CompareOp, axis: Axis) -> _Cut | None:
    """Where a comparison changes its value: its sides are further apart by one with each step along the axis."""
    linear = detect_linear_equation(E.Sub(e.a, e.b), [axis.var])
    if not linear:
        return None
    step, base = L.constant(linear[0]), linear[1]
    if step not in (1, -1) or not _is_exact(e, base, axis):
        return None
    base = E.cast("int64", base)
    less, reached = isinstance(e, (E.LT, E.LE)), isinstance(e, (E.LE, E.GT))
    if step == 1:  # a - b == var + base: below (or at) 0 before
        return _Cut(L.add(L.sub(L.number(0), base), int(reached)), less)
    return _Cut(L.add(base, int(not reached)), not less)


def _is_exact(e: E.CompareOp, base: Expr, axis: Axis) -> bool:
    """Whether the comparison has the value of whole numbers: 64-bit ones do not wrap, narrower ones if they are far
    from doing so."""
    if E.scalar_dtype(e.a) == "int64":
        return True
    extent, distance = L.constant(axis.extent), L.constant(base)
    narrow = E.scalar_dtype(e.a) == "int32" and extent is not None and distance is not None
    return narrow and max(extent or 0, abs(distance or 0)) < NARROW


def _in_order(places: list[Expr]) -> list[Expr]:
    """Places in their order, each once; without those whose order is not known."""
    found: list[Expr] = []
    for place in places:
        if _position(place, found) is not None:
            continue
        before = 0
        while before < len(found) and _is_at_least(place, found[before]):
            before += 1
        if all(_is_at_least(later, place) for later in found[before:]):
            found.insert(before, place)
    return found


def _is_at_least(a: Expr, b: Expr) -> bool:
    return SHAPES.bounds(E.Sub(a, b))[0] >= 0


def _position(place: Expr, places: list[Expr]) -> int | None:
    return next((n for n, other in enumerate(places) if SHAPES.equal(place, other) is True), None)


def _decided(store: BufferStore, known: Mapping[int, bool]) -> BufferStore:
    """The store where some comparisons are known, by id."""

    def value(e: Expr) -> bool | None:
        return bool(e.value) if isinstance(e, IntImm) else None

    def rewrite(node: Node) -> Node | None:
        if id(node) in known:
            return E.const(known[id(node)])
        if isinstance(node, E.Not) and (a := value(node.a)) is not None:
            return E.const(not a)
        if isinstance(node, (E.And, E.Or)):
            decisive = isinstance(node, E.Or)
            if decisive in (value(node.a), value(node.b)):
                return E.const(decisive)
            if value(node.a) is not None:
                return node.b
            return node.a if value(node.b) is not None else None
        if isinstance(node, Call) and is_lazy(node) and (chosen := value(node.args[0])) is not None:
            return node.args[1 if chosen else 2]
        return None

    made = transform(store, rewrite)
    assert isinstance(made, BufferStore)
    return made
