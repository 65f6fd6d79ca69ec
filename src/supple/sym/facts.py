"""What an analyzer knows: intervals, remainders, values and domains of variables, and assumed conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.expr import Var
from supple.ir.node import Expr
from supple.sym.poly import Bounds, Interval, Poly

Modular = tuple[int, int]  # (coeff, base): coeff * k + base; coeff 0 is the number base itself


@dataclass
class Facts:
    """Keys are ids of variables (which ``kept`` keeps alive), of atoms, or of interned conditions."""

    ranges: dict[int, Interval] = field(default_factory=dict)
    modular: dict[int, Modular] = field(default_factory=dict)
    values: dict[int, Expr] = field(default_factory=dict)
    domains: dict[int, tuple[Expr | None, Expr | None]] = field(default_factory=dict)
    atoms: dict[int, Interval] = field(default_factory=dict)
    atom_modular: dict[int, Modular] = field(default_factory=dict)
    non_negative: list[Poly] = field(default_factory=list)
    non_zero: list[Poly] = field(default_factory=list)
    truths: dict[int, bool] = field(default_factory=dict)
    kept: list[Expr] = field(default_factory=list)

    def copy(self) -> Facts:
        """An independent copy."""
        return Facts(
            dict(self.ranges), dict(self.modular), dict(self.values), dict(self.domains), dict(self.atoms),
            dict(self.atom_modular), list(self.non_negative), list(self.non_zero), dict(self.truths), list(self.kept),
        )  # fmt: skip


def dtype_interval(dtype: str) -> Interval:
    """The values of a dtype. Those of 64 bits count as unbounded: sums of them are not taken to wrap."""
    row = dtypes.row(dtype)
    if row.kind in ("bool", "int", "uint") and row.bits < 64:
        return dtypes.int_range(dtype)
    return (0 if row.kind == "uint" else -math.inf), math.inf


def intersect(a: Interval, b: Interval) -> Interval:
    """What lies in both; ``a`` where nothing does (contradictory facts prove anything; keep to what was there)."""
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low <= high else a


class FactBounds(Bounds):
    """Intervals under `Facts`; ``structural`` tells the interval of an expression without a canonical form."""

    def __init__(self, facts: Facts, structural: Callable[[Expr], Interval]) -> None:
        super().__init__(None, (-math.inf, math.inf))
        self._facts = facts
        self._structural = structural

    def variable(self, var: Var) -> Interval:
        known = self._facts.ranges.get(id(var))
        own = dtype_interval(E.scalar_dtype(var))
        return own if known is None else intersect(own, known)

    def opaque(self, e: Expr) -> Interval:
        return self._structural(e)

    def learnt(self, identifier: int, interval: Interval) -> Interval:
        known = self._facts.atoms.get(identifier)
        return interval if known is None else intersect(interval, known)
