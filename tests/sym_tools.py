"""Random integer expressions for tests of the analyzer. Plain data, so that another process can build them too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

KINDS = ("+", "-", "*", "//", "%", "div", "mod", "min", "max", "select")
COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")


def build(tree: Any, variables: Mapping[str, Any], literal: Callable[[int], Any], nodes: Mapping[str, Any]) -> Any:
    """The expression that ``["+", "x", 3]`` describes, made with the nodes given."""
    if isinstance(tree, str):
        return variables[tree]
    if isinstance(tree, int):
        return literal(tree)
    return nodes[tree[0]](*(build(part, variables, literal, nodes) for part in tree[1:]))


def value_of(tree: Any, values: Mapping[str, int]) -> int:
    """The value of a description; a divisor of 0 gives 0."""
    if isinstance(tree, str):
        return values[tree]
    if isinstance(tree, int):
        return tree
    return int(VALUES[tree[0]](*(value_of(part, values) for part in tree[1:])))


def _trunc(a: int, b: int) -> int:
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a >= 0) == (b >= 0) else -1)


VALUES: dict[str, Callable[..., int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "//": lambda a, b: a // b if b else 0, "%": lambda a, b: a % b if b else 0,
    "div": _trunc, "mod": lambda a, b: a - b * _trunc(a, b) if b else 0, "min": min, "max": max,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "and": lambda a, b: bool(a and b),
    "or": lambda a, b: bool(a or b), "not": lambda a: not a, "select": lambda c, a, b: a if c else b,
}  # fmt: skip


@dataclass
class Case:
    """An expression with ranges ``(min, extent)`` of its variables, a condition in force (or None) and a claim."""

    expr: Any
    goal: Any
    ranges: dict[str, tuple[int, int]]
    given: Any
    dtype: str

    def as_json(self) -> dict[str, Any]:
        return vars(self)

    def set_apart(self, random: Random) -> str | None:
        """Why strength is not compared: the oracle takes divisors for non-zero and proves anything of an empty set."""
        if any(self._may_be_zero(divisor) for tree in (self.expr, self.goal) for divisor in _divisors(tree)):
            return "a divisor may be 0"
        if self.given is not None and not any(value_of(self.given, v) for v in values_of(self, random, 400)):
            return "the condition contradicts the ranges"
        return None

    def _may_be_zero(self, divisor: Any) -> bool:
        if isinstance(divisor, int):
            return divisor == 0
        low, extent = self.ranges.get(divisor, (0, 1)) if isinstance(divisor, str) else (0, 1)
        return low <= 0 < low + extent

    def contradiction(self, found: dict[str, Any], values: Mapping[str, int]) -> str | None:
        """What of an analyzer's answers does not hold at these values; None when all does."""
        if self.given is not None and not value_of(self.given, values):
            return None
        value = value_of(self.expr, values)
        for name in ("simplify", "rewrite", "canonical"):
            other = value_of(found[name][1], values)
            if other != value:
                return f"{name} gives {found[name][1]} = {other}, not {value}"
        low, high = found["bound"]
        if not low <= value <= high:
            return f"bound {low} to {high} does not hold {value}"
        coeff, base = found["modular"]
        if value != base if coeff == 0 else (value - base) % coeff:
            return f"remainders {coeff}, {base} do not hold {value}"
        if found["proved"] and not value_of(self.goal, values):
            return f"the claim {self.goal} was proved but is false"
        return None


def _divisors(tree: Any) -> Iterator[Any]:
    if isinstance(tree, list):
        if tree[0] in ("//", "%", "div", "mod"):
            yield tree[2]
        for part in tree[1:]:
            yield from _divisors(part)


def make_case(random: Random) -> Case:
    ranges = {}
    for name in "xyz":
        if random.random() < 0.75:
            ranges[name] = (random.choice((0, 0, 0, 1, 2, -3, -8, -40)), random.choice((2, 3, 4, 8, 10, 16, 60, 100)))
    expr = _tree(random, random.choice((1, 2, 2, 3, 3, 4)))
    given = None
    if random.random() < 0.3:
        given = _condition(random)
    goal = [random.choice(COMPARISONS), _tree(random, 2), _tree(random, random.choice((0, 1, 2)))]
    if random.random() < 0.3:
        goal = [random.choice(("<=", "<")), expr, random.choice((3, 8, 16, 64, 100))]
    return Case(expr, goal, ranges, given, random.choice(("int32", "int64")))


NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 16, -1, -2, -6)
OFTEN = ("+", "+", "+", "-", "-", "*", "*", "//", "//", "%", "%", "div", "mod", "min", "max", "select")


def _condition(random: Random) -> Any:
    kind = random.random()
    if kind < 0.3:
        return ["==", ["%", random.choice("xyz"), random.choice((2, 3, 4, 8))], random.choice((0, 0, 1))]
    if kind < 0.8:
        return [random.choice(COMPARISONS), random.choice("xyz"), random.choice(["x", "y", "z", 0, 4, 7])]
    return ["and", _condition(random), _condition(random)]


def _tree(random: Random, depth: int) -> Any:
    if depth == 0 or random.random() < 0.12:
        return random.choice("xyz") if random.random() < 0.75 else random.choice(NUMBERS)
    kind = random.choice(OFTEN)
    if kind in ("//", "%", "div", "mod"):
        divisor = random.choice((1, 2, 3, 4, 4, 8, 8, 16, 5, -3)) if random.random() < 0.9 else random.choice("xyz")
        return [kind, _tree(random, depth - 1), divisor]
    if kind == "*" and random.random() < 0.8:
        return [kind, _tree(random, depth - 1), random.choice((1, 2, 3, 4, 8, 16, -1, -2))]
    if kind == "select":
        condition = [random.choice(COMPARISONS), _tree(random, 1), _tree(random, 0)]
        return [kind, condition, _tree(random, depth - 1), _tree(random, depth - 1)]
    return [kind, _tree(random, depth - 1), _tree(random, depth - 1)]


def values_of(case: Case, random: Random, count: int) -> Iterator[dict[str, int]]:
    """Random values of the variables in their ranges (the condition in force may not hold)."""
    for _ in range(count):
        values = {}
        for name in "xyz":
            low, extent = case.ranges.get(name, (-70, 140))
            values[name] = random.randrange(low, low + extent)
        yield values


def run_case(case: Case) -> dict[str, Any]:
    """What this analyzer answers, in the form the oracle's answers have."""
    from supple.ir import expr as E
    from supple.ir.types import prim_type
    from supple.sym.analyzer import Analyzer

    nodes = node_kinds()
    variables = {name: E.Var(name, prim_type(case.dtype)) for name in "xyz"}

    def literal(value: int) -> Any:
        return E.const(value, case.dtype)

    analyzer = Analyzer()
    for name, (low, extent) in case.ranges.items():
        analyzer.bind(variables[name], E.Range(literal(low), literal(extent)))
    expr, goal = (build(tree, variables, literal, nodes) for tree in (case.expr, case.goal))

    def answers() -> dict[str, Any]:
        bound, modular = analyzer.const_int_bound(expr), analyzer.modular_set(expr)
        found = {"bound": [bound.min_value, bound.max_value], "modular": [modular.coeff, modular.base]}
        for name in ("simplify", "rewrite", "canonical"):
            result = getattr(analyzer, f"{name}_simplify" if name != "simplify" else name)(expr)
            tree = describe(result)
            found[name] = [_size(tree), tree]
        return {**found, "proved": analyzer.can_prove(goal)}

    if case.given is None:
        return answers()
    with analyzer.constraint_scope(build(case.given, variables, literal, nodes)):
        return answers()


def node_kinds() -> dict[str, Any]:
    from supple.ir import expr as E

    return {
        "+": E.Add, "-": E.Sub, "*": E.Mul, "//": E.FloorDiv, "%": E.FloorMod, "div": E.Div, "mod": E.Mod,
        "min": E.Min, "max": E.Max, "<": E.LT, "<=": E.LE, "==": E.EQ, "!=": E.NE, ">": E.GT, ">=": E.GE,
        "and": E.And, "or": E.Or, "not": E.Not, "select": E.Select,
    }  # fmt: skip


def describe(e: Any) -> Any:
    """The description of an expression."""
    names = {kind: name for name, kind in node_kinds().items()}
    if type(e) in names:
        fields = [f for f in ("a", "b", "condition", "true_value", "false_value") if hasattr(e, f)]
        return [names[type(e)], *(describe(getattr(e, name)) for name in fields)]
    return e.value if hasattr(e, "value") else e.name


def _size(tree: Any) -> int:
    return 1 + sum(_size(part) for part in tree[1:]) if isinstance(tree, list) else 1
