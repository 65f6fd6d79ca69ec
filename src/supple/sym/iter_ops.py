"""What can be done with iterator maps: back to expressions, inverted, simplified, divided into outer and inner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from supple.ir import expr as E
from supple.ir.expr import Var
from supple.ir.node import Expr
from supple.sym.analyzer import Analyzer
from supple.sym.iter_map import (
    IterMapExpr,
    IterMapLevel,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    _check,
    _level,
    _NotAffineError,
    _read_all,
    bound_analyzer,
    detect_iter_map,
)
from supple.sym.terms import operands, rebuilt, within


def normalize_iter_map_to_expr(expr: Any) -> Any:
    """The plain expression of an iterator map."""
    return _plain(expr, Analyzer())


def _plain(e: Any, analyzer: Analyzer) -> Any:
    if isinstance(e, IterSumExpr):
        total: Any = None
        for arg in e.args:
            part = _plain(arg, analyzer)
            total = part if total is None else total + part
        if total is None:
            return e.base
        return total if analyzer.can_prove_equal(e.base, 0) else total + e.base
    if isinstance(e, IterSplitExpr):
        source = _plain(e.source.source, analyzer)
        low, extent = e.lower_factor, e.extent
        value = source if analyzer.can_prove_equal(low, 1) else E.FloorDiv(source, low)
        if not analyzer.can_prove_equal(low * extent, e.source.extent):
            value = E.FloorMod(value, extent)
        return value if analyzer.can_prove_equal(e.scale, 1) else value * e.scale
    if isinstance(e, IterMapExpr):
        raise TypeError(f"normalize_iter_map_to_expr: cannot read {type(e).__name__}")
    if not any(isinstance(term, IterMapExpr) for term in within(e)):
        return e
    return rebuilt(e, tuple(_plain(part, analyzer) for part in operands(e)))


def iter_map_simplify(
    indices: Sequence[Any],
    input_iters: Mapping[Var, Any],
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
    analyzer: Analyzer | None = None,
) -> tuple[Any, ...]:
    """Indices rebuilt from their digits where that makes them simpler; simplified under the loops' ranges otherwise."""
    own = bound_analyzer(analyzer, input_iters)
    plain = tuple(own.simplify(E.as_expr(index, "int32")) for index in indices)
    found = detect_iter_map(indices, input_iters, predicate, check_level, simplify_trivial_iterators, analyzer)
    if not found.indices:
        return plain
    rebuilt_indices = tuple(own.simplify(_plain(index, own)) for index in found.indices)
    return tuple(b if len(str(b)) < len(str(a)) else a for a, b in zip(plain, rebuilt_indices, strict=True))


def inverse_affine_iter_map(iter_map: Sequence[IterSumExpr], outputs: Sequence[Any]) -> dict[Var, Expr]:
    """The loops' variables in terms of the indices' values.

    ``iter_map`` is what `detect_iter_map` found (bijectively, for the inverse to tell every variable). Raises
    ``ValueError`` where it is not made of digits that fit together.
    """
    if len(iter_map) != len(outputs):
        raise ValueError(f"inverse_affine_iter_map: {len(iter_map)} indices, but {len(outputs)} outputs")
    analyzer = Analyzer()
    values: dict[int, tuple[IterMark, Any]] = {}
    users = _users(iter_map)
    pending: list[tuple[IterSumExpr, Any]] = []
    for e, output in zip(iter_map, outputs, strict=True):
        pending.append((e, E.as_expr(output, e.dtype)))
    result: dict[Var, Expr] = {}
    while pending:
        e, output = pending.pop()
        for split, digit in _digits(e, output, analyzer):
            part = digit if analyzer.can_prove_equal(split.lower_factor, 1) else digit * split.lower_factor
            key = _key(split.source)
            before = values.get(key)
            values[key] = (split.source, part if before is None else before[1] + part)
            users[key] -= 1
            if users[key] == 0:
                mark, value = values[key]
                _resolved(mark, analyzer.simplify(value), pending, result)
    return {var: analyzer.simplify(value) for var, value in result.items()}


def _key(mark: IterMark) -> int:
    return id(mark.source) if isinstance(mark.source, Var) else id(mark)


def _users(iter_map: Sequence[IterSumExpr]) -> dict[int, int]:
    users: dict[int, int] = {}
    pending = list(iter_map)
    while pending:
        for split in pending.pop().args:
            key = _key(split.source)
            users[key] = users.get(key, 0) + 1
            if users[key] == 1 and isinstance(split.source.source, IterSumExpr):
                pending.append(split.source.source)
    return users


def _digits(e: IterSumExpr, output: Any, analyzer: Analyzer) -> list[tuple[IterSplitExpr, Expr]]:
    value = analyzer.simplify(output - e.base)
    left = list(e.args)
    found: list[tuple[IterSplitExpr, Expr]] = []
    while left:
        split = next((a for a in left if all(a is o or analyzer.can_prove(a.scale <= o.scale) for o in left)), None)
        if split is None:
            raise ValueError("inverse_affine_iter_map: the scales of the digits cannot be compared")
        left = [a for a in left if a is not split]
        digit = value if analyzer.can_prove_equal(split.scale, 1) else E.FloorDiv(value, split.scale)
        found.append((split, E.FloorMod(digit, split.extent) if left else digit))
    return found


def _resolved(mark: IterMark, value: Any, pending: list[tuple[IterSumExpr, Expr]], result: dict[Var, Expr]) -> None:
    source = mark.source
    if isinstance(source, Var):
        result[source] = value
    elif isinstance(source, IterSumExpr):
        pending.append((source, value))
    elif isinstance(source, (E.Sub, E.Add)) and isinstance(source.a, Var):  # a loop that does not start at 0
        result[source.a] = value + source.b if isinstance(source, E.Sub) else value - source.b
    else:
        raise ValueError(f"inverse_affine_iter_map: cannot invert the mark of {source}")


def subspace_divide(
    bindings: Sequence[Any],
    input_iters: Mapping[Var, Any],
    sub_iters: Sequence[Var],
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
    analyzer: Analyzer | None = None,
) -> list[tuple[IterMark, IterMark]]:
    """Split every binding into ``outer * extent(inner) + inner``, where only ``sub_iters`` change the inner part.

    The list has a pair ``(outer, inner)`` a binding and a last pair whose extents are the predicates of the two parts
    (true here). It is empty where a binding cannot be split so.
    """
    inside = {id(v) for v in sub_iters}
    try:
        reader, sums = _read_all(bindings, input_iters, predicate, simplify_trivial_iterators, analyzer)
        level = _level(check_level)
        if level is not IterMapLevel.NoCheck and _check(sums, reader, level):
            return []
        made: list[tuple[IterMark, IterMark]] = []
        for e in sums:
            digits = reader.ordered(e)
            inner = [d for d in digits if _runs_in(d, inside)]
            if any(d is not i for d, i in zip(digits, inner, strict=False)):
                return []  # an outer digit stands below an inner one
            outer = list(digits[len(inner) :])
            unit = digits[0].scale if digits else None
            low = reader.simplify(inner[-1].scale * inner[-1].extent) if inner else unit
            made.append((_mark(outer, low, e, reader), _mark(inner, unit, e, reader)))
    except _NotAffineError:
        return []
    true = E.const(True, "bool")
    nothing = IterSumExpr((), E.const(0, "int32"))
    return [*made, (_with_extent(nothing, true), _with_extent(nothing, true))]


def _with_extent(source: IterSumExpr, extent: Any) -> IterMark:
    return IterMark(source, extent)


def _runs_in(digit: IterSplitExpr, inside: set[int]) -> bool:
    """Whether only the inner loops change a digit; raises where loops of both kinds do."""
    source: Any = digit.source.source
    if isinstance(source, IterSumExpr):
        kinds = {_runs_in(arg, inside) for arg in source.args}
        if len(kinds) > 1:
            raise _NotAffineError("a digit mixes inner and outer loops")
        return kinds.pop()
    var = source if isinstance(source, Var) else source.a
    return id(var) in inside


def _mark(digits: list[IterSplitExpr], unit: Any, e: IterSumExpr, reader: Any) -> IterMark:
    one, zero = E.const(1, e.dtype), E.const(0, e.dtype)
    if not digits or unit is None:
        return IterMark(IterSumExpr((), zero), one)
    args, extent = reader.counted(digits, unit)
    return IterMark(IterSumExpr(args, zero), extent)
