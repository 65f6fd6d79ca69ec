"""Products of narrow integers, in pairs: every size, layout and extreme against numpy; what each target makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_tools import Kernel

from supple.base.target import host, target
from supple.codegen.kernel import emit_kernel
from supple.codegen.llvm import parse, target_machine
from supple.interp.loops import run_prim_func
from supple.ir.loop import PrimFunc
from supple.schedule.default import schedule_func
from supple.script import from_source

PROGRAM = """
from supple.script import tirx as T

@T.prim_func(private=True)
def f(x: T.handle, w: T.handle, z: T.handle):
    M, N, K = T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (M, K), "{left}")
    W = T.match_buffer(w, {shape}, "{right}")
    Z = T.match_buffer(z, (M, N), "int32")
    for i, j, k in T.grid(M, N, K):
        with T.sblock("product"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Z[vi, vj] = 0
            Z[vi, vj] = Z[vi, vj] + T.Cast("int32", X[vi, vk]) * T.Cast("int32", W[{at}])
"""


def product(left: str, right: str, transposed: bool = False) -> PrimFunc:
    shape, at = ("(N, K)", "vj, vk") if transposed else ("(K, N)", "vk, vj")
    made = from_source(PROGRAM.format(left=left, right=right, shape=shape, at=at))
    assert isinstance(made, PrimFunc)
    return made.with_attr("tirx.noalias", True)


def numbers(rng: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Any numbers, the extremes often."""
    info = np.iinfo(dtype)
    ends = rng.choice(np.array([info.min, info.max], dtype), shape)
    return np.where(rng.random(shape) < 0.5, rng.integers(info.min, info.max, shape, dtype, endpoint=True), ends)


SIZES = [(0, 5, 7), (1, 1, 1), (3, 24, 4), (6, 16, 1), (6, 33, 2), (7, 17, 13), (11, 40, 3), (29, 48, 17), (6, 5, 0),
         (25, 100, 31), (130, 33, 8)]  # fmt: skip


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("left", "right"), [("int8", "int8"), ("uint8", "int8"), ("int16", "int16"), ("int8", "int16"),
                                             ("uint16", "int8")])  # fmt: skip
def test_products_of_narrow_integers(left: str, right: str, transposed: bool) -> None:
    func = product(left, right, transposed)
    kernel = Kernel(func, distrust=True)
    in_pairs = "T.dot_pairs" in kernel.scheduled.script()
    assert in_pairs == (left != "uint16" and host().pair_products is not None)
    for m, n, k in SIZES:
        rng = np.random.default_rng(m * 1000 + n * 10 + k)
        x, w = numbers(rng, (m, k), left), numbers(rng, (n, k) if transposed else (k, n), right)
        z = np.full((m, n), 7, "int32")
        kernel(x, w, z)
        exact = x.astype("int64") @ (w.T if transposed else w).astype("int64")
        np.testing.assert_array_equal(z, exact.astype("int32"))  # modulo 2**32


def test_the_scheduled_program_runs_in_the_interpreter() -> None:
    scheduled = schedule_func(product("int8", "int8"), target("llvm -mcpu=x86-64"))
    assert "T.dot_pairs" in scheduled.script()
    rng = np.random.default_rng(0)
    x, w = numbers(rng, (7, 5), "int8"), numbers(rng, (5, 17), "int8")
    z = np.zeros((7, 17), "int32")
    run_prim_func(scheduled, [x, w, z])
    np.testing.assert_array_equal(z, x.astype("int32") @ w.astype("int32"))


@pytest.mark.parametrize(("spec", "instruction"), [
    ("llvm -mcpu=x86-64", "pmaddwd"), ("llvm -mcpu=haswell", "vpmaddwd"), ("llvm -mcpu=skylake-avx512", "zmm"),
    ("llvm -mcpu=icelake-server", "vpdpwssd"),
])  # fmt: skip
def test_one_instruction_on_every_level(spec: str, instruction: str) -> None:
    on = target(spec)
    text = emit_kernel(schedule_func(product("int8", "int8"), on), "kernel", on, []).llvm_text
    assert instruction in target_machine(on).emit_assembly(parse(text))


def test_other_architectures_multiply_one_by_one() -> None:
    arm = target("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=generic")
    assert "dot_pairs" not in schedule_func(product("int8", "int8"), arm).script()


def test_the_intrinsic() -> None:
    source = """
from supple.script import tirx as T

@T.prim_func(private=True)
def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32")):
    for i in T.{kind}(64):
        C[i] = T.dot_pairs(A[i], B[i])
"""
    rng = np.random.default_rng(1)
    halves = numbers(rng, (2, 64, 2), "int16")
    a, b = halves.view("int32")[..., 0]
    expected = (halves[0].astype("int64") * halves[1]).sum(-1).astype("int32")
    for kind in ("serial", "vectorized"):
        func = from_source(source.format(kind=kind))
        for run in (Kernel(func, schedule=False), lambda *args, func=func: run_prim_func(func, args)):
            c = np.zeros(64, "int32")
            run(a.copy(), b.copy(), c)
            np.testing.assert_array_equal(c, expected)
    with pytest.raises(Exception, match="expected int32"):
        from_source(source.format(kind="serial").replace('"int32"', '"int16"'))
