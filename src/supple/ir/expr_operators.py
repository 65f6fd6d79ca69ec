"""What Python's operators on expressions build: scalar nodes on scalars, tensor operators on tensors (see
`supple.ir.operators`, which calls it)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from supple.base import dtypes
from supple.ir.conventions import conventions
from supple.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    SCALAR_OPERATORS,
    TENSOR_OPERATORS,
    Add,
    BinaryOp,
    BufferLoad,
    Call,
    Div,
    ExprLike,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Mul,
    Range,
    Sub,
    TupleGetItem,
    Var,
    as_expr,
    cast,
    const,
    is_scalar,
    match_dtypes,
    scalar_dtype,
)
from supple.ir.node import Expr
from supple.ir.operators import BUILD
from supple.ir.types import BufferType, TensorType, TupleType

_SCALAR_BINARY: dict[str, type[BinaryOp]] = {
    "add": Add, "sub": Sub, "mul": Mul, "floordiv": FloorDiv, "mod": FloorMod,
    "lt": LT, "le": LE, "gt": GT, "ge": GE, "eq": EQ, "ne": NE,
}  # fmt: skip


_FOLLOWED = ("and", "or", "xor", "lshift", "rshift", "eq", "ne")  # a literal has the other operand's dtype


def _binary(name: str, a: ExprLike, b: ExprLike) -> Expr:
    if _is_tensor(a) or _is_tensor(b):
        return _tensor(name, a, b)
    left, right = match_dtypes(a, b, follow=name in _FOLLOWED)
    number = folded(name, left, right)
    if number is not None:
        return number
    if name == "truediv":
        if not dtypes.is_float(scalar_dtype(left)):
            raise TypeError("'/' on integers is ambiguous: write a // b, or T.Div(a, b) for truncating division")
        return Div(left, right)
    kind = _SCALAR_BINARY.get(name)
    if kind is not None:
        return kind(left, right)
    return SCALAR_OPERATORS[name](left, right)


_COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "mod": operator.mod,
    "truediv": operator.truediv, "max": max, "min": min,
}  # fmt: skip
_FOLDED_INTS = ("add", "sub", "mul", "floordiv", "mod", "max", "min")
_FOLDED_FLOATS = ("add", "sub", "mul", "truediv")


def folded(name: str, a: Expr, b: Expr) -> Expr | None:
    """The value of an operation on numbers, and of one that leaves an operand as it is; None: build it, as is always
    done where the conventions do not fold.

    A number that its dtype does not hold, and what divides by zero, is left to who evaluates it.
    """
    if not conventions().folds_operators:
        return None
    dtype = scalar_dtype(a)
    names = _FOLDED_INTS if dtypes.is_int(dtype) else _FOLDED_FLOATS if dtype in ("float32", "float64") else ()
    if name not in names or scalar_dtype(b) != dtype or dtypes.lanes(dtype) != 1:
        return None
    left, right = _number(a), _number(b)
    divides = name in ("floordiv", "mod", "truediv")
    if left is not None and right is not None:
        return None if divides and right == 0 else _constant(_COMPUTED[name](left, right), dtype)
    if name in ("max", "min"):
        return a if a is b else None
    if name == "add" and left == 0:
        return b
    if name in ("add", "sub") and right == 0:
        return a
    if name == "mul" and (left == 1 or right == 1):
        return b if left == 1 else a
    if (name == "mul" and (left == 0 or right == 0)) or (divides and left == 0) or (name == "mod" and right == 1):
        return const(0, dtype)
    return a if divides and right == 1 else None


def _constant(value: int | float, dtype: str) -> Expr | None:
    """A number that the dtype holds; None where it does not."""
    if isinstance(value, int):
        return const(value, dtype) if dtypes.fits(value, dtype) else None
    rounded = float(dtypes.to_numpy(dtype).type(value))
    return const(rounded, dtype) if math.isfinite(rounded) else None


def _number(e: Expr) -> int | float | None:
    return e.value if isinstance(e, (IntImm, FloatImm)) else None


def _unary(name: str, a: Any) -> Expr:
    if _is_tensor(a):
        return _tensor(name, a)
    if name == "neg":
        if isinstance(a, IntImm):
            return IntImm(-a.value, a.dtype)
        if isinstance(a, FloatImm):
            return FloatImm(-a.value, a.dtype)
        return Mul(a, const(-1, scalar_dtype(a)))
    return SCALAR_OPERATORS[name](a)


def _is_tensor(e: object) -> bool:
    if not isinstance(e, Expr):
        return False
    ty = getattr(e, "ty", None)
    return isinstance(ty, TensorType) or (ty is None and isinstance(e, (Var, Call)))


def _tensor(name: str, *args: Any) -> Expr:
    build = TENSOR_OPERATORS.get(name)
    if build is None:
        raise TypeError(f"tensors have no operator {name!r}")
    if args and all(is_scalar(a) for a in args if isinstance(a, Expr)):
        raise TypeError(f"{name} is an operator of tensors, not of scalars")
    return build(*args)


def _getitem(e: Any, index: Any) -> Expr:
    ty = getattr(e, "ty", None)
    if isinstance(ty, BufferType):
        indices = index if isinstance(index, tuple) else (index,)
        if any(isinstance(i, (slice, Range)) for i in indices):
            return BUILD["region"](e, indices)  # type: ignore[no-any-return]
        return BufferLoad(e, tuple(as_expr(i, "int32") for i in indices))
    if isinstance(ty, TupleType) or (ty is None and isinstance(index, int)):
        position = int(index)
        if isinstance(ty, TupleType) and not -len(ty.fields) <= position < len(ty.fields):
            raise IndexError(f"tuple of {len(ty.fields)} fields has no field {position}")
        return TupleGetItem(e, position % len(ty.fields) if isinstance(ty, TupleType) else position)
    return _tensor("getitem", e, index)


_DECIDE: dict[type, Callable[[Any, Any], bool]] = {
    EQ: lambda a, b: a == b, NE: lambda a, b: a != b, LT: lambda a, b: a < b,
    LE: lambda a, b: a <= b, GT: lambda a, b: a > b, GE: lambda a, b: a >= b,
}  # fmt: skip


def _truth(e: Any) -> bool:
    if isinstance(e, (IntImm, FloatImm)):
        return bool(e.value)
    decide = _DECIDE.get(type(e))
    if decide is None:
        if is_scalar(e) or isinstance(getattr(e, "ty", None), TensorType) or isinstance(e, Call):
            raise ValueError(
                "the truth of a symbolic value is not known while the program is built: Python's `and`, `or`, `not`, "
                "max() and min() cannot take it; use R.logical_and, R.maximum, ... or T.And, T.max, ..."
            )
        return True
    a, b = e.a, e.b
    if a is b and isinstance(a, Var):
        return decide(0, 0)
    if isinstance(a, (IntImm, FloatImm)) and isinstance(b, (IntImm, FloatImm)):
        return decide(a.value, b.value)
    raise ValueError(
        f"cannot decide {e.symbol!r} of symbolic expressions while the program is built; "
        "use structural_equal for sameness, or supple.sym to prove"
    )


def _call(callee: Any, args: tuple[Any, ...]) -> Expr:
    return Call(callee, tuple(as_expr(a) for a in args))


def _astype(value: Any, dtype: str) -> Expr:
    return cast(dtype, value) if is_scalar(value) else _tensor("astype", value, dtype)


BUILD.update(
    binary=_binary,
    unary=_unary,
    tensor=_tensor,
    getitem=_getitem,
    truth=_truth,
    is_scalar=is_scalar,
    call=_call,
    astype=_astype,
)
