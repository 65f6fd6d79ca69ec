"""How much of a contraction's right operand is taken at a time: panels of columns, and of the reduction."""

from __future__ import annotations

from dataclasses import dataclass

from supple.base import dtypes
from supple.base.target import Target
from supple.ir import expr as E
from supple.ir.node import Expr
from supple.schedule import loops as L
from supple.schedule.tiles import BLOCKS_EACH, GIVEN_PANELS, PANELS_BYTES, SHALLOW, Tile


@dataclass(frozen=True, slots=True)
class Blocking:
    """The blocks for many rows and for few (``many`` says which there are).

    For many, ``large`` panels of ``deep`` rows of B, which the third-level cache holds: they are read once for each
    tile of rows. For few, ``small`` panels of ``shallow`` rows, which half the second-level cache holds. What is packed
    for few rows takes as long as what is done with it, and memory keeps up only with wide pieces of B's rows: there the
    blocks are shallow, with more panels, and sums wait in between.
    """

    many: Expr | bool
    length: Expr
    deep: int
    shallow: int
    large: int
    small: int
    each: int

    @property
    def depth(self) -> Expr:
        """The most of the reduction that a block takes."""
        return L.choose(self.many, L.number(self.deep), L.number(self.shallow))

    @property
    def panels(self) -> Expr:
        """The most panels that a block takes."""
        return L.choose(self.many, L.number(self.large), L.number(self.small))

    @property
    def parts(self) -> Expr:
        """How many blocks the reduction has, one of which may be empty."""
        deep, shallow = (L.plain(E.Max(L.ceildiv(self.length, d), L.number(1))) for d in (self.deep, self.shallow))
        same = L.constant(L.sub(deep, shallow)) == 0
        return deep if same else L.choose(self.many, deep, shallow)

    def rows(self, panels: Expr) -> Expr:
        """The most rows that the panels of a block have together, when there are so many panels in all."""
        deep, shallow = (
            E.Mul(E.Min(L.number(most), panels), L.number(depth))
            for most, depth in ((self.large, self.deep), (self.small, self.shallow))
        )
        return L.plain(L.choose(self.many, deep, shallow) if isinstance(self.many, bool) else E.Max(deep, shallow))


def blocking(
    target: Target,
    dtype: str,
    tile: Tile,
    length: Expr,
    columns: Expr,
    many: Expr | bool,
    *,
    given: bool,
    shallow: bool,
) -> Blocking:
    """The `Blocking` for a target. ``length`` is that of the reduction. ``given``: B is stored in panels; ``shallow``:
    blocks of it are packed from its rows."""
    cores = max(1, target.cores)
    row_bytes = dtypes.nbytes(dtype) * tile.columns
    deep = _depth(length, target.l1_bytes * 3 // 4 // (tile.rows * dtypes.nbytes(dtype)) // 8 * 8)
    low = min(deep, _depth(length, 2 * _shallow(columns, row_bytes, deep, tile, target))) if shallow else deep
    large = max(1, max(target.l2_bytes, min(PANELS_BYTES, target.l3_bytes // 2)) // (row_bytes * deep))
    in_cache = max(1, target.l2_bytes // 2 // (row_bytes * low))
    if given:  # read from the next cache, ahead of need: the fewer blocks, the less often the left operand is read
        in_cache *= GIVEN_PANELS
    # panels that are packed here should still be in the caches when they are used; of others each unit may have all
    small = in_cache * cores * (BLOCKS_EACH if given and cores > 1 else 1)
    return Blocking(many, length, deep, low, large, small if low < deep else min(large, small), in_cache)


def _shallow(columns: Expr, row_bytes: int, deep: int, tile: Tile, target: Target) -> int:
    """So many rows of B as half the second-level cache holds, in limits; all where it holds those of a deep block."""
    least, most = SHALLOW
    cores = max(1, target.cores)  # each block is shared by all, which takes a moment
    known = L.constant(columns)
    if not known:
        return least
    rows = cores * target.l2_bytes // 2 // (row_bytes * -(-known // tile.columns))
    return deep if rows >= deep else min(cores * most, max(least, rows))


def _depth(length: Expr, in_cache: int) -> int:
    """How much of the reduction a block takes, of which a cache holds ``in_cache``."""
    known = L.constant(length)
    if known is None:
        return in_cache // 2
    if known <= in_cache:
        return max(1, known)
    parts = -(-known // (in_cache // 2))  # about as long as each other: a short one would not pay for itself
    return -(-known // parts // 8) * 8
