"""Loop functions that are read and built by Relax's conventions (`supple.ir.conventions`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from supple import te
from supple.base.errors import NotSupportedError
from supple.base.target import host
from supple.codegen.kernel import emit_kernel
from supple.interp.loops import run_prim_func
from supple.ir.loop import AllocBuffer, AssertStmt, Bind, PrimFunc
from supple.ir.print_style import set_default_style
from supple.ir.structural import assert_structural_equal
from supple.ir.walk import post_order
from supple.script import from_source
from supple.script.ir_builder import IRBuilder
from supple.script.ir_builder import tirx as T


@pytest.fixture(autouse=True)
def relax_conventions() -> Iterator[None]:
    set_default_style("relax")
    yield
    set_default_style("supple")


def function(body: str, params: str) -> PrimFunc:
    lines = "\n    ".join(body.split("\n"))
    made = from_source(f"@T.prim_func(s_tir=True)\ndef f({params}):\n    {lines}\n")
    assert isinstance(made, PrimFunc)
    return made


def text(body: str, params: str) -> str:
    """The body's text; the whole text reads back."""
    func = function(body, params)
    printed = func.script()
    assert_structural_equal(from_source(printed), func)
    lines = printed.split(":\n", 1)[1].strip("\n").split("\n")
    return "\n".join(line.removeprefix("    ") for line in lines)


NARROW = (
    'A: T.Buffer((8,), "int8"), C: T.Buffer((8,), "int32"), H: T.Buffer((8,), "float16"), D: T.Buffer((8,), "float64")'
)


@pytest.mark.parametrize(
    "written, printed",
    [
        ("C[0] = A[0] + 1", 'C[0] = T.Cast("int32", A[0]) + 1'),
        ("C[0] = 2 - A[0] * 3", 'C[0] = 2 - T.Cast("int32", A[0]) * 3'),
        ("C[0] = T.max(A[0], 300)", 'C[0] = T.max(T.Cast("int32", A[0]), 300)'),
        ("A[0] = A[0] << 2", "A[0] = A[0] << T.int8(2)"),
        ("A[0] = A[0] & 3", "A[0] = A[0] & T.int8(3)"),
        ("A[0] = T.shift_right(A[0], 3)", "A[0] = A[0] >> T.int8(3)"),
        ("A[0] = T.if_then_else(A[0] == 3, A[0], A[1])", "A[0] = T.if_then_else(A[0] == T.int8(3), A[0], A[1])"),
        ("H[0] = H[0] * 2", "H[0] = H[0] * T.float16(2.0)"),
        ("H[0] = H[0] + 1.5", 'H[0] = T.Cast("float16", T.Cast("float32", H[0]) + T.float32(1.5))'),
        ("D[0] = D[0] + 0.1", "D[0] = D[0] + T.float64(0.10000000000000001)"),
        ("C[0] = T.ceildiv(C[1], 3)", "C[0] = (C[1] + 3 - 1) // 3"),
    ],
)
def test_a_number_has_a_dtype_of_its_own(written: str, printed: str) -> None:
    assert text(written, NARROW) == printed


def test_a_sum_with_a_number_does_not_wrap() -> None:
    func = function("for i in range(8):\n    C[i] = A[i] + 1", 'A: T.Buffer((8,), "int8"), C: T.Buffer((8,), "int32")')
    result = np.zeros(8, "int32")
    run_prim_func(func, [np.full(8, 127, "int8"), result])
    assert (result == 128).all()


def test_a_formula_of_the_users_is_read_so() -> None:
    tensors = [te.placeholder((8,), "int8", "A"), te.placeholder((8,), "float16", "H")]
    assert te.compute((8,), lambda i: tensors[0][i] + 1).dtype == "int32"
    assert te.compute((8,), lambda i: tensors[1][i] * 0.5).dtype == "float32"
    set_default_style("supple")
    assert te.compute((8,), lambda i: tensors[0][i] + 1).dtype == "int8"


CELLS = """x = A[n] + 1.0
y: T.int32
if n > 2:
    y = 3
else:
    y = 4
for i in range(8):
    x = x * 2.0
    z: T.int8 = i
    z = z + 5
    A[i] = x + T.Cast("float32", z)
A[y] = T.Cast("float32", y)"""

CELLS_PRINTED = """x: T.float32 = A[n] + T.float32(1.0)
y: T.int32
if n > 2:
    y = 3
else:
    y = 4
for i in range(8):
    x = x * T.float32(2.0)
    z: T.int8 = T.Cast("int8", i)
    z = T.Cast("int8", T.Cast("int32", z) + 5)
    A[i] = x + T.Cast("float32", z)
A[y] = T.Cast("float32", y)"""


def test_what_is_assigned_to_a_name_is_a_cell() -> None:
    params = 'A: T.Buffer((8,), "float32"), n: T.int32'
    assert text(CELLS, params) == CELLS_PRINTED
    func = function(CELLS, params)
    assert sum(isinstance(n, AllocBuffer) for n in post_order(func)) == 3
    values = np.ones(8, "float32")
    run_prim_func(func, [values, 2])
    expected = [4.0 * 2**i + i + 5 for i in range(8)]
    expected[4] = 4.0
    assert values.tolist() == expected
    assert emit_kernel(func, "f", host(), []).symbols == ()


@pytest.mark.parametrize(
    "written, printed",
    [
        ("x: T.let = n + 1\nA[x] = 0.0", "x: T.let[T.int32] = n + 1\nA[x] = T.float32(0.0)"),
        ("x = T.alloc_scalar('int32')\nx = n\nA[x] = 0.0", "x: T.int32 = n\nA[x] = T.float32(0.0)"),
        ("B = T.alloc_local((1,))\nA[0] = 1.0\nB[0] = A[1]", "B: T.float32\nA[0] = T.float32(1.0)\nB = A[1]"),
        # what a name without brackets could not say keeps them
        ("B = T.alloc_local((1,))\nB[n] = 1.0", "B = T.alloc_local((1,))\nB[n] = T.float32(1.0)"),
        ("B = T.alloc_local((2,))\nB[0] = 1.0", "B = T.alloc_local((2,))\nB[0] = T.float32(1.0)"),
        (
            "B = T.alloc_local((1,))\nT.evaluate(B.data)\nB[0] = 1.0",
            "B = T.alloc_local((1,))\nT.evaluate(B.data)\nB[0] = T.float32(1.0)",
        ),
        (
            "B = T.alloc_local((1,), annotations={'k': 1})\nB[0] = 1.0",
            'B = T.alloc_local((1,), annotations={"k": 1})\nB[0] = T.float32(1.0)',
        ),
        ("B = T.decl_buffer((4,))\nB[0] = 1.0", "B = T.alloc_buffer((4,))\nB[0] = T.float32(1.0)"),
    ],
)
def test_names_and_buffers_of_one_element(written: str, printed: str) -> None:
    assert text(written, 'A: T.Buffer((8,), "float32"), n: T.int32') == printed


def test_a_name_inside_of_a_block_is_a_binding() -> None:
    body = "with T.sblock('b'):\n    v = T.axis.spatial(8, 3)\n    x = A[v]\n    A[v] = x"
    assert any(isinstance(n, Bind) for n in post_order(function(body, 'A: T.Buffer((8,), "float32")')))


@pytest.mark.parametrize(
    "written, printed",
    [
        ("pass", "T.evaluate(0)"),
        ("for i in range(3):\n    pass", "for i in range(3):\n    T.evaluate(0)"),
        ("while n < 3:\n    T.evaluate(T.break_loop())", "while n < 3:\n    T.break_loop()"),
        ("A[0] = A[1] if n > 2 else 0.5", "A[0] = T.if_then_else(n > 2, A[1], T.float32(0.5))"),
        ("for i in T.grid(8, 2):\n    A[i[0]] = 1.0", "for i_0, i_1 in T.grid(8, 2):\n    A[i_0] = T.float32(1.0)"),
        (
            "for i, *j in T.grid(8, 2, 3):\n    A[i] = A[j[0] + j[1]]",
            "for i, j_0, j_1 in T.grid(8, 2, 3):\n    A[i] = A[j_0 + j_1]",
        ),
        ("assert n > 1, 'm'", 'assert n > 1, ("RuntimeError", ["m"])'),
        ("assert n > 1, ('ValueError', ['a', 'b'])", 'assert n > 1, ("ValueError", ["a", "b"])'),
        (
            "with T.Assert(n > 1, 'm', 'TypeError'):\n    A[0] = 1.0",
            'assert n > 1, ("TypeError", ["m"])\nA[0] = T.float32(1.0)',
        ),
        (
            "with T.sblock('root'):\n    T.sblock_attr({'k': 1})\n    A[0] = 1.0",
            'with T.sblock("root"):\n    T.reads()\n    T.writes()\n    T.sblock_attr({"k": 1})\n'
            "    A[0] = T.float32(1.0)",
        ),
        (
            "B = T.alloc_buffer((4,))\nwith T.sblock('b'):\n    A[0] = 1.0",
            '# with T.sblock("root"):\nB = T.alloc_buffer((4,))\nwith T.sblock("b"):\n    T.reads()\n'
            "    T.writes(A[0])\n    A[0] = T.float32(1.0)",
        ),
        ("T.call_extern('void', 'f', n)", 'T.call_extern("void", "f", n)'),
    ],
)
def test_statements(written: str, printed: str) -> None:
    assert text(written, 'A: T.Buffer((8,), "float32"), n: T.int32') == printed


def test_assertions_of_relaxs_order() -> None:
    made = function("assert n > 1, ('ValueError', ['a', 'b'])", "n: T.int32").body
    assert isinstance(made, AssertStmt) and made.message == "ab" and made.error_kind.value == "ValueError"
    again = AssertStmt("ValueError", made.condition, ["a", "b"])  # type: ignore[arg-type]
    assert_structural_equal(again, made)
    with IRBuilder() as builder, T.Assert(made.condition, ["a", "b"], error_kind="ValueError"):
        T.evaluate(0)
    assert 'assert n > 1, ("ValueError", ["a", "b"])' in builder.get().script()


def test_pointers_are_parameters_that_native_code_refuses() -> None:
    func = function(
        "B = T.decl_buffer((4,), data=a)\nB[0] = 1.0", 'a: T.handle("float32"), b: T.handle("int8", "shared")'
    )
    assert 'def f(a: T.handle("float32", "global"), b: T.handle("int8", "shared")):' in func.script()
    with pytest.raises(NotSupportedError, match="parameter a is neither"):
        emit_kernel(func, "f", host(), [])


def test_a_view_in_a_block_introduces_its_strides() -> None:
    body = """with T.sblock("b"):
    s = T.int32()
    B = T.match_buffer(A[0:4, 0:4], (4, 4), strides=[s, 1])
    B[0, 1] = T.Cast("float32", s)"""
    func = function(body, 'A: T.Buffer((4, 8), "float32")')
    values = np.zeros((4, 8), "float32")
    run_prim_func(func, [values])
    assert values[0, 1] == 8
