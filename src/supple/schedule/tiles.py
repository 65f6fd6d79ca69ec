"""Sizes and places in the loops of contractions: register tiles, blocks of the reduction, streams of rows."""

from __future__ import annotations

from dataclasses import dataclass

from supple.base import dtypes
from supple.base.target import Target
from supple.ir.expr import Var
from supple.ir.node import Expr

PACK_ROWS = 6
"""From this many rows on (at least a tile's), packing the right operand costs less than it saves."""

PACK_DEPTH = 8
"""Rows of the right operand that are packed at a time."""

SMALL_ROWS = 4
"""Rows of the tile that takes what whole tiles leave."""

PANELS_BYTES = 4 << 20
"""Of the right operand, what is used for all rows before the next (half the third-level cache at most): it is read from
there as fast as the arithmetic needs it, and the more it is, the less often the left operand is copied."""

SHALLOW = (64, 128)
"""Least and most rows of the right operand that a block has where few rows of the left one use it."""

GIVEN_PANELS = 4
"""So many times as many panels of an operand that is stored in panels, as half the second-level cache holds, are used
for few rows before the next."""

COPIED_PANELS = 32
"""From this many panels on, a tile's rows of the left operand are copied next to each other."""

GATHERED_PANELS = 4
"""The same where the left operand is not contiguous along the reduction."""

COMPUTED_PANELS = 3
"""The same where the left operand is computed (widened, for instance)."""

STEPS = 4
"""Steps along the reduction that are written out in a tile's loop."""

STREAM_ROWS = 8
"""Rows of the right operand that are read side by side where it comes from memory."""

STREAM_VECTORS = 8
"""Vectors for which sums are kept in registers then, of all rows of the left operand together."""

STREAM_WIDTH = 4
"""The most of them for one row of the left operand: wider, and memory does not keep up with the rows' starts."""

PAGE_BYTES = 4096
"""Addresses that differ by a multiple of it compete for the same few lines of a first-level cache (of 32 KiB in 8 ways,
for instance)."""

TRANSPOSE_DEPTH = 16
"""How far along the reduction a vector of columns is transposed at a time: a cache line of float32."""


BLOCKS_EACH = 4
"""Blocks of rows for each thread, where there are rows enough."""

LEAST_TILES = 4
"""Row tiles that a block should have: each block reads the right operand from the second-level cache or beyond."""

ROWS_TO_SHARE = 128
"""From this many rows on, threads share rows; below, columns."""

SMALL_WORK = 1 << 20
"""Multiply-adds that are too few to be shared (some 20 to 40 us)."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A register tile: rows, vectors of columns, lanes of a vector."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes


def tiles(target: Target, dtype: str) -> tuple[Tile, Tile]:
    """The tiles for many rows and for one row of a target.

    Accumulators, one row of B and one element of A share the registers: 6 x 2 + 2 + 1 of 16, 6 x 4 + 4 + 1 of 32.
    """
    lanes = target.lanes(dtypes.row(dtype).bits)
    many = Tile(6, 4, lanes) if target.vector_registers >= 32 else Tile(6, 2, lanes)
    return many, Tile(1, 8, lanes)


@dataclass(frozen=True, slots=True)
class Block:
    """What is packed at a time: panels from ``first_panel`` on (of ``panels_in_all``), ``depth`` rows from
    ``first_k``."""

    first_panel: Expr
    panels: Expr
    panels_in_all: Expr
    first_k: Expr
    depth: Expr


@dataclass(frozen=True, slots=True)
class Part:
    """A block of the reduction: its first index and length, whether it is the first and the last, and where a tile's
    sums wait in between (``partial[tile, panel, row, column]``)."""

    first: Expr
    count: Expr
    is_first: Expr
    is_last: Expr
    partial: Var
    tile: Expr


@dataclass(frozen=True, slots=True)
class Stream:
    """A few rows of B that a thread's columns take before the next ones are read: the first of them and how many; where
    sums wait in between, ``waiting[side, row, column]``, read from one side and left on the other, so that
    columns and rows which two tiles share are summed once."""

    first: Expr
    count: int
    is_first: Expr
    is_last: Expr | bool
    waiting: Var
    source: Expr
    target: Expr
