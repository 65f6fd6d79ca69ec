"""Writing by index: scatter_elements, scatter_nd.

The results are named like the data that they are copies of: an index out of bounds is reported with that name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from supple.build import te
from supple.build.loops import do, filled, nest, store
from supple.ir import expr as E
from supple.ir.expr import IntImm, scalar_dtype
from supple.ir.node import Expr, Stmt, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType
from supple.ops.declare import NO_OPERAND, fail, operator, sample, static_sample
from supple.ops.index import require_in_bounds, require_integers, wrapped_index
from supple.ops.requirements import require_floats, require_related, require_shape
from supple.ops.shapes import normalize_axis, same_dtype
from supple.sym.relate import dims_text, tensor_dims
from supple.sym.simplify import evaluate

_COMBINE: dict[str, Callable[[Expr, Expr], Expr]] = {
    "update": lambda old, new: new,
    "add": E.Add,
    "mul": E.Mul,
    "max": E.Max,
    "min": E.Min,
}
_COMBINE_ELEMENTS: dict[str, Callable[[Expr, Expr], Expr]] = {
    **_COMBINE,
    "mean": lambda old, new: E.Mul(E.Add(old, new), E.const(0.5, scalar_dtype(old))),
}
_NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    "update": lambda old, new: new,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "mean": lambda old, new: (old + new) * old.dtype.type(0.5),
}


def _check_reduction(name: str, reduction: str, known: Iterable[str]) -> None:
    if reduction not in known:
        fail(f"{name}: unknown reduction", " or ".join(known), reduction)


def _elements_lower(
    data: te.TensorValue, indices: te.TensorValue, updates: te.TensorValue, axis: int, reduction: str
) -> te.TensorValue:
    place = normalize_axis("scatter_elements", axis, data.ndim)

    def body(out: te.TensorValue) -> Stmt:
        def write(*i: Any) -> Stmt:
            at = (*i[:place], wrapped_index(indices[i], data.shape[place], "fast"), *i[place + 1 :])
            return store(out, _COMBINE_ELEMENTS[reduction](out[at], updates[i]), *at)

        return do(
            filled(out, data.shape, lambda *i: data[i], "c"),
            nest(updates.shape, write, [f"u{d}" for d in range(data.ndim)]),
        )

    return te.extern([(data.shape, data.dtype)], [data, indices, updates], body, data.name)[0]


def _elements_ref(data: Any, indices: Any, updates: Any, axis: int, reduction: str) -> Any:
    out = data.copy()
    require_in_bounds(indices, axis % data.ndim, "data", data.shape[axis])
    for i in np.ndindex(updates.shape):
        at = list(i)
        at[axis] = int(indices[i])
        out[tuple(at)] = _NUMPY[reduction](out[tuple(at)], updates[i])
    return out


@operator(
    fusion=Fusion.OPAQUE,
    lower=_elements_lower,
    shape_of=NO_OPERAND,
    ref=_elements_ref,
    samples=lambda: [
        sample((3, 4), np.array([[0, 2, -1, 1]], "int64"), np.ones((1, 4), "float32"), axis=0),
        sample((3, 4), np.array([[1], [1], [3]], "int32"), (3, 1), axis=1, reduction="add"),
        sample((4,), np.array([2, 2, 2], "int64"), (3,), reduction="mul"),
        sample((4,), np.array([2, 0], "int64"), (2,), reduction="max"),
        sample((4,), np.array([2, 0, 2], "int64"), (3,), reduction="mean"),
    ],
)
def scatter_elements(
    data: TensorType, indices: TensorType, updates: TensorType, axis: int = 0, reduction: str = "update"
) -> Type:
    """A copy of ``data`` with ``out[indices[i][j]][j]`` replaced by ``updates[i][j]`` (axis 0), or combined with it:
    ``"update"``, ``"add"``, ``"mul"``, ``"max"``, ``"min"``, or half of the sum (``"mean"``); in order of the
    updates."""
    require_integers("scatter_elements", "indices", indices)
    _check_reduction("scatter_elements", reduction, _COMBINE_ELEMENTS)
    if reduction == "mean":
        require_floats("scatter_elements", data)
    same_dtype("scatter_elements", data, updates)
    if data.ndim != -1:
        normalize_axis("scatter_elements", axis, data.ndim)
    a, b = tensor_dims(indices), tensor_dims(updates)
    if a is not None and b is not None:
        require_shape("scatter_elements: indices and updates must have one shape", a, b)
    for what, ty in (("indices", indices), ("updates", updates)):
        if -1 not in (data.ndim, ty.ndim) and data.ndim != ty.ndim:
            fail(f"scatter_elements: {what} must have the rank of the data", f"{data.ndim} dimensions",
                 f"{ty.ndim} dimensions")  # fmt: skip
    return data


def _nd_lower(data: te.TensorValue, indices: te.TensorValue, updates: te.TensorValue, reduction: str) -> te.TensorValue:
    depth = evaluate(indices.shape[-1], {})
    lead = indices.ndim - 1

    def body(out: te.TensorValue) -> Stmt:
        def write(*i: Any) -> Stmt:
            picked = [wrapped_index(indices[(*i[:lead], d)], data.shape[d], "fast") for d in range(depth)]
            at = (*picked, *i[lead:])
            return store(out, _COMBINE[reduction](out[at], updates[i]), *at)

        return do(
            filled(out, data.shape, lambda *i: data[i], "c"),
            nest(updates.shape, write, [f"u{d}" for d in range(updates.ndim)]),
        )

    return te.extern([(data.shape, data.dtype)], [data, indices, updates], body, data.name)[0]


def _nd_ref(data: Any, indices: Any, updates: Any, reduction: str) -> Any:
    out = data.copy()
    for d in range(indices.shape[-1] if updates.size else 0):
        require_in_bounds(indices[..., d], d, "data", data.shape[d])
    for i in np.ndindex(indices.shape[:-1] if updates.size else (0,)):
        at = tuple(int(v) for v in indices[i])
        out[at] = _NUMPY[reduction](out[at], updates[i])
    return out


@operator(
    fusion=Fusion.OPAQUE,
    lower=_nd_lower,
    shape_of=NO_OPERAND,
    ref=_nd_ref,
    samples=lambda: [
        static_sample((4, 3), np.array([[0], [-1]], "int64"), (2, 3)),
        static_sample((4, 3), np.array([[0, 1], [2, 2], [0, 1]], "int64"), (3,), reduction="add"),
    ],
)
def scatter_nd(data: TensorType, indices: TensorType, updates: TensorType, reduction: str = "update") -> Type:
    """A copy of ``data`` with slices at index tuples along the last axis of ``indices`` replaced by ``updates``, or
    combined with them, in order (ONNX ScatterND)."""
    require_integers("scatter_nd", "indices", indices)
    _check_reduction("scatter_nd", reduction, _COMBINE)
    same_dtype("scatter_nd", data, updates)
    for what, x in (("data", data), ("updates", updates)):
        if x.dtype is None:
            fail(f"scatter_nd: the dtype of {what} is not known", hint="R.match_cast to a type of known dtype")
    dims, at, given = tensor_dims(data), tensor_dims(indices), tensor_dims(updates)
    if dims is None or at is None or given is None:
        return data
    if not at or not isinstance(at[-1], IntImm):
        fail("scatter_nd: the depth of the index tuples must be a number", "a literal last extent", dims_text(at))
    if at[-1].value > len(dims):
        fail("scatter_nd: more indices than dimensions", f"at most {len(dims)}", str(at[-1].value))
    expected = (*at[:-1], *dims[at[-1].value :])
    require_related("scatter_nd: the updates do not fit", expected, given)
    return data
