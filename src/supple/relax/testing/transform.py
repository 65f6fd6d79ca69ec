"""``relax.testing.transform``: passes for tests of passes."""

from __future__ import annotations

from supple.build.functor import PyExprMutator
from supple.ir.graph import Function
from supple.ir.module import IRModule
from supple.passes.manager import Pass, PassContext, module_pass


class _Unchanged(PyExprMutator):
    """Rebuilds what it visits as it is."""


def _apply(mod: IRModule, ctx: PassContext) -> IRModule:
    visitor = _Unchanged(mod)
    new = mod.clone()
    for var, func in mod.functions.items():
        if isinstance(func, Function):
            made = visitor.visit_expr(func)
            assert isinstance(made, Function)
            new.update_func(var, made)
    return new


def ApplyEmptyCppMutator() -> Pass:
    """A pass that walks all graph functions with a mutator that changes nothing."""
    made: Pass = module_pass(_apply, opt_level=0, name="ApplyEmptyCppMutator")
    return made


__all__ = ["ApplyEmptyCppMutator"]
