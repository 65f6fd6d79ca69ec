"""The language of rewrite rules: patterns are written as the expressions they match.

``Rule("(x + c1) + c2", "x + (c1 + c2)")``: a name that starts with ``c`` matches a literal, any other name anything;
a name that stands twice must match the same term. Operators are Python's, and ``min``, ``max``, ``select``, ``tdiv``,
``tmod`` (truncating division), ``and_``, ``or_``, ``not_``, ``true``, ``false``. Operands of commutative operators
match in either order unless the rule is ``ordered``. In the result, and in the condition, arithmetic on literals is
Python's. A condition may ask ``nonneg(x)``, ``positive(x)``, ``nonzero(x)``, ``symbolic(x)`` (no literal) and
``whole(x)`` (an integer) of terms, and ``gcd`` of literals.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from supple.ir import expr as E
from supple.ir.expr import IntImm
from supple.ir.node import Expr

Env = dict[str, Any]  # name -> term, or the number of a literal


class Engine(Protocol):
    """What rules need of the rewriter that applies them."""

    def build(self, kind: type, *parts: Expr) -> Expr:
        """The simplified node of that kind."""

    def number(self, value: int, dtype: str) -> Expr:
        """The literal; raises ``OverflowError`` when it does not fit."""

    def asks(self) -> dict[str, Callable[..., bool]]:
        """``nonneg``, ``positive``, ``nonzero``."""


_OPERATORS: dict[type, type[Expr]] = {
    ast.Add: E.Add, ast.Sub: E.Sub, ast.Mult: E.Mul, ast.FloorDiv: E.FloorDiv, ast.Mod: E.FloorMod,
    ast.Lt: E.LT, ast.LtE: E.LE, ast.Eq: E.EQ, ast.NotEq: E.NE,
}  # fmt: skip
_FUNCTIONS: dict[str, type[Expr]] = {
    "min": E.Min, "max": E.Max, "select": E.Select, "tdiv": E.Div, "tmod": E.Mod,
    "and_": E.And, "or_": E.Or, "not_": E.Not,
}  # fmt: skip
_COMMUTATIVE = (E.Add, E.Mul, E.Min, E.Max, E.And, E.Or, E.EQ, E.NE)


@dataclass(frozen=True, slots=True)
class Shape:
    """A pattern: a node kind with operands, a name (``literal`` or not), or a number."""

    kind: type[Expr] | None = None
    parts: tuple[Shape, ...] = ()
    name: str = ""
    literal: bool = False
    value: int | None = None


@dataclass(frozen=True)
class Rule:
    """``pattern`` becomes ``result`` where ``when`` holds."""

    pattern: str
    result: str
    when: str = ""
    ordered: bool = False


@dataclass(slots=True)
class Compiled:
    """One rule in one order of its operands."""

    shape: Shape
    rule: Rule
    result: Callable[[Env, Engine, str], Expr]
    when: types.CodeType | None

    def apply(self, e: Expr, engine: Engine) -> Expr | None:
        """The result, or None when the rule does not fit; raises ``OverflowError`` for a number out of range."""
        env: Env = {}
        if not _match(self.shape, e, env):
            return None
        if self.when is not None and not eval(self.when, {"gcd": math.gcd, **engine.asks()}, env):
            return None
        return self.result(env, engine, _index_dtype(e))


def _index_dtype(e: Expr) -> str:
    """The dtype of new numbers: that of the operands for a comparison."""
    if isinstance(e, E.CompareOp) and not isinstance(e, (E.And, E.Or)):
        return E.scalar_dtype(e.a)
    return E.scalar_dtype(e)


def _match(shape: Shape, e: Expr, env: Env) -> bool:
    if shape.kind is None:
        if shape.value is not None:
            return isinstance(e, IntImm) and e.value == shape.value
        found: Any = e
        if shape.literal:
            if not isinstance(e, IntImm):
                return False
            found = e.value
        if shape.name in env:
            before = env[shape.name]
            return bool(before == found) if shape.literal else before is found
        env[shape.name] = found
        return True
    if type(e) is not shape.kind:
        return False
    parts: tuple[Expr, ...]
    if isinstance(e, E.BinaryOp):
        parts = (e.a, e.b)
    elif isinstance(e, E.Select):
        parts = (e.condition, e.true_value, e.false_value)
    else:
        parts = (e.a,)  # type: ignore[attr-defined]
    return all(_match(s, part, env) for s, part in zip(shape.parts, parts, strict=True))


# ------------------------------------------------------------------------------------------------------- compiling


def _shape(tree: ast.expr) -> Shape:
    if isinstance(tree, ast.Name):
        if tree.id in ("true", "false"):
            return Shape(value=int(tree.id == "true"))
        return Shape(name=tree.id, literal=tree.id.startswith("c"))
    if isinstance(tree, (ast.Constant, ast.UnaryOp)):
        return Shape(value=int(ast.literal_eval(tree)))
    kind, parts = _node(tree)
    return Shape(kind, tuple(_shape(part) for part in parts))


def _node(tree: ast.expr) -> tuple[type[Expr], Sequence[ast.expr]]:
    if isinstance(tree, ast.BinOp):
        return _OPERATORS[type(tree.op)], (tree.left, tree.right)
    if isinstance(tree, ast.Compare):
        return _OPERATORS[type(tree.ops[0])], (tree.left, tree.comparators[0])
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        return _FUNCTIONS[tree.func.id], tree.args
    raise ValueError(f"not a pattern: {ast.unparse(tree)}")


def _names(tree: ast.expr) -> set[str]:
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called}


def _result(tree: ast.expr) -> Callable[[Env, Engine, str], Expr]:
    if isinstance(tree, ast.Name) and tree.id in ("true", "false"):
        truth = int(tree.id == "true")
        return lambda env, engine, dtype: engine.number(truth, "bool")
    if isinstance(tree, ast.Name) and not tree.id.startswith("c"):
        name = tree.id
        return lambda env, engine, dtype: env[name]
    if not isinstance(tree, ast.Compare) and all(name.startswith("c") for name in _names(tree)):
        code = compile(ast.Expression(tree), "<rule>", "eval")
        scope = {"gcd": math.gcd, "min": min, "max": max}
        return lambda env, engine, dtype: engine.number(eval(code, scope, env), dtype)
    kind, parts = _node(tree)
    made = [_result(part) for part in parts]
    return lambda env, engine, dtype: engine.build(kind, *(make(env, engine, dtype) for make in made))


def _variants(shape: Shape) -> Iterator[Shape]:
    if shape.kind is None:
        yield shape
        return
    for parts in itertools.product(*(tuple(_variants(part)) for part in shape.parts)):
        yield Shape(shape.kind, parts)
        if shape.kind in _COMMUTATIVE:
            yield Shape(shape.kind, parts[::-1])


def _renamed(shape: Shape, names: dict[str, str]) -> Shape:
    if shape.kind is None:
        if not shape.name:
            return shape
        return Shape(name=names.setdefault(shape.name, str(len(names))), literal=shape.literal)
    return Shape(shape.kind, tuple(_renamed(part, names) for part in shape.parts))


@dataclass
class Table:
    """Compiled rules, found by the kinds of the root and of its first two operands. They are compiled when the first
    expression is looked up: that takes longer than everything else that importing Supple does, and few programs ask."""

    rules: Sequence[Rule]
    _found: dict[tuple[type | None, ...], list[Compiled]] = field(default_factory=dict)

    @functools.cached_property
    def _index(self) -> dict[type, list[Compiled]]:
        index: dict[type, list[Compiled]] = {}
        for rule in self.rules:
            tree = ast.parse(rule.pattern, mode="eval").body
            shape = _shape(tree)
            result = _result(ast.parse(rule.result, mode="eval").body)
            when = compile(rule.when, "<rule>", "eval") if rule.when else None
            seen: set[Shape] = set()
            for variant in (shape,) if rule.ordered else _variants(shape):
                # without a condition on names the first of two orders that match the same terms always wins
                key = variant if rule.when else _renamed(variant, {})
                if key not in seen:
                    seen.add(key)
                    assert variant.kind is not None
                    index.setdefault(variant.kind, []).append(Compiled(variant, rule, result, when))
        return index

    def candidates(self, e: Expr, parts: Sequence[Expr]) -> list[Compiled]:
        """The rules that may fit, in the order of the table."""
        key = (type(e), *map(type, parts[:2]))
        if key not in self._found:
            self._found[key] = [c for c in self._index.get(type(e), ()) if _may_match(c.shape, key)]
        return self._found[key]


def _may_match(shape: Shape, key: tuple[type | None, ...]) -> bool:
    for part, kind in zip(shape.parts[:2], key[1:], strict=False):
        if part.kind is not None and part.kind is not kind:
            return False
        if (part.literal or part.value is not None) and kind is not IntImm:
            return False
    return True
