"""Interned terms to canonical polynomials and back, under what an analyzer knows."""

from __future__ import annotations

import math
from collections.abc import Callable

from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.expr import IntImm, Var
from supple.ir.node import Expr
from supple.sym import poly as P
from supple.sym.const_bound import ANYTHING
from supple.sym.facts import FactBounds, dtype_interval
from supple.sym.poly import Atom, Poly
from supple.sym.terms import Terms, intrinsic_name, is_index, operands


def opaque(e: Expr) -> Poly:
    """The polynomial of an expression that is looked at from outside only."""
    return P.of_atom(Atom("opaque", opaque=e))


class Lift:
    """Canonical forms of interned expressions. ``values`` are variables that stand for an expression."""

    def __init__(self, bounds: FactBounds, values: Callable[[Var], Expr | None]) -> None:
        self._bounds = bounds
        self._values = values
        self._memo: dict[int, Poly] = {}

    def of(self, e: Expr) -> Poly:
        """The canonical form; ``e`` must be interned."""
        stack: list[tuple[Expr, bool]] = [(e, False)]
        while stack:
            current, expanded = stack.pop()
            if id(current) in self._memo:
                continue
            parts = self._parts(current)
            if parts and not expanded:
                stack.append((current, True))
                stack.extend((part, False) for part in parts)
                continue
            self._memo[id(current)] = self._make(current, [self._memo[id(part)] for part in parts])
        return self._memo[id(e)]

    def _parts(self, e: Expr) -> list[Expr]:
        kind = type(e)
        if kind in (E.Add, E.Sub):
            return [leaf for leaf, _ in _sum_leaves(e)] if is_index(e) else []
        if kind in _BINARY:
            return list(operands(e)) if is_index(e) else []
        if isinstance(e, Var):
            value = self._values(e)
            return [] if value is None else [value]
        if isinstance(e, E.Cast):
            return [e.value] if is_index(e) and is_index(e.value) else []
        return list(operands(e)) if intrinsic_name(e) == "likely" and is_index(e) else []

    def _make(self, e: Expr, parts: list[Poly]) -> Poly:
        kind = type(e)
        if isinstance(e, IntImm):
            return P.constant(e.value)
        if isinstance(e, Var) and not parts:
            return P.of_atom(Atom("var", var=e))
        if not parts:
            return opaque(e)
        if kind in (E.Add, E.Sub):
            terms: dict[P.Monomial, int] = {}
            for (_, factor), part in zip(_sum_leaves(e), parts, strict=True):
                for monomial, coefficient in part.terms.items():
                    terms[monomial] = terms.get(monomial, 0) + coefficient * factor
            return Poly(terms)
        if kind in _BINARY:
            return _BINARY[kind](e, parts[0], parts[1], self._bounds)
        if isinstance(e, E.Cast):
            low, high = self._bounds.of(parts[0])
            own = dtype_interval(e.dtype)
            return parts[0] if _widens(e) or (own[0] <= low and high <= own[1] and own != ANYTHING) else opaque(e)
        return parts[0]


def _widens(e: E.Cast) -> bool:
    source, target = dtypes.row(E.scalar_dtype(e.value)), dtypes.row(e.dtype)
    if source.kind == target.kind:
        return source.bits <= target.bits
    return source.kind == "uint" and source.bits < target.bits


def _sum_leaves(e: Expr) -> list[tuple[Expr, int]]:
    """The different summands of a chain of ``+`` and ``-``, in order, each with how often it is added."""
    order: list[Expr] = []  # the sums of the chain, those that use one after it
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(e, False)]
    leaves: list[Expr] = []
    while stack:
        current, expanded = stack.pop()
        if expanded:
            order.append(current)
        elif id(current) not in seen:
            seen.add(id(current))
            if isinstance(current, (E.Add, E.Sub)):
                stack += [(current, True), (current.b, False), (current.a, False)]
            else:
                leaves.append(current)
    counts = {id(e): 1}
    for current in reversed(order):
        assert isinstance(current, (E.Add, E.Sub))
        count = counts[id(current)]
        counts[id(current.a)] = counts.get(id(current.a), 0) + count
        counts[id(current.b)] = counts.get(id(current.b), 0) + (count if isinstance(current, E.Add) else -count)
    return [(leaf, counts[id(leaf)]) for leaf in leaves]


def _product(e: Expr, a: Poly, b: Poly, _: FactBounds) -> Poly:
    made = P.product(a, b)
    return opaque(e) if made is None else made


def _floordiv(e: Expr, a: Poly, b: Poly, bounds: FactBounds) -> Poly:
    if b.constant == 0:
        return opaque(e)  # it is 0 here, and undefined elsewhere: kept as it was written
    if b.constant is not None:
        return P.floordiv(a, b, bounds)
    low, high = bounds.of(b)
    if low <= 0 <= high:
        return P.of_atom(Atom("floordiv", args=(a, b)))
    quotient, rest = _take_out(a, b)
    if rest == P.ZERO:
        return quotient
    least, most = bounds.of(rest)
    if low > 0 and least >= 0 and bounds.of(b - rest)[0] > 0:
        return quotient
    return quotient + (P.of_atom(Atom("floordiv", args=(rest, b))) if (least, most) != (0, 0) else P.ZERO)


def _floormod(e: Expr, a: Poly, b: Poly, bounds: FactBounds) -> Poly:
    if b.constant == 0:
        return opaque(e)
    if b.constant is not None:
        return P.floormod(a, b, bounds)
    _, rest = _take_out(a, b)
    if rest == P.ZERO:
        return P.ZERO  # where b is 0 as well
    low, high = bounds.of(b)
    if low > 0 and bounds.of(rest)[0] >= 0 and bounds.of(b - rest)[0] > 0:
        return rest
    return P.of_atom(Atom("floormod", args=(rest if low > 0 or high < 0 else a, b)))


def _take_out(a: Poly, b: Poly) -> tuple[Poly, Poly]:
    """``(q, r)`` with ``a == q * b + r``: the multiples of a divisor (of one term, or a whole multiple)."""
    if len(b.terms) != 1:
        times = _multiple(a, b)
        return (P.ZERO, a) if times is None else (P.constant(times), P.ZERO)
    ((factors, coefficient),) = b.terms.items()
    quotient: dict[P.Monomial, int] = {}
    rest: dict[P.Monomial, int] = {}
    for monomial, c in a.terms.items():
        left = list(monomial)
        for factor in factors:
            if factor in left:
                left.remove(factor)
            else:
                break
        else:
            if c % coefficient == 0:
                quotient[tuple(left)] = c // coefficient
                continue
        rest[monomial] = c
    return Poly(quotient), Poly(rest)


def _multiple(a: Poly, b: Poly) -> int | None:
    if a.terms.keys() != b.terms.keys() or not b.terms:
        return None
    first = next(iter(b.terms))
    times, left = divmod(a.terms[first], b.terms[first])
    return times if not left and b.scale(times) == a else None


def _trunc(floor: Callable[[Expr, Poly, Poly, FactBounds], Poly]) -> Callable[[Expr, Poly, Poly, FactBounds], Poly]:
    """Truncating division is floor division where neither operand is negative."""

    def make(e: Expr, a: Poly, b: Poly, bounds: FactBounds) -> Poly:
        return floor(e, a, b, bounds) if bounds.of(a)[0] >= 0 and bounds.of(b)[0] > 0 else opaque(e)

    return make


_BINARY: dict[type, Callable[[Expr, Poly, Poly, FactBounds], Poly]] = {
    E.Mul: _product,
    E.FloorDiv: _floordiv,
    E.FloorMod: _floormod,
    E.Div: _trunc(_floordiv),
    E.Mod: _trunc(_floormod),
    E.Min: lambda e, a, b, bounds: P.minimum(a, b, bounds),
    E.Max: lambda e, a, b, bounds: P.maximum(a, b, bounds),
}


# -------------------------------------------------------------------------------------------------------- and back


_BUILD: dict[str, type[E.BinaryOp]] = {"floordiv": E.FloorDiv, "floormod": E.FloorMod, "min": E.Min, "max": E.Max}


def _split(e: Expr) -> tuple[float, float]:
    """How a term is cut out of the whole: by which divisor, then below which bound; larger ones first."""
    lower, upper = 1.0, math.inf
    if isinstance(e, E.FloorDiv) and isinstance(e.b, IntImm):
        lower, e = float(e.b.value), e.a
    if isinstance(e, E.FloorMod) and isinstance(e.b, IntImm):
        upper = float(e.b.value)
    return -lower, -upper


class Lower:
    """Polynomials as interned expressions of one dtype; terms with larger factors first, then those of larger divisors,
    else in their order of appearance, as in Relax."""

    def __init__(self, terms: Terms, dtype: str) -> None:
        self._terms = terms
        self._dtype = dtype
        self._atoms: dict[int, Expr] = {}

    def of(self, p: Poly) -> Expr:
        """The expression; raises ``OverflowError`` when a number does not fit in the dtype."""
        for identifier in P.atoms_of(p, self._atoms):
            atom = P.atom_of(identifier)
            known = atom.var if atom.kind == "var" else atom.opaque
            if known is not None:
                self._atoms[identifier] = self._terms.intern(E.cast(self._dtype, known))
            else:
                a, b = (self._sum(arg) for arg in atom.args)
                if isinstance(a, IntImm) and atom.kind in ("min", "max"):
                    a, b = b, a
                self._atoms[identifier] = self._terms.node(_BUILD[atom.kind](a, b))
        return self._sum(p)

    def _sum(self, p: Poly, depth: int = 0) -> Expr:
        mods: list[tuple[Poly, int, int]] = []
        if depth < P.MAX_NESTING:
            p, mods = P.split_mods(p)
        summands: list[tuple[Expr, int]] = []
        for monomial, coefficient in p.terms.items():
            if monomial:
                product = self._atoms[monomial[0]]
                for identifier in monomial[1:]:
                    product = self._terms.node(E.Mul(product, self._atoms[identifier]))
                summands.append((product, coefficient))
        for dividend, divisor, factor in mods:
            summands.append((self._remainder(self._sum(dividend, depth + 1), divisor), factor))
        summands.sort(key=lambda summand: (-summand[1], *_split(summand[0])))
        constant = p.terms.get((), 0)
        result: Expr | None = None
        for product, coefficient in summands:
            if coefficient < 0 < constant:
                result, constant = self._shifted(result, constant), 0  # n + 1 - m, and 5 - x for x * -1 + 5
            result = self._plus(result, product, coefficient)
        return self._shifted(result, constant)

    def _shifted(self, e: Expr | None, constant: int) -> Expr:
        """The sum with a number."""
        if e is None:
            return self._literal(constant)
        if constant == 0:
            return e
        return self._terms.node((E.Add if constant > 0 else E.Sub)(e, self._literal(abs(constant))))

    def _remainder(self, dividend: Expr, divisor: int) -> Expr:
        """``x // a % b`` is ``x % (a * b) // a``, as in Relax."""
        if isinstance(dividend, E.FloorDiv) and isinstance(dividend.b, IntImm) and dividend.b.value > 0:
            whole = dividend.b.value * divisor
            if dtypes.fits(whole, self._dtype):
                part = self._terms.node(E.FloorMod(dividend.a, self._literal(whole)))
                return self._terms.node(E.FloorDiv(part, dividend.b))
        return self._terms.node(E.FloorMod(dividend, self._literal(divisor)))

    def _plus(self, total: Expr | None, product: Expr, coefficient: int) -> Expr:
        if total is None:
            return product if coefficient == 1 else self._times(product, coefficient)
        scaled = product if abs(coefficient) == 1 else self._times(product, abs(coefficient))
        return self._terms.node((E.Add if coefficient > 0 else E.Sub)(total, scaled))

    def _times(self, product: Expr, coefficient: int) -> Expr:
        return self._terms.node(E.Mul(product, self._literal(coefficient)))

    def _literal(self, value: int) -> Expr:
        return self._terms.literal(value, self._dtype)
