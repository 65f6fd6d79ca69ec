"""Rewriting by programs: bindings that together compute a pattern function's results give way to a replacement's.

The replacement's bindings stand where its last input is known; the matched variables are bound to its results there.
So several results are replaced at once, and nothing that the replacement computes once is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from supple.analysis.patterns import DFPattern, Matcher
from supple.analysis.unused import remove_all_unused
from supple.build.functor import PyExprMutator
from supple.ir.expr import Var
from supple.ir.graph import BindingBlock, Function, MatchCast, VarBinding
from supple.ir.node import Expr, Node, replace
from supple.ir.walk import pre_order, substitute

Bound = VarBinding | MatchCast
Replace = Callable[[dict[DFPattern, Expr]], tuple[list[Bound], list[Expr]]]
"""From what the patterns matched to new bindings and one result for each pattern of the group."""


@dataclass(frozen=True)
class Group:
    """Patterns of values that are replaced together. ``inputs`` are the patterns of what the replacement reads."""

    outputs: tuple[DFPattern, ...]
    inputs: tuple[DFPattern, ...]
    replace: Replace


def rewrite_group(group: Group, func: Function) -> Function:
    """Replace every match in every block; then drop what nothing uses.

    Matches are looked for until none is left; what a replacement computes is not matched again.
    """
    rewritten = _GroupMutator(group).visit_expr(func)
    assert isinstance(rewritten, Function)
    return remove_all_unused(rewritten)


class _GroupMutator(PyExprMutator):
    """Rewrites the bindings of each block before they are emitted."""

    def __init__(self, group: Group) -> None:
        super().__init__()
        self.group = group
        self.known: dict[Var, Expr] = {}  # values bound so far, by their old variables
        self.made: set[int] = set()  # variables of replacements

    def visit_binding_block(self, block: BindingBlock) -> BindingBlock:
        bindings = _bound(block)
        while self._rewrite_one(bindings):
            pass
        for binding in bindings:
            if isinstance(binding, VarBinding):
                self.known[binding.var] = binding.value
        return super().visit_binding_block(replace(block, bindings=tuple(bindings)))

    def _rewrite_one(self, bindings: list[Bound]) -> bool:
        values = {**self.known, **{b.var: b.value for b in bindings if isinstance(b, VarBinding)}}
        for outputs, matches in self._matches(bindings, values):
            start = self._start(bindings, outputs, [matches[p] for p in self.group.inputs if p in matches])
            if start is None:
                continue
            added, results = self.group.replace(matches)
            added, results = _named([bindings[at].var for at in outputs], added, results)
            self.made.update(id(b.var) for b in added)
            self.made.update(id(bindings[at].var) for at in outputs)
            bound = [
                VarBinding(bindings[at].var, result, span=bindings[at].span)
                for at, result in zip(outputs, results, strict=True)
                if result is not bindings[at].var
            ]
            before = [b for at, b in enumerate(bindings[:start]) if at not in outputs]
            after = [b for at, b in enumerate(bindings[start:], start) if at not in outputs]
            bindings[:] = [*before, *added, *bound, *after]
            return True
        return False

    def _matches(
        self, bindings: list[Bound], values: dict[Var, Expr]
    ) -> Iterator[tuple[tuple[int, ...], dict[DFPattern, Expr]]]:
        """The positions of bindings that match the outputs, in every consistent way."""
        matcher = Matcher(values)
        fitting = [at for at, b in enumerate(bindings) if isinstance(b, VarBinding) and id(b.var) not in self.made]

        def assign(chosen: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], dict[DFPattern, Expr]]]:
            if len(chosen) == len(self.group.outputs):
                yield chosen, dict(matcher.memo)
                return
            for at in fitting:
                if at in chosen:
                    continue
                mark = len(matcher.journal)
                # the value, not the variable: a variable bound to another stands for the same value a second time
                if matcher.match(self.group.outputs[len(chosen)], bindings[at].value):
                    yield from assign((*chosen, at))
                matcher.back(mark)

        yield from assign(())

    @staticmethod
    def _start(bindings: list[Bound], outputs: tuple[int, ...], inputs: list[Expr]) -> int | None:
        """Where the replacement can stand: after its inputs, before every use of the outputs; None if nowhere."""
        read = {id(v) for e in inputs for v in pre_order(e) if isinstance(v, Var)}
        start = max((at + 1 for at, b in enumerate(bindings) if id(b.var) in read), default=0)
        replaced = {id(bindings[at].var) for at in outputs}
        used = (
            at
            for at, b in enumerate(bindings[:start])
            if at not in outputs and any(id(v) in replaced for v in pre_order(b.value))
        )
        if read & replaced or next(used, None) is not None:
            return None
        # not before the first of them: whatever stands above (a check, a packed call) stays above
        return max(start, min(outputs))


def _named(outputs: list[Var], added: list[Bound], results: list[Expr]) -> tuple[list[Bound], list[Expr]]:
    """The replacement's bindings, where those that give its results bind the variables that are replaced."""
    own = {id(b.var) for b in added}
    place: dict[int, Var] = {}
    mapping: dict[Var, Node] = {}
    for output, result in zip(outputs, results, strict=True):
        if isinstance(result, Var) and id(result) in own and id(result) not in place:
            place[id(result)] = mapping[result] = output
    renamed = [replace(substitute(b, mapping), var=place.get(id(b.var), b.var)) for b in added]
    return renamed, [place.get(id(r), r) for r in results]


def bindings_of(func: Function) -> Iterator[Bound]:
    """The bindings of a function's body, block after block."""
    for block in func.body.blocks:
        yield from _bound(block)


def _bound(block: BindingBlock) -> list[Bound]:
    return [b for b in block.bindings if isinstance(b, (VarBinding, MatchCast))]
