"""Proving that an index lies inside its buffer, under the loops and conditions around it.

A `Context` knows the ranges of the loop variables in scope and facts from conditions. Proofs eliminate loop
variables, innermost first, by the end of their range that makes the expression smallest; what remains speaks of sizes
only, which are never negative. No proof is no error: the access is then checked when it runs.
"""

from __future__ import annotations

from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.expr import Var
from supple.ir.node import Expr
from supple.sym import poly as P
from supple.sym.poly import Atom, Bounds, Poly
from supple.sym.simplify import NON_NEGATIVE, UNBOUNDED, to_poly


class Context:
    """What is known at one place of a loop nest. Ranges and facts are pushed on entry and popped on exit."""

    def __init__(self, scalars: tuple[Var, ...] = ()) -> None:
        # scalar parameters may be negative; every other free variable is a size
        self._intervals = dict.fromkeys(scalars, UNBOUNDED)
        self._bounds = Bounds(self._intervals, NON_NEGATIVE)
        self._ranges: list[tuple[int, Poly, Poly]] = []
        self._facts: list[Poly] = []

    def poly(self, e: Expr) -> Poly:
        """The canonical form of an integer expression."""
        return to_poly(e, self._bounds)

    def mark(self) -> tuple[int, int]:
        """A point to go back to with `reset`."""
        return len(self._ranges), len(self._facts)

    def reset(self, mark: tuple[int, int]) -> None:
        """Forget what was learnt since the mark."""
        del self._ranges[mark[0] :]
        del self._facts[mark[1] :]

    def enter_loop(self, var: Var, start: Expr, extent: Expr) -> None:
        """``var`` runs over ``[start, start + extent)``, which is not empty inside the loop."""
        low = self.poly(start)
        high = low + self.poly(extent) - P.ONE
        self._intervals[var] = (self._bounds.of(low)[0], self._bounds.of(high)[1])
        self._bounds = Bounds(self._intervals, NON_NEGATIVE)
        self._ranges.append((P.intern_atom(Atom("var", var=var)), low, high))
        self._facts.append(high - low)

    def unknown(self, var: Var) -> None:
        """Nothing is known of a variable (its value was loaded or computed)."""
        self._intervals[var] = UNBOUNDED
        self._bounds = Bounds(self._intervals, NON_NEGATIVE)

    def bind(self, var: Var, value: Expr) -> None:
        """``var`` is an integer that equals ``value``."""
        known = self.poly(value)
        self._intervals[var] = self._bounds.of(known)
        self._bounds = Bounds(self._intervals, NON_NEGATIVE)
        self._ranges.append((P.intern_atom(Atom("var", var=var)), known, known))

    def assume(self, condition: Expr, holds: bool = True) -> None:
        """Learn from a condition: comparisons of integers joined by ``and`` (``or`` when it does not hold)."""
        stack = [(condition, holds)]
        while stack:
            e, true = stack.pop()
            if isinstance(e, E.Not):
                stack.append((e.a, not true))
            elif isinstance(e, E.And if true else E.Or):
                stack.extend(((e.a, true), (e.b, true)))
            elif isinstance(e, E.Call) and getattr(e.op, "name", "") == "tirx.likely":
                stack.append((e.args[0], true))
            elif isinstance(e, E.CompareOp) and not isinstance(e, (E.And, E.Or)):
                self._compare(e, true)

    def _compare(self, e: E.CompareOp, true: bool) -> None:
        dtype = E.scalar_dtype(e.a)
        if dtypes.lanes(dtype) != 1 or not dtypes.is_int(dtype):
            return
        difference = self.poly(e.b) - self.poly(e.a)
        if _mentions_memory(difference):
            return  # what was loaded once may be different when it is loaded again
        kind = type(e) if true else _NEGATED[type(e)]
        if kind in (E.LT, E.LE, E.EQ):
            self._facts.append(difference - (P.ONE if kind is E.LT else P.ZERO))
        if kind in (E.GT, E.GE, E.EQ):
            self._facts.append(P.ZERO - difference - (P.ONE if kind is E.GT else P.ZERO))

    def in_bounds(self, index: Expr, extent: Expr) -> bool:
        """Whether ``0 <= index < extent`` is proved."""
        position = self.poly(index)
        return self.non_negative(position) and self.non_negative(self.poly(extent) - position - P.ONE)

    def non_negative(self, p: Poly) -> bool:
        """Whether ``p >= 0`` is proved."""
        if self._smallest(p) >= 0:
            return True
        return any(self._smallest(p - fact) >= 0 for fact in self._facts)

    def _smallest(self, p: Poly) -> float:
        best = self._bounds.of(p)[0]
        for atom, low, high in reversed(self._ranges):
            if best >= 0:
                return best
            coefficient = Poly({tuple(_without(m, atom)): c for m, c in p.terms.items() if m.count(atom) == 1})
            if not coefficient.terms or any(m.count(atom) > 1 for m in p.terms):
                continue
            interval = self._bounds.of(coefficient)
            if interval[0] >= 0:
                end = low
            elif interval[1] <= 0:
                end = high
            else:
                continue
            rest = Poly({m: c for m, c in p.terms.items() if not m.count(atom)})
            p = rest + coefficient * end
            best = max(best, self._bounds.of(p)[0])
        return best


def _mentions_memory(p: Poly) -> bool:
    stack = [p]
    while stack:
        for monomial in stack.pop().terms:
            for identifier in monomial:
                atom = P.atom_of(identifier)
                if atom.kind == "opaque":
                    return True
                stack.extend(atom.args)
    return False


def _without(monomial: tuple[int, ...], atom: int) -> list[int]:
    rest = list(monomial)
    rest.remove(atom)
    return rest


_NEGATED: dict[type, type] = {E.LT: E.GE, E.LE: E.GT, E.GT: E.LE, E.GE: E.LT, E.EQ: E.NE, E.NE: E.EQ}
