"""Small squares of elements, turned in registers.

Elements that lie together along one axis (``k``) and are used together along the other (``lane``) cost one instruction
each when they are gathered. Read 16 bytes at a time and interleaved, they cost two for each vector::

    a0 a1 a2 a3        a0 c0 a1 c1        a0 b0 c0 d0
    b0 b1 b2 b3   ->   a2 c2 a3 c3   ->   a1 b1 c1 d1
    c0 c1 c2 c3        b0 d0 b1 d1        a2 b2 c2 d2
    d0 d1 d2 d3        b2 d2 b3 d3        a3 b3 c3 d3

Interleaving the first half of the rows with the second, log2(n) times, turns n rows (J. O. Eklundh, "A fast computer
method for matrix transposing", 1972). A vector of more than 16 bytes is several such squares side by side, since
interleaving across its parts takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.expr import BufferLoad
from supple.ir.loop import AllocBuffer, Buffer, BufferStore
from supple.ir.node import Expr, Stmt
from supple.schedule import loops as L

BYTES = 16
"""The most that is read at a time along the axis on which elements lie together."""


def depth_of(dtype: str, lanes: int) -> int | None:
    """How many steps along that axis are turned at once for vectors of ``lanes`` elements, a power of two; None where
    elements are better read one by one."""
    depth = min(BYTES // dtypes.nbytes(dtype), lanes)
    return depth if depth > 1 and not dtypes.is_bool(dtype) else None


@dataclass(frozen=True)
class Turned:
    """Elements in registers: ``fill`` reads them, ``at(k, lane)`` is one of them, next to each other along lanes."""

    fill: Stmt
    at: Callable[[Expr, Expr], Expr]


def turned(dtype: str, lanes: int, depth: int, read: Callable[[Expr, Expr], Expr]) -> Turned:
    """What ``read(lane, k)`` reads for a vector of lanes and ``depth`` steps ``k``, a power of two that divides
    ``lanes``."""
    parts = Buffer("parts", (L.number(lanes), L.number(depth)), dtype, "local")
    rounds = depth.bit_length() - 1
    rows = Buffer("turned", (L.number(rounds + 1), L.number(depth), L.number(lanes)), dtype, "local")

    def row(round_: int, index: int) -> tuple[Expr, ...]:
        return L.number(round_), L.number(index), E.Ramp(L.number(0), L.number(1), lanes)

    def part(lane: int) -> Expr:
        return BufferLoad(parts, (L.number(lane), E.Ramp(L.number(0), L.number(1), depth)))

    def steps() -> Iterator[Stmt]:
        for index in range(depth):
            wide = _joined([part(lane) for lane in range(index, lanes, depth)])
            yield BufferStore(rows, wide, row(0, index))
        for round_ in range(rounds):
            for index in range(depth // 2):
                pair = (BufferLoad(rows, row(round_, index)), BufferLoad(rows, row(round_, index + depth // 2)))
                for half in (0, 1):
                    mixed = _shuffle(pair, _interleaved(lanes, depth, half))
                    yield BufferStore(rows, mixed, row(round_ + 1, 2 * index + half))

    fill = L.unrolled("lane", lanes, lambda lane: L.vectorized("k", depth, lambda k: L.store(
        parts, (lane, k), read(lane, k))))  # fmt: skip
    return Turned(
        L.block(AllocBuffer(parts), AllocBuffer(rows), fill, *steps()),
        lambda k, lane: BufferLoad(rows, (L.number(rounds), k, lane)),
    )


def _interleaved(lanes: int, depth: int, half: int) -> list[int]:
    """Where the lanes of two rows go: the lower (0) or upper (1) halves of their squares, in turns."""
    return [
        square + half * depth // 2 + i // 2 + (i % 2) * lanes for square in range(0, lanes, depth) for i in range(depth)
    ]


def _joined(vectors: list[Expr]) -> Expr:
    """Vectors of equal lanes, one after the other; their number is a power of two."""
    while len(vectors) > 1:
        lanes = dtypes.lanes(E.scalar_dtype(vectors[0]))
        vectors = [_shuffle(pair, range(2 * lanes)) for pair in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors[0]


def _shuffle(vectors: tuple[Expr, ...], places: list[int] | range) -> Expr:
    return E.Shuffle(vectors, tuple(E.const(place) for place in places))
