"""Constant right operands of contractions are packed while compiling: the same bits as without, for every row count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import supple
from supple import driver
from supple.base.target import host
from supple.ir.graph import Constant
from supple.ir.loop import PrimFunc, buffer_type
from supple.ir.module import IRModule
from supple.ir.structural import assert_structural_equal
from supple.ir.walk import pre_order
from supple.passes.bind_params import bind_params
from supple.passes.dead_code import dead_code
from supple.passes.legalize import legalize
from supple.passes.pack_constants import pack_constants
from supple.schedule.tiles import tiles
from supple.script import from_source
from supple.verify.well_formed import check_module

ROWS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 17, 64)


def dense(k: int, n: int, dtype: str = "float32", transposed: bool = False, out: str = "") -> IRModule:
    shape, right = ((n, k), "R.permute_dims(w)") if transposed else ((k, n), "w")
    bias = f'R.Tensor(({n},), "{out or dtype}")'
    made = from_source(f"""
from supple.script import ir as I, relax as R, tirx as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("m", {k}), "{dtype}"), w: R.Tensor({shape}, "{dtype}"), b: {bias}):
        with R.dataflow():
            lv = R.add(R.matmul(x, {right}, out_dtype="{out or dtype}"), b)
            gv = R.nn.relu(lv)
            R.output(gv)
        return gv
""")
    assert isinstance(made, IRModule)
    return made


def entry(mod: IRModule) -> Any:
    return supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())["main"]


def values(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(sum(shape))
    if dtype.startswith("int"):
        return rng.integers(-50, 50, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


CASES = [(1, 1, "float32"), (7, 5, "float32"), (13, 16, "float32"), (8, 17, "float32"), (31, 130, "float32"),
         (9, 64, "float32"), (5, 40, "float64"), (6, 33, "int32"), (1100, 24, "float32")]  # fmt: skip


@pytest.mark.parametrize(("k", "n", "dtype"), CASES)
def test_bits_are_those_of_the_unbound_program(k: int, n: int, dtype: str) -> None:
    mod = dense(k, n, dtype)
    w, b = values((k, n), dtype), values((n,), dtype)
    free, bound = entry(mod), entry(bind_params(mod, "main", {"w": w, "b": b}))
    x = values((max(ROWS), k), dtype)
    whole = free(x, w, b)
    for m in ROWS:
        out = bound(x[:m].copy())
        assert out.tobytes() == free(x[:m].copy(), w, b).tobytes()
        assert out.tobytes() == whole[:m].tobytes()


def test_transposed_weights_and_wider_sums() -> None:
    w, b = values((20, 12), "float32"), values((20,), "float32")
    bound = entry(bind_params(dense(12, 20, transposed=True), "main", {"w": w, "b": b}))
    x = values((9, 12), "float32")
    np.testing.assert_allclose(bound(x), np.maximum(x @ w.T + b, 0), rtol=1e-5, atol=1e-5)
    w8, b32 = values((12, 20), "int8"), values((20,), "int32")
    wide = entry(bind_params(dense(12, 20, "int8", out="int32"), "main", {"w": w8, "b": b32}))
    x8 = values((9, 12), "int8")
    exact = np.maximum(x8.astype("int32") @ w8.astype("int32") + b32, 0)
    np.testing.assert_array_equal(wide(x8), exact)


def test_the_program_reads_panels() -> None:
    w, b = values((8, 20), "float32"), values((20,), "float32")
    mod = legalize(bind_params(dense(8, 20), "main", {"w": w, "b": b}))
    made = dead_code(pack_constants(mod, host()))
    check_module(made)
    assert_structural_equal(from_source(made.script(show_meta=True)), made)
    width = tiles(host(), "float32")[0].columns
    func = made["matmul_packed"]
    assert isinstance(func, PrimFunc)
    assert [d.value for d in buffer_type(func.params[1]).shape] == [-(-20 // width), 8, width]
    constants = [n.data for n in pre_order(made["main"]) if isinstance(n, Constant) and n.data.ndim == 3]
    assert len(constants) == 1
    flat = constants[0].transpose(1, 0, 2).reshape(8, -1)
    np.testing.assert_array_equal(flat[:, :20], w)
    assert not flat[:, 20:].any()
    lowered = driver.lower(bind_params(dense(8, 20), "main", {"w": w, "b": b}))
    assert "packed" not in "".join(f.script() for f in lowered.functions.values() if isinstance(f, PrimFunc))


def test_operands_that_are_used_otherwise_stay() -> None:
    mod = from_source("""
from supple.script import ir as I, relax as R, tirx as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("m", 4), "float32"), w: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.matmul(w, w)
            c = R.matmul(a, b)
            R.output(c)
        return c
""")
    w = values((4, 4), "float32")
    run = entry(bind_params(mod, "main", {"w": w}))
    x = values((3, 4), "float32")
    np.testing.assert_allclose(run(x), x @ w @ (w @ w), rtol=1e-4, atol=1e-4)
