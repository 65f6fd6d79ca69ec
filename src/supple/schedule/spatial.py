"""The rule for elementwise, broadcast and other data-parallel nests.

for i, j in T.grid(M, N): Z[i, j] = max(X[i, j], 0)         # before

for v in T.parallel(M * N / 8):                             # after: contiguous axes are one loop,
    Z_[8*v : 8*v+8] = max(X_[8*v : 8*v+8], 0)               # which runs in vectors, shared by threads,
for t in range(M * N % 8): ...                              # the rest element by element

Axes that cannot be one loop stay around it; then the outermost is the one that threads share.

for i, j in T.grid(M, N): Z[i, j] = X[j, i]                 # an operand that is contiguous along another axis:

for io in T.parallel(M / 16):                               # after: in blocks of as many elements of that axis as
    for v in range(N / 8):                                  # a cache line holds, so that each line read is used up
        for i in range(16):                                 # before it leaves the cache; squares of them are read
            Z[16*io + i, 8*v : 8*v+8] = X[8*v : 8*v+8, 16*io + i]        # along that axis and turned (`turn`)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from supple.analysis.lazy import is_lazy
from supple.analysis.nest import Axis, Nest, is_independent, loads
from supple.base import dtypes
from supple.base.target import Target
from supple.ir import expr as E
from supple.ir.expr import Var
from supple.ir.loop import Bind, BufferStore
from supple.ir.node import Expr, Node, Stmt, children
from supple.ir.op import Op
from supple.ir.types import prim_type
from supple.ir.walk import containing, pre_order, transform
from supple.schedule import loops as L
from supple.schedule.merge import can_merge, merge
from supple.schedule.partition import Part, parts
from supple.schedule.turn import depth_of, turned

LINE = 64
"""Bytes of a cache line."""

AT_A_TIME = 4
"""Vectors that go through a function of floats next to each other."""


def schedule_spatial(nest: Nest, target: Target, *, proved: bool = True) -> Stmt | None:
    """The loops of a data-parallel nest, or None when the rule does not fit. ``proved``: its accesses are in bounds;
    others are checked as they run, which is what makes reading across the last axis not worth it."""
    if any(a.reduce for a in nest.axes) or not is_independent(nest):
        return None
    order = [axis for axis in (nest.axis(index) for index in nest.store.indices) if axis is not None]
    if not order or nest.axis(nest.store.indices[-1]) is None:
        return None
    width = lanes_of(nest, target, order[-1])
    group = _contiguous(nest, order)
    outer = order[: len(order) - len(group)]
    views: list[Stmt] = []
    last = group[0]
    if len(group) > 1:
        views, nest, _ = merge(nest, group)
        last = next(a for a in nest.axes if not any(a is o for o in outer))
    store = nest.store
    across = _across(nest, last, outer) if proved else None
    if across is not None:
        return L.block(*views, L.proved(_in_blocks(nest, last, across, outer, width)))

    alone = all(L.constant(axis.extent) == 1 for axis in outer)
    once = _constant_calls(nest, last)
    named = transform(store, lambda node: once[id(node)][0] if id(node) in once else None)
    assert isinstance(named, BufferStore)

    def some(part: Part, at: dict[Var, Expr]) -> Stmt:
        first, count = L.at(part.first, at), L.at(L.sub(part.end, part.first), at)
        widths = _widths(part.store, width, target)
        return strips(
            count, widths, lambda place: L.at(part.store, {**at, last.var: L.add(first, place)}), shared=alone
        )

    def inner(at: dict[Var, Expr]) -> Stmt:
        before = [(Var(var.name, var.ty), var, L.at(call, at)) for var, call in once.values()]
        here = {**at, **{var: own for own, var, _ in before}}
        return L.block(
            *(Bind(own, call) for own, _, call in before), *(some(part, here) for part in parts(named, last))
        )

    made = L.parallel_around(outer, {}, inner, L.constant(last.extent))
    return L.block(*views, L.proved(made) if proved else made)


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
    """Vectors along the last axis, for a cache line's elements of another axis before the next vector. What is
    contiguous along that axis is read along it and turned."""
    block = max(8, LINE // max(dtypes.nbytes(load.dtype) for load in loads(nest)))
    extent = L.plain(across.extent)
    blocks = Axis(Var(f"{across.var.name}_o", across.var.ty), L.ceildiv(extent, block), False)
    crossing = _crossing(nest, last, across, width)
    depth = min((depth_of(load.dtype, width) or 1 for load in crossing), default=1)

    def inner(at: dict[Var, Expr]) -> Stmt:
        first = L.mul(at[blocks.var], block)
        here = L.plain(E.Min(L.number(block), L.sub(extent, first)))

        def element(i: Expr, j: Expr) -> Stmt:
            made: Stmt = L.at(nest.store, {**at, across.var: L.add(first, i), last.var: j})
            return made

        def lanes(v: Expr, lane: Expr) -> Expr:
            return E.Add(E.Mul(v, L.number(width)), lane)

        def vector(v: Expr, i: Expr) -> Stmt:
            return L.vectorized("lane", width, lambda lane: element(i, lanes(v, lane)))

        def square(v: Expr, begin: Expr) -> Stmt:
            return _square(nest.store, crossing, width, depth, lambda i, lane: {
                **at, across.var: L.add(first, begin, i), last.var: lanes(v, lane)})  # fmt: skip

        def one(v: Expr) -> Stmt:
            if depth == 1:
                return L.loop(across.var.name, here, lambda i: vector(v, i))
            squares = L.div(here, depth)
            done = L.mul(squares, depth)
            return L.block(
                L.loop("io", squares, lambda io: square(v, L.mul(io, depth))),
                L.loop(across.var.name, L.sub(here, done), lambda i: vector(v, L.add(done, i))),
            )

        whole = L.div(L.plain(last.extent), width)
        done = L.mul(whole, width)
        rest = L.loop("t", L.sub(L.plain(last.extent), done), lambda t: L.loop(
            across.var.name, here, lambda i: element(i, L.add(done, t))))  # fmt: skip
        return L.block(L.loop("v", whole, one), rest)

    axes = [blocks if axis is across else axis for axis in outer]
    return L.parallel_around(axes, {}, inner, L.constant(last.extent))


def _square(
    store: BufferStore, crossing: Sequence[E.BufferLoad], width: int, depth: int,
    where: Callable[[Expr, Expr], dict[Var, Expr]],
) -> Stmt:  # fmt: skip
    """The store for a vector of lanes and ``depth`` steps across; ``where(i, lane)`` is the place of an element."""
    made = [
        turned(load.dtype, width, depth, partial(lambda load, lane, i: L.at(load, where(i, lane)), load))
        for load in crossing
    ]
    names = {id(load): Var("element", prim_type(load.dtype)) for load in crossing}
    named = transform(store, lambda node: names.get(id(node)))

    def element(i: Expr, lane: Expr) -> Stmt:
        elements = {names[id(load)]: t.at(i, lane) for load, t in zip(crossing, made, strict=True)}
        stored: Stmt = L.at(named, {**where(i, lane), **elements})
        return stored

    return L.block(
        *(t.fill for t in made),
        L.unrolled("i", depth, lambda i: L.vectorized("lane", width, lambda lane: element(i, lane))),
    )


def _crossing(nest: Nest, last: Axis, across: Axis, width: int) -> list[E.BufferLoad]:
    """The operands that are contiguous along ``across`` and move along the last axis; none where some element may not
    be read (only one side of a condition is)."""
    if _is_conditional(nest.store.value):
        return []
    return [
        load
        for load in loads(nest)
        if load.indices
        and nest.axis(load.indices[-1]) is across
        and any(a is last for a in nest.depends(load))
        and depth_of(load.dtype, width) is not None
    ]


def lanes_of(nest: Nest, target: Target, along: Axis | None = None) -> int:
    """How many lanes the widest element of a nest allows (of those that are read ``along`` an axis)."""
    read = [load for load in loads(nest) if along is None or any(a is along for a in nest.depends(load))]
    kinds = [E.scalar_dtype(nest.store.value), *(load.dtype for load in read)]
    # floats of a byte are computed in float32: a full vector of them would be four registers, which are too many
    return target.lanes(max(max(16 if dtypes.is_float(kind) else 8, dtypes.row(kind).bits) for kind in kinds))


def _is_conditional(value: Expr) -> bool:
    """Whether only a part of a value may be computed."""
    return any(isinstance(node, Expr) and is_lazy(node) for node in pre_order(value))


def _widths(store: BufferStore, width: int, target: Target) -> tuple[int, ...]:
    """How many elements at a time, and then of what is left. A function is a long chain of steps: a processor does not
    look far enough ahead to find the next vector's, so several are written next to each other and share constants."""
    kinds = [E.scalar_dtype(node) for node in pre_order(store) if isinstance(node, E.Call) and _calls_function(node)]
    if not kinds:
        return (width,)
    vectors = min(target.lanes(max(32, dtypes.row(kind).bits)) for kind in kinds) * AT_A_TIME
    return (vectors, width) if vectors > width else (width,)


def _calls_function(call: E.Call) -> bool:
    """Whether a call is one of a function of floats."""
    return dtypes.is_float(E.scalar_dtype(call))


def _constant_calls(nest: Nest, last: Axis) -> dict[int, tuple[Var, Expr]]:
    """The functions of floats whose arguments stay the same along the last axis, by id, with variables for their
    values: a function that branches is not moved out of the loop later. None where an element may not be read."""
    found: dict[int, tuple[Var, Expr]] = {}
    if _is_conditional(nest.store.value) or L.constant(last.extent) == 1:
        return found
    varies = containing(nest.store.value, lambda node: node is last.var)
    seen: set[int] = set()
    stack: list[Node] = [nest.store.value]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, E.Call) and _calls_function(node) and isinstance(node.op, Op) and node.op.pure:
            if id(node) not in varies:
                found[id(node)] = (Var("once", prim_type(E.scalar_dtype(node))), node)
                continue
        stack.extend(children(node))
    return found


def strips(extent: Expr, widths: Sequence[int], body: L.Body, *, shared: bool = False) -> Stmt:
    """A loop in vectors of the first width, the rest in vectors of the next, what is left one by one. ``shared``:
    threads share the first."""
    size = L.plain(extent)
    done: Expr = L.number(0)

    def vectors(width: int, first: Expr, v: Expr) -> Stmt:
        return L.vectorized("lane", width, lambda lane: body(L.add(first, E.Add(E.Mul(v, L.number(width)), lane))))

    statements: list[Stmt] = []
    for width in widths:
        whole = L.div(L.sub(size, done), width)
        repeat = L.parallel if shared and not statements else L.loop
        statements.append(repeat("v", whole, partial(vectors, width, done)))
        done = L.add(done, L.mul(whole, width))
    return L.block(*statements, L.loop("t", L.sub(size, done), lambda t: body(L.add(done, t))))


def _contiguous(nest: Nest, order: list[Axis]) -> list[Axis]:
    """The longest run of inner axes that can be one."""
    best = order[-1:]
    for length in range(2, len(order) + 1):
        if not can_merge(nest, order[-length:]):
            break
        best = order[-length:]
    return best
