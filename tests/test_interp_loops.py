"""The loop interpreter: vectorised and scalar modes agree, checks raise, reductions over nothing are their identity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.base.errors import ArgumentError, ExecutionError
from supple.build import te
from supple.build.te_functions import create_prim_func
from supple.interp.loops import run_prim_func
from supple.ir import expr as E
from supple.ir.expr import Var
from supple.ir.intrinsics import intrinsic
from supple.ir.types import prim_type
from supple.script import from_source

N = Var("n", prim_type("int64"))
extents = st.sampled_from([0, 1, 2, 3, 5, 7])


@st.composite
def formulas(draw: Any, x: te.TensorValue, y: te.TensorValue, i: Any, j: Any) -> E.Expr:
    leaf = st.sampled_from(
        [x[i, j], y[j], x[i, 0], E.const(1.5, "float32"), E.Cast("float32", i), E.Cast("float32", E.FloorMod(j, N + 1))]
    )
    kinds = st.sampled_from([E.Add, E.Sub, E.Mul, E.Max, E.Min])

    def choice(sub: Any) -> Any:
        return st.one_of(
            st.builds(lambda k, a, b: k(a, b), kinds, sub, sub),
            st.builds(lambda a, b: intrinsic("if_then_else", E.LT(i, E.FloorDiv(j, E.int64(2))), a, b), sub, sub),
            st.builds(lambda a, b: E.Select(E.And(E.LT(i, j), E.LT(j, N)), a, b), sub, sub),
            st.builds(lambda a: intrinsic("tanh", a), sub),
        )

    return draw(st.recursive(leaf, choice, max_leaves=8))


@settings(max_examples=120, deadline=None)
@given(st.data(), extents, extents, st.booleans())
def test_vectorised_and_scalar_modes_agree(data: Any, rows: int, columns: int, reduce: bool) -> None:
    x = te.placeholder((N, columns), "float32", "X")
    y = te.placeholder((columns,), "float32", "Y")
    if reduce:
        k = te.reduce_axis((0, columns), "k")
        out = te.compute((N,), lambda i: te.sum(data.draw(formulas(x, y, i, k.var)), axis=k), "out")
    else:
        out = te.compute((N, columns), lambda i, j: data.draw(formulas(x, y, i, j)), "out")
    func, _ = create_prim_func([x, y], [out])
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((rows, columns)).astype("float32"), rng.standard_normal(columns).astype("float32")]
    results = []
    for vectorized in (True, False):
        result = np.full((rows,) if reduce else (rows, columns), 7, "float32")
        error = None
        try:
            run_prim_func(func, [*arrays, result], vectorized=vectorized)
        except ExecutionError as raised:  # X[i, 0] with no columns
            error = type(raised)
        results.append((error, result if error is None else None))
    assert results[0][0] is results[1][0]
    if results[0][0] is None:
        np.testing.assert_array_equal(results[0][1], results[1][1])


def test_a_reduction_over_nothing_is_the_identity() -> None:
    x = te.placeholder((3, 0), "float32", "X")
    k = te.reduce_axis((0, 0), "k")
    for make, expected in ((te.sum, 0.0), (te.max, -np.inf), (te.min, np.inf), (te.prod, 1.0)):
        func, _ = create_prim_func([x], [te.compute((3,), lambda i, make=make: make(x[i, k], axis=k), "out")])
        for vectorized in (True, False):
            out = np.full(3, 9, "float32")
            run_prim_func(func, [np.empty((3, 0), "float32"), out], vectorized=vectorized)
            assert (out == expected).all()


def test_an_index_out_of_bounds_raises_in_both_modes() -> None:
    func = from_source(
        """
from supple.script import tirx as T

@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("b"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi + 1]
"""
    )
    for vectorized in (True, False):
        with pytest.raises(ExecutionError, match="index 4 is out of bounds for axis 0 of A"):
            run_prim_func(func, [np.zeros(4, "float32"), np.zeros(4, "float32")], vectorized=vectorized)


def test_arguments_that_do_not_fit_are_refused() -> None:
    x = te.placeholder((N, 4), "float32", "X")
    func, _ = create_prim_func([x], [te.compute((N, 4), lambda i, j: x[i, j], "out")])
    good = np.zeros((2, 4), "float32")
    for args, message in (
        ([good], "takes 2 arguments"),
        ([good, np.zeros((3, 4), "float32")], "dimension 0 must be 2, got 3"),
        ([good.astype("float64"), good], "expected an array of float32"),
        ([good[0], good], "expected 2 dimensions"),
        ([[1.0], good], "expected 2 dimensions"),
    ):
        with pytest.raises(ArgumentError, match=message):
            run_prim_func(func, args)


def test_integer_arithmetic_has_defined_results() -> None:
    a = te.placeholder((6,), "int32", "A")
    b = te.placeholder((6,), "int32", "B")
    low = np.iinfo("int32").min
    x = np.array([7, -7, 7, -7, 5, low], "int32")
    y = np.array([2, 2, -2, -2, 0, -1], "int32")
    expected = {
        E.FloorDiv: [3, -4, -4, 3, 0, low],
        E.FloorMod: [1, 1, -1, -1, 0, 0],
        E.Div: [3, -3, -3, 3, 0, low],
        E.Mod: [1, -1, 1, -1, 0, 0],
    }
    for kind, values in expected.items():
        func, _ = create_prim_func([a, b], [te.compute((6,), lambda i, kind=kind: kind(a[i], b[i]), "C")])
        out = np.zeros(6, "int32")
        run_prim_func(func, [x, y, out])
        assert out.tolist() == values, kind
