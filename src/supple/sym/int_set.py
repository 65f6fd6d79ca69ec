"""Symbolic sets of integers: intervals whose ends are expressions (or open), and how operators act on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.expr import Call, IntImm, Var
from supple.ir.node import Expr, Node, ignored, node, set_field
from supple.ir.op import Op
from supple.ir.types import prim_type
from supple.sym.terms import intrinsic_name, is_index, operands

_POS = Op("sym.pos_inf")
_NEG = Op("sym.neg_inf")


def pos_inf() -> Any:
    """The end of a set that is open upwards."""
    return Call(_POS, (), ty=prim_type("handle"))


def neg_inf() -> Any:
    """The end of a set that is open downwards."""
    return Call(_NEG, (), ty=prim_type("handle"))


def is_infinite(e: object) -> bool:
    """Whether an end is one of the infinities."""
    return isinstance(e, Call) and (e.op is _POS or e.op is _NEG)


@node
class IntSet(Node):
    """Base of sets of integers."""

    def is_nothing(self) -> bool:
        """Whether the set is empty for certain."""
        low, high = self.low(), self.high()
        return isinstance(low, IntImm) and isinstance(high, IntImm) and low.value > high.value

    def is_everything(self) -> bool:
        """Whether nothing bounds the set."""
        return self.low() is None and self.high() is None

    def is_single_point(self) -> bool:
        """Whether both ends are one expression."""
        low, high = self.low(), self.high()
        same = isinstance(low, IntImm) and isinstance(high, IntImm) and low.value == high.value
        return low is not None and (low is high or same)

    def low(self) -> Any:
        """The smallest value; None where there is none."""
        raise NotImplementedError(f"{type(self).__name__} is no interval")

    def high(self) -> Any:
        """The largest value; None where there is none."""
        raise NotImplementedError(f"{type(self).__name__} is no interval")

    @staticmethod
    def vector(vec: Any) -> IntSet:
        """The values of a vector's elements (a scalar is its only element)."""
        if isinstance(vec, E.Ramp) and isinstance(vec.stride, IntImm):
            base: Any = vec.base
            span = vec.stride.value * (vec.lanes - 1)
            last = base + span if span else base
            return IntervalSet(base, last) if span >= 0 else IntervalSet(last, base)
        if isinstance(vec, E.Broadcast):
            return IntSet.single_point(vec.value)
        if isinstance(vec, Expr) and dtypes.lanes(E.scalar_dtype(vec)) > 1:
            return IntervalSet(None, None)
        return IntSet.single_point(vec)

    @staticmethod
    def single_point(point: Any) -> IntSet:
        """The set of one value."""
        return IntervalSet(point, point)

    @staticmethod
    def interval(min_value: Any, max_value: Any) -> IntSet:
        """The values from ``min_value`` to ``max_value``, both included."""
        return IntervalSet(min_value, max_value)

    @staticmethod
    def everything() -> IntSet:
        """All integers."""
        return IntervalSet(None, None)


@node
class IntervalSet(IntSet):
    """The values from ``min_value`` to ``max_value``, both included; `neg_inf` and `pos_inf` are open ends."""

    min_value: Any = None
    max_value: Any = None

    def __post_init__(self) -> None:
        low, high = self.min_value, self.max_value
        low = neg_inf() if low is None else low
        high = pos_inf() if high is None else high
        ends = [e for e in (low, high) if isinstance(e, Expr) and not is_infinite(e)]
        dtype = E.scalar_dtype(ends[0]) if ends else "int32"
        set_field(self, "min_value", low if isinstance(low, Expr) else E.const(int(low), dtype))
        set_field(self, "max_value", high if isinstance(high, Expr) else E.const(int(high), dtype))

    def low(self) -> Any:
        return None if is_infinite(self.min_value) else self.min_value

    def high(self) -> Any:
        return None if is_infinite(self.max_value) else self.max_value

    def __repr__(self) -> str:
        low = "neg_inf" if self.low() is None else self.min_value
        high = "pos_inf" if self.high() is None else self.max_value
        return f"IntervalSet[{low}, {high}]"


@node
class PresburgerSet(IntSet):
    """Upstream's sets of integer points under a build flag; there is no such library here: it is refused."""

    unused: int = ignored(default=0)

    def __post_init__(self) -> None:
        raise NotImplementedError("PresburgerSet is not supported; use IntervalSet")


End = Any  # an expression, or None where the set is open
Ends = tuple[End, End]


class Prover(Protocol):
    """What the evaluation of sets asks of an analyzer."""

    def simplify(self, expr: Any, steps: int = 2) -> Any: ...
    def can_prove(self, expr: Any) -> bool: ...


class _Evaluator:
    """Ends of the values of operators, of the ends of the values of their operands."""

    def __init__(self, known: Prover) -> None:
        self.known = known
        self.rules: dict[type, Callable[[E.BinaryOp, Ends, Ends], Ends]] = {
            E.Add: lambda e, a, b: (self.add(a[0], b[0]), self.add(a[1], b[1])),
            E.Sub: lambda e, a, b: (self.sub(a[0], b[1]), self.sub(a[1], b[0])),
            E.Mul: self.mul,
            E.FloorDiv: self.floordiv,
            E.FloorMod: self.floormod,
            E.Div: lambda e, a, b: self.floordiv(e, a, b) if self.nonneg(a[0]) else (None, None),
            E.Mod: lambda e, a, b: self.floormod(e, a, b) if self.nonneg(a[0]) else (None, None),
            E.Min: lambda e, a, b: (self.both(E.Min, a[0], b[0]), self.either(E.Min, a[1], b[1])),
            E.Max: lambda e, a, b: (self.either(E.Max, a[0], b[0]), self.both(E.Max, a[1], b[1])),
        }

    def both(self, kind: type, a: End, b: End) -> End:
        return None if a is None or b is None else self.known.simplify(kind(*E.match_dtypes(a, b)))

    def either(self, kind: type, a: End, b: End) -> End:
        if a is None or b is None:
            return a if b is None else b
        return self.known.simplify(kind(*E.match_dtypes(a, b)))

    def add(self, a: End, b: End) -> End:
        return self.both(E.Add, a, b)

    def sub(self, a: End, b: End) -> End:
        return self.both(E.Sub, a, b)

    def nonneg(self, e: End) -> bool:
        return e is not None and self.known.can_prove(e >= 0)

    def nonpos(self, e: End) -> bool:
        return e is not None and self.known.can_prove(e <= 0)

    def mul(self, e: E.BinaryOp, a: Ends, b: Ends) -> Ends:
        if b[0] is None or b[0] is not b[1]:
            if a[0] is None or a[0] is not a[1]:
                return self.mul_ranges(a, b)
            a, b = b, a
        factor = b[0]
        scaled = (self.both(E.Mul, a[0], factor), self.both(E.Mul, a[1], factor))
        if self.nonneg(factor):
            return scaled
        if self.nonpos(factor):
            return scaled[1], scaled[0]
        return None, None

    def mul_ranges(self, a: Ends, b: Ends) -> Ends:
        if self.nonneg(a[0]) and self.nonneg(b[0]):
            return self.both(E.Mul, a[0], b[0]), self.both(E.Mul, a[1], b[1])
        return None, None

    def floordiv(self, e: E.BinaryOp, a: Ends, b: Ends) -> Ends:
        divisor = b[0]
        if divisor is None or divisor is not b[1] or not self.known.can_prove(divisor > 0):
            return None, None
        return self.both(E.FloorDiv, a[0], divisor), self.both(E.FloorDiv, a[1], divisor)

    def floormod(self, e: E.BinaryOp, a: Ends, b: Ends) -> Ends:
        divisor = b[0]
        if divisor is None or divisor is not b[1] or not self.known.can_prove(divisor > 0):
            return None, None
        if a[0] is not None and a[1] is not None:
            quotient = self.known.simplify(E.FloorDiv(*E.match_dtypes(a[0], divisor)))
            if self.known.can_prove(E.EQ(quotient, E.FloorDiv(*E.match_dtypes(a[1], divisor)))):
                shift = E.Mul(*E.match_dtypes(quotient, divisor))
                return self.sub(a[0], shift), self.sub(a[1], shift)
        return E.const(0, E.scalar_dtype(divisor)), self.known.simplify(divisor - 1)


def evaluate_set(e: Any, domains: Mapping[int, IntSet], known: Prover) -> IntSet:
    """A set that holds every value of an interned term while the variables (by id) run over their sets."""
    evaluator = _Evaluator(known)
    done: dict[int, Ends] = {}
    relaxed: dict[int, bool] = {}  # whether a term depends on a variable that runs
    stack: list[tuple[Expr, bool]] = [(e, False)]
    while stack:
        current, expanded = stack.pop()
        if id(current) in done:
            continue
        parts = operands(current)
        if parts and not expanded:
            stack.append((current, True))
            stack.extend((part, False) for part in parts)
            continue
        domain = domains.get(id(current)) if isinstance(current, Var) else None
        relaxed[id(current)] = domain is not None or any(relaxed[id(part)] for part in parts)
        if domain is not None:
            done[id(current)] = (domain.low(), domain.high())
        elif not relaxed[id(current)]:
            done[id(current)] = (current, current)
        else:
            done[id(current)] = _combined(current, [done[id(part)] for part in parts], evaluator)
    low, high = done[id(e)]
    if low is not None and low is high:
        low = high = known.simplify(low)
    return IntervalSet(low, high)


def _combined(e: Any, parts: list[Ends], evaluator: _Evaluator) -> Ends:
    kind = type(e)
    if isinstance(e, E.BinaryOp) and kind in evaluator.rules and is_index(e):
        return evaluator.rules[kind](e, parts[0], parts[1])
    if isinstance(e, E.Select) or intrinsic_name(e) == "if_then_else":
        return evaluator.both(E.Min, parts[1][0], parts[2][0]), evaluator.both(E.Max, parts[1][1], parts[2][1])
    if isinstance(e, E.Cast) and is_index(e) and is_index(e.value) and _widens(e):
        low, high = parts[0]
        return low if low is None else E.cast(e.dtype, low), high if high is None else E.cast(e.dtype, high)
    if intrinsic_name(e) == "likely":
        return parts[0]
    if isinstance(e, (E.CompareOp, E.Not)):
        return E.const(0, "bool"), E.const(1, "bool")
    return None, None


def _widens(e: E.Cast) -> bool:
    source, target = dtypes.row(E.scalar_dtype(e.value)), dtypes.row(e.dtype)
    return source.kind == target.kind and source.bits <= target.bits


def union_ends(a: Ends, b: Ends, known: Prover) -> Ends:
    """The ends of the smallest interval that holds both."""
    evaluator = _Evaluator(known)
    return evaluator.both(E.Min, a[0], b[0]), evaluator.both(E.Max, a[1], b[1])
