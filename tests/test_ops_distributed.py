"""Collective operators and distributed tensors: types for many workers, values for one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import supple
from supple import relax
from supple.base.errors import DiagnosticError, NotSupportedError
from supple.interp.graph import Interpreter
from supple.ir.structural import assert_structural_equal, structural_equal
from supple.relax import distributed as D
from supple.script import from_source
from supple.script import ir as I
from supple.script import relax as R
from supple.script import tirx as T


@I.ir_module
class Placed:
    I.module_global_infos({"mesh": [R.device_mesh((2, 2), I.Range(0, 4)), R.device_mesh((1,), I.Range(4, 5))]})

    @T.prim_func(private=True)
    def half(x: T.Buffer((2, 6), "float32"), y: T.Buffer((2, 6), "float32")):
        for i, j in T.grid(2, 6):
            with T.sblock("half"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(0.5)

    @T.prim_func(private=True)
    def whole(x: T.Buffer((4, 6), "float32"), y: T.Buffer((4, 6), "float32")):
        for i, j in T.grid(4, 6):
            with T.sblock("whole"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(0.5)

    @R.function
    def spread(d: R.dist.DTensor((4, 6), "float32", "mesh[0]", "S[0], R")):
        a = R.dist.call_tir(Placed.whole, (d,), out_ty=R.DTensor((4, 6), "float32", "mesh[0]", "S[0], R"))
        return R.distributed.redistribute(a, device_mesh="mesh[1]", placement="R")

    @R.function
    def main(x: R.Tensor((4, "n"), "float32"), d: R.DTensor((4, 6), "float32", "mesh[0]", "S[0], R")):
        a = R.ccl.allreduce(x, "max")
        b = R.ccl.allgather(x, 2)
        c = R.ccl.broadcast_from_worker0(x)
        e = R.ccl.scatter_from_worker0(x, 2)
        f = R.dist.annotate_sharding(x, device_mesh="mesh[0]", placement="S[1], R")
        g = R.dist.redistribute(d, device_mesh="mesh[1]", placement="R")
        h = R.dist.redistribute_replica_to_shard(x, num_workers=2, axis=1)
        k = R.exp(R.add(d, d))
        m = R.dist.call_tir_local_view(Placed.half, (d,), out_ty=R.DTensor((4, 6), "float32", "mesh[0]", "S[0], R"))
        return (a, b, c, e, f, g, h, k, m)


def test_types_print_and_read_back() -> None:
    found = [str(ty) for ty in Placed["main"].ret_ty.fields]
    tensor, spread = 'R.Tensor((4, n), dtype="float32")', "R.DTensor((4, 6)"
    assert found[0] == found[2] == found[4] == tensor
    assert found[1] == 'R.Tensor((8, n), dtype="float32")'
    assert found[3] == 'R.Tensor((2, n), dtype="float32")'
    assert found[6] == 'R.Tensor((4, n // 2), dtype="float32")'
    assert all(found[i].startswith(spread) for i in (5, 7, 8))
    assert 'placement="S[0], R"' in found[7] and 'placement="R"' in found[5]
    assert 'placement="R"' in str(Placed["spread"].ret_ty)
    assert_structural_equal(from_source(Placed.script()), Placed)


def test_one_worker_computes() -> None:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        a = R.ccl.allreduce(x, "avg")
        b = R.ccl.allgather(a, 1)
        c = R.ccl.scatter_from_worker0(R.ccl.broadcast_from_worker0(b), 1, axis=1)
        return R.dist.redistribute_replica_to_shard(c, num_workers=1, axis=0)

    for rows in (0, 1, 3):
        x = np.arange(rows * 4, dtype="float32").reshape(rows, 4)
        np.testing.assert_array_equal(supple.compile(main)["main"](x), x)
        np.testing.assert_array_equal(Interpreter(main).run("main", x), x)


@pytest.mark.parametrize(
    "text",
    [
        "R.ccl.allgather(x, 2)",
        "R.ccl.scatter_from_worker0(x, 2)",
        "R.dist.redistribute_replica_to_shard(x, num_workers=2, axis=0)",
    ],
)
def test_several_workers_are_refused_when_they_must_run(text: str) -> None:
    program = f"""
from supple.script import relax as R


@R.function
def main(x: R.Tensor((4, 6), "float32")):
    y = {text}
    return y
"""
    func = from_source(program)
    with pytest.raises(NotSupportedError, match="2 workers"):
        supple.compile(func)
    with pytest.raises(NotSupportedError, match="2 workers"):
        Interpreter(func).run("main", np.ones((4, 6), "f4"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('R.ccl.allreduce(x, "median")', "unknown reduction"),
        ("R.ccl.allgather(x, 0)", "at least one worker"),
        ("R.ccl.allgather(s, 2)", "needs an axis"),
        ("R.ccl.scatter_from_worker0(x, 3)", "cannot be divided evenly"),
        ("R.ccl.scatter_from_worker0(x, 2, axis=2)", "axis is out of range"),
        ('R.dist.annotate_sharding(x, device_mesh="mesh[3]", placement="R")', "no mesh"),
        ('R.dist.annotate_sharding(x, device_mesh="mesh[0]", placement="R")', "1 entries for a mesh of 2"),
        ('R.dist.redistribute(x, device_mesh="mesh[0]", placement="R, R")', "takes a distributed tensor"),
        ("R.add(d, x)", "placed alike"),
        ("R.sum(d)", "does not take distributed tensors"),
    ],
)
def test_refusals(call: str, message: str) -> None:
    program = f"""
from supple.script import ir as I, relax as R


@I.ir_module
class Module:
    I.module_global_infos({{"mesh": [R.device_mesh((2, 2), I.Range(0, 4))]}})

    @R.function
    def main(
        x: R.Tensor((4, 6), "float32"),
        s: R.Tensor((), "float32"),
        d: R.DTensor((4, 6), "float32", "mesh[0]", "S[0], R"),
    ):
        y = {call}
        return y
"""
    with pytest.raises(DiagnosticError, match=message):
        from_source(program)


def test_distributed_types_are_built_by_hand() -> None:
    mesh = D.DeviceMesh((2, 2), I.Range(0, 4))
    placement = D.Placement([D.PlacementSpec.sharding(0), D.PlacementSpec.replica()])
    assert (mesh.shape, mesh.device_ids) == ((2, 2), (0, 1, 2, 3)) and mesh.device_range is not None
    assert str(mesh) == "R.device_mesh((2, 2), I.Range(0, 4))" and str(D.DeviceMesh([2], [5, 7])).endswith("(5, 7))")
    assert placement == "S[0], R" == D.Placement.from_text(" S[0] ,R") == D.Placement("S[0],R")
    assert [(s.kind, s.axis) for s in placement.dim_specs] == [(0, 0), (1, -1)]
    tensor = relax.TensorType((4, 4), "float32")
    made = D.DTensorType(tensor, mesh, placement)
    assert isinstance(made.placement, D.Placement) and structural_equal(made, D.DTensorType(tensor, mesh, "S[0], R"))
    assert not structural_equal(made, D.DTensorType(tensor, mesh, "R, S[0]"))

    bb = relax.BlockBuilder()
    x, w = relax.Var("x", made), relax.Var("w", tensor)
    with bb.function("main", [x, w]):
        y = bb.emit(relax.op.distributed.redistribute(relax.op.add(x, x), mesh, D.Placement.from_text("R, S[1]")))
        bb.emit(relax.op.distributed.annotate_sharding(w, D.DeviceMesh((2,), [4, 5]), D.Placement("S[1]")))
        bb.emit_func_output(y)
    mod = bb.get()
    alone = mod.script()
    assert "device_mesh=R.device_mesh((2,), (4, 5))" in alone and structural_equal(from_source(alone), mod)
    mod.update_global_info("mesh", [mesh, D.DeviceMesh((2,), [4, 5])])
    for style in ("supple", "relax"):
        text = mod.script(style=style)
        assert 'device_mesh="mesh[1]", placement="S[1]"' in text
        assert structural_equal(from_source(text), mod), style


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t, m: D.DTensorType(t, m, "S[0]"), "1 entries for a mesh of 2 axes"),
        (lambda t, m: D.DTensorType(t, m, "S[2], R"), r"S\[2\] splits an axis that a tensor of 2 has not"),
        (lambda t, m: D.Placement.from_text("S"), "expected 'R' or 'S"),
        (lambda t, m: D.Placement.from_text("S[-1]"), "expected 'R' or 'S"),
        (lambda t, m: D.Placement.from_text(""), "expected 'R' or 'S"),
        (lambda t, m: D.PlacementSpec.sharding(-1), "counts from 0"),
        (lambda t, m: D.DeviceMesh((2, 2), [0, 1]), "has 4 places, but 2 devices"),
    ],
)
def test_distributed_types_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(relax.TensorType((4, 4), "float32"), D.DeviceMesh((2, 2), I.Range(0, 4)))
