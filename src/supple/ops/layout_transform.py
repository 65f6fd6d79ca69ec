"""Tensors in another layout by a map of indices: layout_transform."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.build.loops import do, filled, nest, store
from supple.ir import expr as E
from supple.ir.expr import IntImm, Range, Var, cast, const, int64
from supple.ir.loop import IndexMap
from supple.ir.node import Expr, Node, Stmt, Type
from supple.ir.op import Fusion, RelaxText
from supple.ir.types import TensorType, prim_type
from supple.ir.walk import free_symbols, substitute, transform
from supple.ops.declare import Axes, Mapping, Number, Sample, fail, operator, sample
from supple.ops.shapes import is_one
from supple.sym.analyzer import Analyzer
from supple.sym.int_set import IntervalSet
from supple.sym.iter_map import IterMapLevel, detect_iter_map
from supple.sym.iter_ops import inverse_affine_iter_map
from supple.sym.relate import tensor, tensor_dims
from supple.sym.simplify import SHAPES, evaluate, product

_NAME = "layout_transform"


def mapped_dims(index_map: IndexMap, dims: Sequence[Expr]) -> tuple[Expr, ...]:
    """The shape that a map gives: one more than the greatest value of each index. A remainder has as many values as its
    divisor says, however few indices there are: blocks are whole."""
    indices = [Var(f"i{d}", prim_type("int64")) for d in range(len(dims))]
    return tuple(_extent(e, indices, dims) for e in index_map.map_indices(indices))


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
        fail(f"{_NAME}: the map gives negative indices", "indices from 0", f"{e} from {low.value}")
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
        fail(f"{_NAME}: the map's index {e} has no bounds that are known", wanted, str(e))
    found = []
    for point in itertools.product(*map(range, sizes)):
        found.append(evaluate(e, dict(zip((v for v, _ in ranges), point, strict=True))))
    if min(found) < 0:
        fail(f"{_NAME}: the map gives negative indices", "indices from 0", f"{e} from {min(found)}")
    return found


def _check(index_map: IndexMap, ndim: int) -> None:
    if len(index_map.initial_indices) != ndim:
        fail(
            f"{_NAME}: the map takes another number of indices than the tensor has dimensions",
            f"{ndim} indices",
            f"{len(index_map.initial_indices)} indices",
        )


def _inverse(index_map: IndexMap, dims: Sequence[Expr], out: Sequence[Var]) -> list[Expr] | None:
    """The tensor's indices in terms of the result's, where each place of the result has one."""
    if SHAPES.equal(product(list(mapped_dims(index_map, dims))), product(list(dims))) is not True:
        return None
    indices = [Var(f"i{d}", prim_type("int64")) for d in range(len(dims))]
    finals = index_map.map_indices(indices)
    domains = {v: Range(int64(0), d) for v, d in zip(indices, dims, strict=True)}
    found = detect_iter_map([cast("int64", e) for e in finals], domains, True, IterMapLevel.Bijective)
    if not found.indices:
        return None
    inverse = inverse_affine_iter_map(found.indices, list(out))
    if any(v not in inverse and not is_one(d) for v, d in zip(indices, dims, strict=True)):
        return None
    return [inverse.get(v, int64(0)) for v in indices]


def _lower(x: te.TensorValue, index_map: IndexMap, pad_value: Number, **_: Any) -> te.TensorValue:
    dims = mapped_dims(index_map, x.shape)
    probe = [Var(f"o{d}", prim_type("int64")) for d in range(len(dims))]
    at = _inverse(index_map, x.shape, probe)
    if at is not None:
        places: list[Expr] = at

        def read(*o: Any) -> Expr:
            renamed: dict[Var, Node] = dict(zip(probe, o, strict=True))
            return x[tuple(substitute(e, renamed) for e in places)]

        return te.compute(dims, read, "layout_transform")
    fill = const(0 if pad_value is None else pad_value, x.dtype)

    def body(out: te.TensorValue) -> Stmt:
        padded = filled(out, dims, lambda *_: fill, "p")

        def move(*i: Any) -> Stmt:
            return store(out, x[i], *(cast("int64", e) for e in index_map.map_indices(i)))

        return do(padded, nest(x.shape, move, [f"i{d}" for d in range(x.ndim)]))

    return te.extern([(dims, x.dtype)], [x], body, "layout_transform")[0]


def _ref(x: Any, index_map: IndexMap, pad_value: Number, **_: Any) -> Any:
    shape = tuple(evaluate(d, {}) for d in mapped_dims(index_map, [int64(s) for s in x.shape]))
    out = np.full(shape, 0 if pad_value is None else pad_value, x.dtype)
    for i in np.ndindex(x.shape):
        out[tuple(evaluate(e, {}) for e in index_map.map_indices([int64(n) for n in i]))] = x[i]
    return out


def _prepare(x: Any, index_map: Any, pad_value: Any = None, **separators: Any) -> tuple[Any, Any]:
    ty = getattr(x, "ty", None)
    if callable(index_map) and isinstance(ty, TensorType) and ty.ndim != -1:
        index_map = IndexMap.from_func(index_map, ty.ndim)  # a function of *indices
    if isinstance(pad_value, int) and isinstance(ty, TensorType) and ty.dtype is not None and dtypes.is_float(ty.dtype):
        pad_value = float(pad_value)
    return (x,), {"index_map": index_map, "pad_value": pad_value, **separators}


def _samples() -> list[Sample]:
    def blocked(i: Any, j: Any) -> Any:
        return i // 2, j, i % 2

    return [
        sample((4, 3), index_map=blocked),
        sample((5, 3), index_map=blocked, pad_value=7.0),
        sample((5, 3), index_map=blocked),
        sample((1, 3), index_map=blocked),
        sample((2, 3, 4), index_map=lambda i, j, k: (k, i, j)),
        sample((2, 3), index_map=lambda i, j: i * 3 + j),
        sample((1, 8, 2), index_map=lambda n, c, w: (n, c // 4, w, c % 4)),
    ]


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_lower,
    ref=_ref,
    samples=_samples,
    prepare=_prepare,
    relax_text=RelaxText(floats=("pad_value",), hidden=("axis_separators", "input_axis_separators")),
    kernel="te_layout_transform",
)
def layout_transform(
    x: TensorType,
    index_map: Mapping,
    pad_value: Number = None,
    axis_separators: Axes = None,
    input_axis_separators: Axes = None,
) -> Type:
    """The tensor in the layout of a map of indices: ``result[index_map(i, j)] = x[i, j]``, with ``index_map`` a
    function or ``T.index_map(lambda i, j: (i // 4, j, i % 4))``. Places that no element maps to hold
    ``pad_value`` (0 without one). Separators of axes say how memory of several dimensions is laid out; this memory has
    one, so they are kept as they are given and change nothing."""
    if x.ndim != -1:
        _check(index_map, x.ndim)
    if pad_value is not None and x.dtype is not None and not dtypes.is_float(x.dtype):
        if not math.isfinite(pad_value) or pad_value != int(pad_value):
            fail(f"{_NAME}: the padding is no integer", x.dtype, str(pad_value))
        if not dtypes.fits(int(pad_value), x.dtype):
            fail(f"{_NAME}: the padding does not fit the dtype", x.dtype, str(pad_value))
    dims = tensor_dims(x)
    if dims is None:
        return TensorType(None, x.dtype, len(index_map.final_indices))
    return tensor(mapped_dims(index_map, dims), x.dtype)
