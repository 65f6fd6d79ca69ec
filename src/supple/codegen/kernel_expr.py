"""Scalar expressions of loop functions as LLVM values, one handler a node kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from supple.analysis.lazy import needed_either_way
from supple.base import dtypes
from supple.base.errors import NotSupportedError
from supple.codegen import kernel_float as floats
from supple.codegen import kernel_integer as integer
from supple.codegen import kernel_memory as memory
from supple.codegen import narrow_floats, numerics, numerics_more
from supple.codegen.kernel_builder import Builder, Value, llvm_type, suffix
from supple.codegen.kernel_state import Lanes, State, Task
from supple.ir import expr as E
from supple.ir import intrinsics  # registers the operators  # noqa: F401
from supple.ir.expr import Call, Var
from supple.ir.node import Expr
from supple.ir.op import Op
from supple.ir.walk import pre_order


def literal(state: State, node: E.IntImm | E.FloatImm) -> Value:
    """A number."""
    return state.builder.const(node.value, node.dtype)


def variable(state: State, node: Var) -> Value | Task:
    """A variable, in its own dtype."""
    bound = state.lookup(node)
    if isinstance(bound, int):
        return state.builder.const(bound, node.dtype)
    if isinstance(bound, Lanes):
        return _lane_variable(state, node)
    return integer_as(state.builder, bound, node.dtype)


def integer_as(b: Builder, value: Value, dtype: str) -> Value:
    """An int64 loop counter or symbol in the dtype of its variable."""
    scalar = dtypes.element(dtype)
    if dtypes.element(value.dtype) == scalar or dtypes.row(value.dtype).kind not in ("int", "uint", "bool"):
        return value
    if dtypes.row(value.dtype).bits == dtypes.row(scalar).bits:
        return Value(value.ref, dtypes.vector(scalar, dtypes.lanes(value.dtype)), value.depth)
    if not value.ref.startswith("%"):
        return b.const(int(value.ref), scalar)
    return b.convert("trunc", value, scalar)


def _lane_variable(state: State, node: Var) -> Task:
    value = yield memory.poly_value(state, state.poly(node))
    return integer_as(state.builder, value, node.dtype)


def _pair(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    lanes = max(dtypes.lanes(x.dtype), dtypes.lanes(y.dtype))
    return b.splat(x, lanes), b.splat(y, lanes)


def _unsupported(state: State, node: E.BinaryOp, dtype: str) -> NotSupportedError:
    return NotSupportedError(f"{state.name}: {type(node).__name__} of {dtype} is not supported", node.span)


def _ints(operation: Callable[[Builder, Value, Value], Value]) -> Callable[[State, Any, Value, Value], Value]:
    return lambda state, _, x, y: operation(state.builder, x, y)


def _instruction(name: str) -> Callable[[State, Any, Value, Value], Value]:
    return lambda state, _, x, y: state.builder.op(name, x, y)


_ARITHMETIC: dict[type, tuple[Callable[..., Value], Callable[..., Value]]] = {
    E.Add: (_instruction("add"), floats.arithmetic("fadd")),
    E.Sub: (_instruction("sub"), floats.arithmetic("fsub")),
    E.Mul: (_instruction("mul"), floats.arithmetic("fmul")),
    E.Div: (_ints(integer.truncdiv), floats.arithmetic("fdiv")),
    E.Mod: (_ints(integer.truncmod), floats.through(numerics_more.fmod)),
    E.FloorDiv: (_ints(integer.floordiv), floats.through(numerics_more.floordiv)),
    E.FloorMod: (_ints(integer.floormod), floats.through(numerics_more.floormod)),
    E.Min: (_ints(integer.minimum), floats.extremum("llvm.minimum", "fcmp olt")),
    E.Max: (_ints(integer.maximum), floats.extremum("llvm.maximum", "fcmp ogt")),
}


def binary(state: State, node: E.BinaryOp) -> Task:
    """Arithmetic on integers or floats."""
    x = yield node.a
    y = yield node.b
    b = state.builder
    x, y = _pair(b, x, y)
    row = dtypes.row(x.dtype)
    if row.kind in ("int", "uint"):
        return _ARITHMETIC[type(node)][0](state, node, x, y)
    if row.kind == "float":
        return _ARITHMETIC[type(node)][1](state, node, x, y)
    if row.kind == "bool" and isinstance(node, (E.Min, E.Max, E.Mul, E.Add)):
        return b.op("and" if isinstance(node, (E.Min, E.Mul)) else "or", x, y)
    raise _unsupported(state, node, x.dtype)


_COMPARE = {E.EQ: "eq", E.NE: "ne", E.LT: "lt", E.LE: "le", E.GT: "gt", E.GE: "ge"}


def compare(state: State, node: E.CompareOp) -> Task:
    """A comparison; every comparison with NaN is false, except ``!=``."""
    x = yield node.a
    y = yield node.b
    b = state.builder
    x, y = _pair(b, x, y)
    name, row = _COMPARE[type(node)], dtypes.row(x.dtype)
    if row.kind == "float":
        x, y = floats.widened(b, state.target, x), floats.widened(b, state.target, y)
        return b.compare(f"fcmp {'une' if name == 'ne' else 'o' + name}", x, y)
    if name in ("eq", "ne"):
        return b.compare(f"icmp {name}", x, y)
    return b.compare(f"icmp {'s' if row.kind == 'int' else 'u'}{name}", x, y)


def is_cheap(e: Expr) -> bool:
    """Whether an expression may be evaluated although its value is not needed: it reads no memory, calls nothing."""
    return not any(isinstance(n, (E.BufferLoad, Call)) for n in pre_order(e))


def logical(state: State, node: E.And | E.Or) -> Task:
    """``and``/``or``; the second operand is evaluated only when needed if it reads memory."""
    x = yield node.a
    b = state.builder
    name = "and" if isinstance(node, E.And) else "or"
    if dtypes.lanes(x.dtype) > 1 or dtypes.lanes(node.dtype) > 1 or is_cheap(node.b):
        y = yield node.b
        x, y = _pair(b, x, y)
        return b.op(name, x, y)
    other, join = b.fresh("other"), b.fresh("join")
    before = b.block
    b.enter()
    b.branch_if(x, *((other, join) if name == "and" else (join, other)))
    b.label(other)
    y = yield node.b
    y = b.splat(y, state.width)
    after = b.block
    b.branch(join)
    b.leave()
    b.label(join)
    decided = b.const(name == "or", y.dtype)
    return b.here(f"phi {llvm_type(y.dtype)} [ {decided.ref}, %{before} ], [ {y.ref}, %{after} ]", y.dtype)


def negation(state: State, node: E.Not) -> Task:
    """``not a``."""
    x = yield node.a
    return state.builder.op("xor", x, state.builder.const(True, x.dtype))


def select(state: State, node: E.Select) -> Task:
    """Both values are evaluated."""
    c = yield node.condition
    x = yield node.true_value
    y = yield node.false_value
    return _selected(state.builder, c, x, y)


def _selected(b: Builder, c: Value, x: Value, y: Value) -> Value:
    x, y = _pair(b, x, y)
    lanes = dtypes.lanes(c.dtype)
    if lanes > 1:
        x, y = b.splat(x, lanes), b.splat(y, lanes)
    return b.select(c, x, y)


def choose(state: State, node: Call) -> Task:
    """``if_then_else``: only the chosen value is evaluated, unless both are cheap or the condition is a vector. What
    both need is evaluated before the branch."""
    condition, then, otherwise = node.args
    c = yield condition
    b = state.builder
    if dtypes.lanes(c.dtype) > 1 or (is_cheap(then) and is_cheap(otherwise)):
        x = yield then
        y = yield otherwise
        return _selected(b, c, x, y)
    for shared in needed_either_way(then, otherwise):
        _ = yield shared
    labels = [b.fresh("then"), b.fresh("else"), b.fresh("join")]
    ends: list[str] = []
    values: list[Value] = []
    mark = state.context.mark()
    b.enter()
    b.branch_if(c, labels[0], labels[1])
    for branch, value in enumerate((then, otherwise)):
        if branch:
            b.sibling()
        b.label(labels[branch])
        if not state.proved:
            state.context.assume(condition, branch == 0)
        made = yield value
        state.context.reset(mark)
        values.append(b.splat(made, max(state.width, dtypes.lanes(made.dtype))))
        ends.append(b.block)
        b.branch(labels[2])
    b.leave()
    b.label(labels[2])
    arms = ", ".join(f"[ {v.ref}, %{end} ]" for v, end in zip(values, ends, strict=True))
    return b.here(f"phi {llvm_type(values[0].dtype)} {arms}", values[0].dtype)


def convert(state: State, node: E.Cast) -> Task:
    """A conversion between dtypes."""
    value = yield node.value
    return cast(state, value, node.dtype)


def cast(state: State, value: Value, dtype: str) -> Value:
    """Integers wrap, floats round, float to integer saturates with NaN as 0, anything but 0 is True."""
    b = state.builder
    source, target = dtypes.row(value.dtype), dtypes.row(dtype)
    scalar = dtypes.element(dtype)
    if source.name == target.name:
        return value
    if target.kind == "bool":
        zero = b.const(0, value.dtype)
        if source.kind == "float":
            return b.compare("fcmp une", floats.widened(b, state.target, value), b.const(0, floats.wide(value.dtype)))
        return b.compare("icmp ne", value, zero)
    if source.kind == "float":
        if target.kind == "float":
            return floats.resize(b, state.target, value, scalar)
        value = floats.widened(b, state.target, value)
        return _saturating(b, value, scalar)
    if target.kind == "float":
        if dtypes.is_narrow(scalar):
            through = "float32" if target.is_coded else "float64"  # as ml_dtypes and numpy do
            single = b.convert("sitofp" if source.kind == "int" else "uitofp", value, through)
            return floats.resize(b, state.target, single, scalar)
        return b.convert("sitofp" if source.kind == "int" else "uitofp", value, scalar)
    if target.bits == source.bits:
        return Value(value.ref, dtypes.vector(scalar, dtypes.lanes(value.dtype)), value.depth)
    if target.bits < source.bits:
        return b.convert("trunc", value, scalar)
    return b.convert("sext" if source.kind == "int" else "zext", value, scalar)


def _saturating(b: Builder, value: Value, scalar: str) -> Value:
    """Floats as the nearest integers towards 0 that the dtype has; NaN as 0."""
    row, lanes = dtypes.row(scalar), dtypes.lanes(value.dtype)
    signed = row.kind == "int"
    if lanes == 1 or row.bits == 64:  # LLVM takes the lanes of vectors one by one
        result = dtypes.vector(scalar, lanes)
        mangled = f"llvm.{'fptosi' if signed else 'fptoui'}.sat.{suffix(result)}.{suffix(value.dtype)}"
        b.declare(f"declare {llvm_type(result)} @{mangled}({llvm_type(value.dtype)})")
        return b.pure(f"call {llvm_type(result)} @{mangled}({llvm_type(value.dtype)} {value.ref})", result, (value,))
    low, high = dtypes.int_range(scalar)
    top = float(high) if dtypes.row(value.dtype).bits == 64 else _at_most(high)
    number = b.select(b.compare("fcmp ord", value, value), value, b.const(0, value.dtype))
    number = b.select(b.compare("fcmp ogt", number, b.const(low, value.dtype)), number, b.const(low, value.dtype))
    within = b.select(b.compare("fcmp olt", number, b.const(top, value.dtype)), number, b.const(top, value.dtype))
    if row.bits < 32:
        return b.convert("trunc", b.convert("fptosi", within, "int32"), scalar)
    made = b.convert("fptosi" if signed else "fptoui", within, scalar)
    if top == high:
        return made
    return b.select(b.compare("fcmp ogt", number, b.const(top, value.dtype)), b.const(high, made.dtype), made)


def _at_most(integer: int) -> float:
    """The largest float32 up to an integer."""
    near = np.float32(integer)
    return float(near if int(near) <= integer else np.nextafter(near, np.float32(0)))


def ramp(state: State, node: E.Ramp) -> Task:
    """``base + stride * <0, 1, 2, ...>``."""
    base = yield node.base
    stride = yield node.stride
    b = state.builder
    steps = b.op("mul", b.lane_numbers(node.dtype), b.splat(stride, node.lanes))
    return b.op("add", b.splat(base, node.lanes), steps)


def broadcast(state: State, node: E.Broadcast) -> Task:
    """The value in every lane."""
    value = yield node.value
    return state.builder.splat(value, node.lanes)


def shuffle(state: State, node: E.Shuffle) -> Task:
    """Chosen lanes of some vectors. Two vectors of equal lanes (or one) are one instruction."""
    vectors: list[Value] = []
    for operand in node.vectors:
        vector = yield operand
        vectors.append(vector)
    b = state.builder
    chosen = [index.value for index in node.indices if isinstance(index, E.IntImm)]
    lanes = dtypes.lanes(vectors[0].dtype)
    if len(chosen) > 1 and len(vectors) <= 2 and lanes > 1 and dtypes.lanes(vectors[-1].dtype) == lanes:
        first, last = vectors[0], vectors[-1]
        kind = llvm_type(first.dtype)
        mask = ", ".join(f"i32 {place}" for place in chosen)
        return b.pure(
            f"shufflevector {kind} {first.ref}, {kind} {last.ref}, <{len(chosen)} x i32> <{mask}>",
            node.dtype, (first, last), "s",
        )  # fmt: skip
    elements = [(vector, lane) for vector in vectors for lane in range(dtypes.lanes(vector.dtype))]

    def element(vector: Value, lane: int) -> Value:
        return vector if dtypes.lanes(vector.dtype) == 1 else b.extract(vector, lane)

    if len(chosen) == 1:
        return element(*elements[chosen[0]])
    made = Value("zeroinitializer", node.dtype)
    for lane, place in enumerate(chosen):
        made = b.insert(made, element(*elements[place]), lane)
    return made


def let(state: State, node: E.Let) -> Task:
    """``body`` with the variable bound."""
    value = yield node.value
    state.bind(node.var, value)
    if dtypes.is_int(node.var.dtype):
        state.unknown(node.var)
    body = yield node.body
    return body


def call(state: State, node: Call) -> Task:
    """An intrinsic."""
    if not isinstance(node.op, Op):
        raise NotSupportedError(f"{state.name}: a loop function can only call intrinsics", node.span)
    name = node.op.name
    if name == "tirx.if_then_else":
        result = yield choose(state, node)
        return result
    if name in ("tirx.likely", "tirx.assume"):
        result = yield node.args[0]
        return result
    args: list[Value] = []
    handler = _INTRINSICS.get(name)
    if handler is None:
        raise NotSupportedError(f"{state.name}: native code for {name.partition('.')[2]} is not supported", node.span)
    for arg in node.args:
        value = yield arg
        args.append(value)
    lanes = max(dtypes.lanes(a.dtype) for a in args)
    return handler(state, node, *(state.builder.splat(a, lanes) for a in args))


def _bitwise(name: str) -> Callable[[State, Call, Value, Value], Value]:
    return lambda state, _, x, y: state.builder.op(name, x, y)


def _invert(state: State, _: Call, x: Value) -> Value:
    return state.builder.op("xor", x, state.builder.const(True if dtypes.is_bool(x.dtype) else -1, x.dtype))


def _shift(left: bool) -> Callable[[State, Call, Value, Value], Value]:
    return lambda state, _, x, count: integer.shift(state.builder, x, count, left)


def _popcount(state: State, _: Call, x: Value) -> Value:
    return state.builder.intrinsic("llvm.ctpop", x.dtype, x)


def _dot_pairs(state: State, _: Call, x: Value, y: Value) -> Value:
    """One instruction for a full vector, shifts and products for anything else."""
    b = state.builder
    x, y = _pair(b, x, y)
    lanes, name = dtypes.lanes(x.dtype), state.target.pair_products
    if name is not None and lanes == state.target.lanes(32):
        halves, kind = f"<{2 * lanes} x i16>", llvm_type(x.dtype)
        b.declare(f"declare {kind} @{name}({halves}, {halves})")
        wide = [b.pure(f"bitcast {kind} {v.ref} to {halves}", v.dtype, (v,)) for v in (x, y)]
        return b.pure(f"call {kind} @{name}({halves} {wide[0].ref}, {halves} {wide[1].ref})", x.dtype, wide)
    sixteen = b.const(16, x.dtype)
    low = [b.op("ashr", b.op("shl", v, sixteen), sixteen) for v in (x, y)]
    high = [b.op("ashr", v, sixteen) for v in (x, y)]
    return b.op("add", b.op("mul", *low), b.op("mul", *high))


def _clz(state: State, _: Call, x: Value) -> Value:
    b = state.builder
    kind = llvm_type(x.dtype)
    b.declare(f"declare {kind} @llvm.ctlz.{suffix(x.dtype)}({kind}, i1)")
    count = b.pure(f"call {kind} @llvm.ctlz.{suffix(x.dtype)}({kind} {x.ref}, i1 false)", x.dtype, (x,))
    return cast(state, Value(count.ref, _unsigned(x.dtype), count.depth), "int32")


def _unsigned(dtype: str) -> str:
    return dtypes.vector(f"uint{dtypes.row(dtype).bits}", dtypes.lanes(dtype))


def _reinterpret(state: State, node: Call, x: Value) -> Value:
    source, target = dtypes.row(x.dtype), dtypes.row(node.dtype)
    if source.kind == "bool" or target.kind == "bool":
        raise NotSupportedError(f"{state.name}: reinterpret of bool is not supported", node.span)
    if source.kind == "float" or target.kind == "float":
        if source.name == target.name:
            return x
        return state.builder.convert("bitcast", x, target.name)
    return Value(x.ref, dtypes.vector(target.name, dtypes.lanes(x.dtype)), x.depth)


def _nextafter(state: State, node: Call, x: Value, y: Value) -> Value:
    """The neighbour of x towards y, by its bits: magnitudes grow as integers do."""
    b = state.builder
    bits = dtypes.row(x.dtype).bits
    kind = dtypes.vector(f"int{bits}", dtypes.lanes(x.dtype))
    x_bits, y_bits = (b.convert("bitcast", v, f"int{bits}") for v in (x, y))
    x_wide, y_wide = (floats.widened(b, state.target, v) for v in (x, y))
    zero, one = b.const(0.0, x_wide.dtype), b.const(1, kind)
    outward = b.op("xor", b.compare("fcmp olt", x_wide, y_wide), b.compare("fcmp olt", x_wide, zero))
    moved = b.select(outward, b.op("add", x_bits, one), b.op("sub", x_bits, one))
    if narrow_floats.has_unsigned_zero(x.dtype):  # from the negative number next to zero: what would be -0.0 is NaN
        negative_zero = b.compare("icmp eq", moved, b.const(-(1 << (bits - 1)), kind))
        moved = b.select(negative_zero, b.const(0, kind), moved)
    smallest = b.op("or", b.op("and", y_bits, b.const(-(1 << (bits - 1)), kind)), one)
    moved = b.select(b.compare("fcmp oeq", x_wide, zero), smallest, moved)
    moved = b.select(b.compare("fcmp oeq", x_wide, y_wide), y_bits, moved)
    nan = b.convert("bitcast", b.const(math.nan, x.dtype), f"int{bits}")
    moved = b.select(b.compare("fcmp uno", x_wide, y_wide), nan, moved)
    return b.convert("bitcast", moved, dtypes.element(x.dtype))


_INTRINSICS: dict[str, Callable[..., Value]] = {
    "tirx.bitwise_and": _bitwise("and"),
    "tirx.bitwise_or": _bitwise("or"),
    "tirx.bitwise_xor": _bitwise("xor"),
    "tirx.bitwise_not": _invert,
    "tirx.shift_left": _shift(True),
    "tirx.shift_right": _shift(False),
    "tirx.popcount": _popcount,
    "tirx.dot_pairs": _dot_pairs,
    "tirx.clz": _clz,
    "tirx.reinterpret": _reinterpret,
    "tirx.nextafter": _nextafter,
    "tirx.fma": floats.fma,
    **{f"tirx.{name}": floats.through(function) for name, function in numerics.FUNCTIONS.items()},
    **{f"tirx.{name}": floats.test(predicate) for name, predicate in numerics.TESTS.items()},
}
"""How each intrinsic is computed; the operands are values of equal lanes."""

HANDLERS: dict[type, Callable[[State, Any], Any]] = {
    E.IntImm: literal,
    E.FloatImm: literal,
    Var: variable,
    **dict.fromkeys(_ARITHMETIC, binary),
    **dict.fromkeys(_COMPARE, compare),
    E.And: logical,
    E.Or: logical,
    E.Not: negation,
    E.Select: select,
    E.Cast: convert,
    E.Ramp: ramp,
    E.Broadcast: broadcast,
    E.Shuffle: shuffle,
    E.Let: let,
    E.BufferLoad: memory.load,
    Call: call,
}
