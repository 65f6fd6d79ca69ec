"""The page's two programs through the whole compiler, against numpy."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from mlp import Module, numpy_mlp, relax_mlp

import supple
from supple.error import ArgumentError
from supple.script import relax as R
from supple.script import tirx as T


def arguments(n: int, hidden: int) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    shapes = [(1025, 784), (784, hidden), (hidden,), (hidden, 10), (10,)]
    arrays = [rng.standard_normal(shape).astype("f4") for shape in shapes]
    return [arrays[0][:n], *arrays[1:]]


@pytest.fixture(scope="module", params=["relax", "cross"])
def program(request):
    """The compiled entry and its number of hidden units."""
    if request.param == "relax":
        return supple.relax.VirtualMachine(supple.compile(relax_mlp), supple.cpu())["relax_mlp"], 128
    return supple.relax.VirtualMachine(supple.compile(Module, target="llvm"), supple.cpu())["main"], 256


def test_every_size_on_one_executable(program):
    f, hidden = program
    first = None
    for n in (0, 1, 2, 5, 63, 1024, 1025):
        args = arguments(n, hidden)
        out = f(*args)
        assert type(out) is np.ndarray
        assert out.shape == (n, 10)
        exact = numpy_mlp(*(a.astype("f8") for a in args))
        np.testing.assert_allclose(out, exact, rtol=1e-3, atol=2e-3)
        if n:
            first = out[0].tobytes() if first is None else first
            assert out[0].tobytes() == first  # a row's bits do not depend on the batch


def test_awkward_inputs(program):
    f, hidden = program
    args = arguments(8, hidden)
    x = args[0]
    wide = np.zeros((16, 1568), "f4")
    wide[::2, ::2] = x
    backwards = x[::-1, ::-1].copy()[::-1, ::-1]
    packed = np.frombuffer(b"?" + x.tobytes(), "f4", offset=1).reshape(x.shape)
    wanted = f(*args)
    for view in (wide[::2, ::2], x.T.copy().T, backwards, packed):
        np.testing.assert_array_equal(f(view, *args[1:]), wanted)
    np.testing.assert_array_equal(f(np.broadcast_to(x[0], x.shape), *args[1:])[7], wanted[0])
    for bad in (x.astype(">f4"), x.astype("f8"), x.tolist(), None, 3, "x", x[:, :5], x[0]):
        with pytest.raises(ArgumentError, match=r": parameter (x|data): "):
            f(bad, *args[1:])
    with pytest.raises(MemoryError):
        f(np.broadcast_to(x[0], (2**45, 784)), *args[1:])


def test_a_mismatch_is_named():
    f = supple.compile(Module)["main"]
    args = arguments(3, 256)
    args[1] = args[1][:, :128]
    with pytest.raises(ArgumentError) as error:
        f(*args)
    assert str(error.value) == "main: parameter w0: expected Tensor((784, 256), float32), got (784, 128)"


def test_results_outlive_everything():
    @R.function
    def several(x: R.Tensor(("n", 4), "float32")):
        n = T.int64()
        with R.dataflow():
            y = R.add(x, R.const(1.0, "float32"))
            flat = R.reshape(x, (n * 4,))
            gv = (x, x, flat, R.const(2.0, "float32"), y)
            R.output(gv)
        return gv

    ex = supple.compile(several)
    vm = supple.relax.VirtualMachine(ex, supple.cpu())
    x = np.arange(8, dtype="f4").reshape(2, 4)
    first = vm["several"](x)
    copies = [np.array(v) for v in first]
    vm["several"](x * 100)
    del vm, ex
    gc.collect()
    assert first[0] is first[1] is x
    for now, then in zip(first, copies, strict=True):
        np.testing.assert_array_equal(now, then)
