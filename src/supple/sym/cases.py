"""Equality of sizes that choose: minima, maxima, divisions and choices by conditions, case by case.

The canonical form of ``max(min(3, n) - min(0, n), 0)`` is not that of ``min(3, n)``, though both are one size. Whether
two sizes are equal is decided here where their canonical forms leave it open: each choice is tried both ways under what
its condition says, and what is left is proved from linear facts (``proof.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.expr import Call, IntImm, Var
from supple.ir.node import Expr
from supple.ir.walk import free_symbols, pre_order, transform
from supple.sym.facts import Facts
from supple.sym.poly import ONE, Bounds, Poly
from supple.sym.proof import prove_non_negative
from supple.sym.terms import intrinsic_name

MAX_CHOICES = 4
PROOF_CASES = 64
SAMPLES = (7, 0, 1, 4, 12, 3)

Canonical = Callable[[Expr], Poly]
Evaluate = Callable[[Expr, dict[Var, int]], int]


def equal_by_cases(a: Expr, b: Expr, canonical: Canonical, bounds: Bounds, evaluate: Evaluate) -> bool:
    """Whether two integer expressions over sizes are proved equal; ``bounds`` says what is known of the variables.

    Numbers are tried first: most sizes that are not equal differ there, and nothing needs to be proved of them.
    """
    symbols = free_symbols(a)
    if {id(s) for s in symbols} != {id(s) for s in free_symbols(b)} or not _agree(a, b, symbols, bounds, evaluate):
        return False
    return _proved(a, b, canonical, bounds, [], MAX_CHOICES)


def _agree(a: Expr, b: Expr, symbols: Sequence[Var], bounds: Bounds, evaluate: Evaluate) -> bool:
    for turn in range(len(SAMPLES)):
        values = {s: SAMPLES[(turn + 2 * place) % len(SAMPLES)] for place, s in enumerate(symbols)}
        if not all(bounds.variable(s)[0] <= value <= bounds.variable(s)[1] for s, value in values.items()):
            continue
        try:
            if evaluate(a, values) != evaluate(b, values):
                return False
        except (KeyError, TypeError):  # it reads data, or calls something
            return False
    return True


def _proved(a: Expr, b: Expr, canonical: Canonical, bounds: Bounds, known: list[Poly], choices: int) -> bool:
    choice = _innermost(a)
    choice = _innermost(b) if choice is None else choice
    said = None if choice is None else choice_of(choice)
    if said is None:
        difference = canonical(a) - canonical(b)
        facts = Facts(non_negative=known)
        return difference.constant == 0 or all(
            prove_non_negative(goal, facts, bounds, PROOF_CASES) for goal in (difference, difference.scale(-1))
        )
    if choices == 0:
        return False
    for holds, value in zip((True, False), said[1:], strict=True):
        facts_here = _facts(said[0], holds, canonical, bounds)
        if facts_here is None:
            return False
        one, other = (transform(e, lambda n, value=value: value if n is choice else None) for e in (a, b))  # type: ignore[misc]
        assert isinstance(one, Expr) and isinstance(other, Expr)
        if not _proved(one, other, canonical, bounds, [*known, *facts_here], choices - 1):
            return False
    return True


def choice_of(e: Expr) -> tuple[Expr, Expr, Expr] | None:
    """The condition of a choice, and its values where that holds or not."""
    if isinstance(e, E.Select):
        return e.condition, e.true_value, e.false_value
    if isinstance(e, Call) and intrinsic_name(e) == "if_then_else":
        return e.args[0], e.args[1], e.args[2]
    return None


def _innermost(e: Expr) -> Expr | None:
    """A choice without choices inside: of those on one path the last."""
    return next((n for n in reversed(list(pre_order(e))) if isinstance(n, Expr) and choice_of(n) is not None), None)


def _facts(condition: Expr, holds: bool, canonical: Canonical, bounds: Bounds) -> list[Poly] | None:
    """What is not negative where a comparison of integers holds, or does not; None for another condition."""
    kind = type(condition) if holds else _OPPOSITE.get(type(condition))
    operands = getattr(condition, "a", None), getattr(condition, "b", None)
    if kind is None or kind not in _OPPOSITE or not all(isinstance(o, Expr) and _whole(o) for o in operands):
        return None
    difference = canonical(operands[1]) - canonical(operands[0])  # type: ignore[arg-type]
    if kind in (E.GT, E.GE):
        difference = difference.scale(-1)
    if kind is E.EQ:
        return [difference, difference.scale(-1)]
    if kind is E.NE:  # a remainder is not 0: it is at least 1
        low, high = bounds.of(difference)
        return [difference - ONE] if low >= 0 else [difference.scale(-1) - ONE] if high <= 0 else []
    return [difference - ONE] if kind in (E.LT, E.GT) else [difference]


def _whole(e: Expr) -> bool:
    return isinstance(e, (IntImm, Var)) or (E.is_scalar(e) and dtypes.is_int(E.scalar_dtype(e)))


_OPPOSITE: dict[type, type] = {E.LT: E.GE, E.GE: E.LT, E.GT: E.LE, E.LE: E.GT, E.EQ: E.NE, E.NE: E.EQ}
