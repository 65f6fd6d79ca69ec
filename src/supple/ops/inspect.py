"""What is known of a tensor while it runs: rank, dtype, extents, strides and offsets, as scalars.

Tensors are compact and row-major, so strides follow from the extents and every offset is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import ExecutionError
from supple.build.infer import infer
from supple.ir.expr import Call, IntImm, cast, const
from supple.ir.node import Expr, Type
from supple.ir.op import Op
from supple.ir.types import PrimType, TensorType, prim_type
from supple.ops.declare import Scalar, fail, operator
from supple.sym.relate import tensor_dims
from supple.sym.simplify import product


def _of_tensor(name: str, doc: str, dtype: str, ref: Callable[[Any], int], known: Callable[[TensorType], Any]) -> Op:
    def scalar(call: Call) -> Expr | None:
        ty = infer(call.args[0])
        value = known(ty) if isinstance(ty, TensorType) else None
        return None if value is None else const(value, dtype)

    def rule(x: TensorType) -> Type:
        return prim_type(dtype)

    rule.__doc__ = doc
    return operator(f"inspect.{name}", ref=ref, scalar=scalar)(rule)


def _of_axis(name: str, doc: str, ref: Callable[[Any, int], int], known: Callable[[tuple[Expr, ...], int], Expr]) -> Op:
    def scalar(call: Call) -> Expr | None:
        ty, axis = infer(call.args[0]), call.args[1]
        dims = tensor_dims(ty) if isinstance(ty, TensorType) else None
        if dims is None or not isinstance(axis, IntImm):
            return None
        return cast("int64", known(dims, axis.value))

    def rule(x: TensorType, axis: Scalar) -> Type:
        ty = infer(axis)
        if not isinstance(ty, PrimType) or not dtypes.is_int(ty.dtype):
            fail(f"inspect.{name}: the axis must be an integer", "R.prim_value(0)", str(ty), axis)
        if isinstance(axis, IntImm):
            if axis.value < 0:
                fail(f"inspect.{name}: the axis counts from 0", "0 or more", str(axis.value), axis)
            if x.ndim != -1 and axis.value >= x.ndim:
                fail(f"inspect.{name}: the axis is out of range", f"below {x.ndim}", str(axis.value), axis)
        return prim_type("int64")

    rule.__doc__ = doc
    return operator(f"inspect.{name}", ref=ref, scalar=scalar)(rule)


def _row(x: Any) -> dtypes.DType:
    return dtypes.row(dtypes.from_numpy(np.asarray(x).dtype))


def _row_of(ty: TensorType) -> dtypes.DType | None:
    return None if ty.dtype is None else dtypes.row(ty.dtype)


def _bits(ty: TensorType) -> int | None:
    row = _row_of(ty)
    return None if row is None else row.bits


def _code(ty: TensorType) -> int | None:
    row = _row_of(ty)
    return None if row is None else row.dlpack


def _extent(x: Any, axis: int) -> int:
    shape = np.shape(x)
    if not 0 <= axis < len(shape):
        raise ExecutionError(f"inspect: axis {axis} of a tensor of {len(shape)} dimensions")
    return int(shape[axis])


def _stride(x: Any, axis: int) -> int:
    _extent(x, axis)
    return int(np.prod(np.shape(x)[axis + 1 :], dtype=np.int64))


tensor_ndim = _of_tensor(
    "tensor_ndim", "The number of dimensions.", "int32", np.ndim, lambda ty: None if ty.ndim < 0 else ty.ndim
)
tensor_dtype_bits = _of_tensor("tensor_dtype_bits", "Bits of an element.", "uint8", lambda x: _row(x).bits, _bits)
tensor_dtype_lanes = _of_tensor("tensor_dtype_lanes", "Lanes of an element: 1.", "uint16", lambda x: 1, lambda ty: 1)
tensor_dtype_code = _of_tensor(
    "tensor_dtype_code",
    "DLPack's code of the dtype: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool.",
    "uint8",
    lambda x: _row(x).dlpack,
    _code,
)
tensor_byte_offset = _of_tensor(
    "tensor_byte_offset", "Bytes before the first element: 0.", "uint64", lambda x: 0, lambda ty: 0
)
tensor_elem_offset = _of_tensor(
    "tensor_elem_offset", "Elements before the first one: 0.", "uint64", lambda x: 0, lambda ty: 0
)
tensor_shape_i = _of_axis("tensor_shape_i", "The extent of an axis.", _extent, lambda dims, axis: dims[axis])
tensor_stride_i = _of_axis(
    "tensor_stride_i",
    "Elements from one index of an axis to the next.",
    _stride,
    lambda dims, axis: product(dims[axis + 1 :]),
)
