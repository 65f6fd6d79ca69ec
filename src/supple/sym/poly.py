"""The canonical form of integer expressions: polynomials with integer coefficients over interned atoms.

An atom is a variable or an operation that is not polynomial (floor division, min, max, anything opaque). Two
expressions with the same canonical form are equal for all values of their symbols; the converse does not hold.
Arithmetic is that of the mathematical integers: the value of an expression that wraps in its dtype is not modelled.
"""

from __future__ import annotations

import functools
import math
import threading
import zlib
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass

from supple.ir.expr import Var
from supple.ir.node import Expr

Monomial = tuple[int, ...]  # sorted ids of atoms, repeated for powers; () is the constant
Interval = tuple[float, float]  # inclusive; -inf and inf are unbounded

MAX_NESTING = 50
"""Remainders inside remainders are read back to this depth."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A variable (``kind == "var"``) or an operation on polynomials (``floordiv``, ...) or an opaque node."""

    kind: str
    var: Var | None = None
    args: tuple[Poly, ...] = ()
    opaque: Expr | None = None


class Poly:
    """A polynomial. Immutable; equality and hash are those of the canonical form."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms: dict[Monomial, int] = dict(terms)
        if 0 in self.terms.values():
            self.terms = {m: c for m, c in terms.items() if c != 0}
        self._hash: int | None = None  # most polynomials are never looked up

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __add__(self, other: Poly) -> Poly:
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return Poly(terms)

    def __sub__(self, other: Poly) -> Poly:
        return self + other.scale(-1)

    def scale(self, factor: int) -> Poly:
        return Poly({m: c * factor for m, c in self.terms.items()})

    def __mul__(self, other: Poly) -> Poly:
        terms: dict[Monomial, int] = {}
        for m1, c1 in self.terms.items():
            for m2, c2 in other.terms.items():
                product = tuple(sorted(m1 + m2))
                terms[product] = terms.get(product, 0) + c1 * c2
        return Poly(terms)

    @property
    def constant(self) -> int | None:
        """The value when there are no atoms, else None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and () in self.terms:
            return self.terms[()]
        return None

    def content(self) -> int:
        """The greatest common divisor of the coefficients (0 for the zero polynomial)."""
        return math.gcd(*self.terms.values()) if self.terms else 0


Order = tuple[int, str, int, int]
"""Where an atom stands among others in text: kind, text, checksum of the whole text, id."""

_interning = threading.Lock()
_interned: dict[tuple[object, ...], int] = {}
_atoms: list[Atom] = []
_orders: list[Order] = []
_SHOWN = 100  # characters of an atom's text that are compared; beyond that checksums are


def intern_atom(atom: Atom) -> int:
    """The id of an atom; equal atoms have equal ids. Variables and opaque nodes are equal by identity."""
    key = (atom.kind, id(atom.var), atom.args, id(atom.opaque))
    found = _interned.get(key)
    if found is None:
        with _interning:  # threads may build and compile at once: each atom has an id of its own
            found = _interned.get(key)
            if found is None:
                found = len(_atoms)
                _orders.append(_order(atom, found))
                _atoms.append(atom)
                _interned[key] = found
    return found


def atom_of(identifier: int) -> Atom:
    return _atoms[identifier]


def _order(atom: Atom, identifier: int) -> Order:
    """By names, since ids tell what this process saw first: variables before operations. Atoms of the same names (and
    opaque nodes) keep the order of their ids. The parts are atoms that have their places, however deep they are."""
    if atom.var is not None:
        return 0, atom.var.name, 0, identifier
    if atom.opaque is not None:
        return 1, "", 0, identifier
    texts, sums = [], []
    for part in atom.args:
        for monomial, coefficient in ordered(part):
            places = [_orders[factor] for factor in factors_of(monomial)]
            texts.append(f"{'*'.join(text for _, text, _, _ in places)}*{coefficient}")
            sums.append(f"{coefficient},{[(text, check) for _, text, check, _ in places]}")
        texts.append(",")
    return 2, f"{atom.kind}({'+'.join(texts)})"[:_SHOWN], zlib.crc32(f"{atom.kind}{sums}".encode()), identifier


def order_of(identifier: int) -> Order:
    """Where an atom stands among others in text."""
    return _orders[identifier]


def ordered(poly: Poly) -> list[tuple[Monomial, int]]:
    """The terms as text has them."""
    if len(poly.terms) < 2:
        return list(poly.terms.items())
    return sorted(poly.terms.items(), key=lambda term: sorted(map(order_of, term[0])))


def factors_of(monomial: Monomial) -> list[int]:
    """The factors as text has them."""
    return list(monomial) if len(monomial) < 2 else sorted(monomial, key=order_of)


@functools.lru_cache(maxsize=4096, typed=True)
def constant(value: int) -> Poly:
    return Poly({(): value})


def of_atom(atom: Atom) -> Poly:
    return Poly({(intern_atom(atom),): 1})


_variables: dict[int, Poly] = {}  # by id: what was interned is never freed


def of_var(var: Var) -> Poly:
    found = _variables.get(id(var))
    if found is None:
        found = _variables[id(var)] = of_atom(Atom("var", var=var))
    return found


ZERO = constant(0)
ONE = constant(1)


class Bounds:
    """Intervals of polynomials, given intervals of variables (unlisted ones get ``default``).

    A subclass that knows more says so in ``variable``, ``opaque`` and ``learnt``.
    """

    def __init__(self, ranges: Mapping[Var, Interval] | None, default: Interval) -> None:
        self._ranges = {id(v): r for v, r in (ranges or {}).items()}
        self._default = default
        self._memo: dict[int, Interval] = {}

    def variable(self, var: Var) -> Interval:
        """What is known of a variable."""
        return self._ranges.get(id(var), self._default)

    def opaque(self, e: Expr) -> Interval:
        """What is known of an expression that has no canonical form."""
        return -math.inf, math.inf

    def learnt(self, identifier: int, interval: Interval) -> Interval:
        """The interval of an atom, narrowed by what is known of that very atom."""
        return interval

    def of(self, poly: Poly) -> Interval:
        """An interval that holds every value of ``poly``."""
        # operands are interned before what is made of them: in order of ids nothing recurses deeply
        for identifier in atoms_of(poly, self._memo):
            self._memo[identifier] = self.learnt(identifier, self._of_atom(atom_of(identifier)))
        return self._sum(poly)

    def _sum(self, poly: Poly, depth: int = 0) -> Interval:
        low: float = 0
        high: float = 0
        mods: list[tuple[Poly, int, int]] = []
        if depth < MAX_NESTING:
            poly, mods = split_mods(poly)
        for dividend, divisor, factor in mods:
            inner = self._sum(dividend, depth + 1)
            mod: Interval = inner if inner[0] >= 0 and inner[1] < divisor else (0, divisor - 1)
            low, high = low + min(mod[0] * factor, mod[1] * factor), high + max(mod[0] * factor, mod[1] * factor)
        for monomial, coefficient in poly.terms.items():
            interval: Interval = (1, 1)
            if len(monomial) == 1:
                interval = self._memo[monomial[0]]
            elif monomial:
                for identifier, power in _powers(monomial):
                    interval = mul_intervals(interval, _power(self._memo[identifier], power))
            ends = interval[0] * coefficient, interval[1] * coefficient
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _of_atom(self, atom: Atom) -> Interval:
        if atom.kind == "var":
            assert atom.var is not None
            return self.variable(atom.var)
        if atom.kind == "opaque":
            assert atom.opaque is not None
            return self.opaque(atom.opaque)
        return _INTERVALS[atom.kind](*(self._sum(arg) for arg in atom.args))


def atoms_of(poly: Poly, known: Container[int] = ()) -> list[int]:
    """The atoms that occur anywhere in a polynomial and are not ``known``, operands before what is made of them."""
    found: set[int] = set()
    stack = [poly]
    while stack:
        for monomial in stack.pop().terms:
            for identifier in monomial:
                if identifier not in found and identifier not in known:
                    found.add(identifier)
                    stack.extend(_atoms[identifier].args)
    return sorted(found)


def _powers(monomial: Monomial) -> Iterable[tuple[int, int]]:
    return [(identifier, monomial.count(identifier)) for identifier in dict.fromkeys(monomial)]


MAX_TERMS = 256
MAX_DEGREE = 16
MAX_BITS = 256


def product(a: Poly, b: Poly) -> Poly | None:
    """``a * b``; None where it is no form to reckon with: too many terms or factors, or numbers that no dtype holds."""
    if len(a.terms) * len(b.terms) > MAX_TERMS or _degree(a) + _degree(b) > MAX_DEGREE:
        return None
    return None if _bits(a) + _bits(b) > MAX_BITS else a * b


def _degree(p: Poly) -> int:
    return max((len(m) for m in p.terms), default=0)


def _bits(p: Poly) -> int:
    return max((c.bit_length() for c in p.terms.values()), default=0)


def _power(interval: Interval, power: int) -> Interval:
    result: Interval = (1, 1)
    for _ in range(power):
        result = mul_intervals(result, interval)
    if power % 2 == 0:
        result = (max(result[0], 0), result[1])
    return result


_ENORMOUS = 1 << 256


def mul_intervals(a: Interval, b: Interval) -> Interval:
    """The product of two intervals (0 * inf is 0: the infinity stands for arbitrarily large finite values). What no
    dtype holds by far is infinite: squares of squares would soon be numbers too long to reckon with."""
    products: list[float] = [0 if x == 0 or y == 0 else x * y for x in a for y in b]
    low, high = min(products), max(products)
    return (-math.inf if low < -_ENORMOUS else low), (math.inf if high > _ENORMOUS else high)


def _floordiv_interval(a: Interval, b: Interval) -> Interval:
    if b[0] == b[1] and b[0] != 0:
        ends = [_floor(x / b[0]) if math.isinf(x) else _floordiv(x, b[0]) for x in a]
        return min(ends), max(ends)
    if b[0] >= 0:  # x // 0 is 0 and x // b shrinks towards 0 or -1
        return (min(a[0], 0) if a[0] < 0 else 0, max(a[1], 0))
    return -math.inf, math.inf


def _floordiv(x: float, y: float) -> float:
    return int(x) // int(y)


def _floor(x: float) -> float:
    return x if math.isinf(x) else math.floor(x)


_INTERVALS: dict[str, Callable[..., Interval]] = {
    "floordiv": _floordiv_interval,
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}


def floordiv(a: Poly, b: Poly, bounds: Bounds) -> Poly:
    """``a // b`` (floor; 0 when ``b`` is 0), with the multiples of a constant divisor taken out."""
    divisor = b.constant
    if divisor == 0:
        return ZERO
    if divisor is None:
        if a == b and bounds.of(b)[0] > 0:
            return ONE
        return ZERO if a == ZERO else of_atom(Atom("floordiv", args=(a, b)))
    if divisor < 0:
        return floordiv(a.scale(-1), constant(-divisor), bounds)
    quotient = Poly({m: c // divisor for m, c in a.terms.items() if c % divisor == 0})
    rest = Poly({m: c for m, c in a.terms.items() if c % divisor != 0})
    # the constant term of the rest goes out by its own quotient: (4x + y + 9) // 4 = x + 2 + (y + 1) // 4
    if () in rest.terms and len(rest.terms) > 1:
        whole = rest.terms[()] // divisor
        quotient, rest = quotient + constant(whole), rest - constant(whole * divisor)
    low, high = bounds.of(rest)
    if math.isfinite(low) and math.isfinite(high) and low // divisor == high // divisor:
        return quotient + constant(int(low // divisor))
    common = math.gcd(rest.content(), divisor)
    if common > 1:
        rest = Poly({m: c // common for m, c in rest.terms.items()})
        divisor //= common
    nested = _nested_division(rest)
    if nested is not None:  # (x // p) // q = x // (p * q)
        inner, inner_divisor = nested
        return quotient + floordiv(inner, constant(inner_divisor * divisor), bounds)
    return quotient + of_atom(Atom("floordiv", args=(rest, constant(divisor))))


def _nested_division(poly: Poly) -> tuple[Poly, int] | None:
    if len(poly.terms) != 1:
        return None
    ((monomial, coefficient),) = poly.terms.items()
    if coefficient != 1 or len(monomial) != 1:
        return None
    atom = _atoms[monomial[0]]
    if atom.kind != "floordiv":
        return None
    inner_divisor = atom.args[1].constant
    return (atom.args[0], inner_divisor) if inner_divisor is not None and inner_divisor > 0 else None


_mods: dict[int, list[tuple[Poly, Poly, int]]] = {}
"""Of a floor division's atom: the remainders that were written with it, as ``(a - c * (a // c), a, c)``."""


def split_mods(p: Poly) -> tuple[Poly, list[tuple[Poly, int, int]]]:
    """Read ``k*x - k*c*(x // c)`` back as ``k * (x % c)``: the rest, and ``(x, c, k)`` of each remainder found."""
    mods: list[tuple[Poly, int, int]] = []
    for monomial in list(p.terms):
        if len(monomial) != 1 or monomial[0] not in _mods:
            continue
        for whole, dividend, divisor in _mods[monomial[0]]:
            coefficient = p.terms.get(monomial, 0)
            factor, left = divmod(coefficient, whole.terms[monomial])
            if coefficient and not left and _holds(p, whole, factor):
                mods.append((dividend, divisor, factor))
                p = p - whole.scale(factor)
    return p, mods


def _holds(p: Poly, part: Poly, factor: int) -> bool:
    """Whether every term of ``factor * part`` (but the constant) is in ``p``, no larger than there."""
    for monomial, coefficient in part.terms.items():
        have, take = p.terms.get(monomial, 0), factor * coefficient
        if monomial and (have * take <= 0 or abs(have) < abs(take)):
            return False
    return True


def floormod(a: Poly, b: Poly, bounds: Bounds) -> Poly:
    """``a % b`` (sign of the divisor; 0 when ``b`` is 0) as ``a - b * (a // b)``."""
    divisor = b.constant
    if divisor == 0:
        return ZERO
    if divisor is None:
        low, high = bounds.of(b)
        return of_atom(Atom("floormod", args=(a, b))) if low <= 0 <= high else a - b * floordiv(a, b, bounds)
    if divisor < 0:
        return floormod(a.scale(-1), constant(-divisor), bounds).scale(-1)
    # only what the divisor does not divide matters: (8x + 6y + 9) % 4 = (6y + 1) % 4
    a = Poly({m: (c if m else c % divisor) for m, c in a.terms.items() if c % divisor})
    common = math.gcd(a.content(), divisor)
    if common > 1:
        a = Poly({m: c // common for m, c in a.terms.items()})
        divisor //= common
    quotient = floordiv(a, constant(divisor), bounds)
    whole = a - quotient.scale(divisor)
    for monomial in quotient.terms:
        if len(monomial) == 1 and _atoms[monomial[0]].kind == "floordiv" and whole.terms.get(monomial):
            known = _mods.setdefault(monomial[0], [])
            if all(whole != other for other, _, _ in known):
                known.append((whole, a, divisor))
    return whole.scale(common) if common > 1 else whole


_INTERVALS["floormod"] = lambda a, b: (0, max(b[1] - 1, 0)) if b[0] >= 0 else (-math.inf, math.inf)


def minimum(a: Poly, b: Poly, bounds: Bounds) -> Poly:
    low, high = bounds.of(a - b)
    if high <= 0:
        return a
    if low >= 0:
        return b
    return of_atom(Atom("min", args=_ordered(a, b)))


def maximum(a: Poly, b: Poly, bounds: Bounds) -> Poly:
    low, high = bounds.of(a - b)
    if low >= 0:
        return a
    if high <= 0:
        return b
    return of_atom(Atom("max", args=_ordered(a, b)))


def _ordered(a: Poly, b: Poly) -> tuple[Poly, Poly]:
    def key(p: Poly) -> list[tuple[list[Order], int]]:
        return [(sorted(map(order_of, monomial)), coefficient) for monomial, coefficient in ordered(p)]

    return (a, b) if key(a) <= key(b) else (b, a)
