"""Contractions: ``C[spatial] += A[..] * B[..]``, whatever the order of loops, the names, the layout of the operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from supple.analysis.nest import Axis, Nest
from supple.analysis.reduction import is_same_place, multiply_add
from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, IntImm, Var
from supple.ir.loop import BufferStore, buffer_type
from supple.ir.node import Expr
from supple.ir.walk import pre_order

FEW_COLUMNS = 5
"""Up to so many columns a result is computed along its rows instead: a vector would be mostly empty."""

FEW_COLUMNS_ALONG = 24
"""The same where the left operand is contiguous along its rows: it need not be turned then."""

SHORT_SUMS = 32
"""Sums of fewer terms are better computed several columns at a time, even where the operands lie along them."""


@dataclass(frozen=True, slots=True)
class Contraction:
    """What each loop of a contraction does.

    ``rows`` occur in the left operand and the result, ``columns`` in the right operand and the result (the last of
    them is the result's contiguous axis, unless that has few elements: then they are rows, and a matrix times a vector
    is the vector times the transposed matrix), ``batch`` in all three, ``reduce`` in both operands only. ``left`` and
    ``right`` are the operand expressions: a load, or a cast of one. ``init`` is the value that the sum starts from,
    or None when it goes on from what the result holds. ``panel`` is the width of the right operand's panels when it
    is stored so: ``B[j // 16, k, j % 16]``.
    """

    nest: Nest
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    reduce: tuple[Axis, ...]
    left: Expr
    right: Expr
    result: Var
    indices: tuple[Expr, ...]
    init: Expr | None
    dtype: str
    panel: int | None = None

    @property
    def right_is_transposed(self) -> bool:
        """Whether the right operand is contiguous along the reduction rather than along the columns."""
        if self.panel is not None:
            return False
        last = self.nest.axis(operand_load(self.right).indices[-1])
        return last is not None and last.reduce

    @property
    def lies_along_sums(self) -> bool:
        """Whether it is dot products of floats: one row, whose sums both operands lie along, and not short ones."""
        depth = self.reduce[0].extent
        if self.panel is not None or not dtypes.is_float(self.dtype):
            return False
        if isinstance(depth, IntImm) and depth.value < SHORT_SUMS:
            return False
        if any(not (isinstance(a.extent, IntImm) and a.extent.value == 1) for a in self.rows):
            return False
        return all(self.nest.along(operand_load(x)) is self.reduce[0] for x in (self.left, self.right))

    @property
    def long_rows(self) -> Axis | None:
        """The axis of rows that has more elements than the columns, if these are few enough for the result to be
        computed along it."""
        if self.panel is not None or len(self.columns) != 1 or not isinstance(self.columns[0].extent, IntImm):
            return None
        few = self.columns[0].extent.value
        axes = [a for a in map(self.nest.axis, self.indices) if _holds(self.rows, a)]
        if few > FEW_COLUMNS_ALONG or not axes or axes[-1] is None:
            return None
        extent = axes[-1].extent
        return None if isinstance(extent, IntImm) and extent.value <= few else axes[-1]

    def along_rows(self) -> Contraction:
        """The same with rows and columns, left and right exchanged where that is better (see `FEW_COLUMNS`)."""
        axis = self.long_rows
        if axis is None:
            return self
        lies_along = self.nest.axis(operand_load(self.left).indices[-1]) is axis
        columns = self.columns[0].extent
        assert isinstance(columns, IntImm)
        if columns.value > (FEW_COLUMNS_ALONG if lies_along else FEW_COLUMNS):
            return self
        rows = sorted(self.rows, key=lambda a: a is axis)
        return replace(self, left=self.right, right=self.left, rows=self.columns, columns=tuple(rows))


def operand_load(operand: Expr) -> BufferLoad:
    """The load of an operand."""
    load = E.uncast(operand)
    assert isinstance(load, BufferLoad)
    return load


def read_contraction(nest: Nest) -> Contraction | None:
    """The `Contraction` of a nest, or None when it is anything else."""
    parts = _multiply_add(nest.store)
    if parts is None:
        return None
    x, y = parts
    store = nest.store
    result_axes = [nest.axis(index) for index in store.indices]
    if not result_axes or any(a is None or a.reduce for a in result_axes):
        return None
    used: dict[int, list[Axis]] = {}
    panels: dict[int, int] = {}
    for number, operand in enumerate((x, y)):
        if not isinstance(E.uncast(operand), BufferLoad):
            return None
        load = operand_load(operand)
        axes = [nest.axis(index) for index in load.indices]
        split = _panels(nest, load)
        if split is not None:
            panels[number], axes = split[0], list(split[1])
        found = [a for a in axes if a is not None]
        if load.buffer is store.buffer or len({id(a) for a in found}) != len(axes):
            return None
        used[number] = found
    last = result_axes[-1]
    assert last is not None
    in_x, in_y = _holds(used[0], last), _holds(used[1], last)
    if in_x == in_y:
        return None  # the contiguous axis is a batch axis, or broadcast
    if in_x:
        x, y, used[0], used[1] = y, x, used[1], used[0]
        panels = {1 - number: width for number, width in panels.items()}
    if 0 in panels or (1 in panels and used[1][0] is not last):
        return None
    batch: list[Axis] = []
    rows: list[Axis] = []
    columns: list[Axis] = []
    reduce: list[Axis] = []
    for axis in nest.axes:
        left, right, result = (_holds(group, axis) for group in (used[0], used[1], result_axes))
        kind = {
            (True, True, True): batch, (True, False, True): rows, (False, True, True): columns,
            (True, True, False): reduce,
        }.get((left, right, result))  # fmt: skip
        if kind is None:
            return None
        kind.append(axis)
    if len(reduce) != 1 or not reduce[0].reduce or len({id(a) for a in result_axes}) != len(result_axes):
        return None
    init = nest.init
    if init is not None and not _same_indices(init, store):
        return None
    if init is not None and (nest.depends(init.value) or any(isinstance(n, BufferLoad) for n in pre_order(init.value))):
        return None
    columns.sort(key=lambda a: a is last)
    return Contraction(
        nest, tuple(batch), tuple(rows), tuple(columns), tuple(reduce), x, y, store.buffer, store.indices,
        None if init is None else init.value, E.scalar_dtype(store.value), panels.get(1),
    ).along_rows()  # fmt: skip


def _panels(nest: Nest, load: BufferLoad) -> tuple[int, tuple[Axis, Axis]] | None:
    """The width of the panels and the axes (columns, reduction) of ``B[j // width, k, j % width]``, or None."""
    if len(load.indices) != 3:
        return None
    panel, k, column = map(E.uncast, load.indices)
    if not isinstance(panel, E.FloorDiv) or not isinstance(column, E.FloorMod):
        return None
    axis, other, inner = nest.axis(panel.a), nest.axis(column.a), nest.axis(k)
    width = buffer_type(load.buffer).shape[2]
    if axis is None or axis is not other or inner is None or inner is axis or not isinstance(width, IntImm):
        return None
    if any(not isinstance(d, IntImm) or d.value != width.value for d in (panel.b, column.b)):
        return None
    return width.value, (axis, inner)


def _multiply_add(store: BufferStore) -> tuple[Expr, Expr] | None:
    dtype = E.scalar_dtype(store.value)
    if dtype in ("float32", "float64"):
        found = multiply_add(store)
        return None if found is None else found[:2]
    if not dtypes.is_int(dtype) or not isinstance(store.value, E.Add):
        return None
    for load, product in ((store.value.a, store.value.b), (store.value.b, store.value.a)):
        if isinstance(load, BufferLoad) and is_same_place(store, load) and isinstance(product, E.Mul):
            return product.a, product.b
    return None


def _holds(group: Sequence[Axis | None], axis: Axis | None) -> bool:
    return any(a is axis for a in group)


def _same_indices(a: BufferStore, b: BufferStore) -> bool:
    return a.buffer is b.buffer and is_same_place(a, BufferLoad(b.buffer, b.indices))
