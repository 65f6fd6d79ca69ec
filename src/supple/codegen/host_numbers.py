"""Scalar expressions in host code: 64-bit integers whose arithmetic is checked, bools, floats.

Every integer is an ``i64``: signed, but for uint64, whose operations are unsigned ones. Narrow floats are float32
values that are rounded after each operation (``host_floats``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from supple.base import dtypes
from supple.base.errors import NotSupportedError
from supple.base.source import Span
from supple.codegen import host_floats
from supple.codegen.kernel_builder import float_text, llvm_type
from supple.codegen.writer import Writer
from supple.ir import expr as E
from supple.ir.expr import FloatImm, IntImm, Var
from supple.ir.host import show
from supple.ir.node import Expr, children
from supple.ir.walk import free_symbols
from supple.runtime.abi import ErrorSite, Status

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_UNSIGNED = "uint64"


def _is_signed(dtype: str) -> bool:
    """Whether a dtype's numbers are integers that fit in a signed 64-bit one."""
    return dtypes.is_int(dtype) and dtype != _UNSIGNED


def number_type(dtype: str) -> str:
    """The LLVM type that holds a scalar in host code: ``i64`` for every integer, ``i1``, ``float``, ``double``."""
    row = dtypes.row(dtype)
    if dtypes.lanes(dtype) > 1 or row.kind == "handle":
        raise NotSupportedError(f"host code does not support scalars of dtype {dtype}")
    if dtypes.is_narrow(dtype):
        return "float"
    return {"int": "i64", "uint": "i64", "bool": "i1"}.get(row.kind) or row.llvm


class Function(Protocol):
    """What numbers need of the emission of a function (see ``codegen.host``)."""

    name: str
    w: Writer
    declarations: set[str]
    here: Span | None

    def failure(self, site: ErrorSite, values: Sequence[str], status: Status = ...) -> str:
        """The label of code that records an error site and leaves the function."""


class Numbers:
    """Emits scalar expressions of one function. Common subexpressions (by identity) are computed once a body."""

    def __init__(self, host: Function) -> None:
        self.host = host
        self.scopes: list[dict[int, str]] = [{}]
        self.keep: list[Expr] = []
        self._root: Expr | None = None
        self._failed: str | None = None

    @property
    def w(self) -> Writer:
        return self.host.w

    def define(self, var: Var, name: str) -> None:
        """The value of a variable from here to the end of the body."""
        self.keep.append(var)
        self.scopes[-1][id(var)] = name

    def known(self, e: Expr) -> str | None:
        """The value that was computed already, if any."""
        for scope in reversed(self.scopes):
            name = scope.get(id(e))
            if name is not None:
                return name
        return None

    def value(self, e: Expr) -> str:
        """Code for an expression; the LLVM value. Overflow ends the function with a message that names ``e``."""
        self._root, self._failed = e, None
        stack: list[tuple[Expr, bool]] = [(e, False)]
        while stack:
            current, expanded = stack.pop()
            if isinstance(current, (IntImm, FloatImm)) or self.known(current) is not None:
                continue
            if isinstance(current, Var):
                raise NotSupportedError(f"{self.host.name}: {current.name} has no value here", current.span)
            operands = [c for c in children(current) if isinstance(c, Expr)]
            if not expanded:
                stack.append((current, True))
                stack.extend((operand, False) for operand in operands)
                continue
            name = self._emit(current, [self._operand(operand) for operand in operands])
            self.keep.append(current)
            self.scopes[-1][id(current)] = name
        return self._operand(e)

    def _operand(self, e: Expr) -> str:
        if isinstance(e, IntImm):
            signed = e.value - (1 << 64) if e.value > _INT64_MAX else e.value
            return ("true" if e.value else "false") if e.dtype == "bool" else str(signed)
        if isinstance(e, FloatImm):
            if dtypes.is_narrow(e.dtype):
                return float_text(host_floats.nearest(e.value, e.dtype), "float32")
            return float_text(e.value, e.dtype)
        name = self.known(e)
        assert name is not None
        return name

    def _emit(self, e: Expr, operands: list[str]) -> str:
        function = _EMIT.get(type(e))
        if function is None:
            raise NotSupportedError(f"{self.host.name}: host code does not support {type(e).__name__}", e.span)
        return function(self, e, *operands)

    # --------------------------------------------------------------------------------------------------------- errors

    def _fail(self) -> str:
        """The label where an expression that does not fit goes (one for a root expression)."""
        if self._failed is None:
            root = self._root
            assert root is not None
            symbols = [s for s in free_symbols(root) if self.known(s) is not None and _is_signed(s.dtype)][:5]
            known = ", ".join(f"{s.name} = {{{i}}}" for i, s in enumerate(symbols))
            text = f"{self.host.name}: {show(root)} does not fit in 64 bits" + (f" ({known})" if known else "")
            values = tuple(self._operand(s) for s in symbols)
            self._failed = self.host.failure(
                ErrorSite("size", text, root.span or self.host.here), values, Status.BAD_SIZE
            )
        return self._failed

    def _fail_if(self, condition: str) -> None:
        fine = self.w.fresh("ok")
        self.w.emit(f"br i1 {condition}, label %{self._fail()}, label %{fine}")
        self.w.label(fine)

    def _fit(self, dtype: str, value: str) -> str:
        """An integer that must fit in a dtype narrower than 64 bits."""
        row = dtypes.row(dtype)
        if row.bits < 64:
            half = 1 << (row.bits - 1)
            low, high = (-half, half - 1) if row.kind == "int" else (0, 2 * half - 1)
            below = self.w.value(f"icmp slt i64 {value}, {low}")
            above = self.w.value(f"icmp sgt i64 {value}, {high}")
            self._fail_if(self.w.value(f"or i1 {below}, {above}"))
        return value

    # ----------------------------------------------------------------------------------------------------- arithmetic

    def checked(self, operation: str, e: E.BinaryOp, a: str, b: str) -> str:
        """``add``, ``sub`` or ``mul`` that fails on overflow."""
        operation = f"{'u' if e.dtype == _UNSIGNED else 's'}{operation}"
        self.host.declarations.add(f"declare {{ i64, i1 }} @llvm.{operation}.with.overflow.i64(i64, i64)")
        pair = self.w.value(f"call {{ i64, i1 }} @llvm.{operation}.with.overflow.i64(i64 {a}, i64 {b})")
        value = self.w.value(f"extractvalue {{ i64, i1 }} {pair}, 0")
        self._fail_if(self.w.value(f"extractvalue {{ i64, i1 }} {pair}, 1"))
        return self._fit(e.dtype, value)

    def divide(self, e: E.BinaryOp, a: str, b: str) -> tuple[str, str, str]:
        """Quotient and remainder of truncating division, and whether the divisor is zero (then they are arbitrary)."""
        w = self.w
        zero = w.value(f"icmp eq i64 {b}, 0")
        safe = w.value(f"select i1 {zero}, i64 1, i64 {b}")
        if e.dtype == _UNSIGNED:
            return w.value(f"udiv i64 {a}, {safe}"), w.value(f"urem i64 {a}, {safe}"), zero
        lowest = w.value(f"icmp eq i64 {a}, {_INT64_MIN}")
        minus = w.value(f"icmp eq i64 {b}, -1")
        self._fail_if(w.value(f"and i1 {lowest}, {minus}"))
        return w.value(f"sdiv i64 {a}, {safe}"), w.value(f"srem i64 {a}, {safe}"), zero

    def floor_divide(self, e: E.BinaryOp, a: str, b: str) -> tuple[str, str, str]:
        """The same, rounding down."""
        w = self.w
        quotient, rest, zero = self.divide(e, a, b)
        if e.dtype == _UNSIGNED:
            return quotient, rest, zero
        inexact = w.value(f"icmp ne i64 {rest}, 0")
        mixed = w.value(f"xor i64 {rest}, {b}")
        opposite = w.value(f"icmp slt i64 {mixed}, 0")
        adjust = w.value(f"and i1 {inexact}, {opposite}")
        one = w.value(f"zext i1 {adjust} to i64")
        extra = w.value(f"select i1 {adjust}, i64 {b}, i64 0")
        return w.value(f"sub i64 {quotient}, {one}"), w.value(f"add i64 {rest}, {extra}"), zero

    def zero_if(self, zero: str, value: str) -> str:
        return self.w.value(f"select i1 {zero}, i64 0, i64 {value}")

    def float_op(self, e: E.BinaryOp, operation: str, a: str, b: str) -> str:
        return self.rounded(e.dtype, "float32", self.w.value(f"{operation} {number_type(e.dtype)} {a}, {b}"))

    def rounded(self, dtype: str, source: str, value: str) -> str:
        """A float (of the dtype ``source`` in LLVM) as the nearest value of a narrow dtype; others as they are."""
        if not dtypes.is_narrow(dtype):
            return value
        name, text = host_floats.rounding(dtype, source)
        self.host.declarations.add(text)
        return self.w.value(f"call float {name}({'float' if source == 'float32' else 'double'} {value})")

    def taken_by_kernels(self, dtype: str, value: str) -> str:
        """A scalar as a kernel takes it."""
        ty = llvm_type(dtype)
        if dtypes.is_narrow(dtype):
            name, text = host_floats.code(dtype)
            self.host.declarations.add(text)
            return self.w.value(f"call {ty} {name}(float {value})")
        return value if ty in ("i64", "i1", "float", "double") else self.w.value(f"trunc i64 {value} to {ty}")


def _arithmetic(checked: str, floating: str) -> Callable[..., str]:
    def emit(n: Numbers, e: E.BinaryOp, a: str, b: str) -> str:
        if dtypes.is_float(e.dtype):
            return n.float_op(e, floating, a, b)
        return n.checked(checked, e, a, b)

    return emit


def _integers_only(n: Numbers, e: E.BinaryOp) -> None:
    if not dtypes.is_int(e.dtype):
        raise NotSupportedError(f"{n.host.name}: host code does not support {type(e).__name__} of {e.dtype}", e.span)


def _floordiv(n: Numbers, e: E.BinaryOp, a: str, b: str) -> str:
    _integers_only(n, e)
    quotient, _, zero = n.floor_divide(e, a, b)
    return n._fit(e.dtype, n.zero_if(zero, quotient))


def _floormod(n: Numbers, e: E.BinaryOp, a: str, b: str) -> str:
    _integers_only(n, e)
    _, rest, zero = n.floor_divide(e, a, b)
    return n.zero_if(zero, rest)


def _div(n: Numbers, e: E.BinaryOp, a: str, b: str) -> str:
    if dtypes.is_float(e.dtype):
        return n.float_op(e, "fdiv", a, b)
    quotient, _, zero = n.divide(e, a, b)
    return n._fit(e.dtype, n.zero_if(zero, quotient))


def _mod(n: Numbers, e: E.BinaryOp, a: str, b: str) -> str:
    _integers_only(n, e)
    _, rest, zero = n.divide(e, a, b)
    return n.zero_if(zero, rest)


def _extreme(predicate: str, intrinsic: str) -> Callable[..., str]:
    def emit(n: Numbers, e: E.BinaryOp, a: str, b: str) -> str:
        ty = number_type(e.dtype)
        if dtypes.is_float(e.dtype):
            suffix = "f32" if ty == "float" else "f64"
            n.host.declarations.add(f"declare {ty} @llvm.{intrinsic}.{suffix}({ty}, {ty})")
            return n.w.value(f"call {ty} @llvm.{intrinsic}.{suffix}({ty} {a}, {ty} {b})")
        wanted = predicate.replace("s", "u", 1) if e.dtype == _UNSIGNED else predicate
        first = n.w.value(f"icmp {wanted} i64 {a}, {b}")
        return n.w.value(f"select i1 {first}, i64 {a}, i64 {b}")

    return emit


def _compare(signed: str, floating: str) -> Callable[..., str]:
    def emit(n: Numbers, e: E.CompareOp, a: str, b: str) -> str:
        dtype = E.scalar_dtype(e.a)
        ty = number_type(dtype)
        if dtypes.is_float(dtype):
            return n.w.value(f"fcmp {floating} {ty} {a}, {b}")
        unsigned = (ty == "i1" or dtype == _UNSIGNED) and signed not in ("eq", "ne")
        predicate = signed.replace("s", "u", 1) if unsigned else signed
        return n.w.value(f"icmp {predicate} {ty} {a}, {b}")

    return emit


def _logic(operation: str) -> Callable[..., str]:
    def emit(n: Numbers, e: E.CompareOp, a: str, b: str) -> str:
        return n.w.value(f"{operation} i1 {a}, {b}")

    return emit


def _not(n: Numbers, e: E.Not, a: str) -> str:
    return n.w.value(f"xor i1 {a}, true")


def _select(n: Numbers, e: E.Select, condition: str, a: str, b: str) -> str:
    ty = number_type(e.dtype)
    return n.w.value(f"select i1 {condition}, {ty} {a}, {ty} {b}")


def _cast(n: Numbers, e: E.Cast, a: str) -> str:
    source, target = E.scalar_dtype(e.value), e.dtype
    have, want = number_type(source), number_type(target)
    if want == "i64" and have == "i64":
        if source != target and _UNSIGNED in (source, target) and dtypes.row(source).kind != dtypes.row(target).kind:
            n._fail_if(n.w.value(f"icmp slt i64 {a}, 0"))  # negative, or too large for a signed number
        elif source != target and source == _UNSIGNED:
            n._fail_if(n.w.value(f"icmp slt i64 {a}, 0"))
        wider = dtypes.row(target).bits > dtypes.row(source).bits and dtypes.row(target).kind == "int"
        return a if wider or source == target else n._fit(target, a)
    if want == "i64" and have == "i1":
        return n.w.value(f"zext i1 {a} to i64")
    if want == "i1":
        return n.w.value(f"fcmp une {have} {a}, 0.0" if have in ("float", "double") else f"icmp ne {have} {a}, 0")
    if want == "i64":
        suffix = "f32" if have == "float" else "f64"
        convert = "fptoui" if target == _UNSIGNED else "fptosi"
        n.host.declarations.add(f"declare i64 @llvm.{convert}.sat.i64.{suffix}({have})")
        return n._fit(target, n.w.value(f"call i64 @llvm.{convert}.sat.i64.{suffix}({have} {a})"))
    if have in ("i64", "i1"):
        wide = "double" if target == "float16" else want  # where float32 would round a first time
        made = n.w.value(f"{'sitofp' if _is_signed(source) else 'uitofp'} {have} {a} to {wide}")
        return n.rounded(target, "float64" if wide == "double" else "float32", made)
    if dtypes.is_narrow(target):
        return a if source == target else n.rounded(target, "float64" if have == "double" else "float32", a)
    if have == want:
        return a
    return n.w.value(f"{'fptrunc' if want == 'float' else 'fpext'} {have} {a} to {want}")


_EMIT: dict[type, Callable[..., str]] = {
    E.Add: _arithmetic("add", "fadd"),
    E.Sub: _arithmetic("sub", "fsub"),
    E.Mul: _arithmetic("mul", "fmul"),
    E.Div: _div,
    E.Mod: _mod,
    E.FloorDiv: _floordiv,
    E.FloorMod: _floormod,
    E.Min: _extreme("sle", "minimum"),
    E.Max: _extreme("sge", "maximum"),
    E.EQ: _compare("eq", "oeq"),
    E.NE: _compare("ne", "une"),
    E.LT: _compare("slt", "olt"),
    E.LE: _compare("sle", "ole"),
    E.GT: _compare("sgt", "ogt"),
    E.GE: _compare("sge", "oge"),
    E.And: _logic("and"),
    E.Or: _logic("or"),
    E.Not: _not,
    E.Select: _select,
    E.Cast: _cast,
}
