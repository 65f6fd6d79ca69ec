"""The rule for contractions: register tiles, a packed right operand, streaming for few rows.

What ``C[i, j] += A[i, k] * B[k, j]`` becomes (6 x 16 tiles; the numbers follow from the target)::

    if M >= PACK_ROWS:
        for jo in T.parallel(N / 16):                  # B in panels of 16 columns, contiguous along k
            Bp[jo, k, 0:16] = B[k, jo*16 : jo*16+16]
        for ko in blocks of k for which 6 rows of A stay in the first-level cache:      # one, unless K is large
            for ib in T.parallel(blocks of rows; with few rows: of all rows and some panels):
                for io in the block's tiles of 6 rows:         # the last one ends at the last row
                    for jo in range(N / 16, or the block's panels):
                        acc[6, 16] = init, or what the block of k before left
                        for k in the block:
                            acc[r, 0:16] = fma(A[6*io+r, k], Bp[jo, k, 0:16], acc[r, 0:16])   # r unrolled
                        C[6*io+r, jo*16 : jo*16+16] = epilogue(acc[r, 0:16]), or leave it for the next block
    else:
        four rows, two or one, 16, 32 or 64 columns at a time (8 or 4 where there are no more), B read in place (some
        of its rows at a time for all columns, when B is larger than the cache; turned in registers where B is
        contiguous along k)

Panels stream past a tile's rows of A, and the result is written row by row: both run on where the last tile ended,
which hardware prefetches. (With a panel held and A streaming, each tile's rows of the result begin six new streams, and
products of 1024 and more take 10 to 20% longer.) Where there are panels enough to pay for it, the tile's rows of A are
copied before: side by side they do not compete for the same lines of the cache, narrow floats are widened once, and a
transposed A is gathered once.

Integers of 8 and 16 bits that are summed in 32 bits are packed in pairs along k: one instruction multiplies both and
adds the products, and k counts pairs.

A B larger than the cache is packed, and used for all rows, a block at a time.

Every element is one chain of fused multiply-adds over k in order, in every variant (leaving a sum in memory and taking
it up again does not round it): its bits depend neither on the number of rows nor on the variant. The rest of the rows
is one more tile that ends at the last row (rows it shares with the tile before are computed twice, to the same bits),
and so is the rest of the columns where B is read in place. A sum that goes on from what the result holds may not be
computed twice: there the rest is done row by row.

Threads share blocks of rows from `ROWS_TO_SHARE` rows on, below that panels (tiles of columns where B is read in
place): each then keeps its part of B in its own cache. There is one body for both, and for one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from supple.analysis.contraction import Contraction, operand_load, read_contraction
from supple.analysis.nest import Axis
from supple.base import dtypes
from supple.base.target import Target
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Var
from supple.ir.loop import AllocBuffer, Buffer, BufferStore, SeqStmt
from supple.ir.node import Expr, Stmt
from supple.ir.walk import transform
from supple.schedule import loops as L
from supple.schedule.blocking import Blocking, blocking
from supple.schedule.merge import can_merge, merge
from supple.schedule.operands import Operands, multiplies_pairs
from supple.schedule.spatial import LINE, strips
from supple.schedule.tiles import (
    BLOCKS_EACH,
    LEAST_TILES,
    PACK_ROWS,
    PAGE_BYTES,
    ROWS_TO_SHARE,
    SMALL_ROWS,
    SMALL_WORK,
    STEPS,
    STREAM_ROWS,
    STREAM_VECTORS,
    STREAM_WIDTH,
    Block,
    Part,
    Stream,
    Tile,
)
from supple.schedule.turn import depth_of, turned


class ContractionRule(Operands):
    """The loops of one contraction."""

    def build(self) -> Stmt:
        """The statement that replaces the nest (and its fused consumer)."""
        all_rows: Expr = self.M
        for axis in self.outer_rows:
            all_rows = L.mul(all_rows, axis.extent)
        outer = (*self.c.batch, *self.outer_columns)

        def body(at: dict[Var, Expr]) -> Stmt:
            if self.c.panel == self.many.columns:
                return self._given_panels(at)
            many = L.at_least(all_rows, max(PACK_ROWS, self.many.rows))
            if self.c.right_is_transposed and not self.idempotent:  # reading it in place would gather
                return self._packed(at)
            return self._in_place(at) if many is False else L.when(many, self._packed(at), self._in_place(at))

        def with_buffers(at: dict[Var, Expr]) -> Stmt:
            made = body(at)
            return L.block(*(AllocBuffer(b) for b in self.buffers), made)

        around = L.parallel_around if self._shares(outer) else L.around
        return L.proved(around(outer, {}, with_buffers))

    def _shares(self, outer: Sequence[Axis]) -> bool:
        """Whether threads share the loops around rather than the inside: there are enough iterations for all of them,
        or too little is done inside."""
        known, dynamic = 1, False
        for axis in outer:
            size = L.constant(axis.extent)
            known, dynamic = (known, True) if size is None else (known * size, dynamic)
        if known >= 2 * self.target.cores:
            return True
        work = 1
        for extent in (self.M, self.N, self.K, *(axis.extent for axis in self.outer_rows)):
            size = L.constant(extent)
            if size is None:
                return False
            work *= size
        return dynamic and work <= SMALL_WORK

    # -------------------------------------------------------------------------------------------------------- many rows

    def _packed(self, at: dict[Var, Expr]) -> Stmt:
        if not (multiplies_pairs(self.c, self.target) and self._rows_are_counted()):
            return self._packed_panels(at)
        joined = ContractionRule(self.c, self.target, self.epilogue, pairs=True)
        made = joined._packed_panels(at)
        self.buffers.extend(joined.buffers)
        return made

    def _packed_panels(self, at: dict[Var, Expr]) -> Stmt:
        tile, width = self.many, L.number(self.many.columns)
        panels = L.ceildiv(self.N, tile.columns)
        if self._rows_are_counted():
            return self._packed_by_blocks(at, tile, panels)
        packed = self._buffer("packed", (panels, self.K, width))

        def write(panel: Expr, k: Expr, column: Expr, value: Expr) -> Stmt:
            return L.store(packed, (panel, k, column), value)

        def source(panel: Expr, k: Expr, column: Expr) -> Expr:
            return BufferLoad(packed, (panel, k, column))

        compute = L.around(self.outer_rows, at, lambda inner: self._blocked(inner, tile, panels, source))
        everything = Block(L.number(0), panels, panels, L.number(0), self.K)
        return L.block(self._pack(at, write, tile, everything), compute)

    def _rows_are_counted(self) -> bool:
        """Whether packing starts only when there are rows for a tile, and no loop over rows would repeat it."""
        return self.idempotent and bool(self.c.rows) and not self.outer_rows

    def _packed_by_blocks(self, at: dict[Var, Expr], tile: Tile, panels: Expr) -> Stmt:
        """A block of the right operand is packed and used for all rows before the next."""
        blocks = self._blocking(tile, shallow=not self.c.right_is_transposed)
        depth = blocks.depth
        packed = self._buffer("packed", (blocks.rows(panels), L.number(tile.columns)))

        def place(panel: Expr, k: Expr, column: Expr) -> tuple[Expr, ...]:
            return L.add(L.mul(panel, depth), k), column

        def block_of(first_panel: Expr, here: Expr, part: Callable[[Expr], Part] | None) -> Stmt:
            first_k, rows = self._extent(None if part is None else part(L.number(0)))

            def source(panel: Expr, k: Expr, column: Expr) -> Expr:
                return BufferLoad(packed, place(E.Sub(panel, first_panel), E.Sub(k, first_k), column))

            def write(panel: Expr, k: Expr, column: Expr, value: Expr) -> Stmt:
                return L.store(packed, place(panel, k, column), value)

            pack = self._pack(at, write, tile, Block(first_panel, here, panels, first_k, rows))
            return L.block(pack, self._sweep(at, tile, blocks, first_panel, here, source, part))

        return self._in_blocks(tile, blocks, panels, block_of)

    def _given_panels(self, at: dict[Var, Expr]) -> Stmt:
        """The right operand is stored in panels of a tile's width."""
        load = operand_load(self.c.right)

        def source(panel: Expr, k: Expr, column: Expr) -> Expr:
            own = BufferLoad(load.buffer, (panel, k, column))
            made = transform(self.c.right, lambda n: own if n is load else None)
            assert isinstance(made, Expr)
            return made

        panels = L.ceildiv(self.N, self.many.columns)
        return L.around(self.outer_rows, at, lambda inner: self._blocked(inner, self.many, panels, source))

    def _blocking(self, tile: Tile, *, shallow: bool = False) -> Blocking:
        many, given = self._rows_to_share(tile), self.c.panel is not None
        return blocking(self.target, self.c.dtype, tile, self.K, self.N, many, given=given, shallow=shallow)

    def _rows_to_share(self, tile: Tile) -> Expr | bool:
        """Whether there are rows enough for threads to share them."""
        return L.at_least(self._full_tiles(tile), -(-ROWS_TO_SHARE // tile.rows))

    def _sweep(
        self, at: dict[Var, Expr], tile: Tile, blocks_of_right: Blocking, first_panel: Expr, panels: Expr,
        source: Callable[[Expr, Expr, Expr], Expr], part: Callable[[Expr], Part] | None,
    ) -> Stmt:  # fmt: skip
        """Tiles of rows, each with all panels of a block of B.

        Threads share blocks of row tiles; where there are few rows, they share panels.
        """
        full = self._full_tiles(tile)
        sizes = L.Sizes()
        cores = max(1, self.target.cores)
        if cores == 1:
            wanted_blocks: Expr = L.number(1)
            wanted_groups: Expr = L.number(1)
        else:
            many = self._rows_to_share(tile)
            # enough blocks for a thread that comes late to leave some to the others, but not of less than a few tiles
            few_tiles = E.Max(E.Min(L.number(BLOCKS_EACH * cores), L.div(full, LEAST_TILES)), L.number(1))
            wanted_blocks = sizes.bind("wanted", L.choose(many, L.plain(few_tiles), L.number(1)))
            beside = L.plain(E.Max(L.ratio(L.number(cores), wanted_blocks), L.number(1)))
            wanted_groups = L.choose(many, beside, L.plain(E.Min(L.number(BLOCKS_EACH * cores), panels)))
        per_block = sizes.bind("per_block", L.plain(E.Max(L.ratio(full, wanted_blocks), L.number(1))))
        blocks = sizes.bind("blocks", L.ratio(full, per_block))
        per_group = sizes.bind("per_group", L.plain(E.Max(L.ratio(panels, wanted_groups), L.number(1))))
        groups = sizes.bind("groups", L.ratio(panels, per_group))

        at_once = blocks_of_right.each if blocks_of_right.many is False else None
        # the first tile of few rows brings panels that were packed before from memory, and asks for the next one early
        asks: Expr | bool = self.c.panel is not None and blocks_of_right.many is not True
        if asks and not isinstance(blocks_of_right.many, bool):
            asks = E.Not(blocks_of_right.many)

        def block_of(unit: Expr) -> Stmt:
            own_sizes = L.Sizes()
            first = own_sizes.bind("first", L.mul(L.quotient(unit, groups), per_block))
            panel = own_sizes.bind("panel", L.mul(L.remainder(unit, groups), per_group))
            count = E.Min(per_block, E.Sub(full, first))
            here = L.plain(E.Min(per_group, L.sub(panels, panel)))

            def rows(height: int, row: Expr, number: Expr) -> Stmt:
                """One tile of rows with the panels."""
                own = None if part is None else part(number)
                shape = Tile(height, tile.vectors, tile.lanes)
                copy, left = self._rows_of_left(at, shape, row, own, blocks_of_right.deep, at_once)

                def micro(jo: Expr) -> Stmt:
                    place = L.add(first_panel, panel, jo)
                    made = self._micro(at, shape, row, place, source, own, left=left)
                    if asks is False or height != tile.rows:
                        return made
                    asking = self._micro(at, shape, row, place, source, own, left=left, ahead=True)
                    is_first = E.EQ(number, L.number(0))
                    return L.when(is_first if asks is True else E.And(asks, is_first), asking, made)

                return L.block(copy, L.loop("jo", here, micro))

            def tile_of(io: Expr) -> Stmt:
                number = E.Add(first, io)
                return rows(tile.rows, self._first_row(number, tile), number)

            # where rows may not be computed twice, the rest is done row by row, after the blocks
            some = L.at_least(L.sub(self.M, L.mul(full, tile.rows)), 1) if self.idempotent else False
            rest: Stmt = SeqStmt(())
            if some is not False:
                height = min(SMALL_ROWS, tile.rows)
                made = L.when(some, rows(height, L.sub(self.M, L.number(height)), full))
                rest = L.when(E.EQ(E.Add(first, count), full), made)
            return L.block(*own_sizes.statements, L.loop("io", count, tile_of), rest)

        return L.block(*sizes.statements, L.parallel("ib", L.mul(blocks, groups), block_of))

    def _in_blocks(
        self, tile: Tile, blocks: Blocking, panels: Expr,
        body: Callable[[Expr, Expr, Callable[[Expr], Part] | None], Stmt],
    ) -> Stmt:  # fmt: skip
        """Blocks of panels, each in blocks of the reduction."""
        block = blocks.panels
        if L.at_least(block, panels) is True:
            return self._by_parts(tile, blocks, panels, lambda part: body(L.number(0), panels, part))
        sizes = L.Sizes()
        block = sizes.bind("block", block)

        def one(nb: Expr) -> Stmt:
            first = L.mul(nb, block)
            here = L.plain(E.Min(block, E.Sub(panels, first)))
            return self._by_parts(tile, blocks, panels, lambda part: body(first, here, part))

        return L.block(*sizes.statements, L.loop("nb", L.ratio(panels, block), one))

    def _by_parts(
        self, tile: Tile, blocks: Blocking, panels: Expr, body: Callable[[Callable[[Expr], Part] | None], Stmt]
    ) -> Stmt:
        """Blocks of the reduction, in order; one, unless it is long."""
        parts, depth = blocks.parts, blocks.depth
        if L.constant(parts) == 1:
            return body(None)
        shape = (L.add(self._full_tiles(tile), 1), panels, L.number(tile.rows), L.number(tile.columns))
        partial = self._buffer("partial", shape)

        def part_of(ko: Expr) -> Callable[[Expr], Part]:
            first = E.Mul(ko, depth)
            count = E.Min(depth, E.Sub(self.K, first))
            last = E.Sub(parts, L.number(1))
            return lambda number: Part(first, count, E.EQ(ko, L.number(0)), E.EQ(ko, last), partial, number)

        return L.loop("ko", parts, lambda ko: body(part_of(ko)))

    def _blocked(
        self, at: dict[Var, Expr], tile: Tile, panels: Expr, source: Callable[[Expr, Expr, Expr], Expr]
    ) -> Stmt:
        """All rows with all panels of B."""
        blocks = self._blocking(tile)
        whole = self._in_blocks(
            tile, blocks, panels, lambda first, here, part: self._sweep(at, tile, blocks, first, here, source, part)
        )
        if self.idempotent:
            enough = L.at_least(self.M, tile.rows)
            if self._rows_are_counted() and self.c.panel is None:
                enough = True
            if enough is True:
                return whole
            few = self._few_rows_of_panels(at, panels, source)
            return few if enough is False else L.when(enough, whole, few)
        done = L.mul(L.div(self.M, tile.rows), tile.rows)
        rest = self._rows_one_by_one(at, tile, done, L.sub(self.M, done), panels, source)
        return L.block(whole, rest)

    def _full_tiles(self, tile: Tile) -> Expr:
        """How many whole tiles there are; where rows may be computed twice, one more that ends at the last row when
        more rows are left than a small tile has."""
        spare = max(0, tile.rows - 1 - SMALL_ROWS) if self.idempotent else 0
        return L.div(L.add(self.M, spare), tile.rows)

    def _first_row(self, number: Expr, tile: Tile) -> Expr:
        """Where a tile begins; the last one ends at the last row."""
        first = E.Mul(number, L.number(tile.rows))
        if not self.idempotent or L.constant(L.rest(self.M, tile.rows)) == 0:
            return first
        return E.Min(first, L.sub(self.M, L.number(tile.rows)))

    def _few_rows_of_panels(
        self, at: dict[Var, Expr], panels: Expr, source: Callable[[Expr, Expr, Expr], Expr]
    ) -> Stmt:
        """Fewer rows than a tile's: four of them, two or one, with as many panels side by side as there are sums to
        keep the arithmetic busy; each panel is read once for the rows of a tile."""

        def some(rows: int, group: int) -> L.Share:
            tile = Tile(rows, self.many.vectors, self.many.lanes)

            def of(count: Expr, first: Callable[[Expr], Expr], side_by_side: int) -> L.Share:
                return L.Share.each(count, lambda jo: L.loop("io", L.ceildiv(self.M, rows), lambda io: self._micro(
                    at, tile, self._first_row(io, tile), first(jo), source,
                    group=side_by_side)))  # fmt: skip

            single = of(panels, lambda jo: jo, 1)
            if group == 1:
                return single
            last = L.sub(panels, L.number(group))
            together = of(L.ceildiv(panels, group), lambda jo: E.Min(E.Mul(jo, L.number(group)), last), group)
            return L.either(L.at_least(panels, group), together, single)

        made = some(1, max(1, self.one.vectors // self.many.vectors))
        for rows in (2, 4):
            enough = L.at_least(self.M, rows)
            if enough is not False:
                group = max(1, self.one.vectors // (rows * self.many.vectors))
                made = L.either(enough, some(rows, group), made)
        return made.loop("jo")

    def _rows_one_by_one(
        self, at: dict[Var, Expr], tile: Tile, first: Expr, count: Expr, panels: Expr,
        source: Callable[[Expr, Expr, Expr], Expr],
    ) -> Stmt:  # fmt: skip
        single = Tile(1, tile.vectors, tile.lanes)
        return L.parallel("jo", panels, lambda jo: L.loop(
            "i", count, lambda i: self._micro(at, single, L.add(first, i), jo, source)))  # fmt: skip

    def _micro(
        self, at: dict[Var, Expr], tile: Tile, row: Expr, panel: Expr, source: Callable[[Expr, Expr, Expr], Expr],
        part: Part | None = None, group: int = 1, left: Callable[[Expr, Expr], Expr] | None = None,
        ahead: bool = False,
    ) -> Stmt:  # fmt: skip
        """One tile of the result from one packed panel (or from a part of it); from ``group`` neighbouring panels.
        ``left`` reads the tile's rows of A at a row of the tile and a ``k`` of the part. ``ahead``: the next panel is
        asked for meanwhile."""
        if group > 1:
            return self._micro_group(at, tile, row, panel, source, group)
        width = tile.columns
        whole, rest = L.constant(L.div(self.N, width)), L.constant(L.rest(self.N, width))
        fits = E.LE(L.mul(L.add(panel, 1), width), self.N)

        def some(vectors: int, fits: Expr | bool) -> Stmt:
            shape = Tile(tile.rows, vectors, tile.lanes)
            first_column = E.Mul(panel, L.number(width))
            return self._part_of_panel(at, shape, row, panel, first_column, fits, source, part, left, ahead)

        if rest is None or rest > width - tile.lanes:
            return some(tile.vectors, fits)
        if rest == 0:
            return some(tile.vectors, True)
        vectors = -(-rest // tile.lanes)
        narrow = some(vectors, rest == vectors * tile.lanes)
        return narrow if whole == 0 else L.when(fits, some(tile.vectors, True), narrow)

    def _part_of_panel(
        self, at: dict[Var, Expr], tile: Tile, row: Expr, panel: Expr, first_column: Expr, fits: Expr | bool,
        source: Callable[[Expr, Expr, Expr], Expr], part: Part | None, left: Callable[[Expr, Expr], Expr] | None,
        ahead: bool,
    ) -> Stmt:  # fmt: skip
        """One tile from the first columns of a panel, which lie inside the result if it ``fits``; if not, those beyond
        the last column are computed (on zeros) but neither read from the result nor stored."""
        acc = self._accumulator(tile)

        def column(c: Expr) -> Expr:
            return E.Add(first_column, c)

        rest = self._rest_buffer(tile)
        begin = self._each(tile, lambda r, c: L.store(acc, (r, c), self.start(at, E.Add(row, r), column(c))))
        if not self.idempotent and fits is not True:
            begin = L.when(fits, begin, self._load_partial(at, tile, acc, rest, row, first_column))

        first, depth = self._extent(part)

        def step(k: Expr) -> Stmt:
            inside = L.add(first, k)
            made = self._each(tile, lambda r, c: L.store(acc, (r, c), self.multiply_add(
                self.left(at, E.Add(row, r), inside) if left is None else left(r, k), source(panel, inside, c),
                BufferLoad(acc, (r, c)))))  # fmt: skip
            return L.block(self._ask(tile, source, panel, inside), made) if ahead else made

        sum_ = self._along_k(depth, step)
        end = self._each(tile, lambda r, c: self.finish(at, E.Add(row, r), column(c), BufferLoad(acc, (r, c))))
        if fits is not True:
            spill = self._each(tile, lambda r, c: L.store(rest, (r, c), BufferLoad(acc, (r, c))))
            end = L.when(fits, end, L.block(spill, self._finish_rest(at, tile, row, first_column, rest)))
        if part is not None:
            waiting, number = part.partial, part.tile
            begin = L.when(part.is_first, begin, self._each(tile, lambda r, c: L.store(
                acc, (r, c), BufferLoad(waiting, (number, panel, r, c)))))  # fmt: skip
            end = L.when(part.is_last, end, self._each(tile, lambda r, c: L.store(
                waiting, (number, panel, r, c), BufferLoad(acc, (r, c)))))  # fmt: skip
        spare = () if fits is True else (AllocBuffer(rest),)
        return L.block(AllocBuffer(acc), *spare, begin, self._expect(at, tile, row, first_column, part), sum_, end)

    def _ask(self, tile: Tile, source: Callable[[Expr, Expr, Expr], Expr], panel: Expr, k: Expr) -> Stmt:
        """Ask for the lines of a row of the next panel."""
        next_panel = E.Min(L.add(panel, 1), L.sub(L.ceildiv(self.N, self.many.columns), L.number(1)))

        def line(n: Expr) -> Stmt:
            load = E.uncast(source(next_panel, k, L.mul(n, each)))
            assert isinstance(load, BufferLoad)
            return L.prefetch_for_later(load)

        each = LINE // dtypes.nbytes(operand_load(self.c.right).dtype)
        return L.unrolled("line", -(-tile.columns // each), line)

    def _along_k(self, depth: Expr, step: L.Body) -> Stmt:
        """The loop over the reduction, some steps at a time: fewer instructions beside the multiply-adds, which matters
        where another thread of the same core takes its share of the instructions."""
        whole = L.div(depth, STEPS)
        done = L.mul(whole, STEPS)
        return L.block(
            L.loop("ks", whole, lambda ks: L.unrolled("kk", STEPS, lambda kk: step(L.add(L.mul(ks, STEPS), kk)))),
            L.loop("k", L.sub(depth, done), lambda k: step(L.add(done, k))),
        )

    def _expect(self, at: dict[Var, Expr], tile: Tile, row: Expr, first_column: Expr, part: Part | None) -> Stmt:
        """Ask for the lines of the result that a tile writes at its end: from memory they take as long as the sum."""

        def line(r: Expr) -> Stmt:
            made = self.finish(at, E.Add(row, r), first_column, E.const(0, self.c.dtype))
            assert isinstance(made, BufferStore)
            return L.prefetch(made.buffer, made.indices)

        lines = L.unrolled("r", tile.rows, line)
        return lines if part is None else L.when(part.is_last, lines)

    def _micro_group(
        self, at: dict[Var, Expr], tile: Tile, row: Expr, panel: Expr, source: Callable[[Expr, Expr, Expr], Expr],
        group: int,
    ) -> Stmt:  # fmt: skip
        """One tile from each of several neighbouring panels, their sums side by side."""
        width = tile.columns
        shape = (L.number(group), L.number(tile.rows), L.number(width))
        acc = Buffer("acc", shape, self.c.dtype, "local")
        divisible = L.constant(L.rest(self.N, width)) == 0

        def each(body: Callable[[Expr, Expr, Expr], Stmt]) -> Stmt:
            return L.unrolled("p", group, lambda p: self._each(tile, lambda r, c: body(p, r, c)))

        def column(p: Expr, c: Expr) -> Expr:
            return E.Add(E.Mul(E.Add(panel, p), L.number(width)), c)

        def step(k: Expr) -> Stmt:
            return each(
                lambda p, r, c: L.store(
                    acc,
                    (p, r, c),
                    self.multiply_add(
                        self.left(at, E.Add(row, r), k), source(E.Add(panel, p), k, c), BufferLoad(acc, (p, r, c))
                    ),
                )
            )

        rest = self._rest_buffer(tile)

        def finish(p: Expr) -> Stmt:
            whole = self._each(tile, lambda r, c: self.finish(
                at, E.Add(row, r), column(p, c), BufferLoad(acc, (p, r, c))))  # fmt: skip
            if divisible:
                return whole
            first = E.Mul(E.Add(panel, p), L.number(width))
            spill = self._each(tile, lambda r, c: L.store(rest, (r, c), BufferLoad(acc, (p, r, c))))
            tail = self._finish_rest(at, tile, row, first, rest)
            return L.when(E.LE(E.Add(first, L.number(width)), self.N), whole, L.block(spill, tail))

        begin = each(lambda p, r, c: L.store(acc, (p, r, c), self.start(at, E.Add(row, r), column(p, c))))
        spare = () if divisible else (AllocBuffer(rest),)
        return L.block(AllocBuffer(acc), *spare, begin, self._along_k(self.K, step), L.unrolled("p", group, finish))

    def _load_partial(
        self, at: dict[Var, Expr], tile: Tile, acc: Var, rest: Var, row: Expr, first_column: Expr
    ) -> Stmt:
        zero = E.const(0, self.c.dtype)
        count = E.Sub(self.N, first_column)
        clear = self._each(tile, lambda r, c: L.store(rest, (r, c), zero))
        fill = L.loop("r", tile.rows, lambda r: L.loop("c", count, lambda c: L.store(
            rest, (r, c), self.start(at, E.Add(row, r), E.Add(first_column, c)))))  # fmt: skip
        copy = self._each(tile, lambda r, c: L.store(acc, (r, c), BufferLoad(rest, (r, c))))
        return L.block(clear, fill, copy)

    def _finish_rest(self, at: dict[Var, Expr], tile: Tile, row: Expr, first_column: Expr, rest: Var) -> Stmt:
        """The last columns of a tile from where its sums were left; in vectors where their number is known."""
        known = L.constant(L.rest(self.N, self.many.columns))
        count = L.sub(self.N, first_column) if known is None else L.number(known)
        return L.loop("r", tile.rows, lambda r: strips(count, () if known is None else (tile.lanes,), lambda c: (
            self.finish(at, E.Add(row, r), E.Add(first_column, c), BufferLoad(rest, (r, c))))))  # fmt: skip

    def _accumulator(self, tile: Tile) -> Var:
        return Buffer("acc", (L.number(tile.rows), L.number(tile.columns)), self.c.dtype, "local")

    def _rest_buffer(self, tile: Tile) -> Var:
        """Where a tile that is only partly inside the result goes on its way out."""
        return Buffer("rest", (L.number(tile.rows), L.number(tile.columns)), self.c.dtype)

    def _each(self, tile: Tile, body: Callable[[Expr, Expr], Stmt]) -> Stmt:
        """All elements of a tile, rows and vectors written out."""
        return self._each_lane(tile, lambda r, v, lane: body(r, E.Add(E.Mul(v, L.number(tile.lanes)), lane)))

    def _each_lane(self, tile: Tile, body: Callable[[Expr, Expr, Expr], Stmt]) -> Stmt:
        """The same by row, vector, and lane of the vector."""
        return L.unrolled("r", tile.rows, lambda r: L.unrolled("cv", tile.vectors, lambda v: L.vectorized(
            "c", tile.lanes, lambda lane: body(r, v, lane))))  # fmt: skip

    # --------------------------------------------------------------------------------------------------------- few rows

    def _in_place(self, at: dict[Var, Expr]) -> Stmt:
        return L.around(self.outer_rows, at, self._few_rows)

    def _few_rows(self, at: dict[Var, Expr]) -> Stmt:
        """B read in place, once for the rows of a tile: four of them, two or one."""
        if not self.idempotent:  # tiles may not overlap
            return self._in_order(at, self.one)
        vectors = self._vectors_of_rows() if self.c.right_is_transposed else self.one.vectors
        tiles = [Tile(rows, max(1, vectors // rows), self.one.lanes) for rows in (1, 2, 4)]
        made = self._across(at, tiles[0])
        for tile in (*(Tile(4, 1, lanes) for lanes in self._short_vectors()), *tiles[1:]):
            even = self._known_columns(tile) is not None
            enough, wide = L.at_least(self.M, tile.rows), even or L.at_least(self.N, tile.columns)
            if enough is False or wide is False:
                continue
            both: Expr | bool = enough if wide is True else wide if enough is True else E.And(enough, wide)
            made = L.either(both, self._across(at, tile, only_wide=True), made)
        return made.loop("jo")

    def _vectors_of_rows(self) -> int:
        """How many vectors of columns to sum at once where B is contiguous along k: two, for the chains of additions to
        overlap. Where its rows are whole pages, whose lines share a set of the first-level cache, one: their lines stay
        there until all of each is used."""
        depth = L.constant(self.K)
        fills_pages = depth is not None and depth * dtypes.nbytes(operand_load(self.c.right).dtype) % PAGE_BYTES == 0
        return 1 if fills_pages or depth_of(self.c.dtype, self.one.lanes) is None else 2

    def _rows_of(self, tile: Tile, body: Callable[[Expr], Stmt]) -> Stmt:
        return L.loop("i", L.ceildiv(self.M, tile.rows), lambda i: body(self._first_row(i, tile)))

    def _across(self, at: dict[Var, Expr], tile: Tile, *, only_wide: bool = False) -> L.Share:
        """All columns, B read in place: wide tiles, or vectors, or single columns (``only_wide``: there are columns for
        a wide tile); the last tile ends at the last column."""
        if self._streams(tile):
            return self._streamed(at, tile.rows)
        columns = self._known_columns(tile)
        if columns is not None:
            return self._evenly(at, tile, columns)

        def overlapping(t: Tile) -> L.Share:
            last = E.Sub(self.N, L.number(t.columns))
            return L.Share.each(L.ceildiv(self.N, t.columns), lambda j: self._rows_of(tile, lambda i: self._direct(
                at, t, i, E.Min(E.Mul(j, L.number(t.columns)), last))))  # fmt: skip

        if only_wide:
            return overlapping(tile)
        made = L.Share.each(self.N, lambda c: self._rows_of(tile, lambda i: self._direct_scalar(at, tile.rows, i, c)))
        for lanes in (*self._short_vectors(), tile.lanes):
            made = L.either(L.at_least(self.N, lanes), overlapping(Tile(tile.rows, 1, lanes)), made)
        return L.either(L.at_least(self.N, tile.columns), overlapping(tile), made)

    def _known_columns(self, tile: Tile) -> int | None:
        """The number of columns, if it is known and a vector of the tile has no more lanes."""
        columns = L.constant(self.N)
        return None if columns is None or columns < tile.lanes else columns

    def _evenly(self, at: dict[Var, Expr], tile: Tile, columns: int) -> L.Share:
        """A known number of columns in tiles of about equal width, none wider than ``tile``; the last vector ends at
        the last column."""
        vectors = -(-columns // tile.lanes)
        even = Tile(tile.rows, -(-vectors // -(-vectors // tile.vectors)), tile.lanes)
        count = -(-vectors // even.vectors)
        rest = Tile(tile.rows, vectors - (count - 1) * even.vectors, tile.lanes)

        def whole(j: Expr) -> Stmt:
            return self._rows_of(even, lambda i: self._direct(at, even, i, L.mul(j, even.columns)))

        def last() -> Stmt:
            first = L.number((count - 1) * even.columns)
            return self._rows_of(rest, lambda i: self._direct(at, rest, i, first, stop=columns))

        if columns == count * even.columns:
            return L.Share.each(L.number(count), whole)
        return L.Share.each(L.number(count), lambda j: last() if count == 1 else L.when(
            E.LT(j, L.number(count - 1)), whole(j), last()))  # fmt: skip

    def _short_vectors(self) -> list[int]:
        """Lanes of shorter vectors, for results that have fewer columns than a vector has lanes."""
        return [4] if self.one.lanes > 4 else []

    def _in_order(self, at: dict[Var, Expr], tile: Tile) -> Stmt:
        """All columns, each once: wide tiles, then vectors, then single columns."""

        def rows(body: Callable[[Expr], Stmt]) -> Stmt:
            return self._rows_of(tile, body)

        narrow = Tile(tile.rows, 1, tile.lanes)
        wide = L.div(self.N, tile.columns)
        after = L.mul(wide, tile.columns)
        vectors = L.div(L.sub(self.N, after), tile.lanes)
        rest = L.add(after, L.mul(vectors, tile.lanes))
        return L.block(
            L.parallel("jo", wide, lambda j: rows(lambda i: self._direct(
                at, tile, i, E.Mul(j, L.number(tile.columns))))),
            L.loop("jv", vectors, lambda j: rows(lambda i: self._direct(
                at, narrow, i, E.Add(after, E.Mul(j, L.number(tile.lanes)))))),
            L.loop("c", L.sub(self.N, rest), lambda c: rows(lambda i: self._direct_scalar(
                at, tile.rows, i, E.Add(rest, c)))),
        )  # fmt: skip

    def _streams(self, tile: Tile) -> bool:
        """Whether B is known to be larger than the second-level cache and wide: its rows are then read a few at a time,
        from end to end, for memory to keep up."""
        depth, columns = L.constant(self.K), L.constant(self.N)
        if depth is None or columns is None or columns < 2 * tile.columns or depth < 4 * STREAM_ROWS:
            return False
        if self.c.right_is_transposed:  # its rows are columns here
            return False
        return depth * columns * dtypes.nbytes(self.c.dtype) > self.target.l2_bytes

    def _streamed(self, at: dict[Var, Expr], rows: int) -> L.Share:
        """Some rows of B at a time for all columns, or for those of a thread."""
        depth, columns = L.constant(self.K), L.constant(self.N)
        assert depth is not None and columns is not None
        tile = Tile(rows, max(1, min(STREAM_WIDTH, STREAM_VECTORS // rows)), self.one.lanes)
        shape = (L.number(2), L.number(max(PACK_ROWS, self.many.rows)), L.number(columns))
        whole, rest = divmod(depth, STREAM_ROWS)
        last_column = L.number(columns - tile.columns)

        def some(first_tile: Expr, stop: Expr) -> Stmt:
            waiting = Buffer("waiting", shape, self.c.dtype)

            def part(ko: Expr, count: int, is_last: Expr | bool) -> Stmt:
                side = E.FloorMod(ko, L.number(2))
                stream = Stream(
                    E.Mul(ko, L.number(STREAM_ROWS)), count, E.EQ(ko, L.number(0)), is_last,
                    waiting, side, E.Sub(L.number(1), side),
                )  # fmt: skip

                def place(j: Expr) -> Expr:
                    return E.Min(E.Mul(L.add(first_tile, j), L.number(tile.columns)), last_column)

                return L.loop("jo", L.sub(stop, first_tile), lambda j: self._rows_of(
                    tile, lambda i: self._direct(at, tile, i, place(j), stream)))  # fmt: skip

            parts = L.loop("ko", whole, lambda ko: part(
                ko, STREAM_ROWS, False if rest else E.EQ(ko, L.number(whole - 1))))  # fmt: skip
            return L.block(AllocBuffer(waiting), parts, part(L.number(whole), rest, True) if rest else SeqStmt(()))

        return L.Share(L.number(-(-columns // tile.columns)), some)

    def _direct(
        self, at: dict[Var, Expr], tile: Tile, row: Expr, first: Expr, stream: Stream | None = None,
        stop: int | None = None,
    ) -> Stmt:  # fmt: skip
        """One tile, B read in place: some of the reduction (``stream``) or all of it. A vector that would reach over
        the column ``stop`` ends there."""
        acc = self._accumulator(tile)

        def column(v: Expr, lane: Expr) -> Expr:
            start = L.add(first, L.mul(v, tile.lanes))
            return E.Add(start if stop is None else E.Min(start, L.number(stop - tile.lanes)), lane)

        def each(body: Callable[[Expr, Expr, tuple[Expr, Expr]], Stmt]) -> Stmt:
            return self._each_lane(tile, lambda r, v, lane: body(
                r, column(v, lane), (r, E.Add(E.Mul(v, L.number(tile.lanes)), lane))))  # fmt: skip

        begin = each(lambda r, c, place: L.store(acc, place, self.start(at, E.Add(row, r), c)))

        def step(k: Expr) -> Stmt:
            return each(lambda r, c, place: L.store(acc, place, self.multiply_add(
                self.left(at, E.Add(row, r), k), self.right(at, k, c), BufferLoad(acc, place))))  # fmt: skip

        end = each(lambda r, c, place: self.finish(at, E.Add(row, r), c, BufferLoad(acc, place)))
        if stream is None:
            sum_ = self._turned(at, tile, row, column, acc, step) if self.c.right_is_transposed else self._along_k(
                self.K, step)  # fmt: skip
        else:
            waiting, source, target, start = stream.waiting, stream.source, stream.target, stream.first
            sum_ = self._along_k(L.number(stream.count), lambda k: step(E.Add(start, k)))
            begin = L.when(stream.is_first, begin, each(lambda r, c, place: L.store(acc, place, BufferLoad(
                waiting, (source, E.Add(row, r), c)))))  # fmt: skip
            end = L.when(stream.is_last, end, each(lambda r, c, place: L.store(
                waiting, (target, E.Add(row, r), c), BufferLoad(acc, place))))  # fmt: skip
        return L.block(AllocBuffer(acc), begin, sum_, end)

    def _turned(
        self, at: dict[Var, Expr], tile: Tile, row: Expr, column: Callable[[Expr, Expr], Expr], acc: Var, step: L.Body
    ) -> Stmt:
        """The sums of a tile where B is contiguous along k: some steps at a time are read together and turned."""
        depth = depth_of(self.c.dtype, tile.lanes)
        if depth is None:  # gathering a vector takes more instructions than all else
            return L.loop("k", self.K, step)

        def square(start: Expr, v: Expr) -> Stmt:
            made = turned(self.c.dtype, tile.lanes, depth, lambda lane, k: self.right(
                at, L.add(start, k), column(v, lane)))  # fmt: skip

            def add(k: Expr, r: Expr, lane: Expr) -> Stmt:
                place = (r, L.add(L.mul(v, tile.lanes), lane))
                left = self.left(at, E.Add(row, r), L.add(start, k))
                return L.store(acc, place, self.multiply_add(left, made.at(k, lane), BufferLoad(acc, place)))

            return L.block(made.fill, L.unrolled("k", depth, lambda k: L.unrolled(
                "r", tile.rows, lambda r: L.vectorized("c", tile.lanes, lambda lane: add(k, r, lane)))))  # fmt: skip

        whole = L.div(self.K, depth)
        done = L.mul(whole, depth)
        return L.block(
            L.loop("ks", whole, lambda ks: L.unrolled("cv", tile.vectors, lambda v: square(L.mul(ks, depth), v))),
            L.loop("k", L.sub(self.K, done), lambda k: step(L.add(done, k))),
        )

    def _direct_scalar(self, at: dict[Var, Expr], rows: int, row: Expr, column: Expr) -> Stmt:
        """A few single elements, their chains side by side."""
        acc = Buffer("acc", (L.number(rows),), self.c.dtype, "local")
        begin = L.unrolled("r", rows, lambda r: L.store(acc, (r,), self.start(at, E.Add(row, r), column)))
        sum_ = L.loop("k", self.K, lambda k: L.unrolled("r", rows, lambda r: L.store(
            acc, (r,), self.multiply_add(self.left(at, E.Add(row, r), k), self.right(at, k, column),
                                         BufferLoad(acc, (r,))))))  # fmt: skip
        end = L.unrolled("r", rows, lambda r: self.finish(at, E.Add(row, r), column, BufferLoad(acc, (r,))))
        return L.block(AllocBuffer(acc), begin, sum_, end)


def schedule_contraction(c: Contraction, target: Target, epilogue: BufferStore | None = None) -> Stmt:
    """The loops for a contraction. ``epilogue`` is a store in terms of the contraction's own loop variables that reads
    the result at the element just finished; it replaces the result's own store.

    Several axes of rows become one where the buffers allow, so that ``(batch, 1, K) @ (K, N)`` has ``batch`` rows.
    """
    views: list[Stmt] = []
    others = [] if epilogue is None else [epilogue]
    for group in (c.rows, c.columns):
        if len(group) < 2 or not can_merge(c.nest, group, others):
            continue
        declared, nest, others = merge(c.nest, group, others)
        merged = read_contraction(nest)
        assert merged is not None, "merging axes does not change what a nest computes"
        c = merged
        views.extend(declared)
    return L.block(*views, ContractionRule(c, target, others[0] if others else None).build())
