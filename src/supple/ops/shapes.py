"""What type rules and lowerings share: broadcasting, axes, dtype agreement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from supple.ir.expr import IntImm, int64
from supple.ir.graph import ShapeExpr
from supple.ir.node import Expr
from supple.ir.types import TensorType
from supple.ops.declare import fail
from supple.ops.requirements import require_values
from supple.sym.relate import dims_text, tensor_dims
from supple.sym.simplify import SHAPES

Dims = tuple[Expr, ...]


def same_dtype(name: str, x: TensorType, y: TensorType) -> str | None:
    """The common dtype of two operands, unknown where one is; refuses different ones."""
    if x.dtype is not None and y.dtype is not None and x.dtype != y.dtype:
        hint = f'convert one: x.astype("{x.dtype}")'
        fail(f"{name}: the operands have different dtypes", x.dtype, y.dtype, hint=hint)
    return x.dtype if y.dtype is not None else None


def operands_dtype(name: str, x: TensorType, y: TensorType) -> str | None:
    """`same_dtype` of an operator with two operands, where Relax's type rule does not look at bools: see `alike`."""
    return (alike if "bool" in (x.dtype, y.dtype) else same_dtype)(name, x, y)


def alike(name: str, x: TensorType, y: TensorType) -> str | None:
    """`same_dtype` where Relax's type rule does not look: the first operand's dtype, unknown where one is; different
    ones are refused when the call is computed."""
    if x.dtype is not None and y.dtype is not None and x.dtype != y.dtype:
        require_values(
            f"{name}: the operands have different dtypes", x.dtype, y.dtype, f'convert one: x.astype("{x.dtype}")'
        )
    return x.dtype if y.dtype is not None else None


def require_known_rank(name: str, what: str, t: TensorType) -> None:
    """Refuse a tensor ``what`` of unknown rank."""
    if t.ndim == -1:
        fail(f"{name}: the rank of {what} is not known", hint="R.match_cast to a type of known rank")


def require_rank(name: str, what: str, t: TensorType, ndim: int) -> None:
    """Refuse a tensor ``what`` that is known to have another rank."""
    if t.ndim not in (-1, ndim):
        fail(f"{name}: {what} of a wrong rank", f"{ndim} dimensions", f"{t.ndim} dimensions")


def is_one(dim: Expr) -> bool:
    return isinstance(dim, IntImm) and dim.value == 1


def broadcast_dims(name: str, a: Dims, b: Dims) -> Dims | None:
    """numpy's broadcasting on symbolic dimensions; None when it depends on the symbols' values."""
    result: list[Expr] = []
    undecided = False
    for offset in range(1, max(len(a), len(b)) + 1):
        if offset > len(a):
            result.append(b[-offset])
        elif offset > len(b):
            result.append(a[-offset])
        else:
            x, y = a[-offset], b[-offset]
            if SHAPES.equal(x, y) is True or is_one(y):
                result.append(x)
            elif is_one(x):
                result.append(y)
            elif isinstance(x, IntImm) and isinstance(y, IntImm):
                fail(
                    f"{name}: the operands' shapes do not broadcast (dimension {-offset}: {x.value} and {y.value})",
                    f"shapes that agree with {dims_text(a)} or are 1",
                    dims_text(b),
                )
            else:
                undecided = True
                result.append(x)
    return None if undecided else tuple(reversed(result))


def broadcast_type(name: str, x: TensorType, y: TensorType, dtype: str | None) -> TensorType:
    """The type of an elementwise operator of two tensors."""
    a, b = tensor_dims(x), tensor_dims(y)
    if a is not None and b is not None:
        dims = broadcast_dims(name, a, b)
        if dims is not None:
            return TensorType(ShapeExpr(dims), dtype)
    if x.shape is not None and x.shape is y.shape:  # one variable is both shapes
        return TensorType(x.shape, dtype)
    ndim = max(x.ndim, y.ndim) if x.ndim != -1 and y.ndim != -1 else -1
    return TensorType(None, dtype, ndim)


def normalize_axis(name: str, axis: int, ndim: int) -> int:
    """A non-negative axis; refuses one out of range."""
    if ndim == -1:
        fail(f"{name}: the axis {axis} needs an input of known rank", hint="R.match_cast to a type of known rank")
    if not -ndim <= axis < ndim:
        fail(f"{name}: axis {axis} is out of range", f"-{ndim} <= axis < {ndim}", str(axis))
    return axis % ndim


def normalize_axes(name: str, axes: Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Non-negative axes (all of them for None); refuses repeated ones."""
    if axes is None:
        if ndim == -1:
            fail(f"{name}: needs an input of known rank", hint="R.match_cast to a type of known rank")
        return tuple(range(ndim))
    normal = tuple(normalize_axis(name, axis, ndim) for axis in axes)
    if len(set(normal)) != len(normal):
        fail(f"{name}: an axis is given twice", "different axes", str(list(axes)))
    return normal


def broadcast_index(shape: Sequence[Expr], indices: Sequence[Any]) -> tuple[Any, ...]:
    """The index into a tensor of ``shape`` for an output index of the broadcast shape."""
    own = indices[len(indices) - len(shape) :]
    return tuple(int64(0) if is_one(dim) else i for dim, i in zip(shape, own, strict=True))
