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
    And,
    BinaryOp,
    BufferLoad,
    Call,
    Div,
    ExprLike,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Or,
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
    "add": Add, "sub": Sub, "mul": Mul, "floordiv": FloorDiv, "mod": FloorMod, "truncdiv": Div, "truncmod": Mod,
    "min": Min, "max": Max, "lt": LT, "le": LE, "gt": GT, "ge": GE, "eq": EQ, "ne": NE,
}  # fmt: skip


_FOLLOWED = ("and", "or", "xor", "lshift", "rshift", "eq", "ne")  # a literal has the other operand's dtype


def _binary(name: str, a: ExprLike, b: ExprLike) -> Expr:
    if _is_tensor(a) or _is_tensor(b):
        return _tensor(name, a, b)
    return scalar_operation(name, a, b)


def scalar_operation(name: str, a: ExprLike, b: ExprLike) -> Expr:
    """What an operator of Python (``"add"``, ``"lt"``), ``"min"``, ``"max"``, ``"truncdiv"`` or ``"truncmod"`` makes of
    two scalars: a node, or by Relax's conventions a number where it is known."""
    left, right = match_dtypes(a, b, follow=name in _FOLLOWED)
    number = _folded(name, left, right) if conventions().folds_operators else None
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


def _toward_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
_COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "mod": operator.mod,
    "truediv": operator.truediv, "truncdiv": _toward_zero, "truncmod": lambda a, b: a - b * _toward_zero(a, b),
    "min": min, "max": max, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "lshift": operator.lshift, "rshift": operator.rshift, **_COMPARED,
}  # fmt: skip
_DIVIDES = ("floordiv", "mod", "truediv", "truncdiv", "truncmod")
_SHIFTS = ("lshift", "rshift")
_FOLDED_INTS = tuple(name for name in _COMPUTED if name != "truediv")
_FOLDED_FLOATS = ("add", "sub", "mul", "truediv", "min", "max", *_COMPARED)


def _folded(name: str, a: Expr, b: Expr) -> Expr | None:
    """The value of an operation on numbers, and of one that leaves an operand as it is; None: build it.

    A number that its dtype does not hold, and what divides by zero, is left to who evaluates it.
    """
    dtype = scalar_dtype(a)
    names = _FOLDED_INTS if dtypes.is_int(dtype) else _FOLDED_FLOATS if dtype in ("float32", "float64") else ()
    if name not in names or scalar_dtype(b) != dtype or dtypes.lanes(dtype) != 1:
        return None
    left, right = _number(a), _number(b)
    divides = name in _DIVIDES
    if left is not None and right is not None:
        if (divides and right == 0) or (name in _SHIFTS and not 0 <= right < dtypes.row(dtype).bits):
            return None
        value = _COMPUTED[name](left, right)
        return const(bool(value)) if name in _COMPARED else _constant(value, dtype)
    if name in ("min", "max") and a is b:
        return a
    if name in _SHIFTS and right == 0:
        return a
    if name == "add" and left == 0:
        return b
    if name in ("add", "sub") and right == 0:
        return a
    if name == "mul" and (left == 1 or right == 1):
        return b if left == 1 else a
    rest = name in ("mod", "truncmod")
    if (name == "mul" and (left == 0 or right == 0)) or (divides and left == 0) or (rest and right == 1):
        return const(0, dtype)
    return a if divides and right == 1 else None


def joins_to_one(e: And | Or) -> bool:
    """Whether one of two conditions is a literal, so that Relax's conventions make one of them."""
    return isinstance(e.a, IntImm) or isinstance(e.b, IntImm)


def joined(kind: type[And] | type[Or], a: Expr, b: Expr) -> Expr:
    """Both conditions, or one of them; by Relax's conventions the other one where one is a literal."""
    if conventions().folds_operators:
        for known, other in ((a, b), (b, a)):
            if isinstance(known, IntImm):
                return other if bool(known.value) == (kind is And) else known
    return kind(a, b)


_NAMES = {kind: name for name, kind in _SCALAR_BINARY.items()}


def folded(e: BinaryOp) -> Expr | None:
    """The number that arithmetic on numbers gives, or the operand that it leaves as it is; None for anything else."""
    name = _NAMES.get(type(e))
    if isinstance(e, Div) and dtypes.is_float(scalar_dtype(e.a)):
        name = "truediv"
    return None if name is None else _folded(name, e.a, e.b)


def _constant(value: int | float, dtype: str) -> Expr | None:
    """A number that the dtype holds; None where it does not."""
    if not dtypes.is_float(dtype):
        return const(int(value), dtype) if dtypes.fits(int(value), dtype) else None
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
