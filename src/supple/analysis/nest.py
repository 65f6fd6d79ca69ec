"""Reading a loop nest: the loops around one block, and what each loop does."""

from __future__ import annotations

from dataclasses import dataclass

from supple.analysis.bounds import Context
from supple.analysis.lazy import is_lazy
from supple.analysis.reduction import fuse_multiply_add, is_same_place
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, IntImm, Var
from supple.ir.loop import BufferStore, For, ForKind, IterType, SBlock, SBlockRealize, buffer_type
from supple.ir.node import Expr, Node, Stmt, children
from supple.ir.walk import containing, post_order, pre_order, substitute


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop of a nest: its variable and its extent; ``reduce`` when the block's variable reduces."""

    var: Var
    extent: Expr
    reduce: bool


@dataclass(frozen=True, slots=True)
class Nest:
    """A perfect nest of counted loops around one store.

    ``axes`` are the loops from the outside in, each from 0; ``store`` is written in terms of the loop variables, the
    multiply and add of a reduction fused; ``init`` is the reduction's initialisation, or None.
    """

    axes: tuple[Axis, ...]
    store: BufferStore
    init: BufferStore | None
    block: SBlock | None
    statement: Stmt

    def axis(self, e: Expr) -> Axis | None:
        """The axis whose variable an expression is (through widening casts), or None."""
        var = E.uncast(e)
        return next((a for a in self.axes if a.var is var), None)

    def depends(self, node: Node) -> list[Axis]:
        """The axes that occur in an expression."""
        inside = {id(n) for n in pre_order(node) if isinstance(n, Var)}
        return [a for a in self.axes if id(a.var) in inside]

    def innermost(self, load: BufferLoad) -> int:
        """Which of a load's indices moves it by one element: the last one whose dimension has more than one."""
        shape = buffer_type(load.buffer).shape
        ones = (isinstance(d, IntImm) and d.value == 1 for d in reversed(shape))
        return len(shape) - 1 - next((n for n, one in enumerate(ones) if not one), 0)

    def along(self, load: BufferLoad) -> Axis | None:
        """The axis along which what a load reads lies next to each other, or None."""
        return self.axis(load.indices[self.innermost(load)]) if load.indices else None


def read_nest(statement: Stmt) -> Nest | None:
    """The `Nest` of a statement, or None when it is anything else.

    The loops are serial (or parallel), start at 0 and step by 1; they hold one block without a predicate, whose
    variables are bound to loop variables, one each, and whose body is one store.
    """
    loops: list[For] = []
    current: Stmt = statement
    while isinstance(current, For):
        if current.kind not in (ForKind.SERIAL, ForKind.PARALLEL) or current.step is not None or current.annotations:
            return None
        if not _is_zero(current.min):
            return None
        loops.append(current)
        current = current.body
    if loops and isinstance(current, BufferStore):
        return _without_block(loops, current, statement)
    if not loops or not isinstance(current, SBlockRealize):
        return None
    block = current.block
    if not (isinstance(current.predicate, IntImm) and current.predicate.value):
        return None
    if block.alloc_buffers or block.match_buffers or not isinstance(block.body, BufferStore):
        return None
    if block.init is not None and not isinstance(block.init, BufferStore):
        return None
    kinds: dict[int, bool] = {}
    mapping: dict[Var, Node] = {}
    for iter_var, value in zip(block.iter_vars, current.iter_values, strict=True):
        inner = E.uncast(value)
        if isinstance(inner, IntImm):  # a loop of one iteration
            mapping[iter_var.var] = E.cast(iter_var.var.dtype, inner)
            continue
        if iter_var.iter_type not in (IterType.DATA_PAR, IterType.REDUCE) or id(inner) in kinds:
            return None
        if not any(loop.loop_var is inner for loop in loops):
            return None
        kinds[id(inner)] = iter_var.iter_type is IterType.REDUCE
        assert isinstance(inner, Var)
        mapping[iter_var.var] = E.cast(iter_var.var.dtype, inner)
    if len(kinds) != len(loops):
        return None
    inner_vars = {id(loop.loop_var) for loop in loops}
    if any(id(n) in inner_vars for loop in loops for n in pre_order(loop.extent)):
        return None  # a triangular nest
    axes = tuple(Axis(loop.loop_var, E.cast("int64", loop.extent), kinds[id(loop.loop_var)]) for loop in loops)
    store: Stmt = block.body
    if any(kinds.values()):
        store = fuse_multiply_add(store)
    return Nest(
        axes,
        substitute(store, mapping),
        None if block.init is None else substitute(block.init, mapping),
        block,
        statement,
    )


def _without_block(loops: list[For], store: BufferStore, statement: Stmt) -> Nest | None:
    """A nest of plain loops around one store is data parallel when the store's indices are all of its variables."""
    axes = tuple(Axis(loop.loop_var, E.cast("int64", loop.extent), False) for loop in loops)
    nest = Nest(axes, store, None, None, statement)
    inner_vars = {id(loop.loop_var) for loop in loops}
    if any(id(n) in inner_vars for loop in loops for n in pre_order(loop.extent)):
        return None
    found = [nest.axis(index) for index in store.indices]
    if any(a is None for a in found) or len({id(a) for a in found}) != len(axes) or len(found) != len(axes):
        return None
    return nest


def is_independent(nest: Nest) -> bool:
    """Whether iterations that differ in a spatial loop touch different elements of the stored buffer.

    The store's indices must be the spatial variables, one each; the stored buffer is read only where it is stored.
    """
    spatial = [a for a in nest.axes if not a.reduce]
    found = [nest.axis(index) for index in nest.store.indices]
    constant = [i for i, a in zip(nest.store.indices, found, strict=True) if a is None]
    if any(nest.depends(i) or any(isinstance(n, BufferLoad) for n in pre_order(i)) for i in constant):
        return False
    named = [a for a in found if a is not None]
    if any(a.reduce for a in named) or len(named) != len(spatial) or len({id(a) for a in named}) != len(named):
        return False
    return all(load.buffer is not nest.store.buffer or is_same_place(nest.store, load) for load in loads(nest))


def loads(nest: Nest) -> list[BufferLoad]:
    """All loads of a nest, those in indices too."""
    return [n for n in pre_order(nest.store) if isinstance(n, BufferLoad)]


MOST_VISITS = 10_000
"""Places of accesses that are looked at: what is used at several, each under its own conditions, has many."""


def is_in_bounds(nest: Nest, scalars: tuple[Var, ...]) -> bool:
    """Whether every access of a nest is proved to be inside its buffer. ``scalars`` are the scalar parameters."""
    context = Context(scalars)
    for axis in nest.axes:
        context.enter_loop(axis.var, IntImm(0, "int64"), axis.extent)
    stores = [nest.store] if nest.init is None else [nest.store, nest.init]
    roots: list[Expr] = []
    for store in stores:
        if not _inside(context, store.buffer, store.indices):
            return False
        roots += [store.value, *store.indices]
    if any(isinstance(n, (E.Let, E.Ramp, E.Broadcast, E.Shuffle)) for root in roots for n in post_order(root)):
        return False

    def needs_guard(node: Node) -> bool:  # inside of its buffer only under conditions that the program has
        return isinstance(node, BufferLoad) and not _inside(context, node.buffer, node.indices)

    guarded = {node for root in roots for node in containing(root, needs_guard)}
    pending: list[tuple[Expr, tuple[tuple[Expr, bool], ...]]] = [(root, ()) for root in roots]
    visits = 0
    while pending:
        node, guards = pending.pop()
        if id(node) not in guarded:
            continue
        visits += 1
        if visits > MOST_VISITS:
            return False
        if isinstance(node, BufferLoad):
            mark = context.mark()
            for condition, holds in guards:
                context.assume(condition, holds)
            fine = _inside(context, node.buffer, node.indices)
            context.reset(mark)
            if not fine:
                return False
        if isinstance(node, E.Call) and is_lazy(node):
            condition, then, otherwise = node.args
            pending.append((condition, guards))
            pending.append((then, (*guards, (condition, True))))
            pending.append((otherwise, (*guards, (condition, False))))
        else:
            pending.extend((child, guards) for child in children(node) if isinstance(child, Expr))
    return True


def is_checked_by_rows(nest: Nest, scalars: tuple[Var, ...]) -> bool:
    """Whether what is not proved of a nest's accesses stays the same along the last axis of its result: rows that an
    operand chooses, as in a look-up of embeddings."""
    last = nest.axis(nest.store.indices[-1]) if nest.store.indices else None
    if last is None or any(isinstance(n, Expr) and is_lazy(n) for n in pre_order(nest.store)):
        return False
    context = Context(scalars)
    for axis in nest.axes:
        context.enter_loop(axis.var, IntImm(0, "int64"), axis.extent)
    accesses: list[BufferLoad | BufferStore] = [nest.store, *loads(nest)]
    return all(
        context.in_bounds(index, extent) or not any(a is last for a in nest.depends(index))
        for access in accesses
        for index, extent in zip(access.indices, buffer_type(access.buffer).shape, strict=True)
    )


def _inside(context: Context, buffer: Var, indices: tuple[Expr, ...]) -> bool:
    shape = buffer_type(buffer).shape
    return all(context.in_bounds(index, extent) for index, extent in zip(indices, shape, strict=True))


def _is_zero(e: Expr) -> bool:
    return isinstance(e, IntImm) and e.value == 0
