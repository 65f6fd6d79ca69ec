"""The rule for elementwise, broadcast and other data-parallel nests.

    for i, j in T.grid(M, N): Z[i, j] = max(X[i, j], 0)         # before

    for v in range(M * N / 8):                                  # after: contiguous axes are one loop,
        Z_[8*v : 8*v+8] = max(X_[8*v : 8*v+8], 0)               # which runs in vectors,
    for t in range(M * N % 8): ...                              # the rest element by element
"""

from __future__ import annotations

from supple.analysis.nest import Axis, Nest, is_independent, loads
from supple.base import dtypes
from supple.base.target import Target
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Var
from supple.ir.loop import Buffer, BufferStore, DeclBuffer, buffer_type
from supple.ir.node import Expr, Node, Stmt
from supple.ir.types import prim_type
from supple.ir.walk import transform
from supple.schedule import loops as L
from supple.sym.simplify import SHAPES


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
    if len(group) > 1:
        views, store, extent, var = _flatten(nest, group)
    else:
        views, store, extent, var = [], nest.store, group[0].extent, group[0].var

    def inner(at: dict[Var, Expr]) -> Stmt:
        return strips(extent, width, lambda position: L.at(store, {**at, var: position}))

    return L.block(*views, L.proved(L.around(outer, {}, inner)))


def lanes_of(nest: Nest, target: Target) -> int:
    """How many lanes the widest element of a nest allows."""
    bits = [dtypes.row(E.scalar_dtype(nest.store.value)).bits]
    bits += [dtypes.row(load.dtype).bits for load in loads(nest)]
    return target.lanes(max(8, *bits))


def strips(extent: Expr, width: int, body: L.Body) -> Stmt:
    """A loop in vectors of ``width``, then the rest one by one."""
    whole = L.div(L.plain(extent), width)
    done = L.mul(whole, width)
    return L.block(
        L.loop("v", whole, lambda v: L.vectorized("lane", width, lambda lane: body(
            E.Add(E.Mul(v, L.number(width)), lane)))),
        L.loop("t", L.sub(L.plain(extent), done), lambda t: body(L.add(done, t))),
    )  # fmt: skip


def _contiguous(nest: Nest, order: list[Axis]) -> list[Axis]:
    """The longest run of inner axes that every access either passes through whole and in order, or not at all."""
    accesses = [(nest.store.buffer, nest.store.indices), *((x.buffer, x.indices) for x in loads(nest))]
    if _uses_variables_as_values(nest):
        return order[-1:]
    best = order[-1:]
    for length in range(2, len(order) + 1):
        group = order[-length:]
        if not all(_passes(nest, buffer, indices, group) for buffer, indices in accesses):
            break
        best = group
    return best


def _uses_variables_as_values(nest: Nest) -> bool:
    """Whether a loop variable occurs outside plain indices (its value would be lost when loops are fused)."""
    for load in loads(nest):
        for index in load.indices:
            if nest.axis(index) is None and nest.depends(index):
                return True

    def without_loads(node: Node) -> Node | None:
        return E.const(0, node.dtype) if isinstance(node, BufferLoad) else None

    rest = transform(nest.store.value, without_loads)
    return bool(nest.depends(rest))


def _passes(nest: Nest, buffer: Var, indices: tuple[Expr, ...], group: list[Axis]) -> bool:
    axes = [nest.axis(index) for index in indices]
    used = [any(a is g for a in axes) for g in group]
    if not any(used):
        return True
    tail = axes[-len(group) :]
    if len(tail) != len(group) or any(a is not g for a, g in zip(tail, group, strict=True)):
        return False
    if any(any(a is g for g in group) for a in axes[: -len(group)]):
        return False
    shape = buffer_type(buffer).shape[-len(group) :]
    return all(SHAPES.equal(extent, axis.extent) is True for extent, axis in zip(shape, group, strict=True))


def _flatten(nest: Nest, group: list[Axis]) -> tuple[list[Stmt], BufferStore, Expr, Var]:
    """Views in which the axes of the group are one, the store in terms of them, the new axis."""
    extent: Expr = L.number(1)
    for axis in group:
        extent = L.mul(extent, axis.extent)
    var = Var("f", prim_type("int64"))
    views: dict[int, Var] = {}
    statements: list[Stmt] = []

    def view(buffer: Var) -> Var:
        if id(buffer) not in views:
            ty = buffer_type(buffer)
            shape = (*ty.shape[: len(ty.shape) - len(group)], extent)
            views[id(buffer)] = Buffer(f"{buffer.name}_flat", shape, ty.dtype, ty.scope, data=buffer)
            statements.append(DeclBuffer(buffer, views[id(buffer)]))
        return views[id(buffer)]

    def rewrite(node: Node) -> Node | None:
        if isinstance(node, (BufferLoad, BufferStore)) and node.indices and nest.axis(node.indices[-1]) is group[-1]:
            indices = (*node.indices[: len(node.indices) - len(group)], var)
            if isinstance(node, BufferLoad):
                return BufferLoad(view(node.buffer), indices, span=node.span)
            return BufferStore(view(node.buffer), node.value, indices, span=node.span)
        return None

    store = transform(nest.store, rewrite)
    assert isinstance(store, BufferStore)
    return statements, store, extent, var
