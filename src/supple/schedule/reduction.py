"""The rule for reductions that are no contractions: sums, products, extrema over any axes.

Rows (the reduced axis is contiguous)::

    for i, k in T.grid(M, K): C[i] = C[i] + X[i, k]             # before

    for i in T.parallel(M):                                     # after: 4 vectors of partial sums,
        acc[0:32] = 0
        for v in range(K / 32): acc[0:32] += X[i, 32*v : 32*v+32]
        (single vectors of what is left into acc[0:8])
        C[i] = init + (sum of acc, halving) + (the rest, in order)

Neighbouring reduced axes are one row, where the operands' memory allows it.

Dot products that share an operand (a matrix times a vector) are computed four at a time, with two vectors of partial
sums each.

Columns (the kept axis is contiguous): vectors along the kept axis, each lane summed in order; where there are many, in
panels, several rows at a time through the result, so that what is read lies together. Anything else: the sum in
a register, in order. Which partial sums there are depends on the reduced extent only, so a row's result is bitwise the
same for every number of rows, and of threads, which share the rows (or the columns). Integers wrap, so any order is
exact; NaN propagates through extrema in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from supple.analysis.contraction import Contraction
from supple.analysis.nest import Axis, Nest, is_independent, loads
from supple.analysis.reduction import FMA, fma, is_same_place
from supple.base import dtypes
from supple.base.target import Target
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Call, Var
from supple.ir.loop import AllocBuffer, Buffer, BufferStore
from supple.ir.node import Expr, Stmt
from supple.ir.walk import pre_order
from supple.schedule import loops as L
from supple.schedule.merge import can_merge, merge
from supple.schedule.spatial import lanes_of, strips
from supple.sym.linear import detect_linear_equation

UNROLL = 4
"""Vectors of partial results side by side: enough to hide the latency of an addition."""


TOGETHER = 4
"""Dot products that share an operand, side by side: each of their two vectors of partial sums is one chain."""

UNROLL_TOGETHER = 2

PANEL = 1 << 14
"""Bytes of partial results that stay in the first-level cache."""

LEAST_PANEL = 1 << 10
"""Bytes of partial results below which threads get in each other's way rather than share them."""

ROWS = 8
"""Rows that are taken in before partial results are stored again."""

MOST_APART = 4
"""How far apart the elements of a vector may lie: those of a strided convolution."""

ACCUMULATORS = 12
"""Vectors of partial results that fit into registers next to what they are made of."""


def _together(extent: int | None, most: int) -> int:
    """How many places along an axis go together: as many as divide it, or as many as there may be."""
    if extent is None or extent <= most:
        return extent or most
    return next((n for n in range(most, most // 2, -1) if extent % n == 0), most)


class Update:
    """``C = C op term`` or ``C = a * b + C``: how a partial result takes in one more element, or another one."""

    def __init__(self, store: BufferStore) -> None:
        self.store = store
        self.terms: tuple[Expr, ...] = ()
        self.kind: type[E.BinaryOp] = E.Add
        value = store.value
        if isinstance(value, Call) and value.op is FMA and _is_own(store, value.args[2]):
            self.terms = value.args[:2]
        elif isinstance(value, (E.Add, E.Mul, E.Min, E.Max)):
            if _is_own(store, value.a):
                self.terms, self.kind = (value.b,), type(value)
            elif _is_own(store, value.b):
                self.terms, self.kind = (value.a,), type(value)
        if any(_reads(term, store.buffer) for term in self.terms):
            self.terms = ()
        self.dtype = E.scalar_dtype(value)

    @property
    def is_known(self) -> bool:
        """Whether the store is such an update."""
        return bool(self.terms)

    def take(self, total: Expr, at: dict[Var, Expr]) -> Expr:
        """The partial result with the element of an iteration."""
        terms = [L.at(term, at) for term in self.terms]
        return fma(terms[0], terms[1], total) if len(terms) == 2 else self.kind(total, terms[0])

    def join(self, a: Expr, b: Expr) -> Expr:
        """Two partial results in one."""
        return self.kind(a, b)

    @property
    def identity(self) -> Expr | None:
        """What leaves every value as it is; None when there is nothing of the kind."""
        row = dtypes.row(self.dtype)
        if self.kind is E.Mul:
            return E.const(1, self.dtype)
        if self.kind is E.Add and dtypes.element(self.dtype) == "float8_e8m0fnu":
            return None  # it has no zero
        if self.kind is E.Add:
            # -0.0, since 0.0 + -0.0 is 0.0
            return E.const(-0.0, self.dtype) if row.kind == "float" else E.const(0, self.dtype)
        if row.kind == "float":
            return E.const(dtypes.extreme(self.dtype, low=self.kind is E.Max), self.dtype)
        return E.const(dtypes.int_range(self.dtype)[0 if self.kind is E.Max else 1], self.dtype)


def _is_own(store: BufferStore, e: Expr) -> bool:
    return isinstance(e, BufferLoad) and is_same_place(store, e)


def _reads(e: Expr, buffer: Var) -> bool:
    return any(isinstance(n, BufferLoad) and n.buffer is buffer for n in pre_order(e))


def schedule_reduction(nest: Nest, target: Target) -> Stmt | None:
    """The loops of a reduction, or None when the rule does not fit."""
    if not any(a.reduce for a in nest.axes) or not is_independent(nest):
        return None
    update = Update(nest.store)
    if not update.is_known or dtypes.lanes(update.dtype) != 1 or dtypes.is_bool(update.dtype):
        return None
    init = nest.init
    if init is not None and (
        init.buffer is not nest.store.buffer
        or not is_same_place(init, BufferLoad(nest.store.buffer, nest.store.indices))
        or any(a.reduce for a in nest.depends(init.value))
    ):
        return None
    views, nest = _with_long_axes(nest)
    reduce = [a for a in nest.axes if a.reduce]
    rule = _Rule(nest, target, Update(nest.store))
    spatial = [axis for axis in (nest.axis(index) for index in nest.store.indices) if axis is not None]
    last = nest.axis(nest.store.indices[-1]) if nest.store.indices else None
    if last is not None and rule.contiguous_along(last) and L.constant(last.extent) != 1:
        rule.alone = all(L.constant(axis.extent) == 1 for axis in spatial[:-1])
        rule.narrow(L.constant(last.extent))
        made = rule.blocks_of_columns(spatial[:-1], last, reduce)
    else:
        row = next((a for a in reversed(reduce) if rule.contiguous_along(a)), None)
        if row is not None and update.identity is not None:
            rest = [a for a in reduce if a is not row]
            made = L.parallel_around(spatial, {}, lambda at: rule.rows([at], row, rest))
        else:
            made = L.parallel_around(spatial, {}, lambda at: rule.in_order(at, reduce))
    return L.block(*views, L.proved(made))


def _with_long_axes(nest: Nest) -> tuple[list[Stmt], Nest]:
    """The nest with neighbouring reduced axes, and the last kept ones, as one axis each, and the views for it: rows of
    28 x 28 are rows of 784."""
    views: list[Stmt] = []
    reduce = [a for a in nest.axes if a.reduce]
    kept = [axis for axis in (nest.axis(index) for index in nest.store.indices) if axis is not None]
    groups = [reduce[first:last] for first in range(len(reduce)) for last in range(len(reduce), first + 1, -1)]
    groups += [kept[first:] for first in range(len(kept) - 1)]
    merged: set[int] = set()
    for group in groups:  # the longest first
        if not any(id(a) in merged for a in group) and can_merge(nest, group):
            more, nest, _ = merge(nest, group)
            views += more
            merged.update(map(id, group))
    return views, nest


def schedule_dot_products(c: Contraction, target: Target) -> Stmt:
    """The loops of a contraction that is dot products (see `Contraction.lies_along_sums`): several at a time, which
    share their loads of the left operand and keep several rows of the right one coming from memory."""
    rule = _Rule(c.nest, target, Update(c.nest.store), UNROLL_TOGETHER)
    spatial = [axis for axis in (c.nest.axis(index) for index in c.indices) if axis is not None]
    return L.proved(rule.few_rows(spatial, c.columns[-1], c.reduce[0]))


class _Rule:
    def __init__(self, nest: Nest, target: Target, update: Update, unroll: int = UNROLL) -> None:
        self.nest = nest
        self.target = target
        self.update = update
        self.unroll = unroll
        self.lanes = lanes_of(nest, target)
        self.alone = False  # no loop around the columns

    def narrow(self, columns: int | None) -> None:
        """Take vectors that a known number of columns fills."""
        if columns is not None and 1 < columns < self.lanes:
            self.lanes = 1 << (columns.bit_length() - 1)

    def contiguous_along(self, axis: Axis) -> bool:
        """Whether lanes along an axis load neighbours (or one element), and some load does vary with it."""
        varies = False
        for load in loads(self.nest):
            if load.buffer is self.nest.store.buffer:
                continue
            for position, index in enumerate(load.indices):
                if any(a is axis for a in self.nest.depends(index)):
                    if position != self.nest.innermost(load) or not self._moves_with(index, axis):
                        return False
                    varies = True
        return varies

    def _moves_with(self, index: Expr, axis: Axis) -> bool:
        """Whether an index is the axis, or moves with it as a window of a convolution does, in steps of a few."""
        if self.nest.axis(index) is axis:
            return True
        linear = detect_linear_equation(index, [axis.var])
        step = L.constant(linear[0]) if linear else None
        return step is not None and 1 <= step <= MOST_APART

    def _start(self, at: dict[Var, Expr]) -> Expr:
        """What the result starts from."""
        if self.nest.init is not None:
            start: Expr = L.at(self.nest.init.value, at)
        else:
            start = L.at(BufferLoad(self.nest.store.buffer, self.nest.store.indices), at)
        return start

    def _finish(self, at: dict[Var, Expr], value: Expr) -> Stmt:
        store = L.at(BufferStore(self.nest.store.buffer, E.const(0, self.update.dtype), self.nest.store.indices), at)
        return L.store(store.buffer, store.indices, value)

    def _local(self, name: str, size: int) -> Var:
        return Buffer(name, (L.number(size),), self.update.dtype, "local")

    def in_order(self, at: dict[Var, Expr], reduce: list[Axis]) -> Stmt:
        """One result in a register."""
        acc = self._local("acc", 1)
        zero = L.number(0)
        whole = BufferLoad(acc, (zero,))
        return L.block(
            AllocBuffer(acc),
            L.store(acc, (zero,), self._start(at)),
            L.around(reduce, at, lambda inner: L.store(acc, (zero,), self.update.take(whole, inner))),
            self._finish(at, whole),
        )

    def blocks_of_columns(self, outer: list[Axis], kept: Axis, reduce: list[Axis]) -> Stmt:
        """The columns of every place along the outer axes; of several places at once where what is read in vectors is
        the same for them: the output channels of a convolution."""
        side = self._side(outer, kept)
        vectors = None if side is None else self._vectors_of_known(kept)
        if side is None or vectors is None:
            return L.parallel_around(outer, {}, lambda at: self.columns(at, kept, reduce))
        extent = L.plain(side.extent)
        count = _together(L.constant(extent), ACCUMULATORS // vectors)
        blocks = Axis(Var(f"{side.var.name}_o", side.var.ty), L.ceildiv(extent, count), False)

        def block(at: dict[Var, Expr]) -> Stmt:
            first = L.mul(at[blocks.var], count)
            here = L.sub(extent, first)

            def some(places: int, start: Expr) -> Stmt:
                where = [{**at, side.var: L.add(first, start, n)} for n in range(places)]
                return self._even_tiles(where, kept, reduce)

            rest = L.loop(side.var.name, here, lambda s: some(1, s))
            return L.when(L.at_least(here, count), some(count, L.number(0)), rest)

        return L.parallel_around([blocks if a is side else a for a in outer], {}, block)

    def _side(self, outer: list[Axis], kept: Axis) -> Axis | None:
        """The innermost of the outer axes along which nothing that varies with the kept axis does."""
        read = [load for load in loads(self.nest) if load.buffer is not self.nest.store.buffer]
        vectors = [load for load in read if any(a is kept for a in self.nest.depends(load))]
        others = [load for load in read if not any(load is v for v in vectors)]
        for axis in reversed(outer):
            moves = [any(a is axis for load in group for a in self.nest.depends(load)) for group in (vectors, others)]
            if moves == [False, True] and L.constant(axis.extent) != 1:
                return axis
        return None

    def _vectors_of_known(self, kept: Axis) -> int | None:
        """How many vectors of columns a tile has, where their number is known and they may be computed twice."""
        columns = L.constant(kept.extent)
        if columns is None or columns < self.lanes or self.nest.init is None:
            return None
        vectors = -(-columns // self.lanes)
        return -(-vectors // -(-vectors // self.unroll))

    def columns(self, at: dict[Var, Expr], kept: Axis, reduce: list[Axis]) -> Stmt:
        """Vectors along the kept axis: several side by side, then one, then single elements."""
        if self._are_many(kept, reduce):
            return self._panels(at, kept, reduce)
        if self._vectors_of_known(kept) is not None:
            return self._even_tiles([at], kept, reduce)

        def some(vectors: int) -> Callable[[Expr], Stmt]:
            return lambda first: self._column_tile(
                [at], kept, reduce, vectors, lambda v: L.add(first, L.mul(v, self.lanes))
            )

        extent = L.plain(kept.extent)
        wide = self.unroll * self.lanes
        tiles = L.div(extent, wide)
        after = L.mul(tiles, wide)
        vectors = L.div(L.sub(extent, after), self.lanes)
        rest = L.add(after, L.mul(vectors, self.lanes))
        return L.block(
            (L.parallel if self.alone else L.loop)("jo", tiles, lambda j: some(self.unroll)(L.mul(j, wide))),
            L.loop("jv", vectors, lambda j: some(1)(L.add(after, L.mul(j, self.lanes)))),
            L.loop("j", L.sub(extent, rest), lambda j: self.in_order({**at, kept.var: L.add(rest, j)}, reduce)),
        )

    def _even_tiles(self, places: Sequence[dict[Var, Expr]], kept: Axis, reduce: list[Axis]) -> Stmt:
        """A known number of columns in tiles of as many vectors each. The last vectors reach back over columns that
        were computed already, to the same values."""
        columns, each = L.constant(kept.extent), self._vectors_of_known(kept)
        assert columns is not None and each is not None
        last = L.number(columns - self.lanes)

        def tile(j: Expr) -> Stmt:
            first = L.mul(j, each * self.lanes)
            return self._column_tile(
                places, kept, reduce, each, lambda v: L.plain(E.Min(L.add(first, L.mul(v, self.lanes)), last))
            )

        alone = self.alone and len(places) == 1
        return (L.parallel if alone else L.loop)("jo", L.number(-(-columns // (each * self.lanes))), tile)

    def _are_many(self, kept: Axis, reduce: list[Axis]) -> bool:
        """Whether there are more columns than a register tile has, and rows for several passes."""
        columns, rows = L.constant(kept.extent), L.constant(reduce[-1].extent)
        return (columns is None or columns > self.unroll * self.lanes) and (rows is None or rows >= 2 * ROWS)

    def _panels(self, at: dict[Var, Expr], kept: Axis, reduce: list[Axis]) -> Stmt:
        """Columns as wide as pages of memory, several rows at a time: the partial results go through the result,
        which stays in the cache, and what is read lies together, where a register tile's rows are far apart."""
        extent = L.plain(kept.extent)
        rows = reduce[-1]
        passes = L.div(L.plain(rows.extent), ROWS)
        done = L.mul(passes, ROWS)

        widest, least = (L.number(size // dtypes.nbytes(self.update.dtype)) for size in (PANEL, LEAST_PANEL))
        width: Expr = widest
        if self.alone:  # the threads share the columns
            tile = self.unroll * self.lanes
            share = L.mul(L.ceildiv(L.ceildiv(extent, self.target.cores), tile), tile)
            width = L.plain(E.Min(widest, E.Max(least, share)))

        def panel(p: Expr) -> Stmt:
            first = L.mul(p, width)
            here = L.plain(E.Min(width, L.sub(extent, first)))

            def each(body: Callable[[dict[Var, Expr]], Stmt], at: dict[Var, Expr]) -> Stmt:
                widths = (UNROLL_TOGETHER * self.lanes, self.lanes)
                return strips(here, widths, lambda c: body({**at, kept.var: L.add(first, c)}))

            def take(count: int, row: Expr, inner: dict[Var, Expr]) -> Stmt:
                def body(where: dict[Var, Expr]) -> Stmt:
                    total: Expr = L.at(BufferLoad(self.nest.store.buffer, self.nest.store.indices), where)
                    for n in range(count):
                        total = self.update.take(total, {**where, rows.var: L.add(row, n)})
                    return self._finish(where, total)

                return each(body, inner)

            def step(inner: dict[Var, Expr]) -> Stmt:
                return L.block(
                    L.loop("ko", passes, lambda ko: take(ROWS, L.mul(ko, ROWS), inner)),
                    L.loop("kt", L.sub(L.plain(rows.extent), done), lambda kt: take(1, L.add(done, kt), inner)),
                )

            start = each(lambda where: self._finish(where, self._start(where)), at)
            return L.block(*([start] if self.nest.init is not None else []), L.around(reduce[:-1], at, step))

        return (L.parallel if self.alone else L.loop)("jp", L.ratio(extent, width), panel)

    def _column_tile(
        self, places: Sequence[dict[Var, Expr]], kept: Axis, reduce: list[Axis], vectors: int,
        first: Callable[[Expr], Expr],
    ) -> Stmt:  # fmt: skip
        """Vectors of columns side by side, for each place; ``first`` is where one of them begins."""
        acc = Buffer("acc", (L.number(len(places)), L.number(vectors * self.lanes)), self.update.dtype, "local")

        def each(body: Callable[[tuple[Expr, Expr], dict[Var, Expr]], Stmt], inner: dict[Var, Expr]) -> Stmt:
            def vector(v: Expr, n: int, at: dict[Var, Expr]) -> Stmt:
                begin, mine = first(v), E.Mul(v, L.number(self.lanes))
                return L.vectorized("lane", self.lanes, lambda lane: body(
                    (L.number(n), E.Add(mine, lane)), {**inner, **at, kept.var: E.Add(begin, lane)}))  # fmt: skip

            return L.unrolled("v", vectors, lambda v: L.block(*(vector(v, n, at) for n, at in enumerate(places))))

        def step(inner: dict[Var, Expr]) -> Stmt:
            return each(lambda c, where: L.store(acc, c, self.update.take(BufferLoad(acc, c), where)), inner)

        return L.block(
            AllocBuffer(acc),
            each(lambda c, where: L.store(acc, c, self._start(where)), {}),
            L.around(reduce, places[0], step),
            each(lambda c, where: self._finish(where, BufferLoad(acc, c)), {}),
        )

    def _each(self, vectors: int, body: Callable[[Expr], Stmt]) -> Stmt:
        return L.unrolled("v", vectors, lambda v: L.vectorized(
            "lane", self.lanes, lambda lane: body(E.Add(E.Mul(v, L.number(self.lanes)), lane))))  # fmt: skip

    def few_rows(self, spatial: list[Axis], kept: Axis, row: Axis) -> Stmt:
        """Several results of an axis at a time, the rest one by one; each has the same partial results in both."""
        extent = L.plain(kept.extent)
        tiles = Axis(Var(f"{kept.var.name}_o", kept.var.ty), L.ceildiv(extent, TOGETHER), False)

        def tile(at: dict[Var, Expr]) -> Stmt:
            first = L.mul(at[tiles.var], TOGETHER)
            here = L.sub(extent, first)

            def some(count: int, start: Expr) -> Stmt:
                return self.rows([{**at, kept.var: L.add(first, start, n)} for n in range(count)], row, [])

            rest = L.loop(kept.var.name, here, lambda j: some(1, j))
            return L.when(L.at_least(here, TOGETHER), some(TOGETHER, L.number(0)), rest)

        return L.parallel_around([tiles if a is kept else a for a in spatial], {}, tile)

    def rows(self, places: Sequence[dict[Var, Expr]], row: Axis, others: list[Axis]) -> Stmt:
        """Results side by side: for each, partial results in vectors along the reduced axis, joined by halving, then
        the rest in order."""
        width = self.unroll * self.lanes
        identity = self.update.identity
        assert identity is not None
        numbered = [(L.number(n), at) for n, at in enumerate(places)]
        acc = Buffer("acc", (L.number(len(places)), L.number(width)), self.update.dtype, "local")
        tail = self._local("tail", len(places))
        extent = L.plain(row.extent)
        whole = L.div(extent, width)
        done = L.mul(whole, width)
        narrow = L.div(L.sub(extent, done), self.lanes)
        end = L.add(done, L.mul(narrow, self.lanes))

        def body(inner: dict[Var, Expr]) -> Stmt:
            def take(buffer: Var, indices: tuple[Expr, ...], own: dict[Var, Expr], position: Expr) -> Stmt:
                where = {**inner, **own, row.var: position}
                return L.store(buffer, indices, self.update.take(BufferLoad(buffer, indices), where))

            def taken(first: Expr, each: Callable[[L.Body], Stmt]) -> Stmt:
                def of(n: Expr, own: dict[Var, Expr]) -> Stmt:
                    return each(lambda c: take(acc, (n, c), own, E.Add(first, c)))

                return L.block(*(of(n, own) for n, own in numbered))

            def vectors(v: Expr) -> Stmt:
                return taken(L.mul(v, width), partial(self._each, self.unroll))

            def vector(w: Expr) -> Stmt:
                return taken(L.add(done, L.mul(w, self.lanes)), partial(L.vectorized, "lane", self.lanes))

            def single(t: Expr) -> Stmt:
                return L.block(*(take(tail, (n,), own, L.add(end, t)) for n, own in numbered))

            return L.block(
                L.loop("v", whole, vectors),
                L.loop("w", narrow, vector),
                L.loop("t", L.sub(extent, end), single),
            )

        def finish(n: Expr, at: dict[Var, Expr]) -> Stmt:
            total = self.update.join(BufferLoad(acc, (n, L.number(0))), BufferLoad(tail, (n,)))
            return self._finish(at, self.update.join(self._start(at), total))

        return L.block(
            AllocBuffer(acc),
            AllocBuffer(tail),
            *(self._each(self.unroll, partial(lambda n, c: L.store(acc, (n, c), identity), n)) for n, _ in numbered),
            *(L.store(tail, (n,), identity) for n, _ in numbered),
            L.around(others, places[0], body),
            *(self._halves(acc, n, width) for n, _ in numbered),
            *(finish(n, at) for n, at in numbered),
        )

    def _halves(self, acc: Var, n: Expr, width: int) -> Stmt:
        """One row's partial results joined into the first, half of them onto the other half again and again."""
        joins: list[Stmt] = []
        half = width // 2
        while half >= 1:

            def fold(c: Expr, half: int = half) -> Stmt:
                other = BufferLoad(acc, (n, E.Add(c, L.number(half))))
                return L.store(acc, (n, c), self.update.join(BufferLoad(acc, (n, c)), other))

            if half >= self.lanes:
                joins.append(self._each(half // self.lanes, fold))
            else:
                joins.append(L.vectorized("lane", half, fold))
            half //= 2
        return L.block(*joins)
