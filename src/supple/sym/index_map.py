"""Maps of indices over known shapes: the shape that they give, the way back, and what is padding."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base.errors import TypeCheckError
from supple.ir import expr as E
from supple.ir.expr import IntImm, Range, Var, as_expr, cast, const, int64, scalar_dtype
from supple.ir.loop import IndexMap
from supple.ir.node import METHODS, Expr, Node
from supple.ir.types import prim_type
from supple.ir.walk import free_symbols, post_order, substitute, transform
from supple.runtime.tensor import Tensor, as_array
from supple.sym.analyzer import Analyzer
from supple.sym.int_set import IntervalSet
from supple.sym.iter_map import IterMapLevel, detect_iter_map
from supple.sym.iter_ops import inverse_affine_iter_map
from supple.sym.simplify import SHAPES, evaluate, product


def _refused(message: str, expected: str | None = None, actual: str | None = None) -> TypeCheckError:
    return TypeCheckError(f"index_map: {message}", expected=expected, actual=actual, rule="index_map")


def mapped_dims(index_map: IndexMap, dims: Sequence[Expr]) -> tuple[Expr, ...]:
    """The shape that a map gives: one more than the greatest value of each index. A remainder has as many values as its
    divisor says, however few indices there are: blocks are whole."""
    indices = [Var(f"i{d}", prim_type("int64")) for d in range(len(dims))]
    return tuple(_extent(e, indices, dims) for e in index_map.mapped(indices))


def _extent(e: Expr, indices: Sequence[Var], dims: Sequence[Expr]) -> Expr:
    empty = {Var("n", prim_type("int64")): d for d in dims if isinstance(d, IntImm) and d.value == 0}
    if empty:  # what the extent is for any size, at size 0
        sizes = iter(empty)
        named = [next(sizes) if isinstance(d, IntImm) and d.value == 0 else d for d in dims]
        return SHAPES.simplify(substitute(_extent(e, indices, named), empty))
    sets = {v: IntervalSet(int64(0), SHAPES.simplify(E.Sub(d, int64(1)))) for v, d in zip(indices, dims, strict=True)}

    def whole(found: Node) -> Node | None:
        if not isinstance(found, E.FloorMod) or not isinstance(found.b, IntImm) or found.b.value < 1:
            return None
        remainder = Var("r", prim_type(found.b.dtype))
        sets[remainder] = IntervalSet(const(0, found.b.dtype), const(found.b.value - 1, found.b.dtype))
        return remainder

    found = Analyzer().int_set(cast("int64", transform(e, whole)), sets)
    low, high = found.low(), found.high()
    if low is None or high is None:
        return int64(1 + max(_every_value(e, indices, dims)))
    if isinstance(low, IntImm) and low.value < 0:
        raise _refused("the map gives negative indices", "indices from 0", f"{e} from {low.value}")
    return SHAPES.simplify(E.Add(high, int64(1)))


_MOST = 1 << 14
"""How many indices are tried one by one."""


def _every_value(e: Expr, indices: Sequence[Var], dims: Sequence[Expr]) -> list[int]:
    """All values of an index whose bounds arithmetic does not tell (made with bit operations)."""
    used = set(free_symbols(e))
    ranges = [(v, d) for v, d in zip(indices, dims, strict=True) if v in used]
    sizes = [d.value for _, d in ranges if isinstance(d, IntImm)]
    if len(sizes) != len(ranges) or math.prod(sizes) > _MOST:
        wanted = f"an index made of + - * // %, or at most {_MOST} known indices"
        raise _refused(f"the map's index {e} has no bounds that are known", wanted, str(e))
    found = []
    for point in itertools.product(*map(range, sizes)):
        found.append(evaluate(e, dict(zip((v for v, _ in ranges), point, strict=True))))
    if min(found) < 0:
        raise _refused("the map gives negative indices", "indices from 0", f"{e} from {min(found)}")
    return found


def inverse_indices(index_map: IndexMap, dims: Sequence[Expr], out: Sequence[Var]) -> list[Expr] | None:
    """The initial indices in terms of the final ones, where each place of the mapped shape has one; else None."""
    if SHAPES.equal(product(list(mapped_dims(index_map, dims))), product(list(dims))) is not True:
        return None
    indices = [Var(f"i{d}", prim_type("int64")) for d in range(len(dims))]
    finals = index_map.mapped(indices)
    domains = {v: Range(int64(0), d) for v, d in zip(indices, dims, strict=True)}
    found = detect_iter_map([cast("int64", e) for e in finals], domains, True, IterMapLevel.Bijective)
    if not found.indices:
        return None
    inverse = inverse_affine_iter_map(found.indices, list(out))
    if any(v not in inverse and not _is_one(d) for v, d in zip(indices, dims, strict=True)):
        return None
    return [inverse.get(v, int64(0)) for v in indices]


def _is_one(dim: Expr) -> bool:
    return isinstance(dim, IntImm) and dim.value == 1


# ------------------------------------------------------------------------------------------------ methods of index maps


def _extents(index_map: IndexMap, shape: Sequence[Any]) -> list[Expr]:
    """A shape of numbers, expressions or ranges from 0, in the order of the map's indices."""
    if len(shape) != len(index_map.initial_indices):
        raise ValueError(f"index_map: expected {len(index_map.initial_indices)} extents, got {len(shape)}")
    extents: list[Expr] = []
    for item in shape:
        if isinstance(item, Range) and not (isinstance(item.min, IntImm) and item.min.value == 0):
            raise _refused("indices begin at 0", "a range from 0", str(item))
        extents.append(item.extent if isinstance(item, Range) else _as_scalars([item])[0])
    return extents


def _as_scalars(given: Sequence[Any]) -> list[Expr]:
    """Scalars as they are given at the loop level, where a Python number is an int32."""
    return [const(i, "int32") if isinstance(i, int) else as_expr(i) for i in given]


def map_indices(index_map: IndexMap, indices: Sequence[Any]) -> tuple[Expr, ...]:
    """The final indices, simplified; an index that is only passed on stays what it was given as."""
    given = _as_scalars(indices)
    if len(given) != len(index_map.initial_indices):
        raise ValueError(f"index_map: expected {len(index_map.initial_indices)} indices, got {len(given)}")
    mapped = index_map.mapped([cast(v.dtype, g) for v, g in zip(index_map.initial_indices, given, strict=True)])
    place = {id(v): n for n, v in enumerate(index_map.initial_indices)}
    simplify = Analyzer().simplify
    return tuple(
        given[place[id(e)]] if id(e) in place else simplify(m)
        for e, m in zip(index_map.final_indices, mapped, strict=True)
    )


def map_shape(index_map: IndexMap, shape: Sequence[Any]) -> tuple[Expr, ...]:
    """The mapped shape, in the dtype of the given one."""
    extents = _extents(index_map, shape)
    wide = "int64" if any(scalar_dtype(e) == "int64" for e in extents) else "int32"
    dims = mapped_dims(index_map, [cast("int64", e) for e in extents])
    return tuple(Analyzer().simplify(cast(wide, d)) for d in dims)


def _output_names(index_map: IndexMap) -> list[Var]:
    """Variables for the final indices: what is only passed on keeps its name."""
    dtype = index_map.initial_indices[0].dtype if index_map.initial_indices else "int64"
    return [
        Var(e.name if isinstance(e, Var) else f"axis{n}", prim_type(dtype))
        for n, e in enumerate(index_map.final_indices)
    ]


def _back(index_map: IndexMap, extents: Sequence[Expr]) -> IndexMap | None:
    outputs = _output_names(index_map)
    found = inverse_indices(index_map, [cast("int64", e) for e in extents], outputs)
    if found is None:
        return None
    passed_on = {id(e): n for n, e in enumerate(index_map.final_indices)}
    finals = [
        outputs[passed_on[id(v)]] if id(v) in passed_on else SHAPES.simplify(e)
        for v, e in zip(index_map.initial_indices, found, strict=True)
    ]
    return IndexMap(tuple(outputs), tuple(finals))


def inverse(index_map: IndexMap, shape: Sequence[Any]) -> IndexMap:
    """The map back. Raises a `TypeCheckError` where a place of the mapped shape has no element, or several."""
    extents = _extents(index_map, shape)
    if index_map.inverse_index_map is not None:
        return index_map.inverse_index_map
    found = _back(index_map, extents)
    if found is None:
        raise _refused(
            "the map is not one to one over the shape",
            "one element for each place of the mapped shape",
            f"{index_map} over {tuple(map(str, extents))}",
        )
    return found


def non_surjective_inverse(index_map: IndexMap, shape: Sequence[Any]) -> tuple[IndexMap, Expr]:
    """The map back from the mapped shape, and a condition on the final indices that holds where there is no element.

    Raises a `TypeCheckError` for a map that is not one to one even where the blocks are whole.
    """
    extents = [cast("int64", e) for e in _extents(index_map, shape)]
    padded = [_whole(index_map, v, e) for v, e in zip(index_map.initial_indices, extents, strict=True)]
    found = _back(index_map, padded)
    if found is None:
        raise _refused("the map is not one to one", "an element for each place of whole blocks", str(index_map))
    ranges = dict(zip(found.initial_indices, mapped_dims(index_map, extents), strict=True))
    padding: Expr = const(False, "bool")
    for e, extent, whole in zip(found.final_indices, extents, padded, strict=True):
        if SHAPES.equal(extent, whole) is not True:
            beyond = _beyond(e, extent, ranges)
            padding = beyond if isinstance(padding, IntImm) else E.Or(padding, beyond)
    return found, padding


def _whole(index_map: IndexMap, index: Var, extent: Expr) -> Expr:
    """The extent of an index, rounded up to whole blocks of all that it is divided by."""
    block = 1
    for final in index_map.final_indices:
        if any(v is index for v in free_symbols(final)):
            for part in post_order(final):
                if isinstance(part, (E.FloorDiv, E.FloorMod)) and isinstance(part.b, IntImm) and part.b.value > 0:
                    block = math.lcm(block, part.b.value)
    blocks = E.FloorDiv(E.Add(extent, int64(block - 1)), int64(block))
    return SHAPES.simplify(E.Mul(blocks, int64(block)))


def _beyond(e: Expr, extent: Expr, ranges: dict[Var, Expr]) -> Expr:
    """That an initial index is not below its extent: for ``block * k + within``, digit by digit."""
    if isinstance(e, E.Add) and isinstance(e.a, E.Mul) and isinstance(e.b, Var) and isinstance(e.a.b, IntImm):
        blocks, within, size = e.a.a, e.b, e.a.b
        whole = ranges.get(within)
        if whole is not None and SHAPES.equal(whole, size) is True and isinstance(blocks, Var):
            simplify = Analyzer().simplify
            last, rest = simplify(E.FloorDiv(extent, size)), simplify(E.FloorMod(extent, size))
            inside: Expr = E.LE(rest, within)
            if isinstance(rest, IntImm) and rest.value == size.value - 1:
                inside = E.EQ(within, rest)
            found: Expr = E.And(E.EQ(blocks, last), inside)
            return found if isinstance(rest, IntImm) else E.And(E.NE(rest, int64(0)), found)
    return E.LE(extent, e)


def is_equivalent_to(index_map: IndexMap, other: IndexMap) -> bool:
    """Whether two maps give the same final indices for all initial ones."""
    if len(index_map.initial_indices) != len(other.initial_indices):
        return False
    if len(index_map.final_indices) != len(other.final_indices):
        return False
    indices = [Var(v.name, prim_type("int64")) for v in index_map.initial_indices]
    analyzer = Analyzer()
    pairs = zip(index_map.mapped(indices), other.mapped(indices), strict=True)
    return all(analyzer.can_prove_equal(cast("int64", a), cast("int64", b)) for a, b in pairs)


def map_tensor(index_map: IndexMap, array: Any) -> Any:
    """The elements of an array (or `Tensor`, which gives one) in the map's order. Every place must have an element."""
    data = as_array(array)
    shape = _extents(index_map, [int64(s) for s in data.shape])
    dims = tuple(evaluate(d, {}) for d in mapped_dims(index_map, shape))
    if math.prod(dims) != data.size:
        raise _refused("some places have no element", f"{data.size} elements", f"the shape {dims}")
    moved = np.empty(dims, data.dtype)
    finals = index_map.mapped(list(index_map.initial_indices))
    for at in np.ndindex(data.shape):
        values = dict(zip(index_map.initial_indices, at, strict=True))
        moved[tuple(evaluate(e, values) for e in finals)] = data[at]
    return Tensor(moved) if isinstance(array, Tensor) else moved


METHODS["index_map.map_indices"] = map_indices
METHODS["index_map.map_shape"] = map_shape
METHODS["index_map.inverse"] = inverse
METHODS["index_map.non_surjective_inverse"] = non_surjective_inverse
METHODS["index_map.is_equivalent_to"] = is_equivalent_to
METHODS["index_map.map_tensor"] = map_tensor
