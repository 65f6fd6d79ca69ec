# ruff: noqa: E501 - Relax's lines are long
"""Relax's layout: golden texts, options, and that everything printed reads back to an equal program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import supple.ops  # noqa: F401 - declares the operators
from supple import relax, tirx
from supple.base.errors import DiagnosticError
from supple.build.block_builder import BlockBuilder
from supple.ir.op import OPS
from supple.ir.print_style import print_options, set_default_style
from supple.ir.structural import assert_structural_equal
from supple.ir.types import AnyType, FuncType, PrimType, TupleType
from supple.script import from_source
from supple.script import relax as R
from supple.script import tirx as T

sys.path.insert(0, str(Path(__file__).parent / "oracle"))

import language_programs
from test_printer import argument

MODULE = """# from typing import TypeVar
# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis
# from tvm.script import relax as R

m = TypeVar("m")
n = TypeVar("n")
@I.ir_module
class Module:
    I.module_attrs({"a": [1, 2.5], "b": "text"})
    @T.prim_func(private=True, s_tir=True)
    def double(A: T.Buffer((n, "m * T.int64(2)", m), "float32"), B: T.Buffer((n,), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        C = T.sblock_alloc_buffer((n,), scope="local")
        for i, j in T.grid(n, 4):
            with T.sblock("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                T.where(i < T.int64(3))
                T.reads(A[vi, 0, 0])
                T.writes(C[vi])
                T.sblock_attr({"k": 1})
                with T.init():
                    C[vi] = T.float32(0.0)
                C[vi] = C[vi] + A[vi, 0, 0] * T.float32(0.10000000000000001)
        for i in T.parallel(n):
            with T.sblock("copy"):
                vi = T.axis.spatial(n, i)
                T.reads(C[vi])
                T.writes(B[vi])
                B[vi] = T.max(C[vi], T.float32(-1.0))

    @R.function(private=True)
    def helper(x: R.Tensor((n, "n * 2"), dtype="float32")) -> R.Tensor((n, 1), dtype="float32"):
        R.func_attr({"Primitive": True})
        gv: R.Tensor((n, 1), dtype="float32") = R.sum(x, axis=[-1], keepdims=True)
        return gv

    @R.function(pure=False)
    def main(x: R.Tensor((n, 8), dtype="float32"), f: R.Callable((R.Tensor,), R.Tensor, True), k: T.int64, s: R.Shape(ndim=-1)) -> R.Tuple(R.Tensor((n, 8), dtype="float32"), R.Tuple(R.Shape([n, 4]), R.Callable((R.Tensor,), R.Tensor, True))):
        cls = Module
        q = T.int64()
        with R.dataflow():
            lv: R.Tensor((n, 8), dtype="float32") = R.permute_dims(x, axes=[0, 1])
            a = R.call_tir(cls.double, (lv,), out_ty=R.Tensor((n, 8), dtype="float32"))
            b: R.Tensor((q, 8), dtype="float32") = R.match_cast(a, R.Tensor((q, 8), dtype="float32"))
            R.output(a, b)
        R.print(b, format=R.str("{}"))
        t: R.Tuple(R.Tensor((n, 8), dtype="float32"), R.Tensor((q, 8), dtype="float32")) = a, b
        u: R.Tuple(R.Tensor((n, 8), dtype="float32")) = (a,)
        c: R.Tensor((), dtype="float32") = R.const(0.10000000149011612, "float32")
        p: T.int64 = k + 1
        e: R.Tensor((4,), dtype="int64") = R.call_packed("f", x, R.str("s"), 3, ty_args=(R.Tensor((4,), dtype="int64"),))
        if R.const(True, "bool"):
            r_then: R.Tensor((n, 8), dtype="float32") = R.add(a, a)
            r: R.Tensor((n, 8), dtype="float32") = r_then
        else:
            r: R.Tensor((n, 8), dtype="float32") = a
        v: R.Tensor((8,), dtype="float32") = metadata["ir.GenericConst"][0]
        return (r, (R.shape([n, 4]), f))

# Metadata omitted. Use show_meta=True in script() method to show it."""

LOOPS = """# from typing import TypeVar
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

n = TypeVar("n")
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "float32"), B: T.Buffer(("k", n), "int8"), C: T.Buffer((k, n), "int8"), m: T.int64, D: T.Buffer((m,), "int32")):
    k = T.int32()
    E = A.view(4, 4)
    F = T.alloc_local((4,), "int8")
    for i in range(2, 10):
        if i < 3:
            A[i] = T.float32(100000000000000000000.0)
        else:
            if i < 5:
                A[i] = T.float32(1.0000000000000001e-05)
            else:
                T.continue_loop()
    for i in T.unroll(4):
        for i_1 in T.vectorized(2):
            D[i * 2 + i_1] = ~D[i] ^ 3 | 4 >> D[1] & D[2] << 1
    for i in range(0, 16, 2):
        A[0:4] = T.Broadcast(E[0, 0], 4)
        x: T.let[T.float32] = A[i]
        assert x < T.float32(1.0), ("RuntimeError", ["too large"])
    while D[0] < 3:
        D[0] = T.Cast("int32", m + T.int64(1)) * -1
    T.assume(D[0] < 3)
    with T.attr(m, "key", 1):
        F[0] = T.int8(3)
    T.evaluate(A[0])"""


def test_a_module_reads_back_to_the_same_text():
    data = 'R.const([0, 1, 2, 3, 4, 5, 6, 7], "float32")'
    mod = from_source(MODULE.replace('metadata["ir.GenericConst"][0]', data), check_well_formed=False)
    assert mod.script(style="relax") == MODULE
    whole = mod.script(style="relax", show_meta=True)
    assert whole.startswith('metadata = tvm.ir.load_json("""{\n  \\"root_index\\": ')
    assert_structural_equal(from_source(whole, check_well_formed=False), mod)


def test_a_loop_function_reads_back_to_the_same_text():
    assert from_source(LOOPS).script(style="relax") == LOOPS


@pytest.mark.parametrize("number", range(len(language_programs.PROGRAMS)))
def test_every_program_of_the_language_reads_back(number: int):
    program = from_source(language_programs.PROGRAMS[number].text, check_well_formed=False)
    text = program.script(style="relax", show_meta=True)
    again = from_source(text, check_well_formed=False)
    assert_structural_equal(again, program)
    assert again.script(style="relax", show_meta=True) == text


CASES = [(op, sample) for _, op in OPS.items() if op.samples is not None for sample in op.samples()]


@pytest.mark.parametrize("op, sample", CASES, ids=lambda case: getattr(case, "short_name", "sample"))
def test_calls_of_every_operator_read_back(op: Any, sample: Any):
    params: list[Any] = []
    call = op(*(argument(a, params) for a in sample.args), **sample.attrs)
    builder = BlockBuilder()
    builder.begin_function("main", params, {"global_symbol": "main"}, is_pure=op.pure)
    func = builder.end_function(builder.emit(call))
    assert_structural_equal(from_source(func.script(style="relax", show_meta=True)), func)


n, i = T.Var("n", "int64"), T.Var("i", "int32")
x, y = relax.Var("x", R.Tensor((n, 4), "float32")), relax.Var("y", R.Tensor((4, 4), "float32"))
A = tirx.decl_buffer((16, 16), "float32", "A")
FRAGMENTS = [
    (n + 1, "n + T.int64(1)"),
    (i + 1, "i + 1"),
    (i & 3, "i & 3"),
    (~i, "~i"),
    (tirx.FloatImm("float64", 0.1), "T.float64(0.10000000000000001)"),
    (tirx.FloatImm("float32", float("inf")), 'T.float32("inf")'),
    (x.ty, 'R.Tensor((n, 4), dtype="float32")'),
    (TupleType((x.ty, AnyType())), 'T.Tuple(R.Tensor((n, T.int64(4)), dtype="float32"), R.Any)'),
    (FuncType((x.ty,), y.ty), 'R.Callable((R.Tensor((n, 4), dtype="float32"),), R.Tensor((4, 4), dtype="float32"), True)'),
    (PrimType("int8"), "T.int8"),
    (relax.Tuple([x]), "(x,)"),
    (relax.Tuple([]), "R.tuple()"),
    (relax.GlobalVar("f"), 'I.GlobalVar("f")'),
    (relax.const([1, 2]),
        'metadata["ir.GenericConst"][0]\n# Metadata omitted. Use show_meta=True in script() method to show it.'),
    (relax.op.matmul(x, y), "R.matmul(x, y, out_dtype=None)"),
    (relax.op.call_tir(relax.GlobalVar("f"), x, [x.ty, y.ty]),
        'R.call_tir(f, (x,), out_ty=[R.Tensor((n, 4), dtype="float32"), R.Tensor((4, 4), dtype="float32")])'),
    (relax.VarBinding(relax.Var("z", y.ty), relax.op.add(y, x)),
        'y: R.Tensor((4, 4), dtype="float32")\nn = T.int64()\nx: R.Tensor((n, 4), dtype="float32")\n'
        'z: R.Tensor((4, 4), dtype="float32") = R.add(y, x)'),
    (tirx.BufferStore(A, tirx.FloatImm("float32", 1.0), [i, i]),
        "A = T.Buffer((16, 16))\ni = T.int32()\nA[i, i] = T.float32(1.0)"),
    (tirx.IfThenElse(i < 3, tirx.BufferStore(A, A[i, 0], [i, i]), tirx.Evaluate(A[0, 0])),
        "i = T.int32()\nA = T.Buffer((16, 16))\nif i < 3:\n    A[i, i] = A[i, 0]\nelse:\n    T.evaluate(A[0, 0])"),
    (tirx.For(i, 0, 8, "serial", tirx.BufferStore(A, A[i, 0], [i, i])),
        "for i in range(8):\n    A = T.Buffer((16, 16))\n    A[i, i] = A[i, 0]"),
]  # fmt: skip


@pytest.mark.parametrize("node, text", FRAGMENTS, ids=[text.splitlines()[-1][:30] for _, text in FRAGMENTS])
def test_fragments(node: Any, text: str):
    assert node.script(style="relax") == text


def test_free_variables_are_declared_around_all_of_their_uses():
    free = T.Var("free", "int64")
    use = tirx.BufferStore(A, T.Cast("float32", free), [0, 0])
    body = tirx.SeqStmt([tirx.For(i, 0, 8, "serial", use), tirx.For(i, 0, 8, "serial", use)])
    func = tirx.PrimFunc([A], body)
    text = func.script(style="relax")
    assert text.count("free = T.int64()") == 1
    assert_structural_equal(from_source(text, check_well_formed=False), func, map_free_vars=True)


SMALL = """
@R.function
def main(x: R.Tensor((2,), "float32"), c: R.Tensor((2,), "float32")):
    y = R.add(x, c)
    return y
"""


def test_options():
    func = from_source(SMALL)

    def script(**options: Any) -> str:
        return func.script(style="relax", **options)

    assert "    y = R.add(x, c)" in script(show_all_ty=False)
    assert script(show_all_struct_info=False) == script(show_all_ty=False)
    assert "def other(" in script(name="other")
    assert "\n  y: R.Tensor" in script(indent_spaces=2)
    assert "# from tvm.script import relax as Q" in script(extra_config={"relax.prefix": "Q"})
    assert "= Q.add(x, c)" in script(extra_config={"relax.prefix": "Q"})
    assert script(extra_config={"relax.show_all_ty": False}) == script(show_all_ty=False) != script()
    assert "x_0x" in script(show_object_address=True)
    assert script(print_line_numbers=True).splitlines()[0] == "1 # from tvm.script import relax as R"
    mod = relax.BlockBuilder().get()
    assert "class Other:" in mod.script(style="relax", name="Other")
    assert mod.script(style="relax", ir_prefix="IR").startswith("# from tvm.script import ir as IR\n\n@IR.ir_module")
    whole = from_source(
        MODULE.replace('metadata["ir.GenericConst"][0]', 'R.zeros((8,), "float32")'), check_well_formed=False
    )
    direct = whole.script(style="relax", module_alias="")
    assert "cls" not in direct and "R.call_tir(Module.double," in direct
    assert_structural_equal(from_source(direct, check_well_formed=False), whole)
    assert (i + 1).script(style="relax", verbose_expr=True) == "i = T.int32()\ni + 1"
    assert (n + 1).script(style="relax", int_dtype="int64") == "n + 1"
    assert tirx.FloatImm("float32", 1.5).script(style="relax", float_dtype="float32") == "1.5"
    nest = "for i in range(4):\n        for j in range(4):\n            A[i] = A[j]"
    loops = from_source(LOOPS.replace("T.evaluate(A[0])", nest))
    assert "T.grid(4, 4)" in loops.script(style="relax")
    assert "T.grid" not in loops.script(style="relax", syntax_sugar=False)


def test_the_alias_of_the_module_is_no_variables_name():
    mod = from_source("""
@I.ir_module
class Module:
    @R.function
    def f(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return x

    @R.function
    def main(x: R.Tensor((2,), "float32"), c: R.Tensor((2,), "float32")):
        cls = Module
        y = cls.f(x)
        return y
""")
    text = mod.script(style="relax", module_alias="c")
    assert "c = Module" in text and "= c.f(x)" in text and "c_1: R.Tensor" in text
    assert_structural_equal(from_source(text), mod)


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"style": "relaxed"}, ValueError, "did you mean 'relax'"),
        ({"show_all_types": True}, TypeError, "unknown option 'show_all_types'"),
        ({"indent_spaces": "4"}, TypeError, "indent_spaces: expected int"),
        ({"indent_spaces": 0}, ValueError, "at least 1"),
        ({"module_alias": "a b"}, ValueError, "module_alias: expected a name"),
        ({"extra_config": {"relax.prefx": "Q"}}, TypeError, "did you mean 'relax.prefix'"),
        ({"path_to_underline": [object()]}, TypeError, "AccessPath"),
        ({"obj_to_annotate": [x]}, TypeError, "obj_to_annotate: expected a mapping"),
        ({"black_format": True}, NotImplementedError, "black_format"),
    ],
)
def test_refused_options(options: dict[str, Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        print_options(**options)


def test_show_takes_a_layout_or_colours(capsys: pytest.CaptureFixture[str]):
    func = from_source(SMALL)
    func.show(style="relax")
    assert capsys.readouterr().out == func.script(style="relax") + "\n"
    func.show("light", show_meta=True)
    assert capsys.readouterr().out == func.script()
    with pytest.raises(ValueError, match="neither a layout"):
        func.show(style="no such style")


def test_the_layout_of_the_process():
    func = from_source(SMALL)
    own = func.script()
    set_default_style("relax")
    try:
        assert str(func) == func.script(style="relax") and func.script(style="supple") == own
        temporary = from_source(SMALL.replace("R.add(x, c)", "R.add(x, R.exp(c))").replace("y = ", "a = x\n    y = "))
        assert "gv1: R.Tensor" in str(temporary)  # Relax counts named values too
    finally:
        set_default_style("supple")
    assert str(func) == own
    with pytest.raises(ValueError, match="expected one of"):
        set_default_style("other")


def test_under_the_alias_the_layout_is_relaxs():
    code = f"""
import supple.compat
supple.compat.install_as_tvm()
import tvm
func = tvm.script.from_source('''{SMALL}''')
print(func.script())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert done.stdout == from_source(SMALL).script(style="relax") + "\n", done.stderr


def test_metadata_of_every_dtype_reads_back():
    arrays = [np.arange(6).reshape(2, 3), np.zeros((0, 2)), np.array([True, False]), np.array([1.5, np.nan])]
    dtypes = ("int8", "uint16", "int64", "float16", "bfloat16", "float8_e5m2")
    values = [relax.const(a, d) for a in arrays[:2] for d in dtypes]
    values += [relax.const(arrays[2], "bool"), relax.const(arrays[3], "float32"), relax.const(2.5, "bfloat16")]
    tup = relax.Tuple(values)
    func = relax.Function([], tup, TupleType(tuple(v.ty for v in values))).with_attr("global_symbol", "main")
    assert_structural_equal(from_source(func.script(style="relax", show_meta=True)), func)


@pytest.mark.parametrize(
    "change",
    [
        ("root_index", "root"),
        ("ffi.Map", "ffi.Array"),
        ('"data": "P6G', '"data": "AAA'),
        ("ir.GenericConst", "relax.Constant"),
    ],
)
def test_metadata_that_is_no_metadata_is_refused(change: tuple[str, str]):
    func = relax.Function([], relax.const([1.0, 2.0])).with_attr("global_symbol", "main")
    text = func.script(style="relax", show_meta=True).replace('\\"', '"')
    head, sep, rest = text.partition("# from")
    broken = head.replace('"""', "'''").replace(*change) + sep + rest
    with pytest.raises(Exception, match="metadata"):
        from_source(broken)


# ------------------------------------------------------------------------------- attributes that follow from others


_WINDOWS = """
@R.function
def main(x: R.Tensor(("n", 3, 8, 8), "float32"), w: R.Tensor((6, 3, 3, 3), "float32"), v: R.Tensor((3, 4, 3, 3), "float32")):
    n = T.int64()
    y = {}
    return y
"""


@pytest.mark.parametrize(
    ("short", "full"),
    [
        (
            "R.nn.conv2d(x, w, strides=2, padding=1)",
            'R.nn.conv2d(x, w, strides=[2, 2], padding=[1, 1, 1, 1], dilation=[1, 1], out_layout="NCHW")',
        ),
        ("R.nn.conv2d(x, w, padding=[1, 2])", "R.nn.conv2d(x, w, strides=[1, 1], padding=[1, 2, 1, 2])"),
        (
            "R.nn.conv2d_transpose(x, v, strides=2, output_padding=1)",
            'R.nn.conv2d_transpose(x, v, strides=[2, 2], output_padding=[1, 1], out_layout="NCHW")',
        ),
        ("R.nn.max_pool2d(x, 2)", "R.nn.max_pool2d(x, [2, 2], [1, 1], [0, 0, 0, 0], [1, 1])"),
        ("R.nn.adaptive_avg_pool2d(x, 2)", 'R.nn.adaptive_avg_pool2d(x, [2, 2], out_layout="NCHW")'),
        ("R.image.resize2d(x, 16, roi=0.5)", "R.image.resize2d(x, (16, 16), roi=(0.5, 0.5, 0.5, 0.5))"),
        ("R.reshape(x, (0, -1))", "R.reshape(x, (n, 192))"),
        ("R.nn.relu6(x)", "R.clip(x, 0, 6)"),
        (
            'R.nn.attention(x, x, x, R.zeros((1, 1, 3, 3), "float32"))',
            'R.nn.attention_bias(x, x, x, R.zeros((1, 1, 3, 3), "float32"))',
        ),
    ],
)
def test_what_a_call_leaves_out_is_stored_in_full(short: str, full: str):
    one, two = (from_source(_WINDOWS.format(text)) for text in (short, full))
    assert_structural_equal(one, two)
    assert one.script(style="relax") == two.script(style="relax")
    assert len(one.script()) <= len(two.script()) and "dilation" not in one.script()


def test_a_window_that_does_not_fit_is_refused_at_its_place():
    text = '@R.function\ndef main(x: R.Tensor((1, 3, 8, 8), "float32")):\n    return R.nn.max_pool2d(x, [1, 2, 3])\n'
    with pytest.raises(DiagnosticError, match="pool_size must be one number") as caught:
        from_source(text)
    assert caught.value.span is not None and caught.value.span.line == 3


def test_parts_of_programs_have_metadata_too() -> None:
    constant = relax.const(np.ones((2, 3), "float32"))
    x = relax.Var("x", constant.ty)
    for part in (
        relax.op.add(x, constant),
        relax.VarBinding(x, constant),
        relax.BindingBlock([relax.VarBinding(x, constant)]),
    ):
        assert part.script(style="relax").endswith(
            "\n# Metadata omitted. Use show_meta=True in script() method to show it."
        )
        text = part.script(style="relax", show_meta=True)
        assert text.startswith("metadata = tvm.ir.load_json(") and "omitted" not in text


def test_scalar_parameters_stand_in_arithmetic_on_sizes() -> None:
    source = (
        "@T.prim_func(s_tir=True)\ndef f(n: T.int64, A: T.Buffer((n * T.int64(2),), 'float32')):\n    T.evaluate(n)\n"
    )
    assert "def f(n: T.int64, A: T.Buffer((n * T.int64(2),)" in from_source(source).script(style="relax")
