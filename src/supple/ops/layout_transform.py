"""Tensors in another layout by a map of indices: layout_transform."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.build.infer import infer
from supple.build.loops import do, filled, nest, store
from supple.ir.expr import Call, Var, cast, const, int64
from supple.ir.loop import IndexMap
from supple.ir.node import Expr, Node, Stmt, Type
from supple.ir.op import Fusion, RelaxText
from supple.ir.types import TensorType, prim_type
from supple.ir.walk import substitute
from supple.ops.declare import Axes, Mapping, Number, Sample, fail, operator, sample
from supple.sym.index_map import inverse_indices, mapped_dims
from supple.sym.relate import tensor, tensor_dims
from supple.sym.simplify import evaluate

_NAME = "layout_transform"


def _check(index_map: IndexMap, ndim: int) -> None:
    if len(index_map.initial_indices) != ndim:
        fail(
            f"{_NAME}: the map takes another number of indices than the tensor has dimensions",
            f"{ndim} indices",
            f"{len(index_map.initial_indices)} indices",
        )


def _lower(x: te.TensorValue, index_map: IndexMap, pad_value: Number, **_: Any) -> te.TensorValue:
    dims = mapped_dims(index_map, x.shape)
    probe = [Var(f"o{d}", prim_type("int64")) for d in range(len(dims))]
    at = inverse_indices(index_map, x.shape, probe)
    if at is not None:
        places: list[Expr] = at

        def read(*o: Any) -> Expr:
            renamed: dict[Var, Node] = dict(zip(probe, o, strict=True))
            return x[tuple(substitute(e, renamed) for e in places)]

        return te.compute(dims, read, "layout_transform")
    fill = const(0 if pad_value is None else pad_value, x.dtype)

    def body(out: te.TensorValue) -> Stmt:
        padded = filled(out, dims, lambda *_: fill, "p")

        def move(*i: Any) -> Stmt:
            return store(out, x[i], *(cast("int64", e) for e in index_map.mapped(i)))

        return do(padded, nest(x.shape, move, [f"i{d}" for d in range(x.ndim)]))

    return te.extern([(dims, x.dtype)], [x], body, "layout_transform")[0]


def _ref(x: Any, index_map: IndexMap, pad_value: Number, **_: Any) -> Any:
    shape = tuple(evaluate(d, {}) for d in mapped_dims(index_map, [int64(s) for s in x.shape]))
    out = np.full(shape, 0 if pad_value is None else pad_value, x.dtype)
    for i in np.ndindex(x.shape):
        out[tuple(evaluate(e, {}) for e in index_map.mapped([int64(n) for n in i]))] = x[i]
    return out


def _loop_function(call: Call) -> str:
    """Relax's name: another one where there may be places that no element maps to."""
    ty = infer(call.args[0])
    dims = tensor_dims(ty) if isinstance(ty, TensorType) else None
    assert dims is not None
    index_map = call.attrs["index_map"]
    probe = [Var(f"o{d}", prim_type("int64")) for d in range(len(index_map.final_indices))]
    padded = inverse_indices(index_map, dims, probe) is None
    return "te_layout_transform_with_pad" if padded else "te_layout_transform"


def _prepare(x: Any, index_map: Any, pad_value: Any = None, **separators: Any) -> tuple[Any, Any]:
    ty = getattr(x, "ty", None)
    if callable(index_map) and isinstance(ty, TensorType) and ty.ndim != -1:
        index_map = IndexMap.from_func(index_map, ty.ndim)  # a function of *indices
    if isinstance(pad_value, int) and isinstance(ty, TensorType) and ty.dtype is not None and dtypes.is_float(ty.dtype):
        pad_value = float(pad_value)
    return (x,), {"index_map": index_map, "pad_value": pad_value, **separators}


def _samples() -> list[Sample]:
    def blocked(i: Any, j: Any) -> Any:
        return i // 2, j, i % 2

    return [
        sample((4, 3), index_map=blocked),
        sample((5, 3), index_map=blocked, pad_value=7.0),
        sample((5, 3), index_map=blocked),
        sample((1, 3), index_map=blocked),
        sample((2, 3, 4), index_map=lambda i, j, k: (k, i, j)),
        sample((2, 3), index_map=lambda i, j: i * 3 + j),
        sample((1, 8, 2), index_map=lambda n, c, w: (n, c // 4, w, c % 4)),
    ]


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_lower,
    ref=_ref,
    samples=_samples,
    prepare=_prepare,
    relax_text=RelaxText(floats=("pad_value",), hidden=("axis_separators", "input_axis_separators")),
    kernel=_loop_function,
)
def layout_transform(
    x: TensorType,
    index_map: Mapping,
    pad_value: Number = None,
    axis_separators: Axes = None,
    input_axis_separators: Axes = None,
) -> Type:
    """The tensor in the layout of a map of indices: ``result[index_map(i, j)] = x[i, j]``, with ``index_map`` a
    function or ``T.index_map(lambda i, j: (i // 4, j, i % 4))``. Places that no element maps to hold
    ``pad_value`` (0 without one). Separators of axes say how memory of several dimensions is laid out; this memory has
    one, so they are kept as they are given and change nothing."""
    if x.ndim != -1:
        _check(index_map, x.ndim)
    if pad_value is not None and x.dtype is not None and not dtypes.is_float(x.dtype):
        if not math.isfinite(pad_value) or pad_value != int(pad_value):
            fail(f"{_NAME}: the padding is no integer", x.dtype, str(pad_value))
        if not dtypes.fits(int(pad_value), x.dtype):
            fail(f"{_NAME}: the padding does not fit the dtype", x.dtype, str(pad_value))
    dims = tensor_dims(x)
    if dims is None:
        return TensorType(None, x.dtype, len(index_map.final_indices))
    return tensor(mapped_dims(index_map, dims), x.dtype)
