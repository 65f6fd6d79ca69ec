"""Conditions on the place along the inner loop: loops of their own, with the same results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_tools import Kernel

from supple.analysis.vectorize import can_vectorize
from supple.base.target import host
from supple.interp.loops import run_prim_func
from supple.ir import expr as E
from supple.ir.loop import BufferStore, PrimFunc, SBlock
from supple.ir.walk import pre_order
from supple.schedule.default import schedule_func
from supple.script import from_source

PROGRAM = """
from supple.script import tirx as T

@T.prim_func(private=True)
def f(a: T.handle, b: T.handle, y: T.handle):
    M, N, P = T.int64(), T.int64(), T.int64()
    A = T.match_buffer(a, (M, N), "float32")
    B = T.match_buffer(b, (M, P), "float32")
    Y = T.match_buffer(y, (M, {extent}), "float32")
    for i, j in T.grid(M, {extent}):
        with T.sblock("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = {value}
"""
SIZES = [(1, 0, 0), (2, 1, 0), (1, 0, 3), (3, 8, 8), (2, 33, 7), (2, 7, 40), (1, 64, 65)]


def function(value: str, extent: str) -> PrimFunc:
    func = from_source(PROGRAM.format(value=value, extent=extent))
    assert isinstance(func, PrimFunc)
    return func.with_attr("tirx.noalias", True)


def check(func: PrimFunc, run: Callable[..., None], extent: str, sizes: list[tuple[int, int, int]]) -> None:
    """What runs gives what the interpreter gives."""
    rng = np.random.default_rng(0)
    for m, n, p in sizes:
        a, b = (rng.standard_normal(s).astype("float32") for s in ((m, n), (m, p)))
        got, expected = (np.full((m, eval(extent, {"N": n, "P": p})), 7, "float32") for _ in range(2))
        run(a, b, got)
        run_prim_func(func, [a, b, expected])
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("value, extent, asks", [
    ("T.if_then_else(vj < N, A[vi, vj], B[vi, vj - N])", "N + P", 0),
    ("T.if_then_else(N <= vj, B[vi, vj - N], A[vi, vj])", "N + P", 0),
    ("T.if_then_else(vj - N >= 0, B[vi, vj - N], A[vi, vj])", "N + P", 0),
    ("T.if_then_else(vj >= 2 and vj - 2 < N, A[vi, vj - 2], T.float32(0))", "N + 5", 0),
    ("T.if_then_else(vj < 2 or not (vj - 2 < N), T.float32(0), A[vi, vj - 2])", "N + 5", 0),
    ("T.if_then_else(vj < N, A[vi, vj], T.if_then_else(vj < N + P, B[vi, vj - N], T.float32(3)))", "N + P + 9", 0),
    # along the rows the loop does not ask for each element; that stays
    ("T.if_then_else(vi > 0 and vj < N, A[vi - 1, vj], T.float32(1))", "N + 1", 1),
    # which of N and P comes first is not known: one of them is a cut, the other is asked
    ("T.if_then_else(vj < N, A[vi, vj], T.float32(0)) + T.if_then_else(vj < P, B[vi, vj], T.float32(0))", "N + P", 1),
    ("T.if_then_else(2 * vj < N, A[vi, 2 * vj], T.float32(0))", "N", 1),
    # places of 32 bits: what cannot wrap, and what does
    ("T.if_then_else(vj - 3 < 5, T.float32(1), T.float32(0))", "40", 0),
    ("T.if_then_else(vj + 2147483640 < 5, T.float32(1), T.float32(0))", "40", 1),
])  # fmt: skip
def test_parts(value: str, extent: str, asks: int) -> None:
    func = function(value, extent)
    kernel = Kernel(func)
    check(func, kernel, extent, SIZES)
    assert ("T.if_then_else" in kernel.scheduled.script()) == bool(asks)


TERMS = st.sampled_from(["vj", "vj - 3", "3 - vj", "vj + N", "N - vj", "vj - N", "P", "vi"])
BOUNDS = st.sampled_from(["0", "1", "5", "17", "N", "N + 1", "P", "N + P", "-1"])
COMPARISONS = st.builds("{} {} {}".format, TERMS, st.sampled_from(["<", "<=", ">", ">=", "=="]), BOUNDS)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner),
        st.builds("(not {})".format, inner),
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.sampled_from(["T.float32(1)", "T.float32(2)", "T.Cast('float32', vj)", "T.Cast('float32', vi)"]),
    lambda inner: st.builds("T.if_then_else({}, {}, {})".format, CONDITIONS, inner, inner),
    max_leaves=4,
)


@settings(max_examples=40, deadline=None)
@given(value=VALUES)
def test_any_conditions(value: str) -> None:
    func = function(value, "N + 9")
    scheduled = schedule_func(func, host())
    sizes = [(2, 0, 1), (2, 4, 9), (1, 13, 2), (2, 40, 17)]
    check(func, lambda *arrays: run_prim_func(scheduled, arrays), "N + 9", sizes)


def body(value: str) -> tuple[E.Var, SBlock]:
    block = next(n for n in pre_order(function(value, "N")) if isinstance(n, SBlock) and n.iter_vars)
    return block.iter_vars[1].var, block


@pytest.mark.parametrize("value, whole", [
    ("T.Select(A[vi, vj] > T.float32(0) or T.isnan(A[vi, vj]), T.float32(1), T.float32(2))", False),
    ("T.Select(A[vi, vj] > T.float32(0) or vj > 3, T.float32(1), T.float32(2))", True),
    ("T.Select(vj < P and B[vi, vj] > T.float32(0), T.float32(1), T.float32(2))", False),
])  # fmt: skip
def test_what_a_second_condition_reads(value: str, whole: bool) -> None:
    """What is read only where the first part of a condition says so is not read for all lanes."""
    var, block = body(value)
    assert can_vectorize(var, block.body) == whole


def test_what_was_read_already_may_be_asked_again() -> None:
    var, block = body("T.exp(A[vi, vj])")
    store = block.body
    assert isinstance(store, BufferStore)
    load = next(n for n in pre_order(store.value) if isinstance(n, E.BufferLoad))
    positive, again = E.GT(load, E.const(0.0, "float32")), E.NE(load, load)
    made = BufferStore(store.buffer, E.Select(E.Or(positive, again), load, load), store.indices)
    assert can_vectorize(var, made)
