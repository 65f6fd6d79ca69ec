"""The rule for nests that follow each other row by row: a softmax's maxima, exponentials, sums and quotients.

for i, k: top[i] = max(top[i], X[i, k])     # before: four sweeps over memory
for i, k: E[i, k] = exp(X[i, k] - top[i])
for i, k: sum[i] += E[i, k]
for i, k: Z[i, k] = E[i, k] / sum[i]

for i in T.parallel(M):                     # after: one, and what only passes between the nests is a row's own
    top, sum = T.alloc_buffer((1,)), T.alloc_buffer((1,))
    (the four nests over k, each by its own rule; Z[i] holds the exponentials until it holds the quotients)

Iterations of different rows must not meet: each buffer that the nests write is reached, wherever the nests mention it,
at the row's own indices. The order of operations within a row stays, so every result keeps its bits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from supple.analysis.nest import Axis, Nest, is_independent, loads
from supple.analysis.reduction import is_same_place
from supple.base import dtypes
from supple.base.target import Target
from supple.ir.expr import BufferLoad, Var
from supple.ir.loop import AllocBuffer, Buffer, BufferStore, For, ForKind, buffer_type
from supple.ir.node import Expr, Node, Stmt, replace
from supple.ir.types import prim_type
from supple.ir.walk import pre_order, transform
from supple.schedule import loops as L
from supple.sym.simplify import SHAPES

LONG_ROW = 1 << 14
"""Elements of a row that are worth sharing among threads where there are fewer rows than threads."""

IN_REGISTERS = 64
"""Bytes of a row's own buffer that go on the stack, where they become registers."""

Access = BufferLoad | BufferStore
Rule = Callable[[Nest], Stmt | None]


def join_rows(
    nests: Sequence[Nest | None], is_own: Callable[[Var, int], bool], exclusive: bool, target: Target, rule: Rule
) -> tuple[Stmt, int] | None:
    """The first nests as one loop over rows, and how many they are; None where there is nothing to join.

    ``is_own(buffer, count)``: whether only the first ``count`` nests use a buffer. ``exclusive``: what is written
    overlaps nothing else. ``rule`` writes the loops of a nest inside its row.
    """
    group, depth = _together(nests)
    if len(group) < 2 or not any(a.reduce for n in group for a in n.axes):
        return None
    own = [b for b in _written(group) if is_own(b, len(group))]
    if (not exclusive and len(own) < len(_written(group))) or not _is_worth_it(group, depth, target):
        return None
    made = _join(group, depth, own, exclusive, rule)
    return None if made is None else (made, len(group))


def _together(nests: Sequence[Nest | None]) -> tuple[list[Nest], int]:
    """Those of the first nests that can share a loop over rows, and over how many leading axes."""
    group: list[Nest] = []
    depth = 0
    for nest in nests:
        if nest is None or not is_independent(nest):
            break
        least = min(_leading(nest), depth) if group else _leading(nest)
        together = [*group, nest]
        while least and not (
            _same_extents(together, least) and _rows_apart(together, least) and _along(together, least)
        ):
            least -= 1
        if not least:
            break
        group.append(nest)
        depth = least
    return group, depth


def _leading(nest: Nest) -> int:
    """How many leading indices of the store are loop variables."""
    count = 0
    for index in nest.store.indices:
        if nest.axis(index) is None:
            break
        count += 1
    return count


def _lead(nest: Nest, depth: int) -> list[Axis]:
    found = [nest.axis(index) for index in nest.store.indices[:depth]]
    return [axis for axis in found if axis is not None]


def _same_extents(group: Sequence[Nest], depth: int) -> bool:
    first = _lead(group[0], depth)
    return all(
        SHAPES.equal(a.extent, b.extent) is True
        for nest in group[1:]
        for a, b in zip(first, _lead(nest, depth), strict=True)
    )


def _accesses(nest: Nest) -> list[Access]:
    stores = [nest.store] if nest.init is None else [nest.store, nest.init]
    return [n for s in stores for n in pre_order(s) if isinstance(n, (BufferLoad, BufferStore))]


def _written(group: Sequence[Nest]) -> list[Var]:
    return list({id(n.store.buffer): n.store.buffer for n in group}.values())


def _rows_apart(group: Sequence[Nest], depth: int) -> bool:
    """Whether what the nests write is reached at the row's own indices only."""
    written = {id(b) for b in _written(group)}
    for nest in group:
        lead = _lead(nest, depth)
        for access in _accesses(nest):
            if id(access.buffer) not in written:
                continue
            at = [nest.axis(index) for index in access.indices[:depth]]
            if len(at) < depth or any(a is not b for a, b in zip(at, lead, strict=True)):
                return False
    return True


def _along(group: Sequence[Nest], depth: int) -> bool:
    """Whether memory is read along the rows: what is summed over rows runs in vectors across them."""
    for nest in group:
        if not any(a.reduce for a in nest.axes):
            continue
        lead = _lead(nest, depth)
        for load in loads(nest):
            inside = [a for a in nest.depends(load) if not any(a is b for b in lead)]
            if inside and any(a is b for a in nest.depends(load.indices[-1]) for b in lead):
                return False
    return True


def _is_worth_it(group: Sequence[Nest], depth: int, target: Target) -> bool:
    """Whether something passes between the nests, and threads have enough rows to share."""
    written = {id(n.store.buffer) for n in group[:-1]}
    if not any(id(x.buffer) in written for n in group[1:] for x in _accesses(n) if isinstance(x, BufferLoad)):
        return False
    rows = _product([a.extent for a in _lead(group[0], depth)])
    if rows is None or rows >= target.cores:
        return True
    longest = [_product([a.extent for a in n.axes if not any(a is b for b in _lead(n, depth))]) for n in group]
    return all(length is not None and length <= LONG_ROW for length in longest)


def _product(extents: Sequence[Expr]) -> int | None:
    total = 1
    for extent in extents:
        size = L.constant(extent)
        if size is None:
            return None
        total *= size
    return total


def _join(group: Sequence[Nest], depth: int, own: Sequence[Var], exclusive: bool, rule: Rule) -> Stmt | None:
    rows = _lead(group[0], depth)
    names = [Var(axis.var.name, prim_type("int64")) for axis in rows]
    kept = _in_results(group, own) if exclusive else {}
    private = {id(b): _row_of(b, depth) for b in own if id(b) not in kept}
    made: list[Stmt] = []
    for nest in group:
        inner = _within(nest, depth, names, private, kept)
        statement = L.proved(inner.store) if not inner.axes else rule(inner)
        if statement is None:
            return None
        made.append(_serial(statement))

    def body(at: dict[Var, Expr]) -> Stmt:
        placed = L.at(L.block(*made), {name: at[axis.var] for name, axis in zip(names, rows, strict=True)})
        assert isinstance(placed, Stmt)
        return L.block(*(AllocBuffer(b) for b in private.values()), placed)

    return L.parallel_around(rows, {}, body)


def _row_of(buffer: Var, depth: int) -> Var:
    """A buffer for one row of another."""
    ty = buffer_type(buffer)
    shape = ty.shape[depth:] or (L.number(1),)
    size = _product(shape)
    local = size is not None and size * dtypes.nbytes(ty.dtype) <= IN_REGISTERS
    return Buffer(buffer.name, shape, ty.dtype, "local" if local else ty.scope)


def _in_results(group: Sequence[Nest], own: Sequence[Var]) -> dict[int, Var]:
    """Own buffers that a result can hold, which the last nest to use them makes of them element by element: by id.

    The lines of the result then arrive from memory while the buffer is computed, not all at once at the end.
    """
    found: dict[int, Var] = {}
    for last, nest in enumerate(group):
        result = nest.store.buffer
        if any(result is b for b in own) or any(a.reduce for a in nest.axes):
            continue
        others = [x for n in group if n is not nest for x in _accesses(n)]
        if any(x.buffer is result for x in others) or any(x.buffer is result for x in loads(nest)):
            continue
        for load in loads(nest):
            buffer = load.buffer
            fits = (
                id(buffer) not in found
                and any(buffer is b for b in own)
                and _same_type(buffer, result)
                and all(
                    is_same_place(nest.store, BufferLoad(result, x.indices)) for x in loads(nest) if x.buffer is buffer
                )
                and not any(x.buffer is buffer for n in group[last + 1 :] for x in _accesses(n))
            )
            if fits:
                found[id(buffer)] = result
                break
    return found


def _same_type(a: Var, b: Var) -> bool:
    one, other = buffer_type(a), buffer_type(b)
    return (
        one.dtype == other.dtype
        and len(one.shape) == len(other.shape)
        and all(SHAPES.equal(x, y) is True for x, y in zip(one.shape, other.shape, strict=True))
    )


def _within(nest: Nest, depth: int, names: Sequence[Var], private: dict[int, Var], kept: dict[int, Var]) -> Nest:
    """The nest inside a row: its leading axes are variables from outside, its own buffers have no rows (or are those
    that hold them)."""
    lead = _lead(nest, depth)
    mapping: dict[Var, Expr] = {axis.var: name for axis, name in zip(lead, names, strict=True)}

    def rewrite(node: Node) -> Node | None:
        if not isinstance(node, (BufferLoad, BufferStore)):
            return None
        if id(node.buffer) in kept:
            return replace(node, buffer=kept[id(node.buffer)])
        if id(node.buffer) in private:
            return replace(node, buffer=private[id(node.buffer)], indices=node.indices[depth:] or (L.number(0),))
        return None

    def placed(store: BufferStore) -> BufferStore:
        made = transform(L.at(store, mapping), rewrite)
        assert isinstance(made, BufferStore)
        return made

    axes = tuple(a for a in nest.axes if not any(a is b for b in lead))
    init = None if nest.init is None else placed(nest.init)
    return dataclasses.replace(nest, axes=axes, store=placed(nest.store), init=init, block=None)


def _serial(statement: Stmt) -> Stmt:
    """Loops that threads could share, inside one that they do share, are ordinary ones."""

    def rewrite(node: Node) -> Node | None:
        parallel = isinstance(node, For) and node.kind is ForKind.PARALLEL and L.RANGE not in node.annotations
        return replace(node, kind=ForKind.SERIAL) if parallel else None

    made = transform(statement, rewrite)
    assert isinstance(made, Stmt)
    return made
