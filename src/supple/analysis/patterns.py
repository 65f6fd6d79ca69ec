"""Patterns over graph expressions (``relax.dpl``): what to look for, combined with Python operators.

::

    x, w, b = wildcard(), wildcard(), wildcard()
    dense = is_op("relax.add")(is_op("relax.matmul")(x, w), b)
    found = dense.extract_matched_expr(expr, var2val)      # {pattern: expression} or None

A pattern looks through variables: where a variable stands, its value is matched when ``var2val`` knows it. The same
pattern object must match the same expression wherever it occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from supple.analysis.pattern_text import pattern_text
from supple.ir.conventions import conventions
from supple.ir.expr import TENSOR_OPERATORS, Call, DataflowVar, TupleGetItem, Var, as_expr
from supple.ir.graph import Constant, ExternFunc, Function, GlobalVar, SeqExpr, ShapeExpr, Tuple
from supple.ir.node import Expr, Type
from supple.ir.op import Op
from supple.ir.structural import structural_equal
from supple.ir.types import ShapeType, TensorType
from supple.sym.relate import assignable, tensor_dims
from supple.sym.simplify import same_shape

Bindings = Mapping[Var, Expr]
Matches = dict["DFPattern", Expr]


class Matcher:
    """One attempt: what each pattern stands for so far. `mark` and `back` undo for alternatives.

    ``through``: a variable with a known value is that value, for every pattern, so matches are values and no pattern
    of a variable finds it. ``bound_are_values``: such a variable is itself, but no pattern of a variable finds it.
    """

    def __init__(self, var2val: Bindings | None = None, through: bool = False, bound_are_values: bool = False) -> None:
        self.through = through
        self.bound_are_values = bound_are_values
        self.values = {id(var): value for var, value in (var2val or {}).items()}
        self.memo: Matches = {}
        self.journal: list[DFPattern] = []

    def match(self, pattern: DFPattern, expr: Expr) -> bool:
        if self.through:
            expr = self.value(expr)
        known = self.memo.get(pattern)
        if known is not None:
            return known is expr or self.value(known) is self.value(expr)
        mark = len(self.journal)
        if pattern.matches(self, expr):
            self.memo[pattern] = expr
            self.journal.append(pattern)
            return True
        self.back(mark)
        return False

    def value(self, expr: Expr) -> Expr:
        """What a variable is bound to, through chains of variables; other expressions are themselves."""
        while isinstance(expr, Var) and id(expr) in self.values:
            expr = self.values[id(expr)]
        return expr

    def back(self, mark: int) -> None:
        """Forget what was matched since ``mark``."""
        for pattern in self.journal[mark:]:
            del self.memo[pattern]
        del self.journal[mark:]


def _pattern(value: Any, where: str) -> Any:
    """A pattern; raises ``TypeError`` for anything else."""
    if isinstance(value, DFPattern):
        return value
    raise TypeError(f"{where} takes patterns, such as wildcard(), got {type(value).__name__}")


class DFPattern:
    """Base of all patterns. Identity equality: the same object must match the same expression."""

    def __str__(self) -> str:
        return pattern_text(self)

    def __repr__(self) -> str:
        return str(self)

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        """Whether ``expr`` has this pattern's form; parts are matched through ``matcher``."""
        raise NotImplementedError

    def same_as(self, other: object) -> bool:
        """Whether it is the same pattern."""
        return self is other

    def __getitem__(self, index: int) -> DFPattern:
        """One field of what this pattern matches."""
        return TupleGetItemPattern(self, index)

    def match(self, expr: Expr, var2val: Bindings | None = None) -> bool:
        """Whether the pattern matches; a variable that ``var2val`` knows stands for its value."""
        return Matcher(var2val, through=True).match(self, expr)

    def extract_matched_expr(self, expr: Expr, var2val: Bindings | None = None) -> Matches | None:
        """What each part of the pattern matched, or None. A variable that ``var2val`` knows stands for its value."""
        matcher = Matcher(var2val, through=True)
        return dict(matcher.memo) if matcher.match(self, expr) else None

    # combining

    def __or__(self, other: DFPattern) -> DFPattern:
        return OrPattern(self, _pattern(other, "|"))

    def __and__(self, other: DFPattern) -> DFPattern:
        return AndPattern(self, _pattern(other, "&"))

    def __invert__(self) -> DFPattern:
        return NotPattern(self)

    def __call__(self, *args: DFPattern, varg_default_wildcard: bool = False) -> CallPattern:
        flat = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
        return CallPattern(self, tuple(_pattern(arg, "a call") for arg in flat), varg_default_wildcard)

    def has_attr(self, attrs: Mapping[str, Any]) -> DFPattern:
        """Also: the call has these attributes."""
        return AttrPattern(self, attrs)

    def has_ty(self, ty: Type) -> DFPattern:
        """Also: the type is at least as precise as ``ty``."""
        return TypePattern(self, ty)

    def has_dtype(self, dtype: str) -> DFPattern:
        """Also: a tensor of this dtype."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Any]) -> DFPattern:
        """Also: a tensor of this shape."""
        return ShapePattern(self, shape)

    def same_shape_as(self, *others: DFPattern) -> DFPattern:
        """Also: the shape is proved equal to that of what the others match."""
        return SameShapePattern(self, others)

    # sequences (see `PatternContext`)

    def used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """A sequence in which what ``other`` matches uses what this matches (``index``: as that argument)."""
        return PatternSeq([self]).used_by(other, index)

    def only_used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """As `used_by`, and nothing else uses it."""
        return PatternSeq([self]).only_used_by(other, index)

    def __xor__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.used_by(other)

    def __rshift__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.only_used_by(other)

    def fork_to(self, *args: DFPattern) -> None:
        """What this matches is used by what each of the others matches."""
        for other in args:
            self.used_by(other)

    def dup(self) -> DFPattern:
        """The same form as another object, which may match another expression."""
        return duplicate(self, {})

    # arithmetic builds operator patterns

    def __add__(self, other: DFPattern) -> DFPattern:
        return _operator("add", self, other)

    def __sub__(self, other: DFPattern) -> DFPattern:
        return _operator("sub", self, other)

    def __mul__(self, other: DFPattern) -> DFPattern:
        return _operator("mul", self, other)

    def __truediv__(self, other: DFPattern) -> DFPattern:
        return _operator("truediv", self, other)


def _operator(name: str, *args: DFPattern) -> DFPattern:
    op = TENSOR_OPERATORS[name]
    assert isinstance(op, Op)
    return ExprPattern(op)(*args)


def duplicate(pattern: DFPattern, copies: dict[int, DFPattern]) -> DFPattern:
    """A copy of a pattern and its parts; shared parts stay shared within the copy."""
    if id(pattern) in copies:
        return copies[id(pattern)]
    copy = object.__new__(type(pattern))
    copies[id(pattern)] = copy
    for name, value in vars(pattern).items():
        setattr(copy, name, _duplicate_value(value, copies))
    return copy


def _duplicate_value(value: Any, copies: dict[int, DFPattern]) -> Any:
    if isinstance(value, DFPattern):
        return duplicate(value, copies)
    if isinstance(value, tuple):
        return tuple(_duplicate_value(v, copies) for v in value)
    return value


# ---------------------------------------------------------------------------------------------------- kinds of patterns


class WildcardPattern(DFPattern):
    """Anything."""

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        return True


class ExprPattern(DFPattern):
    """One expression, up to structural equality; an operator by identity."""

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        value = matcher.value(expr)
        if isinstance(self.expr, (Op, Var)):
            return self.expr is value or self.expr is expr
        return structural_equal(self.expr, value)


class VarPattern(DFPattern):
    """A variable, by name unless the name is empty."""

    kind: type[Expr] = Var

    def __init__(self, name_hint: str = "") -> None:
        self.name = name_hint

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        if not isinstance(expr, self.kind) or (matcher.bound_are_values and id(expr) in matcher.values):
            return False
        return self.name in ("", getattr(expr, "name", None))


class DataflowVarPattern(VarPattern):
    """A dataflow variable."""

    kind = DataflowVar


class GlobalVarPattern(DFPattern):
    """A function of the module, by name unless the name is empty."""

    def __init__(self, name_hint: str = "") -> None:
        self.name = name_hint

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        value = matcher.value(expr)
        return isinstance(value, GlobalVar) and self.name in ("", value.name_hint)


class ExternFuncPattern(DFPattern):
    """A registered function, by name unless the name is empty."""

    def __init__(self, global_symbol: str = "") -> None:
        self.global_symbol = global_symbol

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        value = matcher.value(expr)
        return isinstance(value, ExternFunc) and self.global_symbol in ("", value.global_symbol)


class ConstantPattern(DFPattern):
    """A tensor literal."""

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        return isinstance(matcher.value(expr), Constant)


class CallPattern(DFPattern):
    """A call of ``op`` on ``args``; with ``varg_default_wildcard`` further arguments may follow."""

    def __init__(self, op: DFPattern, args: Sequence[DFPattern], varg_default_wildcard: bool = False) -> None:
        self.op = op
        self.args = tuple(args)
        self.varg_default_wildcard = varg_default_wildcard
        context = PatternContext.current_or_none()
        if context is not None:
            context.calls.append(self)

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        value = matcher.value(expr)
        if not isinstance(value, Call) or not matcher.match(self.op, value.op):
            return False
        if len(value.args) < len(self.args) or (len(value.args) > len(self.args) and not self.varg_default_wildcard):
            return False
        return all(matcher.match(p, a) for p, a in zip(self.args, value.args, strict=False))


class TuplePattern(DFPattern):
    """A tuple with these fields, in order."""

    def __init__(self, fields: Sequence[DFPattern]) -> None:
        self.fields = tuple(_pattern(field, "a tuple") for field in fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, index: int | None) -> TupleGetItemPattern:
        """One field of what this pattern matches; any field for None. Raises ``IndexError`` for one it has not."""
        if index is not None and not -len(self.fields) <= index < len(self.fields):
            raise IndexError(f"a tuple of {len(self.fields)} patterns has no field {index}")
        return TupleGetItemPattern(self, index)

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        value = matcher.value(expr)
        if not isinstance(value, Tuple) or len(value.fields) != len(self.fields):
            return False
        return all(matcher.match(p, f) for p, f in zip(self.fields, value.fields, strict=True))


class UnorderedTuplePattern(TuplePattern):
    """A tuple with these fields, in any order."""

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        value = matcher.value(expr)
        if not isinstance(value, Tuple) or len(value.fields) != len(self.fields):
            return False
        return self._assign(matcher, list(value.fields), 0)

    def _assign(self, matcher: Matcher, rest: list[Expr], position: int) -> bool:
        if position == len(self.fields):
            return True
        for n, candidate in enumerate(rest):
            mark = len(matcher.journal)
            if matcher.match(self.fields[position], candidate):
                if self._assign(matcher, rest[:n] + rest[n + 1 :], position + 1):
                    return True
            matcher.back(mark)
        return False


class TupleGetItemPattern(DFPattern):
    """A field of a tuple; any field for ``index`` None."""

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self.tuple = tuple_value
        self.index = index

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        value = matcher.value(expr)
        if not isinstance(value, TupleGetItem) or self.index not in (None, value.index):
            return False
        return matcher.match(self.tuple, value.tuple_value)


class FunctionPattern(DFPattern):
    """A function with these parameters and body."""

    def __init__(self, params: Sequence[DFPattern], body: DFPattern) -> None:
        self.params = tuple(params)
        self.body = body

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        value = matcher.value(expr)
        if not isinstance(value, Function) or len(value.params) != len(self.params):
            return False
        body: Expr = value.body
        if isinstance(body, SeqExpr) and not body.blocks:
            body = body.body
        return all(map(matcher.match, self.params, value.params)) and matcher.match(self.body, body)


class PrimArrPattern(DFPattern):
    """A shape value with these dimensions."""

    def __init__(self, shape: Sequence[Any]) -> None:
        self.fields = tuple(as_expr(s) for s in shape)

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, index: int) -> Any:
        """A dimension."""
        return self.fields[index]

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        value = matcher.value(expr)
        ty = getattr(value, "ty", None)
        values = value.values if isinstance(value, ShapeExpr) else ty.values if isinstance(ty, ShapeType) else None
        return values is not None and same_shape(values, self.fields) is True


class OrPattern(DFPattern):
    """The first pattern that matches."""

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left = left
        self.right = right

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        return matcher.match(self.left, expr) or matcher.match(self.right, expr)


class AndPattern(DFPattern):
    """Both."""

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left = left
        self.right = right

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        return matcher.match(self.left, expr) and matcher.match(self.right, expr)


class NotPattern(DFPattern):
    """What the other does not match."""

    def __init__(self, to_reject: DFPattern) -> None:
        self.reject = to_reject

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        mark = len(matcher.journal)
        found = matcher.match(self.reject, expr)
        matcher.back(mark)
        return not found


class _Refined(DFPattern):
    """A pattern with a further condition on the expression."""

    def __init__(self, pattern: DFPattern) -> None:
        self.pattern = pattern

    def matches(self, matcher: Matcher, expr: Expr) -> bool:
        return matcher.match(self.pattern, expr) and self.holds(matcher, expr)

    def holds(self, matcher: Matcher, expr: Expr) -> bool:
        raise NotImplementedError


class AttrPattern(_Refined):
    """A call (or function) with these attributes."""

    def __init__(self, pattern: DFPattern, attrs: Mapping[str, Any]) -> None:
        super().__init__(pattern)
        self.attrs = dict(attrs)

    def holds(self, matcher: Matcher, expr: Expr) -> bool:
        value = matcher.value(expr)
        attrs = getattr(value, "attrs", {})
        if isinstance(value, Op):
            attrs = value.facts
        return all(key in attrs and _plain(attrs[key]) == _plain(wanted) for key, wanted in self.attrs.items())


def _plain(value: Any) -> Any:
    return tuple(_plain(v) for v in value) if isinstance(value, (list, tuple)) else value


class TypePattern(_Refined):
    """An expression whose type fits."""

    def __init__(self, pattern: DFPattern, ty: Type) -> None:
        super().__init__(pattern)
        self.ty = ty

    def holds(self, matcher: Matcher, expr: Expr) -> bool:
        return assignable(getattr(expr, "ty", None), self.ty) is True


class DataTypePattern(_Refined):
    """A tensor of a dtype."""

    def __init__(self, pattern: DFPattern, dtype: str) -> None:
        super().__init__(pattern)
        self.dtype = dtype

    def holds(self, matcher: Matcher, expr: Expr) -> bool:
        ty = getattr(expr, "ty", None)
        return isinstance(ty, TensorType) and ty.dtype == self.dtype


class ShapePattern(_Refined):
    """A tensor of a shape."""

    def __init__(self, pattern: DFPattern, shape: Sequence[Any]) -> None:
        super().__init__(pattern)
        self.shape = tuple(as_expr(s) for s in shape)

    def holds(self, matcher: Matcher, expr: Expr) -> bool:
        dims = _dims(expr)
        return dims is not None and same_shape(dims, self.shape) is True


class SameShapePattern(_Refined):
    """A tensor whose shape is proved equal to that of what other patterns match (those matched so far)."""

    def __init__(self, pattern: DFPattern, others: Sequence[DFPattern]) -> None:
        super().__init__(pattern)
        self.others = tuple(others)

    def holds(self, matcher: Matcher, expr: Expr) -> bool:
        dims = _dims(expr)
        known = [_dims(matcher.memo[o]) for o in self.others if o in matcher.memo]
        return dims is not None and all(d is not None and same_shape(dims, d) is True for d in known)


class DFConstraint:
    """What must hold of the matches of several patterns."""

    def holds(self, matcher: Matcher) -> bool:
        """Whether the matches made so far allow it."""
        raise NotImplementedError


class SameShapeConstraint(DFConstraint):
    """The tensors that the patterns match have one shape, provably. Made inside of a `PatternContext`, it is a part of
    what the context matches."""

    def __init__(self, *args: DFPattern) -> None:
        self.args = args
        context = PatternContext.current_or_none()
        if context is not None:
            context.constraints.append(self)

    def holds(self, matcher: Matcher) -> bool:
        known = [_dims(matcher.memo[p]) for p in self.args if p in matcher.memo]
        first = known[0] if known else None
        return all(first is not None and d is not None and same_shape(first, d) is True for d in known)


def _dims(expr: Expr) -> tuple[Expr, ...] | None:
    ty = getattr(expr, "ty", None)
    return tensor_dims(ty) if isinstance(ty, TensorType) else None


# ----------------------------------------------------------------------------------------------------------- sequences


class PatternSeq:
    """Patterns one after the other: each is used (only) by the next."""

    def __init__(self, patterns: Sequence[DFPattern], only_use: bool = False) -> None:
        self.patterns = list(patterns)
        self.edges: list[tuple[DFPattern, DFPattern, int, bool]] = []
        for a, b in zip(self.patterns, self.patterns[1:], strict=False):
            self._edge(a, b, -1, only_use)

    def _edge(self, a: DFPattern, b: DFPattern, index: int, only: bool) -> None:
        self.edges.append((a, b, index, only))
        context = PatternContext.current_or_none()
        if context is not None:
            context.edges.append((a, b, index, only))

    def _extend(self, other: DFPattern | PatternSeq, index: int, only: bool) -> PatternSeq:
        rest = other if isinstance(other, PatternSeq) else PatternSeq([_pattern(other, "a sequence")])
        joined = PatternSeq([])
        joined.patterns = self.patterns + rest.patterns
        joined.edges = self.edges + rest.edges
        joined._edge(self.patterns[-1], rest.patterns[0], index, only)
        return joined

    def used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """The last pattern is used by the first of ``other``."""
        return self._extend(other, index, False)

    def only_used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """The last pattern is used by the first of ``other``, and by nothing else."""
        return self._extend(other, index, True)

    def __xor__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.used_by(other)

    def __rshift__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.only_used_by(other)

    def __getitem__(self, index: int) -> DFPattern:
        return self.patterns[index]

    def __repr__(self) -> str:
        return pattern_text(self)

    def dup(self) -> PatternSeq:
        """The same sequence with other objects."""
        copies: dict[int, DFPattern] = {}
        new = PatternSeq([])
        new.patterns = [duplicate(p, copies) for p in self.patterns]
        for a, b, index, only in self.edges:
            new._edge(duplicate(a, copies), duplicate(b, copies), index, only)
        return new


class PatternContext:
    """Patterns matched together in one dataflow block, with who uses whom::

    with PatternContext() as ctx:
        conv, relu = is_op("relax.nn.conv2d")(...), is_op("relax.nn.relu")(...)
        conv >> relu                      # conv's result is used by relu only
        found = ctx.match_dfb(block)      # {pattern: variable} or None

    Calls that are written while the context is entered must be found as well; what their arguments are is a part of
    the result. Different arguments stand for different variables: two wildcards do not both match ``x`` in ``x + x``,
    one wildcard written twice does.
    """

    _stack: list[PatternContext] = []

    def __init__(self, incremental: bool = False) -> None:
        self.edges: list[tuple[DFPattern, DFPattern, int, bool]] = []
        self.calls: list[CallPattern] = []
        self.constraints: list[DFConstraint] = []
        if incremental and PatternContext._stack:
            self.constraints = list(PatternContext._stack[-1].constraints)
            self.edges = list(PatternContext._stack[-1].edges)
            self.calls = list(PatternContext._stack[-1].calls)

    def __enter__(self) -> PatternContext:
        PatternContext._stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        PatternContext._stack.pop()

    @staticmethod
    def current_or_none() -> PatternContext | None:
        """The innermost context that is entered."""
        return PatternContext._stack[-1] if PatternContext._stack else None

    @staticmethod
    def current() -> PatternContext:
        """The innermost context that is entered; raises ``RuntimeError`` outside of any."""
        context = PatternContext.current_or_none()
        if context is None:
            raise RuntimeError("no PatternContext is entered: with PatternContext() as ctx: ...")
        return context

    def patterns(self) -> list[DFPattern]:
        """The patterns that stand in a sequence, first mentioned first, and calls that are no part of another."""
        parts = {id(p) for call in self.calls for p in call.args}
        roots = [call for call in self.calls if id(call) not in parts]
        return list(dict.fromkeys([*(p for a, b, _, _ in self.edges for p in (a, b)), *roots]))

    def match_dfb(
        self, dfb: Any, start_hint: Var | None = None, must_include_hint: bool = False
    ) -> dict[DFPattern, Var] | None:
        """Variables of a dataflow block, one for each pattern, that obey every use; None when there are none."""
        return next(self.matches(dfb.bindings, _escaping(dfb)), None) if self.patterns() else None

    def matches(
        self, bindings: Sequence[Any], escaping: set[int], skip: Callable[[Var], bool] | None = None
    ) -> Iterator[dict[DFPattern, Var]]:
        """Every assignment of the block's variables to the patterns."""
        patterns = self.patterns()
        block = _Block(bindings, escaping)

        def assign(position: int, chosen: dict[DFPattern, Var], matcher: Matcher) -> Iterator[dict[DFPattern, Var]]:
            if position == len(patterns):
                inner = [p for call in self.calls for p in (call, *call.args)]
                yield {p: v for p in inner if isinstance(v := matcher.memo.get(p), Var)} | chosen
                return
            for var in block.variables:
                if any(var is v for v in chosen.values()) or (skip is not None and skip(var)):
                    continue
                mark = len(matcher.journal)
                if matcher.match(patterns[position], var):
                    chosen[patterns[position]] = var
                    fits = self._edges_hold(chosen, block) and self._parts_fit(chosen, matcher)
                    if fits and all(c.holds(matcher) for c in self.constraints):
                        yield from assign(position + 1, chosen, matcher)
                    del chosen[patterns[position]]
                matcher.back(mark)

        yield from assign(0, {}, Matcher(block.values, bound_are_values=conventions().matches_inputs))

    def _parts_fit(self, chosen: Mapping[DFPattern, Var], matcher: Matcher) -> bool:
        """Whether arguments stand for different variables. Under Relax's conventions these are no constants, and
        differ from what calls and sequences stand for as well."""
        strict = conventions().matches_inputs
        parts = dict.fromkeys(p for call in self.calls for p in ((call, *call.args) if strict else call.args))
        found: Matches = {p: matcher.memo[p] for p in parts if p in matcher.memo}
        if strict:
            found.update(chosen)
        variables = [id(v) for v in found.values() if isinstance(v, Var)]
        return len(variables) == len(set(variables)) and not (
            strict and any(isinstance(e, Constant) for e in found.values())
        )

    def _edges_hold(self, chosen: Mapping[DFPattern, Var], block: _Block) -> bool:
        for a, b, index, only in self.edges:
            if a in chosen and b in chosen:
                producer, consumer = chosen[a], chosen[b]
                if not block.uses(consumer, producer, index):
                    return False
                if only and (id(producer) in block.escaping or block.users(producer) != {id(consumer)}):
                    return False
        return True


def _escaping(dfb: Any) -> set[int]:
    """The block's outputs: used, perhaps, outside of it."""
    return {id(b.var) for b in dfb.bindings if not isinstance(b.var, DataflowVar)}


class _Block:
    """Who uses whom in a list of bindings."""

    def __init__(self, bindings: Sequence[Any], escaping: set[int]) -> None:
        self.values: dict[Var, Expr] = {b.var: b.value for b in bindings}
        self.escaping = escaping
        inputs = [o for b in bindings for o in _arguments(b.value) if isinstance(o, Var)]
        self.variables: list[Var] = list(dict.fromkeys([*inputs, *self.values]))
        self._users: dict[int, set[int]] = {}
        for b in bindings:
            for operand in _arguments(b.value):
                self._users.setdefault(id(operand), set()).add(id(b.var))

    def users(self, var: Var) -> set[int]:
        return self._users.get(id(var), set())

    def uses(self, consumer: Var, producer: Var, index: int) -> bool:
        value = self.values.get(consumer)
        if value is None:
            return False
        arguments = _arguments(value)
        if index >= 0:
            return index < len(arguments) and arguments[index] is producer
        return any(a is producer for a in arguments)


def _arguments(value: Expr) -> list[Expr]:
    """The leaves a value uses, tuples opened."""
    roots = list(value.args) if isinstance(value, Call) else [value]
    leaves: list[Expr] = []
    while roots:
        current = roots.pop(0)
        if isinstance(current, Tuple):
            roots[:0] = current.fields
        elif isinstance(current, TupleGetItem):
            leaves.append(current.tuple_value)
        else:
            leaves.append(current)
    return leaves
