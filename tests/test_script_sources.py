"""Where programs may be written: files without postponed annotations, exec with linecache, closures, REPL-like text.

This file has no ``from __future__ import annotations``: Python evaluates the annotations itself.
"""

import linecache

import pytest

from supple.ir.graph import Function
from supple.ir.module import IRModule
from supple.ir.structural import structural_equal
from supple.script import from_source
from supple.script import ir as I
from supple.script import relax as R
from supple.script import tirx as T
from supple.script.ir import ir_module
from supple.script.relax import Tensor, function
from supple.script.tirx import Buffer, prim_func


@R.function
def plain(x: R.Tensor(("n", 4), "float32"), y: R.Tuple(R.Tensor(("n",), "float32"), R.Any)) -> R.Tensor:
    return R.exp(x)


@R.function(private=True)
def with_options(x: R.Tensor((2, 4), "float32")) -> R.Tensor((2, 4), "float32"):
    return R.exp(x)


@prim_func
def names_without_a_module(A: Buffer((4,), "float32"), n: T.int32):
    for i in T.serial(n):
        A[i] = T.float32(1)


@function
def graph_names(x: Tensor((2,), "float32")):
    return R.exp(x)


@ir_module
class Bare:
    """A module with a docstring."""

    @prim_func(private=True)
    def f(A: Buffer(("n",), "float32"), B: Buffer(("n",), "float32")):
        n = T.int64()
        for i in range(n):
            with T.sblock("B"):
                v = T.axis.spatial(n, i)
                B[v] = A[v]

    @function
    def main(x: Tensor(("n",), "float32")):
        n = T.int64()
        return R.call_tir(Bare.f, (x,), out_ty=R.Tensor((n,), "float32"))


class Outer:
    @ir_module(check_well_formed=True)
    class Inner:
        @function
        def main(x: Tensor((2,), "float32")):
            return x


def test_decorators():
    assert isinstance(plain, Function) and isinstance(with_options, Function)
    assert "global_symbol" not in with_options.attrs
    assert isinstance(Bare, IRModule) and isinstance(Outer.Inner, IRModule)
    assert names_without_a_module.attrs == {"global_symbol": "names_without_a_module"}
    assert isinstance(graph_names, Function)


def test_exec_with_linecache():
    text = "@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    return R.exp(x)\n"
    linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(True), "<cell 1>")
    names = {"R": R}
    exec(compile(text, "<cell 1>", "exec"), names)
    assert isinstance(names["f"], Function)
    assert names["f"].span.file == "<cell 1>"


def test_module_applied_as_a_function():
    class Later:
        @function
        def main(x: Tensor((2,), "float32")):
            return R.exp(x)

    with pytest.raises(TypeError, match="decorates a class"):
        ir_module(lambda: None)
    with pytest.raises(TypeError, match="decorates a function"):
        R.function(3)
    assert isinstance(Later.main, Function)


def test_same_names_at_different_places():
    def first():
        @R.function
        def f(x: R.Tensor((1,), "float32")):
            return x

        return f

    def second():
        @R.function
        def f(x: R.Tensor((2,), "float32")):
            return x

        return f

    assert not structural_equal(first(), second())


def test_closures():
    def outer(size):
        scale = size * 2

        def inner():
            @I.ir_module
            class Module:
                @T.prim_func(private=True)
                def f(A: T.Buffer((size,), "float32"), B: T.Buffer((size,), "float32")):
                    for i in range(scale // 2):
                        with T.sblock("B"):
                            v = T.axis.spatial(size, i)
                            B[v] = A[v] * T.float32(scale)

                @R.function
                def main(x: R.Tensor((size,), "float32")):
                    return R.call_tir(Module.f, (x,), out_ty=R.Tensor((size,), "float32"))

            return Module

        return inner()

    assert "T.float32(6.0)" in outer(3).script()


def test_extra_vars():
    func = from_source(
        "@T.prim_func\ndef f(A: T.Buffer((size,), dtype)):\n    for i in range(size):\n        A[i] = helper(i)\n",
        {"size": 5, "dtype": "int32", "helper": lambda i: i * 2},
    )
    assert int(func.params[0].shape[0]) == 5


def test_imports_in_text():
    for line in (
        "from supple.script import ir as I, relax as R, tirx as T",
        "from tvm.script import relax as R",
        "from __future__ import annotations\nfrom supple.script import relax as R",
    ):
        assert isinstance(
            from_source(f'"""Doc."""\n{line}\nsize = 4\n@R.function\ndef f(x: R.Tensor((size,))):\n    return x\n'),
            Function,
        )
