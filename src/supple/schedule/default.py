"""The default schedule of a loop function: rules found by analysis, tried in order on each of its loop nests."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from supple.analysis.contraction import Contraction, read_contraction
from supple.analysis.nest import Nest, is_checked_by_rows, is_in_bounds, is_independent, loads, read_nest
from supple.analysis.reduction import same_expr
from supple.analysis.vectorize import can_vectorize
from supple.base.target import Target
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Var
from supple.ir.loop import AttrStmt, BufferStore, For, PrimFunc, SBlockRealize, SeqStmt, seq
from supple.ir.node import Expr, Node, Stmt, replace
from supple.ir.types import PrimType
from supple.ir.walk import pre_order, substitute, transform
from supple.schedule import loops as L
from supple.schedule.contraction import schedule_contraction
from supple.schedule.reduction import schedule_dot_products, schedule_reduction
from supple.schedule.rows import join_rows
from supple.schedule.spatial import schedule_spatial
from supple.sym.simplify import NON_NEGATIVE, SHAPES, UNBOUNDED, Analyzer


def schedule_func(func: PrimFunc, target: Target) -> PrimFunc:
    """The function with its loop nests rewritten for the target; what no rule fits stays as written.

    Only nests whose accesses are proved in bounds are rewritten, and those that choose whole rows; they and all others
    are checked as they run.
    """
    scalars = tuple(p for p in func.params if isinstance(p.ty, PrimType))
    exclusive = func.attrs.get("tirx.noalias") is True
    func = _without_claims(func)
    root = func.body
    if not isinstance(root, SBlockRealize):
        body, _ = _statements(root, (), scalars, exclusive, target)
        return PrimFunc(func.params, body, func.ret_ty, func.attrs, span=func.span)
    block = root.block
    if block.iter_vars or block.match_buffers or block.init is not None:
        return func
    body, used = _statements(block.body, block.alloc_buffers, scalars, exclusive, target)
    kept = tuple(b for b in block.alloc_buffers if id(b) in used)
    made = replace(root, block=replace(block, body=body, alloc_buffers=kept, reads=(), writes=()))
    return PrimFunc(func.params, made, func.ret_ty, func.attrs, span=func.span)


def _without_negative_extents(body: Stmt, scalars: tuple[Var, ...]) -> Stmt:
    """The statements with extents that may be negative (``n - 50``) limited to 0: rules divide and subtract extents."""
    known = Analyzer(dict.fromkeys(scalars, UNBOUNDED), default=NON_NEGATIVE)

    def rewrite(node: Node) -> Node | None:
        if not isinstance(node, For) or known.bounds(node.extent)[0] >= 0:
            return None
        return replace(node, extent=E.Max(node.extent, E.const(0, E.scalar_dtype(node.extent))))

    limited = transform(body, rewrite, into_expressions=False)
    assert isinstance(limited, Stmt)
    return limited


def _without_claims(func: PrimFunc) -> PrimFunc:
    """Without statements that claim to be proved: what a program says of itself is not trusted."""

    def rewrite(node: Node) -> Node | None:
        if isinstance(node, For) and L.RANGE in node.annotations:
            return replace(node, annotations={k: v for k, v in node.annotations.items() if k != L.RANGE})
        return node.body if isinstance(node, AttrStmt) and node.attr_key == L.PROVED else None

    body = transform(func.body, rewrite, into_expressions=False)
    assert isinstance(body, Stmt)
    return func if body is func.body else PrimFunc(func.params, body, func.ret_ty, func.attrs, span=func.span)


def _statements(
    body: Stmt, temporaries: Sequence[Var], scalars: tuple[Var, ...], exclusive: bool, target: Target
) -> tuple[Stmt, set[int]]:
    """The scheduled statements, and the ids of the variables that they still mention."""
    body = _without_negative_extents(body, scalars)
    statements = list(body.seq) if isinstance(body, SeqStmt) else [body]
    nests = [_proved_nest(s, scalars) for s in statements]
    _merge_initialisations(statements, nests)
    contractions = [None if nest is None else read_contraction(nest) for nest in nests]
    joinable = [nest if c is None else None for nest, c in zip(nests, contractions, strict=True)]
    made: list[Stmt] = []
    position = 0
    while position < len(statements):
        nest, contraction = nests[position], contractions[position]
        if contraction is not None and contraction.lies_along_sums:
            made.append(schedule_dot_products(contraction, target))
            position += 1
            continue
        if contraction is not None:
            epilogue, taken = _epilogue(contraction, statements, nests, position, temporaries)
            made.append(schedule_contraction(contraction, target, epilogue))
            position += 1 + taken
            continue
        rows = _rows(statements, joinable, position, temporaries, exclusive, target)
        if rows is not None:
            made.append(rows[0])
            position += rows[1]
            continue
        if nest is not None:
            made.append(_one(nest, target) or nest.statement)
        else:
            made.append(_by_rows(statements[position], scalars, target) or statements[position])
        position += 1
    result = seq(made)
    return result, {id(n) for n in pre_order(result) if isinstance(n, Var)}


def _merge_initialisations(statements: list[Stmt], nests: list[Nest | None]) -> None:
    """A nest that fills a whole buffer, followed by a reduction into it, is the reduction's initialisation."""
    position = 0
    while position + 1 < len(nests):
        merged = _merged(nests[position], nests[position + 1])
        if merged is None:
            position += 1
            continue
        del statements[position], nests[position]
        statements[position], nests[position] = merged.statement, merged


def _merged(fill: Nest | None, nest: Nest | None) -> Nest | None:
    if fill is None or nest is None or nest.init is not None or not any(a.reduce for a in nest.axes):
        return None
    if any(a.reduce for a in fill.axes) or loads(fill) or fill.store.buffer is not nest.store.buffer:
        return None
    if fill.depends(fill.store.value) or not (is_independent(fill) and is_independent(nest)):
        return None
    for mine, theirs in zip(nest.store.indices, fill.store.indices, strict=True):
        own, other = nest.axis(mine), fill.axis(theirs)
        if own is None or other is None or SHAPES.equal(own.extent, other.extent) is not True:
            return None
    init = BufferStore(nest.store.buffer, fill.store.value, nest.store.indices)
    statement = _with_init(nest.statement, init)
    return None if statement is None else dataclasses.replace(nest, init=init, statement=statement)


def _with_init(statement: Stmt, init: BufferStore) -> Stmt | None:
    """The statement with the block's initialisation, in terms of the block's variables."""
    loops: list[For] = []
    current = statement
    while isinstance(current, For):
        loops.append(current)
        current = current.body
    if not isinstance(current, SBlockRealize) or not isinstance(current.block.body, BufferStore):
        return None
    own = BufferStore(init.buffer, init.value, current.block.body.indices)
    made: Stmt = replace(current, block=replace(current.block, init=own))
    for loop in reversed(loops):
        made = replace(loop, body=made)
    return made


def _proved_nest(statement: Stmt, scalars: tuple[Var, ...]) -> Nest | None:
    nest = read_nest(statement)
    return _without_single_steps(nest) if nest is not None and is_in_bounds(nest, scalars) else None


def _without_single_steps(nest: Nest) -> Nest:
    """The nest without reduced loops of one iteration, of which there is a longer one: the window of a convolution
    of 1 x 1."""
    single = {a.var: E.const(0, a.var.dtype) for a in nest.axes if a.reduce and L.constant(a.extent) == 1}
    if not single or len(single) == sum(a.reduce for a in nest.axes):
        return nest

    def rewrite(node: Node) -> Node | None:
        if isinstance(node, BufferLoad):
            return replace(node, indices=tuple(SHAPES.simplify(index) for index in node.indices))
        return None

    store = transform(substitute(nest.store, single), rewrite)
    assert isinstance(store, BufferStore)
    return dataclasses.replace(nest, axes=tuple(a for a in nest.axes if a.var not in single), store=store)


def _one(nest: Nest, target: Target) -> Stmt | None:
    for rule in (schedule_reduction, schedule_spatial):
        made = rule(nest, target)
        if made is not None:
            return made
    return None


def _by_rows(statement: Stmt, scalars: tuple[Var, ...], target: Target) -> Stmt | None:
    """The loops of a nest that is not proved, where a check for each vector does."""
    nest = read_nest(statement)
    if nest is None or any(a.reduce for a in nest.axes) or not is_checked_by_rows(nest, scalars):
        return None
    return schedule_spatial(nest, target, proved=False)


def _rows(
    statements: list[Stmt], nests: Sequence[Nest | None], position: int, temporaries: Sequence[Var], exclusive: bool,
    target: Target,
) -> tuple[Stmt, int] | None:  # fmt: skip
    """The nests from a position on that run together row by row, and how many they are."""

    def is_own(buffer: Var, count: int) -> bool:
        others = [*statements[:position], *statements[position + count :]]
        return any(buffer is t for t in temporaries) and not _mentions(others, buffer)

    return join_rows(nests[position:], is_own, exclusive, target, lambda nest: _one(nest, target))


# ----------------------------------------------------------------------------------------------------------- epilogues


def _epilogue(
    c: Contraction, statements: list[Stmt], nests: list[Nest | None], position: int, temporaries: Sequence[Var]
) -> tuple[BufferStore | None, int]:
    """The elementwise nests after a contraction that can run on its finished sums, as one store in terms of the
    contraction's loops, and how many statements it stands for."""
    current: BufferStore | None = None
    result, taken = c.result, 0
    by_axis = [c.nest.axis(index) for index in c.indices]
    while position + taken + 1 < len(nests):
        consumer = nests[position + taken + 1]
        others = [s for i, s in enumerate(statements) if not position <= i <= position + taken + 1]
        if consumer is None or not any(result is t for t in temporaries) or _mentions(others, result):
            break
        made = _consume(c, consumer, result, by_axis)
        if made is None:
            break
        if current is not None:
            value = current.value
            made = L.replace_loads(made, result, value)
            assert isinstance(made, BufferStore)
        current = made
        result, taken = made.buffer, taken + 1
        by_axis = [c.nest.axis(index) for index in made.indices]
        if any(a is None for a in by_axis):
            break
    if current is not None and not can_vectorize(c.columns[-1].var, current):
        return None, 0
    return current, taken


def _consume(c: Contraction, consumer: Nest, result: Var, by_axis: Sequence[object]) -> BufferStore | None:
    """The consumer's store in the contraction's variables, when it reads one element of the result an iteration."""
    if any(a.reduce for a in consumer.axes) or not is_independent(consumer):
        return None
    store = consumer.store
    reads = [x for x in loads(consumer) if x.buffer is result]
    stored = {id(store.buffer)}
    inputs = [n for n in pre_order(c.nest.store) if isinstance(n, BufferLoad) and id(n.buffer) in stored]
    if not reads or inputs or any(id(x.buffer) in stored for x in loads(consumer)):
        return None
    if any(not same_expr(a, b) for x in reads[1:] for a, b in zip(x.indices, reads[0].indices, strict=True)):
        return None
    mapping: dict[Var, Expr] = {}
    for index, axis in zip(reads[0].indices, by_axis, strict=True):
        own = consumer.axis(index)
        target_axis = next((a for a in c.nest.axes if a is axis), None)
        if own is None or target_axis is None or SHAPES.equal(own.extent, target_axis.extent) is not True:
            return None
        mapping[own.var] = E.cast("int64", target_axis.var)
    if len(mapping) != len(consumer.axes):
        return None
    made = L.at(store, mapping)
    assert isinstance(made, BufferStore)
    return made


def _mentions(statements: Sequence[Node], buffer: Var) -> bool:
    return any(n is buffer for s in statements for n in pre_order(s))
