"""What type rules accept as Relax's do: the types of such calls, their values where they have one, and the refusal when
they run or are compiled where they have none. Comparisons with the oracle are in ``tests/oracle/operator_*.py``."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from test_ops_sizes import module, outcomes

import supple
from supple import relax
from supple.base.errors import TypeCheckError
from supple.interp.graph import Interpreter
from supple.ir.expr import Var
from supple.ir.types import ShapeType, TensorType, VDevice
from supple.ops.requirements import ValuesError
from supple.relax import op
from supple.script import from_source
from supple.script import relax as R

SIGNATURE = """
    b: R.Tensor((2, 3), "bool"), f: R.Tensor((2, 3), "float32"), i: R.Tensor((2, 3), "int32"),
    nm: R.Tensor(("n", "m"), "float32"), r: R.Tensor(dtype="float32", ndim=2), u: R.Tensor(dtype="float32"),
    s: R.Shape(ndim=2), p: R.Prim("int64"), q: R.Prim("float32"), v: R.Tensor((4,), "float32"),
    t: R.Tensor((4,), "int64"), h: R.Tensor((2, 4, 2, 8), "int32"), z: R.Tensor((), "float32"),
    a: R.Tensor, w: R.Tensor((3,)), t2: R.Tensor((2,), "int64"), x3: R.Tensor((2, 3, 5), "float32"),
    k3: R.Tensor((4, 3, "k"), "float32"),
    one: R.Tensor((2, 3), "float32", "llvm:0"), two: R.Tensor((2, 3), "float32", "llvm:1")
"""

PLAIN: dict[str, tuple[tuple[int, ...], str]] = {
    "b": ((2, 3), "bool"), "f": ((2, 3), "float32"), "v": ((4,), "float32"), "t": ((4,), "int64"),
    "h": ((2, 4, 2, 8), "int32"),
}  # fmt: skip

TYPES = {
    "R.add(b, f)": 'R.Tensor((2, 3), dtype="bool")',
    "R.add(f, b)": 'R.Tensor((2, 3), dtype="float32")',
    "R.sum(b)": 'R.Tensor((), dtype="bool")',
    "R.negative(b)": 'R.Tensor((2, 3), dtype="bool")',
    "R.matmul(b, R.permute_dims(b))": 'R.Tensor((2, 2), dtype="bool")',
    "R.less(f, i)": 'R.Tensor((2, 3), dtype="bool")',
    "R.less(f, p)": 'R.Tensor((2, 3), dtype="bool")',
    "R.logical_and(f, f)": 'R.Tensor((2, 3), dtype="float32")',
    "R.logical_not(i)": 'R.Tensor((2, 3), dtype="int32")',
    "R.bitwise_xor(f, f)": 'R.Tensor((2, 3), dtype="float32")',
    "R.left_shift(f, f)": 'R.Tensor((2, 3), dtype="float32")',
    "R.nn.attention(h, h, h)": 'R.Tensor((2, 4, 2, 8), dtype="int32")',
    "R.multiply(p, p)": 'R.Prim("int64")',
    "R.less(q, q)": 'R.Prim("bool")',
    "R.sum(r, keepdims=True)": 'R.Tensor((1, 1), dtype="float32")',
    "R.argmax(r, keepdims=True)": 'R.Tensor((1, 1), dtype="int64")',
    "R.argmax(u)": 'R.Tensor((), dtype="int64")',
    "R.zeros(s, 'int32')": 'R.Tensor(s, dtype="int32")',
    "R.full(s, z)": 'R.Tensor(s, dtype="float32")',
    "R.collapse_sum_to(f, s)": 'R.Tensor(s, dtype="float32")',
    "R.reshape(nm, (4, 6))": 'R.Tensor((4, 6), dtype="float32")',
    "R.broadcast_to(nm, (5, 2, 3))": 'R.Tensor((5, 2, 3), dtype="float32")',
    "R.arange(1, p)": 'R.Tensor((p - 1,), dtype="int64")',
    "R.arange(0, p, p)": 'R.Tensor(((p * 2 - 1) // p,), dtype="int64")',
    "R.take(f, 1, axis=0)": 'R.Tensor((3,), dtype="float32")',
    "R.outer(v, t)": 'R.Tensor((4, 4), dtype="float32")',
    "R.matmul(f, R.permute_dims(i), out_dtype='float16')": 'R.Tensor((2, 2), dtype="float16")',
    "R.where(b, one, two)": 'R.Tensor((2, 3), dtype="float32")',
    "R.nn.pad(one, [0, 0, 1, 1])": 'R.Tensor((2, 5), dtype="float32")',
    "R.take(f, R.argmax(one, axis=0), axis=0)": 'R.Tensor((3, 3), dtype="float32")',
    "R.collapse_sum_like(f, one)": 'R.Tensor((2, 3), dtype="float32", vdevice="llvm:0:global")',
    "R.einsum((a, f), subscripts='ij,jk->ik')": "R.Tensor",
    "R.meshgrid((v, w))": 'R.Tuple(R.Tensor(dtype="float32", ndim=2), R.Tensor(dtype="float32", ndim=2))',
    "R.nn.nll_loss(f, t2, w, reduction='sum')": "R.Tensor(())",
    "R.nn.conv1d(x3, k3)": 'R.Tensor((2, 4, 6 - k), dtype="float32")',
    "R.nn.layer_norm(f, one, one, axes=[0, 1])": 'R.Tensor((2, 3), dtype="float32")',
}


@pytest.mark.parametrize("call", TYPES)
def test_types_are_those_of_relax(call: str) -> None:
    func = from_source(f"@R.function\ndef f({SIGNATURE}):\n    y = {call}\n    return y\n")
    made = func.body.blocks[0].bindings[-1].var.ty
    assert str(made).replace('I.vdevice("llvm", 0, "global")', '"llvm:0:global"') == TYPES[call]


# call: what is wrong with computing it
NO_VALUES = {
    "R.add(b, b)": "add: needs a tensor of numbers",
    "R.add(f, b)": "add: needs a tensor of numbers",
    "R.power(b, b)": "power: needs a tensor of numbers",
    "R.negative(b)": "negative: needs a tensor of numbers",
    "R.sum(b)": "sum: needs a tensor of numbers",
    "R.bitwise_and(f, f)": "bitwise_and: needs integers or bools",
    "R.bitwise_not(f)": "bitwise_not: needs integers or bools",
    "R.left_shift(b, b)": "left_shift: needs integers",
    "R.nn.attention(h, h, h)": "nn.attention: needs a floating-point tensor",
    "R.outer(v, t)": "outer: the operands have different dtypes",
}


@pytest.mark.parametrize("call", NO_VALUES)
def test_what_has_no_values_is_refused_where_it_is_computed(call: str) -> None:
    names = [name for name in PLAIN if re.search(rf"\b{name}\b", call.partition("(")[2])]
    params = ", ".join(f'{name}: R.Tensor({PLAIN[name][0]}, "{PLAIN[name][1]}")' for name in names)
    mod = module({"main": (params, f"y = {call}; return y")})
    args = [np.zeros(*PLAIN[name]) for name in names]
    for compute in (lambda: supple.compile(mod), lambda: Interpreter(mod).run("main", *args)):
        with pytest.raises(ValuesError) as caught:
            compute()
        assert NO_VALUES[call] in caught.value.message
        assert caught.value.span is not None and call in str(caught.value)


def test_comparisons_logic_and_numbers_alone() -> None:
    params = ('u: R.Tensor((4,), "uint64"), s: R.Tensor((4,), "int64"), h: R.Tensor((4,), "float16"), '
              'p: R.Prim("int64"), q: R.Prim("float32")')  # fmt: skip
    calls = ["R.less(u, s)", "R.greater_equal(s, u)", "R.less(h, s)", "R.equal(h, p)", "R.not_equal(s, q)",
             "R.logical_xor(s, s)", "R.logical_or(h, h)", "R.logical_not(h)",
             "R.add(h, h)"]  # fmt: skip
    lines = [f"v{n} = {call}" for n, call in enumerate(calls)]
    numbers = [
        "twice = R.multiply(q, q)",
        "low = R.less(p, R.prim_value(3))",
        "z = R.multiply(R.astype(h, 'float32'), twice)",
    ]
    result = ", ".join(f"v{n}" for n in range(len(calls)))
    mod = module({"main": (params, "; ".join([*lines, *numbers, f"return ({result}, z)"]))})
    vm = relax.VirtualMachine(supple.compile(mod), supple.cpu())
    u, s = np.array([0, 1, 2**63, 2**64 - 1], "uint64"), np.array([-1, 1, 2**62, 0], "int64")
    h = np.array([0.5, 0.0, -1.0, np.inf], "float16")
    wanted = [
        [int(a) < int(b) for a, b in zip(u, s, strict=True)], [int(b) >= int(a) for a, b in zip(u, s, strict=True)],
        h.astype("float64") < s, h == 2, s != np.float32(1.5), np.zeros(4, "int64"),
        np.array([1, 0, 1, 1], "float16"), np.array([0, 1, 0, 0], "float16"), h + h, h.astype("float32") * 2.25,
    ]  # fmt: skip
    for found in outcomes(mod, vm, "main", (u, s, h, 2, 1.5)):
        for value, expected in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(value, expected)


def test_sizes_that_nothing_relates_are_checked_when_it_runs() -> None:
    mod = module(
        {
            "shape": ('x: R.Tensor(("n", "m"), "float32")', "y = R.reshape(x, (4, 6)); return y"),
            "rest": ('x: R.Tensor(("n", "m"), "float32")', "y = R.reshape(x, (4, -1)); return y"),
            "spread": ('x: R.Tensor(("n",), "float32")', "y = R.broadcast_to(x, (2, 3)); return y"),
            "count": ('s: R.Shape(["k"])', "k = T.int64(); y = R.arange(1, k); return y"),
            "steps": ('s: R.Shape(["k"])', "k = T.int64(); y = R.arange(0, 7, k - 2); return y"),
            "window": (
                's: R.Shape(["k"])',
                "k = T.int64(); y = R.hamming_window(k - 2, 0, 0.54, 0.46, 'float64'); return y",
            ),
        }
    )
    vm = relax.VirtualMachine(supple.compile(mod), supple.cpu())
    x = np.arange(24, dtype="float32")
    fitting = [("shape", x.reshape(8, 3), x.reshape(4, 6)), ("rest", x.reshape(3, 8), x.reshape(4, 6)),
               ("spread", x[:3], np.broadcast_to(x[:3], (2, 3))), ("count", (5,), np.arange(1, 5)),
               ("count", (1,), np.arange(0)), ("steps", (5,), np.arange(0, 7, 3)),
               ("window", (9,), np.hamming(7)), ("window", (2,), np.hamming(0))]  # fmt: skip
    for name, given, wanted in fitting:
        for found in outcomes(mod, vm, name, (given,)):
            np.testing.assert_allclose(found[0], wanted, rtol=1e-14)
    others = [
        ("shape", x.reshape(3, 8)[:2]),
        ("rest", x[:6].reshape(2, 3)),
        ("spread", x[:1]),
        ("count", (0,)),
        ("steps", (2,)),
        ("window", (1,)),
    ]
    for name, given in others:
        for error in outcomes(mod, vm, name, (given,)):
            assert isinstance(error, supple.error.SuppleError), (name, error)


REFUSED = [
    lambda x: op.full((2,), x["rank"]),
    lambda x: op.stack([x["unknown"], x["tensor"]]),
    lambda x: op.stack([x["tensor"], x["tensor"]], axis=3),
    lambda x: op.outer(x["unknown"], x["unknown"]),
    lambda x: op.meshgrid([x["unknown"]]),
    lambda x: op.permute_dims(x["unknown"], [1, 0]),
    lambda x: op.take(x["unknown"], x["index"]),
    lambda x: op.squeeze(x["rank"], [2]),
    lambda x: op.squeeze(x["rank"], [0, -2]),
    lambda x: op.repeat(x["rank"], 2, 2),
    lambda x: op.reshape(x["rank"], (-1, -1)),
    lambda x: op.strided_slice(x["rank"], [0], [0, 1], [1]),
    lambda x: op.strided_slice(x["tensor"], [0], [0.5], [1]),
    lambda x: op.scatter_nd(x["no dtype"], x["index"], x["tensor"]),
    lambda x: op.einsum([x["tensor"], x["no dtype"]], "ij,ik->jk"),
    lambda x: op.nn.layer_norm(x["tensor"], x["unknown"], x["unknown"], axes=-1),
    lambda x: op.nn.layer_norm(x["unknown"], x["unknown"], x["unknown"], axes=-1),
    lambda x: op.nn.rms_norm(x["tensor"], x["no dtype"], axes=[0, 1]),
    lambda x: op.nn.attention(x["unknown"], x["unknown"], x["unknown"]),
    lambda x: op.nn.pixel_shuffle(x["unknown"], 2),
    lambda x: op.add(x["object"], x["tensor"]),
    lambda x: op.exp(x["object"]),
    lambda x: op.concat([x["tensor"], x["object"]]),
    lambda x: op.shape_of(x["object"]),
    lambda x: op.hint_on_device(x["shape"], supple.cpu()),
    lambda x: op.call_inplace_packed("f", x["tensor"], inplace_indices=[-1], ty_args=[R.Tensor((2, 3), "float32")]),
    lambda x: op.call_inplace_packed("f", x["tensor"], inplace_indices=[0], ty_args=[R.Tensor((3, 3), "float32")]),
    lambda x: op.memory.view(x["tensor"], dtype="float64"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_calls_that_relax_refuses(number: int) -> None:
    x = {
        "tensor": relax.Var("x", R.Tensor((2, 3), "float32")),
        "no dtype": relax.Var("x", R.Tensor((2, 3))),
        "rank": relax.Var("x", R.Tensor(dtype="float32", ndim=2)),
        "unknown": relax.Var("x", R.Tensor(dtype="float32")),
        "index": relax.Var("i", R.Tensor((4,), "int64")),
        "object": relax.Var("x", R.Object),
        "shape": relax.Var("x", R.Shape((2, 3))),
    }
    with pytest.raises(TypeCheckError):
        relax.BlockBuilder().normalize(REFUSED[number](x))


def test_a_shape_variable_is_the_shape_of_what_keeps_it() -> None:
    s = Var("s", ShapeType(None, 2))
    x = Var("x", TensorType(s, "float32"))
    index = Var("i", TensorType(s, "int64"))
    y = relax.Var("y", R.Tensor((2, 3), "float32"))
    builder = relax.BlockBuilder()
    for call in (op.argsort(x), op.cumsum(x, axis=1), op.eye_like(x), op.gather_elements(y, index), op.squeeze(x, []),
                 op.collapse_sum_like(y, x), op.concat([x]), op.split(x, 1), op.tile(x, ()), op.nn.batch_flatten(x),
                 op.permute_dims(x, [0, 1]), op.wrap_param(x, "float16")):  # fmt: skip
        assert builder.normalize(call).ty.shape is s
    for call in (op.scatter_elements(x, index, x), op.memory.view(x, None, "int32")):
        assert builder.normalize(call).ty.shape is None
    unknown = Var("x", TensorType(Var("s", ShapeType()), "float32"))
    assert builder.normalize(op.slice_scatter(unknown, unknown, 0, 2, 1)).ty.shape is None


BUILT_TYPES = [
    (lambda v: op.unique(v((), "float32")), 'R.Tensor((1,), dtype="float32")'),
    (lambda v: op.einsum([v(2, "float32"), v(-1, None)], "ij,jk->k"), 'R.Tensor(dtype="float32", ndim=1)'),
    (lambda v: op.einsum([v(-1, "float32"), v(2, None)], "ij,jk->k"), 'R.Tensor(dtype="float32")'),
    (lambda v: op.einsum([v(1, "float32"), v(-1, None)], "i,i"), 'R.Tensor(dtype="float32", ndim=0)'),
    (
        lambda v: op.dynamic_strided_slice(v(-1, "float32"), *(v(-1, "int64") for _ in range(3))),
        'R.Tensor(dtype="float32")',
    ),
    (
        lambda v: op.quantize(v((2, 4), "float32"), v((4,), "float16"), v((4,), "float16"), 1, "float8_e5m2"),
        'R.Tensor((2, 4), dtype="float8_e5m2")',
    ),
    (
        lambda v: op.dequantize(v((2, 4), "float8_e4m3fn"), v((4,), "float32"), v((4,), "float16"), 1, "float16"),
        'R.Tensor((2, 4), dtype="float16")',
    ),
    (
        lambda v: op.nn.max_pool2d(v((1, 1, 32, 32), "float32"), 3, 2, [1, 2, 3, 4], ceil_mode=True),
        'R.Tensor((1, 1, 17, 18), dtype="float32")',
    ),
]


@pytest.mark.parametrize("place", range(len(BUILT_TYPES)))
def test_types_of_calls_that_are_built(place: int) -> None:
    def variable(shape: Any, dtype: str | None) -> Var:
        ty = TensorType(None, dtype, shape) if isinstance(shape, int) else R.Tensor(shape, dtype)
        return relax.Var("x", ty)

    call, expected = BUILT_TYPES[place]
    assert str(relax.BlockBuilder().normalize(call(variable)).ty) == expected


def test_a_view_lives_where_its_tensor_does() -> None:
    x = relax.Var("x", R.Tensor((4, 4), "float32", VDevice("llvm", 0)))
    for call in (op.memory.view(x, (16,), "int32"), op.memory.view(x, None, "int32")):
        assert relax.BlockBuilder().normalize(call).ty.vdevice is not None


def test_results_live_where_relax_says() -> None:
    device = VDevice("llvm", 0)
    x = relax.Var("x", R.Tensor((2, 3), "float32", device))
    w, moving = relax.Var("w", R.Tensor((3,), "float32")), relax.Var("m", R.Tensor((3,), "float32", device))
    norm = relax.BlockBuilder().normalize(op.nn.batch_norm(x, w, w, moving, w, axis=1)).ty
    assert [f.vdevice is not None for f in norm.fields] == [True, True, False]


def test_a_hint_has_the_device_in_parts() -> None:
    x = relax.Var("x", R.Tensor((2, 3), "float32"))
    call = op.hint_on_device(x, supple.device("cuda", 1), "shared")
    assert (call.attrs.device_type, call.attrs.index, call.attrs.memory_scope) == (2, 1, "shared")
    assert str(op.hint_on_device(x, "cpu")) == 'R.hint_on_device(x, R.device(device_type=1, index=0), "global")'
    with pytest.raises(TypeError, match="expected a device"):
        op.hint_on_device(x, VDevice("llvm", 0))
