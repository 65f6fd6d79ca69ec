"""Building the LLVM text of one kernel: values with a place, scopes, hoisting, structured control flow.

Pure instructions are emitted at the outermost scope where all their operands are known and are remembered there by
their text. So common subexpressions are shared and loop-invariant code is hoisted while the text is written, and LLVM
needs no passes for it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from supple.base import dtypes


@dataclass(frozen=True, slots=True)
class Value:
    """An SSA value or constant: its text, its dtype (with lanes), and the depth of the scope that defines it."""

    ref: str
    dtype: str
    depth: int = 0


@dataclass(slots=True)
class Scope:
    """A part of a kernel whose values are known in it and in the scopes inside it."""

    lines: list[str]
    depth: int
    memo: dict[str, Value] = field(default_factory=dict)


def quoted(name: str) -> str:
    """A name as LLVM's text spells it after ``@``."""
    if name.replace("_", "a").isalnum() and name.isascii():
        return name
    plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."
    return '"' + "".join(c if c in plain else "".join(f"\\{x:02X}" for x in c.encode()) for c in name) + '"'


def llvm_type(dtype: str) -> str:
    """The type of a value in a register (bools are i1)."""
    row = dtypes.row(dtype)
    name = "i1" if row.kind == "bool" else row.llvm
    lanes = dtypes.lanes(dtype)
    return name if lanes == 1 else f"<{lanes} x {name}>"


def memory_type(dtype: str) -> str:
    """The type of a value in memory (bools are i8)."""
    name = dtypes.row(dtype).llvm
    lanes = dtypes.lanes(dtype)
    return name if lanes == 1 else f"<{lanes} x {name}>"


NAN = "0x7FF8000000000000"
"""NaN as LLVM writes it, in float32 and float64."""


def float_text(value: float, dtype: str) -> str:
    """A floating-point literal as LLVM writes it, exact to the bit (bfloat16 and the float8 kinds: their code)."""
    kind = dtypes.element(dtype)
    if dtypes.row(kind).is_coded:
        code = dtypes.convert(value, kind)
        return str(int(code.view(f"u{code.itemsize}")))
    if kind == "float16":
        try:
            bits = struct.unpack("<H", struct.pack("<e", value))[0]
        except OverflowError:
            bits = 0x7C00 if value > 0 else 0xFC00
        return f"0xH{bits:04X}"
    if kind == "float32" and math.isfinite(value):
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = math.copysign(math.inf, value)
    if math.isnan(value):
        return NAN
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Builder:
    """Writes the body of one function."""

    def __init__(self) -> None:
        self._names = 0
        self._out: list[list[str]] = [["entry:"]]
        self._scopes = [Scope(self._out[0], 0)]
        self.allocas: list[str] = []
        self.declarations: set[str] = set()  # texts beside the function: declarations, and functions that it calls
        self.block = "entry"

    # ------------------------------------------------------------------------------------------------ instructions

    @property
    def depth(self) -> int:
        """The depth of the current scope."""
        return len(self._scopes) - 1

    def fresh(self, hint: str) -> str:
        """A new name without its sigil."""
        self._names += 1
        return f"{hint}{self._names}"

    def pure(self, text: str, dtype: str, operands: Iterable[Value], hint: str = "v") -> Value:
        """A value computed from operands only. Emitted once, as far out as the operands allow."""
        depth = 0
        for operand in operands:
            if operand.depth > depth:
                depth = operand.depth
        scope = self._scopes[depth]
        known = scope.memo.get(text)
        if known is None:
            name = f"%{self.fresh(hint)}"
            scope.lines.append(f"  {name} = {text}")
            known = scope.memo[text] = Value(name, dtype, depth)
        return known

    def here(self, text: str, dtype: str, hint: str = "v") -> Value:
        """A value computed at this point (loads, phis)."""
        name = f"%{self.fresh(hint)}"
        self.emit(f"{name} = {text}")
        return Value(name, dtype, self.depth)

    def emit(self, text: str) -> None:
        """An instruction without a value."""
        self._scopes[-1].lines.append(f"  {text}")

    def declare(self, text: str) -> None:
        """A declaration of an LLVM intrinsic: ``declare float @llvm.fma.f32(float, float, float)``."""
        self.declarations.add(text)

    def intrinsic(self, name: str, dtype: str, *args: Value, result: str | None = None) -> Value:
        """A call of an overloaded LLVM intrinsic, ``llvm.fma`` on ``float32x8`` becoming ``llvm.fma.v8f32``."""
        types = ", ".join(llvm_type(a.dtype) for a in args)
        returned = llvm_type(result or dtype)
        self.declare(f"declare {returned} @{name}.{suffix(dtype)}({types})")
        texts = ", ".join(f"{llvm_type(a.dtype)} {a.ref}" for a in args)
        return self.pure(f"call {returned} @{name}.{suffix(dtype)}({texts})", result or dtype, args)

    # ------------------------------------------------------------------------------------------------ control flow

    def enter(self) -> None:
        """Open a scope: what is emitted next is inside, values of outer depth still go before it.

        The branch into the scope is emitted inside, so that the place before it stays open for hoisted values.
        """
        self._out.append([])
        self._scopes.append(Scope(self._out[-1], len(self._scopes)))

    def leave(self) -> None:
        """Close the scope; the outer one goes on after it."""
        self._scopes.pop()
        self._out.append([])
        self._scopes[-1].lines = self._out[-1]

    def sibling(self) -> None:
        """Close the scope and open another beside it (``else`` after ``then``)."""
        self._scopes.pop()
        self.enter()

    def scope(self) -> Scope:
        """The scope that is open."""
        return self._scopes[-1]

    def is_open(self, scope: Scope) -> bool:
        """Whether a scope is the open one or around it, so that its values can be used."""
        return scope.depth < len(self._scopes) and self._scopes[scope.depth] is scope

    def label(self, name: str) -> None:
        """Start a basic block."""
        self._scopes[-1].lines.append(f"{name}:")
        self.block = name

    def branch(self, target: str) -> None:
        """Jump, and end the block."""
        self.emit(f"br label %{target}")

    def branch_if(self, condition: Value, then: str, otherwise: str) -> None:
        """Jump by a condition, and end the block."""
        self.emit(f"br i1 {condition.ref}, label %{then}, label %{otherwise}")

    def unless(self, unusual: Value, usual: Value, function: str, *args: Value) -> Value:
        """``usual``, or what a function gives where ``unusual`` (a bool) is true, which is expected hardly ever."""
        memo, key = self._scopes[-1].memo, f"{function} {[a.ref for a in args]}"
        if key in memo:
            return memo[key]
        kind = llvm_type(usual.dtype)
        rare, join, before = self.fresh("rare"), self.fresh("join"), self.block
        odds = '!prof !{!"branch_weights", i32 1, i32 4000}'
        self.emit(f"br i1 {unusual.ref}, label %{rare}, label %{join}, {odds}")
        self.label(rare)
        passed = ", ".join(f"{llvm_type(a.dtype)} {a.ref}" for a in args)
        other = self.here(f"call {kind} @{function}({passed})", usual.dtype)
        self.branch(join)
        self.label(join)
        made = self.here(f"phi {kind} [ {usual.ref}, %{before} ], [ {other.ref}, %{rare} ]", usual.dtype)
        memo[key] = made
        return made

    def body(self) -> str:
        """All lines, the entry block's stack slots first."""
        lines = [line for chunk in self._out for line in chunk]
        return "\n".join([lines[0], *self.allocas, *lines[1:]])

    # ---------------------------------------------------------------------------------------------------- constants

    def const(self, value: float | int | bool, dtype: str) -> Value:
        """A literal of a scalar or vector dtype (all lanes equal)."""
        scalar = dtypes.element(dtype)
        if dtypes.is_float(scalar):
            text = float_text(float(value), scalar)
        elif dtypes.is_bool(scalar):
            text = "true" if value else "false"
        else:
            text = str(int(value))
        if dtypes.lanes(dtype) > 1:
            text = f"splat ({llvm_type(scalar)} {text})"
        return Value(text, dtype)

    def splat(self, value: Value, lanes: int) -> Value:
        """A vector with the value in every lane."""
        if lanes == 1 or dtypes.lanes(value.dtype) == lanes:
            return value
        dtype = dtypes.vector(value.dtype, lanes)
        scalar, vector = llvm_type(value.dtype), llvm_type(dtype)
        if not value.ref.startswith("%"):
            return Value(f"splat ({scalar} {value.ref})", dtype)
        one = self.pure(f"insertelement {vector} zeroinitializer, {scalar} {value.ref}, i64 0", dtype, (value,))
        return self.pure(
            f"shufflevector {vector} {one.ref}, {vector} zeroinitializer, <{lanes} x i32> zeroinitializer",
            dtype, (one,), "s",
        )  # fmt: skip

    def lane_numbers(self, dtype: str) -> Value:
        """``<0, 1, 2, ...>`` of an integer vector dtype."""
        scalar = llvm_type(dtypes.element(dtype))
        return Value(f"<{', '.join(f'{scalar} {i}' for i in range(dtypes.lanes(dtype)))}>", dtype)

    def extract(self, vector: Value, lane: int) -> Value:
        """One lane of a vector."""
        return self.pure(
            f"extractelement {llvm_type(vector.dtype)} {vector.ref}, i64 {lane}",
            dtypes.element(vector.dtype), (vector,),
        )  # fmt: skip

    def insert(self, vector: Value, value: Value, lane: int) -> Value:
        """The vector with one lane replaced."""
        return self.pure(
            f"insertelement {llvm_type(vector.dtype)} {vector.ref}, {llvm_type(value.dtype)} {value.ref}, i64 {lane}",
            vector.dtype, (vector, value),
        )  # fmt: skip

    # --------------------------------------------------------------------------------------------- common operations

    def op(self, name: str, a: Value, b: Value) -> Value:
        """A two-operand instruction whose result has the operands' dtype (``fadd``, ``add``, ``and``)."""
        return self.pure(f"{name} {llvm_type(a.dtype)} {a.ref}, {b.ref}", a.dtype, (a, b))

    def compare(self, name: str, a: Value, b: Value) -> Value:
        """``icmp slt`` and its like."""
        result = dtypes.vector("bool", dtypes.lanes(a.dtype))
        return self.pure(f"{name} {llvm_type(a.dtype)} {a.ref}, {b.ref}", result, (a, b), "c")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """``a`` where the condition holds, else ``b``."""
        kind = llvm_type(a.dtype)
        return self.pure(
            f"select {llvm_type(condition.dtype)} {condition.ref}, {kind} {a.ref}, {kind} {b.ref}",
            a.dtype, (condition, a, b),
        )  # fmt: skip

    def convert(self, name: str, value: Value, dtype: str) -> Value:
        """A conversion instruction (``sext``, ``sitofp``, ``bitcast``); ``dtype`` is the scalar result's."""
        result = dtypes.vector(dtype, dtypes.lanes(value.dtype))
        return self.pure(f"{name} {llvm_type(value.dtype)} {value.ref} to {llvm_type(result)}", result, (value,))

    def fneg(self, value: Value) -> Value:
        """The value with its sign flipped."""
        return self.pure(f"fneg {llvm_type(value.dtype)} {value.ref}", value.dtype, (value,))


def suffix(dtype: str) -> str:
    """How LLVM mangles a type in an intrinsic's name: ``v8f32``."""
    row = dtypes.row(dtype)
    name = f"f{row.bits}" if row.kind == "float" and not row.is_coded else f"i{row.bits}"
    lanes = dtypes.lanes(dtype)
    return name if lanes == 1 else f"v{lanes}{name}"
