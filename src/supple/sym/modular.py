"""Sets of the form ``coeff * k + base``: which remainders an expression can have.

``coeff`` is 1 where nothing is known and 0 for a single number; otherwise ``0 <= base < coeff``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.expr import IntImm, Var
from supple.ir.node import Expr
from supple.sym.facts import Modular
from supple.sym.poly import Poly
from supple.sym.terms import intrinsic_name, operands

EVERYTHING: Modular = (1, 0)


def normal(coeff: int, base: int) -> Modular:
    """The set with ``base`` reduced."""
    coeff = abs(coeff)
    return (coeff, base % coeff) if coeff else (0, base)


def union(a: Modular, b: Modular) -> Modular:
    """The smallest set that holds both."""
    return normal(math.gcd(a[0], b[0], a[1] - b[1]), a[1])


def both(a: Modular, b: Modular) -> Modular:
    """What lies in both sets; ``a`` where nothing does (contradictory facts)."""
    if a[0] == 0:
        return a
    if b[0] == 0:
        return b
    common = math.gcd(a[0], b[0])
    if (a[1] - b[1]) % common:
        return a
    step = a[0] // common
    modulus = b[0] // common
    inverse = pow(step, -1, modulus) if modulus > 1 else 0
    times = (b[1] - a[1]) // common * inverse % modulus
    return normal(a[0] * modulus, a[1] + a[0] * times)


def add(a: Modular, b: Modular) -> Modular:
    return normal(math.gcd(a[0], b[0]), a[1] + b[1])


def multiply(a: Modular, b: Modular) -> Modular:
    return normal(math.gcd(a[0] * b[0], a[0] * b[1], a[1] * b[0]), a[1] * b[1])


def _floordiv(a: Modular, b: Modular) -> Modular:
    if b[0] or b[1] == 0:
        return EVERYTHING
    if a[0] == 0:
        return 0, a[1] // b[1]
    return normal(a[0] // b[1], a[1] // b[1]) if a[0] % b[1] == 0 else EVERYTHING


def _floormod(a: Modular, b: Modular) -> Modular:
    if b[0] or b[1] == 0:
        common = math.gcd(a[0], b[0], b[1])
        # a - b * (a // b), or 0 where b is 0: 0 is in the set only when the common factor divides the base
        return normal(common, a[1]) if common and a[1] % common == 0 else EVERYTHING
    if a[0] % b[1] == 0:
        return 0, a[1] % b[1]
    common = math.gcd(a[0], b[1])
    return normal(common, a[1])


def _truncmod(a: Modular, b: Modular) -> Modular:
    if b[0] == 0 and b[1]:
        return normal(math.gcd(a[0], b[1]), a[1]) if a[0] else (0, math.fmod(a[1], b[1]).__trunc__())
    return EVERYTHING


_BINARY: dict[type, Callable[[Modular, Modular], Modular]] = {
    E.Add: add,
    E.Sub: lambda a, b: normal(math.gcd(a[0], b[0]), a[1] - b[1]),
    E.Mul: multiply,
    E.FloorDiv: _floordiv,
    E.FloorMod: _floormod,
    E.Mod: _truncmod,
    E.Min: union,
    E.Max: union,
}


def _shift_left(a: Modular, b: Modular) -> Modular:
    return multiply(a, (0, 1 << b[1])) if b[0] == 0 and 0 <= b[1] < 62 else EVERYTHING


def _bitwise_and(a: Modular, b: Modular) -> Modular:
    mask = b[1] if b[0] == 0 else -1
    return _floormod(a, (0, mask + 1)) if mask > 0 and mask & (mask + 1) == 0 else EVERYTHING


_CALLS: dict[str, Callable[..., Modular]] = {
    "likely": lambda a: a,
    "if_then_else": lambda c, a, b: union(a, b),
    "bitwise_and": _bitwise_and,
}


def modular_of(
    e: Expr,
    variable: Callable[[Var], Modular],
    memo: dict[int, Modular],
) -> Modular:
    """A set ``coeff * k + base`` that holds every value of ``e``; ``memo`` as in `structural_interval`."""
    stack: list[tuple[Expr, bool]] = [(e, False)]
    while stack:
        current, expanded = stack.pop()
        if id(current) in memo:
            continue
        parts = operands(current) if _looks_into(current) else ()
        if parts and not expanded:
            stack.append((current, True))
            stack.extend((part, False) for part in parts)
            continue
        below = [memo[id(part)] for part in parts]
        memo[id(current)] = _combine(current, below) if parts else _leaf(current, variable)
    return memo[id(e)]


def _looks_into(e: Expr) -> bool:
    if type(e) in _BINARY or isinstance(e, (E.Select, E.Cast)):
        return E.is_scalar(e) and dtypes.row(E.scalar_dtype(e)).kind in ("int", "uint")
    return intrinsic_name(e) in _CALLS


def _combine(e: Expr, parts: list[Modular]) -> Modular:
    kind = type(e)
    if kind in _BINARY:
        return _BINARY[kind](parts[0], parts[1])
    if isinstance(e, E.Select):
        return union(parts[1], parts[2])
    if isinstance(e, E.Cast):
        source, target = dtypes.row(E.scalar_dtype(e.value)), dtypes.row(e.dtype)
        widens = source.kind == target.kind and source.bits <= target.bits
        return parts[0] if widens else EVERYTHING
    return _CALLS[intrinsic_name(e)](*parts)


def _leaf(e: Expr, variable: Callable[[Var], Modular]) -> Modular:
    if isinstance(e, IntImm):
        return 0, e.value
    return variable(e) if isinstance(e, Var) else EVERYTHING


def modular_of_poly(p: Poly, atom: Callable[[int], Modular]) -> Modular:
    """The set of a polynomial, of the sets of its atoms."""
    total: Modular = (0, 0)
    for monomial, coefficient in p.terms.items():
        product: Modular = (0, coefficient)
        for identifier in monomial:
            product = multiply(product, atom(identifier))
        total = add(total, product)
    return total
