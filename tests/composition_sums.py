"""The steps of random programs that sum, scan, sort, multiply or make tensors (see composition_families.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from composition_families import Made, np_dtype, numeric, ordered
from composition_program import Program, Size, Value, is_float, number, same, wide

from supple.base import dtypes
from supple.ir.expr import Expr, as_expr

# ------------------------------------------------------------------------------------------ reductions, scans and sorts


def _limit(a: Any, low: bool) -> Any:
    if a.dtype.kind == "f":
        return -np.inf if low else np.inf
    return (np.iinfo(a.dtype).min if low else np.iinfo(a.dtype).max) if a.dtype.kind in "iu" else not low


REDUCE: dict[str, Callable[..., Any]] = {
    "sum": lambda a, **k: np.sum(a, dtype=a.dtype, **k),
    "prod": lambda a, **k: np.prod(a, dtype=a.dtype, **k),
    "max": lambda a, **k: np.max(a, initial=_limit(a, True), **k),
    "min": lambda a, **k: np.min(a, initial=_limit(a, False), **k),
    "mean": lambda a, **k: np.mean(a, dtype=a.dtype, **k),
    "std": lambda a, **k: np.std(a, dtype=a.dtype, **k),
    "variance": lambda a, **k: np.var(a, dtype=a.dtype, **k),
}


def reduce(p: Program) -> Made:
    x = p.pick(lambda v: v.ndim and numeric(v))
    if x is None:
        return None
    names = ["sum", "max", "min"]
    if is_float(x):
        names += ["mean"] + (["std", "variance"] if x.exact else [])
    else:
        names += ["prod"]
    name = p.rng.choice(names)
    axes = p.rng.sample(range(x.ndim), p.rng.randint(1, x.ndim))
    axis = None if p.rng.random() < 0.2 else [a - x.ndim if p.rng.random() < 0.5 else a for a in axes]
    keep = p.rng.random() < 0.5
    data = x if name in ("max", "min") else p.tamed(x)
    key = None if axis is None else tuple(axis)
    return p.emit(
        name, data, axis=axis, keepdims=keep, exact=name in ("sum", "max", "min", "prod"),
        small=x.small and name in ("max", "min") and False,
        meaning=lambda a: REDUCE[name](a, axis=key, keepdims=keep),
    )  # fmt: skip


def arg_extreme(p: Program) -> Made:
    x = p.pick(lambda v: ordered(v) and numeric(v))
    if x is None:
        return None
    name, keep = p.rng.choice(["argmax", "argmin"]), p.rng.random() < 0.5
    axis = p.axis(x) if p.rng.random() < 0.8 else None

    def meaning(a: Any) -> Any:
        if (a.size if axis is None else a.shape[axis]) == 0:
            return np.full(np.sum(a, axis=axis, keepdims=keep).shape, -1, "int64")
        return np.asarray(getattr(np, name)(a, axis=axis, keepdims=keep))

    return p.emit(name, x, axis=axis, keepdims=keep, meaning=meaning, small=False)


def scan(p: Program) -> Made:
    x = p.pick(lambda v: v.ndim and numeric(v))
    if x is None:
        return None
    axis = p.axis(x) if p.rng.random() < 0.85 else None
    before = p.rng.random() < 0.3

    def meaning(a: Any) -> Any:
        total = np.cumsum(a, axis, dtype=a.dtype)
        if not before:
            return total
        along = 0 if axis is None else axis
        shifted = np.roll(total, 1, along)
        if shifted.size:
            np.moveaxis(shifted, along, 0)[0] = 0
        return shifted

    return p.emit("cumsum", p.tamed(x), axis=axis, exclusive=before, meaning=meaning, small=False)


def _order(a: Any, axis: int, down: bool) -> Any:
    if not down:
        return np.argsort(a, axis, kind="stable")
    back = np.argsort(np.flip(a, axis), axis, kind="stable")  # equal elements keep their order
    return a.shape[axis] - 1 - np.flip(back, axis)


def sort(p: Program) -> Made:
    x = p.pick(ordered)
    if x is None:
        return None
    axis, down = p.axis(x), p.rng.random() < 0.5
    kind = p.rng.choice(["sort", "argsort", "topk", "median"])
    if kind == "sort":
        meaning = lambda a: np.take_along_axis(a, _order(a, axis, down), axis)  # noqa: E731
        return p.emit("sort", x, axis=axis, descending=down, meaning=meaning)
    if kind == "argsort":
        return p.emit("argsort", x, axis=axis, descending=down, meaning=lambda a: _order(a, axis, down), small=False)
    if kind == "median" or x.dtype == "bool":
        return None
    k = p.rng.randint(0, 3)

    def top(a: Any) -> Any:
        count = a.shape[axis] if k == 0 else k
        if count > a.shape[axis]:
            raise ValueError("k is larger than the axis")
        order = np.take(_order(a, axis, down), range(count), axis)
        return [np.take_along_axis(a, order, axis), order]

    return p.emit("topk", x, k=k, axis=axis, largest=down, meaning=top, small=False)


def bucketize(p: Program) -> Made:
    x = p.pick(lambda v: ordered(v) and v.dtype not in ("bool", "uint8", "uint64"))
    if x is None:
        return None
    edges = p.const(np.array([-2, 0, 1, 3]).astype(np_dtype(x)))
    right = p.rng.random() < 0.5
    side = "right" if right else "left"
    return p.emit("bucketize", x, edges, right=right, meaning=lambda a, b: np.searchsorted(b, a, side), small=False)


# ---------------------------------------------------------------------------------------- products, windows and softmax


def matmul(p: Program) -> Made:
    x = p.pick(lambda v: v.ndim and numeric(v))
    if x is None:
        return None

    def fits(v: Value) -> bool:
        if v.dtype != x.dtype or not v.ndim or not same(x.dims[-1], v.dims[0] if v.ndim == 1 else v.dims[-2]):
            return False
        lead = zip(reversed(x.dims[:-2]), reversed(v.dims[:-2]), strict=False)
        return all(number(a) == 1 or number(b) == 1 or same(a, b) for a, b in lead)

    y = p.pick(fits)
    if y is None:
        width = number(x.dims[-1])
        if width is None:
            square = p.emit("permute_dims", x, axes=[*range(x.ndim - 2), x.ndim - 1, x.ndim - 2][-x.ndim :],
                            meaning=lambda a: np.swapaxes(a, -1, -2)) if x.ndim > 1 else x  # fmt: skip
            y = square
        else:
            y = p.const(p.data.integers(0, 3, (width, p.rng.choice([1, 3, 5, 16]))).astype(np_dtype(x)))
    return p.emit("matmul", p.tamed(x), p.tamed(y), meaning=np.matmul, small=False)


def einsum(p: Program) -> Made:
    x = p.pick(lambda v: is_float(v) and 0 < v.ndim < 4)
    if x is None or p.special:  # what one operand alone has is summed first
        return None
    y = p.pick(lambda v: v.dtype == x.dtype and 0 < v.ndim < 4)
    assert y is not None
    letters: list[str] = []
    names: list[tuple[Expr, str]] = []
    for v in (x, y):
        text = ""
        for d in v.dims:
            known = [c for e, c in names if same(e, d) and c not in text]
            letter = known[0] if known and p.rng.random() < 0.8 else "abcdefgh"[len(names)]
            if letter not in [c for _, c in names]:
                names.append((d, letter))
            text += letter
        letters.append(text)
    every = sorted(set("".join(letters)))
    kept = "".join(p.rng.sample(every, p.rng.randint(0, min(len(every), 3))))
    text = f"{','.join(letters)}->{kept}"
    return p.emit(
        "einsum", [p.tamed(x), p.tamed(y)], subscripts=text, meaning=lambda a, b: np.einsum(text, a, b), small=False
    )


def outer(p: Program) -> Made:
    x = p.pick(lambda v: v.ndim == 1 and numeric(v))
    if x is None:
        return None
    y = p.pick(lambda v: v.ndim == 1 and v.dtype == x.dtype)
    assert y is not None
    return p.emit("outer", p.tamed(x), p.tamed(y), meaning=np.outer, small=False)


def _windows(a: Any, kernel: tuple[int, ...], stride: int, dilation: int) -> Any:
    """Windows over all but the first two dimensions: shape (N, C, places..., kernel...)."""
    reach = tuple((k - 1) * dilation + 1 for k in kernel)
    if any(s < r for s, r in zip(a.shape[2:], reach, strict=True)):
        if any(s + stride < r for s, r in zip(a.shape[2:], reach, strict=True)):
            raise ValueError("the window is larger than the data")
        sizes = [(s - r) // stride + 1 for s, r in zip(a.shape[2:], reach, strict=True)]
        return np.zeros((*a.shape[:2], *sizes, *kernel), a.dtype)
    view = np.lib.stride_tricks.sliding_window_view(a, reach, axis=tuple(range(2, a.ndim)))
    n = len(kernel)
    key = (slice(None), slice(None), *[slice(None, None, stride)] * n, *[slice(None, None, dilation)] * n)
    return view[key]


def conv(p: Program) -> Made:
    x = p.pick(lambda v: v.exact and is_float(v) and v.ndim in (3, 4) and number(v.dims[1]) is not None)
    if x is None or p.special:
        return None
    channels = number(x.dims[1])
    assert channels is not None
    spatial = x.ndim - 2
    groups = p.rng.choice([g for g in (1, 2, 3) if channels % g == 0])
    kernel = tuple(p.rng.randint(1, 3) for _ in range(spatial))
    stride, padding, dilation = p.rng.randint(1, 2), p.rng.randint(0, 2), p.rng.randint(1, 2)
    wide_out = groups * p.rng.randint(1, 3)
    w = p.const(p.data.integers(-2, 3, (wide_out, channels // groups, *kernel)).astype(np_dtype(x)))

    def meaning(a: Any, b: Any) -> Any:
        a = np.pad(a, [(0, 0), (0, 0), *[(padding, padding)] * spatial])
        found = []
        for g in range(groups):
            own = slice(g * channels // groups, (g + 1) * channels // groups)
            outs = slice(g * wide_out // groups, (g + 1) * wide_out // groups)
            view = _windows(a[:, own], kernel, stride, dilation)
            axes = [1, *range(2 + spatial, 2 + 2 * spatial)]
            dots = np.tensordot(view, b[outs], (axes, [1, *range(2, 2 + spatial)]))
            found.append(np.moveaxis(dots, -1, 1))
        return np.concatenate(found, 1)

    return p.emit(
        f"nn.conv{spatial}d", p.tamed(x), w, strides=[stride], padding=[padding], dilation=[dilation], groups=groups,
        meaning=meaning, small=False,
    )  # fmt: skip


def pool(p: Program) -> Made:
    x = p.pick(lambda v: is_float(v) and v.ndim in (3, 4))
    if x is None:
        return None
    spatial = x.ndim - 2
    size, stride = p.rng.randint(1, 3), p.rng.randint(1, 2)
    padding = p.rng.randint(0, size // 2)
    average = p.rng.random() < 0.5

    def meaning(a: Any) -> Any:
        wide_a = np.pad(
            a,
            [(0, 0), (0, 0), *[(padding, padding)] * spatial],
            constant_values=a.dtype.type(0 if average else -np.inf),
        )
        view = _windows(wide_a, (size,) * spatial, stride, 1)
        axes = tuple(range(2 + spatial, 2 + 2 * spatial))
        return view.mean(axes, dtype=a.dtype) if average else view.max(axes)

    more = {"count_include_pad": True} if average else {}
    return p.emit(
        f"nn.{'avg' if average else 'max'}_pool{spatial}d", p.tamed(x) if average else x, pool_size=[size],
        strides=[stride], padding=[padding], exact=not average, small=False, meaning=meaning, **more,
    )  # fmt: skip


def softmax(p: Program) -> Made:
    x = p.pick(lambda v: is_float(v) and v.ndim)
    if x is None:
        return None
    axis, log = p.axis(x), p.rng.random() < 0.3

    def meaning(a: Any) -> Any:
        shifted = a - np.max(a, axis, keepdims=True, initial=-np.inf)
        total = np.exp(shifted).sum(axis, keepdims=True)
        return shifted - np.log(total) if log else np.exp(shifted) / total

    return p.emit(
        "nn.log_softmax" if log else "nn.softmax", p.tamed(x), axis=axis, meaning=meaning, exact=False, small=False
    )


def norm(p: Program) -> Made:
    x = p.pick(lambda v: is_float(v) and v.ndim and v.exact)
    if x is None:
        return None
    weight = p.pick(lambda v: v.dtype == x.dtype and v.ndim == 1 and same(v.dims[0], x.dims[-1]) and v.small)
    if weight is None:
        return None
    if p.rng.random() < 0.5:
        meaning = lambda a, w: a / np.sqrt(np.square(a).mean(-1, keepdims=True) + a.dtype.type(0.25)) * w  # noqa: E731
        return p.emit(
            "nn.rms_norm", p.tamed(x), weight, axes=[-1], epsilon=0.25, meaning=meaning, exact=False, small=False
        )

    def layer(a: Any, w: Any, b: Any) -> Any:
        shifted = a - a.mean(-1, keepdims=True)
        return shifted / np.sqrt(np.square(shifted).mean(-1, keepdims=True) + a.dtype.type(0.25)) * w + b

    return p.emit(
        "nn.layer_norm", p.tamed(x), weight, weight, axes=[-1], epsilon=0.25, meaning=layer, exact=False, small=False
    )


# -------------------------------------------------------------------------------------- made from sizes and dynamic


def created(p: Program) -> Made:
    n, m = p.symbols
    dtype = p.rng.choice(["float32", "float32", "int32", "int64", "float16", "bool"])
    np_type = dtypes.to_numpy(dtype)
    kind = p.rng.choice(["zeros", "ones", "full", "like", "arange"])
    dims = p.rng.choice([(n,), (n, m), (m, as_expr(2)), (n + m,), (n * 2, as_expr(3))])
    if kind == "arange":
        return None if dtype in ("bool", "float16") else _arange(p, n, dtype)
    if kind == "like":
        x = p.pick()
        assert x is not None
        return p.emit("ones_like", x, meaning=np.ones_like)
    if kind == "full":
        value = p.const(np.array(1, np_type))
        return p.emit("full", tuple(Size(d) for d in dims), value, dtype=dtype, meaning=lambda *a: _full(a), small=True)
    made = np.zeros if kind == "zeros" else np.ones
    return p.emit(
        kind,
        tuple(Size(d) for d in dims),
        dtype=dtype,
        meaning=lambda *s: made(s, wide(np.zeros(0, np_type)).dtype),
        small=True,
    )


def _full(a: tuple[Any, ...]) -> Any:
    return np.full(a[:-1], a[-1])


def _arange(p: Program, n: Expr, dtype: str) -> Made:
    step = p.rng.choice([1, 2])
    return p.emit(
        "arange", as_expr(1), Size(n + 2), as_expr(step), dtype=dtype,
        meaning=lambda stop: np.arange(1, stop, step).astype(dtype),
        small=False,
    )  # fmt: skip


def nonzero(p: Program) -> Made:
    x = p.pick(ordered)
    if x is None:
        return None
    return p.emit_dynamic("nonzero", x, meaning=lambda a: np.stack(np.nonzero(a)), dims=(as_expr(x.ndim), None))


def unique(p: Program) -> Made:
    x = p.pick(lambda v: ordered(v) and v.dtype != "bool" and not p.special)
    return None if x is None else p.emit_dynamic("unique", x, meaning=np.unique, dims=(None,))


FAMILIES: dict[Callable[[Program], Any], int] = {
    reduce: 6, arg_extreme: 2, scan: 3, sort: 4, bucketize: 1,
    matmul: 4, einsum: 3, outer: 1, conv: 9, pool: 3, softmax: 2, norm: 2, created: 2, nonzero: 1, unique: 1,
}  # fmt: skip
"""Steps that sum, order, multiply and make elements, and how often each is tried."""
