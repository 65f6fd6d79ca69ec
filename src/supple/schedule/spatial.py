"""The rule for elementwise, broadcast and other data-parallel nests.

for i, j in T.grid(M, N): Z[i, j] = max(X[i, j], 0)         # before

for v in T.parallel(M * N / 8):                             # after: contiguous axes are one loop,
    Z_[8*v : 8*v+8] = max(X_[8*v : 8*v+8], 0)               # which runs in vectors, shared by threads,
for t in range(M * N % 8): ...                              # the rest element by element

Axes that cannot be one loop stay around it; then the outermost is the one that threads share.

for i, j in T.grid(M, N): Z[i, j] = X[j, i]                 # an operand that is contiguous along another axis:

for io in T.parallel(M / 16):                               # after: in blocks of as many elements of that axis as
    for v in range(N / 8):                                  # a cache line holds, so that each line read is used up
        for i in range(16):                                 # before it leaves the cache
            Z[16*io + i, 8*v : 8*v+8] = X[8*v : 8*v+8, 16*io + i]
"""

from __future__ import annotations

from supple.analysis.nest import Axis, Nest, is_independent, loads
from supple.base import dtypes
from supple.base.target import Target
from supple.ir import expr as E
from supple.ir.expr import Var
from supple.ir.node import Expr, Stmt
from supple.schedule import loops as L
from supple.schedule.merge import can_merge, merge

LINE = 64
"""Bytes of a cache line."""


def schedule_spatial(nest: Nest, target: Target) -> Stmt | None:
    """The loops of a data-parallel nest, or None when the rule does not fit."""
    if any(a.reduce for a in nest.axes) or not is_independent(nest):
        return None
    order = [axis for axis in (nest.axis(index) for index in nest.store.indices) if axis is not None]
    if not order or nest.axis(nest.store.indices[-1]) is None:
        return None
    width = lanes_of(nest, target)
    group = _contiguous(nest, order)
    outer = order[: len(order) - len(group)]
    views: list[Stmt] = []
    last = group[0]
    if len(group) > 1:
        views, nest, _ = merge(nest, group)
        last = next(a for a in nest.axes if not any(a is o for o in outer))
    store = nest.store
    across = _across(nest, last, outer)
    if across is not None:
        return L.block(*views, L.proved(_in_blocks(nest, last, across, outer, width)))

    alone = all(L.constant(axis.extent) == 1 for axis in outer)

    def inner(at: dict[Var, Expr]) -> Stmt:
        return strips(last.extent, width, lambda position: L.at(store, {**at, last.var: position}), shared=alone)

    return L.block(*views, L.proved(L.parallel_around(outer, {}, inner, L.constant(last.extent))))


def _across(nest: Nest, last: Axis, outer: list[Axis]) -> Axis | None:
    """The axis along which most of those operands are contiguous that are not along the result's last axis."""
    counts = [0] * len(outer)
    for load in loads(nest):
        if not load.indices or any(a is last for a in nest.depends(load.indices[-1])):
            continue
        if any(a is last for a in nest.depends(load)):
            for place, axis in enumerate(outer):
                counts[place] += nest.axis(load.indices[-1]) is axis
    most = max(range(len(outer)), key=lambda place: counts[place], default=None)
    return None if most is None or not counts[most] else outer[most]


def _in_blocks(nest: Nest, last: Axis, across: Axis, outer: list[Axis], width: int) -> Stmt:
    """Vectors along the last axis, for a cache line's elements of another axis before the next vector."""
    block = max(8, LINE // max(dtypes.nbytes(load.dtype) for load in loads(nest)))
    extent = L.plain(across.extent)
    blocks = Axis(Var(f"{across.var.name}_o", across.var.ty), L.ceildiv(extent, block), False)

    def inner(at: dict[Var, Expr]) -> Stmt:
        first = L.mul(at[blocks.var], block)
        here = L.plain(E.Min(L.number(block), L.sub(extent, first)))

        def element(i: Expr, j: Expr) -> Stmt:
            made: Stmt = L.at(nest.store, {**at, across.var: L.add(first, i), last.var: j})
            return made

        def vector(v: Expr) -> Stmt:
            return L.loop(across.var.name, here, lambda i: L.vectorized("lane", width, lambda lane: element(
                i, E.Add(E.Mul(v, L.number(width)), lane))))  # fmt: skip

        whole = L.div(L.plain(last.extent), width)
        done = L.mul(whole, width)
        rest = L.loop("t", L.sub(L.plain(last.extent), done), lambda t: L.loop(
            across.var.name, here, lambda i: element(i, L.add(done, t))))  # fmt: skip
        return L.block(L.loop("v", whole, vector), rest)

    axes = [blocks if axis is across else axis for axis in outer]
    return L.parallel_around(axes, {}, inner, L.constant(last.extent))


def lanes_of(nest: Nest, target: Target) -> int:
    """How many lanes the widest element of a nest allows."""
    kinds = [E.scalar_dtype(nest.store.value), *(load.dtype for load in loads(nest))]
    # floats of a byte are computed in float32: a full vector of them would be four registers, which are too many
    return target.lanes(max(max(16 if dtypes.is_float(kind) else 8, dtypes.row(kind).bits) for kind in kinds))


def strips(extent: Expr, width: int, body: L.Body, *, shared: bool = False) -> Stmt:
    """A loop in vectors of ``width``, then the rest one by one. ``shared``: threads share the vectors."""
    vectors = L.parallel if shared else L.loop
    whole = L.div(L.plain(extent), width)
    done = L.mul(whole, width)
    return L.block(
        vectors("v", whole, lambda v: L.vectorized("lane", width, lambda lane: body(
            E.Add(E.Mul(v, L.number(width)), lane)))),
        L.loop("t", L.sub(L.plain(extent), done), lambda t: body(L.add(done, t))),
    )  # fmt: skip


def _contiguous(nest: Nest, order: list[Axis]) -> list[Axis]:
    """The longest run of inner axes that can be one."""
    best = order[-1:]
    for length in range(2, len(order) + 1):
        if not can_merge(nest, order[-length:]):
            break
        best = order[-length:]
    return best
