"""Reading a loop nest: the loops around one block, and what each loop does."""

from __future__ import annotations

from dataclasses import dataclass

from supple.analysis.reduction import fuse_multiply_add
from supple.ir import expr as E
from supple.ir.expr import IntImm, Var
from supple.ir.loop import BufferStore, For, ForKind, IterType, SBlock, SBlockRealize
from supple.ir.node import Expr, Node, Stmt
from supple.ir.walk import pre_order, substitute


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
        while isinstance(e, E.Cast):
            e = e.value
        return next((a for a in self.axes if a.var is e), None)

    def depends(self, node: Node) -> list[Axis]:
        """The axes that occur in an expression."""
        inside = {id(n) for n in pre_order(node) if isinstance(n, Var)}
        return [a for a in self.axes if id(a.var) in inside]


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
        inner = value
        while isinstance(inner, E.Cast):
            inner = inner.value
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


def _is_zero(e: Expr) -> bool:
    return isinstance(e, IntImm) and e.value == 0
