"""The operands and the result of a contraction as its loops use them: reading, packing into panels, storing."""

from __future__ import annotations

from collections.abc import Callable

from supple.analysis.contraction import Contraction, operand_load
from supple.analysis.reduction import fma
from supple.base import dtypes
from supple.base.target import Target
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Var
from supple.ir.intrinsics import intrinsic
from supple.ir.loop import AllocBuffer, Buffer, BufferStore, SeqStmt
from supple.ir.node import Expr, Stmt
from supple.schedule import loops as L
from supple.schedule.spatial import strips
from supple.schedule.tiles import (
    COMPUTED_PANELS,
    COPIED_PANELS,
    GATHERED_PANELS,
    PACK_DEPTH,
    TRANSPOSE_DEPTH,
    Block,
    Part,
    Tile,
    tiles,
)
from supple.schedule.turn import depth_of, turned


def multiplies_pairs(c: Contraction, target: Target) -> bool:
    """Whether the target multiplies two neighbours along the reduction at once, and there are columns enough for it to
    be worth joining them."""
    narrow = all(operand_load(x).dtype in ("int8", "uint8", "int16") for x in (c.left, c.right))
    columns = L.constant(c.columns[-1].extent)
    enough = columns is None or columns >= 4 * target.lanes(32)
    return narrow and enough and c.dtype == "int32" and target.pair_products is not None


Write = Callable[[Expr, Expr, Expr, Expr], Stmt]


class Operands:
    """Reads, packs and stores for the loops of a contraction, which a subclass arranges."""

    def __init__(self, c: Contraction, target: Target, epilogue: BufferStore | None, *, pairs: bool = False) -> None:
        self.c = c
        self.target = target
        self.epilogue = epilogue
        self.many, self.one = tiles(target, c.dtype)
        self.row, self.column, self.k = c.rows[-1] if c.rows else None, c.columns[-1], c.reduce[0]
        self.M: Expr = L.plain(self.row.extent) if self.row is not None else L.number(1)
        self.N: Expr = L.plain(self.column.extent)
        self.K: Expr = L.plain(self.k.extent)
        self.outer_rows = c.rows[:-1]
        self.outer_columns = c.columns[:-1]
        self.idempotent = c.init is not None
        self.buffers: list[Var] = []  # what the loops keep packed panels and unfinished sums in
        self.pairs = pairs
        if pairs:  # K counts pairs of neighbours along the reduction, each an int32 of two 16-bit halves
            self.K = L.ceildiv(self.K, 2)

    def _buffer(self, name: str, shape: tuple[Expr, ...]) -> Var:
        """A buffer for all of the loops."""
        made = Buffer(name, shape, self.c.dtype)
        self.buffers.append(made)
        return made

    def _extent(self, part: Part | None) -> tuple[Expr, Expr]:
        """Where a block of the reduction begins, and its length."""
        return (L.number(0), self.K) if part is None else (part.first, part.count)

    # ------------------------------------------------------------------------------------------------ reading, storing

    def left(self, at: dict[Var, Expr], row: Expr, k: Expr) -> Expr:
        """One element of the left operand."""
        where = {**at, self.k.var: k}
        if self.row is not None:
            where[self.row.var] = row
        return self._read(self.c.left, where)

    def right(self, at: dict[Var, Expr], k: Expr, column: Expr) -> Expr:
        """One element of the right operand."""
        return self._read(self.c.right, {**at, self.k.var: k, self.column.var: column})

    def _read(self, operand: Expr, where: dict[Var, Expr]) -> Expr:
        read: Expr = L.at(operand, where)
        return read

    def pair(self, value: Callable[[Expr], Expr], k: Expr) -> Expr:
        """The ``k``-th pair of neighbours along the reduction, of which the last may be one number and 0."""
        first = E.Mul(k, L.number(2))
        second, last = E.Add(first, L.number(1)), L.sub(L.plain(self.k.extent), L.number(1))
        high = value(second)
        if L.constant(L.rest(L.plain(self.k.extent), 2)) != 0:
            high = E.Select(E.LE(second, last), value(E.Min(second, last)), E.const(0, "int32"))
        low = intrinsic("bitwise_and", value(first), E.const(0xFFFF, "int32"))
        return intrinsic("bitwise_or", low, intrinsic("shift_left", high, E.const(16, "int32")))

    def element(self, value: Callable[[Expr], Expr], k: Expr) -> Expr:
        """What is copied of an operand for one step of the reduction."""
        return self.pair(value, k) if self.pairs else value(k)

    def multiply_add(self, a: Expr, b: Expr, sum_: Expr) -> Expr:
        """One step of the sum."""
        if self.pairs:
            return E.Add(sum_, intrinsic("dot_pairs", a, b))
        return fma(a, b, sum_) if dtypes.is_float(self.c.dtype) else E.Add(sum_, E.Mul(a, b))

    def start(self, at: dict[Var, Expr], row: Expr, column: Expr) -> Expr:
        """What a sum starts from."""
        if self.c.init is not None:
            return self.c.init
        return BufferLoad(self.c.result, self._result_indices(at, row, column))

    def _result_indices(self, at: dict[Var, Expr], row: Expr, column: Expr) -> tuple[Expr, ...]:
        where = {**at, self.column.var: column}
        if self.row is not None:
            where[self.row.var] = row
        axes = [self.c.nest.axis(index) for index in self.c.indices]
        return tuple(where[axis.var] for axis in axes if axis is not None)

    def finish(self, at: dict[Var, Expr], row: Expr, column: Expr, value: Expr) -> Stmt:
        """Store a finished sum, through the epilogue if there is one."""
        indices = self._result_indices(at, row, column)
        if self.epilogue is None:
            return L.store(self.c.result, indices, value)
        where = {**at, self.column.var: column}
        if self.row is not None:
            where[self.row.var] = row
        made = L.replace_loads(L.at(self.epilogue, where), self.c.result, value)
        assert isinstance(made, Stmt)
        return made

    # ---------------------------------------------------------------------------------------------------------- packing

    def _copies_rows(self, at_once: int | None) -> bool:
        """Whether there are panels enough for a copy of a tile's rows of the left operand to pay; a copy serves
        ``at_once`` of them if that is known to be fewer than all."""
        columns, load = L.constant(self.N), operand_load(self.c.left)
        if self.pairs or columns is None:
            return True
        if self.c.left is not load:  # computed for each element, which takes as long as the multiply-adds that use it
            least = COMPUTED_PANELS
        elif self.c.nest.axis(load.indices[-1]) is not self.k:
            least = GATHERED_PANELS
        else:
            least = COPIED_PANELS
        panels = columns // self.many.columns
        return (panels if at_once is None else min(panels, at_once)) >= least

    def _rows_of_left(
        self, at: dict[Var, Expr], tile: Tile, row: Expr, part: Part | None, depth: int, at_once: int | None
    ) -> tuple[Stmt, Callable[[Expr, Expr], Expr] | None]:
        """The loops that copy a tile's rows of the left operand (a part of them along k, of ``depth`` at most; what is
        multiplied at once lies together), and what reads the copy at a row of the tile and a ``k`` of the part; None
        where rows are read as they are."""
        if not self._copies_rows(at_once):
            return SeqStmt(()), None
        first, count = self._extent(part)
        copies = Buffer("rows", (L.number(depth), L.number(tile.rows)), self.c.dtype)

        def copy(r: Expr, k: Expr) -> Stmt:
            from_, place = E.Add(row, r), L.add(first, k)
            return L.store(copies, (k, r), self.element(lambda i: self.left(at, from_, i), place))

        if self.c.nest.axis(operand_load(self.c.left).indices[-1]) is self.k:
            fill = L.loop("r", tile.rows, lambda r: strips(count, (self.many.lanes,), lambda k: copy(r, k)))
        else:
            fill = L.loop("k", count, lambda k: L.vectorized("r", tile.rows, lambda r: copy(r, k)))
        return L.block(AllocBuffer(copies), fill), lambda r, k: BufferLoad(copies, (k, r))

    def _pack(self, at: dict[Var, Expr], write: Write, tile: Tile, block: Block) -> Stmt:
        """Copy a block of the right operand into panels by ``write(panel, k, column, value)``; the last one is filled
        up with zeros."""
        width = tile.columns
        panels_in_all = L.div(self.N, width)
        rest = L.rest(self.N, width)
        whole = L.plain(E.Min(block.panels, E.Sub(panels_in_all, block.first_panel)))
        zero = E.const(0, self.c.dtype)

        def read(panel: Expr, k: Expr, column: Expr) -> Expr:
            first = L.mul(L.add(block.first_panel, panel), width)
            row, j = L.add(block.first_k, k), L.add(first, column)
            return self.element(lambda i: self.right(at, i, j), row)

        def copy(panel: Expr, k: Expr, column: Expr) -> Stmt:
            return write(panel, k, column, read(panel, k, column))

        def down(first: Expr, rows: Expr | int) -> Stmt:  # read along the columns, which are contiguous
            return L.loop("jo", whole, lambda panel: L.loop("k", rows, lambda k: L.unrolled(
                "cv", tile.vectors, lambda v: L.vectorized("c", tile.lanes, lambda lane: copy(
                    panel, L.add(first, k), L.add(L.mul(v, tile.lanes), lane))))))  # fmt: skip

        known = L.constant(rest)
        used = width if known is None else -(-known // tile.lanes) * tile.lanes  # what is multiplied of the last panel
        in_vectors = known is not None and not self.c.right_is_transposed

        def partial(k: Expr) -> Stmt:
            return L.block(
                strips(rest, (tile.lanes,) if in_vectors else (), lambda c: copy(whole, k, c)),
                L.loop("c", L.sub(L.number(used), rest), lambda c: write(whole, k, L.add(rest, c), zero)),
            )

        blocks = L.div(block.depth, PACK_DEPTH)
        done = L.mul(blocks, PACK_DEPTH)
        if self.c.right_is_transposed:
            full = [L.parallel("jo", whole, lambda panel: self._transposed_panel(
                tile, block.depth, lambda k, c: read(panel, k, c),
                lambda k, c, value: write(panel, k, c, value)))]  # fmt: skip
        else:  # some rows at a time: a few streams are read, and what is written to a panel lies together
            full = [
                L.parallel("kb", blocks, lambda kb: down(L.mul(kb, PACK_DEPTH), PACK_DEPTH)),
                down(done, L.sub(block.depth, done)),
            ]
        is_last: Expr | bool = True
        if block.panels is not block.panels_in_all:
            is_last = E.EQ(E.Add(block.first_panel, block.panels), block.panels_in_all)
        tail = L.when(L.at_least(rest, 1), L.loop("k", block.depth, partial))
        return L.block(*full, L.when(is_last, tail))

    def _transposed_panel(
        self, tile: Tile, count: Expr, read: Callable[[Expr, Expr], Expr], write: Callable[[Expr, Expr, Expr], Stmt]
    ) -> Stmt:
        """One full panel of an operand that is contiguous along k: a vector of columns for some k, then the next, so
        that the lines read stay in the first-level cache until all of each is used. ``read(k, column)`` is written by
        ``write(k, column, value)``."""
        turn = None if self.pairs else depth_of(self.c.dtype, tile.lanes)

        def column(v: Expr, lane: Expr) -> Expr:
            return L.add(L.mul(v, tile.lanes), lane)

        def gathered(first: Expr, depth: Expr | int) -> Stmt:
            return L.loop("cv", tile.vectors, lambda v: L.loop("k", depth, lambda k: L.vectorized(
                "c", tile.lanes, lambda c: write(
                    L.add(first, k), column(v, c), read(L.add(first, k), column(v, c))))))  # fmt: skip

        def square(first: Expr, v: Expr, depth: int) -> Stmt:
            made = turned(self.c.dtype, tile.lanes, depth, lambda c, k: read(L.add(first, k), column(v, c)))
            return L.block(made.fill, L.unrolled("k", depth, lambda k: L.vectorized("c", tile.lanes, lambda c: write(
                L.add(first, k), column(v, c), made.at(k, c)))))  # fmt: skip

        def some(first: Expr) -> Stmt:
            if turn is None:
                return gathered(first, TRANSPOSE_DEPTH)
            return L.loop("cv", tile.vectors, lambda v: L.loop("ko", TRANSPOSE_DEPTH // turn, lambda ko: square(
                L.add(first, L.mul(ko, turn)), v, turn)))  # fmt: skip

        blocks = L.div(count, TRANSPOSE_DEPTH)
        done = L.mul(blocks, TRANSPOSE_DEPTH)
        return L.block(
            L.loop("ko", blocks, lambda ko: some(L.mul(ko, TRANSPOSE_DEPTH))), gathered(done, L.sub(count, done))
        )
