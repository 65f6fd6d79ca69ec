"""Reading and writing at tensors of indices: index_tensor, index_put (numpy's advanced indexing)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.build import te
from supple.build.loops import do, filled, nest, store
from supple.ir import expr as E
from supple.ir.graph import Tuple
from supple.ir.node import Expr, Stmt, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType, TupleType
from supple.ops.declare import NO_OPERAND, Sample, Tensors, fail, operator, sample
from supple.ops.index import require_in_bounds, require_integers, wrapped_index
from supple.ops.requirements import require_spread
from supple.ops.shapes import Dims, broadcast_dims, broadcast_index, same_dtype
from supple.sym.relate import tensor as tensor_of
from supple.sym.relate import tensor_dims


def _check(name: str, data: TensorType, indices: Sequence[TensorType]) -> None:
    if not indices:
        fail(f"{name}: needs a tensor of indices", "at least 1", "0")
    for n, index in enumerate(indices):
        if index.dtype == "bool":
            fail(
                f"{name}: a mask selects a number of elements that only its values say",
                "integers",
                "bool",
                hint="use the places of its elements: R.nonzero(mask)",
            )
        require_integers(name, f"indices[{n}]", index)
    if data.ndim != -1 and len(indices) > data.ndim:
        fail(f"{name}: more indices than dimensions", f"at most {data.ndim}", str(len(indices)))


def _common(name: str, shapes: Sequence[Dims]) -> Dims | None:
    """The shape that the index tensors have together."""
    common: Dims | None = shapes[0]
    for shape in shapes[1:]:
        common = None if common is None else broadcast_dims(name, common, shape)
    return common


def _known_common(name: str, indices: Sequence[te.TensorValue]) -> Dims:
    common = _common(name, [i.shape for i in indices])
    if common is None:
        fail(f"{name}: the indices' common shape is not known", hint="use R.match_cast to relate the dimensions")
    return common


def _places(data: te.TensorValue, indices: Sequence[te.TensorValue], i: Sequence[Any]) -> list[Expr]:
    """Where in the leading dimensions of ``data`` an index of the common shape leads."""
    return [
        wrapped_index(index[broadcast_index(index.shape, i)], data.shape[d], "fast") for d, index in enumerate(indices)
    ]


def _listed(indices: Any) -> Any:
    """One tensor counts as a list of one."""
    single = isinstance(indices, Expr) and not isinstance(indices, Tuple)
    return [indices] if single and not isinstance(getattr(indices, "ty", None), TupleType) else indices


# --------------------------------------------------------------------------------------------------------- index_tensor


def _read_lower(data: te.TensorValue, indices: Sequence[te.TensorValue]) -> te.TensorValue:
    common = _known_common("index_tensor", indices)
    lead = len(common)

    def body(*i: Any) -> Expr:
        return data[(*_places(data, indices, i[:lead]), *i[lead:])]

    return te.compute((*common, *data.shape[len(indices) :]), body, "index_tensor")


def _checked_places(data: Any, indices: Sequence[Any]) -> tuple[Any, ...]:
    """The indices as numpy takes them, none out of bounds."""
    for d, index in enumerate(indices):
        require_in_bounds(index, d, "data", data.shape[d])
    return tuple(np.asarray(i) for i in indices)


_ROWS = np.array([[0], [-1], [2]], "int64")
_COLUMNS = np.array([1, 3], "int32")


def _selected(data: Any, indices: Sequence[Any]) -> tuple[int, ...]:
    """The shape of what indices select."""
    return (*np.broadcast_shapes(*(np.shape(i) for i in indices)), *data.shape[len(indices) :])


def _read_ref(data: Any, indices: Sequence[Any]) -> Any:
    dims = _selected(data, indices)
    return np.zeros(dims, data.dtype) if 0 in dims else data[_checked_places(data, indices)]


@operator(
    fusion=Fusion.INJECTIVE,
    broadcasts=("indices",),
    lower=_read_lower,
    ref=_read_ref,
    samples=lambda: [
        sample((3, 4), [_ROWS, _COLUMNS]),
        sample((3, 4, 2), [np.array([[2, 0]], "int64")]),
        sample((5,), [np.array(3, "int64")]),
        sample((3, 4), [np.zeros((0,), "int64"), np.zeros((0,), "int64")]),
    ],
)
def index_tensor(data: TensorType, indices: Tensors) -> Type:
    """``data[i0, i1, ...]`` for tensors of integers that broadcast together: their common shape, then the dimensions of
    ``data`` that have no index. Negative indices count from the end; one out of range raises at run time."""
    _check("index_tensor", data, indices)
    shapes = [tensor_dims(i) for i in indices]
    dims = tensor_dims(data)
    ranks = [i.ndim for i in indices]
    common = None
    if all(s is not None for s in shapes):
        common = _common("index_tensor", [s for s in shapes if s is not None])
    if common is not None and dims is not None:
        return tensor_of((*common, *dims[len(indices) :]), data.dtype)
    if -1 in (data.ndim, *ranks) or common is None:
        return TensorType(None, data.dtype)
    return TensorType(None, data.dtype, max(ranks) + data.ndim - len(indices))


# ------------------------------------------------------------------------------------------------------------ index_put


def _put_lower(
    data: te.TensorValue, indices: Sequence[te.TensorValue], values: te.TensorValue, accumulate: bool
) -> te.TensorValue:
    common = _known_common("index_put", indices)
    window = (*common, *data.shape[len(indices) :])

    def body(out: te.TensorValue) -> Stmt:
        def write(*i: Any) -> Stmt:
            at = (*_places(data, indices, i[: len(common)]), *i[len(common) :])
            value = values[broadcast_index(values.shape, i)]
            return store(out, E.Add(out[at], value) if accumulate else value, *at)

        copied = filled(out, data.shape, lambda *i: data[i], "c")
        return do(copied, nest(window, write, [f"u{d}" for d in range(len(window))]))

    return te.extern([(data.shape, data.dtype)], [data, *indices, values], body, data.name)[0]  # named as errors say it


def _put_ref(data: Any, indices: Sequence[Any], values: Any, accumulate: bool) -> Any:
    out = data.copy()
    if 0 in _selected(data, indices):
        return out
    at = _checked_places(data, indices)
    spread = np.broadcast_to(values, out[at].shape)
    common = np.broadcast_shapes(*(i.shape for i in at))
    at = tuple(np.broadcast_to(i, common) for i in at)
    for n in np.ndindex(common):  # in order: the last of equal places stays
        place = tuple(int(i[n]) for i in at)
        out[place] = out[place] + spread[n] if accumulate else spread[n]
    return out


def _put_samples() -> list[Sample]:
    twice = np.array([1, 1, -2], "int64")
    return [
        sample((3, 4), [_ROWS, _COLUMNS], (3, 2)),
        sample((4, 3), [twice, np.array([0, 0, 2], "int64")], (3,), accumulate=True),
        sample((4, 2), [np.array([3, 0], "int64")], (2, 2)),
        sample((4,), [np.array([0, 2], "int64")], (1,)),
        sample((3, 4), [np.zeros((0,), "int64"), np.zeros((0,), "int64")], (0,)),
    ]


@operator(
    fusion=Fusion.OPAQUE,
    lower=_put_lower,
    shape_of=NO_OPERAND,
    ref=_put_ref,
    samples=_put_samples,
    prepare=lambda data, indices, values, accumulate=False: (
        (data, _listed(indices), values),
        {"accumulate": accumulate},
    ),
)
def index_put(data: TensorType, indices: Tensors, values: TensorType, accumulate: bool = False) -> Type:
    """A copy of ``data`` with ``data[i0, i1, ...]`` replaced by ``values``, or with ``accumulate`` increased by them.

    The indices broadcast together and the values to what they select, by numpy's rules. Writes happen in order: of
    several to one place the last stays, or all are added. An index out of range raises at run time."""
    _check("index_put", data, indices)
    same_dtype("index_put", data, values)
    if accumulate and data.dtype == "bool":
        fail("index_put: bools cannot be added", "a number dtype", "bool")
    for n, index in enumerate(indices):
        if index.ndim == 0:
            fail(f"index_put: indices[{n}] has no dimension", "at least 1 dimension", "0 dimensions")
    shapes = [tensor_dims(i) for i in indices]
    dims, given = tensor_dims(data), tensor_dims(values)
    if dims is None or given is None or any(s is None for s in shapes):
        return data
    common = _common("index_put", [s for s in shapes if s is not None])
    if common is not None:
        window = (*common, *dims[len(indices) :])
        require_spread("index_put: the values do not fit what the indices select", window, given)
    return data
