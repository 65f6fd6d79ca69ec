"""The public compute DSL: ``te.create_prim_func`` on the tensors a user lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import supple
from supple import relax, te


def product() -> list[te.Tensor]:
    n, m = te.var("n"), te.var("m")
    a, b = te.placeholder((n, m), "float32", "A"), te.placeholder((m, 3), "float32", "B")
    k = te.reduce_axis((0, m), "k")
    hidden = te.compute((n, 3), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "H")
    return [a, b, te.compute((n, 3), lambda i, j: te.max_value("float32") * 0.0 + te.tanh(hidden[i, j]), "C")]


@pytest.mark.parametrize(("n", "m"), [(0, 2), (1, 1), (5, 7)])
def test_a_prim_func_of_listed_tensors_runs(n: int, m: int) -> None:
    func = te.create_prim_func(product(), "main")
    assert isinstance(func, supple.tirx.PrimFunc)
    run = supple.compile(supple.IRModule({"main": func}))["main"]
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((n, m), dtype="float32"), rng.standard_normal((m, 3), dtype="float32")
    c = np.empty((n, 3), "float32")
    run(a, b, c)
    np.testing.assert_allclose(c, np.tanh(a @ b), rtol=1e-5, atol=1e-6)


def test_lists_that_make_no_function_are_refused() -> None:
    a, b, c = product()
    for tensors, message in (
        ([a, c], "B is read but not listed"),
        ([a, b], "none of the tensors is computed"),
        ([a, c, b], "inputs before the outputs"),
        ([a, b, 3], "expected te tensors"),
    ):
        with pytest.raises(TypeError, match=message):
            te.create_prim_func(tensors)  # type: ignore[arg-type] # one of them on purpose


def test_any_and_all_are_conditions() -> None:
    a = te.placeholder((8,), "int32", "A")
    c = te.compute((8,), lambda i: te.if_then_else(te.all(a[i] > 1, te.any(a[i] < 3, a[i] == 6)), a[i], -1), "C")
    run = supple.compile(supple.IRModule({"main": te.create_prim_func([a, c])}))["main"]
    values, out = np.arange(8, dtype="int32"), np.empty(8, "int32")
    run(values, out)
    assert out.tolist() == [-1, -1, 2, -1, -1, -1, 6, -1]


def test_emit_te_searches_lists_mappings_and_tuples() -> None:
    tensor = relax.TensorType((3, 4), "float32")
    x, y, t = relax.Var("x", tensor), relax.Var("y", tensor), relax.Var("t", relax.TupleType([tensor, tensor]))

    def formula(nested: list[Any], pair: list[te.Tensor], scale: dict[str, te.Tensor]) -> te.Tensor:
        (a, b), c = nested
        return te.compute((3, 4), lambda i, j: a[i, j] * b[i, j] + c[i, j] * scale["by"][i, j] - pair[1][i, j])

    builder = relax.BlockBuilder()
    with builder.function("main", [x, y, t]):
        with builder.dataflow():
            out = builder.emit_output(builder.call_te(formula, [(x, y), y], t, scale={"by": x}))
        builder.emit_func_output(out)
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, 3, 4), dtype="float32")
    run = supple.compile(builder.get())["main"]
    np.testing.assert_allclose(run(a, b, (c, a)), a * b + b * a - a, rtol=1e-6)


def test_a_tensor_that_is_given_twice_is_two_parameters_and_names_go_on_counting() -> None:
    def twice(a, b):  # type: ignore[no-untyped-def]
        return te.compute(a.shape, lambda *i: a(*i) + b(*i), name="f")

    builder = relax.BlockBuilder()
    for name in ("first", "second"):
        x = relax.Var("x", relax.TensorType((4,), "float32"))
        with builder.function(name, [x]):
            y = builder.emit_te(twice, x, x)
            builder.emit_func_output(builder.emit_te(twice, y, x))
    mod = builder.get()
    loops = [f for f in mod.functions.values() if isinstance(f, supple.tirx.PrimFunc)]
    assert len(loops) == 1 and len(loops[0].params) == 3
    bound = [b.var.name for name in ("first", "second") for block in mod[name].body.blocks for b in block.bindings]
    assert bound == ["gv", "gv1", "gv2", "gv3"]
    data = np.arange(4, dtype="float32")
    vm = supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())
    np.testing.assert_array_equal(vm["second"](data), 3 * data)


def test_axes_slices_and_conditions() -> None:
    a = te.placeholder((4, 8), name="A")
    r = te.reduce_axis((0, 8), "r")
    b = te.compute((4,), lambda i: te.max(a[i][r], axis=r, where=a[i, r] < 3.0), "B")
    assert [(axis.var.name, axis.dom.extent.value, int(axis.iter_type)) for axis in b.op.axis] == [("i", 4, 0)]
    assert int(b.op.reduce_axis[0].iter_type) == 2 and b.op.reduce_axis[0].thread_tag == ""
    rows = np.arange(32, dtype="float32").reshape(4, 8)
    found = np.empty(4, "float32")
    supple.compile(te.create_prim_func([a, b]))(rows, found)
    np.testing.assert_array_equal(found, [2.0, -np.inf, -np.inf, -np.inf])
    several = te.compute((2, 3, 4), lambda first, *rest: a[rest[0], first], "C")
    assert [axis.var.name for axis in several.op.axis] == ["first", "i0", "i1"]


def test_axes_stand_for_their_variables_in_arithmetic() -> None:
    a = te.placeholder((10,), name="A")
    r = te.reduce_axis((0, 3), "r")
    b = te.compute(
        (4,), lambda i: te.sum(te.if_then_else(r < 2, a[i + r * 2], a[2 * r + i - 1]) * r.astype("float32"), r), "B"
    )
    data, found = np.arange(10, dtype="float32"), np.empty(4, "float32")
    supple.compile(te.create_prim_func([a, b]))(data, found)
    np.testing.assert_array_equal(found, [data[i + 2] + 2 * data[i + 3] for i in range(4)])
    assert (r // 2).script(style="relax").endswith("r // 2") and (1 - r).script(style="relax").endswith("1 - r")
    assert te.max(r, 1).script(style="relax").endswith("T.max(r, 1)")
