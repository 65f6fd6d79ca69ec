"""How long a loop takes, roughly: an expression over what is known before it, for the decision to share its work.

An instruction on a vector counts as a quarter of a nanosecond, a load or store of memory outside the stack as well;
loads that unrolled copies share count once. The result is right within a factor of two or so for code that runs from
the caches, and too low for what waits for memory.
"""

from __future__ import annotations

from supple.base import dtypes
from supple.base.target import Target
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Call, Var
from supple.ir.loop import (
    AttrStmt,
    Bind,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    SeqStmt,
    While,
    buffer_type,
    seq,
)
from supple.ir.node import Expr, Node, Stmt, children
from supple.ir.walk import pre_order, statements, substitute
from supple.schedule.loops import RANGE

UNITS_PER_NANOSECOND = 16
"""The estimate's unit is a sixteenth of a nanosecond, so that it is an integer."""

_OPERATION = 4
_FUNCTION = 12
"""Operations that stand for a math function (a polynomial)."""

_CHEAP_CALLS = {"fma", "if_then_else", "likely", "reinterpret", "abs", "bitwise_and", "bitwise_or", "bitwise_xor",
                "shift_left", "dot_pairs"}  # fmt: skip

_UNKNOWN_EXTENT = 8
"""Iterations of a loop whose extent is not known before."""

_Path = tuple[For, ...]


def estimate(root: For, target: Target) -> Expr:
    """The time of a whole loop in units, an int64 expression over variables defined outside."""
    leaves: dict[tuple[int, ...], int] = {}
    paths: dict[tuple[int, ...], _Path] = {}
    stack: list[tuple[Stmt, _Path, _Path, int, int]] = [
        (root, (), (), 1, 0)
    ]  # statement, loops, unrolled, lanes, halves

    def count(e: Node, path: _Path, unrolled: _Path, copies: int, halves: int) -> None:
        key = tuple(map(id, path))
        paths[key] = path
        leaves[key] = leaves.get(key, 0) + (_operations(e, unrolled) * copies * _OPERATION >> min(halves, 8))

    while stack:
        node, path, unrolled, copies, halves = stack.pop()
        if isinstance(node, SeqStmt):
            stack.extend((s, path, unrolled, copies, halves) for s in node.seq)
        elif isinstance(node, For) and RANGE in node.annotations:  # all its iterations in one
            stop, rest = range_of(node)
            whole = substitute(rest, {node.loop_var: node.min, stop: E.Add(node.min, node.extent)})
            stack.append((whole, path, unrolled, copies, halves))
        elif isinstance(node, For):
            fixed = node.extent.value if isinstance(node.extent, E.IntImm) else None
            if node.kind is ForKind.UNROLLED and fixed is not None:
                stack.append((node.body, path, (*unrolled, node), copies, halves))
            elif node.kind is ForKind.VECTORIZED and fixed is not None:
                registers = max(1, fixed * 32 // target.vector_bits)
                stack.append((node.body, path, unrolled, copies * registers, halves))
            else:
                stack.append((node.body, (*path, node), unrolled, copies, halves))
        elif isinstance(node, IfThenElse):
            count(node.condition, path, unrolled, copies, halves)
            both = node.else_case is not None
            stack.append((node.then_case, path, unrolled, copies, halves + both))
            if node.else_case is not None:
                stack.append((node.else_case, path, unrolled, copies, halves + 1))
        elif isinstance(node, While):
            stack.append((node.body, path, unrolled, copies * _UNKNOWN_EXTENT, halves))
        elif isinstance(node, AttrStmt):
            stack.append((node.body, path, unrolled, copies, halves))
        elif isinstance(node, (BufferStore, Bind, Evaluate)):
            count(node, path, unrolled, copies, halves)
    inner: set[int] = set()
    for found in statements(root):
        if isinstance(found, For):
            inner.add(id(found.loop_var))
        elif isinstance(found, Bind):
            inner.add(id(found.var))
    total: Expr = E.const(0, "int64")
    for key, units in leaves.items():
        product: Expr = E.const(max(1, units), "int64")
        for position, loop in enumerate(paths[key]):
            product = E.Mul(product, _known_extent(loop, paths[key][:position], inner))
        total = E.Add(total, product)
    return total


def range_of(loop: For) -> tuple[Var, Stmt]:
    """The variable of a loop over ranges that says where the range ends, and the rest of the body."""
    assert isinstance(loop.body, SeqStmt)
    first = loop.body.seq[0]
    assert isinstance(first, Bind)
    return first.var, seq(list(loop.body.seq[1:]))


def _operations(root: Node, unrolled: _Path) -> int:
    """Instructions of a statement in all copies that unrolled loops make."""
    total = 0
    stack: list[Node] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, BufferStore):
            stack.append(node.value)
            if not buffer_type(node.buffer).scope.startswith("local"):
                total += _copies(node.indices, unrolled)
        elif isinstance(node, BufferLoad):
            if not buffer_type(node.buffer).scope.startswith("local"):
                total += _copies(node.indices, unrolled)
        elif isinstance(node, Var) or not isinstance(node, (Expr, Bind, Evaluate)):
            continue
        else:
            if isinstance(node, Call):
                name = getattr(node.op, "name", "").rpartition(".")[2]
                total += (1 if name in _CHEAP_CALLS else _FUNCTION) * _product(unrolled)
            elif isinstance(node, (E.BinaryOp, E.CompareOp, E.Select)):
                total += _product(unrolled) * (4 if isinstance(node, (E.Div, E.Mod, E.FloorDiv, E.FloorMod)) else 1)
            stack.extend(child for child in children(node) if isinstance(child, Expr))
    return total


def _product(loops: _Path) -> int:
    total = 1
    for loop in loops:
        assert isinstance(loop.extent, E.IntImm)
        total *= max(1, loop.extent.value)
    return total


def _copies(indices: tuple[Expr, ...], unrolled: _Path) -> int:
    """How many different elements (or vectors) the copies of an access touch."""
    used = {id(n) for index in indices for n in pre_order(index) if isinstance(n, Var)}
    return _product(tuple(loop for loop in unrolled if id(loop.loop_var) in used))


def _known_extent(loop: For, above: _Path, inner: set[int]) -> Expr:
    """A loop's extent in terms of variables from outside; a guess where it depends on others (``inner``)."""
    pending = [loop.extent]
    while pending:
        e = pending.pop()
        if _is_known(e, inner):
            return E.cast("int64", e)
        if isinstance(e, E.Min):
            pending.extend((e.a, e.b))
        elif isinstance(e, E.Cast):
            pending.append(e.value)
        elif isinstance(e, E.Add) and isinstance(e.a, Var):  # a triangle: half of the longest row
            row = next((a for a in above if a.loop_var is e.a and _is_known(a.extent, inner)), None)
            if row is not None:
                return E.Add(E.FloorDiv(E.cast("int64", row.extent), E.const(2, "int64")), E.const(1, "int64"))
    return E.const(_UNKNOWN_EXTENT, "int64")


def _is_known(e: Expr, inner: set[int]) -> bool:
    return (
        not any(id(n) in inner or isinstance(n, BufferLoad) for n in pre_order(e))
        and dtypes.lanes(E.scalar_dtype(e)) == 1
    )
