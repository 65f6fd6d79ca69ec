"""Scalar intrinsics of loop functions, one row each: ``tirx.exp``, ``tirx.bitwise_and``, ``tirx.if_then_else``...

A row is an `Op` whose ``facts["intrinsic"]`` is an `Intrinsic`: arity, meaning in numpy (the interpreter's and the
constant folder's), and the result's dtype as a function of the operands' dtypes. Code generation keys its own tables
on the operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.ir.expr import (
    SCALAR_OPERATORS,
    Call,
    ExprLike,
    Select,
    StringImm,
    as_expr,
    const,
    match_dtypes,
    scalar_dtype,
)
from supple.ir.node import Expr
from supple.ir.op import OPS, Intrinsic, Op
from supple.ir.types import TupleType, prim_type

DtypeRule = Callable[..., str]
_Row = tuple[str, Callable[..., Any], str]


# ------------------------------------------------------------------------------------------------ result dtype rules


def _floats(name: str) -> DtypeRule:
    def rule(*operands: str) -> str:
        for operand in operands:
            if not dtypes.is_float(operand):
                raise TypeError(f"T.{name}: expected a floating-point operand, got {operand}; convert it with .astype")
        return operands[0]

    return rule


def _integers(name: str, *, bools: bool = False) -> DtypeRule:
    def rule(*operands: str) -> str:
        for operand in operands:
            if not (dtypes.is_int(operand) or (bools and dtypes.is_bool(operand))):
                raise TypeError(f"T.{name}: expected an integer operand, got {operand}")
        return operands[0]

    return rule


def _test(name: str) -> DtypeRule:
    def rule(*operands: str) -> str:
        _floats(name)(*operands)
        return dtypes.vector("bool", dtypes.lanes(operands[0]))

    return rule


def _ldexp_rule(x: str, exponent: str) -> str:
    if not dtypes.is_float(x) or not dtypes.is_int(exponent):
        raise TypeError(f"T.ldexp: expected a float and an integer, got {x} and {exponent}")
    return x


def _choice_rule(condition: str, a: str, b: str) -> str:
    if not dtypes.is_bool(condition):
        raise TypeError(f"T.if_then_else: expected a bool condition, got {condition}")
    if a != b:
        raise TypeError(f"T.if_then_else: both values must have one dtype, got {a} and {b}")
    return a


def _same(*operands: str) -> str:
    return operands[0]


# --------------------------------------------------------------------------------------------------- numpy's meanings


def _float_map(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of Python floats applied to each element, the dtype kept."""

    def apply(x: Any) -> Any:
        values = np.asarray(x)
        flat = [function(float(v)) for v in values.ravel()]
        return np.array(flat, dtype=values.dtype).reshape(values.shape)

    return apply


def _sigmoid(x: Any) -> Any:
    values = np.asarray(x)
    small = np.exp(-np.abs(values))  # never overflows
    one = values.dtype.type(1)
    return np.where(values >= 0, one / (one + small), small / (one + small)).astype(values.dtype)


def _rsqrt(x: Any) -> Any:
    values = np.asarray(x)
    with np.errstate(all="ignore"):
        return values.dtype.type(1) / np.sqrt(values)


def _bits(x: Any) -> tuple[Any, int]:
    values = np.asarray(x)
    width = values.dtype.itemsize * 8
    return values.view(np.dtype(f"u{values.dtype.itemsize}")).astype(np.uint64), width


def _popcount(x: Any) -> Any:
    values, width = _bits(x)
    count = np.zeros(values.shape, np.uint64)
    for bit in range(width):
        count += (values >> np.uint64(bit)) & np.uint64(1)
    return count.astype(np.asarray(x).dtype)


def _clz(x: Any) -> Any:
    values, width = _bits(x)
    count = np.zeros(values.shape, np.int32)
    found = np.zeros(values.shape, bool)
    for bit in reversed(range(width)):
        found |= ((values >> np.uint64(bit)) & np.uint64(1)).astype(bool)
        count += ~found
    return count.astype(np.int32)


def _shift_left(a: Any, b: Any) -> Any:
    """0 for shifts by the width or more (and for negative counts, which are huge when unsigned)."""
    a, b = np.asarray(a), np.asarray(b)
    width = a.dtype.itemsize * 8
    valid = (b >= 0) & (b < width)
    return np.where(valid, np.left_shift(a, np.where(valid, b, 0).astype(a.dtype)), np.zeros((), a.dtype))


def _shift_right(a: Any, b: Any) -> Any:
    """Arithmetic for signed values; 0 or -1 for shifts by the width or more (and for negative counts)."""
    a, b = np.asarray(a), np.asarray(b)
    width = a.dtype.itemsize * 8
    valid = (b >= 0) & (b < width)
    sign = np.array(-1 if a.dtype.kind == "i" else 0, a.dtype)
    rest = np.where(a < 0, sign, np.zeros((), a.dtype))
    return np.where(valid, np.right_shift(a, np.where(valid, b, 0).astype(a.dtype)), rest)


def _fma(a: Any, b: Any, c: Any) -> Any:
    """Through twice the width: the product is exact there (float64 has no wider type and rounds twice)."""
    narrow = np.asarray(c).dtype
    wide = np.dtype({8: "float64", 4: "float64"}.get(narrow.itemsize, "float32"))
    product = np.multiply(a, b, dtype=wide)
    return np.add(product, c, dtype=wide).astype(narrow)


def _dot_pairs(x: Any, y: Any) -> Any:
    """Sums of products of the 16-bit halves, modulo 2**32 as the instructions do."""
    a, b = np.asarray(x).astype(np.int64), np.asarray(y).astype(np.int64)
    low = ((a & 0xFFFF) ^ 0x8000) - 0x8000, ((b & 0xFFFF) ^ 0x8000) - 0x8000
    return (low[0] * low[1] + (a >> 16) * (b >> 16)).astype(np.int32)


def _pair_rule(*dtypes_given: str) -> str:
    for dtype in dtypes_given:
        if dtypes.element(dtype) != "int32":
            raise TypeError(f"T.dot_pairs: expected int32, whose halves are multiplied, got {dtype}")
    return max(dtypes_given, key=dtypes.lanes)


def _not_computable(*_operands: Any) -> Any:
    raise NotImplementedError("the intrinsic has no numpy meaning: it calls out of the program")


# -------------------------------------------------------------------------------------------------------- the table


def _declare(name: str, arity: int, numpy: Callable[..., Any], rule: DtypeRule, doc: str, **facts: Any) -> Op:
    row = Intrinsic(arity, numpy, rule)
    pure = bool(facts.pop("pure", True))
    return OPS.register(f"tirx.{name}", Op(f"tirx.{name}", doc, pure=pure, facts={"intrinsic": row, **facts}))


_UNARY: tuple[_Row, ...] = (
    ("exp", np.exp, "e to the power x."),
    ("exp2", np.exp2, "2 to the power x."),
    ("exp10", lambda x: np.power(np.asarray(x).dtype.type(10), x), "10 to the power x."),
    ("expm1", np.expm1, "exp(x) - 1, accurate near 0."),
    ("log", np.log, "Natural logarithm."),
    ("log2", np.log2, "Logarithm to base 2."),
    ("log10", np.log10, "Logarithm to base 10."),
    ("log1p", np.log1p, "log(1 + x), accurate near 0."),
    ("sqrt", np.sqrt, "Square root."),
    ("rsqrt", _rsqrt, "1 / sqrt(x)."),
    ("sigmoid", _sigmoid, "1 / (1 + exp(-x))."),
    ("tanh", np.tanh, "Hyperbolic tangent."),
    ("sinh", np.sinh, "Hyperbolic sine."),
    ("cosh", np.cosh, "Hyperbolic cosine."),
    ("asinh", np.arcsinh, "Inverse hyperbolic sine."),
    ("acosh", np.arccosh, "Inverse hyperbolic cosine."),
    ("atanh", np.arctanh, "Inverse hyperbolic tangent."),
    ("sin", np.sin, "Sine."),
    ("cos", np.cos, "Cosine."),
    ("tan", np.tan, "Tangent."),
    ("asin", np.arcsin, "Inverse sine."),
    ("acos", np.arccos, "Inverse cosine."),
    ("atan", np.arctan, "Inverse tangent."),
    ("erf", _float_map(math.erf), "Error function."),
    ("floor", np.floor, "The greatest integer not above x."),
    ("ceil", np.ceil, "The least integer not below x."),
    ("round", np.rint, "The nearest integer; halves go to the even one."),
    ("nearbyint", np.rint, "The nearest integer; halves go to the even one."),
    ("trunc", np.trunc, "The integer part."),
    ("fabs", np.abs, "Absolute value."),
)
for _name, _function, _doc in _UNARY:
    _declare(_name, 1, _function, _floats(_name), _doc)

_BINARY: tuple[_Row, ...] = (
    ("pow", np.power, "x to the power y."),
    ("fmod", np.fmod, "The remainder of x / y with the sign of x."),
    ("atan2", np.arctan2, "The angle of the point (y, x)."),
    ("hypot", np.hypot, "sqrt(x * x + y * y) without overflow between."),
    ("copysign", np.copysign, "The magnitude of x with the sign of y."),
    ("nextafter", np.nextafter, "The next representable value after x towards y."),
)
for _name, _function, _doc in _BINARY:
    _declare(_name, 2, _function, _floats(_name), _doc)

_TESTS: tuple[_Row, ...] = (
    ("isnan", np.isnan, "Whether x is not a number."),
    ("isinf", np.isinf, "Whether x is an infinity."),
    ("isfinite", np.isfinite, "Whether x is neither an infinity nor NaN."),
)
for _name, _function, _doc in _TESTS:
    _declare(_name, 1, _function, _test(_name), _doc)

_BITWISE: tuple[_Row, ...] = (
    ("bitwise_and", np.bitwise_and, "Bits set in both."),
    ("bitwise_or", np.bitwise_or, "Bits set in either."),
    ("bitwise_xor", np.bitwise_xor, "Bits set in one of the two."),
)
for _name, _function, _doc in _BITWISE:
    _declare(_name, 2, _function, _integers(_name, bools=True), _doc)

_declare("bitwise_not", 1, np.invert, _integers("bitwise_not", bools=True), "All bits flipped.")
_declare("shift_left", 2, _shift_left, _integers("shift_left"), "x * 2**y in the dtype; 0 from the width on.")
_declare("shift_right", 2, _shift_right, _integers("shift_right"), "floor(x / 2**y); 0 or -1 from the width on.")
_declare("popcount", 1, _popcount, _integers("popcount"), "How many bits are set.")
_declare(
    "clz", 1, _clz, lambda x: dtypes.vector("int32", dtypes.lanes(_integers("clz")(x))), "How many leading bits are 0."
)
_declare("dot_pairs", 2, _dot_pairs, _pair_rule, "The sum of the products of the 16-bit halves of two int32.")
_declare("fma", 3, _fma, _floats("fma"), "a * b + c, rounded once.")
_declare("ldexp", 2, np.ldexp, _ldexp_rule, "x * 2**y for an integer y.")
_declare("if_then_else", 3, np.where, _choice_rule, "b or c by a; only the chosen value is evaluated.", lazy=True)
_declare("likely", 1, lambda x: x, _same, "x, with the hint that it is mostly true.")
_declare("reinterpret", 1, _not_computable, _same, "The bits of x as another dtype (``ty_args``).")
_declare("call_extern", -1, _not_computable, _same, "A call of a native function by name.", pure=False)
_declare("call_pure_extern", -1, _not_computable, _same, "A call of a native function without effects.")
_declare("call_packed", -1, _not_computable, _same, "A call of a registered Python function by name.", pure=False)
_declare("assume", 1, lambda x: x, _same, "The programmer promises that x holds.", pure=False)


_OPAQUE: tuple[tuple[str, int, str, str], ...] = (
    # name, operands (-1: any), result ("first"/"last": a dtype that is written first or last), meaning
    ("address_of", 1, "handle", "The address of an element."),
    ("prefetch", 4, "int32", "Bring an address close: to write (1) or read (0), locality 0 to 3, data cache (1)."),
    ("isnullptr", 1, "bool", "Whether a pointer is null."),
    ("type_annotation", 0, "first", "A dtype, as an operand of ``tvm_access_ptr``."),
    ("tvm_access_ptr", 5, "handle", "A pointer to a part of a buffer."),
    ("tvm_struct_get", 3, "last", "A field of a structure of the runtime."),
    ("tvm_struct_set", 4, "int32", "Set a field of a structure of the runtime."),
    ("tvm_stack_alloca", 2, "handle", "Memory on the stack."),
    ("tvm_stack_make_shape", -1, "handle", "A shape on the stack."),
    ("tvm_stack_make_array", 6, "handle", "An array's header on the stack."),
    ("tvm_thread_invariant", 1, "same", "x, with the promise that it is the same in every thread."),
    ("tvm_storage_sync", -1, "int32", "Wait for the other threads."),
    ("tvm_thread_allreduce", -1, "handle", "A reduction over threads."),
    ("anylist_getitem", 2, "handle", "An entry of a list of values."),
    ("anylist_setitem_call_packed", -1, "int32", "Set an entry of a list to the result of a registered function."),
    ("call_cpacked", -1, "int32", "A call of a packed function in C."),
    ("call_packed_lowered", -1, "int32", "A call of a registered function, arguments on the stack."),
    ("call_llvm_intrin", -1, "first", "A call of an LLVM intrinsic."),
    ("call_llvm_pure_intrin", -1, "first", "A call of an LLVM intrinsic without effects."),
    ("get_active_lane_mask", 2, "first", "Which lanes are below a limit."),
    ("vscale", 0, "int32", "The multiple of scalable vectors."),
)
for _name, _arity, _result, _doc in _OPAQUE:
    _declare(_name, -1, _not_computable, _same, _doc, pure=False, result=_result, operands=_arity)
for _name in ("call_extern", "call_pure_extern", "reinterpret"):
    OPS.get(f"tirx.{_name}").facts["result"] = "first"


def opaque(name: str, *args: Any) -> Expr:
    """The call of an intrinsic that only has a meaning to some backends; kept, checked for its count of operands."""
    op = OPS.get(f"tirx.{name}")
    result, arity = op.facts["result"], op.facts["operands"]
    rest = list(args)
    dtype = result
    if result in ("first", "last"):
        if not rest:
            raise TypeError(f"T.{name}: the dtype is missing")
        given = rest.pop(0 if result == "first" else -1)
        dtype = dtypes.check_dtype(given.value if isinstance(given, StringImm) else getattr(given, "dtype", given))
    if arity >= 0 and len(rest) != arity:
        raise TypeError(f"T.{name}: expected {arity} operand{'s' * (arity != 1)}, got {len(rest)}")
    operands = tuple(StringImm(a) if isinstance(a, str) else _scalar(a) for a in rest)
    if result == "same":
        dtype = scalar_dtype(operands[0])
    return Call(op, operands, ty_args=(prim_type(dtype),), ty=prim_type(dtype))


def _own_reinterpret(call: Call) -> Callable[[Any], Any]:
    """The numpy meaning of one ``reinterpret`` call."""
    target = dtypes.to_numpy(scalar_dtype(call))
    return lambda x: np.asarray(x, order="C").view(target)


def numpy_meaning(call: Call) -> Callable[..., Any]:
    """The numpy function that computes an intrinsic call from its operands' values."""
    assert isinstance(call.op, Op)
    if call.op.name == "tirx.reinterpret":
        return _own_reinterpret(call)
    function: Callable[..., Any] = call.op.facts["intrinsic"].numpy
    return function


# ------------------------------------------------------------------------------------------------------- building calls


def intrinsic(name: str, *args: ExprLike) -> Expr:
    """The call of an intrinsic: literals take the dtype of the other operands; operands are brought to one dtype.

    Raises ``TypeError`` for a wrong number of operands or dtypes that the intrinsic does not take.
    """
    op = OPS.get(f"tirx.{name}")
    row: Intrinsic = op.facts["intrinsic"]
    if row.arity >= 0 and len(args) != row.arity:
        raise TypeError(f"T.{name}: expected {row.arity} operand{'s' * (row.arity != 1)}, got {len(args)}")
    operands = _operands(name, args)
    return Call(op, operands, ty=prim_type(row.dtype(*(scalar_dtype(a) for a in operands))))


def _operands(name: str, args: tuple[ExprLike, ...]) -> tuple[Expr, ...]:
    if name == "if_then_else":
        return (as_expr(args[0]), *match_dtypes(args[1], args[2]))
    if name == "ldexp":
        return (_scalar(args[0]), as_expr(args[1], "int32"))
    if len(args) == 2:
        return match_dtypes(*args, follow=name.startswith(("bitwise_", "shift_")))
    return tuple(_scalar(a) for a in args)


def _scalar(value: ExprLike) -> Expr:
    return value if isinstance(value, Expr) else const(value)


def call_extern(kind: str, dtype: str, function: str, *args: ExprLike) -> Expr:
    """``T.call_extern("int32", "name", a, b)``, and its relatives by ``kind``; ``"void"``: there is no result."""
    name = function.value if isinstance(function, StringImm) else function
    if not isinstance(name, str):
        raise TypeError(f"T.{kind}: expected the function's name, got {name!r}")
    ty = TupleType(()) if dtype == "void" else prim_type(dtype)
    operands = tuple(StringImm(a) if isinstance(a, str) else _scalar(a) for a in args)
    return Call(OPS.get(f"tirx.{kind}"), (StringImm(name), *operands), ty_args=(ty,), ty=ty)


def reinterpret(dtype: str, value: ExprLike) -> Expr:
    """The bits of ``value`` as another dtype of the same width."""
    operand = _scalar(value)
    source = scalar_dtype(operand)
    if dtypes.nbytes(source) != dtypes.nbytes(dtype):
        raise TypeError(f"T.reinterpret: {source} and {dtype} have different widths")
    ty = prim_type(dtype)
    return Call(OPS.get("tirx.reinterpret"), (operand,), ty_args=(ty,), ty=ty)


def absolute(value: ExprLike) -> Expr:
    """``|x|``: ``fabs`` for floats, a selection for integers."""
    operand = _scalar(value)
    dtype = scalar_dtype(operand)
    if dtypes.is_float(dtype):
        return intrinsic("fabs", operand)
    zero = const(0, dtype)
    return Select(operand >= zero, operand, zero - operand)  # type: ignore[operator]


def min_value(dtype: str) -> Expr:
    """The least finite value of a dtype."""
    if dtypes.is_float(dtype):
        return const(float(dtypes.finfo(dtype).min), dtype)
    return const(dtypes.int_range(dtype)[0], dtype)


def max_value(dtype: str) -> Expr:
    """The greatest finite value of a dtype."""
    if dtypes.is_float(dtype):
        return const(float(dtypes.finfo(dtype).max), dtype)
    return const(dtypes.int_range(dtype)[1], dtype)


def infinity(dtype: str) -> Expr:
    """Positive infinity."""
    if not dtypes.is_float(dtype):
        raise TypeError(f"T.infinity: expected a floating-point dtype, got {dtype}")
    if not math.isinf(dtypes.extreme(dtype, low=False)):
        raise TypeError(f"T.infinity: {dtype} has no infinity; T.max_value is its largest number")
    return const(math.inf, dtype)


SCALAR_OPERATORS.update(
    {
        "and": lambda a, b: intrinsic("bitwise_and", a, b),
        "or": lambda a, b: intrinsic("bitwise_or", a, b),
        "xor": lambda a, b: intrinsic("bitwise_xor", a, b),
        "lshift": lambda a, b: intrinsic("shift_left", a, b),
        "rshift": lambda a, b: intrinsic("shift_right", a, b),
        "pow": lambda a, b: intrinsic("pow", a, b),
        "invert": lambda a: intrinsic("bitwise_not", a),
    }
)
