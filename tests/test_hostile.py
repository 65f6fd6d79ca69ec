"""Programs that once went wrong without a word: each is refused, or does what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import supple
from supple.base.errors import DiagnosticError, ExecutionError
from supple.interp.graph import Interpreter
from supple.ir.module import IRModule
from supple.script import from_source
from supple.script import tirx as T

HEAD = "from supple.script import ir as I, relax as R, tirx as T\n"


def parse(text: str) -> Any:
    return from_source(text, extra_vars={"np": np})


def loop_module(body: str) -> IRModule:
    """``main`` calls ``k``, whose statements are given; ``Y`` starts as zeros."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    mod = parse(
        f"""{HEAD}
@I.ir_module
class M:
    @T.prim_func(private=True)
    def k(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for c in range(n):
            Y[c] = T.float32(0.0)
{lines}

    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = M
        r = R.call_tir(cls.k, (x,), out_ty=R.Tensor((n,), "float32"))
        return r
"""
    )
    assert isinstance(mod, IRModule)
    return mod


@pytest.mark.parametrize(
    "body",
    [
        "for i in T.serial(n - 50):\n    Y[i] = X[i]",
        "for i in T.parallel(n - 50):\n    Y[i] = X[i]",
        "for i, j in T.grid(n - 50, n - 60):\n    Y[i] = Y[i] + X[j]",
        "for i in T.serial(n - 50):\n    with T.sblock('b'):\n        vi = T.axis.spatial(n - 50, i)\n"
        "        Y[vi] = X[vi]",
        "for i, j in T.grid(n - 50, n - 60):\n    with T.sblock('b'):\n        vi, vj = T.axis.remap('SR', [i, j])\n"
        "        Y[vi] = Y[vi] + X[vj]",
    ],
)
def test_a_loop_of_negative_extent_runs_no_iteration(body: str) -> None:
    mod = loop_module(body)
    vm = supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())
    for n in (0, 3, 36, 40, 49, 50, 51, 75):
        x = np.ones(n, "float32")
        np.testing.assert_array_equal(vm["main"](x), Interpreter(mod).run("main", x))


def test_a_buffer_of_negative_size_is_an_error() -> None:
    mod = loop_module(
        "A = T.alloc_buffer((n - 50,), 'float32')\nfor i in range(n):\n    A[i] = X[i]\n"
        "for i in range(n):\n    Y[i] = A[i]"
    )
    vm = supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())
    with pytest.raises(ExecutionError, match="dimension 0 of A would be -10"):
        vm["main"](np.ones(40, "float32"))


@pytest.mark.parametrize(
    "expression",
    [
        "np.maximum(x, 0)",
        "np.minimum(x, 0)",
        "np.clip(x, 0, 1)",
        "np.sum(x)",
        "np.dot(x, x)",
        "np.greater(x, 0)",
        "np.array(x)",
        "max(x, x)",
        "min(x, 0)",
        "max([x, x])",
        "x and x",
        "x if x else x",
        "1 < x < 2",
    ],
)
def test_python_and_numpy_functions_of_graph_values_are_refused(expression: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse(f"{HEAD}\n@R.function\ndef f(x: R.Tensor((4,), 'float32')):\n    y = {expression}\n    return y\n")
    assert caught.value.span is not None and caught.value.span.line == 5


def test_comparing_tensors_is_elementwise() -> None:
    params = "x: R.Tensor((4,), 'float32'), y: R.Tensor((4,), 'float32')"
    text = "{}\n@R.function\ndef f(" + params + "):\n    z = x {} y\n    return z\n"
    x, y = np.array([1, 2, np.nan, 4], "float32"), np.array([1, 3, np.nan, 0], "float32")
    for sign, numpy in (("==", np.equal), ("!=", np.not_equal), ("<", np.less), (">=", np.greater_equal)):
        func = parse(text.format(HEAD, sign))
        np.testing.assert_array_equal(Interpreter(func).run("f", x, y), numpy(x, y))


def test_a_buffer_s_name_cannot_be_assigned() -> None:
    with pytest.raises(DiagnosticError, match="'Y' is a buffer"):
        loop_module("for i in range(n):\n    Y = T.max(X[i], T.float32(0.0))")


def test_an_output_that_is_never_written_is_refused() -> None:
    mod = f"""{HEAD}
@I.ir_module
class M:
    @T.prim_func(private=True)
    def k(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
        for i in range(4):
            T.evaluate(X[i])

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = M
        r = R.call_tir(cls.k, (x,), out_ty=R.Tensor((4,), "float32"))
        return r
"""
    with pytest.raises(DiagnosticError, match="no statement of k writes into Y"):
        parse(mod)


def test_numbers_beyond_64_bits_are_refused_with_a_place() -> None:
    with pytest.raises(DiagnosticError) as caught:
        body = f"A = T.alloc_buffer((n * {2**60}, 16), 'float32')\nA[0, 0] = X[0]\nY[0] = A[0, 0]"
        supple.compile(loop_module(body))
    assert "does not fit in int64" in str(caught.value) and caught.value.span is not None


def test_negative_dimensions_are_refused_where_they_are_declared() -> None:
    with pytest.raises(DiagnosticError, match="negative") as caught:
        parse(f'{HEAD}\n@R.function\ndef f(x: R.Tensor((-3,), "float32")):\n    return x\n')
    assert caught.value.span is not None and caught.value.span.line == 4


def test_numpy_scalars_can_be_stored() -> None:
    @T.prim_func
    def k(Y: T.Buffer((4,), "float32")):
        for i in range(4):
            Y[i] = np.float32(2.5)

    assert "2.5" in k.script()


@pytest.mark.parametrize(
    ("dtype", "text", "came"),
    [
        ("float32", "R.sum(x) * 2", 'R.Tensor((), dtype="float32")'),
        ("float32", "(x + x) > 0", 'R.Tensor((3,), dtype="bool")'),
        ("float16", "R.exp(x) * 2.0", 'R.Tensor((3,), dtype="float16")'),
        ("float64", "1 / R.exp(x)", 'R.Tensor((3,), dtype="float64")'),
        ("int8", "(x + x) - 1", 'R.Tensor((3,), dtype="int8")'),
    ],
)
def test_a_number_beside_an_expression_takes_its_dtype(dtype: str, text: str, came: str) -> None:
    mod = parse(f'{HEAD}\n@R.function\ndef f(x: R.Tensor((3,), "{dtype}")):\n    y = {text}\n    return y\n')
    function = mod["f"] if isinstance(mod, supple.IRModule) else mod
    assert str(function.ret_ty) == came


@pytest.mark.parametrize("text", ["x * 1.5", "(x + x) * 1.5", "R.less(x, 0.5)", "R.clip(x, 0.5, 1.5)"])
def test_a_fraction_beside_integers_is_refused(text: str) -> None:
    with pytest.raises(DiagnosticError, match="fraction") as caught:
        parse(f'{HEAD}\n@R.function\ndef f(x: R.Tensor((3,), "int32")):\n    y = {text}\n    return y\n')
    assert caught.value.span is not None


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize(("axis", "shape"), [(1, (3,)), (None, ()), (0, (0,))])
def test_the_place_of_an_extreme_among_nothing_is_minus_one(
    name: str, axis: int | None, shape: tuple[int, ...]
) -> None:
    function = parse(
        f'{HEAD}\n@R.function\ndef f(x: R.Tensor(("m", "n"), "float32")):\n    return R.{name}(x, axis={axis})\n'
    )
    compiled = supple.compile(function)["f"]
    empty = np.zeros((3, 0), "float32")
    for run in (compiled, lambda x: Interpreter(IRModule({"f": function})).run("f", x)):
        np.testing.assert_array_equal(run(empty), np.full(shape, -1))
    full = np.array([[1.0, 3.0, 3.0], [2.0, 0.0, 0.0]], "float32")
    np.testing.assert_array_equal(compiled(full), getattr(np, name)(full, axis=axis))


@pytest.mark.parametrize(
    "text",
    [
        "T.Select(X, X[i], X[i])",
        'T.Cast("float32", X)',
        "X + X[i]",
        "T.exp(X)",
        "X",
        "X == Y",
        "X != Y",
        "X[X]",
        "not X",
    ],
)
def test_a_buffer_is_no_scalar(text: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse(
            f'{HEAD}\n@T.prim_func\ndef k(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):\n'
            f"    for i in range(4):\n        Y[i] = {text}\n"
        )
    assert caught.value.span is not None and caught.value.span.line == 6
