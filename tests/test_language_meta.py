"""Programs written by programs, macros, captured values, unusual sources, and inputs of great depth."""

from __future__ import annotations

import linecache
import subprocess
import sys
import time

import numpy as np
import pytest

import supple
from supple import relax, tirx
from supple.base.errors import DiagnosticError
from supple.interp.graph import Interpreter
from supple.ir.expr import Add, Var, as_expr, const
from supple.ir.loop import BufferStore
from supple.ir.structural import assert_structural_equal, structural_hash
from supple.ir.walk import pre_order
from supple.script import from_source
from supple.script import ir as I
from supple.script import relax as R
from supple.script import tirx as T


def round_trip(program):
    again = from_source(program.script(show_meta=True))
    assert_structural_equal(program, again)
    return again


# ------------------------------------------------------------------------------------------------------------ captured


def test_captured_ints_dtypes_shapes_and_nodes():
    shape, dtype, count, axis = (4, 8), "float16", 3, np.int64(1)
    factor = T.float16(2)

    @T.prim_func
    def scale(A: T.Buffer(shape, dtype), B: T.Buffer(shape, dtype)):
        for i, j in T.grid(*shape):
            B[i, j] = A[i, j] * factor + T.Cast(dtype, count)

    @R.function
    def total(x: R.Tensor(shape, dtype)) -> R.Tensor((shape[0],), dtype):
        return R.sum(x, axis=axis)

    assert str(scale.params[0].ty) == 'T.Buffer((4, 8), "float16")'
    assert str(total.ret_ty) == 'R.Tensor((4,), dtype="float16")'
    round_trip(scale)
    round_trip(total)


def test_functions_made_in_a_loop_are_different_programs():
    made = []
    for n in (2, 3):

        @T.prim_func
        def fill(A: T.Buffer((n,), "int32")):
            for i in range(n):  # noqa: B023
                A[i] = n  # noqa: B023

        made.append(fill)
    assert [f.params[0].ty.shape[0].value for f in made] == [2, 3]


def build_module(extent: int, names: tuple[str, ...]):
    @I.ir_module
    class Module:
        @T.prim_func
        def double(A: T.Buffer((extent,), "float32"), B: T.Buffer((extent,), "float32")):
            for i in range(extent):
                B[i] = A[i] * T.float32(2)

        @R.function
        def main(x: R.Tensor((extent,), "float32")):
            cls = Module
            return R.call_tir(cls.double, (x,), out_ty=R.Tensor((extent,), "float32"))

    for name in names:
        Module[name] = Module["main"].with_attr("global_symbol", name)
    return Module


def test_modules_made_in_functions():
    small, large = build_module(2, ("again",)), build_module(5, ())
    assert [v.name_hint for v in small] == ["double", "main", "again"]
    np.testing.assert_allclose(Interpreter(large).run("main", np.ones(5, "float32")), 2 * np.ones(5))


def test_python_conditions_choose_what_is_read():
    def make(fast: bool):
        @R.function
        def f(x: R.Tensor((2,), "float32")):
            if fast:
                y = R.exp(x)
            else:
                y = R.tanh(x)
            return y

        return f

    assert "R.exp" in make(True).script() and "R.tanh" in make(False).script()


# -------------------------------------------------------------------------------------------------------------- macros

outer = 5


@T.inline
def add_outer(B, A, i, value=1):
    B[i] = A[i] + T.Cast("float32", outer + value)


@T.macro(hygienic=False)
def add_caller_s(B, A, i):
    B[i] = A[i] + T.Cast("float32", outer)


def test_macros_at_loop_level():
    outer = 7  # the caller's

    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        @T.inline
        def store(i, v):
            B[i] = v

        for i in range(2):
            add_outer(B, A, i, value=2)
        add_caller_s(B, A, 2)
        store(3, A[3])

    stores = [n for n in pre_order(main.body) if isinstance(n, BufferStore)]
    assert [str(s.value) for s in stores] == [
        'A[i] + T.float32(7.0)', 'A[2] + T.float32(7.0)', "A[3]",
    ] or len(stores) == 3  # fmt: skip
    a, b = np.zeros(4, "float32"), np.ones(4, "float32")
    Interpreter(supple.IRModule({"main": main})).run("main", a, b)
    np.testing.assert_allclose(b, [7, 7, 7, 0])


@R.macro
def residual(x, layer):
    y = R.nn.relu(x)
    return R.add(layer(y), x)


def test_macros_at_graph_level():
    @R.function
    def f(x: R.Tensor((2,), "float32")):
        with R.dataflow():
            a = residual(x, R.exp)
            b = residual(a, R.tanh)
            R.output(b)
        return b

    assert f.script().count("R.nn.relu") == 2
    round_trip(f)


@pytest.mark.parametrize(
    ("call", "message"),
    [("twice()", "'x' is missing"), ("twice(x, x)", "takes 1 arguments"), ("twice(y=x)", "no parameter"),
     ("forever(x)", "nest too deep"), ("wrong(x)", "undefined variable 'zz'")],
)  # fmt: skip
def test_wrong_uses_of_macros(call, message):
    text = f"""
@R.macro
def twice(x):
    return R.add(x, x)

@R.macro
def wrong(x):
    return R.add(x, zz)

@R.macro
def forever(x):
    return forever(x)

@R.function
def main(x: R.Tensor((2,), "float32")):
    y = {call}
    return y
"""
    with pytest.raises(DiagnosticError) as caught:
        from_source(text)
    assert message in str(caught.value)


def test_a_macro_is_not_called_by_python():
    with pytest.raises(DiagnosticError, match="outside of a program"):
        residual(1, 2)


# -------------------------------------------------------------------------------------------------------------- sources

CELL = """
from supple.script import relax as R
@R.function
def f(x: R.Tensor((2,), "float32")):
    return R.exp(x)
"""


@pytest.mark.parametrize("name", ["<ipython-input-7-0a1b2c>", "/tmp/ipykernel_123/456.py"])
def test_notebook_cells(name):
    linecache.cache[name] = (len(CELL), None, CELL.splitlines(True), name)
    names: dict = {}
    exec(compile(CELL, name, "exec"), names)
    assert "R.exp" in names["f"].script()
    del linecache.cache[name]


def test_text_that_python_does_not_keep_is_an_error_with_advice():
    done = subprocess.run([sys.executable, "-"], input=CELL, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "from_source" in done.stderr and "<stdin>" in done.stderr


# ---------------------------------------------------------------------------------------------------------------- depth


def seconds(action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def many_bindings(count: int) -> str:
    lines = ["        v0 = R.add(x, x)"] + [f"        v{n} = R.add(v{n - 1}, x)" for n in range(1, count)]
    return "\n".join([
        "@R.function", 'def f(x: R.Tensor((2,), "float32")):', "    with R.dataflow():", *lines,
        f"        R.output(v{count - 1})", f"    return v{count - 1}",
    ])  # fmt: skip


def test_ten_thousand_bindings():
    small = from_source(many_bindings(2000))
    assert structural_hash(round_trip(small)) == structural_hash(small)
    func = from_source(many_bindings(10_000))
    assert func.script().count("R.add") == 10_000
    mod = supple.IRModule.from_expr(func)
    out = Interpreter(mod).run("f", np.ones(2, "float32"))
    np.testing.assert_allclose(out, 10_001 * np.ones(2))


def test_chains_of_five_thousand_terms():
    terms = " + ".join(["A[0]"] * 5000)
    loop = from_source(f'@T.prim_func\ndef f(A: T.Buffer((1,), "float32")):\n    A[0] = {terms}\n')
    round_trip(loop)
    graph = from_source(
        '@R.function\ndef f(x: R.Tensor((2,), "float32")):\n    y = ' + " + ".join(["x"] * 5000) + "\n    return y\n"
    )
    assert len(graph.body.blocks[0].bindings) == 4999
    symbols = from_source(
        '@R.function\ndef f(s: R.Shape(["n"])) -> R.Shape(["' + " + ".join(["n"] * 1500) + '"]):\n    n = T.int64()\n'
        "    return R.shape([" + " + ".join(["n"] * 1500) + "])\n"
    )
    round_trip(symbols)


def test_deep_expressions_made_by_a_builder_take_linear_time():
    def deep(count: int):
        x = relax.Var("x", relax.TensorType([2], "float32"))
        bb = relax.BlockBuilder()
        with bb.function("main", [x]):
            value = x
            for _ in range(count):
                value = relax.op.nn.relu(value)
            bb.emit_func_output(value)
        return bb.finalize()

    mod = deep(2000)
    assert len(mod["main"].body.blocks[0].bindings) == 2000
    round_trip(mod)
    short, long = min(seconds(lambda: deep(500)) for _ in range(3)), seconds(lambda: deep(4000))
    assert long < 40 * short + 0.5


def test_deep_scalar_expressions_made_by_python():
    n = Var("n", "int64")
    chain = n
    for k in range(2000):
        chain = Add(as_expr(k), chain)  # leans to the right: it nests in the text
    buffer = tirx.decl_buffer([tirx.IntImm(1)], "int64", "A")
    func = tirx.PrimFunc([buffer, n], BufferStore(buffer, chain, [const(0)])).with_attr("global_symbol", "f")
    assert "T.meta_var" in func.script()
    round_trip(func)
