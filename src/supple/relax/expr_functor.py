"""``relax.expr_functor``: visitors and mutators of graph functions. Only re-exports."""

from supple.build.functor import (
    PyExprMutator,
    PyExprVisitor,
    mutator,
    visitor,
)

__all__ = [
    "PyExprMutator",
    "PyExprVisitor",
    "mutator",
    "visitor",
]
