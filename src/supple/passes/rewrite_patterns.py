"""Rewriting by pattern (``relax.dpl.rewrite_call`` and ``rewrite_bindings``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from supple.analysis.patterns import DFPattern, PatternContext
from supple.analysis.unused import remove_all_unused
from supple.build.functor import PyExprMutator
from supple.build.normal_form import NESTED, as_value
from supple.ir.conventions import conventions
from supple.ir.expr import Call, DataflowVar, TupleGetItem, Var, is_scalar
from supple.ir.graph import BindingBlock, DataflowBlock, Function, Tuple, VarBinding
from supple.ir.node import Expr, replace
from supple.ir.structural import structural_equal
from supple.passes.canonical_bindings import canonical_bindings

CallRewriter = Callable[[Expr, dict[DFPattern, Expr]], Expr]
BindingsRewriter = Callable[[dict[DFPattern, Var], dict[Var, Expr]], Mapping[Var, Any]]


class _CallMutator(PyExprMutator):
    """Offers every bound value to the rewriter, with parts already rewritten."""

    def __init__(self, pattern: DFPattern, rewriter: CallRewriter) -> None:
        super().__init__()
        self.pattern = pattern
        self.rewriter = rewriter
        self.new_values: dict[Var, Expr] = {}
        self.holders: dict[int, tuple[Var, Expr]] = {}  # by a value: who holds it, where that may be used
        self.in_dataflow = False
        self.changes = False

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        known, self.holders, self.in_dataflow = self.holders, dict(self.holders), True
        made = super().visit_dataflow_block_(block)
        self.in_dataflow = False
        known.update({key: held for key, held in self.holders.items() if not isinstance(held[0], DataflowVar)})
        self.holders = known
        return made

    def visit_var_binding_(self, binding: VarBinding) -> None:
        before = value = self.builder_.normalize(self.visit_expr(binding.value))
        for _ in range(MAX_REWRITES):
            found = self.pattern.extract_matched_expr(value, self.new_values)
            if found is None:
                break
            rewritten = self.rewriter(value, found)
            if rewritten is value:
                break
            value = self.builder_.normalize(self._held(rewritten))
            self.changes = True
        if value is not before and self._replaces(value, binding.var):
            self.set_var_remap(binding.var, value)
            return
        var = self.reemit(binding.var, value)
        self.new_values[var] = value
        self.holders.setdefault(id(value), (var, value))

    def _held(self, expr: Expr) -> Expr:
        """An expression in which values that variables hold already are these variables: matches are values."""
        done: dict[int, Expr] = {}
        stack: list[tuple[Expr, bool]] = [(expr, False)]
        while stack:
            current, parts_done = stack.pop()
            if id(current) in done:
                continue
            held = self.holders.get(id(current))
            parts = _parts(current)
            if held is not None or not parts:
                done[id(current)] = current if held is None else held[0]
            elif not parts_done:
                stack.append((current, True))
                stack.extend((part, False) for part in parts)
            elif any(done[id(part)] is not part for part in parts):
                done[id(current)] = _with_parts(current, [done[id(part)] for part in parts])
            else:
                done[id(current)] = current
        return done[id(expr)]

    def _replaces(self, value: Expr, var: Var) -> TypeGuard[Var]:
        """Whether uses of ``var`` may become uses of the value: a variable of its type; outputs keep their names."""
        if not isinstance(value, Var) or value.ty is None or var.ty is None or is_scalar(value):
            return False
        return (isinstance(var, DataflowVar) or not self.in_dataflow) and structural_equal(value.ty, var.ty)


def _parts(expr: Expr) -> tuple[Expr, ...]:
    if isinstance(expr, Call):
        return expr.args
    if isinstance(expr, Tuple):
        return expr.fields
    return (expr.tuple_value,) if isinstance(expr, TupleGetItem) else ()


def _with_parts(expr: Expr, parts: list[Expr]) -> Expr:
    if isinstance(expr, Call):
        return replace(expr, args=tuple(parts))
    if isinstance(expr, Tuple):
        return Tuple(tuple(parts), span=expr.span)
    return replace(expr, tuple_value=parts[0])


MAX_REWRITES = 100
"""How often one value is rewritten in a row before a rewriter that never ends is cut off."""


def rewrite_call(pattern: DFPattern, rewriter: CallRewriter, func: Function) -> Function:
    """Replace what matches, wherever a value is bound; then drop what nothing uses.

    ``rewriter(expr, matches)`` gets the matched value and ``{pattern: expression}``, and returns the replacement (or
    ``expr`` itself to leave it). What a pattern inside matched is its value, not the variable that holds it; where the
    replacement has that value, the variable is used. A replacement is matched again, at most `MAX_REWRITES` times.
    """
    mutator = _CallMutator(pattern, rewriter)
    rewritten = mutator.visit_expr(func)
    assert isinstance(rewritten, Function)
    if mutator.changes and conventions().renames_nothing:
        return canonical_bindings(rewritten)
    return remove_all_unused(rewritten)


class _BindingsMutator(PyExprMutator):
    """Replaces the values of some variables."""

    def __init__(self, values: Mapping[Var, Any]) -> None:
        super().__init__()
        self.values = {id(var): (var, value) for var, value in values.items()}
        self.done: dict[int, tuple[Expr, Expr]] = {}  # what several values share is one value afterwards

    def visit_expr(self, expr: Expr) -> Expr:
        if not isinstance(expr, NESTED):
            return super().visit_expr(expr)
        if id(expr) not in self.done:
            self.done[id(expr)] = (expr, super().visit_expr(expr))
        return self.done[id(expr)][1]

    def visit_var_binding_(self, binding: VarBinding) -> None:
        entry = self.values.get(id(binding.var))
        self.reemit(binding.var, self.visit_expr(binding.value if entry is None else as_value(entry[1])))


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
