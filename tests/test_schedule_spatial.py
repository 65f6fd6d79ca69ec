"""Data-parallel nests whose operands lie along another axis than the result: by blocks, every element once."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernel_tools import Kernel, KernelError

from supple.base import dtypes
from supple.base.target import host, target
from supple.codegen.kernel import emit_kernel
from supple.codegen.llvm import optimize, parse, target_machine
from supple.interp.loops import run_prim_func
from supple.ir.expr import BufferLoad
from supple.ir.loop import Buffer, PrimFunc
from supple.schedule import loops as L
from supple.schedule.default import schedule_func
from supple.schedule.turn import depth_of, turned
from supple.script import from_source

HEAD = "from supple.script import tirx as T\n\n"

PROGRAM = """
@T.prim_func(private=True)
def f(x: T.handle, y: T.handle, z: T.handle):
    L, M, N = T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, {shape}, "{dtype}")
    Y = T.match_buffer(y, (L, M, N), "{dtype}")
    Z = T.match_buffer(z, (L, M, N), "{dtype}")
    for l, i, j in T.grid(L, M, N):
        with T.sblock("z"):
            vl, vi, vj = T.axis.remap("SSS", [l, i, j])
            Z[vl, vi, vj] = {value}
"""
AXES = {"l": "L", "i": "M", "j": "N"}
SIZES = [(0, 3, 2), (1, 1, 1), (2, 16, 8), (3, 17, 9), (1, 33, 7), (5, 15, 31), (2, 1, 40), (1, 40, 1)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16"])
@pytest.mark.parametrize("order", ["lji", "jil", "ijl", "jli", "ilj"])
@pytest.mark.parametrize("plus", [True, False])
def test_permuted_operands(order: str, dtype: str, plus: bool) -> None:
    at = f"X[{', '.join(f'v{a}' for a in order)}]"
    shape = f"({', '.join(AXES[a] for a in order)})"
    value = f"{at} - Y[vl, vi, vj]" if plus else at
    func = from_source(HEAD + PROGRAM.format(shape=shape, dtype=dtype, value=value))
    kernel = Kernel(func.with_attr("tirx.noalias", True), distrust=dtype == "float32")
    in_blocks = re.search(r"_o\w* in T.parallel", kernel.scheduled.script()) is not None
    assert in_blocks == (order[-1] != "j")
    for extents in SIZES:
        sizes = dict(zip("lij", extents, strict=True))
        rng = np.random.default_rng(sum(extents))
        x = rng.integers(-50, 50, [sizes[a] for a in order]).astype(dtype)
        y = rng.integers(-50, 50, extents).astype(dtype)
        z = np.full(extents, 77, dtype)
        kernel(x, y, z)
        expected = np.einsum(f"{order}->lij", x)
        np.testing.assert_array_equal(z, expected - y if plus else expected)


@pytest.mark.parametrize("m", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("n", [1, 8, 21])
def test_known_sizes(m: int, n: int) -> None:
    source = f"""
@T.prim_func(private=True)
def f(X: T.Buffer(({n}, {m}), "float32"), Z: T.Buffer(({m}, {n}), "float32")):
    for i, j in T.grid({m}, {n}):
        with T.sblock("z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = X[vj, vi]
"""
    x = np.arange(m * n, dtype="float32").reshape(n, m)
    z = np.full((m, n), -1, "float32")
    Kernel(from_source(HEAD + source), distrust=True)(x, z)
    np.testing.assert_array_equal(z, x.T)


CROSSED = """
@T.prim_func(private=True)
def f(X: T.Buffer((37, 53), "{kind}"), W: T.Buffer((53, 37), "{other}"), P: T.Buffer((53, 37), "int32"),
      Z: T.Buffer((53, 37), "float32")):
    for i, j in T.grid(53, 37):
        with T.sblock("z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = {value}
"""


@pytest.mark.parametrize(("value", "kind", "other", "turns"), [
    ("X[vj, vi] + W[vi, vj]", "float32", "float32", True),
    ("T.Cast('float32', X[vj, vi]) * W[vi, vj]", "float16", "float32", True),
    ("T.Cast('float32', X[vj, vi])", "bfloat16", "float32", True),
    ("T.Cast('float32', X[vj, vi])", "float8_e4m3fn", "float32", True),
    ("T.Select(X[vj, vi] < X[T.min(vj + 1, 36), vi], X[vj, vi], W[vi, vj])", "float32", "float32", True),
    ("X[P[vi, vj] % 37, vi]", "float32", "float32", True),
    ("T.Cast('float32', X[vj, vi]) + T.Cast('float32', W[vi, vj])", "float64", "float32", True),
    ("T.Cast('float32', X[vj, vi])", "bool", "float32", False),
    ("T.if_then_else(vj > 0, X[T.max(vj - 1, 0), vi], T.float32(0))", "float32", "float32", False),
    ("T.if_then_else(vj < 20, X[vj + 17, vi], T.float32(0))", "float32", "float32", False),
])  # fmt: skip
@pytest.mark.parametrize("cpu", ["", " -mcpu=x86-64"])
def test_what_lies_across_is_turned_in_registers(value: str, kind: str, other: str, turns: bool, cpu: str) -> None:
    func = from_source(HEAD + CROSSED.format(value=value, kind=kind, other=other))
    kernel = Kernel(func.with_attr("tirx.noalias", True), target=target(f"llvm{cpu}"))
    assert ("T.Shuffle" in kernel.scheduled.script()) == turns
    rng = np.random.default_rng(4)
    x = rng.integers(0, 2 if kind == "bool" else 9, (37, 53)).astype(dtypes.to_numpy(kind))
    args = x, rng.standard_normal((53, 37)).astype(other), rng.integers(0, 1000, (53, 37)).astype("int32")
    found, written, scheduled = (np.full((53, 37), 7, "float32") for _ in range(3))
    kernel(*args, found)
    run_prim_func(func, [*args, written])
    run_prim_func(kernel.scheduled, [*args, scheduled])
    np.testing.assert_array_equal(found, written)
    np.testing.assert_array_equal(scheduled, written)


@pytest.mark.parametrize(("cpu", "lanes"), [("x86-64", 4), ("x86-64-v3", 8), ("x86-64-v4", 16)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int8"])
def test_turned(cpu: str, lanes: int, dtype: str) -> None:
    on = target(f"llvm -mcpu={cpu}")
    lanes = lanes * 4 // dtypes.nbytes(dtype)
    depth = depth_of(dtype, lanes)
    assert depth == 16 // dtypes.nbytes(dtype) <= lanes
    x = Buffer("X", (L.number(lanes), L.number(depth)), dtype)
    z = Buffer("Z", (L.number(depth), L.number(lanes)), dtype)
    made = turned(dtype, lanes, depth, lambda lane, k: BufferLoad(x, (lane, k)))
    body = L.block(made.fill, L.unrolled("k", depth, lambda k: L.vectorized(
        "lane", lanes, lambda lane: L.store(z, (k, lane), made.at(k, lane)))))  # fmt: skip
    func = PrimFunc((x, z), body)
    values = np.arange(lanes * depth).reshape(lanes, depth).astype(dtype)
    found = np.zeros((depth, lanes), dtype)
    run_prim_func(func, [values, found])
    np.testing.assert_array_equal(found, values.T)
    machine, module = target_machine(on), parse(emit_kernel(func, "kernel", on, []).llvm_text)
    optimize(module, machine)
    code = machine.emit_assembly(module)
    mixing = re.findall(r"^\s+v?(?:\w*unpck|pinsr|insert|\w*perm|\w*shuf)\w*", code, re.MULTILINE)
    rounds = depth.bit_length() - 1
    assert 0 < len(mixing) <= depth * (rounds + lanes // depth - 1)  # for each vector, not for each element
    if lanes * dtypes.nbytes(dtype) <= host().vector_bits // 8:
        native = np.zeros((depth, lanes), dtype)
        Kernel(func, schedule=False, target=on)(values, native)
        np.testing.assert_array_equal(native, values.T)


@pytest.mark.parametrize(("value", "once"), [
    ("T.tanh(X[v_i, v_j] - T.log(T.exp(S[v_i]) + T.float32(1))) * T.log(S[v_i] * S[v_i])", 2),
    ("X[v_i, v_j] * T.if_then_else(v_i > 0, T.log(S[v_i] * S[v_i]), T.float32(2))", 0),  # read in some rows only
    ("T.exp(X[v_i, v_j] - S[v_i])", 0),
])  # fmt: skip
def test_functions_of_what_stays_the_same_are_called_once(value: str, once: int) -> None:
    func = from_source(
        HEAD
        + f"""
@T.prim_func(private=True)
def f(x: T.handle, s: T.handle, z: T.handle):
    m, n = T.int64(), T.int64()
    X = T.match_buffer(x, (m, n), "float32")
    S = T.match_buffer(s, (m,), "float32")
    Z = T.match_buffer(z, (m, n), "float32")
    for i, j in T.grid(m, n):
        with T.sblock("z"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            Z[v_i, v_j] = {value}
"""
    )
    kernel, written = Kernel(func), Kernel(func, schedule=False)
    assert kernel.scheduled.script().count("T.let = ") == once
    for m, n in ((0, 3), (3, 0), (1, 1), (2, 7), (5, 8), (3, 33)):
        rng = np.random.default_rng(m * 100 + n)
        x, s = (rng.standard_normal(shape).astype("float32") for shape in ((m, n), (m,)))
        found, expected = np.zeros((m, n), "float32"), np.zeros((m, n), "float32")
        kernel(x, s, found)
        written(x, s, expected)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("index", ["I[vi]", "T.Select(I[vi] < 0, I[vi] + N, I[vi])"])
def test_rows_that_an_operand_chooses(index: str) -> None:
    """Their places are checked as they run, once for a vector; what is in between is read in vectors."""
    func = from_source(
        HEAD
        + f"""
@T.prim_func(private=True)
def f(x: T.handle, i: T.handle, y: T.handle):
    K, M, N = T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (N, M, 2), "float32")
    I = T.match_buffer(i, (K,), "int64")
    Y = T.match_buffer(y, (K, M, 2), "float32")
    for k, m, c in T.grid(K, M, 2):
        with T.sblock("y"):
            vi, vm, vc = T.axis.remap("SSS", [k, m, c])
            Y[vi, vm, vc] = X[{index}, vm, vc] * T.float32(2)
"""
    )
    assert "T.vectorized(T.int64(8))" in schedule_func(func, target("llvm -mcpu=haswell")).script()
    kernel = Kernel(func)
    x = np.random.default_rng(0).standard_normal((5, 11, 2)).astype("float32")
    for places in ([], [0], [4, 0, 4, 2]):
        y = np.zeros((len(places), 11, 2), "float32")
        kernel(x, np.array(places, "int64"), y)
        np.testing.assert_array_equal(y, x[places] * 2)
    for wrong in ([5], [0, 2**40], [-6]):
        with pytest.raises(KernelError, match="5"):
            kernel(x, np.array(wrong, "int64"), np.zeros((len(wrong), 11, 2), "float32"))
