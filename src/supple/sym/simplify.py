"""Simplification, bounds, proofs and linear solving of scalar integer expressions, through the canonical form."""

from __future__ import annotations

import functools
import math
import operator
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from supple.base import dtypes
from supple.base.errors import DiagnosticError
from supple.ir import expr as E
from supple.ir.expr import IntImm, Var, int64
from supple.ir.node import Expr, children
from supple.ir.structural import SIZES, structural_equal, structural_hash
from supple.sym import poly as P
from supple.sym.cases import choice_of, equal_by_cases
from supple.sym.fold import INTEGER
from supple.sym.poly import Atom, Bounds, Interval, Poly

Ranges: TypeAlias = Mapping[Var, Interval] | None

UNBOUNDED: Interval = (-math.inf, math.inf)
NON_NEGATIVE: Interval = (0, math.inf)
"""What is known of a shape's symbol."""


def _are_sizes(a: Poly, b: Poly, bounds: Bounds) -> bool:
    """Whether C's division of them is that of Python."""
    return bounds.of(a)[0] >= 0 and bounds.of(b)[0] > 0


_POLY: dict[type, Callable[[Poly, Poly, Bounds], Poly | None]] = {
    E.Add: lambda a, b, _: a + b,
    E.Sub: lambda a, b, _: a - b,
    E.Mul: lambda a, b, _: P.product(a, b),
    E.FloorDiv: P.floordiv,
    E.FloorMod: P.floormod,
    E.Div: lambda a, b, bounds: P.floordiv(a, b, bounds) if _are_sizes(a, b, bounds) else None,
    E.Mod: lambda a, b, bounds: P.floormod(a, b, bounds) if _are_sizes(a, b, bounds) else None,
    E.Min: P.minimum,
    E.Max: P.maximum,
}


def to_poly(e: Expr, bounds: Bounds) -> Poly:
    """The canonical form of an integer expression. Depth is no limit: the walk has its own stack."""
    if type(e) is IntImm:
        return P.constant(e.value)
    done: dict[int, Poly] = {}
    stack: list[tuple[Expr, bool]] = [(e, False)]
    while stack:
        current, expanded = stack.pop()
        if id(current) in done:
            continue
        kind = type(current)
        choice = choice_of(current)
        if choice is not None:
            condition, holds, fails = choice
            sides = _compared(condition)
            if sides is None:
                done[id(current)] = _opaque_poly(current)
            elif not expanded:
                stack.append((current, True))
                stack.extend((part, False) for part in (*sides, holds, fails))
            else:
                verdict = _decided(type(condition), done[id(sides[0])], done[id(sides[1])], bounds)
                taken = None if verdict is None else holds if verdict else fails
                done[id(current)] = _opaque_poly(current) if taken is None else done[id(taken)]
        elif isinstance(current, IntImm):
            done[id(current)] = P.constant(current.value)
        elif isinstance(current, Var):
            done[id(current)] = P.of_var(current)
        elif kind in _POLY or _is_widening(current):
            operands: list[Expr] = [n for n in children(current) if isinstance(n, Expr)]
            if not expanded:
                stack.append((current, True))
                stack.extend((operand, False) for operand in operands)
            elif kind in _POLY:
                made = _POLY[kind](done[id(operands[0])], done[id(operands[1])], bounds)
                done[id(current)] = _opaque_poly(current) if made is None else made
            else:
                done[id(current)] = done[id(operands[0])]
        else:
            done[id(current)] = _opaque_poly(current)
    return done[id(e)]


def _compared(condition: Expr) -> tuple[Expr, Expr] | None:
    """The sides of a comparison of integers."""
    if not isinstance(condition, E.CompareOp) or not _is_plain_int(E.scalar_dtype(condition.a)):
        return None
    return condition.a, condition.b


def _decided(kind: type, a: Poly, b: Poly, bounds: Bounds) -> bool | None:
    """Whether a comparison holds for all values of the variables: True, False, or None where they decide."""
    low, high = bounds.of(b - a)
    if kind in (E.EQ, E.NE):
        same = True if a == b else False if low > 0 or high < 0 else None
        return same if kind is E.EQ or same is None else not same
    if kind in (E.GT, E.GE):
        low, high = -high, -low
    least = 1 if kind in (E.LT, E.GT) else 0
    return True if low >= least else False if high < least else None


def _opaque_poly(e: Expr) -> Poly:
    return P.of_atom(Atom("opaque", opaque=_representative(e)))


_representing = threading.RLock()  # comparing nodes may ask for the representative of their parts
_opaque: dict[int, list[Expr]] = {}


def _representative(e: Expr) -> Expr:
    """The first node that was written like this one, so that equal nodes are one atom."""
    written = structural_hash(e)
    with _representing:
        same = _opaque.setdefault(written, [])
        for known in same:
            if known is e or structural_equal(known, e):
                return known
        same.append(e)
        return e


def _is_widening(e: Expr) -> bool:
    """A cast between integers that keeps every value."""
    if not isinstance(e, E.Cast):
        return False
    source, target = dtypes.row(E.scalar_dtype(e.value)), dtypes.row(e.dtype)
    return source.kind == target.kind == "int" and source.bits <= target.bits and dtypes.lanes(e.dtype) == 1


def _literal(value: int, dtype: str) -> IntImm:
    """A literal; raises `DiagnosticError` for a number that the dtype does not hold (a size of 2**80)."""
    try:
        return IntImm(value, dtype)
    except OverflowError:
        raise DiagnosticError(f"the number {value} does not fit in {dtype}", rule="size") from None


def from_poly(p: Poly, dtype: str = "int64") -> Expr:
    """An expression with that canonical form; ``%`` where it can be read off. What occurs again is one node."""
    return _from_poly(p, dtype, {})


def _from_poly(p: Poly, dtype: str, atoms: dict[int, Expr]) -> Expr:
    p, mods = P.split_mods(p)
    terms: list[tuple[Expr, int]] = []
    for monomial, coefficient in P.ordered(p):
        factors = [_from_atom(identifier, dtype, atoms) for identifier in P.factors_of(monomial)]
        if factors:
            terms.append((functools.reduce(E.Mul, factors), coefficient))
    for dividend, divisor, factor in mods:
        terms.append((E.FloorMod(_from_poly(dividend, dtype, atoms), _literal(divisor, dtype)), factor))
    terms.sort(key=lambda term: term[1] < 0)  # positive terms first: m - n, not n * -1 + m
    rest = p.terms.get((), 0)
    result: Expr | None = None
    if terms and terms[0][1] < 0 < rest:  # 6 - n, not n * -1 + 6
        result, rest = _literal(rest, dtype), 0
    for product, coefficient in terms:
        size = abs(coefficient)
        scaled = product if size == 1 else E.Mul(product, _literal(size, dtype))
        if result is None:
            result = scaled if coefficient > 0 else E.Mul(product, _literal(coefficient, dtype))
        else:
            result = E.Add(result, scaled) if coefficient > 0 else E.Sub(result, scaled)
    if result is None:
        return _literal(rest, dtype)
    if rest > 0:
        return E.Add(result, _literal(rest, dtype))
    return E.Sub(result, _literal(-rest, dtype)) if rest < 0 else result


_BUILD: dict[str, type[E.BinaryOp]] = {"floordiv": E.FloorDiv, "floormod": E.FloorMod, "min": E.Min, "max": E.Max}


def _from_atom(identifier: int, dtype: str, atoms: dict[int, Expr]) -> Expr:
    made = atoms.get(identifier)
    if made is None:
        atom = P.atom_of(identifier)
        whole = atom.var if atom.kind == "var" else atom.opaque
        if whole is not None:
            made = E.cast(dtype, whole)
        else:
            made = _BUILD[atom.kind](*(_from_poly(arg, dtype, atoms) for arg in atom.args))
        atoms[identifier] = made
    return made


class Analyzer:
    """Reasons under known ranges of variables. ``default`` is the interval of a variable without a listed range."""

    def __init__(self, ranges: Ranges = None, default: Interval = UNBOUNDED) -> None:
        self._bounds = Bounds(ranges, default)

    def canonical(self, e: Expr) -> Poly:
        """The interned canonical form."""
        return to_poly(e, self._bounds)

    def simplify(self, e: Expr) -> Expr:
        """An equal expression in canonical form. Expressions that are not integers are returned as they are."""
        if isinstance(e, (IntImm, Var)) or not (E.is_scalar(e) and _is_plain_int(E.scalar_dtype(e))):
            return e
        return from_poly(self.canonical(e), E.scalar_dtype(e))

    def bounds(self, e: Expr) -> Interval:
        """An interval that holds every value of ``e``."""
        return self._bounds.of(self.canonical(e))

    def equal(self, a: Expr, b: Expr) -> bool | None:
        """True or False where it is proved for all values, None where it is undecided."""
        verdict = self.equal_forms(a, b)
        if verdict is not None:
            return verdict
        if all(P.atom_of(i).kind == "var" for e in (a, b) for i in P.atoms_of(self.canonical(e))):
            return None
        return True if equal_by_cases(a, b, self.canonical, self._bounds, evaluate) else None

    def equal_forms(self, a: Expr, b: Expr) -> bool | None:
        """`equal` as far as the canonical forms tell."""
        if a is b:
            return True
        difference = self.canonical(a) - self.canonical(b)
        if difference.constant is not None:
            return difference.constant == 0
        low, high = self._bounds.of(difference)
        if low > 0 or high < 0:
            return False
        content = Poly({m: c for m, c in difference.terms.items() if m}).content()
        if difference.terms.get((), 0) % content:
            return False  # 2n == 2m + 1 has no solution
        return None

    def less_equal(self, a: Expr, b: Expr) -> bool | None:
        """``a <= b``: True or False where proved, None where undecided."""
        low, high = self._bounds.of(self.canonical(b) - self.canonical(a))
        return True if low >= 0 else False if high < 0 else None


def _is_plain_int(dtype: str) -> bool:
    return dtypes.row(dtype).kind == "int" and dtypes.lanes(dtype) == 1


SHAPES = Analyzer(default=NON_NEGATIVE)
"""Reasoning about shapes: every symbol is a size, hence not negative."""


def _plain_size(e: Expr) -> Expr | None:
    simple = e if isinstance(e, (IntImm, Var)) else SHAPES.simplify(e)
    return simple if isinstance(simple, (IntImm, Var)) else None


def _equal_sizes(a: Expr, b: Expr) -> bool | None:
    """Structurally equal sizes have one hash, and that of a symbol or number is its own."""
    if (_plain_size(a) is None) != (_plain_size(b) is None):
        return SHAPES.equal_forms(a, b)
    return SHAPES.equal(a, b)


SIZES["equal"] = _equal_sizes
SIZES["plain"] = _plain_size


def product(values: tuple[Expr, ...] | list[Expr]) -> Expr:
    """The simplified product of sizes (1 for none)."""
    total = P.ONE
    for value in values:
        total = total * SHAPES.canonical(value)
    return from_poly(total)


def size_in_order(dims: Iterable[Expr]) -> Expr:
    """The product of dimensions as it is read off a shape, from the first to the last; only numbers that meet are
    multiplied."""
    size: Expr = int64(1)
    for dim in dims:
        if isinstance(size, IntImm) and isinstance(dim, IntImm):
            size = int64(size.value * dim.value)
        elif isinstance(size, IntImm) and size.value == 1:
            size = dim
        elif not (isinstance(dim, IntImm) and dim.value == 1):
            size = E.Mul(size, dim)
    return size


def rest_in_order(dims: Iterable[Expr], others: Iterable[Expr]) -> Expr:
    """What is left of a shape's size without the factors of ``others``: symbols in the shape's order, then a number."""
    (symbols, number), (divisors, divisor) = _factors(dims), _factors(others)
    below: list[Expr] = []
    for factor in divisors:
        found = next((n for n, symbol in enumerate(symbols) if SHAPES.equal(symbol, factor) is True), None)
        if found is None:
            below.append(factor)
        else:
            del symbols[found]
    if divisor and number % divisor == 0:
        number, divisor = number // divisor, 1
    size = size_in_order([*symbols, int64(number)])
    return size if not below and divisor == 1 else E.FloorDiv(size, size_in_order([*below, int64(divisor)]))


def _factors(dims: Iterable[Expr]) -> tuple[list[Expr], int]:
    """The factors that are no numbers, from the first to the last, and the product of the numbers."""
    symbols: list[Expr] = []
    number = 1
    stack = list(dims)[::-1]
    while stack:
        current = stack.pop()
        if isinstance(current, IntImm):
            number *= current.value
        elif isinstance(current, E.Mul):
            stack.extend((current.b, current.a))
        else:
            symbols.append(current)
    return symbols, number


def exact_quotient(a: Expr, b: Expr) -> Expr | None:
    """``q`` with ``a == q * b`` for all values of the symbols; None when there is none, or ``b`` has several terms."""
    dividend, divisor = SHAPES.canonical(a), SHAPES.canonical(b)
    if len(divisor.terms) != 1:
        return None
    ((factors, coefficient),) = divisor.terms.items()
    quotient: dict[P.Monomial, int] = {}
    for monomial, c in dividend.terms.items():
        rest = list(monomial)
        for factor in factors:
            if factor not in rest:
                return None
            rest.remove(factor)
        if c % coefficient:
            return None
        quotient[tuple(rest)] = c // coefficient
    return from_poly(Poly(quotient))


def same_shape(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool | None:
    """Whether two shapes are equal: True, False, or None where it depends on the symbols."""
    if len(a) != len(b):
        return False
    verdicts = [SHAPES.equal(x, y) for x, y in zip(a, b, strict=True)]
    if any(v is False for v in verdicts):
        return False
    return True if all(v is True for v in verdicts) else None


def solve_linear(e: Expr, unknown: Var) -> tuple[int, Poly] | None:
    """``(c, r)`` such that ``e == c * unknown + r`` with ``c`` a non-zero integer and ``r`` free of ``unknown``."""
    canonical = SHAPES.canonical(e)
    identifier = P.intern_atom(Atom("var", var=unknown))
    coefficient = canonical.terms.get((identifier,), 0)
    if coefficient == 0:
        return None
    rest = canonical - Poly({(identifier,): coefficient})
    return None if identifier in P.atoms_of(rest) else (coefficient, rest)


def evaluate(e: Expr, values: Mapping[Var, int]) -> int:
    """The value of an integer expression with every symbol known; ``KeyError`` for an unknown one."""
    table = {id(v): x for v, x in values.items()}
    done: dict[int, int] = {}
    stack: list[tuple[Expr, bool]] = [(e, False)]
    while stack:
        current, expanded = stack.pop()
        if id(current) in done:
            continue
        if isinstance(current, IntImm):
            done[id(current)] = current.value
        elif isinstance(current, Var):
            if id(current) not in table:
                raise KeyError(current.name)
            done[id(current)] = table[id(current)]
        else:
            operands: list[Expr] = [n for n in children(current) if isinstance(n, Expr)]
            if isinstance(current, E.Call):
                operands = list(current.args)
            if not expanded:
                stack.append((current, True))
                stack.extend((operand, False) for operand in operands)
                continue
            function = _EVALUATE.get(type(current))
            if isinstance(current, E.Call):
                function = _EVALUATE_CALLS.get(getattr(current.op, "name", ""))
            if function is None:
                raise TypeError(f"cannot evaluate {type(current).__name__} as an integer")
            done[id(current)] = function(*(done[id(operand)] for operand in operands))
    return done[id(e)]


_EVALUATE: dict[type, Callable[..., int]] = {**INTEGER, E.Cast: lambda a: a}

_EVALUATE_CALLS: dict[str, Callable[..., int]] = {
    "tirx.likely": lambda a: a,
    "tirx.if_then_else": lambda c, a, b: a if c else b,
    "tirx.bitwise_and": operator.and_,
    "tirx.bitwise_or": operator.or_,
    "tirx.bitwise_xor": operator.xor,
}
