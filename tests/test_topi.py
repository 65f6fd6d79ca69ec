"""``supple.topi``: every function against numpy, interpreted and native, through ``emit_te``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import supple
from supple import relax, te, tirx, topi
from supple.base.errors import TypeCheckError
from supple.interp.loops import run_prim_func

rng = np.random.default_rng(7)
X = rng.uniform(0.1, 0.9, (3, 5)).astype("float32")
Y = rng.uniform(0.1, 0.9, (3, 5)).astype("float32")
ROW = rng.uniform(0.1, 0.9, (1, 5)).astype("float32")
I = rng.integers(-9, 9, (3, 5)).astype("int32")
J = rng.integers(1, 9, (3, 5)).astype("int32")
IMAGE = rng.uniform(-1, 1, (2, 3, 6, 7)).astype("float32")
KERNEL = rng.uniform(-1, 1, (4, 3, 3, 2)).astype("float32")


def values(function: Callable[..., Any], *arrays: Any) -> list[Any]:
    """The results of a function of te tensors, native; equal to the interpreter's."""
    tensors = [te.placeholder(a.shape, str(a.dtype), f"in{n}") for n, a in enumerate(arrays)]
    made = function(*tensors)
    outputs = list(made) if isinstance(made, (list, tuple)) else [made]
    func = te.create_prim_func([*tensors, *outputs])
    shapes = [tuple(int(d) for d in t.shape) for t in outputs]
    native = [np.zeros(s, t.dtype) for s, t in zip(shapes, outputs, strict=True)]
    interpreted = [np.zeros(s, t.dtype) for s, t in zip(shapes, outputs, strict=True)]
    supple.compile(supple.IRModule({"main": func}))["main"](*arrays, *native)
    run_prim_func(func, [*arrays, *interpreted])
    for a, b in zip(native, interpreted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return native


def check(function: Callable[..., Any], arrays: tuple[Any, ...], *expected: Any) -> None:
    found = values(function, *arrays)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == np.asarray(b).dtype, (a.dtype, np.asarray(b).dtype)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


UNARY = ["abs", "acos", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "exp", "floor", "isfinite", "isinf",
         "isnan", "log", "negative", "round", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"]  # fmt: skip
NUMPY = {"acos": np.arccos, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    check(getattr(topi, name), (X,), NUMPY.get(name, getattr(np, name, None))(X))


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "power": np.power,
    "maximum": np.maximum, "minimum": np.minimum, "equal": np.equal, "less": np.less, "greater_equal": np.greater_equal,
    "atan2": np.arctan2, "floor_divide": np.floor_divide, "floor_mod": np.mod,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_binary_and_broadcasting(name: str) -> None:
    check(getattr(topi, name), (X, Y), BINARY[name](X, Y))
    check(getattr(topi, name), (X, ROW), BINARY[name](X, ROW))
    check(lambda a: getattr(topi, name)(a, 0.5), (X,), BINARY[name](X, np.float32(0.5)))


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"])
def test_integers(name: str) -> None:
    check(getattr(topi, name), (I, J), getattr(np, name)(I, J))


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
def test_reductions(name: str, axis: Any) -> None:
    check(lambda a: getattr(topi, name)(a, axis=axis), (X,), getattr(np, name)(X, axis=axis))
    check(lambda a: getattr(topi, name)(a, axis, True), (X,), getattr(np, name)(X, axis=axis, keepdims=True))


def test_other_reductions() -> None:
    held = I > -4
    check(lambda a: topi.all(a, 1), (held,), held.all(1))
    check(lambda a: topi.any(a, 0, True), (~held,), (~held).any(0, keepdims=True))
    check(lambda a: topi.argmax(a, 1), (X,), np.int32(X.argmax(1)))
    check(lambda a: topi.argmin(a, 0), (X,), np.int32(X.argmin(0)))
    check(lambda a: topi.cumsum(a, 1), (X,), np.cumsum(X, 1))
    check(lambda a: topi.cumprod(a, 0), (X,), np.cumprod(X, 0))


def test_creation_and_conversion() -> None:
    check(lambda: topi.full((2, 3), "float32", 1.5), (), np.full((2, 3), 1.5, "float32"))
    check(lambda a: topi.full_like(a, 2.0), (X,), np.full_like(X, 2))
    check(lambda: topi.arange(1, 9, 2, "int32"), (), np.arange(1, 9, 2, "int32"))
    check(lambda: topi.arange(4), (), np.arange(4, dtype="float32"))
    check(lambda: topi.eye(3, 4, 1), (), np.eye(3, 4, 1, dtype="float32"))
    check(lambda a: topi.cast(a, "int8"), (X * 9,), (X * 9).astype("int8"))
    check(topi.identity, (X,), X)
    check(lambda a: topi.clip(a, 0.3, 0.6), (X,), X.clip(0.3, 0.6))
    check(lambda a, b, c: topi.elemwise_sum([a, b, c]), (X, Y, X), X + Y + X)
    hot = np.where(np.arange(9) == J[..., None], np.float32(2), np.float32(0))
    check(lambda a: topi.one_hot(a, 2.0, 0.0, 9), (J,), hot)


def test_shapes() -> None:
    check(topi.transpose, (X,), X.T)
    check(lambda a: topi.transpose(a, (0, 2, 3, 1)), (IMAGE,), IMAGE.transpose(0, 2, 3, 1))
    check(lambda a: topi.reshape(a, (5, 3)), (X,), X.reshape(5, 3))
    check(lambda a: topi.reshape(a, 15), (X,), X.reshape(15))
    check(lambda a: topi.squeeze(a, 0), (ROW,), ROW[0])
    check(lambda a: topi.expand_dims(a, 1, 2), (X,), X[:, None, None])
    check(lambda a: topi.expand_dims(a, -1), (X,), X[..., None])
    check(lambda a: topi.broadcast_to(a, (2, 4, 5)), (ROW,), np.broadcast_to(ROW, (2, 4, 5)))
    check(lambda a, b: topi.concatenate([a, b], 1), (X, Y), np.concatenate([X, Y], 1))
    check(lambda a, b: topi.stack([a, b], -1), (X, Y), np.stack([X, Y], -1))
    check(lambda a: topi.split(a, [2], 1), (X,), X[:, :2], X[:, 2:])
    check(lambda a: topi.split(a, 3), (X,), *np.split(X, 3))
    check(lambda a: topi.flip(a, 1), (X,), X[:, ::-1])
    check(lambda a: topi.repeat(a, 2, 0), (X,), X.repeat(2, 0))
    check(lambda a: topi.tile(a, (2, 1)), (X,), np.tile(X, (2, 1)))
    check(lambda a: topi.trilu(a, 1, True), (X,), np.triu(X, 1))
    check(lambda a: topi.trilu(a, 0, False), (X,), np.tril(X))
    check(lambda a: topi.strided_slice(a, [0, 1], [3, 5], [2, 2]), (X,), X[::2, 1::2])
    check(lambda a: topi.strided_slice(a, [1], [4], axes=[1]), (X,), X[:, 1:4])
    check(lambda a, b: topi.meshgrid([a, b], "ij"), (X[0], Y[:, 0]), *np.meshgrid(X[0], Y[:, 0], indexing="ij"))
    check(lambda a: topi.collapse_sum(a, (1, 5)), (X,), X.sum(0, keepdims=True))


def test_selection_and_order() -> None:
    check(topi.where, (X > 0.5, X, Y), np.where(X > 0.5, X, Y))
    index = np.array([2, 0, 1], "int32")
    check(lambda a, i: topi.take(a, i, axis=0), (X, index), X[index])
    check(lambda a, i: topi.take(a, i), (X, index), X.ravel()[index])
    along = rng.integers(0, 5, (3, 2)).astype("int64")
    check(lambda a, i: topi.gather(a, 1, i), (X, along), np.take_along_axis(X, along, 1))
    pairs = np.stack([rng.integers(0, 3, 4), rng.integers(0, 5, 4)]).astype("int64")
    check(topi.gather_nd, (X, pairs), X[pairs[0], pairs[1]])
    expected = X.copy()
    np.put_along_axis(expected, along[:, :1], 7, 1)
    check(
        lambda a, i, u: topi.scatter_elements(a, i, u, 1),
        (X, along[:, :1], np.full((3, 1), 7, "float32")),
        expected,
    )
    check(topi.sort, (X,), np.sort(X))
    check(lambda a: topi.sort(a, 0, False), (X,), -np.sort(-X, 0))
    check(topi.argsort, (X,), np.argsort(X, kind="stable").astype("float32"))
    best = np.argsort(-X, kind="stable")[:, :2]
    check(lambda a: topi.topk(a, 2), (X,), np.take_along_axis(X, best, 1), best)
    check(lambda a: topi.topk(a, 2, ret_type="indices"), (X,), best)


def convolved(image: Any, kernel: Any, pad: tuple[int, int, int, int] = (0, 0, 0, 0)) -> Any:
    top, left, bottom, right = pad
    image = np.pad(image, ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(image, kernel.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, kernel).astype("float32")


def test_nn() -> None:
    check(topi.nn.relu, (X - 0.5,), np.maximum(X - 0.5, 0))
    check(lambda a: topi.nn.leaky_relu(a, 0.1), (X - 0.5,), np.where(X > 0.5, X - 0.5, np.float32(0.1) * (X - 0.5)))
    e = np.exp(X - X.max(-1, keepdims=True))
    check(topi.nn.softmax, (X,), e / e.sum(-1, keepdims=True))
    check(topi.nn.log_softmax, (X,), np.log(e / e.sum(-1, keepdims=True)))
    check(topi.nn.flatten, (IMAGE,), IMAGE.reshape(2, -1))
    check(topi.matmul, (X, Y.T.copy()), X @ Y.T)
    check(lambda a, b: topi.matmul(a, b, transp_b=True), (X, Y), X @ Y.T)
    check(topi.nn.dense, (X, Y, ROW[0, :3]), X @ Y.T + ROW[0, :3])
    check(topi.nn.batch_matmul, (IMAGE[:, 0], IMAGE[:, 1]), IMAGE[:, 0] @ IMAGE[:, 1].transpose(0, 2, 1))
    check(lambda a, k: topi.nn.conv2d(a, k, 1, 0, 1), (IMAGE, KERNEL), convolved(IMAGE, KERNEL))
    check(lambda a, k: topi.nn.conv2d_nchw(a, k, 1, "VALID", 1), (IMAGE, KERNEL), convolved(IMAGE, KERNEL))
    same = convolved(IMAGE, KERNEL, (1, 0, 1, 1))
    check(lambda a, k: topi.nn.conv2d_nchw(a, k, 1, "SAME", 1), (IMAGE, KERNEL), same)
    nhwc, hwio = IMAGE.transpose(0, 2, 3, 1).copy(), KERNEL.transpose(2, 3, 1, 0).copy()
    check(lambda a, k: topi.nn.conv2d_nhwc(a, k, 1, 0, 1), (nhwc, hwio), convolved(IMAGE, KERNEL).transpose(0, 2, 3, 1))
    windows = np.lib.stride_tricks.sliding_window_view(IMAGE, (2, 2), (2, 3))[:, :, ::2, ::2]
    check(lambda a: topi.nn.pool2d(a, 2, 2, 1, 0, "max"), (IMAGE,), windows.max((-1, -2)))
    check(lambda a: topi.nn.pool2d(a, 2, 2, 1, 0, "avg"), (IMAGE,), windows.mean((-1, -2)))
    check(lambda a: topi.nn.global_pool(a, "avg"), (IMAGE,), IMAGE.mean((2, 3), keepdims=True))
    check(lambda a: topi.nn.global_pool(a, "max"), (IMAGE,), IMAGE.max((2, 3), keepdims=True))
    check(lambda a: topi.nn.pad(a, (1, 0), (0, 2), 3.0), (X,), np.pad(X, ((1, 0), (0, 2)), constant_values=3))
    apart = np.full((5, 13), 9, "float32")
    apart[::2, ::3] = X
    check(lambda a: topi.nn.dilate(a, (2, 3), 9.0), (X,), apart)
    mean, variance = X.mean(-1, keepdims=True), X.var(-1, keepdims=True)
    normal = ((X - mean) / np.sqrt(variance + 1e-5) * ROW + Y[0]).astype("float32")
    check(lambda a, g, b: topi.nn.layer_norm(a, g, b, [1]), (X, ROW[0], Y[0]), normal)


def test_symbolic_shapes_through_a_builder() -> None:
    n, builder = tirx.Var("n", "int64"), relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([n, 5], "float32"))
    with builder.function("main", [x]):
        lifted = builder.emit_te(topi.add, x, x)
        builder.emit_func_output(builder.emit_te(topi.nn.softmax, lifted))
    mod = builder.get()
    assert {"add", "softmax"} <= {v.name_hint for v in mod.functions}
    for rows in (0, 1, 3):
        e = np.exp(2 * X[:rows])
        out = supple.compile(mod)["main"](X[:rows])
        np.testing.assert_allclose(out, e / e.sum(-1, keepdims=True), rtol=1e-5)


def test_refusals() -> None:
    a, b = te.placeholder((3, 5)), te.placeholder((4, 5))
    with pytest.raises(TypeCheckError):
        topi.add(a, b)
    with pytest.raises(TypeCheckError):
        topi.matmul(a, b)
    with pytest.raises(ValueError, match="SAME"):
        topi.nn.conv2d_nchw(te.placeholder((1, 3, 8, 8)), te.placeholder((4, 3, 3, 3)), 1, "FULL", 1)
    with pytest.raises(TypeError, match="array"):
        topi.add(a, np.ones((3, 5), "float32"))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (topi.exp, "compute"),
        (topi.nn.relu, "compute"),
        (lambda x: topi.cast(x, "int32"), "compute"),
        (lambda x: topi.add(x, x), "T_add"),
        (lambda x: topi.sum(x, 1), "x_red"),
        (lambda x: topi.argmax(x, 1), "x_red"),
        (lambda x: topi.all(topi.isnan(x), 1), "compute_red"),
        (topi.nn.softmax, "T_softmax_norm"),
        (lambda x: topi.matmul(x, x), "T_matmul"),
        (lambda x: topi.nn.matmul(x, x), "T_matmul_NN"),
        (lambda x: topi.nn.dense(x, x), "T_matmul_NT"),
        (lambda x: topi.nn.pad(x, (1, 1), (1, 1)), "PadInput"),
        (lambda x: topi.full_like(x, 1.0), "T_full_like"),
        (lambda x: topi.elemwise_sum([x, x, x]), "T_elemwise_sum"),
        (lambda x: topi.flip(x, 0), "T_reverse_sequence"),
    ],
)
def test_results_have_topis_names(function: Any, name: str) -> None:
    x = relax.Var("x", relax.TensorType((4, 4), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(function, x, primfunc_name_hint="made"))
    loop = bb.get()["made"]
    assert loop.params[-1].name == name and f'T.sblock("{name}")' in loop.script()


def test_more_arithmetic_and_shapes() -> None:
    a, b = X[:, :4], Y[:, 1:]
    check(lambda p, q: topi.einsum("ij,kj->ik", p, q), (a, b), a @ b.T)
    check(lambda p, q: topi.tensordot(p, q, ([0, 1], [0, 1])), (a, b), np.tensordot(a, b, ([0, 1], [0, 1])))
    check(lambda p, q: topi.tensordot(p, q, 1), (a.T.copy(), b), np.tensordot(a.T, b, 1))
    for name, reference in (("log2", np.log2), ("log10", np.log10), ("fast_exp", np.exp), ("fast_tanh", np.tanh)):
        check(getattr(topi, name), (X,), reference(X))
    check(lambda p: topi.reinterpret(p, "int32"), (X,), X.view("int32"))
    check(topi.shape, (IMAGE,), np.array([2, 3, 6, 7], "int32"))
    check(topi.tensor_size, (X,), np.array(15, "int32"))
    check(lambda p: topi.layout_transform(p, "NCHW", "NHWC"), (IMAGE,), IMAGE.transpose(0, 2, 3, 1))
    blocks = np.pad(IMAGE, [(0, 0), (0, 1), (0, 0), (0, 0)]).reshape(2, 2, 2, 6, 7).transpose(0, 1, 3, 4, 2)
    check(lambda p: topi.layout_transform(p, "NCHW", "NCHW2c"), (IMAGE,), blocks)
    check(
        lambda p: topi.layout_transform(p, "NCHW2c", "NHWC"),
        (blocks,),
        np.pad(IMAGE, [(0, 0), (0, 1), (0, 0), (0, 0)]).transpose(0, 2, 3, 1),
    )
    places = np.array([0, 7, 14, 3], "int32")
    check(
        topi.unravel_index,
        (places, np.array([3, 5], "int32")),
        np.stack(np.unravel_index(places, (3, 5))).astype("int32"),
    )
    windows = np.lib.stride_tricks.sliding_window_view(X, (2, 3))[::1, ::2]
    check(lambda p: topi.sliding_window(p, 0, [2, 3], [1, 2]), (X,), windows)


def test_more_selection() -> None:
    lengths = np.array([1, 3, 0, 2, 3], "int32")
    masked = np.where(np.arange(3)[:, None] < lengths[None, :], X, np.float32(-1))
    check(lambda d, n: topi.sequence_mask(d, n, -1.0, 0), (X, lengths), masked)
    reversed_rows = np.array([[*row[:n][::-1], *row[n:]] for row, n in zip(X, (2, 5, 0), strict=True)])
    check(lambda d, n: topi.reverse_sequence(d, n, 1, 0), (X, np.array([2, 5, 0], "int32")), reversed_rows)
    rows, columns = np.array([0, 2], "int64"), np.array([1, 4], "int64")
    check(lambda d, r, c: topi.index_tensor(d, [r, c]), (X, rows, columns), X[rows, columns])
    put = X.copy()
    put[rows, columns] = [7, 8]
    new = np.array([7, 8], "float32")
    check(lambda d, r, c, v: topi.index_put(d, [r, c], v), (X, rows, columns, new), put)
    check(lambda d, i, u: topi.scatter_nd(d, i, u, "update"), (X, np.stack([rows, columns]), new), put)
    edges = np.sort(X[0])
    check(lambda e, v: topi.searchsorted(e, v, True), (edges, Y), np.searchsorted(edges, Y, "right"))


def test_more_nn_and_images() -> None:
    squares = np.pad(IMAGE**2, [(0, 0), (1, 1), (0, 0), (0, 0)])
    sums = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    check(lambda p: topi.nn.lrn(p, 3, 1, 0.5, 0.75, 2), (IMAGE,), IMAGE / (2 + 0.5 / 3 * sums) ** 0.75)
    small = IMAGE[:, :, :, :6].copy()
    apart = small.reshape(2, 3, 3, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 12, 3, 3)
    check(lambda p: topi.nn.space_to_depth(p, 2), (small,), apart)
    check(lambda p: topi.nn.depth_to_space(p, 2), (apart,), small)
    check(
        lambda p: topi.nn.depth_to_space(p, 2, "NHWC"),
        (apart.transpose(0, 2, 3, 1).copy(),),
        small.transpose(0, 2, 3, 1),
    )
    other = apart.reshape(2, 2, 2, 3, 3, 3).transpose(0, 3, 1, 2, 4, 5).reshape(2, 12, 3, 3)
    check(lambda p: topi.nn.depth_to_space(p, 2, mode="CDR"), (other,), small)
    scale = np.array([1, 2, 3], "float32")
    each = scale[None, :, None, None]
    check(topi.nn.scale_shift_nchw, (IMAGE, scale, scale), IMAGE * each + each)
    nearest_options = {
        "method": "nearest_neighbor",
        "coordinate_transformation_mode": "asymmetric",
        "rounding_method": "floor",
    }
    nearest = IMAGE.repeat(2, 2).repeat(2, 3)
    check(lambda p: topi.image.resize2d(p, None, [12, 14], **nearest_options), (IMAGE,), nearest)
    rois = np.array([[0, 0, 0, 6, 5]], "float32")
    pooled = IMAGE[:1].max((2, 3), keepdims=True)
    check(lambda p, r: topi.vision.roi_pool_nchw(p, r, [1, 1], 1.0), (IMAGE, rois), pooled)


def test_utils() -> None:
    n = tirx.Var("n", "int64")
    assert topi.utils.get_const_tuple([tirx.IntImm("int64", 3), n]) == (3, n)
    assert topi.utils.get_const_int(tirx.IntImm("int32", 4) + 2) == 6
    with pytest.raises(ValueError, match="constant"):
        topi.utils.get_const_int(n)
    assert topi.utils.is_dynamic_shape([n, 2]) and not topi.utils.is_dynamic_shape([2, 3])
    assert topi.tag.is_injective(topi.tag.BROADCAST) and not topi.tag.is_broadcast(topi.tag.INJECTIVE)
    with pytest.raises(ValueError, match="layouts"):
        topi.layout_transform(te.placeholder((2, 3)), "NC", "NCH")
