"""Affine iterator maps: index expressions as sums of digits of the loops around them.

A digit is `IterSplitExpr`: ``((mark // lower_factor) % extent) * scale`` of an `IterMark`, which is a loop variable, or
a sum of digits that runs over a whole range itself. `detect_iter_map` reads index expressions so and checks that the
digits fit together: whoever knows all indices can then tell the loops' values (`inverse_affine_iter_map`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from supple.base.errors import SuppleError
from supple.ir import expr as E
from supple.ir.expr import ExprWithOps, IntImm, Range, Var
from supple.ir.node import Expr, Node, Type, as_tuple, node, set_field
from supple.ir.types import prim_type
from supple.sym.analyzer import Analyzer
from supple.sym.terms import operands, within


class IterMapLevel(enum.IntEnum):
    """What `detect_iter_map` requires: each tuple of indices once; every value of each index; nothing."""

    Bijective = 0
    Surjective = 1
    NoCheck = 3


@node
class IterMark(Node):
    """Something that runs over ``0 .. extent - 1``: a variable, or an `IterSumExpr`."""

    source: Any
    extent: Any

    def __post_init__(self) -> None:
        set_field(self, "extent", E.as_expr(self.extent, _dtype_of(self.source)))

    def __repr__(self) -> str:
        return f"IterMark({self.source}, extent={self.extent})"


@node
class IterMapExpr(ExprWithOps):
    """Base of the expressions of iterator maps."""


@node
class IterSplitExpr(IterMapExpr):
    """``((source // lower_factor) % extent) * scale``."""

    source: IterMark
    lower_factor: Any
    extent: Any
    scale: Any

    def __post_init__(self) -> None:
        for name in ("lower_factor", "extent", "scale"):
            set_field(self, name, E.as_expr(getattr(self, name), _dtype_of(self.source.source)))

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)

    @property
    def dtype(self) -> str:
        return _dtype_of(self.source.source)

    def __repr__(self) -> str:
        return (
            f"IterSplitExpr({self.source}, lower_factor={self.lower_factor}, extent={self.extent}, scale={self.scale})"
        )


@node
class IterSumExpr(IterMapExpr):
    """The sum of digits and a base that no loop changes."""

    args: tuple[IterSplitExpr, ...]
    base: Any

    def __post_init__(self) -> None:
        as_tuple(self, "args")
        if not isinstance(self.base, Expr):
            set_field(self, "base", E.const(self.base, self.args[0].dtype if self.args else "int32"))

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)

    @property
    def dtype(self) -> str:
        return E.scalar_dtype(self.base)

    def __repr__(self) -> str:
        return f"IterSumExpr([{', '.join(map(repr, self.args))}], base={self.base})"


def _dtype_of(source: Any) -> str:
    return source.dtype if isinstance(source, (IterSumExpr, IterSplitExpr)) else E.scalar_dtype(source)


@dataclass(frozen=True)
class IterMapResult:
    """``indices`` is empty when the map is not affine; ``errors`` then say why."""

    indices: tuple[IterSumExpr, ...]
    errors: tuple[str, ...]
    padding_predicate: Any


class _NotAffineError(SuppleError, ValueError):
    """The expression is no sum of digits."""


def bound_analyzer(analyzer: Analyzer | None, ranges: Mapping[Var, Any]) -> Analyzer:
    """A copy of the analyzer that knows the loops' ranges."""
    own = analyzer.clone() if analyzer is not None else Analyzer()
    for var, domain in ranges.items():
        own.bind(var, domain, allow_override=True)
    return own


class _Reader:
    """Reads index expressions over the given loops."""

    def __init__(self, iters: Mapping[Var, Range], analyzer: Analyzer, trivial: bool) -> None:
        self.analyzer = analyzer
        self.marks: dict[int, IterMark | None] = {}
        self.mins: dict[int, Expr] = {}
        self.fused: list[IterMark] = []
        for var, domain in iters.items():
            dtype = E.scalar_dtype(var)
            low, extent = E.cast(dtype, domain.min), E.cast(dtype, domain.extent)
            self.mins[id(var)] = low
            if trivial and self.equal(extent, 1):
                self.marks[id(var)] = None
            else:
                source = var if self.equal(low, 0) else self.simplify(var - low)
                self.marks[id(var)] = IterMark(source, self.simplify(extent))

    def simplify(self, e: Any) -> Any:
        return self.analyzer.simplify(e)

    def equal(self, a: Any, b: Any) -> bool:
        return self.analyzer.can_prove_equal(a, b)

    def divides(self, divisor: Any, e: Any) -> bool:
        return self.equal(E.FloorMod(e, divisor), 0)

    def quotient(self, e: Any, divisor: Any) -> Any:
        return self.simplify(E.FloorDiv(e, divisor))

    def read(self, e: Any) -> IterSumExpr:
        """The expression as a sum of digits; raises `_NotAffineError`."""
        done: dict[int, IterSumExpr] = {}
        stack: list[tuple[Expr, bool]] = [(e, False)]
        while stack:
            current, expanded = stack.pop()
            if id(current) in done:
                continue
            if isinstance(current, (IterSumExpr, IterSplitExpr)):
                one = isinstance(current, IterSplitExpr)
                done[id(current)] = IterSumExpr((current,), E.const(0, current.dtype)) if one else current  # type: ignore[arg-type,assignment]
            elif isinstance(current, Var) and id(current) in self.marks:
                done[id(current)] = self._variable(current)
            elif not self._mentions_iter(current):
                done[id(current)] = IterSumExpr((), current)
            elif not expanded:
                stack.append((current, True))
                stack.extend((part, False) for part in operands(current))
            else:
                parts = [done[id(part)] for part in operands(current)]
                done[id(current)] = self._combine(current, parts)
        return done[id(e)]

    def _mentions_iter(self, e: Any) -> bool:
        return any(id(term) in self.marks or isinstance(term, IterMapExpr) for term in within(e))

    def _variable(self, var: Var) -> IterSumExpr:
        mark, low = self.marks[id(var)], self.mins[id(var)]
        if mark is None:
            return IterSumExpr((), low)
        one = E.const(1, E.scalar_dtype(var))
        return IterSumExpr((IterSplitExpr(mark, one, mark.extent, one),), low)

    def _combine(self, e: Any, parts: list[IterSumExpr]) -> IterSumExpr:
        if isinstance(e, E.Add):
            return self.add(parts[0], parts[1])
        if isinstance(e, E.Sub):
            return self.add(parts[0], self.scale(parts[1], E.const(-1, e.dtype)))
        if isinstance(e, E.Mul) and not (parts[0].args and parts[1].args):
            varies, factor = parts if parts[0].args else (parts[1], parts[0])
            return self.scale(varies, factor.base)
        if isinstance(e, (E.FloorDiv, E.FloorMod)) and not parts[1].args:
            if not self.analyzer.can_prove(parts[1].base > 0):
                raise _NotAffineError(f"the divisor of {e} is not known to be positive")
            return (self.floordiv if isinstance(e, E.FloorDiv) else self.floormod)(parts[0], parts[1].base)
        if isinstance(e, E.Cast):
            return parts[0]
        raise _NotAffineError(f"{e} is not affine in the loops")

    def add(self, a: IterSumExpr, b: IterSumExpr) -> IterSumExpr:
        args = list(a.args)
        for other in b.args:
            for position, mine in enumerate(args):
                if mine.source is other.source and self._same_digit(mine, other):
                    scale = self.simplify(mine.scale + other.scale)
                    args[position] = IterSplitExpr(mine.source, mine.lower_factor, mine.extent, scale)
                    break
            else:
                args.append(other)
        kept = tuple(arg for arg in args if not self.equal(arg.scale, 0))
        return self._joined(IterSumExpr(kept, self.simplify(a.base + b.base)))

    def _same_digit(self, a: IterSplitExpr, b: IterSplitExpr) -> bool:
        return self.equal(a.lower_factor, b.lower_factor) and self.equal(a.extent, b.extent)

    def _joined(self, e: IterSumExpr) -> IterSumExpr:
        """``(x // 4) * 4 + x % 4``: neighbouring digits of one mark are one digit."""
        args = list(e.args)
        for high in args:
            for low in args:
                if high is low or high.source is not low.source:
                    continue
                next_to = self.equal(high.lower_factor, low.lower_factor * low.extent)
                if next_to and self.equal(high.scale, low.scale * low.extent):
                    extent = self.simplify(low.extent * high.extent)
                    joined = IterSplitExpr(low.source, low.lower_factor, extent, low.scale)
                    rest = tuple(joined if arg is high else arg for arg in args if arg is not low)
                    return self._joined(IterSumExpr(rest, e.base))
        return e

    def scale(self, e: IterSumExpr, factor: Any) -> IterSumExpr:
        if self.equal(factor, 0):
            return IterSumExpr((), E.const(0, e.dtype))
        args = tuple(IterSplitExpr(a.source, a.lower_factor, a.extent, self.simplify(a.scale * factor)) for a in e.args)
        return IterSumExpr(args, self.simplify(e.base * factor))

    def _apart(self, e: IterSumExpr, divisor: Any) -> tuple[IterSumExpr, IterSumExpr]:
        """``(q, r)`` with ``e == q * divisor + r``."""
        whole = [a for a in e.args if self.divides(divisor, a.scale)]
        rest = tuple(a for a in e.args if not any(a is w for w in whole))
        quotients = tuple(
            IterSplitExpr(a.source, a.lower_factor, a.extent, self.quotient(a.scale, divisor)) for a in whole
        )
        quotient = IterSumExpr(quotients, self.quotient(e.base, divisor))
        return quotient, IterSumExpr(rest, self.simplify(E.FloorMod(e.base, divisor)))

    def _range_end(self, e: IterSumExpr) -> Any:
        """One more than the largest value of a sum with positive scales."""
        end: Any = e.base + 1
        for arg in e.args:
            if not self.analyzer.can_prove(arg.scale > 0):
                raise _NotAffineError(f"the scale {arg.scale} is not known to be positive")
            end = end + (arg.extent - 1) * arg.scale
        return self.simplify(end)

    def floordiv(self, e: IterSumExpr, divisor: Any) -> IterSumExpr:
        quotient, rest = self._apart(e, divisor)
        if self.analyzer.can_prove(self._range_end(rest) <= divisor):
            return quotient
        split = self.single(rest)
        factor = self._reduced(split, divisor)
        low = self.simplify(split.lower_factor * factor)
        extent = self.quotient(split.extent, factor)
        one = E.const(1, e.dtype)
        return self.add(quotient, IterSumExpr((IterSplitExpr(split.source, low, extent, one),), E.const(0, e.dtype)))

    def floormod(self, e: IterSumExpr, divisor: Any) -> IterSumExpr:
        _, rest = self._apart(e, divisor)
        if self.analyzer.can_prove(self._range_end(rest) <= divisor):
            return rest
        split = self.single(rest)
        factor = self._reduced(split, divisor)
        made = IterSplitExpr(split.source, split.lower_factor, factor, split.scale)
        return IterSumExpr((made,), E.const(0, e.dtype))

    def _reduced(self, split: IterSplitExpr, divisor: Any) -> Any:
        if not self.divides(split.scale, divisor):
            raise _NotAffineError(f"{divisor} is no multiple of the scale {split.scale}")
        factor = self.quotient(divisor, split.scale)
        if not self.divides(factor, split.extent):
            raise _NotAffineError(f"the extent {split.extent} is no multiple of {factor}: it would have to be padded")
        return factor

    def ordered(self, e: IterSumExpr) -> tuple[IterSplitExpr, ...]:
        """The digits from the last (smallest scale) to the first, each beginning where the one before ends."""
        left = list(e.args)
        found: list[IterSplitExpr] = []
        expected = self._smallest_scale(left)
        while left:
            match = next((a for a in left if self.equal(a.scale, expected)), None)
            if match is None:
                raise _NotAffineError(f"no digit has the scale {expected}: the digits overlap or leave gaps")
            left = [a for a in left if a is not match]
            found.append(match)
            expected = self.simplify(match.scale * match.extent)
        return tuple(found)

    def _smallest_scale(self, args: Sequence[IterSplitExpr]) -> Any:
        for arg in args:
            if all(arg is o or self.analyzer.can_prove(arg.scale <= o.scale) for o in args):
                return arg.scale
        raise _NotAffineError("the scales of the digits cannot be compared")

    def counted(self, digits: Sequence[IterSplitExpr], unit: Any) -> tuple[tuple[IterSplitExpr, ...], Any]:
        """Digits side by side (given from the lowest on), the highest first, in units; and how far they run."""
        args = tuple(
            IterSplitExpr(d.source, d.lower_factor, d.extent, self.quotient(d.scale, unit)) for d in reversed(digits)
        )
        return args, self.quotient(digits[-1].scale * digits[-1].extent, unit)

    def single(self, e: IterSumExpr) -> IterSplitExpr:
        """The sum as one digit of a mark; raises where its digits do not fit together, or it does not start at 0."""
        if not self.equal(e.base, 0):
            raise _NotAffineError(f"the sum starts at {e.base}, not at 0")
        if len(e.args) == 1:
            return e.args[0]
        digits = self.ordered(e)
        scale, one = digits[0].scale, E.const(1, e.dtype)
        args, extent = self.counted(digits, scale)
        mark = next((m for m in self.fused if _same_sum(m.source, args, self)), None)
        if mark is None:
            mark = IterMark(IterSumExpr(args, E.const(0, e.dtype)), extent)
            self.fused.append(mark)
        return IterSplitExpr(mark, one, extent, scale)

    def normalized(self, e: IterSumExpr) -> IterSumExpr:
        """An index in the form of results: one digit of one mark, and the base."""
        if not e.args:
            return e
        digits = self.ordered(e)
        scale, one = digits[0].scale, E.const(1, e.dtype)
        args, extent = self.counted(digits, scale)
        mark = IterMark(IterSumExpr(args, E.const(0, e.dtype)), extent)
        return IterSumExpr((IterSplitExpr(mark, one, extent, scale),), e.base)


def _same_sum(source: Any, args: tuple[IterSplitExpr, ...], reader: _Reader) -> bool:
    return (
        isinstance(source, IterSumExpr)
        and len(source.args) == len(args)
        and all(
            a.source is b.source and reader._same_digit(a, b) and reader.equal(a.scale, b.scale)
            for a, b in zip(source.args, args, strict=True)
        )
    )


def _check(sums: Iterable[IterSumExpr], reader: _Reader, level: IterMapLevel) -> list[str]:
    """Whether the digits in use are digits of different places, and (bijective) all of them."""
    used: dict[int, tuple[IterMark, list[IterSplitExpr]]] = {}
    pending = [arg for e in sums for arg in e.args]
    errors: list[str] = []
    entered: set[int] = set()
    while pending:
        split = pending.pop()
        used.setdefault(id(split.source), (split.source, []))[1].append(split)
        if isinstance(split.source.source, IterSumExpr) and id(split.source) not in entered:
            entered.add(id(split.source))
            pending.extend(split.source.source.args)
    for mark, splits in used.values():
        errors += _check_mark(mark, splits, reader, level)
    if level is IterMapLevel.Bijective:
        unused = [mark for mark in reader.marks.values() if mark is not None and id(mark) not in used]
        errors += [f"{mark.source} is not used by the indices" for mark in unused]
    return errors


def _check_mark(mark: IterMark, splits: list[IterSplitExpr], reader: _Reader, level: IterMapLevel) -> list[str]:
    left = list(splits)
    place: Any = E.const(1, _dtype_of(mark.source))
    while left:
        match = next((s for s in left if reader.equal(s.lower_factor, place)), None)
        if match is None and level is not IterMapLevel.Bijective:
            match = next((s for s in left if _is_lowest(s, left, reader)), None)
            if match is not None and not reader.divides(place, match.lower_factor):
                match = None
        if match is None:
            return [f"the digits of {mark.source} overlap or leave gaps"]
        left = [s for s in left if s is not match]
        place = reader.simplify(match.lower_factor * match.extent)
    if level is IterMapLevel.Bijective and not reader.equal(place, mark.extent):
        return [f"the digits of {mark.source} do not cover its extent {mark.extent}"]
    return []


def _is_lowest(split: IterSplitExpr, splits: list[IterSplitExpr], reader: _Reader) -> bool:
    return all(reader.analyzer.can_prove(split.lower_factor <= other.lower_factor) for other in splits)


def _level(level: Any) -> IterMapLevel:
    if isinstance(level, str):
        named = {kind.name.lower(): kind for kind in IterMapLevel}
        if level.lower() not in named:
            raise ValueError(f"check_level: expected 'bijective', 'surjective' or 'nocheck', got {level!r}")
        return named[level.lower()]
    return IterMapLevel(level)


def _ranges_under(iters: Mapping[Var, Any], predicate: Any, analyzer: Analyzer) -> dict[Var, Range]:
    """The loops' ranges, narrowed by a predicate of the form ``var < end and ...``; raises for any other."""
    ranges = {var: domain if isinstance(domain, Range) else Range(*domain) for var, domain in iters.items()}
    pending: list[Any] = [analyzer.simplify(predicate)]
    while pending:
        e = pending.pop()
        if isinstance(e, E.And):
            pending += [e.a, e.b]
        elif isinstance(e, IntImm):
            if not e.value:
                raise _NotAffineError("the predicate never holds")
        elif isinstance(e, (E.LT, E.LE)) and isinstance(e.a, Var) and e.a in ranges:
            domain: Any = ranges[e.a]
            last: Any = e.b
            end = last if isinstance(e, E.LT) else last + 1
            extent = analyzer.simplify(E.Min(domain.extent, E.cast(E.scalar_dtype(domain.extent), end - domain.min)))
            ranges[e.a] = Range(domain.min, extent)
        elif isinstance(e, (E.LT, E.LE)) and isinstance(e.b, Var) and e.b in ranges:
            domain = ranges[e.b]
            before: Any = e.a
            first = before + 1 if isinstance(e, E.LT) else before
            low = analyzer.simplify(E.Max(domain.min, E.cast(E.scalar_dtype(domain.min), first)))
            ranges[e.b] = Range(low, analyzer.simplify(domain.min + domain.extent - low))
        else:
            raise _NotAffineError(f"the predicate {e} is no bound of a single loop")
    return ranges


def _read_all(
    indices: Sequence[Any], input_iters: Mapping[Var, Any], predicate: Any, trivial: bool, analyzer: Analyzer | None
) -> tuple[_Reader, list[IterSumExpr]]:
    own = analyzer.clone() if analyzer is not None else Analyzer()
    ranges = _ranges_under(input_iters, predicate, own)
    for var, domain in ranges.items():
        own.bind(var, domain, allow_override=True)
    reader = _Reader(ranges, own, trivial)
    return reader, [reader.read(E.as_expr(index, "int32")) for index in indices]


def detect_iter_map(
    indices: Sequence[Any],
    input_iters: Mapping[Var, Any],
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
    analyzer: Analyzer | None = None,
) -> IterMapResult:
    """Read indices as digits of the loops.

    ``input_iters`` gives the loops' ranges; ``predicate`` may bound single loops further. In the result every index is
    a base and one digit of a mark over the digits it is made of. Extents that would have to be padded are not taken.
    """
    never = E.const(False, "bool")
    try:
        reader, sums = _read_all(indices, input_iters, predicate, simplify_trivial_iterators, analyzer)
        level = _level(check_level)
        errors = [] if level is IterMapLevel.NoCheck else _check(sums, reader, level)
        if not errors:
            return IterMapResult(tuple(reader.normalized(e) for e in sums), (), never)
    except _NotAffineError as error:
        errors = [str(error)]
    return IterMapResult((), tuple(errors), never)


def normalize_to_iter_sum(index: Any, input_iters: Mapping[Var, Any], analyzer: Analyzer | None = None) -> IterSumExpr:
    """An index as a sum of digits, the largest scale first, without any check of how they fit.

    Raises ``ValueError`` for an index that is no such sum.
    """
    _, (made,) = _read_all([index], input_iters, True, True, analyzer)
    known = [a for a in made.args if isinstance(a.scale, IntImm)]
    rest = [a for a in made.args if not isinstance(a.scale, IntImm)]
    known.sort(key=lambda a: -int(a.scale.value))
    return IterSumExpr(tuple(rest + known), made.base)


__all__ = [
    "IterMapExpr", "IterMapLevel", "IterMapResult", "IterMark", "IterSplitExpr", "IterSumExpr", "detect_iter_map",
    "normalize_to_iter_sum",
]  # fmt: skip
