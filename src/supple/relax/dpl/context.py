"""``relax.dpl.context``. Only re-exports."""

from supple.analysis.patterns import (
    PatternContext,
)

__all__ = [
    "PatternContext",
]
