"""Data-parallel nests whose operands lie along another axis than the result: by blocks, every element once."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernel_tools import Kernel

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
