"""The steps that random programs are made of (see compositions.py; those that sum are in composition_sums.py): each
emits calls on values that fit, with their values by numpy. A step returns the new values, or None where nothing fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from composition_program import FLOATS, Program, Size, Value, is_float, is_int, number, same

from supple.base import dtypes
from supple.ir.expr import Expr, as_expr

Made = Value | list[Value] | None
ANY = ["bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"]


def numeric(x: Value) -> bool:
    return x.dtype != "bool"


def has_axes(x: Value) -> bool:
    return x.ndim > 0


def ordered(x: Value) -> bool:
    """Order and equality mean something."""
    return x.exact and x.ndim > 0


# ---------------------------------------------------------------------------------------------------------- elementwise

EXACT: dict[str, tuple[Callable[[Any], Any], str]] = {
    "negative": (np.negative, "fi"), "abs": (np.abs, "fi"), "sign": (np.sign, "fi"), "floor": (np.floor, "f"),
    "ceil": (np.ceil, "f"), "round": (np.rint, "f"), "trunc": (np.trunc, "f"), "square": (np.square, "fi"),
    "bitwise_not": (np.invert, "i"), "logical_not": (np.logical_not, "b"), "isnan": (np.isnan, "f"),
    "isinf": (np.isinf, "f"), "isfinite": (np.isfinite, "f"),
    "nn.relu": (lambda a: np.maximum(a, a.dtype.type(0)), "f"),
}  # fmt: skip
SMOOTH: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "atan": np.arctan,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)), "nn.silu": lambda a: a / (1 + np.exp(-a)),
    "asinh": np.arcsinh,
}  # fmt: skip


def kind_of(x: Value) -> str:
    return "b" if x.dtype == "bool" else "f" if is_float(x) else "i"


def unary(p: Program) -> Made:
    name = p.rng.choice(list(EXACT))
    function, kinds = EXACT[name]
    steps = ("sign", "floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite")
    x = p.pick(lambda v: kind_of(v) in kinds and (v.exact or name not in steps))
    if x is None:
        return None
    return p.emit(name, x, meaning=function, small=x.small and name != "square")


def smooth(p: Program) -> Made:
    x = p.pick(is_float)
    if x is None:
        return None
    name = p.rng.choice(list(SMOOTH))
    return p.emit(name, p.tamed(x), meaning=SMOOTH[name], exact=False, small=True)


def alike(p: Program, x: Value, fits: Callable[[Value], Any]) -> Value:
    """Another value of the same dtype: one of the pool, or a constant."""
    y = p.pick(lambda v: v.dtype == x.dtype and fits(v))
    if y is None or p.rng.random() < 0.15:
        unsigned = x.dtype.startswith("uint") or x.dtype == "bool"
        return p.const(
            np.array(p.rng.randint(0 if unsigned else -3, 1 if x.dtype == "bool" else 4)).astype(np_dtype(x))
        )
    return y


def np_dtype(x: Value) -> Any:
    return dtypes.to_numpy(x.dtype)


def spreads(x: Value) -> Callable[[Value], bool]:
    """Whether shapes broadcast for some sizes."""

    def fits(y: Value) -> bool:
        pairs = zip(reversed(x.dims), reversed(y.dims), strict=False)
        return max(x.ndim, y.ndim) <= 4 and not any(
            number(a) not in (None, 1) and number(b) not in (None, 1) and number(a) != number(b) for a, b in pairs
        )

    return fits


def surely_spreads(x: Value) -> Callable[[Value], bool]:
    def fits(y: Value) -> bool:
        return max(x.ndim, y.ndim) <= 4 and all(
            number(a) == 1 or number(b) == 1 or same(a, b)
            for a, b in zip(reversed(x.dims), reversed(y.dims), strict=False)
        )

    return fits


def partner(p: Program, x: Value) -> Value:
    return alike(p, x, spreads(x) if p.rng.random() < 0.1 else surely_spreads(x))


def _by_zero(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Integers divided by zero give 0."""

    def safe(a: Any, b: Any) -> Any:
        if a.dtype.kind == "f":
            return function(a, b)
        return np.where(b == 0, a.dtype.type(0), function(a, np.where(b == 0, a.dtype.type(1), b)))

    return safe


def _shifted(left: bool) -> Callable[[Any, Any], Any]:
    def shift(a: Any, b: Any) -> Any:
        a, b = np.broadcast_arrays(a, b)
        bits = a.dtype.itemsize * 8
        inside = (b >= 0) & (b < bits)
        at = np.where(inside, b, 0).astype(a.dtype)
        moved = np.left_shift(a, at) if left else np.right_shift(a, at)
        return np.where(inside, moved, a.dtype.type(0) if left else np.where(a < 0, -1, 0).astype(a.dtype)).astype(
            a.dtype
        )

    return shift


BINARY: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "add": (np.add, "fi"), "subtract": (np.subtract, "fi"), "multiply": (np.multiply, "fi"),
    "maximum": (np.maximum, "fi"), "minimum": (np.minimum, "fi"), "floor_divide": (_by_zero(np.floor_divide), "i"),
    "floor_mod": (_by_zero(np.mod), "i"), "bitwise_and": (np.bitwise_and, "ib"), "bitwise_or": (np.bitwise_or, "ib"),
    "bitwise_xor": (np.bitwise_xor, "ib"), "logical_and": (np.logical_and, "b"), "logical_or": (np.logical_or, "b"),
    "logical_xor": (np.logical_xor, "b"), "left_shift": (_shifted(True), "i"), "right_shift": (_shifted(False), "i"),
}  # fmt: skip


def binary(p: Program) -> Made:
    x = p.pick()
    assert x is not None
    name = p.rng.choice([n for n, (_, kinds) in BINARY.items() if kind_of(x) in kinds])
    y = partner(p, x)
    if name == "multiply":
        x, y = p.tamed(x), p.tamed(y)
    args = (y, x) if p.rng.random() < 0.5 else (x, y)
    keeps = (
        "maximum",
        "minimum",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "logical_and",
        "logical_or",
        "logical_xor",
    )
    return p.emit(name, *args, meaning=BINARY[name][0], small=name in keeps and x.small and y.small)


def ratio(p: Program) -> Made:
    x = p.pick(is_float)
    if x is None:
        return None
    y = p.emit("abs", p.tamed(partner(p, x)), meaning=np.abs)
    one = p.const(np.ones((), np_dtype(y)))
    below = p.emit("add", y, one, meaning=np.add)
    return p.emit("divide", x, below, meaning=np.divide, exact=False, small=False)


COMPARE = {
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "equal": np.equal, "not_equal": np.not_equal,
}  # fmt: skip


def compare(p: Program) -> Made:
    x = p.pick(lambda v: v.exact)
    assert x is not None
    y = alike(p, x, lambda v: v.exact and surely_spreads(x)(v))
    name = p.rng.choice(list(COMPARE))
    return p.emit(name, x, y, meaning=COMPARE[name], small=True)


def where(p: Program) -> Made:
    x = p.pick()
    assert x is not None
    y = alike(p, x, surely_spreads(x))
    found = p.pick(lambda v: v.dtype == "bool" and surely_spreads(x)(v) and surely_spreads(y)(v))
    if found is None:
        tested = p.pick(lambda v: v.exact and numeric(v) and surely_spreads(x)(v) and surely_spreads(y)(v))
        if tested is None:
            return None
        zero = p.const(np.zeros((), np_dtype(tested)))
        found = p.emit("greater", tested, zero, meaning=np.greater, small=True)
    return p.emit("where", found, x, y, meaning=np.where)


def converted(p: Program) -> Made:
    x = p.pick()
    assert x is not None
    if not x.exact:
        wanted = p.rng.choice(FLOATS)
    else:
        wanted = p.rng.choice(ANY)
    return p.emit(
        "astype", x, meaning=lambda a: dtypes.convert(a, wanted), dtype=wanted,
        small=x.small and not (wanted.startswith("uint") and not x.dtype.startswith("uint")),
    )  # fmt: skip


def clip(p: Program) -> Made:
    x = p.pick(numeric)
    if x is None:
        return None
    low, high = (0, 2) if x.dtype.startswith("uint") else (-2, 2)
    limits = [as_expr(float(v)) if is_float(x) else as_expr(v) for v in (low, high)]
    return p.emit("clip", x, *limits, meaning=lambda a: np.clip(a, a.dtype.type(low), a.dtype.type(high)), small=True)


# --------------------------------------------------------------------------------------------------------- manipulation


def permute(p: Program) -> Made:
    x = p.pick(lambda v: v.ndim > 1)
    if x is None:
        return None
    axes = p.rng.sample(range(x.ndim), x.ndim)
    return p.emit("permute_dims", x, axes=axes, meaning=lambda a: np.transpose(a, axes))


def reshape(p: Program) -> Made:
    x = p.pick()
    assert x is not None
    dims = list(x.dims)
    kind = p.rng.choice(["flat", "merge", "part", "unit", "swap", "halves"])
    if kind == "merge" and x.ndim > 1:
        d = p.rng.randrange(x.ndim - 1)
        dims[d : d + 2] = [dims[d] * dims[d + 1]]
    elif kind == "part" and x.ndim:
        d = p.rng.randrange(x.ndim)
        extent = number(dims[d])
        if extent in (4, 6):
            dims[d : d + 1] = [as_expr(2), as_expr(extent // 2)]
        elif extent is None:
            dims[d : d + 1] = [as_expr(1), dims[d]]
    elif kind == "unit":
        dims.insert(p.rng.randint(0, x.ndim), as_expr(1))
    elif kind == "swap" and x.ndim > 1:
        dims = dims[1:] + dims[:1]
    elif kind == "halves":  # of an even dimension
        even = [d for d in range(x.ndim) if number(dims[d]) is None and same(dims[d], (dims[d] // 2) * 2)]
        if not even:
            return None
        d = p.rng.choice(even)
        dims[d : d + 1] = p.rng.choice([[as_expr(2), dims[d] // 2], [dims[d] // 2, as_expr(2)]])
    else:
        size: Expr = as_expr(1)
        for d in x.dims:
            size = size * d
        return p.emit("reshape", x, (-1,), meaning=lambda a: a.reshape(-1))
    if len(dims) > 4:
        return None
    return p.emit("reshape", x, tuple(Size(d) for d in dims), meaning=lambda a, *s: a.reshape(s))


def expand(p: Program) -> Made:
    x = p.pick(lambda v: v.ndim < 4)
    if x is None:
        return None
    axis = p.rng.randint(-x.ndim - 1, x.ndim)
    return p.emit("expand_dims", x, axis=[axis], meaning=lambda a: np.expand_dims(a, axis))


def squeeze(p: Program) -> Made:
    x = p.pick(lambda v: any(number(d) == 1 for d in v.dims))
    if x is None:
        return None
    axis = p.rng.choice([d for d in range(x.ndim) if number(x.dims[d]) == 1])
    return p.emit("squeeze", x, axis=[axis], meaning=lambda a: np.squeeze(a, axis))


def broadcast(p: Program) -> Made:
    x = p.pick(lambda v: v.ndim < 4)
    if x is None:
        return None
    dims = [p.rng.choice([*p.symbols, as_expr(2)]) if number(d) == 1 else d for d in x.dims]
    if p.rng.random() < 0.5 and len(dims) < 4:
        dims.insert(0, p.rng.choice([*p.symbols, as_expr(3)]))
    return p.emit("broadcast_to", x, tuple(Size(d) for d in dims), meaning=lambda a, *s: np.broadcast_to(a, s).copy())


def concat(p: Program) -> Made:
    x = p.pick(has_axes)
    if x is None:
        return None
    axis = p.rng.randrange(x.ndim)

    def joins(v: Value) -> bool:
        return (
            v.dtype == x.dtype
            and v.ndim == x.ndim
            and all(d == axis or same(a, b) for d, (a, b) in enumerate(zip(v.dims, x.dims, strict=True)))
        )

    parts = [x, *(p.pick(joins) for _ in range(p.rng.randint(1, 2)))]
    p.rng.shuffle(parts)
    signed = axis - x.ndim if p.rng.random() < 0.5 else axis
    return p.emit("concat", parts, axis=signed, meaning=lambda *a: np.concatenate(a, axis))


def stack(p: Program) -> Made:
    x = p.pick(lambda v: v.ndim < 4)
    if x is None:
        return None

    def fits(v: Value) -> bool:
        return v.dtype == x.dtype and v.ndim == x.ndim and all(map(same, v.dims, x.dims))

    parts = [x, *(p.pick(fits) for _ in range(p.rng.randint(0, 2)))]
    axis = p.rng.randint(-x.ndim - 1, x.ndim)
    return p.emit("stack", parts, axis=axis, meaning=lambda *a: np.stack(a, axis))


def split(p: Program) -> Made:
    x = p.pick(has_axes)
    if x is None:
        return None
    axis = p.axis(x)
    extent = number(x.dims[axis])
    if extent is not None and p.rng.random() < 0.5:
        sections: Any = p.rng.choice([s for s in range(1, 5) if extent % s == 0])
    elif p.rng.random() < 0.3:
        sections = p.rng.randint(2, 3)  # equal pieces, and the last has what is left

        def parts(a: Any) -> Any:
            size = -(-a.shape[axis] // sections)
            if size * (sections - 1) > a.shape[axis]:
                raise ValueError("nothing is left for the last of the pieces")
            return np.split(a, [size * k for k in range(1, sections)], axis)

        return p.emit("split", x, sections, axis=axis, meaning=parts)
    else:
        sections = sorted(p.rng.randint(0, 5) for _ in range(p.rng.randint(1, 2)))
    if sections == 1:  # one piece alone is a tensor
        return p.emit("split", x, sections, axis=axis, meaning=lambda a: a)
    return p.emit("split", x, sections, axis=axis, meaning=lambda a: np.split(a, sections, axis))


def slices(p: Program) -> Made:
    x = p.pick(has_axes)
    if x is None:
        return None
    axis = p.axis(x)
    extent = x.dims[axis]
    step = p.rng.choice([1, 1, 2, 3, -1, -2])
    some = [as_expr(p.rng.randint(-9, 9)), extent, extent - 1, extent // 2, as_expr(0), as_expr(2**62), p.symbols[0]]
    begin, end = p.rng.choice(some), p.rng.choice(some)
    return p.emit(
        "strided_slice", x, [axis], [Size(begin)], [Size(end)], [step],
        meaning=lambda a, b, e: np.moveaxis(np.moveaxis(a, axis, 0)[b:e:step], 0, axis),
    )  # fmt: skip


def flip(p: Program) -> Made:
    x = p.pick(has_axes)
    if x is None:
        return None
    axis = p.axis(x)
    return p.emit("flip", x, axis=axis, meaning=lambda a: np.flip(a, axis))


def repeat(p: Program) -> Made:
    x = p.pick(has_axes)
    if x is None:
        return None
    times, axis = p.rng.randint(1, 3), p.axis(x) if p.rng.random() < 0.8 else None
    return p.emit("repeat", x, repeats=times, axis=axis, meaning=lambda a: np.repeat(a, times, axis))


def tile(p: Program) -> Made:
    x = p.pick(has_axes)
    if x is None:
        return None
    times = [p.rng.randint(1, 2) for _ in range(p.rng.randint(1, min(x.ndim + 1, 4)))]
    return p.emit("tile", x, repeats=times, meaning=lambda a: np.tile(a, times))


def pad(p: Program) -> Made:
    x = p.pick(lambda v: v.ndim and numeric(v))
    if x is None:
        return None
    width = [p.rng.randint(0, 2) for _ in range(2 * x.ndim)]
    pairs = list(zip(width[::2], width[1::2], strict=True))
    return p.emit(
        "nn.pad", x, pad_width=width, pad_value=2.0, meaning=lambda a: np.pad(a, pairs, constant_values=a.dtype.type(2))
    )


def triangle(p: Program) -> Made:
    x = p.pick(lambda v: v.ndim > 1)
    if x is None:
        return None
    k, name = p.rng.randint(-3, 3), p.rng.choice(["tril", "triu"])
    return p.emit(name, x, as_expr(k), meaning=lambda a: getattr(np, name)(a, k))


def grid(p: Program) -> Made:
    x = p.pick(lambda v: v.ndim == 1)
    if x is None:
        return None
    y = p.pick(lambda v: v.ndim == 1 and v.dtype == x.dtype)
    indexing = p.rng.choice(["ij", "xy"])
    return p.emit("meshgrid", [x, y], indexing=indexing, meaning=lambda a, b: np.meshgrid(a, b, indexing=indexing))


def collapse(p: Program) -> Made:
    x = p.pick(lambda v: v.ndim and is_float(v))
    if x is None:
        return None
    dims = [as_expr(1) if p.rng.random() < 0.4 else d for d in x.dims][p.rng.randint(0, x.ndim - 1) :]
    lost = x.ndim - len(dims)
    axes = [d for d in range(x.ndim) if d < lost or (number(dims[d - lost]) == 1 and number(x.dims[d]) != 1)]
    return p.emit(
        "collapse_sum_to", p.tamed(x), tuple(Size(d) for d in dims),
        meaning=lambda a, *s: np.sum(a, axis=tuple(axes), keepdims=True, dtype=a.dtype).reshape(s), small=False,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- indexing


def indices(p: Program, shape: tuple[int, ...], low: int, high: int) -> Value:
    return p.const(p.data.integers(low, high, shape).astype(p.rng.choice(["int32", "int64"])))


def take(p: Program) -> Made:
    x = p.pick(has_axes)
    if x is None:
        return None
    axis = p.axis(x)
    mode = p.rng.choice(["clip", "wrap", "wrap", "fast"])
    i = p.pick(lambda v: v.exact and v.dtype in ("int32", "int64") and v.ndim <= 2)
    if i is None or p.rng.random() < 0.4:
        i = indices(p, p.rng.choice([(), (3,), (2, 2), (0,)]), -2, 3)
    if x.ndim + i.ndim > 5:
        return None

    def meaning(a: Any, at: Any) -> Any:
        extent = a.shape[axis]
        at = at.astype("int64")
        result = list(a.shape)
        result[axis % a.ndim : axis % a.ndim + 1] = at.shape
        if math.prod(result) == 0:
            return np.zeros(result, a.dtype)
        if extent == 0:
            raise IndexError("nothing to take from")
        if mode == "fast":
            return np.take(a, at, axis)
        return np.take(a, np.clip(at, 0, extent - 1) if mode == "clip" else np.mod(at, extent), axis)

    return p.emit("take", x, i, axis=axis, mode=mode, meaning=meaning)


def gather(p: Program) -> Made:
    x = p.pick(ordered)
    if x is None:
        return None
    axis = p.axis(x)
    order = p.emit(
        "argsort", x, axis=axis, dtype="int64", meaning=lambda a: np.argsort(a, axis, kind="stable"), small=False
    )
    y = p.pick(lambda v: v.ndim == x.ndim and all(map(same, v.dims, x.dims)))
    assert y is not None
    return p.emit("gather_elements", y, order, axis=axis, meaning=lambda a, i: np.take_along_axis(a, i, axis))


def scatter(p: Program) -> Made:
    x = p.pick(lambda v: ordered(v) and numeric(v))
    if x is None:
        return None
    axis = p.axis(x)
    order = p.emit(
        "argsort", x, axis=axis, dtype="int64", meaning=lambda a: np.argsort(a, axis, kind="stable"), small=False
    )
    reduction = p.rng.choice(["update", "add", "mul", "max", "min"])
    combine = {"update": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[
        reduction
    ]
    u = p.pick(lambda v: v.dtype == x.dtype and v.ndim == x.ndim and all(map(same, v.dims, x.dims)))
    assert u is not None
    data = p.tamed(x) if reduction == "mul" else x
    updates = p.tamed(u) if reduction == "mul" else u

    def meaning(a: Any, i: Any, b: Any) -> Any:
        out = a.copy()
        np.put_along_axis(out, i, combine(np.take_along_axis(a, i, axis), b), axis)
        return out

    return p.emit(
        "scatter_elements", data, order, updates, axis=axis, reduction=reduction, meaning=meaning,
        small=x.small and u.small and reduction not in ("add", "mul"),
    )  # fmt: skip


def gather_many(p: Program) -> Made:
    x = p.pick(has_axes)
    if x is None:
        return None
    depth = p.rng.randint(1, x.ndim)
    i = p.const(p.data.integers(-1, 1, (*p.rng.choice([(), (3,), (2, 2)]), depth)).astype("int64"))

    def meaning(a: Any, at: Any) -> Any:
        result = (*at.shape[:-1], *a.shape[depth:])
        return a[tuple(np.moveaxis(at, -1, 0))] if math.prod(result) else np.zeros(result, a.dtype)  # nothing is read

    return p.emit("gather_nd", x, i, meaning=meaning)


def index_put(p: Program) -> Made:
    x = p.pick(lambda v: v.ndim and numeric(v))
    if x is None:
        return None
    i = p.const(p.data.integers(-1, 1, (3,)).astype("int64"))
    rest = x.dims[1:]
    u = p.pick(lambda v: v.dtype == x.dtype and v.ndim == x.ndim and all(map(same, v.dims, (as_expr(3), *rest))))
    if u is None:
        values = p.data.integers(0, 4, (3, *(1 for _ in rest))).astype(np_dtype(x))
        u = p.const(values)
        if rest:
            u = p.emit("broadcast_to", u, tuple(Size(d) for d in (as_expr(3), *rest)), meaning=_spread)

    def meaning(a: Any, at: Any, b: Any) -> Any:
        out = a.copy()
        if b.size:  # else nothing is written
            np.add.at(out, at, b)
        return out

    return p.emit("index_put", p.tamed(x), (i,), p.tamed(u), accumulate=True, meaning=meaning, small=False)


def _spread(a: Any, *s: int) -> Any:
    return np.broadcast_to(a, s).copy()


def slice_scatter(p: Program) -> Made:
    x = p.pick(has_axes)
    if x is None:
        return None
    axis = p.axis(x)
    extent = x.dims[axis]
    begin, step = p.rng.randint(0, 2), p.rng.choice([1, 2])
    where_to = [axis % x.ndim]
    part = p.emit(
        "strided_slice", x, where_to, [begin], [Size(extent)], [step],
        meaning=lambda a, e: np.moveaxis(np.moveaxis(a, axis, 0)[begin:e:step], 0, axis),
    )  # fmt: skip
    turned = p.emit("flip", part, axis=axis, meaning=lambda a: np.flip(a, axis))

    def meaning(a: Any, b: Any, e: int) -> Any:
        out = a.copy()
        np.moveaxis(out, axis, 0)[begin:e:step] = np.moveaxis(b, axis, 0)
        return out

    return p.emit("slice_scatter", x, turned, as_expr(begin), Size(extent), as_expr(step), axis=axis, meaning=meaning)


def reverse(p: Program) -> Made:
    x = p.pick(lambda v: v.ndim > 1)
    if x is None:
        return None
    batch, along = p.rng.sample(range(x.ndim), 2)
    lengths = p.pick(lambda v: v.exact and is_int(v) and v.ndim == 1 and same(v.dims[0], x.dims[batch]))
    if lengths is None:
        return None

    def meaning(a: Any, n: Any) -> Any:
        out = np.moveaxis(a, (batch, along), (0, 1)).copy()
        for row, length in enumerate(n.tolist()):
            length = min(max(length, 0), out.shape[1])
            out[row, :length] = out[row, :length][::-1].copy()
        return np.moveaxis(out, (0, 1), (batch, along))

    return p.emit("reverse_sequence", x, lengths, seq_axis=along, batch_axis=batch, meaning=meaning)


def one_hot(p: Program) -> Made:
    x = p.pick(lambda v: v.exact and v.dtype in ("int32", "int64") and v.ndim < 4)
    if x is None:
        return None
    depth, axis = p.rng.randint(1, 4), p.rng.randint(-1, x.ndim)
    on, off = as_expr(2.0, "float32"), as_expr(-1.0, "float32")

    def meaning(a: Any) -> Any:
        hot = np.arange(depth).reshape(-1, *[1] * 0)
        found = np.where(a[..., None] == hot, np.float32(2), np.float32(-1))
        return np.moveaxis(found, -1, axis)

    return p.emit("one_hot", x, on, off, depth=depth, axis=axis, meaning=meaning, small=True)


FAMILIES: dict[Callable[[Program], Any], int] = {
    unary: 3, smooth: 2, binary: 6, ratio: 1, compare: 2, where: 3, converted: 4, clip: 1,
    permute: 4, reshape: 5, expand: 2, squeeze: 2, broadcast: 2, concat: 4, stack: 2, split: 3, slices: 4, flip: 1,
    repeat: 2, tile: 2, pad: 2, triangle: 1, grid: 1, collapse: 1,
    take: 4, gather: 2, scatter: 2, gather_many: 2, index_put: 2, slice_scatter: 1, reverse: 4, one_hot: 2,
}  # fmt: skip
"""Steps that compute, move and choose elements, and how often each is tried."""
