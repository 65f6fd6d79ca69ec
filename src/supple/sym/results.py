"""What an `Analyzer` answers with."""

from __future__ import annotations

import enum
from typing import ClassVar

from supple.ir.node import Node, node


class ProofStrength(enum.IntEnum):
    """How hard a proof is tried. One procedure serves both here; the names are Relax's."""

    DEFAULT = 0
    SYMBOLIC_BOUND = 1


class CompareResult(enum.IntEnum):
    """A relation of two expressions; the bits are "less", "equal", "greater" being possible."""

    INCONSISTENT = 0
    EQ = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5
    NE = 6
    UNKNOWN = 7


class Extension(enum.Flag):
    """Optional rules of upstream's simplifier. They are always on here, as far as they exist; the flags are kept."""

    NoExtensions = 0
    TransitivelyProveInequalities = 1
    ConvertBooleanToAndOfOrs = 2
    ApplyConstraintsToBooleanBranches = 4
    ComparisonOfProductAndSum = 8


@node
class ConstIntBound(Node):
    """Every value lies in ``[min_value, max_value]``; the infinities are the largest int64 and its negative."""

    POS_INF: ClassVar[int] = (1 << 63) - 1
    NEG_INF: ClassVar[int] = -((1 << 63) - 1)
    min_value: int
    max_value: int

    def __repr__(self) -> str:
        return f"ConstIntBound(min_value={self.min_value}, max_value={self.max_value})"


@node
class ModularSet(Node):
    """Every value is ``coeff * k + base`` for some integer ``k``."""

    coeff: int
    base: int

    def __repr__(self) -> str:
        return f"ModularSet(coeff={self.coeff}, base={self.base})"
