"""Loop functions that return a number: called from Python, and from graph functions."""

from __future__ import annotations

import numpy as np
import pytest
from form_tools import both, machine, module, settled

from supple.base import dtypes
from supple.base.errors import ExecutionError, NotSupportedError
from supple.interp.graph import Interpreter

FIND = """
@T.prim_func
def main(A: T.Buffer(("n",), "float32"), limit: T.float32) -> T.int32:
    n = T.int64()
    for i in T.serial(n):
        if A[i] > limit:
            T.ret(T.Cast("int32", i))
    T.ret(T.int32(-1))
"""


def test_the_executable_gives_the_number():
    a = np.array([1, 5, 2, 9], "f4")
    assert both(FIND, a, 4.0) == 1
    assert both(FIND, a, 8.5) == 3
    assert both(FIND, a, 10.0) == -1
    assert both(FIND, a[:0], 0.0) == -1


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("int8", -3), ("uint8", 250), ("int64", -(2**62)), ("bool", True), ("bool", False), ("float32", 0.5),
     ("float64", 1e300), ("float16", 0.25), ("bfloat16", 0.25), ("float8_e4m3fn", -0.5), ("uint64", 2**64 - 3)],
)  # fmt: skip
def test_numbers_of_every_kind(dtype, value):
    text = f"""
@T.prim_func
def main(A: T.Buffer((1,), "{dtype}")) -> T.{dtype}:
    T.ret(A[0])
"""
    result = both(text, np.array([value], dtypes.to_numpy(dtype)))
    assert result == value
    assert type(result) is type(value)


def test_a_number_is_converted_to_the_declared_dtype():
    text = """
@T.prim_func
def main(k: T.int32) -> T.float32:
    T.ret(k * 2)
"""
    assert both(text, 3) == 6.0
    assert both(text.replace("T.ret(k * 2)", "if k > 0:\n        T.ret(k)\n    T.ret(T.float32(0.5))"), 0) == 0.5


def test_a_path_without_a_number_gives_nothing():
    text = """
@T.prim_func
def main(A: T.Buffer((2,), "float32")):
    if A[0] > T.float32(0):
        T.ret(7)
    A[1] = T.float32(3)
"""
    vm = machine(text)
    a = np.array([1, 0], "f4")
    assert vm["main"](a) == 7
    assert a[1] == 0
    a[0] = -1
    assert Interpreter(module(text)).run("main", a.copy()) is None
    assert vm["main"](a) == ()
    assert a[1] == 3
    a[0] = 1
    assert vm["main"](a) == 7
    with pytest.raises(NotSupportedError, match="must declare"):
        machine(text.replace("A[1] = T.float32(3)", "T.ret(T.float32(1))"))


MODULE = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def half(k: T.int64) -> T.int64:
        T.ret(k // 2)

    @T.prim_func(private=True)
    def count(A: T.Buffer(("n",), "float32"), B: T.Buffer((1,), "float32")) -> T.int64:
        n = T.int64()
        for i in T.serial(n):
            if A[i] > T.float32(100):
                T.ret(i)
        B[0] = B[0] + T.float32(1)
        if n > T.int64(3):
            T.ret(n)

    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32"), b: R.Tensor((1,), "float32")):
        n = T.int64()
        h: R.Prim("int64") = Module.half(n + 5)
        c: R.Prim("int64") = Module.count(x, b)
        z = R.zeros(R.shape([h]), "float32")
        return (h, c, z, b)
"""


def test_graph_functions_call_them():
    both(MODULE, np.arange(5, dtype="f4"), np.zeros(1, "f4"))
    both(MODULE, np.arange(99, 105, dtype="f4"), np.zeros(1, "f4"))
    vm = machine(MODULE)
    before = settled()
    with pytest.raises(ExecutionError, match="count returned nothing"):
        vm["main"](np.zeros(3, "f4"), np.zeros(1, "f4"))
    with pytest.raises(ExecutionError, match="shares memory"):
        x = np.zeros(5, "f4")
        vm["main"](x, x[:1])
    assert settled() == before
