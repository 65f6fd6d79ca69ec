"""Regions of buffers that loops touch: intervals of each index while the loops run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from supple.ir import expr as E
from supple.ir.expr import Range, Var
from supple.sym.analyzer import Analyzer
from supple.sym.int_set import IntervalSet, IntSet, union_ends
from supple.sym.iter_map import IterMapLevel, bound_analyzer, detect_iter_map
from supple.sym.terms import within

Region = Sequence[Range]


def estimate_region_upper_bound(
    region: Region, var_dom: Mapping[Var, Range], predicate: Any, analyzer: Analyzer | None = None
) -> tuple[IntSet, ...]:
    """For each dimension a set that holds everything touched while the variables run."""
    own = bound_analyzer(analyzer, var_dom)
    ends: Mapping[Var, Any] = var_dom
    domains = {v: IntervalSet(d.min, own.simplify(d.min + d.extent - 1)) for v, d in ends.items()}
    found: list[IntSet] = []
    for at in region:
        domain: Any = at
        low = own.int_set(domain.min, domains).low()
        high = own.int_set(domain.min + domain.extent - 1, domains).high()
        found.append(IntervalSet(low, high))
    return tuple(found)


def estimate_region_strict_bound(
    region: Region, var_dom: Mapping[Var, Range], predicate: Any, analyzer: Analyzer | None = None
) -> tuple[IntSet, ...] | None:
    """For each dimension exactly the set touched; None where it is not known to be an interval without gaps."""
    indices = [domain.min for domain in region]
    found = detect_iter_map(indices, var_dom, predicate, IterMapLevel.Surjective, True, analyzer)
    if not found.indices:
        return None
    own = bound_analyzer(analyzer, var_dom)
    sets: list[IntSet] = []
    for domain, index in zip(region, found.indices, strict=True):
        low = own.simplify(index.base)
        high = low
        if index.args:
            digit = index.args[0]
            if not own.can_prove(digit.scale <= domain.extent):
                return None  # steps are longer than what each step touches
            high = own.simplify(low + (digit.extent - 1) * digit.scale)
        if any(term is var for term in within(domain.extent) for var in var_dom):
            return None
        sets.append(IntervalSet(low, own.simplify(high + domain.extent - 1)))
    return tuple(sets)


def estimate_region_lower_bound(
    region: Region, var_dom: Mapping[Var, Range], predicate: Any, analyzer: Analyzer | None = None
) -> tuple[IntSet, ...] | None:
    """For each dimension a set that is touched whole; None where none is found."""
    return estimate_region_strict_bound(region, var_dom, predicate, analyzer)


def union_lower_bound(sets: Sequence[IntSet]) -> IntSet:
    """An interval that lies in the union of the sets: joined where they touch or overlap, else the first."""
    if not sets:
        raise ValueError("union_lower_bound: no set was given")
    own = Analyzer()
    low, high = sets[0].low(), sets[0].high()
    for other in sets[1:]:
        first, last = other.low(), other.high()
        if low is None or high is None or first is None or last is None:
            continue
        if own.can_prove(E.And(first <= high + 1, low <= last + 1)):
            low, high = union_ends((low, high), (first, last), own)
    return IntervalSet(low, high)
