"""Rewriting with pattern and replacement written as programs (``R.rewriter``, ``PatternMatchingRewriter``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple.analysis.graph import all_global_vars
from supple.analysis.pattern_makers import is_const, is_op, is_tuple, is_tuple_get_item, wildcard
from supple.analysis.patterns import DFPattern
from supple.base.errors import NotSupportedError
from supple.build.functions import copy_with_new_vars
from supple.ir.expr import Call, DataflowVar, TupleGetItem, Var
from supple.ir.graph import Constant, Function, MatchCast, Tuple, VarBinding
from supple.ir.module import IRModule
from supple.ir.node import Expr
from supple.ir.op import Op
from supple.ir.structural import structural_equal
from supple.ir.types import AnyType, TupleType
from supple.ir.walk import substitute
from supple.passes.manager import Pass
from supple.passes.rewrite_groups import Bound, Group, bindings_of, rewrite_group
from supple.passes.rewrite_patterns import MAX_REWRITES, rewrite_call
from supple.sym.relate import bind_parameters

Rule = Callable[[Function], Function]
Rewrite = Callable[[Expr, dict[DFPattern, Expr]], Expr]


class PatternMatchingRewriter(Pass):
    """Rewrites functions and modules: calling it with one gives the rewritten one. ``a | b`` tries both in turn.

    It is a pass as well, so a `Sequential` takes it.
    """

    def __init__(self, rules: list[Rule], functions: IRModule | None = None) -> None:
        super().__init__("PatternMatchingRewriter", self._module)
        self.rules = rules
        self.functions = IRModule() if functions is None else functions  # that replacements call

    @staticmethod
    def from_pattern(pattern: DFPattern, func: Rewrite) -> PatternMatchingRewriter:
        """A rewriter of what matches: ``func(expr, matches)`` gives the replacement, or ``expr`` to leave it."""
        return ExprPatternRewriter(pattern, func)

    @staticmethod
    def from_module(mod: IRModule) -> PatternMatchingRewriter:
        """A rewriter of a module with two functions of one signature: ``pattern`` and ``replacement``.

        A pattern that returns a tuple matches values that are computed apart: all of them are replaced, or none.
        """
        functions = {var.name_hint: func for var, func in mod.functions.items()}
        pattern, replacement = (functions.get(name) for name in ("pattern", "replacement"))
        if not isinstance(pattern, Function) or not isinstance(replacement, Function):
            raise ValueError("R.rewriter: the module needs two graph functions, 'pattern' and 'replacement'")
        if len(pattern.params) != len(replacement.params):
            raise ValueError(
                f"R.rewriter: 'pattern' has {len(pattern.params)} parameters, 'replacement' {len(replacement.params)}"
            )
        params = tuple(_parameter_pattern(p) for p in pattern.params)
        outputs = _patterns_of(pattern, params)
        built = _Replacement(pattern, replacement, params, len(outputs))
        others = IRModule({var: f for var, f in mod.functions.items() if f is not pattern and f is not replacement})
        rule: Rule = lambda function: rewrite_group(Group(outputs, params, built), function)  # noqa: E731
        return PatternMatchingRewriter([rule], others)

    def __or__(self, other: PatternMatchingRewriter) -> PatternMatchingRewriter:
        return OrRewriter(self, other)

    def __call__(self, obj: Any) -> Any:
        """A rewritten copy of a graph function, or of a module with every graph function rewritten; the functions that
        replacements call become part of the module. Any other expression holds no bindings and comes back as it is."""
        if isinstance(obj, IRModule):
            return super().__call__(obj)
        if isinstance(obj, Expr) and not isinstance(obj, Function):
            return obj
        if not isinstance(obj, Function):
            raise TypeError(f"a rewriter takes a function or a module, got {type(obj).__name__}")
        return self._rewritten(obj)

    def _rewritten(self, func: Function) -> Function:
        for rule in self.rules:
            func = rule(func)
        return func

    def _module(self, mod: IRModule) -> IRModule:
        changed = mod.clone()
        for var, func in mod.functions.items():
            if isinstance(func, Function):
                changed[var] = self._rewritten(func)
        called = {name.name_hint for f in changed.functions.values() for name in all_global_vars(f)}
        for var, func in self.functions.items():
            if var.name_hint in called:
                if var.name_hint in mod and not structural_equal(mod[var.name_hint], func):
                    raise ValueError(f"R.rewriter: the module has another function {var.name_hint!r} already")
                changed[var] = func
        return changed


class ExprPatternRewriter(PatternMatchingRewriter):
    """Replaces what matches ``pattern`` by what ``func(expr, matches)`` gives."""

    def __init__(self, pattern: DFPattern, func: Rewrite) -> None:
        super().__init__([lambda function: rewrite_call(pattern, func, function)])
        self.pattern, self.func = pattern, func


class OrRewriter(PatternMatchingRewriter):
    """Two rewriters in turn: ``lhs | rhs``."""

    def __init__(self, lhs: PatternMatchingRewriter, rhs: PatternMatchingRewriter) -> None:
        functions = lhs.functions.clone()
        functions.update(rhs.functions)
        super().__init__([*lhs.rules, *rhs.rules], functions)
        self.lhs, self.rhs = lhs, rhs

    def _rewritten(self, func: Function) -> Function:
        for _ in range(MAX_REWRITES):  # what one makes the other may match
            before = func
            func = super()._rewritten(func)
            if structural_equal(before, func):
                break
        return func


def rewriter(mod: Any) -> PatternMatchingRewriter:
    """``@R.rewriter`` on a class of two functions: see `PatternMatchingRewriter.from_module`."""
    if not isinstance(mod, IRModule):
        raise TypeError(f"R.rewriter takes a module, got {type(mod).__name__}")
    return PatternMatchingRewriter.from_module(mod)


def _parameter_pattern(param: Var) -> DFPattern:
    return wildcard() if param.ty is None or isinstance(param.ty, AnyType) else wildcard().has_ty(_open(param))


def _open(param: Var) -> Any:
    """The parameter's type; its symbols stand for any extent, so only rank and dtype are asked for."""
    ty: Any = param.ty
    shape = getattr(ty, "shape", None)
    values = getattr(shape, "values", ())
    if any(not hasattr(v, "value") for v in values):
        return type(ty)(None, ty.dtype, len(values))
    return ty


def _patterns_of(func: Function, params: tuple[DFPattern, ...]) -> tuple[DFPattern, ...]:
    """The patterns of a function's results: one, or those of the tuple's fields. Shared values are shared patterns."""
    known: dict[int, DFPattern] = {id(p): pattern for p, pattern in zip(func.params, params, strict=True)}

    def of(e: Expr) -> DFPattern:
        found = known.get(id(e))
        if found is None:
            found = known[id(e)] = _made(e, of)
        return found

    for binding in bindings_of(func):
        if isinstance(binding, MatchCast):
            raise NotSupportedError("R.rewriter: a pattern holds no match_cast", binding.span)
        known[id(binding.var)] = of(binding.value)
    results = tuple(of(e) for e in _results(func))
    for pattern in results:
        if pattern in params:
            raise NotSupportedError("R.rewriter: a result of the pattern is a parameter", func.body.body.span)
    return results


def _results(func: Function) -> tuple[Expr, ...]:
    """What a function returns; a tuple's fields one by one."""
    bound = {id(b.var): b.value for b in bindings_of(func) if isinstance(b, VarBinding)}
    result = func.body.body
    while id(result) in bound and isinstance(bound[id(result)], (Tuple, Var)):
        result = bound[id(result)]
    return result.fields if isinstance(result, Tuple) else (result,)


def _made(e: Expr, of: Callable[[Expr], DFPattern]) -> DFPattern:
    if isinstance(e, Call) and isinstance(e.op, Op):
        made: DFPattern = is_op(e.op.name)(*(of(a) for a in e.args))
        return made.has_attr(e.attrs) if e.attrs else made
    if isinstance(e, Tuple):
        return is_tuple([of(f) for f in e.fields])
    if isinstance(e, TupleGetItem):
        return is_tuple_get_item(of(e.tuple_value), e.index)
    if isinstance(e, Constant):
        return _EqualConstant(e)
    raise NotSupportedError(f"R.rewriter: {type(e).__name__} is not supported in a pattern", e.span)


class _EqualConstant(type(is_const())):  # type: ignore[misc]
    """A constant of the same value."""

    def __init__(self, value: Constant) -> None:
        super().__init__()
        self.value = value

    def matches(self, matcher: Any, expr: Expr) -> bool:
        found = matcher.value(expr)
        return isinstance(found, Constant) and structural_equal(found, self.value)


class _Replacement:
    """Builds the replacement's bindings from what the parameters matched."""

    def __init__(self, pattern: Function, replacement: Function, params: tuple[DFPattern, ...], results: int) -> None:
        self.results = results
        if len(self._values(replacement)) != results:
            raise ValueError(f"R.rewriter: 'pattern' has {results} results, 'replacement' {len(_results(replacement))}")
        self.pattern, self.replacement, self.params = pattern, replacement, params

    def __call__(self, matches: dict[DFPattern, Expr]) -> tuple[list[Bound], list[Expr]]:
        unused = [p.name for p, found in zip(self.pattern.params, self.params, strict=True) if found not in matches]
        if unused:
            raise ValueError(f"R.rewriter: the pattern does not use its parameter {unused[0]!r}")
        func = copy_with_new_vars(self.replacement)
        args = [matches[p] for p in self.params]
        types = [getattr(a, "ty", None) for a in args]
        symbols = bind_parameters([p.ty for p in func.params if p.ty is not None], types)
        values: dict[Var, Any] = dict(zip(func.params, args, strict=True))

        def bound(node: Any) -> Any:
            # symbols last: a variable whose type changes is rebuilt, and would not be found any more
            return substitute(substitute(node, values), symbols)

        made: list[Bound] = []
        for binding in bindings_of(func):
            value = bound(binding.value)
            ty = bound(binding.ty) if isinstance(binding, MatchCast) else None
            var = values[binding.var] = DataflowVar(binding.var.name, span=binding.var.span)
            made.append(VarBinding(var, value) if ty is None else MatchCast(var, value, ty))
        return made, [bound(e) for e in self._values(func)]

    def _values(self, func: Function) -> tuple[Expr, ...]:
        """The results one by one: of a call that returns a tuple, its elements."""
        found = _results(func)
        ty = getattr(found[0], "ty", None)
        if len(found) == 1 and self.results != 1 and isinstance(ty, TupleType):
            return tuple(TupleGetItem(found[0], n) for n in range(len(ty.fields)))
        return found
