"""Structural equality and hash: the same up to the names of what is bound."""

from __future__ import annotations

import numpy as np
import pytest

from supple.ir.expr import FloatImm, IntImm, Var, const
from supple.ir.graph import constant
from supple.ir.loop import Evaluate, For, ForKind, SeqStmt
from supple.ir.module import IRModule
from supple.ir.structural import assert_structural_equal, structural_equal, structural_hash
from supple.ir.types import FuncType, PrimType, TensorType, prim_type
from supple.script import from_source
from supple.script import relax as R
from supple.script import tirx as T

BASE = """
@T.prim_func
def f(A: T.Buffer(("n", 4), "float32"), B: T.Buffer(("n", 4), "float32")):
    n = T.int64()
    for i in range(n):
        with T.sblock("b"):
            v = T.axis.spatial(n, i)
            B[v, 0] = A[v, 1] * T.float32(2)
"""


def same(a, b) -> bool:
    equal = structural_equal(a, b)
    assert structural_equal(b, a) == equal
    if equal:
        assert structural_hash(a) == structural_hash(b)
        assert_structural_equal(a, b)
    return equal


def test_renaming_does_not_matter():
    renamed = (
        BASE.replace("A", "X")
        .replace("v", "w")
        .replace('"b"', '"name"')
        .replace("for i", "for k")
        .replace("n, i", "n, k")
    )
    renamed = (
        renamed.replace('"n"', '"m"')
        .replace("n = ", "m = ")
        .replace("range(n)", "range(m)")
        .replace("(n, k)", "(m, k)")
    )
    assert same(from_source(BASE), from_source(renamed))


@pytest.mark.parametrize(
    "old, new",
    [
        ("float32(2)", "float32(3)"),
        ("A[v, 1]", "B[v, 1]"),
        ("B[v, 0] =", "A[v, 0] ="),
        ("A[v, 1] *", "A[v, 1] +"),
        ("range(n)", "T.parallel(n)"),
        ("spatial", "reduce"),
        ('B: T.Buffer(("n", 4)', 'B: T.Buffer(("m", 4)'),
        ("@T.prim_func", "@T.prim_func(private=True)"),
        ("            B[v", "            T.sblock_attr({'a': 1})\n            B[v"),
        ("A[v, 1]", "A[v, T.int64(1)]"),
    ],
)
def test_differences(old, new):
    assert old in BASE
    assert not same(from_source(BASE), from_source(BASE.replace(old, new)))


def test_the_mismatch_names_its_path():
    with pytest.raises(ValueError) as caught:
        assert_structural_equal(from_source(BASE), from_source(BASE.replace("float32(2)", "float32(3)")))
    text = str(caught.value)
    assert "caused by lhs at <root>.body.block.body.body.block.body.value.b.value" in text and "and rhs at" in text
    assert text.index("T.float32(2.0)") < text.index("^^^") < text.index("T.float32(3.0)")
    assert "2.0 and 3.0" in caught.value.__notes__[0]


def test_free_variables():
    x, y = Var("x", prim_type("int64")), Var("x", prim_type("int64"))
    assert same(x + 1, x + 1)
    assert not same(x + 1, y + 1)
    assert structural_equal(x + 1, y + 1, map_free_vars=True)
    assert structural_hash(x + 1, map_free_vars=True) == structural_hash(y + 1, map_free_vars=True)
    assert not structural_equal(x + x, x + y, map_free_vars=True)
    assert not structural_equal(x + y, x + x, map_free_vars=True)
    z = Var("x", prim_type("int32"))
    assert not structural_equal(x, z, map_free_vars=True)


def test_pairing_goes_both_ways():
    a = from_source("@R.function\ndef f(x: R.Tensor((2,)), y: R.Tensor((2,))):\n    return R.add(x, y)\n")
    b = from_source("@R.function\ndef f(x: R.Tensor((2,)), y: R.Tensor((2,))):\n    return R.add(y, x)\n")
    c = from_source("@R.function\ndef f(x: R.Tensor((2,)), y: R.Tensor((2,))):\n    return R.add(x, x)\n")
    assert not same(a, b) and not same(a, c) and not same(c, a)


def test_floats_compare_by_their_bits():
    nan = float("nan")
    assert same(FloatImm(nan), FloatImm(nan))
    assert not same(FloatImm(0.0), FloatImm(-0.0))
    assert not same(FloatImm(1.0), FloatImm(1.0, "float64"))
    assert same(FloatImm(0.1), FloatImm(float(np.float32(0.1))))
    assert not same(FloatImm(0.1, "float64"), FloatImm(float(np.float32(0.1)), "float64"))
    assert not same(const(1), const(True)) and not same(IntImm(1), IntImm(1, "int64"))


def test_constants_compare_by_bytes():
    assert same(constant([1.0, 2.0]), constant(np.array([1, 2], "float32")))
    assert not same(constant([1, 2]), constant([1.0, 2.0]))
    assert not same(constant(np.zeros((2, 1))), constant(np.zeros((1, 2))))
    assert not same(constant([0.0]), constant([-0.0]))


def test_attributes():
    def func(text):
        return from_source(f"@R.function\ndef f(x: R.Tensor((2,))):\n    R.func_attr({text})\n    return x\n")

    assert same(func("{'a': 1, 'b': 2}"), func("{'b': 2, 'a': 1}"))
    assert not same(func("{'a': 1}"), func("{'a': True}"))
    assert not same(func("{'a': [1]}"), func("{'a': (1,)}"))
    assert not same(func("{'a': 1.0}"), func("{'a': 1}"))
    assert same(func("{'a': float('nan')}"), func("{'a': float('nan')}"))


def test_function_types_bind_their_symbols():
    def ty(name):
        n = Var(name, prim_type("int64"))
        return FuncType((R.Tensor((n,), "float32"),), R.Tensor((n + 1,), "float32"))

    assert same(ty("n"), ty("m"))
    n, m = Var("n", prim_type("int64")), Var("m", prim_type("int64"))
    assert not same(FuncType((R.Tensor((n, m)),), R.Tensor((n,))), FuncType((R.Tensor((n, m)),), R.Tensor((m,))))


def test_a_loop_variable_used_twice():
    """A node that stands at two places binds anew each time, like two nodes."""
    i = Var("i", PrimType("int32"))
    loop = For(i, const(0), const(4), ForKind.SERIAL, Evaluate(i + 1))
    j = Var("j", PrimType("int32"))
    other = For(j, const(0), const(4), ForKind.SERIAL, Evaluate(j + 1))
    assert same(SeqStmt((loop, loop)), SeqStmt((loop, other)))
    assert not same(SeqStmt((loop, Evaluate(i))), SeqStmt((loop, Evaluate(j))))


def test_shared_and_copied_types_hash_alike():
    n = Var("n", prim_type("int64"))
    shared = R.Tensor((n,), "float32")
    a = FuncType((shared, shared), shared)
    b = FuncType((R.Tensor((n,), "float32"), R.Tensor((n,), "float32")), R.Tensor((n,), "float32"))
    assert same(a, b)
    assert isinstance(shared, TensorType)


def test_deep_and_shared_programs():
    x = Var("x", prim_type("int32"))

    def chain():
        e = x
        for _ in range(5_000):
            e = e + 1
        return e

    assert same(chain(), chain())

    def doubled():
        e = x
        for _ in range(200):
            e = e + e  # 2**200 paths
        return e

    assert same(doubled(), doubled())


def test_modules_ignore_order():
    f = from_source(BASE)
    g = from_source(BASE.replace("float32(2)", "float32(3)"))
    assert same(IRModule({"f": f, "g": g}), IRModule({"g": g, "f": f}))
    assert not same(IRModule({"f": f, "g": g}), IRModule({"f": g, "g": f}))
    assert not same(IRModule({"f": f}), IRModule({"g": f}))
    with pytest.raises(ValueError, match="only one side has this"):
        assert_structural_equal(IRModule({"f": f, "g": g}), IRModule({"f": f}))


def test_hashes_do_not_depend_on_the_process():
    assert structural_hash(from_source(BASE)) == structural_hash(from_source(BASE))
    assert structural_hash(constant([1.0])) == structural_hash(constant([1.0]))
    assert T.int64(3) is not T.int64(3)
