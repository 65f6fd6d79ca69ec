"""``relax.expr_functor``: visitors and mutators of graph functions. Only re-exports."""

from supple.build.functor import (
    ExprFunctor,
    PyExprMutator,
    PyExprVisitor,
    mutator,
    visitor,
)

__all__ = [
    "ExprFunctor",
    "PyExprMutator",
    "PyExprVisitor",
    "mutator",
    "visitor",
]
