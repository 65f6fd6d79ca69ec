"""Numbers in few bits: quantize, dequantize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import cast, const, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion, RelaxText
from supple.ir.types import TensorType
from supple.ops.declare import DType, fail, operator, sample
from supple.ops.requirements import require_spread
from supple.ops.shapes import normalize_axis
from supple.sym.relate import tensor_dims
from supple.sym.simplify import SHAPES

_FLOATS = ("float16", "float32", "bfloat16")
_FEW_BITS = ("int8", "uint8", "int16", "uint16", "float8_e4m3fn", "float8_e5m2")
_ZERO_POINTS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16")
_QUANTIZED = (*_FEW_BITS, "int32", "uint32", *_FLOATS)


def _channel(t: te.TensorValue, i: Any, place: int) -> Expr:
    return (
        t[()]
        if t.ndim == 0
        else t[i[place]]
        if t.ndim == 1 and SHAPES.equal(t.shape[0], int64(1)) is not True
        else t[0]
    )


def _ends(dtype: str) -> tuple[float, float]:
    """The lowest and highest number of a dtype, infinities left out."""
    limits: Any = dtypes.finfo(dtype) if dtypes.is_float(dtype) else np.iinfo(dtype)
    return float(limits.min), float(limits.max)


def _quantize_lower(
    data: te.TensorValue, scale: te.TensorValue, zero_point: te.TensorValue, axis: int, out_dtype: str
) -> te.TensorValue:
    place = normalize_axis("quantize", axis, data.ndim) if data.ndim else 0
    wide = "float32"
    low, high = (const(edge, wide) for edge in _ends(out_dtype))

    def body(*i: Any) -> Expr:
        steps: Expr = E.Div(cast(wide, data[i]), cast(wide, _channel(scale, i, place)))
        if dtypes.is_int(out_dtype):
            steps = intrinsic("round", steps)
        shifted = E.Add(steps, cast(wide, _channel(zero_point, i, place)))
        return cast(out_dtype, E.Max(E.Min(shifted, high), low))

    return te.compute(data.shape, body, "quantized")


def _spread_channels(t: Any, ndim: int, axis: int) -> Any:
    if np.ndim(t) == 0 or np.size(t) == 1:
        return np.reshape(t, ())
    return np.reshape(t, [-1 if d == axis % ndim else 1 for d in range(ndim)])


def _quantize_ref(data: Any, scale: Any, zero_point: Any, axis: int, out_dtype: str) -> Any:
    s, z = (_spread_channels(t, max(data.ndim, 1), axis).astype("float32") for t in (scale, zero_point))
    steps = data.astype("float32") / s
    return dtypes.convert(
        np.clip((np.rint(steps) if dtypes.is_int(out_dtype) else steps) + z, *_ends(out_dtype)), out_dtype
    )


@operator(
    fusion=Fusion.ELEMENTWISE,
    lower=_quantize_lower,
    ref=_quantize_ref,
    samples=lambda: [
        sample((2, 3), np.array(0.1, "float32"), np.array(3, "int8")),
        sample((2, 3), np.array([0.1, 0.02], "float32"), np.array([3, -1], "int8"), axis=0),
        sample((2, 3), np.array([0.1, 0.02, 1], "float32"), np.array([3, 1, 128], "uint8"), out_dtype="uint8"),
        sample((2, 3), np.array(0.01, "float32"), np.array(0.5, "float16"), out_dtype="float8_e4m3fn"),
    ],
    relax_text=RelaxText(first=("out_dtype", "axis")),
)
def quantize(
    data: TensorType, scale: TensorType, zero_point: TensorType, axis: int = -1, out_dtype: DType = "int8"
) -> Type:
    """``clamp(round(data / scale) + zero_point)`` in ``out_dtype``, an integer of at most 16 bits; halves round to
    even. In a float8 dtype nothing is rounded to a whole number. Scale and zero point are one number, or one for each
    index of ``axis``."""
    _require_dtype("quantize: the data", data.dtype, _FLOATS)
    if out_dtype not in _FEW_BITS:
        fail("quantize: needs an out_dtype of few bits", " or ".join(_FEW_BITS), str(out_dtype))
    _check_channels("quantize", data, (scale, zero_point), axis)
    known = all(t.dtype is not None for t in (data, scale, zero_point))
    return TensorType(data.shape, out_dtype if known else None, data.ndim)


def _require_dtype(what: str, dtype: str | None, allowed: Sequence[str]) -> None:
    if dtype is not None and dtype not in allowed:
        fail(f"{what} has another dtype", " or ".join(allowed), dtype, hint="x.astype(...)")


def _check_channels(name: str, data: TensorType, given: Sequence[TensorType], axis: int) -> None:
    """Scale and zero point are known to be one number, or have one for each index of the axis."""
    scale, zero_point = given
    _require_dtype(f"{name}: the scale", scale.dtype, _FLOATS)
    _require_dtype(f"{name}: the zero point", zero_point.dtype, _ZERO_POINTS)
    if data.ndim > 0:
        normalize_axis(name, axis, data.ndim)
    dims = tensor_dims(data)
    for numbers in given:
        own = tensor_dims(numbers)
        if dims and own is not None and len(own) == 1:
            place = normalize_axis(name, axis, len(dims))
            require_spread(f"{name}: one number for each index of axis {place}", (dims[place],), own)


def _dequantize_lower(
    data: te.TensorValue, scale: te.TensorValue, zero_point: te.TensorValue, axis: int, out_dtype: str
) -> te.TensorValue:
    place = normalize_axis("dequantize", axis, data.ndim) if data.ndim else 0
    whole = dtypes.is_int(data.dtype) and dtypes.is_int(zero_point.dtype)
    steps_in = "int32" if whole else "float32"

    def body(*i: Any) -> Expr:
        steps = E.Sub(cast(steps_in, data[i]), cast(steps_in, _channel(zero_point, i, place)))
        return cast(out_dtype, E.Mul(cast("float32", steps), cast("float32", _channel(scale, i, place))))

    return te.compute(data.shape, body, "dequantized")


def _dequantize_ref(data: Any, scale: Any, zero_point: Any, axis: int, out_dtype: str) -> Any:
    s, z = (_spread_channels(t, max(data.ndim, 1), axis) for t in (scale, zero_point))
    whole = all(dtypes.is_int(dtypes.from_numpy(t.dtype)) for t in (data, z))
    steps = data.astype("int32" if whole else "float32") - z.astype("int32" if whole else "float32")
    return dtypes.convert(steps.astype("float32") * s.astype("float32"), out_dtype)


@operator(
    fusion=Fusion.ELEMENTWISE,
    lower=_dequantize_lower,
    ref=_dequantize_ref,
    samples=lambda: [
        sample(np.array([[-128, 0, 127]], "int8"), np.array(0.1, "float32"), np.array(3, "int8")),
        sample(np.array([[1, 2], [3, 4]], "uint8"), np.array([0.5, 2], "float32"), np.array([1, 0], "uint8"), axis=1),
        sample(
            np.array([[1.5, -448], [0.25, 4]], dtypes.to_numpy("float8_e4m3fn")),
            np.array([0.5, 2], "float32"),
            np.array([1, 0.5], "float16"),
            axis=0,
        ),
    ],
    relax_text=RelaxText(first=("out_dtype", "axis")),
)
def dequantize(
    data: TensorType, scale: TensorType, zero_point: TensorType, axis: int = -1, out_dtype: DType = "float32"
) -> Type:
    """``(data - zero_point) * scale`` in ``out_dtype``; a difference of integers is an integer."""
    _require_dtype("dequantize: the data", data.dtype, _QUANTIZED)
    _check_channels("dequantize", data, (scale, zero_point), axis)
    if out_dtype not in _FLOATS:
        fail("dequantize: needs another out_dtype", " or ".join(_FLOATS), str(out_dtype))
    known = all(t.dtype is not None for t in (data, scale, zero_point))
    return TensorType(data.shape, out_dtype if known else None, data.ndim)
