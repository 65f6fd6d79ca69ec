"""Rewriting by pattern (``relax.dpl.rewrite_call`` and ``rewrite_bindings``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from supple.analysis.patterns import DFPattern, PatternContext
from supple.analysis.unused import remove_all_unused
from supple.build.functor import PyExprMutator
from supple.ir.expr import DataflowVar, Var
from supple.ir.graph import DataflowBlock, Function, VarBinding
from supple.ir.node import Expr

CallRewriter = Callable[[Expr, dict[DFPattern, Expr]], Expr]
BindingsRewriter = Callable[[dict[DFPattern, Var], dict[Var, Expr]], Mapping[Var, Any]]


class _CallMutator(PyExprMutator):
    """Offers every bound value to the rewriter, with parts already rewritten."""

    def __init__(self, pattern: DFPattern, rewriter: CallRewriter) -> None:
        super().__init__()
        self.pattern = pattern
        self.rewriter = rewriter
        self.new_values: dict[Var, Expr] = {}

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.builder_.normalize(self.visit_expr(binding.value))
        for _ in range(MAX_REWRITES):
            found = self.pattern.extract_matched_expr(value, self.new_values)
            if found is None:
                break
            rewritten = self.builder_.normalize(self.rewriter(value, found))
            if rewritten is value:
                break
            value = rewritten
        self.new_values[self.reemit(binding.var, value)] = value


MAX_REWRITES = 100
"""How often one value is rewritten in a row before a rewriter that never ends is cut off."""


def rewrite_call(pattern: DFPattern, rewriter: CallRewriter, func: Function) -> Function:
    """Replace what matches, wherever a value is bound; then drop what nothing uses.

    ``rewriter(expr, matches)`` gets the matched value and ``{pattern: expression}``, and returns the replacement (or
    ``expr`` itself to leave it). A replacement is matched again, at most `MAX_REWRITES` times.
    """
    rewritten = _CallMutator(pattern, rewriter).visit_expr(func)
    assert isinstance(rewritten, Function)
    return remove_all_unused(rewritten)


class _BindingsMutator(PyExprMutator):
    """Replaces the values of some variables."""

    def __init__(self, values: Mapping[Var, Any]) -> None:
        super().__init__()
        self.values = {id(var): (var, value) for var, value in values.items()}

    def visit_var_binding_(self, binding: VarBinding) -> None:
        entry = self.values.get(id(binding.var))
        value = binding.value if entry is None else entry[1]
        self.reemit(binding.var, self.visit_expr(self.builder_.normalize(value)))


def rewrite_bindings(ctx: PatternContext, rewriter: BindingsRewriter, func: Function) -> Function:
    """Replace bindings that match together, in every dataflow block, until nothing new matches.

    ``rewriter(matches, bindings)`` gets ``{pattern: variable}`` and ``{variable: value}`` of the block, and returns the
    new values of some variables (an empty mapping leaves the match alone).
    """
    done: set[tuple[str, ...]] = set()
    while True:
        changes = _first_change(ctx, rewriter, func, done)
        if changes is None:
            return remove_all_unused(func)
        func = _BindingsMutator(changes).visit_expr(func)  # type: ignore[assignment]


def _first_change(
    ctx: PatternContext, rewriter: BindingsRewriter, func: Function, done: set[tuple[str, ...]]
) -> Mapping[Var, Any] | None:
    """The first match that the rewriter wants changed. Matches are remembered by the names of their variables."""
    for block in func.body.blocks:
        if not isinstance(block, DataflowBlock):
            continue
        escaping = {id(b.var) for b in block.bindings if not isinstance(b.var, DataflowVar)}  # type: ignore[attr-defined]
        values = {b.var: b.value for b in block.bindings}  # type: ignore[attr-defined]
        for found in ctx.matches(block.bindings, escaping):
            key = tuple(var.name for var in found.values())
            if key in done:
                continue
            done.add(key)
            changes = rewriter(found, values)
            if changes:
                return changes
    return None
