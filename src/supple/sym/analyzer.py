"""`Analyzer`: simplification, proofs, bounds, remainders and sets of scalar integer expressions under known facts.

Arithmetic is that of the mathematical integers (a sum that would wrap in its dtype is not modelled), as it is upstream.
``x // 0`` and ``x % 0`` are 0 where programs run and are never folded here. Floats get only what holds for every value,
NaN included.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from supple.base.errors import InternalError
from supple.ir import expr as E
from supple.ir.expr import IntImm, Range, Var
from supple.ir.node import Expr
from supple.sym import poly as P
from supple.sym.const_bound import as_ints, structural_interval
from supple.sym.facts import FactBounds, Facts, Modular, dtype_interval, intersect
from supple.sym.int_set import IntervalSet, IntSet, evaluate_set
from supple.sym.lift import Lift, Lower, opaque
from supple.sym.modular import EVERYTHING, both, modular_of, modular_of_poly, normal
from supple.sym.poly import Interval, Poly
from supple.sym.proof import prove_non_negative
from supple.sym.results import CompareResult, ConstIntBound, Extension, ModularSet, ProofStrength
from supple.sym.rewrite import RewriteLimitError, Rewriter
from supple.sym.terms import Terms, intrinsic_name, is_index, is_truth, operands, rebuilt, within

MAX_TERMS = 200_000
"""A table of interned terms that grows beyond this is started anew."""


class _View:
    """One state of knowledge with what was computed under it."""

    def __init__(self, facts: Facts, owner: Analyzer, terms: Terms, contexts: int = 0) -> None:
        self.facts = facts
        self.terms = terms  # what is remembered by id lives as long as its terms do
        self.intervals: dict[int, Interval] = {}
        self.modulars: dict[int, Modular] = {}
        self.canonical: dict[tuple[int, bool], Expr] = {}
        self.bounds = FactBounds(facts, owner._structural)
        self.lift = Lift(self.bounds, lambda var: facts.values.get(id(var)))
        self.lowers: dict[str, Lower] = {}
        self.contexts = contexts
        self.rewriter = Rewriter(owner, owner._count_step, contexts)


class ConstraintScope:
    """A condition in force inside a ``with`` block."""

    def __init__(self, analyzer: Analyzer, constraint: Expr) -> None:
        self._analyzer = analyzer
        self._constraint = constraint
        self._before: list[_View] = []

    def __enter__(self) -> None:
        self._before.append(self._analyzer._view)
        self._analyzer._learn(self._constraint, True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._before:
            raise InternalError("constraint_scope: left without having been entered")
        self._analyzer._view = self._before.pop()


class Analyzer:
    """Reasons about scalar integer expressions. Facts come from `bind`, `update` and `constraint_scope`."""

    def __init__(self) -> None:
        self._steps = 0
        self._max_steps = 0
        self._view = _View(Facts(), self, Terms())
        self.enabled_extensions: Extension = Extension.NoExtensions

    # what the parts ask of one another -----------------------------------------------------------------------------

    @property
    def terms(self) -> Terms:
        """The interned terms."""
        return self._view.terms

    @property
    def facts(self) -> Facts:
        """What is known now."""
        return self._view.facts

    @property
    def bounds(self) -> FactBounds:
        """Intervals of canonical forms."""
        return self._view.bounds

    @property
    def lift(self) -> Lift:
        """Canonical forms of interned terms."""
        return self._view.lift

    def lower(self, dtype: str) -> Lower:
        """Terms of canonical forms."""
        if dtype not in self._view.lowers:
            self._view.lowers[dtype] = Lower(self.terms, dtype)
        return self._view.lowers[dtype]

    def interval(self, e: Expr) -> Interval:
        """An interval of an interned term: the operators' and the canonical form's, intersected."""
        found = self._structural(e)
        return intersect(found, self.bounds.of(self.lift.of(e))) if is_index(e) else found

    def poly_modular(self, p: Poly) -> Modular:
        """The remainders of a canonical form."""
        return modular_of_poly(p, self._atom_modular)

    @contextmanager
    def assuming(self, condition: Expr, holds: bool) -> Iterator[None]:
        """Assume a simplified condition, or its negation, inside a ``with`` block."""
        before = self._view
        self._learn(condition, holds, before.contexts + 1)
        try:
            yield
        finally:
            self._view = before

    def _structural(self, e: Expr) -> Interval:
        return structural_interval(e, self.bounds.variable, self._view.intervals, self._narrowed)

    def _narrowed(self, e: Expr, interval: Interval) -> Interval:
        if not self.facts.atoms or not is_index(e) or isinstance(e, (E.Add, E.Sub)):
            return interval
        p = self.lift.of(e)
        if len(p.terms) == 1:
            ((monomial, coefficient),) = p.terms.items()
            known = self.facts.atoms.get(monomial[0]) if len(monomial) == 1 and coefficient == 1 else None
            if known is not None:
                return intersect(interval, known)
        return interval

    def _atom_modular(self, identifier: int) -> Modular:
        atom = P.atom_of(identifier)
        found = self.facts.atom_modular.get(identifier, EVERYTHING)
        if atom.var is not None:
            return both(found, self.facts.modular.get(id(atom.var), EVERYTHING))
        return both(found, self.modular(atom.opaque)) if atom.opaque is not None else found

    def modular(self, e: Expr) -> Modular:
        """The remainders of an interned term, read off its operators."""
        return modular_of(e, lambda var: self._atom_modular(P.intern_atom(P.Atom("var", var=var))), self._view.modulars)

    def _count_step(self) -> None:
        self._steps += 1
        if 0 < self._max_steps < self._steps:
            raise RewriteLimitError(f"simplification took more than {self._max_steps} rewrite steps")

    def _enter(self, e: Any) -> Any:
        if len(self.terms) > MAX_TERMS and self._view.contexts == 0:
            self._view = _View(self.facts, self, Terms())
        if not isinstance(e, (Expr, int, float)):
            raise TypeError(f"expected a scalar expression or a number, got {type(e).__name__}")
        value = e if isinstance(e, Expr) else E.const(e)
        E.scalar_dtype(value)
        return self.terms.intern(value)

    # simplification -------------------------------------------------------------------------------------------------

    def rewrite_simplify(self, expr: Any) -> Expr:
        """An equal expression, by rewrite rules; operands keep their order where the rules let them."""
        return self._view.rewriter.visit(self._enter(expr))

    def canonical_simplify(self, expr: Any) -> Expr:
        """An equal expression with every integer part in canonical form: sums of products, larger factors first.

        A canonical form that is longer than what is written is not taken.
        """
        e = self._canonical(self._view.rewriter.visit(self._enter(expr)))
        return self._view.rewriter.visit(e) if is_truth(e) else e

    def simplify(self, expr: Any, steps: int = 2) -> Any:
        """`rewrite_simplify`, then `canonical_simplify`, and so on for ``steps`` steps."""
        e = self._enter(expr)
        for step in range(steps):
            if isinstance(e, IntImm):
                break
            if step % 2 == 0:
                e = self._view.rewriter.visit(e)
            else:
                other = self._canonical(e)
                e = self._view.rewriter.visit(other) if is_truth(other) else other
        return e

    def set_maximum_rewrite_steps(self, maximum: int) -> None:
        """Raise `RewriteLimitError` once more rewrite steps than that were taken in all; 0 and less: no limit."""
        self._max_steps = maximum

    def reset_rewrite_simplify_stats(self) -> None:
        """Count rewrite steps from 0 again."""
        self._steps = 0

    @property
    def rewrite_simplify_stats(self) -> dict[str, int]:
        """How many rewrite steps were taken, and how many terms are interned."""
        return {"rewrites_performed": self._steps, "terms": len(self.terms)}

    def _canonical(self, e: Expr) -> Expr:
        memo = self._view.canonical
        stack: list[tuple[Expr, bool, bool]] = [(e, False, False)]
        while stack:
            current, inner, expanded = stack.pop()
            if (id(current), inner) in memo:
                continue
            parts = operands(current)
            in_sum = isinstance(current, (E.Add, E.Sub))
            below = [(part, in_sum and isinstance(part, (E.Add, E.Sub))) for part in parts]
            if parts and not expanded:
                stack.append((current, inner, True))
                stack.extend((part, flag, False) for part, flag in below)
                continue
            made = self.terms.node(rebuilt(current, tuple(memo[id(part), flag] for part, flag in below)))
            memo[id(current), inner] = made if inner or not parts else self._canonical_node(made)
        return memo[id(e), False]

    def _canonical_node(self, e: Expr) -> Expr:
        if not is_index(e) or (isinstance(e, (E.Select, E.Cast)) and self.lift.of(e) == opaque(e)):
            return e
        try:
            other = self.lower(E.scalar_dtype(e)).of(self.lift.of(e))
        except OverflowError:
            return e  # a number on the way does not fit in the dtype
        size = self._view.rewriter.size
        return other if size(other) <= size(e) else e

    # proofs -----------------------------------------------------------------------------------------------------------

    def can_prove(self, expr: Any, strength: ProofStrength | int = ProofStrength.DEFAULT) -> bool:
        """Whether a condition holds for all values of its variables that the facts allow."""
        return self._prove(self._view.rewriter.visit(self._enter(expr)), 4)

    def can_prove_equal(self, lhs: Any, rhs: Any) -> bool:
        """Whether ``lhs == rhs`` is proved."""
        a, b = E.match_dtypes(lhs, rhs)
        return a is b or self.can_prove(E.EQ(a, b))

    def can_prove_greater_equal(self, expr: Any, lower_bound: int) -> bool:
        """Whether ``expr >= lower_bound`` is proved."""
        return self.can_prove(self._enter(expr) >= lower_bound)

    def can_prove_less(self, expr: Any, upper_bound: int) -> bool:
        """Whether ``expr < upper_bound`` is proved."""
        return self.can_prove(self._enter(expr) < upper_bound)

    def _prove(self, e: Expr, splits: int) -> bool:
        goals = [e]
        while goals:
            goal = goals.pop()
            if isinstance(goal, E.And):
                goals += [goal.a, goal.b]
            elif not self._holds(goal, splits):
                return False
        return True

    def _holds(self, e: Expr, splits: int) -> bool:
        if isinstance(e, IntImm):
            return e.value != 0
        if intrinsic_name(e) == "likely":
            return self._holds(operands(e)[0], splits)
        if isinstance(e, E.Or):
            if splits <= 0:
                return False
            with self.assuming(e.a, False):
                return self._prove(self._view.rewriter.visit(e.b), splits - 1)
        if isinstance(e, E.Select) and is_truth(e):
            return splits > 0 and self._by_selection(e, splits)
        if not isinstance(e, (E.LT, E.LE, E.EQ, E.NE)) or not is_index(e.a):
            return False
        difference = self.lift.of(e.b) - self.lift.of(e.a)
        if isinstance(e, (E.LT, E.LE)):
            proved = self._non_negative(difference - P.ONE if isinstance(e, E.LT) else difference)
        elif isinstance(e, E.EQ):
            proved = self._non_negative(difference) and self._non_negative(P.ZERO - difference)
        else:
            proved = self._non_negative(difference - P.ONE) or self._non_negative(P.ZERO - difference - P.ONE)
        return proved or (splits > 0 and self._by_selection(e, splits))

    def _non_negative(self, p: Poly) -> bool:
        return prove_non_negative(p, self.facts, self.bounds)

    def _by_selection(self, e: Expr, splits: int) -> bool:
        """A condition that holds in both cases of a selection inside it, or that it is."""
        kinds = (term for term in within(e) if isinstance(term, E.Select) or intrinsic_name(term) == "if_then_else")
        chosen = next(kinds, None)
        if chosen is None:
            return False
        for holds in (True, False):
            with self.assuming(operands(chosen)[0], holds):
                value = operands(chosen)[1 if holds else 2]
                goal = self._view.rewriter.visit(self.terms.intern(_replaced(e, chosen, value)))
                if not self._prove(goal, splits - 1):
                    return False
        return True

    def try_compare(self, lhs: Any, rhs: Any, propagate_inequalities: bool = True) -> CompareResult:
        """The most specific relation of two expressions that is proved."""
        a, b = E.match_dtypes(lhs, rhs)
        result = int(CompareResult.UNKNOWN)
        for relation, kind in ((CompareResult.LE, E.LE), (CompareResult.GE, E.GE), (CompareResult.NE, E.NE)):
            if self.can_prove(kind(a, b)):
                result &= relation
        return CompareResult(result)

    # bounds, remainders, sets -------------------------------------------------------------------------------------

    def const_int_bound(self, expr: Any) -> ConstIntBound:
        """The smallest interval of constants found that holds every value."""
        e = self._enter(expr)
        interval = intersect(self.interval(e), self.interval(self._view.rewriter.visit(e)))
        return ConstIntBound(*as_ints(interval, ConstIntBound.POS_INF))

    def const_int_bound_is_bound(self, var: Var) -> bool:
        """Whether an interval of the variable was given (by `bind` or `update`)."""
        return id(var) in self.facts.ranges

    def modular_set(self, expr: Any) -> ModularSet:
        """``coeff`` and ``base`` such that every value is ``coeff * k + base``."""
        e = self._enter(expr)
        found = self.modular(e)
        if is_index(e):
            found = both(found, self.poly_modular(self.lift.of(e)))
            found = both(found, self.modular(self._view.rewriter.visit(e)))
            low, high = self.interval(e)
            if low == high:
                found = (0, int(low))
        return ModularSet(*found)

    def int_set(self, expr: Any, dom_map: Mapping[Var, IntSet] | None = None) -> IntSet:
        """A set that holds every value while the variables of ``dom_map`` run over their sets.

        Without ``dom_map`` the ranges that variables were bound to are used.
        """
        domains = {id(v): s for v, s in dom_map.items()} if dom_map is not None else self._domains()
        return evaluate_set(self._enter(expr), domains, self)

    def _domains(self) -> dict[int, IntSet]:
        return {key: IntervalSet(low, high) for key, (low, high) in self.facts.domains.items()}

    @property
    def is_z3_enabled(self) -> bool:
        """False: there is no SMT extension."""
        return False

    # facts --------------------------------------------------------------------------------------------------------

    def bind(self, var: Var, expr: Any, allow_override: bool = False) -> None:
        """``var`` is ``expr``, or any number of a `Range` (which is taken not to be empty).

        Raises ``ValueError`` for a second, different binding without ``allow_override``.
        """
        if not isinstance(var, Var):
            raise TypeError(f"bind: expected a variable, got {type(var).__name__}")
        if isinstance(expr, Range):
            self._bind_range(var, expr, allow_override)
            return
        value = self.simplify(E.cast(E.scalar_dtype(var), expr))
        old = self.facts.values.get(id(var))
        if old is not None and old is not value and not allow_override:
            raise ValueError(f"bind: {var.name} is bound to {old} already; allow_override=True replaces it")
        if any(term is var for term in within(value)):
            raise ValueError(f"bind: {var.name} cannot stand for an expression of itself: {value}")
        facts = self.facts.copy()
        facts.values[id(var)] = value
        facts.ranges[id(var)] = self.interval(value)
        facts.modular[id(var)] = self.modular(value)
        facts.domains[id(var)] = (value, value)
        facts.kept += [var, value]
        self._know(facts)

    def _bind_range(self, var: Var, domain: Range, allow_override: bool) -> None:
        dtype = E.scalar_dtype(var)
        low = self.simplify(E.cast(dtype, domain.min))
        extent = self.simplify(E.cast(dtype, domain.extent))
        if isinstance(extent, IntImm) and extent.value == 1:
            self.bind(var, low, allow_override)
            return
        high = self.simplify(low + extent - 1)
        interval = (self.interval(low)[0], self.interval(high)[1])
        old = self.facts.ranges.get(id(var))
        if old is not None and old != interval and not allow_override:
            raise ValueError(f"bind: {var.name} is bound to {old} already; allow_override=True replaces it")
        facts = self.facts.copy()
        facts.values.pop(id(var), None)
        facts.ranges[id(var)] = interval
        facts.domains[id(var)] = (low, high)
        own = P.of_atom(P.Atom("var", var=var))
        if old is not None:
            facts.non_negative = [f for f in facts.non_negative if own.terms.keys().isdisjoint(f.terms)]
        facts.kept += [var, low, high]
        symbolic = [f for f in (own - self.lift.of(low), self.lift.of(high) - own) if _is_symbolic(f, own)]
        facts.non_negative += symbolic
        self._know(facts)
        for fact in symbolic:  # with an interval of the variable its range tells of the ends: m > j >= 0
            facts = self.facts.copy()
            self._learn_intervals(fact, facts)
            self._know(facts)

    def update(self, var: Var, info: ConstIntBound | ModularSet | IntSet, override: bool = False) -> None:
        """Set what is known of a variable: its interval, its remainders, or its set.

        Raises ``ValueError`` where something else is known already and ``override`` is false.
        """
        facts = self.facts.copy()
        facts.kept.append(var)
        if isinstance(info, ConstIntBound):
            low = -math.inf if info.min_value <= ConstIntBound.NEG_INF else info.min_value
            high = math.inf if info.max_value >= ConstIntBound.POS_INF else info.max_value
            _refuse_change(var, facts.ranges.get(id(var)), (low, high), override)
            facts.ranges[id(var)] = (low, high)
        elif isinstance(info, ModularSet):
            _refuse_change(var, facts.modular.get(id(var)), normal(info.coeff, info.base), override)
            facts.modular[id(var)] = normal(info.coeff, info.base)
        elif isinstance(info, IntSet):
            ends = (info.low(), info.high())
            _refuse_change(var, facts.domains.get(id(var)), ends, override)
            facts.domains[id(var)] = ends
            facts.kept += [end for end in ends if end is not None]
        else:
            raise TypeError(f"update: expected ConstIntBound, ModularSet or IntSet, got {type(info).__name__}")
        self._know(facts)

    def constraint_scope(self, constraint: Expr) -> ConstraintScope:
        """A condition that holds inside the ``with`` block."""
        E.scalar_dtype(constraint)
        return ConstraintScope(self, constraint)

    def clone(self) -> Analyzer:
        """An analyzer of its own with the same facts."""
        made = Analyzer()
        made._view = _View(self.facts.copy(), made, self.terms)  # conditions are known by identity of interned terms
        made.enabled_extensions = self.enabled_extensions
        return made

    def _know(self, facts: Facts) -> None:
        self._view = _View(facts, self, self.terms, self._view.contexts)

    def _learn(self, condition: Expr, holds: bool, contexts: int | None = None) -> None:
        depth = self._view.contexts if contexts is None else contexts
        e = self._view.rewriter.visit(self._enter(condition if holds else E.Not(condition)))
        facts = self.facts.copy()
        pending = [e]
        while pending:
            literal = pending.pop()
            if isinstance(literal, E.And):
                pending += [literal.a, literal.b]
            elif intrinsic_name(literal) == "likely":
                pending.append(operands(literal)[0])
            else:
                self._learn_literal(literal, facts)
        self._view = _View(facts, self, self.terms, depth)

    def _learn_literal(self, e: Expr, facts: Facts) -> None:
        if isinstance(e, IntImm):
            return
        facts.kept.append(e)
        facts.truths[id(e)] = True
        negated = self._view.rewriter.visit(self.terms.node(E.Not(e)))
        facts.kept.append(negated)
        facts.truths[id(negated)] = False
        if not isinstance(e, (E.LT, E.LE, E.EQ, E.NE)) or not is_index(e.a):
            return
        difference = self.lift.of(e.b) - self.lift.of(e.a)
        if isinstance(e, E.NE):
            facts.non_zero.append(difference)
            return
        known = [difference - P.ONE] if isinstance(e, E.LT) else [difference]
        if isinstance(e, E.EQ):
            known.append(P.ZERO - difference)
            self._learn_remainders(difference, facts)
        for fact in known:
            facts.non_negative.append(fact)
            self._learn_intervals(fact, facts)

    def _learn_intervals(self, fact: Poly, facts: Facts) -> None:
        """Of ``fact >= 0``: the interval of each atom that stands alone in it."""
        for monomial, coefficient in fact.terms.items():
            if len(monomial) != 1:
                continue
            rest = self.bounds.of(fact - Poly({monomial: coefficient}))[1]
            if math.isinf(rest):
                continue
            bound = -(int(rest) // abs(coefficient))
            interval = (bound, math.inf) if coefficient > 0 else (-math.inf, -bound)
            known = facts.atoms.get(monomial[0], (-math.inf, math.inf))
            facts.atoms[monomial[0]] = intersect(known, interval)
            var = P.atom_of(monomial[0]).var
            if var is not None:
                own = facts.ranges.get(id(var), dtype_interval(E.scalar_dtype(var)))
                facts.ranges[id(var)] = intersect(own, interval)
                facts.kept.append(var)

    def _learn_remainders(self, zero: Poly, facts: Facts) -> None:
        """Of ``zero == 0``: the remainders of each atom that stands alone in it with a factor of 1 or -1."""
        for monomial, coefficient in zero.terms.items():
            if len(monomial) == 1 and abs(coefficient) == 1:
                found = self.poly_modular((zero - Poly({monomial: coefficient})).scale(-coefficient))
                known = facts.atom_modular.get(monomial[0], EVERYTHING)
                facts.atom_modular[monomial[0]] = both(known, found)


def _refuse_change(var: Var, old: object, new: object, override: bool) -> None:
    if old is not None and old != new and not override:
        raise ValueError(f"update: {var.name} is known as {old} already; override=True replaces it")


def _is_symbolic(fact: Poly, own: Poly) -> bool:
    """Whether a fact says more than an interval of its variable does."""
    return any(m and m not in own.terms for m in fact.terms)


def _replaced(e: Expr, old: Expr, new: Expr) -> Expr:
    done: dict[int, Expr] = {id(old): new}
    stack: list[tuple[Expr, bool]] = [(e, False)]
    while stack:
        current, expanded = stack.pop()
        if id(current) in done:
            continue
        parts = operands(current)
        if parts and not expanded:
            stack.append((current, True))
            stack.extend((part, False) for part in parts)
        else:
            done[id(current)] = rebuilt(current, tuple(done[id(part)] for part in parts))
    return done[id(e)]
