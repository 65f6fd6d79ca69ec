"""Operators that make tensors: zeros, ones, full, arange, eye, their ``_like`` forms, triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import IntImm, cast, const, int64, scalar_dtype
from supple.ir.graph import ShapeExpr
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion, Op
from supple.ir.types import TensorType
from supple.ops.declare import DType, Scalar, Shape, ShapeOf, fail, operator, sample
from supple.ops.manipulate import shaped
from supple.ops.requirements import require_at_least, require_whole
from supple.ops.shapes import require_known_rank
from supple.sym.relate import tensor
from supple.sym.simplify import SHAPES


def _shape_type(name: str, shape: Expr, dtype: str | None) -> TensorType:
    if dtype is None:
        fail(f"{name}: a dtype is needed")
    return _sized(name, shape, dtype)


def _sized(name: str, shape: Expr, dtype: str | None) -> TensorType:
    values = shape.values if isinstance(shape, ShapeExpr) else None
    if values is None:
        return shaped(shape, dtype)
    for value in values:
        if isinstance(value, IntImm) and value.value < 0:
            fail(f"{name}: a dimension is negative", "sizes", str(value.value))
    return tensor(values, dtype)


def _filled(name: str, value: int) -> Op:
    def rule(shape: Shape, dtype: DType) -> Type:
        return _shape_type(name, shape, dtype)

    def lower(shape: Sequence[Expr], dtype: str) -> te.TensorValue:
        return te.compute(shape, lambda *i: const(value, dtype), f"T_{name}")

    rule.__doc__ = f"A tensor of {name}."
    return operator(
        name,
        fusion=Fusion.ELEMENTWISE,
        lower=lower,
        ref=lambda shape, dtype: np.full(shape, value, dtypes.to_numpy(dtype)),
        samples=lambda: [sample(ShapeOf((2, 3)), dtype="float32"), sample(ShapeOf(()), dtype="int64")],
    )(rule)


zeros = _filled("zeros", 0)
ones = _filled("ones", 1)


def _like(name: str, value: int) -> Op:
    def rule(x: TensorType, dtype: DType = None) -> Type:
        return TensorType(x.shape, dtype or x.dtype, x.ndim)

    def lower(x: te.TensorValue, dtype: DType) -> te.TensorValue:
        return te.compute(x.shape, lambda *i: const(value, dtype or x.dtype), f"T_{name}")

    rule.__doc__ = f"A tensor of {name.removesuffix('_like')} with the shape (and the dtype, unless given) of ``x``."
    return operator(
        name,
        fusion=Fusion.ELEMENTWISE,
        lower=lower,
        ref=lambda x, dtype: np.full(np.shape(x), value, dtypes.to_numpy(dtype) if dtype else x.dtype),
        samples=lambda: [sample((2, 3)), sample((0, 3), dtype="int32")],
        kernel=name.removesuffix("_like"),
        reads=(),
    )(rule)


zeros_like = _like("zeros_like", 0)
ones_like = _like("ones_like", 1)


def _scalar_tensor(name: str, fill: TensorType) -> None:
    require_known_rank(name, "the fill value", fill)
    if fill.ndim != 0:
        fail(f"{name}: the fill value must be a 0-dimensional tensor", "0 dimensions", f"{fill.ndim} dimensions")


def _fill_lower(shape: Sequence[Expr], fill_value: te.TensorValue, dtype: str) -> te.TensorValue:
    return te.compute(shape, lambda *i: cast(dtype, fill_value[()]), "T_full")


@operator(
    fusion=Fusion.ELEMENTWISE,
    device=(1,),
    lower=lambda shape, fill_value, dtype: _fill_lower(shape, fill_value, dtype or fill_value.dtype),
    ref=lambda shape, fill_value, dtype: np.full(
        shape, dtypes.convert(fill_value, dtype or dtypes.from_numpy(np.asarray(fill_value).dtype))
    ),
    samples=lambda: [
        sample(ShapeOf((2, 3)), np.array(2.5, "float32")),
        sample(ShapeOf((4,)), np.array(2.5, "float32"), dtype="int32"),
    ],
)
def full(shape: Shape, fill_value: TensorType, dtype: DType = None) -> Type:
    """A tensor filled with a 0-dimensional one, converted to ``dtype`` if given."""
    _scalar_tensor("full", fill_value)
    return _sized("full", shape, dtype or fill_value.dtype)


@operator(
    fusion=Fusion.ELEMENTWISE,
    lower=lambda x, fill_value, dtype: _fill_lower(x.shape, fill_value, dtype or x.dtype),
    ref=lambda x, fill_value, dtype: np.full(
        np.shape(x), dtypes.convert(fill_value, dtype or dtypes.from_numpy(np.asarray(x).dtype))
    ),
    samples=lambda: [sample((2, 3), np.array(2.5, "float32")), sample((4,), np.array(7, "int32"), dtype="int8")],
    kernel="full",
    reads=(1,),
)
def full_like(x: TensorType, fill_value: TensorType, dtype: DType = None) -> Type:
    """A tensor of the shape (and the dtype, unless given) of ``x``, filled with a 0-dimensional one."""
    _scalar_tensor("full_like", fill_value)
    return TensorType(x.shape, dtype or x.dtype, x.ndim)


# ------------------------------------------------------------------------------------------------------ arange and eye


def _prepare_arange(start: Any, end: Any = None, step: Any = 1, dtype: Any = None) -> tuple[Any, Any]:
    if end is None:
        start, end = 0, start
    values = (start, end, step)
    if dtype is None:
        floats = any(isinstance(v, float) or (isinstance(v, Expr) and dtypes.is_float(scalar_dtype(v))) for v in values)
        dtype = "float32" if floats else "int64"
    return values, {"dtype": dtype}


def arange_length(start: Expr, end: Expr, step: Expr) -> Expr:
    """``max(0, ceil((end - start) / step))`` of literals; of symbols, as Relax's types say it, without the ``max``: a
    negative size is refused when it runs, and so is a symbolic step that is not positive."""
    literals = [getattr(v, "value", None) for v in (start, end, step)]
    if all(v is not None for v in literals):
        low, high, by = literals
        if by == 0:
            fail("arange: the step is 0", "a step that is not 0", "0")
        return int64(max(0, int(np.ceil((high - low) / by))))  # type: ignore[operator]
    if not all(dtypes.is_int(scalar_dtype(v)) for v in (start, end, step)):
        fail("arange: symbolic bounds and steps must be integers")
    start, end, size = cast("int64", start), cast("int64", end), cast("int64", step)
    if not isinstance(step, IntImm):
        require_at_least("arange: a symbolic step must be positive", 1, size)
    elif step.value < 0:
        start, end, size = end, start, int64(-step.value)
    return SHAPES.simplify(E.FloorDiv(E.Sub(E.Add(E.Sub(end, start), size), int64(1)), size))


def _arange_lower(start: Expr, end: Expr, step: Expr, dtype: str) -> te.TensorValue:
    wide = "float64" if dtypes.is_float(dtype) else "int64"

    def body(i: Any) -> Expr:
        return cast(dtype, E.Add(cast(wide, start), E.Mul(cast(wide, i), cast(wide, step))))

    return te.compute((arange_length(start, end, step),), body, "T_arange")


def _arange_ref(start: Any, end: Any, step: Any, dtype: str) -> Any:
    count = max(0, int(np.ceil((end - start) / step)))
    wide = np.float64 if dtypes.is_float(dtype) else np.int64
    return dtypes.convert(wide(start) + np.arange(count).astype(wide) * wide(step), dtype)


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_arange_lower,
    ref=_arange_ref,
    prepare=_prepare_arange,
    samples=lambda: [
        sample(5),
        sample(2, 11, 3, dtype="int32"),
        sample(5, 0, -2, dtype="float32"),
        sample(0.0, 1.0, 0.3),
        sample(3, 3),
    ],
)
def arange(start: Scalar, end: Scalar, step: Scalar, dtype: DType) -> Type:
    """``start, start + step, ...`` below ``end`` (above, for a negative step). ``arange(n)`` starts at 0. The dtype is
    int64, or float32 when a bound is a float, unless given."""
    return tensor((arange_length(start, end, step),), dtype)


def _prepare_eye(n: Any, m: Any = None, k: Any = 0, dtype: Any = "float32") -> tuple[Any, Any]:
    return (n, n if m is None else m, k), {"dtype": dtype}


def _eye_body(k: Expr, dtype: str) -> Any:
    return lambda i, j: cast(dtype, E.EQ(E.Add(i, cast("int64", k)), j))


@operator(
    fusion=Fusion.INJECTIVE,
    lower=lambda n, m, k, dtype: te.compute((n, m), _eye_body(k, dtype), "T_eye"),
    ref=lambda n, m, k, dtype: np.eye(n, m, k, dtypes.to_numpy(dtype)),
    prepare=_prepare_eye,
    samples=lambda: [sample(3), sample(3, 4, 1), sample(3, 2, -1, dtype="int32")],
)
def eye(n: Scalar, m: Scalar, k: Scalar, dtype: DType) -> Type:
    """Ones on the ``k``-th diagonal of an ``(n, m)`` matrix (``(n, n)`` without ``m``), else zeros."""
    require_whole("eye", n=n, m=m)
    return tensor((cast("int64", n), cast("int64", m)), dtype)


def _prepare_eye_like(x: Any, k: Any = 0, dtype: Any = None) -> tuple[Any, Any]:
    return (x, k), {"dtype": dtype}


@operator(
    fusion=Fusion.INJECTIVE,
    lower=lambda x, k, dtype: te.compute(x.shape, _eye_body(k, dtype or x.dtype), "T_eye"),
    ref=lambda x, k, dtype: np.eye(x.shape[0], x.shape[1], k, dtypes.to_numpy(dtype) if dtype else x.dtype),
    prepare=_prepare_eye_like,
    reads=(),
    samples=lambda: [sample((3, 4)), sample((2, 3), 1, dtype="int32")],
    shape_of=0,
)
def eye_like(x: TensorType, k: Scalar, dtype: DType = None) -> Type:
    """`eye` of the shape (and the dtype, unless given) of a matrix."""
    if x.ndim not in (-1, 2):
        fail("eye_like: needs a matrix", "2 dimensions", f"{x.ndim} dimensions")
    return TensorType(x.shape, dtype or x.dtype, 2)


def _triangle(name: str, doc: str, keep: Any, ref: Any) -> Op:
    def rule(x: TensorType, k: Scalar) -> Type:
        if x.ndim != -1 and x.ndim < 2:
            fail(f"{name}: needs matrices", "at least 2 dimensions", f"{x.ndim} dimensions")
        return x

    def lower(x: te.TensorValue, k: Expr) -> te.TensorValue:
        def body(*i: Any) -> Expr:
            return E.Select(keep(E.Add(i[-2], cast("int64", k)), i[-1]), x[i], const(0, x.dtype))

        return te.compute(x.shape, body, f"T_{name}")

    rule.__doc__ = doc
    return operator(
        name,
        fusion=Fusion.INJECTIVE,
        lower=lower,
        ref=ref,
        prepare=lambda x, k=0: ((x, k), {}),
        samples=lambda: [sample((3, 4)), sample((2, 3, 3), 1), sample((4, 3), -1), sample((0, 3))],
    )(rule)


tril = _triangle("tril", "What lies on and below the ``k``-th diagonal, else zeros.", E.GE, lambda x, k: np.tril(x, k))
triu = _triangle("triu", "What lies on and above the ``k``-th diagonal, else zeros.", E.LE, lambda x, k: np.triu(x, k))
