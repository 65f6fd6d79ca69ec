"""Random shapes and attributes for each family of operators: deduced type, loops interpreted, native code and the
operator's reference agree with numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from kernel_tools import Kernel
from test_ops_registry import flat, interpreted, lowered, tolerance, variables

from supple.base import dtypes
from supple.build.infer import infer
from supple.ir.op import Op
from supple.ir.types import TensorType, TupleType
from supple.ops.declare import ShapeOf, random_array
from supple.sym.relate import tensor_dims
from supple.sym.simplify import evaluate

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

EXTENT = st.sampled_from([0, 1, 1, 2, 3, 4, 5, 7])
SOME = st.sampled_from([1, 2, 3, 5, 7])
SEED = st.integers(0, 1000)


def few(examples: int) -> Any:
    return settings(
        max_examples=examples, deadline=None, derandomize=True, database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )  # fmt: skip


def check(name: str, args: list[Any], attrs: dict[str, Any], expected: Any, *, symbolic: bool = False) -> None:
    """One call: ``args`` holds arrays, lists of arrays, `ShapeOf` and numbers; ``expected`` the results by numpy."""
    op = Op.get(f"relax.{name}")
    symbols: dict[int, Any] | None = {} if symbolic else None
    given_args = variables(args, symbols)
    call = op(*given_args, **attrs)
    wanted = [np.asarray(e) for e in (expected if isinstance(expected, (list, tuple)) else [expected])]
    whole = infer(call)
    types = whole.fields if isinstance(whole, TupleType) else (whole,)
    values = {v: extent for extent, v in (symbols or {}).items()}
    for ty, value in zip(types, wanted, strict=True):
        assert isinstance(ty, TensorType) and ty.dtype == dtypes.from_numpy(value.dtype)
        dims = tensor_dims(ty)
        assert dims is not None and tuple(evaluate(d, values) for d in dims) == value.shape
    assert op.ref is not None
    plain = [list(a.values) if isinstance(a, ShapeOf) else a for a in args]
    result = op.ref(*plain, **call.attrs)
    compare(list(result) if isinstance(result, (tuple, list)) else [result], wanted)
    func = lowered(op, given_args, call.attrs, args)
    compare(interpreted(func, args), wanted)
    outputs = [np.empty_like(e, order="C") for e in wanted]
    Kernel(func)(*(np.array(a, order="C") for a in flat(args)), *outputs)
    compare(outputs, wanted)


def compare(actual: list[Any], wanted: list[Any]) -> None:
    for a, e in zip(actual, wanted, strict=True):
        assert np.shape(a) == e.shape
        tolerance(e.dtype, a, e)


def floats(shape: tuple[int, ...], seed: int) -> Any:
    return random_array(shape, "float32", seed)


def ints(shape: tuple[int, ...], seed: int, low: int = -9, high: int = 10, dtype: str = "int32") -> Any:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def shapes(low: int, high: int, extent: Any = EXTENT) -> Any:
    return st.lists(extent, min_size=low, max_size=high).map(tuple)


# ---------------------------------------------------------------------------------------------------------- elementwise

UNARY = {
    "exp": np.exp, "tanh": np.tanh, "floor": np.floor, "abs": np.abs, "negative": np.negative, "cos": np.cos,
    "square": np.square, "sign": np.sign, "nn.relu": lambda x: np.maximum(x, 0), "isnan": np.isnan,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip


@few(14)
@given(st.sampled_from(sorted(UNARY)), shapes(0, 4), st.booleans(), SEED)
def test_unary(name: str, shape: tuple[int, ...], symbolic: bool, seed: int) -> None:
    x = floats(shape, seed)
    check(name, [x], {}, UNARY[name](x), symbolic=symbolic)


def _no_zero(function: Any) -> Any:
    return lambda a, b: np.where(b == 0, 0, function(a, np.where(b == 0, 1, b))).astype(a.dtype)


BINARY = {
    "add": (np.add, "fi"), "subtract": (np.subtract, "fi"), "multiply": (np.multiply, "fi"), "divide": (np.divide, "f"),
    "maximum": (np.maximum, "fi"), "minimum": (np.minimum, "fi"), "less": (np.less, "fi"),
    "equal": (np.equal, "fi"), "floor_divide": (_no_zero(np.floor_divide), "i"),
    "floor_mod": (_no_zero(np.mod), "i"), "bitwise_and": (np.bitwise_and, "i"),
}  # fmt: skip


@few(18)
@given(st.data(), st.sampled_from(sorted(BINARY)), shapes(0, 3), SEED)
def test_binary_with_broadcasting(data: Any, name: str, shape: tuple[int, ...], seed: int) -> None:
    function, kinds = BINARY[name]
    other = tuple(data.draw(st.sampled_from([s, 1])) for s in shape)[data.draw(st.integers(0, len(shape))) :]
    first = tuple(1 if o != s else data.draw(st.sampled_from([s, 1])) for s, o in zip(shape, other, strict=False))
    first = shape if len(other) != len(shape) else first
    make = floats if data.draw(st.sampled_from(kinds)) == "f" else ints
    a, b = make(first, seed), make(other, seed + 1)
    if data.draw(st.booleans()):
        a, b = b, a
    check(name, [a, b], {}, function(a, b), symbolic=data.draw(st.booleans()))


# ----------------------------------------------------------------------------------------------------------- reductions

REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod, "std": np.std}


@few(16)
@given(st.data(), st.sampled_from(sorted(REDUCE)), shapes(1, 4, SOME), SEED)
def test_reduction(data: Any, name: str, shape: tuple[int, ...], seed: int) -> None:
    x = floats(shape, seed)
    axes = st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1, max_size=len(shape))
    axis = data.draw(st.none() | axes)
    if axis is not None:
        axis = [a - len(shape) if data.draw(st.booleans()) else a for a in axis]
    keepdims = data.draw(st.booleans())
    expected = REDUCE[name](x, axis=None if axis is None else tuple(axis), keepdims=keepdims)
    check(name, [x], {"axis": axis, "keepdims": keepdims}, np.asarray(expected), symbolic=data.draw(st.booleans()))


# --------------------------------------------------------------------------------------------------------- manipulation


@few(20)
@given(st.data(), shapes(1, 4), SEED)
def test_manipulation(data: Any, shape: tuple[int, ...], seed: int) -> None:
    x = floats(shape, seed)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    symbolic = data.draw(st.booleans())
    kind = data.draw(
        st.sampled_from(["permute", "reshape", "concat", "flip", "tile", "repeat", "expand", "pad", "slice"])
    )
    if kind == "permute":
        order = data.draw(st.permutations(range(len(shape))))
        check("permute_dims", [x], {"axes": order}, np.transpose(x, order), symbolic=symbolic)
    elif kind == "reshape":
        assume(0 not in shape)
        wanted = data.draw(st.sampled_from([(-1,), (shape[0], -1), (1, -1, shape[-1])]))
        check("reshape", [x, ShapeOf(wanted)], {}, x.reshape(wanted))
    elif kind == "concat":
        more = list(shape)
        more[axis] = data.draw(EXTENT)
        y = floats(tuple(more), seed + 1)
        check("concat", [[x, y]], {"axis": axis}, np.concatenate([x, y], axis), symbolic=symbolic)
    elif kind == "flip":
        check("flip", [x], {"axis": axis}, np.flip(x, axis), symbolic=symbolic)
    elif kind == "tile":
        times = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=len(shape)))
        check("tile", [x], {"repeats": times}, np.tile(x, times), symbolic=symbolic)
    elif kind == "repeat":
        times = data.draw(st.integers(1, 3))
        check("repeat", [x], {"repeats": times, "axis": axis}, np.repeat(x, times, axis), symbolic=symbolic)
    elif kind == "expand":
        check("expand_dims", [x], {"axis": [axis]}, np.expand_dims(x, axis), symbolic=symbolic)
    elif kind == "pad":
        width = data.draw(st.lists(st.integers(0, 2), min_size=2 * len(shape), max_size=2 * len(shape)))
        pairs = list(zip(width[::2], width[1::2], strict=True))
        attrs = {"pad_width": width, "pad_value": 1.5}
        check("nn.pad", [x], attrs, np.pad(x, pairs, constant_values=1.5), symbolic=symbolic)
    else:
        low, high = data.draw(st.integers(-9, 9)), data.draw(st.integers(-9, 9))
        step = data.draw(st.sampled_from([1, 2, 3]))
        key: list[Any] = [slice(None)] * len(shape)
        key[axis] = slice(low, high, step)
        check("strided_slice", [x, [axis], [low], [high], [step]], {}, x[tuple(key)])


# ------------------------------------------------------------------------------------------------------------- indexing


@few(18)
@given(st.data(), shapes(1, 3, SOME), SEED)
def test_indexing(data: Any, shape: tuple[int, ...], seed: int) -> None:
    x = floats(shape, seed)
    place = data.draw(st.integers(0, len(shape) - 1))
    axis = place - len(shape) if data.draw(st.booleans()) else place
    symbolic = data.draw(st.booleans())
    kind = data.draw(st.sampled_from(["take", "gather", "scatter", "index_tensor", "index_put"]))
    if kind == "take":
        i = ints(data.draw(shapes(0, 2)), seed, -shape[place], shape[place], "int64")
        check("take", [x, i], {"axis": axis}, np.take(x, i, place), symbolic=symbolic)
    elif kind == "gather":
        dims = list(shape)
        dims[place] = data.draw(EXTENT)
        i = ints(tuple(dims), seed, -shape[place], shape[place], "int64")
        check("gather_elements", [x, i], {"axis": axis}, np.take_along_axis(x, i, place), symbolic=symbolic)
    elif kind == "scatter":
        dims = list(shape)
        dims[place] = data.draw(st.integers(0, shape[place]))
        rows = np.argsort(np.random.default_rng(seed).random(shape), axis=place)  # no place twice
        i = np.take(rows, range(dims[place]), place).astype("int64")
        u = floats(tuple(dims), seed + 1)
        out = x.copy()
        np.put_along_axis(out, i, u, place)
        check("scatter_elements", [x, i, u], {"axis": axis}, out, symbolic=symbolic)
    else:
        common = data.draw(shapes(1 if kind == "index_put" else 0, 2))
        count = data.draw(st.integers(1, len(shape)))
        parts = []
        for d in range(count):
            own = tuple(data.draw(st.sampled_from([s, 1])) for s in common) if d else common
            parts.append(ints(own, seed + d, -shape[d], shape[d], "int64"))
        if kind == "index_tensor":
            check("index_tensor", [x, parts], {}, x[tuple(parts)], symbolic=symbolic)
        else:
            values = floats(x[tuple(parts)].shape, seed + 9)
            out = x.copy()
            np.add.at(out, tuple(parts), values)
            check("index_put", [x, parts, values], {"accumulate": True}, out, symbolic=symbolic)


# ------------------------------------------------------------------------------------------------------- linear algebra


@few(12)
@given(st.data(), EXTENT, EXTENT, SOME, SEED)
def test_matmul(data: Any, m: int, n: int, k: int, seed: int) -> None:
    batch = data.draw(shapes(0, 2, SOME))
    left = tuple(data.draw(st.sampled_from([s, 1])) for s in batch)
    a = floats((*left, m, k) if data.draw(st.booleans()) or left else (k,), seed)
    b = floats((*batch, k, n) if data.draw(st.booleans()) or batch else (k,), seed + 1)
    check("matmul", [a, b], {}, np.matmul(a, b), symbolic=data.draw(st.booleans()))


@few(16)
@given(st.data(), SEED)
def test_einsum(data: Any, seed: int) -> None:
    extents = {c: data.draw(SOME) for c in "ijkl"}
    terms = [data.draw(st.lists(st.sampled_from("ijkl"), max_size=3)) for _ in range(data.draw(st.integers(1, 3)))]
    dots = data.draw(st.booleans())
    lead = data.draw(shapes(0, 2, SOME)) if dots else ()
    operands = [floats((*lead, *(extents[c] for c in term)), seed + n) for n, term in enumerate(terms)]
    text = ",".join(("..." if dots else "") + "".join(term) for term in terms)
    letters = sorted({c for term in terms for c in term})
    if data.draw(st.booleans()):
        kept = data.draw(st.permutations(letters))[: data.draw(st.integers(0, len(letters)))]
        text += "->" + ("..." if dots else "") + "".join(kept)
    check("einsum", [operands], {"subscripts": text}, np.einsum(text, *operands), symbolic=data.draw(st.booleans()))


# ---------------------------------------------------------------------------------------------------- windows and norms


def _conv2d(x: Any, w: Any, stride: int, padding: int, dilation: int, groups: int) -> Any:
    x = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    reach = [(k - 1) * dilation + 1 for k in w.shape[2:]]
    size = [(s - r) // stride + 1 for s, r in zip(x.shape[2:], reach, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *size), "float32")
    per = w.shape[0] // groups
    for o in range(w.shape[0]):
        c = o // per * w.shape[1]
        for i, j in np.ndindex(*size):
            a, b = i * stride, j * stride
            window = x[:, c : c + w.shape[1], a : a + reach[0] : dilation, b : b + reach[1] : dilation]
            out[:, o, i, j] = (window * w[o]).sum((1, 2, 3))
    return out


@few(10)
@given(st.data(), SEED)
def test_conv2d(data: Any, seed: int) -> None:
    groups, stride, padding, dilation = (data.draw(st.integers(low, 2)) for low in (1, 1, 0, 1))
    inner, outer, kernel = (data.draw(st.integers(1, 3)) for _ in range(3))
    size = (kernel - 1) * dilation + 1 + data.draw(st.integers(0, 4))
    x = floats((data.draw(st.integers(0, 2)), inner * groups, size, size + 1), seed)
    w = floats((outer * groups, inner, kernel, kernel), seed + 1)
    expected = _conv2d(x, w, stride, padding, dilation, groups)
    attrs = {"strides": [stride], "padding": [padding], "dilation": [dilation], "groups": groups}
    if data.draw(st.booleans()):
        x, expected = np.moveaxis(x, 1, -1).copy(), np.moveaxis(expected, 1, -1)
        attrs["data_layout"] = "NHWC"
    check("nn.conv2d", [x, w], attrs, expected)


@few(10)
@given(st.data(), SEED)
def test_pool2d(data: Any, seed: int) -> None:
    window, stride = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    padding = data.draw(st.integers(0, window // 2))
    x = floats((1, 2, window + data.draw(st.integers(0, 4)), window + 2), seed)
    average = data.draw(st.booleans())
    wide = np.pad(x, [(0, 0)] * 2 + [(padding, padding)] * 2, constant_values=0 if average else -math.inf)
    size = [(s - window) // stride + 1 for s in wide.shape[2:]]
    expected = np.zeros((*x.shape[:2], *size), "float32")
    for i, j in np.ndindex(*size):
        part = wide[:, :, i * stride : i * stride + window, j * stride : j * stride + window]
        expected[:, :, i, j] = part.mean((2, 3)) if average else part.max((2, 3))
    attrs = {"pool_size": [window], "strides": [stride], "padding": [padding], "count_include_pad": True}
    check(f"nn.{'avg' if average else 'max'}_pool2d", [x], attrs, expected, symbolic=data.draw(st.booleans()))


@few(12)
@given(st.data(), shapes(1, 3, SOME), SEED)
def test_norms(data: Any, shape: tuple[int, ...], seed: int) -> None:
    x = floats(shape, seed)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    symbolic = data.draw(st.booleans())
    kind = data.draw(st.sampled_from(["softmax", "log_softmax", "layer_norm", "rms_norm"]))
    powers = np.exp(x - x.max(axis, keepdims=True))
    if kind == "softmax":
        check("nn.softmax", [x], {"axis": axis}, powers / powers.sum(axis, keepdims=True), symbolic=symbolic)
    elif kind == "log_softmax":
        expected = x - x.max(axis, keepdims=True) - np.log(powers.sum(axis, keepdims=True))
        check("nn.log_softmax", [x], {"axis": axis}, expected, symbolic=symbolic)
    elif kind == "rms_norm":
        w = floats(shape[-1:], seed + 1)
        expected = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + np.float32(1e-5)) * w
        check("nn.rms_norm", [x, w], {"axes": [-1]}, expected.astype("float32"), symbolic=symbolic)
    else:
        g, b = floats(shape[-1:], seed + 1), floats(shape[-1:], seed + 2)
        gap = x - x.mean(-1, keepdims=True)
        expected = gap / np.sqrt(np.square(gap).mean(-1, keepdims=True) + np.float32(1e-5)) * g + b
        check("nn.layer_norm", [x, g, b], {"axes": [-1]}, expected.astype("float32"), symbolic=symbolic)


# ------------------------------------------------------------------------------------------------------ sort and search


@few(14)
@given(st.data(), shapes(1, 3, SOME), SEED)
def test_sort_and_search(data: Any, shape: tuple[int, ...], seed: int) -> None:
    x = ints(shape, seed, -3, 4, "int32").astype(data.draw(st.sampled_from(["int32", "float32"])))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    symbolic = data.draw(st.booleans())
    down = data.draw(st.booleans())
    order = np.argsort(-x if down else x, axis=axis, kind="stable")
    kind = data.draw(st.sampled_from(["sort", "argsort", "topk", "argmax", "cumsum"]))
    if kind == "sort":
        attrs = {"axis": axis, "descending": down}
        check("sort", [x], attrs, np.take_along_axis(x, order, axis), symbolic=symbolic)
    elif kind == "argsort":
        check("argsort", [x], {"axis": axis, "descending": down}, order.astype("int32"), symbolic=symbolic)
    elif kind == "topk":
        k = data.draw(st.integers(1, shape[axis]))
        first = np.take(order, range(k), axis)
        expected = [np.take_along_axis(x, first, axis), first.astype("int32")]
        check("topk", [x], {"k": k, "axis": axis, "largest": down}, expected)
    elif kind == "argmax":
        check("argmax", [x], {"axis": axis}, np.argmax(x, axis), symbolic=symbolic)
    else:
        check("cumsum", [x], {"axis": axis}, np.cumsum(x, axis, dtype=x.dtype), symbolic=symbolic)


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("k", [1, 64, 65])
def test_long_rows_in_order(k: int, down: bool) -> None:
    """Runs of every length are merged, few are kept and many sorted; equal elements keep their order, NaN is above."""
    rng = np.random.default_rng(k)
    x = rng.integers(-9, 9, (2, 67)).astype("float32")
    x[0, rng.integers(0, 67, 9)] = np.nan
    x[1] = np.sort(x[1])[::-1]
    keys = np.where(np.isnan(x), np.inf, x)
    order = np.argsort(-keys if down else keys, axis=1, kind="stable")
    values = np.take_along_axis(x, order, 1)
    check("sort", [x], {"axis": 1, "descending": down}, values)
    check("topk", [x], {"k": k, "axis": 1, "largest": down}, [values[:, :k], order[:, :k].astype("int32")])


# ---------------------------------------------------------------------------------------------------------------- image


def _resized(x: Any, size: tuple[int, ...], mode: str, nearest: bool) -> Any:
    """One axis after the other, the coordinates in float64."""
    for axis, new in enumerate(size, 2):
        old, at = x.shape[axis], np.arange(new, dtype="float64")
        if mode == "align_corners":
            at = at * (old - 1) / max(new - 1, 1)
        else:
            at = (at + 0.5) * old / new - 0.5 if mode == "half_pixel" else at * old / new
        shape = [-1 if d == axis else 1 for d in range(x.ndim)]
        low = np.floor(at + (0.5 if nearest else 0) + 1e-9)
        t = np.clip(at - low, 0, 1).astype("float32").reshape(shape)
        take = [np.take(x, np.clip(low + k, 0, old - 1).astype("int64"), axis) for k in (0, 1)]
        x = take[0] if nearest else take[0] * (1 - t) + take[1] * t
    return x


@few(10)
@given(st.data(), SEED)
def test_resize(data: Any, seed: int) -> None:
    x = floats((1, data.draw(st.integers(1, 2)), data.draw(SOME), data.draw(SOME)), seed)
    size = (data.draw(SOME), data.draw(SOME))
    mode = data.draw(st.sampled_from(["half_pixel", "align_corners", "asymmetric"]))
    nearest = data.draw(st.booleans())
    attrs = {
        "method": "nearest_neighbor" if nearest else "linear",
        "coordinate_transformation_mode": mode,
        "rounding_method": "round_prefer_ceil",
    }
    check(
        "image.resize2d", [x, ShapeOf(size)], attrs, _resized(x, size, mode, nearest), symbolic=data.draw(st.booleans())
    )


@few(8)
@given(st.data(), shapes(2, 2, SOME), st.sampled_from([1, 2, 3, 4]), SEED)
def test_layout_transform(data: Any, shape: tuple[int, ...], block: int, seed: int) -> None:
    x = floats(shape, seed)
    rows = -(-shape[0] // block)
    padded = np.pad(x, [(0, rows * block - shape[0]), (0, 0)], constant_values=2.5)
    expected = padded.reshape(rows, block, shape[1]).transpose(0, 2, 1)
    attrs = {"index_map": lambda i, j: (i // block, j, i % block), "pad_value": 2.5}
    check("layout_transform", [x], attrs, expected, symbolic=data.draw(st.booleans()))


@few(8)
@given(shapes(1, 2), SEED)
def test_powers_of_integers(shape: tuple[int, ...], seed: int) -> None:
    a, b = ints(shape, seed), ints(shape, seed + 1, 0, 40)
    check("power", [a, b], {}, np.power(a, b), symbolic=True)
