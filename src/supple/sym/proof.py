"""Proofs of ``p >= 0`` from linear facts: Fourier-Motzkin elimination over the integers.

Products of atoms count as unknowns of their own. To refute a goal its negation is added to everything that is known of
the atoms in it; a contradiction is a proof. Dividing a constraint by the common factor of its coefficients and rounding
the constant makes use of the unknowns being integers. The work is bounded: no proof within the limits is no proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from supple.sym import poly as P
from supple.sym.facts import Facts
from supple.sym.poly import Bounds, Monomial, Poly

MAX_CONSTRAINTS = 160
MAX_UNKNOWNS = 24
MAX_CASES = 6


def prove_non_negative(goal: Poly, facts: Facts, bounds: Bounds, cases: int = MAX_CASES) -> bool:
    """Whether ``goal >= 0`` follows. A minimum or maximum that stands in the way is split into its two cases."""
    if bounds.of(goal)[0] >= 0:
        return True
    return _by_cases(goal, list(facts.non_negative), bounds, cases)


def _by_cases(goal: Poly, known: list[Poly], bounds: Bounds, cases: int) -> bool:
    if any(fact.constant is not None and fact.constant < 0 for fact in known):
        return True  # this case does not happen
    if _refuted([P.ZERO - goal - P.ONE, *_relevant(goal, known, bounds)]):
        return True
    if cases <= 0:
        return False
    for identifier in reversed(P.atoms_of(goal)):
        atom = P.atom_of(identifier)
        if atom.kind not in ("min", "max"):
            continue
        a, b = atom.args
        small, large = (a, b) if atom.kind == "min" else (b, a)
        return all(
            _by_cases(
                replace_atom(goal, identifier, chosen),
                [*(replace_atom(k, identifier, chosen) for k in known), fact],
                bounds,
                cases // 2,
            )
            for chosen, fact in ((a, large - small), (b, small - large))
        )
    return False


def replace_atom(p: Poly, identifier: int, by: Poly) -> Poly:
    """The polynomial with an atom replaced where it stands itself (not inside other atoms)."""
    result = P.ZERO
    for monomial, coefficient in p.terms.items():
        term = P.constant(coefficient)
        for factor in monomial:
            term = term * (by if factor == identifier else Poly({(factor,): 1}))
        result = result + term
    return result


def _relevant(goal: Poly, known: list[Poly], bounds: Bounds) -> list[Poly]:
    """What is known of the unknowns of the goal, and of those that such facts bring in."""
    constraints: list[Poly] = []
    unknowns: set[Monomial] = set()
    atoms: set[int] = set()
    left = list(known)
    fresh = [m for m in goal.terms if m]
    while fresh and len(unknowns) < MAX_UNKNOWNS and len(constraints) < MAX_CONSTRAINTS:
        new: list[Poly] = []
        for monomial in fresh:
            unknowns.add(monomial)
            new += _interval(monomial, bounds)
            for identifier in monomial:
                if identifier not in atoms:
                    atoms.add(identifier)
                    new += _definition(identifier, bounds)
        touching = [f for f in left if any(i in atoms for m in f.terms for i in m)]
        left = [f for f in left if not any(f is t for t in touching)]
        new += touching
        products = [m for m in unknowns if len(m) > 1]
        new += [made for f in new if _is_linear(f) for made in _multiplied(f, products, bounds)]
        constraints += new
        fresh = [m for m in dict.fromkeys(m for f in new for m in f.terms if m) if m not in unknowns]
    return constraints[:MAX_CONSTRAINTS]


def _interval(monomial: Monomial, bounds: Bounds) -> list[Poly]:
    term = Poly({monomial: 1})
    low, high = bounds.of(term)
    found = [] if math.isinf(low) else [term - P.constant(int(low))]
    return found if math.isinf(high) else [*found, P.constant(int(high)) - term]


def _definition(identifier: int, bounds: Bounds) -> list[Poly]:
    """What an atom is by its definition: ``c * (x // c) <= x < c * (x // c) + c``, ``min(x, y) <= x``..."""
    atom = P.atom_of(identifier)
    term = Poly({(identifier,): 1})
    if atom.kind in ("min", "max"):
        a, b = atom.args
        return [a - term, b - term] if atom.kind == "min" else [term - a, term - b]
    if atom.kind not in ("floordiv", "floormod"):
        return []
    a, b = atom.args
    if bounds.of(b)[0] <= 0:
        return []
    if atom.kind == "floormod":
        return [term, b - term - P.ONE, *([a - term] if bounds.of(a)[0] >= 0 else [])]
    rest = a - b * term
    return [rest, b - rest - P.ONE]


def _is_linear(p: Poly) -> bool:
    return all(len(m) <= 1 for m in p.terms)


def _multiplied(fact: Poly, products: list[Monomial], bounds: Bounds) -> Iterable[Poly]:
    """``fact * y`` for a product ``x * y`` with ``x`` in the fact and ``y`` not negative."""
    own = {m[0] for m in fact.terms if m}
    done: set[Monomial] = set()
    for product in products:
        for position, identifier in enumerate(product):
            rest = product[:position] + product[position + 1 :]
            if identifier in own and rest not in done:
                done.add(rest)
                factor = Poly({rest: 1})
                if bounds.of(factor)[0] >= 0:
                    yield fact * factor


def _refuted(constraints: list[Poly]) -> bool:
    """Whether ``c >= 0`` for all the constraints has no integer solution that elimination finds."""
    system = _tightened(constraints)
    while system is not None:
        choice = _cheapest(system)
        if choice is None:
            return False
        lower, upper, rest = _split(system, choice)
        if len(rest) + len(lower) * len(upper) > MAX_CONSTRAINTS:
            return False
        combined = [low.scale(-up.terms[choice]) + up.scale(low.terms[choice]) for low in lower for up in upper]
        system = _tightened([*rest, *combined])
    return True


def _tightened(constraints: list[Poly]) -> list[Poly] | None:
    """The constraints in lowest terms, the tightest of each direction; None when one cannot hold."""
    best: dict[frozenset[tuple[Monomial, int]], int] = {}
    for constraint in constraints:
        constant = constraint.terms.get((), 0)
        content = math.gcd(*(c for m, c in constraint.terms.items() if m))
        if content == 0:
            if constant < 0:
                return None
            continue
        direction = frozenset((m, c // content) for m, c in constraint.terms.items() if m)
        tight = constant // content
        best[direction] = min(best.get(direction, tight), tight)
    made = []
    for direction, constant in best.items():
        opposite = best.get(frozenset((m, -c) for m, c in direction))
        if opposite is not None and constant + opposite < 0:
            return None
        made.append(Poly({**dict(direction), (): constant}))
    return made


def _cheapest(system: list[Poly]) -> Monomial | None:
    ups: dict[Monomial, int] = {}
    downs: dict[Monomial, int] = {}
    for constraint in system:
        for monomial, coefficient in constraint.terms.items():
            if monomial:
                side = ups if coefficient > 0 else downs
                side[monomial] = side.get(monomial, 0) + 1
    every = {**ups, **downs}
    return min(every, key=lambda m: ups.get(m, 0) * downs.get(m, 0)) if every else None


def _split(system: list[Poly], choice: Monomial) -> tuple[list[Poly], list[Poly], list[Poly]]:
    lower = [c for c in system if c.terms.get(choice, 0) > 0]
    upper = [c for c in system if c.terms.get(choice, 0) < 0]
    return lower, upper, [c for c in system if choice not in c.terms]
