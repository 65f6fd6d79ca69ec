"""What compiled functions accept: precise refusals, awkward arrays, DLPack, kinds of results."""

from __future__ import annotations

import gc
import sys
import types

import numpy as np
import pytest
from host_tools import build, machine, mlp, mlp_arguments, mlp_reference, op, sym, tensor

import supple
from supple.error import ArgumentError
from supple.ir.expr import Add, Mul, Var, int64
from supple.ir.types import AnyType, ShapeType, StringType, TensorType, TupleType, prim_type
from supple.runtime import ShapeTuple, Tensor


@pytest.fixture(scope="module")
def add():
    """``main(x: (n, 4), y: (n, 4)) = x + y``."""
    n = sym("n")
    return machine(build([Var("x", tensor(n, 4)), Var("y", tensor(n, 4))], lambda bb, x, y: bb.emit(op("add", x, y))))[
        "main"
    ]


@pytest.mark.parametrize("n", [0, 1, 2, 5, 63, 1024, 1025])
def test_one_executable_serves_every_size(n):
    f = test_one_executable_serves_every_size.__dict__.setdefault("f", machine(mlp())["main"])
    args = mlp_arguments(n)
    out = f(*args)
    assert out.shape == (n, 16)
    np.testing.assert_allclose(out, mlp_reference(*args), rtol=1e-4, atol=1e-4)
    if n:
        first = f(args[0][:1], *args[1:])
        assert first.tobytes() == out[:1].tobytes()


def test_messages_name_function_parameter_expected_and_actual(add):
    x = np.ones((3, 4), "f4")
    cases = [
        ((x, np.ones((4, 4), "f4")), "main: parameter y: expected Tensor((n, 4), float32), got (4, 4): "
         "n is 3 (x.shape[0]) and 4 (y.shape[0])"),
        ((np.ones((3, 5), "f4"), x), "main: parameter x: expected Tensor((n, 4), float32), got (3, 5)"),
        ((x, x.astype("f8")), "main: parameter y: expected Tensor((n, 4), float32), got Tensor((3, 4), float64)"),
        ((x, x[0]), "main: parameter y: expected Tensor((n, 4), float32), got Tensor((4,), float32)"),
        ((x, [1.0]), "main: parameter y: expected Tensor((n, 4), float32), got list"),
        ((x, None), "main: parameter y: expected Tensor((n, 4), float32), got None"),
        ((x, 3), "main: parameter y: expected Tensor((n, 4), float32), got int 3"),
        ((x,), "main: expected 2 arguments (x, y), got 1"),
        ((x, x, x), "main: expected 2 arguments (x, y), got 3"),
    ]  # fmt: skip
    for args, message in cases:
        with pytest.raises(ArgumentError) as error:
            add(*args)
        assert str(error.value) == message


def test_unknown_function_suggests():
    vm = machine(mlp(1))
    with pytest.raises(KeyError, match="did you mean 'main'"):
        vm["mian"]


def test_views_are_compacted(add):
    base = np.arange(64, dtype="f4").reshape(8, 8)
    misaligned = np.frombuffer(b"x" + base.tobytes(), "f4", count=12, offset=1).reshape(3, 4)
    assert not misaligned.flags.aligned
    readonly = base[:3, :4].copy()
    readonly.flags.writeable = False
    for x in [
        base[::2, :4], base[:, ::2], base.T[:, :4], base[::-1, 4:], base[:4, ::-1][:, :4],
        np.broadcast_to(np.float32(2), (5, 4)), np.broadcast_to(base[0, :4], (3, 4)), misaligned, readonly,
        np.asfortranarray(base[:, :4]), base[:0, :4],
    ]:  # fmt: skip
        np.testing.assert_array_equal(add(x, x), x + x)


def test_other_byte_order_and_dtypes_are_refused(add):
    x = np.ones((3, 4), "f4")
    for bad in [x.astype(">f4"), x.astype("f8"), x.astype("i4"), x.astype("f2"), x.astype(object), x.astype("U3")]:
        with pytest.raises(ArgumentError, match=r"main: parameter x: expected Tensor\(\(n, 4\), float32\), got"):
            add(bad, x)


def test_huge_views_are_refused_before_allocating(add):
    x = np.broadcast_to(np.ones(4, "f4"), (2**45, 4))
    with pytest.raises(MemoryError, match="main: parameter x"):
        add(x, x)


def test_sizes_that_do_not_fit_are_errors():
    n, m = sym("n"), sym("m")
    params = [Var("x", tensor(n, 1, dtype="int8")), Var("y", tensor(1, m, dtype="int8"))]
    f = machine(build(params, lambda bb, x, y: bb.emit(op("add", x, y))))["main"]
    wide = np.lib.stride_tricks.as_strided(np.zeros(1, "i1"), (1, 1), (1, 1))
    assert f(wide, wide).shape == (1, 1)
    big = np.zeros((0, 1), "i1")
    assert f(big, wide).shape == (0, 1)


def test_dlpack_producers_are_shared(add):
    class Producer:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, *, stream=None, **rest):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    x = np.ones((3, 4), "f4")
    out = add(Producer(x), x)
    assert isinstance(out, Tensor)
    np.testing.assert_array_equal(np.asarray(out), x + x)
    mixed = add(x, Producer(x))
    assert type(mixed) is np.ndarray

    class OnGpu(Producer):
        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(ArgumentError, match="main: parameter y: the array is on a device of DLPack type 2"):
        add(x, OnGpu(x))

    class Trained(Producer):
        requires_grad = True

    with pytest.raises(ArgumentError, match="requires a gradient"):
        add(x, Trained(x))


def test_results_follow_the_first_array_or_the_choice(monkeypatch):
    n = sym("n")
    mod = build([Var("x", tensor(n))], lambda bb, x: bb.emit(op("add", x, x)))
    x = np.ones(3, "f4")
    assert type(machine(mod)["main"](x)) is np.ndarray
    assert type(machine(mod)["main"](supple.runtime.tensor(x))) is Tensor
    assert type(machine(mod, results="tensor")["main"](x)) is Tensor
    assert type(machine(mod, results="numpy")["main"](supple.runtime.tensor(x))) is np.ndarray
    with pytest.raises(ValueError, match="results"):
        machine(mod, results="list")

    torch = types.ModuleType("torch")

    class FakeTensor:
        __module__ = "torch"
        requires_grad = False

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return (1, 0)

    torch.from_dlpack = lambda source: FakeTensor(np.from_dlpack(source))
    monkeypatch.setitem(sys.modules, "torch", torch)
    out = machine(mod)["main"](FakeTensor(x))
    assert type(out) is FakeTensor
    np.testing.assert_array_equal(out.array, x + x)


def test_dimensions_that_are_expressions():
    n = sym("n")
    shifted = Add(n, int64(1))
    f = machine(build([Var("x", tensor(n)), Var("y", tensor(shifted))], lambda bb, x, y: y))["main"]
    y = np.ones(4, "f4")
    assert f(np.ones(3, "f4"), y) is y
    with pytest.raises(ArgumentError) as error:
        f(np.ones(3, "f4"), np.ones(3, "f4"))
    assert str(error.value) == (
        "main: parameter y: expected Tensor((n + 1,), float32), got (3,): "
        "n + 1 is 4 (n from x.shape[0]), but y.shape[0] is 3"
    )


def test_symbols_are_solved_from_linear_dimensions():
    n = sym("n")
    params = [Var("x", tensor(Mul(n, int64(2)))), Var("y", tensor(n))]
    swapped = machine(build(params, lambda bb, x, y: y))["main"]
    y = np.ones(3, "f4")
    assert swapped(np.ones(6, "f4"), y) is y
    m = sym("m")
    alone = machine(build([Var("x", tensor(Mul(m, int64(2))))], lambda bb, x: bb.emit(op("shape_of", x))))["main"]
    assert alone(np.ones(6, "f4")) == (6,)
    with pytest.raises(ArgumentError, match=r"7 is not m \* 2 for any m"):
        alone(np.ones(7, "f4"))


def test_a_symbol_that_cannot_be_determined_is_refused_when_compiling():
    n, m = sym("n"), sym("m")
    with pytest.raises(supple.error.NotSupportedError, match="cannot be determined"):
        machine(build([Var("x", tensor(Mul(n, m)))], lambda bb, x: x))


def test_scalars_shapes_tuples_strings_and_anything():
    n = sym("n")
    k, flag, scale = Var("k", prim_type("int32")), Var("flag", prim_type("bool")), Var("scale", prim_type("float32"))
    params = [
        k, flag, scale, Var("s", ShapeType((n, int64(2)))), Var("t", TupleType((tensor(n), tensor(3)))),
        Var("text", StringType()), Var("any", AnyType()), Var("free", TensorType(None, None)),
    ]  # fmt: skip
    f = machine(build(params, lambda bb, *p: bb.emit(supple.relax.Tuple(tuple(p)))))["main"]
    t = (np.ones(4, "f4"), np.zeros(3, "f4"))
    marker, free = object(), np.arange(6).reshape(2, 3)[:, ::2]
    out = f(7, True, 0.5, (4, 2), t, "hello", marker, free)
    assert out[:3] == (7, True, 0.5)
    assert type(out[1]) is bool
    assert out[3] == (4, 2)
    assert out[4] is t
    assert out[5] == "hello"
    assert out[6] is marker
    assert out[7] is free
    good = [7, True, 0.5, (4, 2), t, "hello", marker, free]
    for position, bad, message in [
        (0, 2**31, "parameter k: 2147483648 does not fit in int32"), (0, 1.5, "parameter k: expected a int32 number"),
        (0, True, "parameter k: expected a int32 number"), (1, 1, "parameter flag: expected a bool number"),
        (2, "x", "parameter scale"), (3, (4, 3), r"parameter s: expected Shape\(\(n, 2\)\)"),
        (3, (4,), "parameter s"), (3, (-1, 2), "negative"), (3, 4, "parameter s"), (3, (2**70, 2), "does not fit"),
        (4, (t[0],), "expected a tuple of 2 fields, got a tuple of 1"), (4, (t[0], t[0]), r"parameter t\[1\]"),
        (4, (np.ones(5, "f4"), t[1]), r"n is 4 \(s\[0\]\) and 5"), (4, (None, t[1]), r"parameter t\[0\].*got None"),
        (5, 5, "expected a string"), (7, 1, "parameter free"), (7, np.array(["a"]), "parameter free"),
    ]:  # fmt: skip
        args = list(good)
        args[position] = bad
        with pytest.raises(ArgumentError, match=message):
            f(*args)
    assert f(7, True, 1, ShapeTuple((4, 2)), list(t), "", None, t[0])[2] == 1.0


def test_keyword_arguments_are_not_taken(add):
    with pytest.raises(TypeError):
        add(x=np.ones((3, 4), "f4"))


def test_array_subclasses_and_numpy_scalars(add):
    class Named(np.ndarray):
        pass

    named = np.ones((3, 4), "f4").view(Named)
    np.testing.assert_array_equal(add(named, np.ones((3, 4), "f4")), np.full((3, 4), 2, "f4"))
    masked = np.ma.masked_array(np.ones((3, 4), "f4"))
    with pytest.raises(ArgumentError, match="masked"):  # its mask would be lost
        add(masked, np.ones((3, 4), "f4"))
    f = machine(build([Var("x", tensor())], lambda bb, x: bb.emit(op("add", x, x))))["main"]
    assert f(np.float32(3).reshape(())) == 6
    with pytest.raises(ArgumentError):
        f(3.0)


def test_a_scalar_parameter_is_a_symbol_too():
    n = sym("n")
    f = machine(build([Var("x", tensor(n)), n], lambda bb, x, n: bb.emit(op("add", x, x))))["main"]
    np.testing.assert_array_equal(f(np.ones(3, "f4"), 3), [2, 2, 2])
    with pytest.raises(ArgumentError, match=r"parameter n: expected int64, got int 4: n is 3 \(x.shape\[0\]\) and 4"):
        f(np.ones(3, "f4"), 4)


def test_many_dimensions():
    f = machine(build([Var("x", tensor(*[1] * 12))], lambda bb, x: bb.emit(op("add", x, x))))["main"]
    assert f(np.ones([1] * 12, "f4")).shape == (1,) * 12


def test_functions_keep_their_code_alive():
    f = machine(mlp())["main"]
    gc.collect()
    args = mlp_arguments(3)
    np.testing.assert_allclose(f(*args), mlp_reference(*args), rtol=1e-4, atol=1e-4)
