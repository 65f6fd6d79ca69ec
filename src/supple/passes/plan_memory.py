"""A place in one arena for every intermediate, by liveness, with symbolic sizes; early release of objects."""

from __future__ import annotations

import math
from dataclasses import dataclass

from supple.ir import expr as E
from supple.ir import host as H
from supple.ir.expr import int64
from supple.ir.host import Body, HostFunction, HostStmt, HostVar
from supple.ir.node import Expr, children, replace
from supple.sym.simplify import SHAPES

ALIGNMENT = 64


@dataclass(eq=False)
class Slot:
    """A part of the arena that several intermediates use one after another."""

    nbytes: Expr
    free_after: int  # position in the program of its current user's last use
    name: str


def plan_memory(function: HostFunction) -> HostFunction:
    """Replace `Alloc` by places in an arena that is allocated once, and release objects after their last use.

    Before::

        a = alloc(n * 1024)
        kernel f(x.data, a, n)
        b = alloc(n * 1024)
        kernel g(a, b, n)
        c = alloc(n * 512)
        kernel h(b, c, n)

    After (``c`` reuses ``a``'s place, since ``n * 512 <= n * 1024`` for all sizes)::

        arena = arena(2 * round_up(n * 1024))
        a = arena + 0
        ...
        c = arena + 0

    A slot is reused when its size is proved to be at least the new one, or can grow to it. Slots never overlap, so
    a size that is not comparable gets a slot of its own.
    """
    last = _last_uses(function.body)
    order = _Order()
    slots: list[Slot] = []
    chosen: dict[int, Slot] = {}
    for position, statement in enumerate(H.walk(function.body)):
        if isinstance(statement, H.Alloc):
            # a memory that is never used still needs its own place while its statement runs
            end = last.get(id(statement.memory), position)
            nbytes = order.size(statement.nbytes)
            chosen[id(statement.memory)] = _choose(slots, order, nbytes, position, end, statement.memory.name)
    if not slots:
        return replace(function, body=_with_releases(function.body, last))
    arena = HostVar("arena", "memory")
    head: list[HostStmt] = []
    offsets: dict[int, Expr] = {}
    total: Expr = int64(0)
    for slot in slots:
        offsets[id(slot)] = total
        total = _add(total, _round_up(slot.nbytes))
    head.append(H.Arena(arena, total))
    body = _place(function.body, arena, {key: offsets[id(slot)] for key, slot in chosen.items()})
    return replace(function, body=(*head, *_with_releases(body, last)))


class _Order:
    """Compares sizes, remembering what it found (most intermediates of a function have one of a few sizes)."""

    def __init__(self) -> None:
        self._sizes: dict[int, tuple[Expr, Expr]] = {}
        self._waste: dict[tuple[int, int], float | None] = {}

    def size(self, nbytes: Expr) -> Expr:
        """A size as the arena uses it: never negative (a dimension ``n - 1`` is checked where the tensor is made)."""
        if id(nbytes) not in self._sizes:
            used = E.Max(nbytes, int64(0)) if SHAPES.bounds(nbytes)[0] < 0 else nbytes
            self._sizes[id(nbytes)] = (nbytes, used)
        return self._sizes[id(nbytes)][1]

    def waste(self, small: Expr, large: Expr) -> float | None:
        """How many bytes are left at most when ``small`` lives in ``large``; None when it is not proved to fit."""
        if small is large:
            return 0
        key = (id(small), id(large))
        if key not in self._waste:
            fits = SHAPES.less_equal(small, large) is True
            self._waste[key] = SHAPES.bounds(E.Sub(large, small))[1] if fits else None
        return self._waste[key]


def _choose(slots: list[Slot], order: _Order, nbytes: Expr, start: int, end: int, name: str) -> Slot:
    """A free slot that is large enough (the one that wastes least), or one that can grow, or a new one."""
    fitting: list[tuple[float, int, Slot]] = []
    growing: Slot | None = None
    for index, slot in enumerate(slots):
        if slot.free_after >= start:
            continue
        waste = order.waste(nbytes, slot.nbytes)
        if waste is not None:
            fitting.append((waste, index, slot))
        elif order.waste(slot.nbytes, nbytes) is not None:
            growing = slot
    if fitting:
        slot = min(fitting, key=lambda item: (item[0], item[1]))[2]
    elif growing is not None:
        slot = growing
        slot.nbytes = nbytes
    else:
        slot = Slot(nbytes, end, name)
        slots.append(slot)
    slot.free_after = end
    return slot


def _round_up(nbytes: Expr) -> Expr:
    if isinstance(nbytes, E.IntImm):
        return int64(math.ceil(nbytes.value / ALIGNMENT) * ALIGNMENT)
    low, _ = SHAPES.bounds(E.FloorMod(nbytes, int64(ALIGNMENT)))
    if low == 0 and SHAPES.equal(E.FloorMod(nbytes, int64(ALIGNMENT)), int64(0)) is True:
        return nbytes
    return E.Mul(E.FloorDiv(E.Add(nbytes, int64(ALIGNMENT - 1)), int64(ALIGNMENT)), int64(ALIGNMENT))


def _add(a: Expr, b: Expr) -> Expr:
    if isinstance(a, E.IntImm) and isinstance(b, E.IntImm):
        return int64(a.value + b.value)
    return b if isinstance(a, E.IntImm) and a.value == 0 else E.Add(a, b)


def _place(body: Body, base: HostVar, offsets: dict[int, Expr]) -> Body:
    def place(statement: HostStmt) -> HostStmt:
        if isinstance(statement, H.Alloc):
            return H.At(statement.memory, base, offsets[id(statement.memory)], span=statement.span)
        return statement

    return H.rewrite(body, place)


# ----------------------------------------------------------------------------------------------------------- liveness


def _host_vars(statement: HostStmt) -> list[HostVar]:
    """The memories and objects that a statement mentions, those in its branches excluded."""
    found: list[HostVar] = []
    for child in children(statement):
        if isinstance(child, HostVar):
            found.append(child)
    return found


def _last_uses(body: Body) -> dict[int, int]:
    """The position (in the order of the text) of the last statement that uses each memory or object.

    Uses of a memory count as uses of the object that it belongs to. The function has no loops, and at most one of two
    branches runs, so the order of the text is an order of execution.
    """
    last: dict[int, int] = {}
    owners: dict[int, HostVar] = {}
    for position, statement in enumerate(H.walk(body)):
        for var in _host_vars(statement):
            last[id(var)] = position
            owner = owners.get(id(var))
            while owner is not None:
                last[id(owner)] = position
                owner = owners.get(id(owner))
        if isinstance(statement, H.DataOf):
            owners[id(statement.memory)] = statement.value
        elif isinstance(statement, H.At):  # a part of another memory
            owners[id(statement.memory)] = statement.base
    return last


_MAKES_OBJECT = (
    H.NewTensor, H.ViewOf, H.HostCall, H.PackedCall, H.MakeTuple, H.TupleField, H.MakeShape, H.MakeNumber,
    H.ConstantObject, H.ShapeFrom, H.MakeClosure, H.ExtendClosure, H.CallClosure,
)  # fmt: skip


@dataclass(eq=False)
class _Open:
    """A body while releases are added to it: objects made in it that are still used, with their last use."""

    result: list[HostStmt]
    live: list[tuple[HostVar, int]]


def _with_releases(body: Body, last: dict[int, int]) -> Body:
    """Release every object after its last use, where that use is in the same body as its definition.

    An object whose last use is inside a branch is released after the branch.
    """
    position = 0  # counts statements in the order of `H.walk`, the arena's excepted
    open_bodies: list[_Open] = []

    def enter() -> None:
        open_bodies.append(_Open([], []))

    def before(statement: HostStmt) -> None:
        nonlocal position
        position += not isinstance(statement, H.Arena)

    def after(statement: HostStmt) -> None:
        current = open_bodies[-1]
        current.result.append(statement)
        made = _made(statement)
        if made is not None:
            current.live.append((made, last.get(id(made), position - 1)))
        if isinstance(statement, H.Return):
            return
        ended = [var for var, end in current.live if end < position]
        if ended:
            current.live = [(var, end) for var, end in current.live if end >= position]
            current.result.extend(H.Release(var) for var in ended)

    def leave() -> Body:
        return tuple(open_bodies.pop().result)

    return H.traverse(body, enter, before, after, leave)


def _made(statement: HostStmt) -> HostVar | None:
    if isinstance(statement, _MAKES_OBJECT):
        var: HostVar = statement.var
        return var
    if isinstance(statement, H.Branch) and isinstance(statement.var, HostVar):
        return statement.var
    return None
