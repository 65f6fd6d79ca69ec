"""Blocks become plain loops: iteration variables are replaced by what they are bound to, predicates and
initialisations become conditions, allocations and region views become statements and indices.

Before::

    for i, j, k in T.grid(M, N, K):
        with T.sblock("Y"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[v_i, v_j] = 0
            Y[v_i, v_j] = Y[v_i, v_j] + X[v_i, v_k] * W[v_k, v_j]

After::

    for i, j, k in T.grid(M, N, K):
        if k == 0:
            Y[i, j] = 0
        Y[i, j] = T.fma(X[i, k], W[k, j], Y[i, j])

The multiply and add of a floating-point reduction become one fused operation, whatever the schedule: this is the
language's meaning of such an update, not an optimisation that may or may not happen.
"""

from __future__ import annotations

from supple.analysis.reduction import fuse_multiply_add
from supple.base.errors import NotSupportedError
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, IntImm, Var
from supple.ir.loop import (
    AllocBuffer,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    IterType,
    IterVar,
    MatchBufferRegion,
    PrimFunc,
    SBlock,
    SBlockRealize,
    buffer_type,
    seq,
)
from supple.ir.node import Expr, Node, Stmt
from supple.ir.walk import pre_order, statements, substitute, transform


def lower_loops(func: PrimFunc) -> PrimFunc:
    """The same function without blocks. Raises `NotSupportedError` for region views with strides of their own."""
    body = lower_statement(func.body)
    return func if body is func.body else PrimFunc(func.params, body, func.ret_ty, func.attrs, span=func.span)


def lower_statement(body: Stmt) -> Stmt:
    """The statement without blocks."""

    def rewrite(node: Node) -> Node | None:
        return _realize(node) if isinstance(node, SBlockRealize) else None

    lowered = transform(_with_empty_reductions(body), rewrite, into_expressions=False)
    assert isinstance(lowered, Stmt)
    return lowered


def _with_empty_reductions(body: Stmt) -> Stmt:
    """A reduction over nothing is its initial value: where a reduced extent may be 0, the initialisation follows the
    nest once more, for that case."""
    found: dict[int, Stmt] = {}
    inner: set[int] = set()
    for node in statements(body):
        if isinstance(node, For) and id(node) not in inner:
            loops, leaf = _perfect_nest(node)
            inner.update(id(loop) for loop in loops)
            extra = None if leaf is None else _initialise_empty(loops, leaf)
            if extra is not None:
                found[id(node)] = extra
    if not found:
        return body

    def rewrite(node: Node) -> Node | None:
        return seq([node, found[id(node)]]) if isinstance(node, For) and id(node) in found else None

    made = transform(body, rewrite, into_expressions=False)
    assert isinstance(made, Stmt)
    return made


def _perfect_nest(root: For) -> tuple[list[For], SBlockRealize | None]:
    loops: list[For] = []
    current: Stmt = root
    while isinstance(current, For):
        loops.append(current)
        current = current.body
    return loops, current if isinstance(current, SBlockRealize) else None


def _initialise_empty(loops: list[For], leaf: SBlockRealize) -> Stmt | None:
    block = leaf.block
    if block.init is None or any(loop.step is not None for loop in loops):
        return None
    own = {id(loop.loop_var) for loop in loops}
    driving = [  # loops that a spatial variable of the block depends on
        loop
        for loop in loops
        if any(
            n is loop.loop_var
            for v, value in zip(block.iter_vars, leaf.iter_values, strict=True)
            if v.iter_type is not IterType.REDUCE
            for n in pre_order(value)
        )
    ]
    reducing = [loop for loop in loops if not any(loop is d for d in driving)]
    condition: Expr | None = None
    for loop in reducing:
        if any(id(n) in own for n in pre_order(loop.extent)):
            return None
        if isinstance(loop.extent, IntImm) and loop.extent.value > 0:
            continue
        empty = E.LE(*E.match_dtypes(loop.extent, 0))
        condition = empty if condition is None else E.Or(condition, empty)
    if condition is None:
        return None
    mapping: dict[Var, Node] = {}
    for iter_var, value in zip(block.iter_vars, leaf.iter_values, strict=True):
        source = iter_var.dom.min if iter_var.iter_type is IterType.REDUCE else value
        mapping[iter_var.var] = _as(iter_var.var, source)
    made: Stmt = substitute(block.init, mapping)
    ids = {id(loop.loop_var) for loop in reducing}
    for part in _conjuncts(leaf.predicate):
        if not any(id(n) in ids for n in pre_order(part)) and not (isinstance(part, IntImm) and part.value):
            made = IfThenElse(part, made)
    fresh = {loop.loop_var: Var(loop.loop_var.name, loop.loop_var.ty) for loop in driving}
    for loop in reversed(driving):
        made = For(loop.loop_var, loop.min, loop.extent, ForKind.SERIAL, made)
    return IfThenElse(condition, substitute(made, dict(fresh)))


def _realize(node: SBlockRealize) -> Stmt:
    block = node.block
    reduces = any(v.iter_type is IterType.REDUCE for v in block.iter_vars)
    body = fuse_multiply_add(block.body) if reduces else block.body
    if block.init is not None:
        body = seq([_initialise(block, node.iter_values), body])
    for view in block.match_buffers:
        body = _through_view(body, view)
    mapping = {v.var: _as(v.var, value) for v, value in zip(block.iter_vars, node.iter_values, strict=True)}
    body = substitute(body, mapping)
    predicate = node.predicate
    if not (isinstance(predicate, IntImm) and predicate.value):
        body = IfThenElse(predicate, body, span=node.span)
    return seq([*(AllocBuffer(substitute(b, mapping), {}, span=node.span) for b in block.alloc_buffers), body])


def _conjuncts(e: Expr) -> list[Expr]:
    parts: list[Expr] = []
    stack = [e]
    while stack:
        current = stack.pop()
        if isinstance(current, E.And):
            stack.extend((current.b, current.a))
        else:
            parts.append(current)
    return parts


def _as(var: Var, value: Expr) -> Expr:
    return E.cast(var.dtype, value)


def _initialise(block: SBlock, values: tuple[Expr, ...]) -> Stmt:
    """The initialisation, run in the first iteration of all reduction variables."""
    assert block.init is not None
    condition: Expr | None = None
    for iter_var in block.iter_vars:
        if iter_var.iter_type is IterType.REDUCE and not _single(iter_var):
            first = E.EQ(*E.match_dtypes(iter_var.var, iter_var.dom.min))
            condition = first if condition is None else E.And(condition, first)
    return block.init if condition is None else IfThenElse(condition, block.init, span=block.init.span)


def _single(iter_var: IterVar) -> bool:
    extent = iter_var.dom.extent
    return isinstance(extent, IntImm) and extent.value == 1


def _through_view(body: Stmt, view: MatchBufferRegion) -> Stmt:
    """Accesses of a region's view become accesses of its source."""
    source, ranges = view.source.buffer, view.source.region
    ty = buffer_type(view.buffer)
    skipped = len(ranges) - len(ty.shape)
    if ty.strides or ty.elem_offset is not None or skipped < 0:
        raise NotSupportedError(
            f"match_buffer of a region of {source.name} as {view.buffer.name} with its own strides, offset or "
            "more dimensions is not supported",
            view.span,
        )
    symbols: dict[Var, Node] = {
        dim: E.cast(dim.dtype, r.extent)
        for dim, r in zip(ty.shape, ranges[skipped:], strict=True)
        if isinstance(dim, Var)
    }

    def shift(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        inner: list[Expr] = [E.Add(*E.match_dtypes(r.min, i)) for r, i in zip(ranges[skipped:], indices, strict=True)]
        return (*(r.min for r in ranges[:skipped]), *inner)

    def rewrite(node: Node) -> Node | None:
        if isinstance(node, BufferLoad) and node.buffer is view.buffer:
            return BufferLoad(source, shift(node.indices), span=node.span)
        if isinstance(node, BufferStore) and node.buffer is view.buffer:
            return BufferStore(source, node.value, shift(node.indices), span=node.span)
        return None

    rewritten = substitute(transform(body, rewrite), symbols)
    assert isinstance(rewritten, Stmt)
    return rewritten
