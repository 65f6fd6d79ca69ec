"""Further operators that move or make elements: meshgrid, slice_scatter, reverse_sequence, hamming_window..."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import IntImm, cast, const, int64
from supple.ir.graph import ShapeExpr
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType, TupleType
from supple.ops.declare import DType, Scalar, Tensors, fail, operator, sample, static_sample
from supple.ops.index import require_integers, slice_bounds
from supple.ops.manipulate import reshape_tensor
from supple.ops.requirements import require_at_least, require_shape, require_whole
from supple.ops.shapes import normalize_axis, require_known_rank, same_dtype
from supple.sym.relate import tensor, tensor_dims
from supple.sym.simplify import SHAPES, size_in_order


def _flat_dims(dims: Sequence[Expr]) -> tuple[Expr, Expr]:
    return dims[0], size_in_order(dims[1:])


@operator(
    "nn.batch_flatten",
    fusion=Fusion.INJECTIVE,
    view=True,
    lower=lambda data: reshape_tensor(data, _flat_dims(data.shape)),
    ref=lambda x: np.reshape(x, (x.shape[0], math.prod(x.shape[1:]))),
    samples=lambda: [sample((2, 3, 4)), sample((0, 3)), sample((4, 5))],
)
def batch_flatten(data: TensorType) -> Type:
    """All dimensions but the first as one."""
    if data.ndim in (0, 1):
        fail("nn.batch_flatten: needs a batch and dimensions", "at least 2 dimensions", f"{data.ndim} dimensions")
    if data.ndim == 2:
        return data
    dims = tensor_dims(data)
    return TensorType(None, data.dtype, 2) if dims is None else TensorType(ShapeExpr(_flat_dims(dims)), data.dtype)


# ------------------------------------------------------------------------------------------------------------ meshgrid


def _grid_axes(count: int, indexing: str) -> list[int]:
    """The axis of the result that each tensor runs along."""
    axes = list(range(count))
    if indexing == "xy" and count > 1:
        axes[0], axes[1] = 1, 0
    return axes


def _meshgrid_lower(tensors: Sequence[te.TensorValue], indexing: str) -> list[te.TensorValue]:
    axes = _grid_axes(len(tensors), indexing)
    dims: list[Expr] = [int64(0)] * len(tensors)
    for t, axis in zip(tensors, axes, strict=True):
        dims[axis] = t.shape[0]

    def grid(n: int) -> te.TensorValue:
        t, axis = tensors[n], axes[n]
        return te.compute(dims, lambda *i: t[i[axis]], f"T_meshgrid_{n}")

    return [grid(n) for n in range(len(tensors))]


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_meshgrid_lower,
    ref=lambda tensors, indexing: tuple(np.meshgrid(*tensors, indexing=indexing)),
    samples=lambda: [sample([(2,), (3,)]), sample([(2,), (3,), (4,)], indexing="xy"), sample([(3,)])],
)
def meshgrid(tensors: Tensors, indexing: str = "ij") -> Type:
    """Each vector spread along an axis of its own, to one common shape: a tuple of tensors. With ``"xy"`` the first two
    axes change places."""
    if indexing not in ("ij", "xy"):
        fail("meshgrid: unknown indexing", "ij or xy", indexing)
    if not tensors:
        fail("meshgrid: needs at least one tensor", "a non-empty tuple", "()")
    dtype: str | None = None
    for t in tensors:
        require_known_rank("meshgrid", "a tensor", t)
        if t.ndim != 1:
            fail("meshgrid: needs vectors", "1 dimension", f"{t.ndim} dimensions")
        dtype = dtype or t.dtype
        same_dtype("meshgrid", TensorType(None, dtype), t)
    dims: list[Expr] = [int64(0)] * len(tensors)
    for t, axis in zip(tensors, _grid_axes(len(tensors), indexing), strict=True):
        own = tensor_dims(t)
        if own is None or t.dtype is None:  # no shape of the others' dtype either, as in Relax
            return TupleType((TensorType(None, dtype, len(tensors)),) * len(tensors))
        dims[axis] = own[0]
    return TupleType((tensor(dims, dtype),) * len(tensors))


# ------------------------------------------------------------------------------------------------------- slice_scatter


def _slice_of(dims: Sequence[Expr], place: int, start: Expr, end: Expr, step: Expr) -> tuple[Expr, Expr, int]:
    if not isinstance(step, IntImm) or step.value < 1:
        fail("slice_scatter: the step must be a positive literal", "a positive integer", str(step))
    first, count = slice_bounds(start, end, step.value, dims[place], inbound=False)
    return first, count, step.value


def _slice_scatter_lower(
    input_tensor: te.TensorValue, src: te.TensorValue, start: Expr, end: Expr, step: Expr, axis: int
) -> te.TensorValue:
    place = normalize_axis("slice_scatter", axis, input_tensor.ndim)
    first, count, stride = _slice_of(input_tensor.shape, place, start, end, step)

    def body(*i: Any) -> Expr:
        offset = E.Sub(i[place], first)
        inside: Expr = E.And(E.GE(offset, int64(0)), E.LT(offset, E.Mul(count, int64(stride))))
        if stride != 1:
            inside = E.And(inside, E.EQ(E.FloorMod(offset, int64(stride)), int64(0)))
        taken = src[(*i[:place], E.FloorDiv(offset, int64(stride)), *i[place + 1 :])]
        return intrinsic("if_then_else", inside, taken, input_tensor[i])

    return te.compute(input_tensor.shape, body, "slice_scatter")


def _slice_scatter_ref(x: Any, src: Any, start: int, end: int, step: int, axis: int) -> Any:
    out = x.copy()
    key = [slice(None)] * x.ndim
    key[axis] = slice(start, end, step)
    out[tuple(key)] = src
    return out


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_slice_scatter_lower,
    ref=_slice_scatter_ref,
    samples=lambda: [
        static_sample((5, 3), (2, 3), 1, 3, 1),
        static_sample((5, 3), (5, 2), 0, 3, 2, axis=1),
        static_sample((4,), (2,), -2, 100, 1, axis=-1),
    ],
)
def slice_scatter(
    input_tensor: TensorType, src: TensorType, start: Scalar, end: Scalar, step: Scalar, axis: int = 0
) -> Type:
    """A copy of the tensor with ``[start:end:step]`` along ``axis`` replaced by ``src`` (bounds by numpy's rules)."""
    same_dtype("slice_scatter", input_tensor, src)
    require_whole("slice_scatter", start=start, end=end, step=step)
    dims, given = tensor_dims(input_tensor), tensor_dims(src)
    if dims is not None and given is not None:
        place = normalize_axis("slice_scatter", axis, len(dims))
        _, count, _ = _slice_of(dims, place, start, end, step)
        expected = (*dims[:place], count, *dims[place + 1 :])
        require_shape("slice_scatter: src does not fit the slice", expected, given)
    return TensorType(None, input_tensor.dtype) if input_tensor.ndim == -1 else input_tensor


# ---------------------------------------------------------------------------------------------------- reverse_sequence


def _reverse_lower(data: te.TensorValue, seq_lengths: te.TensorValue, seq_axis: int, batch_axis: int) -> te.TensorValue:
    along, batch = (normalize_axis("reverse_sequence", a, data.ndim) for a in (seq_axis, batch_axis))

    def body(*i: Any) -> Expr:
        length = E.Min(E.Max(cast("int64", seq_lengths[i[batch]]), int64(0)), data.shape[along])
        mirrored = E.Sub(E.Sub(length, int64(1)), i[along])
        source = E.Select(E.LT(i[along], length), mirrored, i[along])
        return data[(*i[:along], source, *i[along + 1 :])]

    return te.compute(data.shape, body, "reverse_sequence")


def _reverse_ref(data: Any, seq_lengths: Any, seq_axis: int, batch_axis: int) -> Any:
    out = np.moveaxis(data, (batch_axis, seq_axis), (0, 1)).copy()
    for n, length in enumerate(np.asarray(seq_lengths).tolist()):
        length = min(max(length, 0), out.shape[1])
        out[n, :length] = out[n, :length][::-1].copy()
    return np.moveaxis(out, (0, 1), (batch_axis, seq_axis))


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_reverse_lower,
    ref=_reverse_ref,
    samples=lambda: [
        sample((3, 4), np.array([2, 0, 9], "int64")),
        sample((4, 2), np.array([3, 4], "int32"), seq_axis=0, batch_axis=1),
    ],
)
def reverse_sequence(data: TensorType, seq_lengths: TensorType, seq_axis: int = 1, batch_axis: int = 0) -> Type:
    """The first ``seq_lengths[b]`` elements along ``seq_axis`` in reverse order, for each ``b`` of ``batch_axis``."""
    require_integers("reverse_sequence", "seq_lengths", seq_lengths)
    if data.ndim != -1:
        places = [normalize_axis("reverse_sequence", a, data.ndim) for a in (seq_axis, batch_axis)]
        if places[0] == places[1]:
            fail("reverse_sequence: both axes are one", "two axes", str(seq_axis))
        dims, given = tensor_dims(data), tensor_dims(seq_lengths)
        if dims is not None and given is not None:
            require_shape("reverse_sequence: one length for each of the batch", (dims[places[1]],), given)
    return data


# ------------------------------------------------------------------------------------------------------ hamming_window


def _window_lower(window_size: Expr, periodic: Expr, alpha: Expr, beta: Expr, dtype: str) -> te.TensorValue:
    size = cast("int64", window_size)
    steps = E.Max(size if _periodic(periodic) else E.Sub(size, int64(1)), int64(1))

    def body(i: Any) -> Expr:
        angle = E.Div(E.Mul(cast("float64", i), const(2 * math.pi, "float64")), cast("float64", SHAPES.simplify(steps)))
        wave = E.Mul(cast("float64", beta), intrinsic("cos", angle))
        return cast(dtype, E.Sub(cast("float64", alpha), wave))

    return te.compute((size,), body, "hamming_window")


def _periodic(value: Expr) -> bool:
    if not isinstance(value, IntImm):
        fail("hamming_window: periodic must be a literal", "a literal", str(value))
    return bool(value.value)


def _window_ref(window_size: int, periodic: bool, alpha: float, beta: float, dtype: str) -> Any:
    steps = window_size if periodic else window_size - 1
    n = np.arange(window_size, dtype="float64")
    return (alpha - beta * np.cos(n * (2 * math.pi) / max(steps, 1))).astype(dtype)


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_window_lower,
    ref=_window_ref,
    samples=lambda: [sample(8, 1, 0.54, 0.46, dtype="float32"), sample(5, 0, 0.5, 0.5, dtype="float64")],
)
def hamming_window(window_size: Scalar, periodic: Scalar, alpha: Scalar, beta: Scalar, dtype: DType) -> Type:
    """``alpha - beta cos(2 pi n / N)`` for n below ``window_size``; N is the size if ``periodic``, else one less."""
    require_whole("hamming_window", window_size=window_size)
    _periodic(periodic)
    size = cast("int64", window_size)
    if isinstance(size, IntImm) and size.value < 1:
        fail("hamming_window: the window is empty", "a size from 1", str(size))
    require_at_least("hamming_window: the size is negative", 0, size)
    if dtype is not None and not dtypes.is_float(dtype):
        fail("hamming_window: needs a floating-point dtype", "a floating-point dtype", dtype)
    return tensor((size,), dtype or "float32")
