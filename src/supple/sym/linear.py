"""Linear equations and inequalities: detecting them, solving them for a variable, and bounds that conditions imply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from supple.ir import expr as E
from supple.ir.expr import IntImm, Range, Var
from supple.ir.node import Expr, Node, children, node, set_field
from supple.ir.walk import substitute
from supple.sym import poly as P
from supple.sym.analyzer import Analyzer
from supple.sym.int_set import IntervalSet, IntSet
from supple.sym.poly import Poly
from supple.sym.terms import is_index


def _var_atom(var: Var) -> int:
    return P.intern_atom(P.Atom("var", var=var))


def _split(p: Poly, atom: int) -> tuple[Poly, Poly] | None:
    """``(c, r)`` with ``p == c * atom + r``, both free of the atom; None when there are none."""
    coefficient: dict[P.Monomial, int] = {}
    rest: dict[P.Monomial, int] = {}
    for monomial, number in p.terms.items():
        count = monomial.count(atom)
        if count > 1:
            return None
        if count:
            left = list(monomial)
            left.remove(atom)
            coefficient[tuple(left)] = number
        else:
            rest[monomial] = number
    made = (Poly(coefficient), Poly(rest))
    hidden = any(atom in P.atoms_of(q) for q in made)
    return None if hidden or _in_opaque(made, atom) else made


def _in_opaque(parts: Sequence[Poly], atom: int) -> bool:
    var = P.atom_of(atom).var
    for part in parts:
        for identifier in P.atoms_of(part):
            e = P.atom_of(identifier).opaque
            if e is not None and var is not None and any(v is var for v in _variables(e)):
                return True
    return False


def _variables(e: Any) -> list[Var]:
    from_walk: list[Var] = []
    stack: list[Node] = [e]
    seen: set[int] = set()
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, Var):
            from_walk.append(current)
        stack.extend(children(current))
    return from_walk


def detect_linear_equation(expr: Any, var_list: Sequence[Var]) -> tuple[Any, ...]:
    """``(c0, ..., base)`` with ``expr == c0 * var0 + ... + base``, all free of the variables; empty if not linear."""
    analyzer = Analyzer()
    e = analyzer._enter(expr)
    if not is_index(e):
        return ()
    rest = analyzer.lift.of(e)
    lower = analyzer.lower(E.scalar_dtype(e))
    found: list[Poly] = []
    for var in var_list:
        parts = _split(rest, _var_atom(var))
        if parts is None:
            return ()
        coefficient, rest = parts
        found.append(coefficient)
    atoms = {_var_atom(v) for v in var_list}
    if any(i in atoms for c in found for m in c.terms for i in m):
        return ()
    return (*(lower.of(c) for c in found), lower.of(rest))


def detect_clip_bound(expr: Any, var_list: Sequence[Var]) -> tuple[Any, ...]:
    """``(low0, high0, ...)`` that a conjunction of comparisons sets to each variable; None where it sets none.

    Empty where a part of the condition is no comparison that is linear in just one of the variables.
    """
    analyzer = Analyzer()
    lows: list[Any] = [None] * len(var_list)
    highs: list[Any] = [None] * len(var_list)
    pending = [analyzer._enter(expr)]
    while pending:
        e = pending.pop()
        if isinstance(e, E.And):
            pending += [e.a, e.b]
            continue
        solved = [(n, s) for n, v in enumerate(var_list) for s in [_solve(e, v, analyzer)] if s is not None]
        if len(solved) != 1:
            return ()
        position, (low, high) = solved[0]
        lows[position] = _join(E.Max, lows[position], low, analyzer)
        highs[position] = _join(E.Min, highs[position], high, analyzer)
    return tuple(end for pair in zip(lows, highs, strict=True) for end in pair)


def _join(kind: type, a: Any, b: Any, analyzer: Analyzer) -> Any:
    if a is None or b is None:
        return a if b is None else b
    return analyzer.simplify(kind(a, b))


def _differences(e: Any, analyzer: Analyzer) -> list[Poly]:
    """Polynomials that are all ``>= 0`` exactly when a comparison holds; none for anything else."""
    if not isinstance(e, (E.LT, E.LE, E.GT, E.GE, E.EQ)) or not is_index(e.a):
        return []
    a, b = analyzer.lift.of(analyzer._enter(e.a)), analyzer.lift.of(analyzer._enter(e.b))
    if isinstance(e, (E.GT, E.GE)):
        a, b = b, a
    if isinstance(e, E.EQ):
        return [b - a, a - b]
    return [b - a - (P.ONE if isinstance(e, (E.LT, E.GT)) else P.ZERO)]


def _solve(e: Any, var: Var, analyzer: Analyzer) -> tuple[Any, Any] | None:
    """The ends that a comparison sets to a variable; None when it does not mention it linearly."""
    low: Any = None
    high: Any = None
    lower = analyzer.lower(E.scalar_dtype(var))
    differences = _differences(e, analyzer)
    for p in differences:
        parts = _split(p, _var_atom(var))
        if parts is None or parts[0] == P.ZERO:
            return None
        sign = _sign(parts[0], analyzer)
        if sign == 0:
            return None
        coefficient, rest = lower.of(parts[0].scale(sign)), parts[1]
        if sign > 0:  # c * v + r >= 0: v >= ceil(-r / c)
            end = E.FloorDiv(lower.of(rest.scale(-1) + parts[0] - P.ONE), coefficient)
            low = _join(E.Max, low, analyzer.simplify(end), analyzer)
        else:
            high = _join(E.Min, high, analyzer.simplify(E.FloorDiv(lower.of(rest), coefficient)), analyzer)
    return (low, high) if differences else None


def _sign(p: Poly, analyzer: Analyzer) -> int:
    low, high = analyzer.bounds.of(p)
    return 1 if low > 0 else -1 if high < 0 else 0


def deduce_bound(var: Var, cond: Any, hint_map: Mapping[Var, IntSet], relax_map: Mapping[Var, IntSet]) -> IntSet:
    """A set of values of ``var`` for all of which a comparison holds, while the variables of ``relax_map`` run over
    their sets. Everything open at both ends where none is found.

    ``hint_map`` tells the sets of other variables, to know signs; those that are relaxed as well run.
    """
    analyzer = Analyzer()
    for other, known in {**hint_map, **relax_map}.items():
        low, high = known.low(), known.high()
        if low is not None and high is not None and other is not var:
            analyzer.bind(other, Range(low, analyzer.simplify(high - low + 1)), allow_override=True)
    e = analyzer._enter(cond)
    if isinstance(e, (E.EQ, E.NE)) or not isinstance(e, E.CompareOp):
        solved = _solve(e, var, analyzer) if isinstance(e, E.EQ) and not relax_map else None
    else:
        solved = _solve(e, var, analyzer)
    if solved is None:
        return IntervalSet(None, None)
    low, high = solved
    relaxed = {**relax_map}
    if low is not None:
        low = analyzer.int_set(low, relaxed).high() if relaxed else low
    if high is not None:
        high = analyzer.int_set(high, relaxed).low() if relaxed else high
    return IntervalSet(low, high)


# ------------------------------------------------------------------------------------------------ systems of equations


@node
class IntGroupBounds(Node):
    """``coef * var`` is at least every one of ``lower``, at most every one of ``upper``, and equal to those in
    ``equal``."""

    coef: Any
    lower: tuple[Any, ...] = ()
    equal: tuple[Any, ...] = ()
    upper: tuple[Any, ...] = ()

    @staticmethod
    def from_range(domain: Range) -> IntGroupBounds:
        """The bounds of a variable that runs over a range."""
        analyzer = Analyzer()
        low: Any = domain.min
        high = analyzer.simplify(low + domain.extent - 1)
        one = E.const(1, E.scalar_dtype(domain.min))
        return IntGroupBounds(one, (domain.min,), (), (high,))

    def find_best_range(self, ranges: Mapping[Var, Range] | None = None) -> Range | None:
        """A range from the largest lower to the smallest upper end; None without both."""
        analyzer = Analyzer()
        for var, domain in (ranges or {}).items():
            analyzer.bind(var, domain)
        lows = [*self.lower, *self.equal]
        highs = [*self.upper, *self.equal]
        if not lows or not highs:
            return None
        low, high = lows[0], highs[0]
        for other in lows[1:]:
            low = E.Max(low, other)
        for other in highs[1:]:
            high = E.Min(high, other)
        coef = self.coef
        first = analyzer.simplify(E.FloorDiv(low + coef - 1, coef))
        return Range(first, analyzer.simplify(E.FloorDiv(high, coef) - first + 1))


@node
class IntConstraints(Node):
    """Variables with their ranges and relations (conditions) between them."""

    variables: tuple[Var, ...]
    ranges: dict[Var, Range]
    relations: tuple[Any, ...]

    def __post_init__(self) -> None:
        set_field(self, "variables", tuple(self.variables or ()))
        set_field(self, "ranges", dict(self.ranges or {}))
        set_field(self, "relations", tuple(self.relations or ()))


@node
class IntConstraintsTransform(Node):
    """Two systems with the same solutions: ``src_to_dst`` gives the new variables in terms of the old ones."""

    src: IntConstraints
    dst: IntConstraints
    src_to_dst: dict[Var, Any]
    dst_to_src: dict[Var, Any]


def _system(equations: Any, variables: Any, ranges: Any) -> IntConstraints:
    if isinstance(equations, IntConstraints):
        return equations
    relations = [equations] if isinstance(equations, Expr) else list(equations)
    found: Sequence[Var] = variables or list({id(v): v for e in relations for v in _variables(e)}.values())
    return IntConstraints(tuple(found), dict(ranges or {}), tuple(relations))


def solve_linear_equations(equations: Any, variables: Any = None, ranges: Any = None) -> IntConstraintsTransform:
    """Eliminate variables by equations ``c * v + rest == 0`` in which ``c`` is 1 or -1 (or divides the rest).

    The result's ``dst`` has the variables that are left, the ranges of those eliminated as relations, and what could
    not be solved; ``dst_to_src`` has every source variable in terms of those left. A system without solutions has the
    relation ``False``.
    """
    src = _system(equations, variables, ranges)
    analyzer = Analyzer()
    solved: dict[Var, Expr] = {}
    left: list[Expr] = []
    pending = list(src.relations)
    while pending:
        e = analyzer.simplify(substitute(pending.pop(0), solved))
        if isinstance(e, IntImm):
            if not e.value:
                return _unsolvable(src)
            continue
        found = _eliminated(e, [v for v in src.variables if not any(v is s for s in solved)], analyzer)
        if found is None:
            left.append(e)
            continue
        var, value = found
        solved = {v: analyzer.simplify(substitute(x, {var: value})) for v, x in solved.items()}
        solved[var] = value
        pending, left = left + pending, []
    kept = tuple(v for v in src.variables if not any(v is s for s in solved))
    relations = list(left)
    for var, value in solved.items():
        if var in src.ranges:
            domain: Any = src.ranges[var]
            for end in (domain.min <= value, value < domain.min + domain.extent):
                relation = analyzer.simplify(substitute(end, solved))
                if not (isinstance(relation, IntImm) and relation.value):
                    relations.append(relation)
    dst = IntConstraints(kept, {v: r for v, r in src.ranges.items() if any(v is k for k in kept)}, tuple(relations))
    same: dict[Var, Any] = {v: v for v in kept}
    return IntConstraintsTransform(src, dst, same, {**same, **solved})


def _unsolvable(src: IntConstraints) -> IntConstraintsTransform:
    return IntConstraintsTransform(src, IntConstraints((), {}, (E.const(False, "bool"),)), {}, {})


def _eliminated(e: Any, variables: Sequence[Var], analyzer: Analyzer) -> tuple[Var, Expr] | None:
    if not isinstance(e, E.EQ) or not is_index(e.a):
        return None
    p = analyzer.lift.of(e.a) - analyzer.lift.of(e.b)
    for var in variables:
        parts = _split(p, _var_atom(var))
        number = parts[0].constant if parts is not None else None
        if parts is None or not number or any(c % number for c in parts[1].terms.values()):
            continue
        value = Poly({m: -(c // number) for m, c in parts[1].terms.items()})
        return var, analyzer.lower(E.scalar_dtype(var)).of(value)
    return None


def solve_linear_inequalities(
    equations: Any, variables: Any = None, ranges: Any = None, deskew_range: bool = False
) -> Any:
    """Solve a conjunction of comparisons for its variables, in order: each variable's bounds mention later ones only.

    Returns ``(bounds, relations)``: an `IntGroupBounds` a variable, and what could not be used. With ``deskew_range``
    an `IntConstraintsTransform` whose variables start at 0.
    """
    src = _system(equations, variables, ranges)
    analyzer = Analyzer()
    relations: list[Expr] = []
    pending = [*src.relations]
    ranges_known: Mapping[Var, Any] = src.ranges
    for var, domain in ranges_known.items():
        pending += [domain.min <= var, var < domain.min + domain.extent]
    known: list[Poly] = []
    while pending:
        e = analyzer.simplify(pending.pop(0))
        if isinstance(e, E.And):
            pending[:0] = [e.a, e.b]
            continue
        made = _differences(e, analyzer)
        known += made
        if not made and not (isinstance(e, IntImm) and e.value):
            relations.append(e)
    bounds: dict[Var, IntGroupBounds] = {}
    for var in src.variables:
        group, known = _bounds_of(var, known, analyzer)
        bounds[var] = group
    for p in known:
        known_side: Any = analyzer.lower("int32").of(p)
        relation = analyzer.simplify(known_side >= 0)
        if not (isinstance(relation, IntImm) and relation.value):
            relations.append(relation)
    return _deskewed(src, bounds, relations, analyzer) if deskew_range else (bounds, relations)


def _bounds_of(var: Var, known: list[Poly], analyzer: Analyzer) -> tuple[IntGroupBounds, list[Poly]]:
    """A variable's bounds, and what the others must satisfy for it to have a value (over the rationals)."""
    lower: Any = analyzer.lower(E.scalar_dtype(var))
    lows: list[tuple[int, Poly]] = []
    highs: list[tuple[int, Poly]] = []
    rest: list[Poly] = []
    for p in known:
        parts = _split(p, _var_atom(var))
        number = parts[0].constant if parts is not None else None
        if parts is None or not number:
            rest.append(p)
        else:
            (lows if number > 0 else highs).append((abs(number), parts[1]))
    rest += [low.scale(h) + high.scale(c) for c, low in lows for h, high in highs]
    ceil = [lower.of(r.scale(-1) + P.constant(c - 1)) // c for c, r in lows]
    floor = [lower.of(r) // c for c, r in highs]
    low_ends, high_ends = (tuple(analyzer.simplify(e) for e in ends) for ends in (ceil, floor))
    equal = tuple(e for e in low_ends if any(e is o for o in high_ends))
    one = E.const(1, E.scalar_dtype(var))
    group = IntGroupBounds(
        one,
        tuple(e for e in low_ends if not any(e is o for o in equal)),
        equal,
        tuple(e for e in high_ends if not any(e is o for o in equal)),
    )
    return group, rest


def _deskewed(
    src: IntConstraints, bounds: dict[Var, IntGroupBounds], relations: list[Expr], analyzer: Analyzer
) -> IntConstraintsTransform:
    to_src: dict[Var, Expr] = {}
    to_dst: dict[Var, Expr] = {}
    made: list[Var] = []
    ranges: dict[Var, Range] = {}
    for var in reversed(src.variables):  # later variables first: the bounds of earlier ones mention them
        domain = bounds[var].find_best_range(src.ranges)
        fresh = Var(f"{var.name}_shifted", var.ty)
        low = substitute(domain.min, to_src) if domain is not None else E.const(0, E.scalar_dtype(var))
        if domain is not None:
            ranges[fresh] = Range(E.const(0, E.scalar_dtype(var)), analyzer.simplify(substitute(domain.extent, to_src)))
        to_src[var] = analyzer.simplify(low + fresh)
        to_dst[fresh] = analyzer.simplify(var - (domain.min if domain is not None else 0))
        made.insert(0, fresh)
    # every relation is kept: a rational bound may have no integer in it
    kept = [analyzer.simplify(substitute(e, to_src)) for e in (*src.relations, *relations)]
    left = tuple(e for e in kept if not (isinstance(e, IntImm) and e.value))
    return IntConstraintsTransform(src, IntConstraints(tuple(made), ranges, left), to_dst, to_src)
