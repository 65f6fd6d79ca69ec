"""Writing loops: the small vocabulary in which rules build what replaces a nest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from supple.analysis.nest import Axis
from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, IntImm, Var
from supple.ir.intrinsics import opaque
from supple.ir.loop import AttrStmt, Bind, BufferStore, Evaluate, For, ForKind, IfThenElse, SeqStmt, seq
from supple.ir.node import Expr, Node, Stmt
from supple.ir.types import prim_type
from supple.ir.walk import transform
from supple.sym.simplify import SHAPES

PROVED = "tirx.proved_in_bounds"
"""The attribute of statements whose accesses are known to be in bounds."""

RANGE = "tirx.range"
"""The annotation of a parallel loop whose body begins with ``stop = part + 1``: running the body once with ``stop``
further on does what the iterations in between do, in a better order."""

MANY = 64
"""Iterations that keep the threads of most machines busy."""

MANY_ELEMENTS = 256
"""Elements for which the time of a division is not felt."""

Body = Callable[[Expr], Stmt]


def number(value: int) -> IntImm:
    """A 64-bit literal."""
    return IntImm(value, "int64")


def plain(e: Expr) -> Expr:
    """The simplified form of a size or index."""
    return SHAPES.simplify(e)


def add(*terms: Expr | int) -> Expr:
    """The simplified sum of 64-bit indices."""
    total: Expr = number(0)
    for term in terms:
        total = E.Add(total, number(term) if isinstance(term, int) else term)
    return plain(total)


def mul(a: Expr | int, b: Expr | int) -> Expr:
    """The simplified product of 64-bit indices."""
    left, right = (number(x) if isinstance(x, int) else x for x in (a, b))
    return plain(E.Mul(left, right))


def sub(a: Expr, b: Expr) -> Expr:
    """The simplified difference of 64-bit indices."""
    return plain(E.Sub(a, b))


def div(a: Expr, b: int) -> Expr:
    """``a // b`` for a positive constant."""
    return plain(E.FloorDiv(a, number(b)))


def rest(a: Expr, b: int) -> Expr:
    """What whole parts of ``b`` leave of ``a``."""
    return sub(a, mul(div(a, b), b))


def ceildiv(a: Expr, b: int) -> Expr:
    """``a`` divided by a positive constant, rounded up."""
    return div(add(a, b - 1), b)


def ratio(a: Expr, b: Expr) -> Expr:
    """``a`` divided by ``b``, rounded up."""
    return plain(E.FloorDiv(E.Sub(E.Add(a, b), number(1)), b))


def quotient(a: Expr, b: Expr) -> Expr:
    """``a // b``."""
    return plain(E.FloorDiv(a, b))


def remainder(a: Expr, b: Expr) -> Expr:
    """``a % b``."""
    return plain(E.FloorMod(a, b))


def choose(condition: Expr | bool, a: Expr, b: Expr) -> Expr:
    """``a`` where the condition holds, else ``b``."""
    if isinstance(condition, bool):
        return a if condition else b
    return E.Select(condition, a, b)


class Sizes:
    """Sizes that have names in the program, so that each is computed once. ``statements`` define them."""

    def __init__(self) -> None:
        self.statements: list[Stmt] = []

    def bind(self, name: str, value: Expr) -> Expr:
        """The size itself where it is a number or a variable, else a variable of that name."""
        if isinstance(value, (IntImm, Var)):
            return value
        var = Var(name, prim_type("int64"))
        self.statements.append(Bind(var, value))
        return var


def constant(e: Expr) -> int | None:
    """The value of a size that is known."""
    simple = plain(e)
    return simple.value if isinstance(simple, IntImm) else None


def loop(name: str, extent: Expr | int, body: Body, kind: ForKind = ForKind.SERIAL) -> Stmt:
    """``for name in range(extent)``; a loop of one iteration is its body."""
    size = number(extent) if isinstance(extent, int) else extent
    if isinstance(size, IntImm) and size.value == 1:
        return body(number(0))
    if isinstance(size, IntImm) and size.value <= 0:
        return SeqStmt(())
    var = Var(name, prim_type("int64"))
    return For(var, number(0), size, kind, body(var))


def unrolled(name: str, extent: int, body: Body) -> Stmt:
    """A loop that is written out."""
    return loop(name, extent, body, ForKind.UNROLLED)


def vectorized(name: str, extent: int, body: Body) -> Stmt:
    """A loop whose iterations run at once."""
    return loop(name, extent, body, ForKind.VECTORIZED)


def parallel(name: str, extent: Expr | int, body: Body) -> Stmt:
    """A loop whose iterations threads may share."""
    return loop(name, extent, body, ForKind.PARALLEL)


def when(condition: Expr | bool, then: Stmt, otherwise: Stmt | None = None) -> Stmt:
    """``if``; decided at once when the condition is known."""
    if isinstance(condition, bool):
        return then if condition else otherwise if otherwise is not None else SeqStmt(())
    return IfThenElse(condition, then, otherwise)


@dataclass(frozen=True, slots=True)
class Share:
    """What threads share: how many parts there are, and what is done for a range of them (the second is outside)."""

    count: Expr
    body: Callable[[Expr, Expr], Stmt]

    @staticmethod
    def each(count: Expr, body: Body) -> Share:
        """Parts that are done one after the other."""
        return Share(count, lambda first, stop: loop("j", sub(stop, first), lambda j: body(add(first, j))))

    def loop(self, name: str) -> Stmt:
        """All parts: a parallel loop whose body begins with ``stop = part + 1``. Code for several iterations in a row
        runs the body once, for all of them (`RANGE`)."""
        if constant(self.count) == 1:
            return self.body(number(0), number(1))
        part, stop = (Var(text, prim_type("int64")) for text in (name, f"{name}_stop"))
        body = block(Bind(stop, E.Add(part, number(1))), self.body(part, stop))
        return For(part, number(0), self.count, ForKind.PARALLEL, body, annotations={RANGE: 1})


def either(condition: Expr | bool, then: Share, otherwise: Share) -> Share:
    """One of two ways to do something, in one loop."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    same = constant(then.count) is not None and constant(then.count) == constant(otherwise.count)
    count = then.count if same else choose(condition, then.count, otherwise.count)
    return Share(count, lambda first, stop: when(condition, then.body(first, stop), otherwise.body(first, stop)))


def at_least(a: Expr, b: Expr | int) -> Expr | bool:
    """``a >= b``, as a bool where it is proved."""
    right = number(b) if isinstance(b, int) else b
    known = SHAPES.less_equal(right, a)
    return E.GE(a, right) if known is None else known


def block(*statements: Stmt) -> Stmt:
    """Statements in order, without the empty ones."""
    kept = [s for s in statements if not (isinstance(s, SeqStmt) and not s.seq)]
    return seq(kept) if kept else SeqStmt(())


def around(axes: Sequence[Axis], at: dict[Var, Expr], body: Callable[[dict[Var, Expr]], Stmt]) -> Stmt:
    """Serial loops over axes, from the outside in, around what ``body`` makes of their variables."""
    if not axes:
        return body(at)
    first = axes[0]
    return loop(first.var.name, plain(first.extent), lambda i: around(axes[1:], {**at, first.var: i}, body))


def parallel_around(
    axes: Sequence[Axis], at: dict[Var, Expr], body: Callable[[dict[Var, Expr]], Stmt], inner: int | None = None
) -> Stmt:
    """Like `around`, the outermost loop shared among threads.

    Where the first axis may be short, it is one loop with the next, unless so little is done inside (``inner``: the
    elements of an iteration, None: not known) that the division for each iteration would be felt.
    """
    long = [axis for axis in axes if constant(axis.extent) != 1]
    ones = {axis.var: number(0) for axis in axes if constant(axis.extent) == 1}
    here: dict[Var, Expr] = {**at, **ones}
    if not long:
        return body(here)
    first = long[0]
    rest = inner
    for axis in long[2:]:
        size = constant(axis.extent)
        rest = None if rest is None or size is None else rest * size
    enough = constant(first.extent)
    if len(long) == 1 or (enough is not None and enough >= MANY) or (rest is not None and rest < MANY_ELEMENTS):
        name = first.var.name
        return parallel(name, plain(first.extent), lambda i: around(long[1:], {**here, first.var: i}, body))
    second = long[1]
    width = plain(second.extent)
    outer, within = (Var(axis.var.name, prim_type("int64")) for axis in (first, second))

    def both(position: Expr) -> Stmt:
        return block(
            Bind(outer, E.FloorDiv(position, width)),
            Bind(within, E.FloorMod(position, width)),
            around(long[2:], {**here, first.var: outer, second.var: within}, body),
        )

    return parallel(f"{first.var.name}_{second.var.name}", mul(first.extent, width), both)


def proved(body: Stmt) -> Stmt:
    """Mark accesses as proved in bounds."""
    return AttrStmt(None, PROVED, E.const(True), body)


def at(e: Node, mapping: Mapping[Var, Expr]) -> Any:
    """An expression or statement with its loop variables replaced by 64-bit indices.

    Indices of buffers become 64-bit; elsewhere a variable keeps its dtype.
    """
    table: dict[int, Expr] = {}
    made: dict[int, Expr] = {}
    for var, new in mapping.items():
        table[id(var)] = E.cast(var.dtype, new)
        made[id(table[id(var)])] = new

    def rewrite(node: Node) -> Node | None:
        if isinstance(node, Var):
            return table.get(id(node))
        if isinstance(node, BufferLoad):
            return BufferLoad(node.buffer, tuple(_widened(i, made) for i in node.indices), span=node.span)
        if isinstance(node, BufferStore):
            indices = tuple(_widened(i, made) for i in node.indices)
            return BufferStore(node.buffer, node.value, indices, span=node.span)
        return None

    return transform(e, rewrite)


_INDEX_OPERATIONS = (E.Add, E.Sub, E.Mul, E.FloorDiv, E.FloorMod, E.Min, E.Max)


def _widened(index: Expr, made: Mapping[int, Expr]) -> Expr:
    """An index in 64-bit arithmetic (the meaning of every index), ``made`` giving the wide form of some nodes."""
    if dtypes.lanes(E.scalar_dtype(index)) > 1:
        return index
    done: dict[int, Expr] = {}
    stack: list[tuple[Expr, bool]] = [(index, False)]
    while stack:
        node, expanded = stack.pop()
        if id(node) in done:
            continue
        if id(node) in made:
            done[id(node)] = made[id(node)]
        elif isinstance(node, E.Cast) and id(node.value) in made and node.dtype == "int64":
            done[id(node)] = made[id(node.value)]
        elif not isinstance(node, _INDEX_OPERATIONS):
            done[id(node)] = E.cast("int64", node)
        elif not expanded:
            stack.extend(((node, True), (node.a, False), (node.b, False)))
        else:
            done[id(node)] = type(node)(done[id(node.a)], done[id(node.b)])
    return done[id(index)]


def replace_loads(node: Node, buffer: Var, value: Expr) -> Any:
    """Every load of a buffer replaced by one value."""
    return transform(node, lambda n: value if isinstance(n, BufferLoad) and n.buffer is buffer else None)


def prefetch(buffer: Var, indices: Sequence[Expr]) -> Stmt:
    """Bring the cache line of an element close, to write it soon."""
    place = opaque("address_of", BufferLoad(buffer, tuple(indices)))
    return Evaluate(opaque("prefetch", place, E.const(1), E.const(3), E.const(1)))


def prefetch_for_later(load: BufferLoad) -> Stmt:
    """Bring the cache line of an element to the second-level cache, to read it later."""
    return Evaluate(opaque("prefetch", opaque("address_of", load), E.const(0), E.const(2), E.const(1)))


def store(buffer: Var, indices: Sequence[Expr], value: Expr) -> BufferStore:
    """``buffer[indices] = value``."""
    return BufferStore(buffer, value, tuple(indices))
