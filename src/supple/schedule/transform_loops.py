"""Primitives on loops: split, fuse, reorder, kinds, and taking a reduction's initialisation out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from supple.ir import expr as E
from supple.ir.expr import IntImm, Var
from supple.ir.loop import BufferStore, For, ForKind, IfThenElse, IterType, SBlock, SBlockRealize, seq
from supple.ir.node import Expr, Node, Stmt, replace
from supple.ir.types import prim_type
from supple.ir.walk import pre_order, substitute, transform
from supple.schedule.errors import ScheduleError
from supple.schedule.tree import chain, iteration_kind, put, single_block, unique_name
from supple.sym.simplify import SHAPES


def _number(value: int, dtype: str) -> IntImm:
    return IntImm(value, dtype)


def _plain(e: Expr) -> Expr:
    return SHAPES.simplify(e)


def _check_plain(loop: For, what: str) -> None:
    if loop.step is not None:
        raise ScheduleError(f"{what}: loop {loop.loop_var.name} has a step")
    if not (isinstance(loop.min, IntImm) and loop.min.value == 0):
        raise ScheduleError(f"{what}: loop {loop.loop_var.name} does not start at 0")
    if loop.kind not in (ForKind.SERIAL, ForKind.PARALLEL):
        raise ScheduleError(f"{what}: loop {loop.loop_var.name} is {loop.kind.name.lower()} already")


def guarded(body: Stmt, condition: Expr) -> Stmt:
    """The body run where a condition holds: in the predicates of its blocks, or as an ``if`` where there are none."""
    if not any(isinstance(n, SBlockRealize) for n in pre_order(body)):
        return IfThenElse(condition, body)
    inner: set[int] = set()
    for node in pre_order(body):
        if isinstance(node, SBlockRealize):
            inner.update(id(n) for n in pre_order(node.block) if isinstance(n, SBlockRealize))

    def rewrite(node: Node) -> Node | None:
        if not isinstance(node, SBlockRealize) or id(node) in inner:
            return None
        known = node.predicate
        always = isinstance(known, IntImm) and bool(known.value)
        return replace(node, predicate=condition if always else E.And(known, condition))

    made = transform(body, rewrite)
    assert isinstance(made, Stmt)
    return made


def split(body: Stmt, loop: For, factors: Sequence[int | Expr | None]) -> tuple[Stmt, list[Var]]:
    """See `Schedule.split`."""
    _check_plain(loop, "split")
    if len(factors) < 1 or sum(f is None for f in factors) > 1:
        raise ScheduleError("split: give the factors of all loops, at most one of them None")
    dtype = loop.loop_var.dtype
    known: list[Expr | None] = []
    for factor in factors:
        if isinstance(factor, int):
            if factor < 1:
                raise ScheduleError(f"split: factor {factor} is not positive")
            known.append(_number(factor, dtype))
        else:
            known.append(None if factor is None else E.cast(dtype, factor))
    product: Expr = _number(1, dtype)
    for size in known:
        if size is not None:
            product = _plain(E.Mul(product, size))
    extent = E.cast(dtype, loop.extent)
    rest = _plain(E.FloorDiv(E.Sub(E.Add(extent, product), _number(1, dtype)), product))
    sizes: list[Expr] = [rest if size is None else size for size in known]
    total: Expr = _number(1, dtype)
    for size in sizes:
        total = E.Mul(total, size)
    if any(f is None for f in factors):
        exact = SHAPES.equal(_plain(total), extent) is True
    else:
        if SHAPES.less_equal(extent, _plain(total)) is not True:
            raise ScheduleError(
                f"split: the factors make {_plain(total)} iterations, which is not proved to cover {extent}"
            )
        exact = SHAPES.equal(_plain(total), extent) is True
    made = [Var(f"{loop.loop_var.name}_{i}", loop.loop_var.ty) for i in range(len(sizes))]
    position: Expr = made[0]
    for var, size in zip(made[1:], sizes[1:], strict=True):
        position = E.Add(E.Mul(position, size), var)
    inner = loop.body if exact else guarded(loop.body, E.LT(loop.loop_var, extent))
    inner = substitute(inner, {loop.loop_var: position})
    for var, size in zip(reversed(made), reversed(sizes), strict=True):
        inner = For(var, _number(0, dtype), size, ForKind.SERIAL, inner)
    if loop.kind is ForKind.PARALLEL:
        assert isinstance(inner, For)
        inner = replace(inner, kind=ForKind.PARALLEL)
    return put(body, loop, inner), made


def fuse(body: Stmt, loops: Sequence[For]) -> tuple[Stmt, Var]:
    """See `Schedule.fuse`."""
    if len(loops) < 2:
        raise ScheduleError("fuse: give at least two loops")
    for outer, inner in itertools.pairwise(loops):
        if outer.body is not inner:
            raise ScheduleError(f"fuse: {inner.loop_var.name} is not directly inside {outer.loop_var.name}")
    own = {id(loop.loop_var) for loop in loops}
    for loop in loops:
        _check_plain(loop, "fuse")
        if any(id(n) in own for n in pre_order(loop.extent)):
            raise ScheduleError(f"fuse: the extent of {loop.loop_var.name} depends on a loop it is fused with")
    dtype = "int64" if any(loop.loop_var.dtype == "int64" for loop in loops) else loops[0].loop_var.dtype
    var = Var("_".join(loop.loop_var.name for loop in loops) + "_fused", prim_type(dtype))
    total: Expr = _number(1, dtype)
    mapping: dict[Var, Node] = {}
    for position, loop in enumerate(reversed(loops)):
        size = E.cast(dtype, loop.extent)
        value: Expr = var if position == 0 else E.FloorDiv(var, _plain(total))
        if position < len(loops) - 1:
            value = E.FloorMod(value, size)
        mapping[loop.loop_var] = E.cast(loop.loop_var.dtype, value)
        total = E.Mul(total, size)
    made = For(var, _number(0, dtype), _plain(total), ForKind.SERIAL, substitute(loops[-1].body, mapping))
    return put(body, loops[0], made), var


def reorder(body: Stmt, loops: Sequence[For]) -> Stmt:
    """See `Schedule.reorder`."""
    ids = [id(loop.loop_var) for loop in loops]
    if len(set(ids)) != len(ids):
        raise ScheduleError("reorder: a loop is named twice")
    if len(loops) < 2:
        return body
    nest: list[For] = []
    outer = loops[0]
    for candidate in loops:
        found, _ = chain(candidate)
        if all(any(f is loop for f in found) for loop in loops):
            outer, nest = candidate, found
    if not nest:
        raise ScheduleError("reorder: the loops are not in one nest of loops that hold nothing else")
    last = max(position for position, loop in enumerate(nest) if id(loop.loop_var) in ids)
    nest = nest[: last + 1]
    _, realize = single_block(outer)
    for loop in nest:
        kinds = iteration_kind(realize, loop.loop_var)
        if not kinds <= {IterType.DATA_PAR, IterType.REDUCE}:
            raise ScheduleError(f"reorder: block {realize.block.name_hint} needs the order of {loop.loop_var.name}")
    wanted = iter(loops)
    order = [next(wanted) if id(loop.loop_var) in ids else loop for loop in nest]
    made: Stmt = nest[-1].body
    bound: set[int] = set()
    for loop in reversed(order):
        bound.add(id(loop.loop_var))
        if any(id(n) in bound for n in pre_order(loop.extent)):
            raise ScheduleError(
                f"reorder: the extent of {loop.loop_var.name} depends on a loop that would be inside it"
            )
        made = replace(loop, body=made)
    return put(body, outer, made)


def annotate(body: Stmt, loop: For, kind: ForKind) -> Stmt:
    """See `Schedule.unroll`, `Schedule.vectorize`, `Schedule.parallel`."""
    _check_plain(loop, kind.text)
    name = loop.loop_var.name
    if kind is not ForKind.PARALLEL and not isinstance(_plain(loop.extent), IntImm):
        raise ScheduleError(f"{kind.text}: the extent of loop {name} is not a constant; split it first")
    if kind is not ForKind.UNROLLED:
        for realize in (n for n in pre_order(loop.body) if isinstance(n, SBlockRealize)):
            kinds = iteration_kind(realize, loop.loop_var)
            if kinds != {IterType.DATA_PAR}:
                reduces = IterType.REDUCE in kinds
                reason = "reduces over it" if reduces else "does not bind it to a data-parallel variable"
                raise ScheduleError(f"{kind.text}: block {realize.block.name_hint} {reason} ({name})")
    return put(body, loop, replace(loop, kind=kind))


def decompose_reduction(body: Stmt, realize: SBlockRealize, loop: For, outermost: Var) -> tuple[Stmt, str]:
    """See `Schedule.decompose_reduction`."""
    block = realize.block
    if block.init is None:
        raise ScheduleError(f"decompose_reduction: block {block.name_hint} has no initialisation")
    loops, inner = chain(loop)
    if inner is not realize:
        raise ScheduleError(f"decompose_reduction: {loop.loop_var.name} is not a loop of one nest around the block")
    above = outermost is not loop.loop_var
    if above:
        for node in pre_order(body):
            if isinstance(node, For) and any(n is loop for n in pre_order(node)) and node is not loop:
                if IterType.REDUCE in iteration_kind(realize, node.loop_var):
                    raise ScheduleError(
                        f"decompose_reduction: loop {node.loop_var.name} outside {loop.loop_var.name} reduces"
                    )
    fresh: dict[Var, Node] = {}
    kept: list[For] = []
    for candidate in loops:
        if IterType.DATA_PAR in iteration_kind(realize, candidate.loop_var):
            kept.append(candidate)
            fresh[candidate.loop_var] = Var(f"{candidate.loop_var.name}_init", candidate.loop_var.ty)
    iter_vars, values, mapping = [], [], dict(fresh)
    for iter_var, value in zip(block.iter_vars, realize.iter_values, strict=True):
        if iter_var.iter_type is IterType.REDUCE:
            continue
        var = Var(iter_var.var.name, iter_var.var.ty)
        mapping[iter_var.var] = var
        iter_vars.append(replace(iter_var, var=var))
        values.append(substitute(value, fresh))
    reduce_vars = {id(c.loop_var) for c in loops if id(c.loop_var) not in {id(k.loop_var) for k in kept}}
    predicate = _without(realize.predicate, reduce_vars)
    name = unique_name(body, f"{block.name_hint}_init")
    made: Stmt = SBlockRealize(
        tuple(values), substitute(predicate, fresh),
        SBlock(tuple(iter_vars), (), tuple(substitute(w, mapping) for w in block.writes), name,
               substitute(block.init, mapping)),
    )  # fmt: skip
    for candidate in reversed(kept):
        outer = fresh[candidate.loop_var]
        assert isinstance(outer, Var)
        made = For(outer, candidate.min, candidate.extent, ForKind.SERIAL, made)
    update = put(loop, realize, replace(realize, block=replace(block, init=None, reads=(*block.writes, *block.reads))))
    return put(body, loop, seq([made, update])), name


def _without(predicate: Expr, variables: set[int]) -> Expr:
    """The parts of a conjunction that do not mention some variables."""
    parts: list[Expr] = []
    stack = [predicate]
    while stack:
        e = stack.pop()
        if isinstance(e, E.And):
            stack.extend((e.b, e.a))
        elif not any(id(n) in variables for n in pre_order(e)):
            parts.append(e)
    if not parts:
        return E.const(True)
    total = parts[0]
    for part in parts[1:]:
        total = E.And(total, part)
    return total


def element_store(realize: SBlockRealize, what: str) -> BufferStore:
    """The one store of a block; raises `ScheduleError` for any other body."""
    store = realize.block.body
    if not isinstance(store, BufferStore):
        raise ScheduleError(f"{what}: the body of block {realize.block.name_hint} is not one store")
    return store
