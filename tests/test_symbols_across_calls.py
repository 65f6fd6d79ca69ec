"""Two functions that both use ``n``, one called with other sizes: the same types and values inlined and not."""

from __future__ import annotations

import numpy as np
import pytest

import supple
from supple.base.errors import ArgumentError
from supple.interp.graph import Interpreter
from supple.ir.module import IRModule
from supple.ir.structural import assert_structural_equal
from supple.script import from_source
from supple.verify.well_formed import check_module

TEXT = """
from supple.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function(private=True)
    def half(x: R.Tensor(("n * 2",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor(("n", 2), "float32"):
        n = T.int64()
        with R.dataflow():
            a = R.reshape(x, R.shape([n, 2]))
            b = R.add(a, R.expand_dims(y, 1))
            R.output(b)
        return b

    @R.function
    def main(x: R.Tensor(("{x}",), "float32"), y: R.Tensor(("{y}",), "float32"), z: R.Tensor(("n",), "float32")):
        with R.dataflow():
            r = Module.half(x, y)
            s = R.multiply(r, r)
            R.output(s)
        return s
"""
SIZES = {"n * 2": ("n * 4", lambda n: 2 * n), "n + 1": ("n * 2 + 2", lambda n: n + 1), "3": ("6", lambda n: 3),
         "n": ("n * 2", lambda n: n), "n // 2": ("n // 2 * 2", lambda n: n // 2)}  # fmt: skip


def inlined(mod: IRModule) -> IRModule:
    """The module with the call of ``half`` written out."""
    half = mod.get_global_var("half")
    return IRModule({"main": mod["main"].inline_functions({half: mod["half"]})})


@pytest.mark.parametrize("size", SIZES)
def test_inlined_and_not(size: str) -> None:
    whole, actual = SIZES[size]
    mod = from_source(TEXT.format(x=whole, y=size))
    flat = inlined(mod)
    check_module(flat)
    assert_structural_equal(flat, from_source(flat.script()))
    called, written = mod["main"], flat["main"]
    assert_structural_equal(called.ret_ty, written.ret_ty, map_free_vars=True)
    compiled = supple.compile(mod), supple.compile(flat)
    for n in (0, 1, 2, 5, 7):
        k = actual(n)
        x, y, z = (np.arange(s, dtype="float32") for s in (2 * k, k, n))
        expected = (x.reshape(k, 2) + y[:, None]) ** 2
        for program in (mod, flat):
            np.testing.assert_array_equal(Interpreter(program).run("main", x, y, z), expected)
        for executable in compiled:
            np.testing.assert_array_equal(executable["main"](x, y, z), expected)


@pytest.mark.parametrize(("factor", "size"), [(2, 5), (4, 6), (3, 4)])
def test_a_size_that_no_symbol_gives_is_named(factor: int, size: int) -> None:
    text = f"""
from supple.script import relax as R


@R.function
def main(x: R.Tensor(("n * {factor}",), "float32")):
    y = R.exp(x)
    return y
"""
    executable = supple.compile(from_source(text))
    with pytest.raises(ArgumentError, match=rf"parameter x: .* {size} is not n \* {factor} for any n"):
        executable["main"](np.ones(size, "f4"))
    assert executable["main"](np.ones(2 * factor, "f4")).shape == (2 * factor,)


def test_a_size_that_contradicts_a_known_symbol_says_where_it_is_from() -> None:
    executable = supple.compile(from_source(TEXT.format(x="n * 4", y="n * 2")))
    with pytest.raises(ArgumentError, match=r"n \* 4 is 4 \(n from z.shape\[0\]\), but x.shape\[0\] is 6"):
        executable["main"](np.ones(6, "f4"), np.ones(3, "f4"), np.ones(1, "f4"))
    with pytest.raises(ArgumentError, match=r"n \* 2 is 2 \(n from z.shape\[0\]\), but y.shape\[0\] is 3"):
        executable["main"](np.ones(4, "f4"), np.ones(3, "f4"), np.ones(1, "f4"))
