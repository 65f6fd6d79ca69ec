"""Neighbouring loops as one, where every buffer is passed through whole: views with fewer dimensions.

for b, i, j: Z[b, i, j] = X[b, i, j] + B[j]     # (L, M, N), (N,)
for r, j: Z_[r, j] = X_[r, j] + B[j]            # merging b and i: views of shape (L * M, N)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from supple.analysis.nest import Axis, Nest
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Var
from supple.ir.loop import Buffer, BufferStore, DeclBuffer, buffer_type
from supple.ir.node import Expr, Node, Stmt
from supple.ir.types import prim_type
from supple.ir.walk import pre_order, transform
from supple.schedule import loops as L
from supple.sym.simplify import SHAPES

Access = BufferLoad | BufferStore


def can_merge(nest: Nest, group: Sequence[Axis], others: Sequence[BufferStore] = ()) -> bool:
    """Whether every access of the nest (and of other stores over its axes) takes the axes of the group as
    neighbouring indices in order, each over its whole dimension (the first may be a part), or not at all."""
    stores = _stores(nest, others)
    return all(_fits(nest, group, store) for store in stores) and _one_view_each(nest, group, stores)


def _stores(nest: Nest, others: Sequence[BufferStore]) -> list[BufferStore]:
    return [nest.store, *((nest.init,) if nest.init is not None else ()), *others]


def _fits(nest: Nest, group: Sequence[Axis], store: BufferStore) -> bool:
    own = {id(a.var) for a in group}
    for node in pre_order(store):
        if isinstance(node, (BufferLoad, BufferStore)) and _place(nest, group, node) is None:
            return False

    def hide(node: Node) -> Node | None:
        """Loads replaced by a constant: what is left uses the variables as values."""
        return E.const(0, node.dtype) if isinstance(node, BufferLoad) else None

    return not any(id(n) in own for n in pre_order(transform(store.value, hide)))


def _place(nest: Nest, group: Sequence[Axis], access: Access) -> int | None:
    """The position of the group among the indices, -1 where it has no part in them, None where it does not fit."""
    axes = [nest.axis(index) for index in access.indices]
    inside = [p for p, a in enumerate(axes) if any(a is g for g in group)]
    if not inside:
        mentioned = [a for index in access.indices for a in nest.depends(index)]
        return None if any(a is g for a in mentioned for g in group) else -1
    first = inside[0]
    if inside != list(range(first, first + len(group))):
        return None
    if any(a is not g for a, g in zip(axes[first : first + len(group)], group, strict=True)):
        return None
    shape = buffer_type(access.buffer).shape
    for position, axis in list(enumerate(group, first))[1:]:
        if SHAPES.equal(shape[position], axis.extent) is not True:
            return None
    rest = [index for p, index in enumerate(access.indices) if p not in inside]
    if any(a is g for index in rest for a in nest.depends(index) for g in group):
        return None
    return first


def _one_view_each(nest: Nest, group: Sequence[Axis], stores: Sequence[BufferStore]) -> bool:
    """Whether each buffer has the group at one position in all its accesses, so that one view serves them."""
    places: dict[int, set[int]] = {}
    for store in stores:
        for node in pre_order(store):
            if isinstance(node, (BufferLoad, BufferStore)):
                place = _place(nest, group, node)
                places.setdefault(id(node.buffer), set()).add(-1 if place is None else place)
    return all(len(found) == 1 for found in places.values())


def merge(
    nest: Nest, group: Sequence[Axis], others: Sequence[BufferStore] = ()
) -> tuple[list[Stmt], Nest, list[BufferStore]]:
    """Declarations of the views, the nest with one axis in place of the group, the other stores likewise.

    The group must pass `can_merge`. The new axis takes the place of the group's last.
    """
    extent: Expr = L.number(1)
    for axis in group:
        extent = L.mul(extent, axis.extent)
    merged = Axis(Var("_".join(a.var.name for a in group), prim_type("int64")), extent, group[0].reduce)
    views: dict[int, Var] = {}
    declared: list[Stmt] = []

    def view(buffer: Var, first: int) -> Var:
        if id(buffer) not in views:
            ty = buffer_type(buffer)
            dims: Expr = L.number(1)
            for dim in ty.shape[first : first + len(group)]:
                dims = L.mul(dims, E.cast("int64", dim))
            shape = (*ty.shape[:first], dims, *ty.shape[first + len(group) :])
            views[id(buffer)] = Buffer(f"{buffer.name}_view", shape, ty.dtype, ty.scope, data=buffer)
            declared.append(DeclBuffer(views[id(buffer)], buffer))
        return views[id(buffer)]

    def rewrite(node: Node) -> Node | None:
        if not isinstance(node, (BufferLoad, BufferStore)):
            return None
        first = _place(nest, group, node)
        if first is None or first < 0:
            return None
        indices = (*node.indices[:first], merged.var, *node.indices[first + len(group) :])
        if isinstance(node, BufferLoad):
            return BufferLoad(view(node.buffer, first), indices, span=node.span)
        return BufferStore(view(node.buffer, first), node.value, indices, span=node.span)

    def rewritten(store: BufferStore) -> BufferStore:
        made = transform(store, rewrite)
        assert isinstance(made, BufferStore)
        return made

    axes = tuple(merged if a is group[-1] else a for a in nest.axes if a is group[-1] or not any(a is g for g in group))
    init = None if nest.init is None else rewritten(nest.init)
    changed = dataclasses.replace(nest, axes=axes, store=rewritten(nest.store), init=init, block=None)
    return declared, changed, [rewritten(store) for store in others]
