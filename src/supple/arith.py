"""Symbolic integer reasoning: the public names of `supple.sym` (``tvm.arith``, ``tvm.sym`` under the alias)."""

from supple.sym.analyzer import Analyzer, ConstraintScope
from supple.sym.int_set import IntervalSet, IntSet, PresburgerSet, neg_inf, pos_inf
from supple.sym.iter_map import (
    IterMapExpr,
    IterMapLevel,
    IterMapResult,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    detect_iter_map,
    normalize_to_iter_sum,
)
from supple.sym.iter_ops import (
    inverse_affine_iter_map,
    iter_map_simplify,
    normalize_iter_map_to_expr,
    subspace_divide,
)
from supple.sym.linear import (
    IntConstraints,
    IntConstraintsTransform,
    IntGroupBounds,
    deduce_bound,
    detect_clip_bound,
    detect_linear_equation,
    solve_linear_equations,
    solve_linear_inequalities,
)
from supple.sym.regions import (
    estimate_region_lower_bound,
    estimate_region_strict_bound,
    estimate_region_upper_bound,
    union_lower_bound,
)
from supple.sym.results import CompareResult, ConstIntBound, Extension, ModularSet, ProofStrength
from supple.sym.rewrite import RewriteLimitError

__all__ = [
    "Analyzer",
    "CompareResult",
    "ConstIntBound",
    "ConstraintScope",
    "Extension",
    "IntConstraints",
    "IntConstraintsTransform",
    "IntGroupBounds",
    "IntSet",
    "IntervalSet",
    "IterMapExpr",
    "IterMapLevel",
    "IterMapResult",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "ModularSet",
    "PresburgerSet",
    "ProofStrength",
    "RewriteLimitError",
    "deduce_bound",
    "detect_clip_bound",
    "detect_iter_map",
    "detect_linear_equation",
    "estimate_region_lower_bound",
    "estimate_region_strict_bound",
    "estimate_region_upper_bound",
    "inverse_affine_iter_map",
    "iter_map_simplify",
    "neg_inf",
    "normalize_iter_map_to_expr",
    "normalize_to_iter_sum",
    "pos_inf",
    "solve_linear_equations",
    "solve_linear_inequalities",
    "subspace_divide",
    "union_lower_bound",
]
