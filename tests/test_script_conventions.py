"""Programs that are read and built by Relax's conventions (`supple.ir.conventions`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from supple import compile as compile_module
from supple import te
from supple.base.errors import DiagnosticError, NotSupportedError
from supple.base.target import host
from supple.build.functions import const
from supple.codegen.kernel import emit_kernel
from supple.interp.graph import Interpreter
from supple.interp.loops import run_prim_func
from supple.ir.loop import AllocBuffer, AssertStmt, Bind, PrimFunc
from supple.ir.print_style import set_default_style
from supple.ir.structural import assert_structural_equal
from supple.ir.types import TensorType, VDevice
from supple.ir.walk import post_order
from supple.script import from_source
from supple.script import tirx as LT
from supple.script.ir_builder import IRBuilder
from supple.script.ir_builder import relax as RB
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


MODULE = """@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4,), "int32")):
        A[0] = Module.g(A[1] + 1) * 2
        Module.h(4)

    @T.prim_func
    def g(n: T.int32) -> T.int32:
        return n + 1

    @T.prim_func
    def h(n: T.int32):
        T.evaluate(n)
"""


def test_loop_functions_call_each_other() -> None:
    mod = from_source(MODULE)
    assert mod.script().endswith(MODULE.rstrip("\n"))
    assert_structural_equal(from_source(mod.script(style="supple")), mod)
    with pytest.raises(NotSupportedError, match="f: a loop function can only call intrinsics"):
        emit_kernel(mod["f"], "f", host(), [])
    with pytest.raises(NotSupportedError, match="a loop function can only call intrinsics"):
        run_prim_func(mod["f"], [np.zeros(4, "int32")])
    with pytest.raises(DiagnosticError, match="the module Module has no loop function 'gg'"):
        from_source(MODULE.replace("Module.g(", "Module.gg("))
    with pytest.raises(DiagnosticError, match="positional arguments only"):
        from_source(MODULE.replace("Module.h(4)", "Module.h(n=4)"))


@pytest.mark.parametrize(
    "params",
    [
        'A: T.Buffer(("n", n + 1), "float32")',
        'A: T.Buffer(("n + 1", n), "float32"), B: T.Buffer((n * 2, "m"), "float32"), C: T.Buffer((m + n,), "float32")',
        'n: T.int32, A: T.Buffer((n, n + 1), "float32")',
        'A: T.Buffer((4,), "float32", offset_factor=1), B: T.Buffer((4,), "float32", elem_offset=4)',
        'A: T.Buffer((4,), "float32", offset_factor=2), B: T.Buffer((4,), "float32", elem_offset=4, offset_factor=2)',
    ],
)
def test_signatures(params: str) -> None:
    symbols = ("n = T.int32()\n" if '"n' in params else "") + ("m = T.int32()\n" if '"m"' in params else "")
    func = function(f"{symbols}T.evaluate(0)", params)
    assert f"def f({params}):" in func.script()
    assert text(f"{symbols}T.evaluate(0)", params) == f"{symbols}T.evaluate(0)"


def test_a_parameter_hides_what_is_captured() -> None:
    n = 7

    @LT.prim_func
    def func(n: LT.int32, A: LT.Buffer((n,), "float32")):  # type: ignore[valid-type]
        LT.evaluate(0)

    assert func.params[1].ty.shape[0] is func.params[0] and n == 7


# ---------------------------------------------------------------------------------------------------- graph functions


def graph(body: str, params: str = 'x: R.Tensor((2,), "float32")', before: str = "", pure: bool = True) -> str:
    """The body's text; the whole text reads back."""
    lines = "\n    ".join(body.split("\n"))
    func = from_source(f"{before}@R.function(pure={pure})\ndef f({params}):\n    {lines}\n")
    printed = func.script()
    assert_structural_equal(from_source(printed), func)
    text = "\n".join(line.removeprefix("    ") for line in printed.split(":\n", 1)[1].strip("\n").split("\n"))
    return text.replace('R.Tensor((2,), dtype="float32")', "F2")


NESTED = """if c:
    y = R.add(x, x)
elif d:
    if c:
        y = R.multiply(x, x)
    else:
        y = x
else:
    y = R.exp(x)
return y"""

NESTED_PRINTED = """if c:
    y_then: F2 = R.add(x, x)
    y: F2 = y_then
else:
    if d:
        if c:
            y_then_1: F2 = R.multiply(x, x)
            y_then: F2 = y_then_1
        else:
            y_then: F2 = x
        y_else: F2 = y_then
    else:
        y_else_1: F2 = R.exp(x)
        y_else: F2 = y_else_1
    y: F2 = y_else
return y"""


def test_the_values_of_nested_branches_have_relaxs_names() -> None:
    params = 'c: R.Tensor((), "bool"), d: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")'
    assert graph(NESTED, params) == NESTED_PRINTED


def test_a_macros_value_is_bound_where_it_is_called() -> None:
    macro = "@R.macro\ndef twice(x):\n    return R.add(x, x)\n\n"
    assert graph("y = twice(x)\nreturn y", before=macro) == "gv: F2 = R.add(x, x)\ny: F2 = gv\nreturn y"
    printed = "gv: F2 = R.add(x, x)\ngv1: F2 = gv\nreturn gv1"
    assert graph("return twice(x)", before=macro) == printed


def test_a_value_that_is_bound_to_no_name_is_refused() -> None:
    with pytest.raises(DiagnosticError, match="is bound to no name"):
        graph("R.add(x, x)\nreturn x")
    assert graph("R.print(x, format='')\n_ = R.add(x, x)\nreturn x", pure=False).startswith("R.print(")
    set_default_style("supple")
    assert "R.add(x, x)" in graph("R.add(x, x)\nreturn x")


def test_numbers_texts_and_dtypes_as_values() -> None:
    assert graph("y = R.dtype('int8')\nreturn x").startswith('y: R.Any = R.dtype("int8")')
    assert 'f", x, T.float64(2.5)' in graph("y = R.call_packed('f', x, 2.5)\nreturn x", pure=False)
    assert graph("return R.add(x, R.const('-inf', 'float32'))").startswith(
        'gv: F2 = R.add(x, R.const("-inf", "float32"))'
    )


@pytest.mark.parametrize(
    "given, shape, printed",
    [
        ('"n", "m", 3', "(-1,)", "n * m * 3"),
        ('"n", "m", 3', "(m, -1)", "n * 3"),
        ('4, 6, "m"', "(-1, 3)", "m * 8"),
        ('"n", 6, "m"', "(-1, 4)", "n * m * 6 // 4"),
        ('"n", 4, "m"', "(m, -1, n * 2)", "2"),
        ('"n + 1", "m"', "(n + 1, -1)", "m"),
    ],
)
def test_a_dimension_that_is_left_is_written_in_the_shapes_order(given: str, shape: str, printed: str) -> None:
    body = f"n, m = T.int64(), T.int64()\ny = R.reshape(x, {shape})\nreturn y"
    # ``n`` and ``m`` are there, whatever the shape mentions
    made = graph(body, f'x: R.Tensor(({given}), "float32"), s: R.Shape(["n", "m"])')
    filled = shape.replace("-1", printed).strip("()").rstrip(",")
    assert made.startswith(f'y: R.Tensor(({filled}{"" if "," in filled else ","}), dtype="float32")')


@pytest.mark.parametrize(
    "given, flat", [('"n", 2, 2', "n * 2 * 2"), ('2, "n", 1', "2 * n"), ('4, 6, "n"', "24 * n"), ('1, "n"', "n")]
)
def test_a_flat_size_is_written_in_the_shapes_order(given: str, flat: str) -> None:
    assert f"R.Tensor(({flat},)" in graph("y = R.flatten(x)\nreturn y", f'x: R.Tensor(({given}), "float32")')


def test_the_names_of_a_built_if() -> None:
    with IRBuilder() as builder, RB.function():
        RB.func_name("main")
        c, x = RB.arg("c", TensorType((), "bool")), RB.arg("x", TensorType((2,), "float32"))
        with RB.If(c) as made:
            with RB.Then():
                IRBuilder.name("y", RB.emit(RB.add(x, x)))
            with RB.Else():
                IRBuilder.name("y", RB.emit(RB.exp(x)))
        assert made.var is not None
        RB.func_ret_value(made.var)
    printed = builder.get().script()
    assert "y_then: R.Tensor" in printed and "y_else: R.Tensor" in printed and "        y: R.Tensor" in printed


def test_a_virtual_devices_target_is_a_target() -> None:
    device = VDevice({"kind": "cuda", "arch": "sm_80"}, 1)
    assert device.target.kind.name == "cuda" == device.kind and device.target.attrs["arch"] == "sm_80"
    text = 'I.vdevice({"arch": "sm_80", "keys": ["cuda", "gpu"], "kind": "cuda", "tag": ""}, 1, "global")'
    assert str(device) == text
    with pytest.raises(ValueError, match="kind 'cude' is not defined"):
        VDevice("cude")


def test_constants_in_relaxs_form() -> None:
    assert str(const(float("nan"), "float32")) == 'R.const("nan", "float32")'
    assert str(const(1, "uint8")).startswith('metadata["ir.GenericConst"][0]')
    made = from_source('@R.function\ndef f():\n    return R.const([1.0] * 8, "float32")\n')
    assert "\\\\/" in made.script(show_meta=True)  # JSON may escape a slash, and Relax's does
    assert_structural_equal(from_source(made.script(show_meta=True)), made)


def test_a_built_if_holds_its_branches_only() -> None:
    with IRBuilder() as builder, T.prim_func():
        T.func_name("f")
        n = T.arg("n", T.int32())
        with T.If(n > 1), T.Then():
            T.evaluate(1)
    assert "if n > 1:\n        T.evaluate(1)" in builder.get().script()
    with pytest.raises(DiagnosticError, match="nothing beside the two branches"), IRBuilder(), T.prim_func():
        T.func_name("f")
        with T.If(n > 1):
            T.evaluate(0)
            with T.Then():
                T.evaluate(1)


def test_symbols_are_declared_by_the_parameter_that_introduces_them() -> None:
    params = 'A: T.Buffer(("n", "m"), "float32"), B: T.Buffer((m, "k"), "float32")'
    body = "n, m = T.int32(), T.int32()\nk = T.int32()\nT.evaluate(n)"
    assert text(body, params) == body


def test_a_scalar_parameter_is_named_without_quotes() -> None:
    params = 'n: T.int64, x: R.Tensor((n,), dtype="float32")'
    made = from_source(f"@R.function\ndef f({params}):\n    return x\n")
    assert f"def f({params}) -> R.Tensor((n,)" in made.script()


def test_an_empty_dataflow_block_is_left_out() -> None:
    assert graph("with R.dataflow():\n    R.output()\nreturn x") == "return x"


def test_a_region_is_underlined() -> None:
    func = function(
        'with T.sblock("b"):\n    T.reads()\n    T.writes(A[0:2])\n    A[0] = 1.0', 'A: T.Buffer((4,), "float32")'
    )
    block = func.body.block.body.block  # type: ignore[attr-defined]
    lines = func.script(obj_to_underline=[block.writes[0]]).split("\n")
    at = next(n for n, line in enumerate(lines) if "T.writes(A[0:2])" in line)
    assert lines[at + 1].strip() == "^^^^^^" and lines[at].index("A[") == lines[at + 1].index("^")


def test_names_of_the_module_of_blocks() -> None:
    code = """
import supple.compat
supple.compat.install_as_tvm()
from tvm.s_tir import SBlock, Schedule, ScheduleError
from tvm.s_tir.stmt import SBlockRealize
from tvm import s_tir, tirx
assert s_tir.SBlock is SBlock and tirx.SBlock is SBlock and issubclass(ScheduleError, ValueError)
print(s_tir.schedule.Schedule is Schedule, SBlockRealize.__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert done.stdout == "True SBlockRealize\n", done.stderr


OUTER = """for i, j in T.grid(4, 4):
    with T.sblock("b"):
        vi = T.axis.spatial(4, i)
        T.where(j < 2)
        A[vi, USED] = 1.0"""


def test_a_block_names_no_loop_around_it() -> None:
    params = 'A: T.Buffer((4, 4), "float32")'
    assert "A[vi, 0]" in text(OUTER.replace("USED", "0"), params)
    with pytest.raises(DiagnosticError, match="the block b names j, a loop outside of it"):
        function(OUTER.replace("USED", "j"), params)
    opaque = 'for i in range(4):\n    with T.sblock("b"):\n        for j in range(4):\n            A[i, j] = 1.0'
    assert "A[i, j]" in text(opaque, params)
    inner = 'with T.sblock("c"):\n            vk = T.axis.spatial(4, i)\n            A[vi, vk] = 1.0'
    with pytest.raises(DiagnosticError, match="the block b names i"):  # what an inner block binds is used here
        function(OUTER.replace("A[vi, USED] = 1.0", inner), params)
    set_default_style("supple")
    assert len(function(OUTER.replace("USED", "j"), params).params) == 1


def test_containers_that_differ_are_shown_as_relax_shows_them() -> None:
    with pytest.raises(ValueError) as raised:
        assert_structural_equal([1, "a"], [1, "b"])
    note = "Note: No visible object for this path is rendered in TVMScript."
    sides = [f'at <root>[1]:\nAccess path: <root>[1]\n{note}\n\n(1, "{last}")' for last in "ab"]
    said = f"StructuralEqual check failed, caused by lhs {sides[0]}\nand rhs {sides[1]}"
    assert str(raised.value) == said
    with pytest.raises(ValueError, match=r'\n\{"a": \(1,\)\}\n'):
        assert_structural_equal({"a": [1]}, {"a": [2]})


@pytest.mark.parametrize(
    "written, printed",
    [
        ("T.evaluate(n | 3)", "T.evaluate(n | 3)"),  # no call, as it is written
        ("T.evaluate(~n)", "T.evaluate(~n)"),
        ("T.evaluate(T.exp(A[0]))", "T.exp(A[0])"),
        ("T.evaluate(T.max(3, 4) + T.min(n, n))", "T.evaluate(4 + n)"),
        ("T.evaluate(T.max(A[0], 0.5))", "T.evaluate(T.max(A[0], T.float32(0.5)))"),
        ("V[0] = V[1] * T.Broadcast(T.float32(2), 4)", "V[0] = V[1] * T.Broadcast(T.float32(2.0), 4)"),
    ],
)
def test_expressions(written: str, printed: str) -> None:
    params = 'A: T.Buffer((8,), "float32"), n: T.int32, V: T.Buffer((4,), "float32x4")'
    assert text(written, params) == printed


def test_a_buffer_of_vectors_stores_vectors_only() -> None:
    with pytest.raises(DiagnosticError, match="the value stored in V has another dtype"):
        function("T.buffer_store(V, A[0], [0])", 'A: T.Buffer((8,), "float32"), V: T.Buffer((4,), "float32x4")')


def test_a_function_by_itself_may_have_another_symbol() -> None:
    source = '@R.function\ndef f(x: R.Tensor):\n    R.func_attr({"global_symbol": "g"})\n    return x\n'
    assert "\ndef g(x" in from_source(source).script()
    lines = "".join(f"    {line}\n" for line in source.splitlines())
    with pytest.raises(DiagnosticError, match="the function f has another global_symbol"):
        from_source(f"@I.ir_module\nclass Module:\n{lines}")


def test_notes_of_a_packed_call() -> None:
    body = 'y = R.call_packed("f", x, mp=False, k=1, ty_args=R.Tensor((2,), "float32"))\nreturn y'
    call = 'R.call_packed("f", x, attrs_type_key="ir.DictAttrs", k=1, mp=False, ty_args=(F2,))'
    assert graph(body, pure=False) == f"y: F2 = {call}\nreturn y"
    lines = body.replace("\n", "\n        ")
    head = "@I.ir_module\nclass M:\n    @R.function(pure=False)\n    def main(x: R.Tensor((2,), 'float32')):\n        "
    made = from_source(f"{head}{lines}\n")
    for run in (lambda: compile_module(made), lambda: Interpreter(made).run("main", np.zeros(2, "float32"))):
        with pytest.raises(NotSupportedError, match="the attributes k, mp do not reach the function"):
            run()
