"""``topi.utils``: numbers out of expressions, and arithmetic on shapes and indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from supple.ir.expr import EQ, GE, LE, LT, And, FloatImm, FloorDiv, FloorMod, IntImm, Select, Var, as_expr
from supple.ir.node import Expr
from supple.sym.simplify import SHAPES


def simplify(expr: Any) -> Any:
    """An integer expression in its simplest form; anything else as it is."""
    return SHAPES.simplify(expr) if isinstance(expr, Expr) else expr


def get_const_int(expr: Any) -> int:
    """The value of an expression that is a constant; raises ``ValueError`` for any other."""
    value = simplify(expr)
    if isinstance(value, IntImm):
        return int(value.value)
    if isinstance(value, int):
        return value
    raise ValueError(f"expected a constant integer, got {expr}")


def get_const_float(expr: Any) -> float:
    """The value of a constant; raises ``ValueError`` for any other expression."""
    if isinstance(expr, (FloatImm, IntImm)):
        return float(expr.value)
    if isinstance(expr, (int, float)):
        return float(expr)
    raise ValueError(f"expected a constant number, got {expr}")


def get_const_tuple(in_tuple: Sequence[Any]) -> tuple[Any, ...]:
    """Constants as ints; variables, and sizes that are not known, stay expressions."""
    values = [simplify(e) for e in in_tuple]
    return tuple(int(v.value) if isinstance(v, IntImm) else v for v in values)


def get_float_tuple(in_tuple: Sequence[Any]) -> tuple[float, ...]:
    """Constants as floats."""
    return tuple(get_const_float(e) for e in in_tuple)


def equal_const_int(expr: Any, value: int) -> bool:
    """Whether an expression is that constant."""
    known = simplify(expr)
    return int(known.value) == value if isinstance(known, IntImm) else isinstance(known, int) and known == value


def prod(x: Sequence[Any]) -> Any:
    """The product of sizes, simplified; 1 for none."""
    result: Any = as_expr(1, "int32")
    for n, size in enumerate(x):
        result = size if n == 0 else result * size
    return simplify(result)


def ceil_div(a: Any, b: Any) -> Any:
    """``a / b`` rounded up."""
    divisor: Any = as_expr(b)
    return simplify((as_expr(a) + divisor - 1) // divisor)


def ravel_index(indices: Sequence[Any], shape: Sequence[Any]) -> Any:
    """The position of an element in row-major order."""
    flat: Any = None
    for index, extent in zip(indices, shape, strict=True):
        flat = index if flat is None else flat * extent + index
    return flat


def unravel_index(idx: Any, shape: Sequence[Any]) -> list[Any]:
    """The index of the element at a position in row-major order."""
    found: list[Any] = []
    rest = idx
    for extent in reversed(list(shape)):
        found.append(FloorMod(as_expr(rest), as_expr(extent)))
        rest = FloorDiv(as_expr(rest), as_expr(extent))
    return found[::-1]


def is_dynamic_shape(shape: Sequence[Any]) -> bool:
    """Whether a size is a variable, or an expression of variables."""
    return any(isinstance(e, Var) or not isinstance(e, (int, IntImm)) for e in get_const_tuple(shape))


def is_empty_shape(shape: Sequence[Any]) -> bool:
    """Whether a tensor of that shape has no elements."""
    return any(equal_const_int(e, 0) for e in shape)


def within_index(b: Any, e: Any, s: Any, i: Any) -> Expr:
    """Whether an index is one of the slice ``b:e:s``."""
    begin, end, step, index = (as_expr(v) for v in (b, e, s, i))
    forward = And(GE(index, begin), LT(index, end))
    back = And(LE(index, begin), LT(end, index))
    met = EQ(FloorMod(index - begin, step), as_expr(0))  # type: ignore[operator]
    return And(Select(LT(step, as_expr(0)), back, forward), met)


def swap(arr: Sequence[Any], axis: int) -> list[Any]:
    """The items with that one moved to the end."""
    return [*arr[:axis], *arr[axis + 1 :], arr[axis]]


def get_max_power2_factor(n: int, max_value: int | None = None) -> int:
    """The greatest power of 2 that divides a number, at most ``max_value``."""
    factor = n & -n
    while max_value is not None and factor > max_value:
        factor //= 2
    return factor
