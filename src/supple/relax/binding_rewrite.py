"""``relax.binding_rewrite``. Only re-exports."""

from supple.passes.binding_rewrite import (
    DataflowBlockRewrite,
)

__all__ = [
    "DataflowBlockRewrite",
]
