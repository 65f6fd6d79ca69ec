"""The rewrite simplifier: bottom-up, each node by folding, by the rules, then by what is known of its operands.

Operands stay in the order they were written in as far as the rules let them. Each node that a rule makes is simplified
when it is made, so a result needs no second pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from supple.base import dtypes
from supple.base.errors import SuppleError
from supple.ir import expr as E
from supple.ir.expr import IntImm, Var
from supple.ir.node import Expr
from supple.sym.facts import FactBounds, Facts, Modular
from supple.sym.fold import DIVISIONS, fold
from supple.sym.lift import Lift, Lower
from supple.sym.pattern import Table
from supple.sym.poly import Interval, Poly
from supple.sym.rules import ANY_RULES, INTEGER_RULES, TRUTH_RULES
from supple.sym.terms import GT_TO_LT, Terms, intrinsic_name, is_index, is_truth, operands, rebuilt
from supple.sym.vectors import simplify_vector

MAX_DEPTH = 40
"""How many rules may be at work inside one another; what is made deeper is left as it is."""

MAX_CONTEXTS = 3
"""Conditions of selections within selections are assumed to this depth."""

MAX_BRANCHES = 48
"""Larger values of a selection are not simplified under its condition."""

MAX_ASKED = 30
"""Larger conditions are not simplified again under the other side of an ``and``."""


class Knowledge(Protocol):
    """What the rewriter asks its analyzer."""

    @property
    def terms(self) -> Terms: ...
    @property
    def facts(self) -> Facts: ...
    @property
    def bounds(self) -> FactBounds: ...
    @property
    def lift(self) -> Lift: ...
    def interval(self, e: Expr) -> Interval: ...
    def lower(self, dtype: str) -> Lower: ...
    def modular(self, e: Expr) -> Modular: ...
    def poly_modular(self, p: Poly) -> Modular: ...
    def assuming(self, condition: Expr, holds: bool) -> AbstractContextManager[None]: ...


class RewriteLimitError(SuppleError, RuntimeError):
    """More rewrite steps were taken than ``set_maximum_rewrite_steps`` allows."""


class Rewriter:
    """Simplified forms of interned terms under one state of knowledge."""

    def __init__(self, known: Knowledge, count_step: Callable[[], None], contexts: int = 0) -> None:
        self._known = known
        self._memo: dict[int, Expr] = {}
        self._sizes: dict[int, int] = {}
        self._depth = 0
        self._contexts = contexts
        self._count_step = count_step
        self._asks: dict[str, Callable[..., bool]] = {
            "nonneg": lambda e: self._known.interval(e)[0] >= 0,
            "positive": lambda e: self._known.interval(e)[0] > 0,
            "nonzero": self._nonzero,
            "symbolic": lambda e: not isinstance(e, IntImm),
            "whole": is_index,
        }

    # what rules call ---------------------------------------------------------------------------------------------

    def build(self, kind: type, *parts: Expr) -> Expr:
        """The simplified node of that kind on simplified operands."""
        return self._apply(self._known.terms.node(kind(*parts)))

    def number(self, value: int, dtype: str) -> Expr:
        """The literal; raises ``OverflowError`` when it does not fit."""
        return self._known.terms.literal(value, dtype)

    def asks(self) -> dict[str, Callable[..., bool]]:
        """The questions that conditions of rules may ask."""
        return self._asks

    def _nonzero(self, e: Expr) -> bool:
        low, high = self._known.interval(e)
        if low > 0 or high < 0:
            return True
        return self._never_zero(self._known.lift.of(e))

    # walking -----------------------------------------------------------------------------------------------------

    def visit(self, e: Expr) -> Expr:
        """The simplified form of an interned term."""
        stack: list[tuple[Expr, bool]] = [(e, False)]
        while stack:
            current, expanded = stack.pop()
            if id(current) in self._memo:
                continue
            value = self._value(current)
            if value is not None:
                if id(value) in self._memo:
                    self._memo[id(current)] = self._memo[id(value)]
                else:
                    stack.extend(((current, False), (value, False)))
                continue
            parts = operands(current)
            condition = _condition(current)
            if condition is not None and id(condition) not in self._memo:
                stack.extend(((current, False), (condition, False)))
                continue
            if condition is not None:
                self._memo[id(current)] = self._choice(current, self._memo[id(condition)], parts, stack, expanded)
                if self._memo[id(current)] is _PENDING:
                    del self._memo[id(current)]
                continue
            if parts and not expanded:
                stack.append((current, True))
                stack.extend((part, False) for part in parts)
                continue
            made = rebuilt(current, tuple(self._memo[id(part)] for part in parts))
            self._memo[id(current)] = self._apply(self._known.terms.node(made))
        return self._memo[id(e)]

    def _value(self, e: Expr) -> Expr | None:
        return self._known.facts.values.get(id(e)) if isinstance(e, Var) else None

    def _choice(
        self, e: Expr, condition: Expr, parts: tuple[Expr, ...], stack: list[tuple[Expr, bool]], expanded: bool
    ) -> Expr:
        """A selection: each value is simplified where its condition holds."""
        if isinstance(condition, IntImm):
            chosen = parts[1] if condition.value else parts[2]
            if id(chosen) not in self._memo:
                stack.extend(((e, False), (chosen, False)))
                return _PENDING
            return self._memo[id(chosen)]
        if self._contexts >= MAX_CONTEXTS or not 2 < self.size(parts[1]) + self.size(parts[2]) <= MAX_BRANCHES:
            if not expanded:
                stack.append((e, True))
                stack.extend((part, False) for part in parts)
                return _PENDING
            values = [self._memo[id(part)] for part in parts[1:]]
        else:
            values = []
            for part, holds in zip(parts[1:], (True, False), strict=True):
                with self._known.assuming(condition, holds):
                    inner = Rewriter(self._known, self._count_step, self._contexts + 1)
                    values.append(inner.visit(part))
        return self._apply(self._known.terms.node(rebuilt(e, (condition, *values))))

    # one node ----------------------------------------------------------------------------------------------------

    def _apply(self, e: Expr) -> Expr:
        found = self._memo.get(id(e))
        if found is not None:
            return found
        if self._depth >= MAX_DEPTH:
            return e
        self._depth += 1
        try:
            result = self._step(e)
        finally:
            self._depth -= 1
        if self._depth < MAX_DEPTH - 8:  # a result from the depth limit may be less than it could be
            self._memo[id(e)] = result
            self._memo[id(result)] = result
        return result

    def _step(self, e: Expr) -> Expr:
        terms = self._known.terms
        if type(e) in GT_TO_LT:
            return self.build(GT_TO_LT[type(e)], e.b, e.a)  # type: ignore[attr-defined]
        parts = operands(e)
        folded = fold(e, parts) if parts else None
        if folded is not None:
            return terms.node(folded)
        if is_truth(e) and id(e) in self._known.facts.truths:
            return self.number(int(self._known.facts.truths[id(e)]), "bool")
        if not parts or (isinstance(e, DIVISIONS) and isinstance(parts[1], IntImm) and parts[1].value == 0):
            return e  # a division by 0 stays as it was written
        for attempt in self._attempts(e, parts):
            if attempt is not None and attempt is not e:
                self._count_step()
                return attempt
        return e

    def _attempts(self, e: Expr, parts: tuple[Expr, ...]) -> Iterator[Expr | None]:
        if dtypes.lanes(E.scalar_dtype(e)) > 1:
            yield simplify_vector(e, self.build)
        table = _table(e)
        for rule in table.candidates(e, parts):
            try:
                yield rule.apply(e, self)
            except OverflowError:
                yield None  # a number that the dtype does not hold: the term stays as it is
        if isinstance(e, E.NE):
            yield self._not_equal(e)
        if intrinsic_name(e) == "if_then_else":
            yield parts[1] if parts[1] is parts[2] else None
        elif intrinsic_name(e) == "likely":
            yield parts[0] if isinstance(parts[0], IntImm) else None
        if isinstance(e, E.Cast):
            yield self._cast(e)
        if isinstance(e, (E.And, E.Or)) and self._contexts < MAX_CONTEXTS:
            yield self._under_other(e)
        if table is INTEGER_RULES:
            yield self._decided(e, parts)

    def _not_equal(self, e: E.NE) -> Expr | None:
        equal = self.build(E.EQ, e.a, e.b)
        if isinstance(equal, E.EQ):
            return self._known.terms.node(E.NE(equal.a, equal.b))
        return self.build(E.Not, equal)

    def _under_other(self, e: E.And | E.Or) -> Expr | None:
        """One side of ``and`` where the other holds (of ``or`` where the other does not), when that decides it."""
        neutral = int(isinstance(e, E.And))
        for given, asked in ((e.a, e.b), (e.b, e.a)):
            if self.size(asked) > MAX_ASKED:
                continue
            with self._known.assuming(given, isinstance(e, E.And)):
                found = Rewriter(self._known, self._count_step, self._contexts + 1).visit(asked)
            if isinstance(found, IntImm):
                return given if found.value == neutral else found
        return None

    def _cast(self, e: E.Cast) -> Expr | None:
        if E.scalar_dtype(e.value) == e.dtype:
            return e.value
        inner = e.value
        if isinstance(inner, E.Cast) and is_index(e) and is_index(inner) and is_index(inner.value):
            p = self._known.lift.of(e)
            if p == self._known.lift.of(inner.value):  # neither cast changes a value
                return self._apply(self._known.terms.node(E.Cast(e.dtype, inner.value)))
        return None

    def _decided(self, e: Expr, parts: tuple[Expr, ...]) -> Expr | None:
        """What bounds, remainders and the canonical form of the operands say."""
        kind = type(e)
        if kind in (E.Min, E.Max, E.LT, E.LE, E.EQ, E.NE):
            if not (is_index(parts[0]) and is_index(parts[1])):
                return None
            difference = self._known.lift.of(parts[0]) - self._known.lift.of(parts[1])
            low, high = self._difference_interval(parts, difference)
            if kind in (E.Min, E.Max):
                smaller = 0 if high <= 0 else 1 if low >= 0 else None
                return None if smaller is None else parts[smaller if kind is E.Min else 1 - smaller]
            verdict = _VERDICTS[kind](low, high)
            if verdict is None and kind in (E.EQ, E.NE) and self._never_zero(difference):
                verdict = kind is E.NE
            if verdict is not None:
                return self.number(int(verdict), "bool")
            return self._of_extremum(kind, parts) if kind in (E.LT, E.LE) else None
        if kind not in (E.FloorDiv, E.FloorMod, E.Div, E.Mod) or not is_index(e):
            return None
        low, high = self._known.interval(e)
        coeff, base = self._known.modular(e)
        if low == high or coeff == 0:
            return self.number(int(low) if low == high else base, E.scalar_dtype(e))
        return self._smaller(e)

    def _of_extremum(self, kind: type, parts: tuple[Expr, ...]) -> Expr | None:
        """``min(a, b) < x`` is ``a < x or b < x`` and so on: taken where one of the two is known."""
        for position, side in enumerate(parts):
            if not isinstance(side, (E.Min, E.Max)) or self.size(side) > MAX_BRANCHES:
                continue
            other = parts[1 - position]
            halves = [self.build(kind, *((h, other) if position == 0 else (other, h))) for h in (side.a, side.b)]
            if any(isinstance(half, IntImm) for half in halves):
                any_of = isinstance(side, E.Min) == (position == 0)
                return self.build(E.Or if any_of else E.And, *halves)
        return None

    def _difference_interval(self, parts: tuple[Expr, ...], difference: Poly) -> Interval:
        low, high = self._known.bounds.of(difference)
        a, b = self._known.interval(parts[0]), self._known.interval(parts[1])
        low, high = max(low, a[0] - b[1]), min(high, a[1] - b[0])
        for fact in self._known.facts.non_negative:
            low = max(low, self._known.bounds.of(difference - fact)[0])
            high = min(high, self._known.bounds.of(difference + fact)[1])
        return low, high

    def _never_zero(self, difference: Poly) -> bool:
        if any(difference in (f, f.scale(-1)) for f in self._known.facts.non_zero):
            return True
        coeff, base = self._known.poly_modular(difference)
        return bool(base % coeff if coeff else base)

    def _smaller(self, e: Expr) -> Expr | None:
        """The canonical form, where it is smaller than what is written."""
        try:
            other = self._known.lower(E.scalar_dtype(e)).of(self._known.lift.of(e))
        except OverflowError:
            return None
        return other if self.size(other) < self.size(e) else None

    def size(self, e: Expr) -> int:
        """How many nodes an interned term has, written out."""
        stack: list[tuple[Expr, bool]] = [(e, False)]
        while stack:
            current, expanded = stack.pop()
            if id(current) in self._sizes:
                continue
            parts = operands(current)
            if parts and not expanded:
                stack.append((current, True))
                stack.extend((part, False) for part in parts)
            else:
                self._sizes[id(current)] = 1 + sum(self._sizes[id(part)] for part in parts)
        return self._sizes[id(e)]


_PENDING: Expr = E.StringImm("pending")


def _condition(e: Expr) -> Expr | None:
    if isinstance(e, E.Select):
        return e.condition
    return operands(e)[0] if intrinsic_name(e) == "if_then_else" else None


def _table(e: Expr) -> Table:
    dtype = E.scalar_dtype(e)
    compared = isinstance(e, E.CompareOp) and not isinstance(e, (E.And, E.Or))
    if dtypes.lanes(dtype) > 1:
        return ANY_RULES
    if compared:
        return INTEGER_RULES if is_index(e.a) else ANY_RULES  # type: ignore[attr-defined]
    if dtypes.is_int(dtype):
        return INTEGER_RULES
    return TRUTH_RULES if dtypes.is_bool(dtype) else ANY_RULES


_VERDICTS: dict[type, Callable[[float, float], bool | None]] = {
    E.LT: lambda low, high: True if high < 0 else False if low >= 0 else None,
    E.LE: lambda low, high: True if high <= 0 else False if low > 0 else None,
    E.EQ: lambda low, high: False if low > 0 or high < 0 else True if low == high == 0 else None,
    E.NE: lambda low, high: True if low > 0 or high < 0 else False if low == high == 0 else None,
}
"""What the interval of ``a - b`` says of a comparison."""
