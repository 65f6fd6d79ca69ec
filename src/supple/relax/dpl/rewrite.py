"""``relax.dpl.rewrite``: rewriting by pattern. Only re-exports."""

from supple.passes.pattern_rewriter import (
    ExprPatternRewriter,
    OrRewriter,
    PatternMatchingRewriter,
    rewriter,
)
from supple.passes.rewrite_patterns import (
    rewrite_bindings,
    rewrite_call,
)

__all__ = [
    "ExprPatternRewriter",
    "OrRewriter",
    "PatternMatchingRewriter",
    "rewrite_bindings",
    "rewrite_call",
    "rewriter",
]
