"""Well-formedness of loop functions: one named function per invariant, each yielding the faults it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from supple.base import dtypes
from supple.base.errors import DiagnosticError, TypeCheckError
from supple.ir.expr import BufferLoad, Let, Var, scalar_dtype
from supple.ir.loop import (
    AllocBuffer,
    Bind,
    BufferStore,
    CommReducer,
    DeclBuffer,
    For,
    IfThenElse,
    IndexMap,
    IterVar,
    MatchBufferRegion,
    PrimFunc,
    SBlock,
    SBlockRealize,
    While,
    buffer_type,
)
from supple.ir.node import Expr, Node, children
from supple.ir.types import BufferType, PointerType, PrimType
from supple.ir.walk import free_symbols, post_order, statements

LoopRule = Callable[[PrimFunc], Iterator[DiagnosticError]]


def loop_variables_are_defined(func: PrimFunc) -> Iterator[DiagnosticError]:
    """Variables and buffers are defined by parameters, loops, blocks, allocations or bindings before they are used."""
    defined: set[int] = set()
    for param in func.params:
        defined.add(id(param))
        if isinstance(param.ty, BufferType):
            defined.update(id(s) for s in free_symbols(param.ty))
            defined.update(id(e) for e in (param.ty.data,) if e is not None)
    # (node, leave): on leaving, what the node introduced goes out of scope
    stack: list[tuple[Any, bool]] = [(func.body, False)]
    introduced: dict[int, list[int]] = {}
    while stack:
        current, leave = stack.pop()
        if leave:
            defined.difference_update(introduced.pop(id(current)))
            continue
        if isinstance(current, Expr):
            yield from _check_uses(current, defined)
            continue
        before, new, after = _scoping(current)
        introduced[id(current)] = [id(v) for v in new if id(v) not in defined]
        if not isinstance(current, (Bind, AllocBuffer, DeclBuffer)):
            stack.append((current, True))
        else:
            introduced.pop(id(current))
        stack.extend((n, False) for n in reversed(after))
        for child in before:
            yield from _check_uses(child, defined)
        defined.update(id(v) for v in new)


def _check_uses(e: Node, defined: set[int]) -> Iterator[DiagnosticError]:
    """Variables of an expression that neither what is around it nor a ``let`` in it defines where they are used."""
    nodes = list(post_order(e))
    lets = {id(n.var) for n in nodes if isinstance(n, Let)} - defined
    outside = {id(n) for n in nodes if isinstance(n, Var)} - lets
    if lets:
        outside |= _used_outside(nodes, lets)
    for found in nodes:
        if isinstance(found, Var) and id(found) in outside and id(found) not in defined:
            defined.add(id(found))  # report it once
            what = "buffer" if isinstance(found.ty, BufferType) else "variable"
            yield DiagnosticError(f"the {what} {found.name} is not defined", found.span, rule="undefined")


def _used_outside(nodes: list[Node], lets: set[int]) -> set[int]:
    """Which variables of ``let`` are used outside their bodies, seen from the last of the nodes, which are in post
    order: what is shared is inside for one that uses it and outside for another."""
    free: dict[int, frozenset[int]] = {}
    nothing: frozenset[int] = frozenset()
    for current in nodes:
        if isinstance(current, Var):
            free[id(current)] = frozenset({id(current)}) & lets
        elif isinstance(current, Let):
            free[id(current)] = free[id(current.value)] | (free[id(current.body)] - {id(current.var)})
        else:
            free[id(current)] = nothing.union(*(free[id(child)] for child in children(current)))
    return set(free[id(nodes[-1])])


def _scoping(current: Node) -> tuple[list[Node], list[Var], list[Node]]:
    """What a node evaluates before its variables exist, the variables it introduces, and what it evaluates after."""
    if isinstance(current, For):
        rest: list[Node] = [current.body]
        outer: list[Node] = [current.min, current.extent, *([current.step] if current.step is not None else [])]
        return outer, [current.loop_var], rest
    if isinstance(current, SBlock):
        new = [*(it.var for it in current.iter_vars), *current.alloc_buffers]
        for match in current.match_buffers:  # a view's type introduces symbols: its strides, its offset
            new += [match.buffer, *free_symbols(buffer_type(match.buffer))]
        domains: list[Node] = [e for it in current.iter_vars for e in (it.dom.min, it.dom.extent)]
        inner: list[Node] = [m.source for m in current.match_buffers]
        inner += [*current.reads, *current.writes, *([current.init] if current.init is not None else []), current.body]
        return domains, new, inner
    if isinstance(current, Bind):
        return [current.value], [current.var], []
    if isinstance(current, AllocBuffer):
        return [], [current.buffer], []
    if isinstance(current, DeclBuffer):
        return ([current.data] if current.data is not None else []), [current.buffer], []
    if isinstance(current, (CommReducer, IndexMap)):
        return [], [], []  # closed: their variables are their own
    return [], [], list(children(current))


def stores_have_the_buffer_s_dtype(func: PrimFunc) -> Iterator[DiagnosticError]:
    """The stored value has the buffer's dtype, lanes included."""
    for store in _all(func, BufferStore):
        wanted = buffer_type(store.buffer).dtype
        actual = scalar_dtype(store.value)
        lanes = 1
        for index in store.indices:
            lanes *= dtypes.lanes(scalar_dtype(index))
        lanes *= dtypes.lanes(wanted)
        wanted = dtypes.element(wanted)
        if dtypes.element(actual) != wanted or dtypes.lanes(actual) != lanes:
            yield TypeCheckError(
                f"the value stored in {store.buffer.name} has another dtype",
                span=store.value.span or store.span,
                expected=dtypes.vector(wanted, lanes),
                actual=actual,
                hint=f'convert it: T.Cast("{wanted}", value)',
                rule="store_dtype",
            )


def indices_are_integers(func: PrimFunc) -> Iterator[DiagnosticError]:
    """Buffers are indexed by integers."""
    for access in [*_all(func, BufferLoad), *_all(func, BufferStore)]:
        for index in access.indices:
            if not dtypes.is_int(scalar_dtype(index)):
                yield TypeCheckError(
                    f"an index of {access.buffer.name} is not an integer",
                    span=index.span or access.span,
                    expected="an integer",
                    actual=scalar_dtype(index),
                    rule="index_dtype",
                )


def conditions_are_bools(func: PrimFunc) -> Iterator[DiagnosticError]:
    """Conditions of ``if`` and ``while``, and block predicates, are bools."""
    for kind, name in ((IfThenElse, "condition"), (While, "condition"), (SBlockRealize, "predicate")):
        for statement in (s for s in statements(func) if isinstance(s, kind)):
            condition = getattr(statement, name)
            if not dtypes.is_bool(scalar_dtype(condition)):
                yield TypeCheckError(
                    f"the {name} is not a bool",
                    span=condition.span or statement.span,
                    expected="bool",
                    actual=scalar_dtype(condition),
                    rule="condition_dtype",
                )


def blocks_bind_their_variables(func: PrimFunc) -> Iterator[DiagnosticError]:
    """A block gets one value for each of its iteration variables, and binds no variable twice."""
    for realize in _all(func, SBlockRealize):
        block = realize.block
        if len(realize.iter_values) != len(block.iter_vars):
            yield DiagnosticError(
                f"the block {block.name_hint} has {len(block.iter_vars)} iteration variables, "
                f"but {len(realize.iter_values)} values are bound",
                span=realize.span or block.span,
                rule="block_bindings",
            )
        names = [id(it.var) for it in block.iter_vars]
        if len(set(names)) != len(names):
            yield DiagnosticError(
                f"the block {block.name_hint} binds a variable twice", span=block.span, rule="block_bindings"
            )


def blocks_name_no_loops_around(func: PrimFunc) -> Iterator[DiagnosticError]:
    """What a block with iteration variables does follows from them: it names no variable of a loop outside of it.

    Asked of programs that are read by Relax's conventions (`Conventions.closed_blocks`); here a block may name them.
    """
    depths: dict[int, int] = {}  # loop variable -> the blocks around its loop
    stack: list[tuple[Node, tuple[SBlock, ...]]] = [(func.body, ())]
    seen: set[tuple[int, int]] = set()
    while stack:
        current, around = stack.pop()
        if (id(current), len(around)) in seen:
            continue
        seen.add((id(current), len(around)))
        parts: list[Node] = []
        if isinstance(current, For):
            depths[id(current.loop_var)] = len(around)
            parts = [p for p in (current.min, current.extent, current.step, current.body) if p is not None]
        elif isinstance(current, SBlockRealize):
            block = current.block
            stack.extend((value, around) for value in (*current.iter_values, current.predicate))
            around = (*around, block) if block.iter_vars else around
            parts = [*block.reads, *block.writes, *([] if block.init is None else [block.init]), block.body]
        elif isinstance(current, Var):
            if depths.get(id(current), len(around)) < len(around):
                yield DiagnosticError(
                    f"the block {around[-1].name_hint} names {current.name}, a loop outside of it",
                    span=current.span or around[-1].span,
                    hint=f"bind it: v{current.name} = T.axis.spatial(extent, {current.name})",
                    rule="closed_block",
                )
        else:
            parts = list(children(current))
        stack.extend((part, around) for part in parts)


def variables_are_bound_once(func: PrimFunc) -> Iterator[DiagnosticError]:
    """One place defines a variable: no loop variable, block variable or buffer is introduced twice."""
    seen: set[int] = set()
    for item in post_order(func):
        for var in _introduced(item):
            if id(var) in seen:
                yield DiagnosticError(f"{var.name} is bound twice", span=item.span or var.span, rule="rebound")
            seen.add(id(var))


def _introduced(item: Node) -> list[Var]:
    if isinstance(item, For):
        return [item.loop_var]
    if isinstance(item, IterVar):
        return [item.var]
    if isinstance(item, (Bind, Let)):
        return [item.var]
    if isinstance(item, (AllocBuffer, DeclBuffer, MatchBufferRegion)):
        return [item.buffer]
    if isinstance(item, SBlock):
        return list(item.alloc_buffers)
    if isinstance(item, PrimFunc):
        return list(item.params)
    return []


def scalars_are_of_known_kinds(func: PrimFunc) -> Iterator[DiagnosticError]:
    """Parameters are buffers, scalars or pointers."""
    for param in func.params:
        if not isinstance(param.ty, (BufferType, PrimType, PointerType)):
            yield DiagnosticError(
                f"the parameter {param.name} is neither a buffer nor a scalar",
                span=param.span or func.span,
                expected="T.Buffer(shape, dtype), or T.handle with T.match_buffer, or a scalar",
                actual=str(param.ty),
                rule="parameter",
            )


def _all(func: PrimFunc, kind: type[Any]) -> Iterator[Any]:
    return (n for n in post_order(func) if isinstance(n, kind))


LOOP_RULES: tuple[LoopRule, ...] = (
    scalars_are_of_known_kinds,
    loop_variables_are_defined,
    variables_are_bound_once,
    stores_have_the_buffer_s_dtype,
    indices_are_integers,
    conditions_are_bools,
    blocks_bind_their_variables,
)
