"""The dtypes of indices and sizes in the compute DSL: Python ints are int32, the graph's sizes are int64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import supple
from supple import relax, te, tirx, topi
from supple.ir.structural import assert_structural_equal
from supple.script import from_source

Program = Callable[[], list[te.Tensor]]


def _wide(name: str) -> tirx.Var:
    return tirx.Var(name, "int64")


def _product() -> list[te.Tensor]:
    a, k = te.placeholder((128, 64), name="A"), te.reduce_axis((0, 64), "k")
    return [a, te.compute((128, 128), lambda i, j: te.sum(a[i, k] * a[j, k], axis=k), name="C")]


def _rows(n: object) -> list[te.Tensor]:
    x = te.placeholder((n, 4), name="X")
    return [x, te.compute((n, 4), lambda i, j: x[i, j] + 1.0, name="Y")]


def _mixed() -> list[te.Tensor]:
    m = _wide("m")
    x = te.placeholder((m, 4), name="X")
    return [x, te.compute((m, 4), lambda i, j: x[i, j] + tirx.Cast("float32", i + j), name="Y")]


def _flat() -> list[te.Tensor]:
    m = _wide("m")
    x = te.placeholder((m, 4), name="X")
    return [x, te.compute((m * 4,), lambda i: x[i // 4, i % 4], name="Y")]


def _columns() -> list[te.Tensor]:
    x = te.placeholder((4, 8), name="X")
    return [x, te.compute((4,), lambda i: x[i, 0] + x[i, 7], name="Y")]


def _of(function: Callable[[te.Tensor], te.Tensor]) -> list[te.Tensor]:
    x = te.placeholder((4, 8), name="X")
    return [x, function(x)]


def _added() -> list[te.Tensor]:
    x, b = te.placeholder((4, 8), name="X"), te.placeholder((8,), name="B")
    return [x, b, topi.add(x, b)]


def _block(params: str, grid: str, kinds: str, store: str, init: str = "", symbols: str = "") -> str:
    loops, extents = grid.split(" in ")
    axes = "".join(
        f"            v{n} = T.axis.{'reduce' if kind == 'R' else 'spatial'}({extent.strip()}, {loop.strip()})\n"
        for n, (kind, loop, extent) in enumerate(zip(kinds, loops.split(","), extents.split(","), strict=True))
    )
    started = f"            with T.init():\n                {init}\n" if init else ""
    declared = f"    {symbols}\n" if symbols else ""
    return (
        f"@T.prim_func(s_tir=True)\ndef main({params}):\n{declared}"
        f'    T.func_attr({{"tirx.noalias": True}})\n'
        f"    for {loops} in T.grid({extents}):\n"
        f'        with T.sblock("{params.rsplit(":", 1)[0].rsplit(",", 1)[-1].strip()}"):\n{axes}{started}'
        f"            {store}\n"
    )


F = '"float32"'
ONE = f"X: T.Buffer((4, 8), {F})"

PROGRAMS: dict[str, tuple[Program, str]] = {
    "product": (
        _product,
        _block(
            f"A: T.Buffer((128, 64), {F}), C: T.Buffer((128, 128), {F})",
            "i, j, k in 128, 128, 64",
            "SSR",
            "C[v0, v1] = C[v0, v1] + A[v0, v2] * A[v1, v2]",
            "C[v0, v1] = T.float32(0)",
        ),
    ),
    "a value made of an index": (
        lambda: [te.compute((10,), lambda i: i * 2, name="Y")],
        _block('Y: T.Buffer((10,), "int32")', "i in 10", "S", "Y[v0] = v0 * 2"),
    ),
    "an int32 symbol": (
        lambda: _rows(te.var("n")),
        _block(
            f'X: T.Buffer(("n", 4), {F}), Y: T.Buffer(("n", 4), {F})',
            "i, j in n, 4",
            "SS",
            "Y[v0, v1] = X[v0, v1] + T.float32(1)",
            symbols="n = T.int32()",
        ),
    ),
    "an int64 symbol": (
        lambda: _rows(_wide("n")),
        _block(
            f'X: T.Buffer(("n", 4), {F}), Y: T.Buffer(("n", 4), {F})',
            "i, j in n, 4",
            "SS",
            "Y[v0, v1] = X[v0, v1] + T.float32(1)",
            symbols="n = T.int64()",
        ),
    ),
    "indices of two dtypes": (
        _mixed,
        _block(
            f'X: T.Buffer(("m", 4), {F}), Y: T.Buffer(("m", 4), {F})',
            "i, j in m, 4",
            "SS",
            'Y[v0, v1] = X[v0, v1] + T.Cast("float32", v0 + T.Cast("int64", v1))',
            symbols="m = T.int64()",
        ),
    ),
    "a size of both": (
        _flat,
        _block(
            f'X: T.Buffer(("m", 4), {F}), Y: T.Buffer(("m * T.int64(4)",), {F})',
            "i in m * T.int64(4)",
            "S",
            "Y[v0] = X[v0 // T.int64(4), v0 % T.int64(4)]",
            symbols="m = T.int64()",
        ),
    ),
    "numbers as indices": (
        _columns,
        _block(f"{ONE}, Y: T.Buffer((4,), {F})", "i in 4", "S", "Y[v0] = X[v0, 0] + X[v0, 7]"),
    ),
    "a size that int32 does not hold": (
        lambda: [te.compute((1 << 32,), lambda i: te.const(1.0, "float32"), name="Y")],
        _block(f"Y: T.Buffer((T.int64(4294967296),), {F})", "i in T.int64(4294967296)", "S", "Y[v0] = T.float32(1)"),
    ),
    "topi.add": (
        _added,
        _block(
            f"{ONE}, B: T.Buffer((8,), {F}), T_add: T.Buffer((4, 8), {F})",
            "i, j in 4, 8",
            "SS",
            "T_add[v0, v1] = X[v0, v1] + B[v1]",
        ),
    ),
    "topi.transpose": (
        lambda: _of(topi.transpose),
        _block(f"{ONE}, T_transpose: T.Buffer((8, 4), {F})", "i, j in 8, 4", "SS", "T_transpose[v0, v1] = X[v1, v0]"),
    ),
    "topi.sum": (
        lambda: _of(lambda x: topi.sum(x, axis=1)),
        _block(
            f"{ONE}, X_red: T.Buffer((4,), {F})",
            "i, k in 4, 8",
            "SR",
            "X_red[v0] = X_red[v0] + X[v0, v1]",
            "X_red[v0] = T.float32(0)",
        ),
    ),
    "topi.full": (
        lambda: [topi.full((3, 4), "float32", 1.0)],
        _block(f"T_full: T.Buffer((3, 4), {F})", "i, j in 3, 4", "SS", "T_full[v0, v1] = T.float32(1)"),
    ),
    "topi.expand_dims": (
        lambda: _of(lambda x: topi.expand_dims(x, 1)),
        _block(
            f"{ONE}, T_expand_dims: T.Buffer((4, 1, 8), {F})",
            "i, j, k in 4, 1, 8",
            "SSS",
            "T_expand_dims[v0, v1, v2] = X[v0, v2]",
        ),
    ),
    "topi.reshape": (
        lambda: _of(lambda x: topi.reshape(x, (32,))),
        _block(f"{ONE}, T_reshape: T.Buffer((32,), {F})", "i in 32", "S", "T_reshape[v0] = X[v0 // 8, v0 % 8]"),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_definition_is_the_function_that_a_program_writes(name: str) -> None:
    program, text = PROGRAMS[name]
    assert_structural_equal(te.create_prim_func(program()), from_source(text))


def test_all_indices_have_the_dtype_that_is_asked_for() -> None:
    wide = _block(
        'Y: T.Buffer((T.int64(10),), "int32")', "i in T.int64(10)", "S", 'Y[v0] = T.Cast("int32", v0 * T.int64(2))'
    )
    program = PROGRAMS["a value made of an index"][0]
    found = te.create_prim_func(program(), index_dtype_override="int64")
    assert_structural_equal(found, from_source(wide))
    narrow = te.create_prim_func(_rows(_wide("n")), index_dtype_override="int32")
    assert_structural_equal(narrow, from_source(PROGRAMS["an int32 symbol"][1]))
    with pytest.raises(TypeError, match="index_dtype_override"):
        te.create_prim_func(program(), index_dtype_override="int8")


def test_the_graph_keeps_int64_whatever_a_formula_says() -> None:
    x = relax.Var("x", relax.TensorType((4, 8), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        y = bb.emit_te(lambda a: te.compute((4, 8), lambda i, j: a[i, j] + tirx.Cast("float32", i * 2 + j)), x)
        bb.emit_func_output(y)
    mod = bb.get()
    text = mod.script()
    assert "T.grid(T.int64(4), T.int64(8))" in text and "range(4" not in text
    given = np.zeros((4, 8), "float32")
    found = np.asarray(supple.compile(mod)["main"](given))
    np.testing.assert_array_equal(found, np.arange(4)[:, None] * 2 + np.arange(8)[None, :])


def test_what_int32_does_not_hold_is_computed_in_int64() -> None:
    made = topi.arange(0, 30_000_000_000, 10_000_000_000, "int64")
    (y,) = [np.empty((3,), "int64")]
    supple.compile(supple.IRModule({"main": te.create_prim_func([made])}))["main"](y)
    assert y.tolist() == [0, 10_000_000_000, 20_000_000_000]
    x = te.placeholder((65536, 65536), name="X")
    assert topi.reshape(x, (1 << 32,)).shape[0].dtype == "int64"


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_statements_over_sizes_of_any_dtype_run(dtype: str) -> None:
    x = te.placeholder((te.var("n", dtype), 4), name="X")
    given, found = np.arange(12, dtype="float32").reshape(3, 4), np.empty((3, 4), "float32")
    func = te.create_prim_func([x, topi.sort(topi.cumsum(x, axis=0), axis=0, is_ascend=False)])
    supple.compile(supple.IRModule({"main": func}))["main"](given, found)
    np.testing.assert_array_equal(found, np.cumsum(given, axis=0)[::-1])
