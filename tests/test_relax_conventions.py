"""What is built otherwise while scripts written for TVM run (`supple.ir.conventions`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import supple
from supple import relax, te, tirx, topi
from supple.ir.conventions import RELAX, SUPPLE, set_conventions
from supple.relax import analysis
from supple.relax.analysis import BaseCheckResult
from supple.script import tirx as T

op = relax.op


@pytest.fixture
def conventions() -> Iterator[None]:
    set_conventions(RELAX)
    yield
    set_conventions(SUPPLE)


def x(*shape: Any, name: str = "x") -> relax.Var:
    return relax.Var(name, relax.TensorType(shape, "float32"))


def number(value: int) -> tirx.IntImm:
    return tirx.IntImm("int32", value)


FOLDED = {
    "comparisons": lambda a: [a < 5, a <= 3, a > 3, a >= 5, a.equal(4), a != 4],
    "extrema": lambda a: [T.min(a, 3), T.max(a, 3)],
    "division": lambda a: [T.floordiv(a, 3), T.floormod(a, 3), T.truncdiv(a, -3), T.truncmod(a, -3), T.ceildiv(a, 3)],
    "bits": lambda a: [a << 1, a >> 1, a & 6, a | 1, a ^ 5],
    "choice": lambda a: [T.if_then_else(a < 5, a, 9)],
}
VALUES = {
    "comparisons": [True, False, True, False, True, False],
    "extrema": [3, 4],
    "division": [1, 1, -1, 1, 2],
    "bits": [8, 2, 4, 5, 1],
    "choice": [4],
}


@pytest.mark.parametrize("kind", FOLDED)
def test_numbers_are_computed(conventions: None, kind: str) -> None:
    made = FOLDED[kind](number(4))
    assert all(isinstance(e, tirx.IntImm) for e in made), made
    assert [bool(e.value) if e.dtype == "bool" else e.value for e in made] == VALUES[kind]


def test_what_has_no_value_is_built(conventions: None) -> None:
    i = tirx.Var("i", "int32")
    assert isinstance(number(4) // 0, tirx.FloorDiv) and isinstance(number(1) << 40, supple.ir.expr.Call)
    assert isinstance(tirx.IntImm("int32", 2**31 - 1) + 1, tirx.Add)
    assert T.max(i, i) is i and i << 0 is i
    assert tirx.all(number(4) < 5, i < 3).script() == "i < 3" and tirx.any(number(4) < 5, i < 3).value == 1
    assert T.float32(2.0).equal(T.float32(2.0)).value == 1


def test_nothing_is_computed_otherwise() -> None:
    assert isinstance(number(4) < 5, tirx.LT) and isinstance(T.max(number(4), 3), tirx.Max)


def test_texts_name_what_would_be_computed() -> None:
    i = tirx.Var("i", "int32")
    for e in (
        tirx.Add(number(3), number(1)),
        tirx.Mul(i, number(1)),
        tirx.LT(number(3), number(1)),
        tirx.Add(number(0), i),
    ):
        assert f"T.{type(e).__name__}(" in e.script(style="relax")
        assert f"T.{type(e).__name__}(" not in e.script(style="supple")
    assert (i + 1).script(style="relax").endswith("i + 1") and (0 - i).script(style="relax").endswith("0 - i")


def test_formulas_are_simplified_and_scalars_are_parameters(conventions: None) -> None:
    n = te.var("n")
    a = te.placeholder((16,), name="A")
    b = te.compute((16,), lambda i: te.if_then_else(i > 2, a[i + 8 - 16], 0.0) + n, "B", attrs={"k": 1})
    func = te.create_prim_func([n, a, b])
    assert [p.name for p in func.params] == ["n", "A", "B"]
    text = func.script()
    assert "2 < v_i" in text and "A[v_i - 8]" in text and 'T.sblock_attr({"k": 1})' in text
    scalar = te.placeholder((), name="s")
    one = te.create_prim_func([scalar, te.compute((), lambda: scalar() + 1.0, "r")]).body.block.body.block
    assert [iv.dom.extent.value for iv in one.iter_vars] == [1]


def test_sizes_are_arguments_of_compute_definitions(conventions: None) -> None:
    n = tirx.Var("n", "int64")
    bb, a = relax.BlockBuilder(), x(n)

    def widened(t: Any) -> Any:
        return te.compute((n * 2 + 1,), lambda i: t[i % n] + (n + 1).astype("float32"), "w")

    with bb.function("main", [a]):
        v = bb.emit_te(widened, a, name_hint="wide")
        s = bb.emit_te(topi.sum, v)
        bb.emit_func_output((v, s))
    mod = bb.get()
    assert (
        v.name == "wide"
        and "tir_vars" not in mod.script()
        and len(mod["main"].body.blocks[0].bindings[0].value.args) == 2
    )
    rows = np.arange(3, dtype="float32")
    wide, total = supple.compile(mod, results="numpy")["main"](rows)
    np.testing.assert_array_equal(wide, rows[np.arange(7) % 3] + 4)
    np.testing.assert_allclose(total, wide.sum())


def test_types_of_functions_relate_as_tuples(conventions: None) -> None:
    exact, known = relax.TensorType((2,), "float32"), relax.TensorType(None, "float32", 1)
    narrow, wide = relax.FuncType([exact], exact), relax.FuncType([known], exact)
    assert analysis.type_base_check(wide, narrow) == BaseCheckResult.PASS
    assert analysis.type_base_check(narrow, wide) == BaseCheckResult.FAIL_L2
    assert analysis.type_lca(narrow, wide) == wide
    assert analysis.type_base_check(narrow, relax.FuncType([], exact)) == BaseCheckResult.FAIL_L0
    opaque = analysis.type_lca(narrow, relax.FuncType([], exact))
    assert isinstance(opaque, relax.FuncType) and opaque.params is None and opaque.ret == exact


def test_types_of_functions_relate_as_callers_need_otherwise() -> None:
    exact, known = relax.TensorType((2,), "float32"), relax.TensorType(None, "float32", 1)
    narrow, wide = relax.FuncType([exact], exact), relax.FuncType([known], exact)
    assert analysis.type_base_check(narrow, wide) == BaseCheckResult.PASS
