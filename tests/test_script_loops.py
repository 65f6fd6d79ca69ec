"""Loop functions: every construct parses, prints, and reads back to the same program."""

from __future__ import annotations

import numpy as np
import pytest

from supple.base.errors import DiagnosticError
from supple.interp.loops import run_prim_func
from supple.ir.expr import (
    Add,
    And,
    Broadcast,
    Call,
    Cast,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Mod,
    Mul,
    Not,
    Or,
    Ramp,
    Select,
    Sub,
)
from supple.ir.intrinsics import intrinsic
from supple.ir.loop import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Bind,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    IterType,
    PrimFunc,
    SBlockRealize,
    SeqStmt,
    While,
)
from supple.ir.structural import assert_structural_equal, structural_equal, structural_hash
from supple.ir.walk import pre_order
from supple.script import from_source
from supple.script import tirx as T


def round_trip(func):
    """Print, read, compare; the function itself for more checks."""
    again = from_source(func.script())
    assert_structural_equal(func, again)
    assert structural_hash(func) == structural_hash(again)
    assert again.script() == func.script()
    return func


def read(body: str, params: str = 'A: T.Buffer((16, 16), "float32"), n: T.int32', options: str = "") -> PrimFunc:
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    return round_trip(from_source(f"@T.prim_func{options}\ndef f({params}):\n{lines}\n"))


def first(func: PrimFunc, kind: type):
    return next(n for n in pre_order(func.body) if isinstance(n, kind))


def all_of(func: PrimFunc, kind: type):
    return [n for n in pre_order(func.body) if isinstance(n, kind)]


# -------------------------------------------------------------------------------------------------------- expressions

EXPRESSIONS = [
    "A[n, n] + A[n, 1] * T.float32(2.0)",
    "A[n, 0] - (A[n, 1] - A[n, 2])",
    "(A[n, 0] - A[n, 1]) - A[n, 2]",
    "A[n, 0] / A[n, 1]",
    "T.max(A[n, 0], T.min(A[n, 1], T.float32(0.0)))",
    "T.Select(n < 3, A[n, 0], T.float32(-1.5))",
    "T.if_then_else(n < 3, A[n, 0], A[n, 1])",
    "T.Cast('float32', n)",
    "T.Cast('float32', T.Cast('float32', A[0, 0]))",
    "T.cast(n, 'float32')",
    "n.astype('float32')",
    "T.float32(n) * 2",
    "T.float32('inf')",
    "T.float32('-inf') + T.float32('nan')",
    "T.float32(-0.0)",
    "T.float32(0.1) + T.float32(1e-30) + T.float32(3.4e38)",
    "T.Cast('float32', n // 3 + n % 5 - T.truncdiv(n, 3) * T.truncmod(n, 5))",
    "T.Cast('float32', T.ceildiv(n, 4))",
    "T.Cast('float32', T.floordiv(n, 4) + T.floormod(n, -4))",
    "T.Cast('float32', n & 3 | n ^ 5)",
    "T.Cast('float32', n << 2 >> 1)",
    "T.Cast('float32', ~n)",
    "T.Cast('float32', -n)",
    "T.Cast('float32', T.popcount(n) + T.clz(n))",
    "T.Cast('float32', n < 3 and not (n > 1 or n == 2))",
    "T.Cast('float32', 0 <= n < 16)",
    "T.Cast('float32', (n < 3) == (n > 1))",
    "T.exp(T.exp2(T.exp10(T.log(T.log2(T.log10(T.log1p(A[0, 0])))))))",
    "T.sqrt(T.rsqrt(T.sigmoid(T.tanh(T.sin(T.cos(T.tan(A[0, 0])))))))",
    "T.asin(T.acos(T.atan(T.sinh(T.cosh(T.erf(A[0, 0]))))))",
    "T.floor(T.ceil(T.round(T.trunc(T.nearbyint(T.fabs(A[0, 0]))))))",
    "T.abs(A[0, 0])",
    "T.Cast('float32', T.abs(n))",
    "T.pow(A[0, 0], T.float32(2.0)) + A[0, 0] ** 2.0",
    "T.fmod(A[0, 0], A[0, 1]) + T.atan2(A[0, 0], A[0, 1]) + T.hypot(A[0, 0], T.float32(1))",
    "T.copysign(A[0, 0], A[0, 1]) + T.ldexp(A[0, 0], n)",
    "T.Cast('float32', T.isnan(A[0, 0]) or T.isinf(A[0, 0]) or T.isfinite(A[0, 0]))",
    "T.reinterpret('float32', n)",
    "T.Cast('float32', T.likely(n < 3))",
    "T.min_value('float32') + T.max_value('float32') + T.infinity('float32')",
    "T.call_extern('float32', 'sinf', A[0, 0])",
    "T.call_pure_extern('float32', 'name \\'quoted\\'', A[0, 0], 'text')",
    "T.Cast('float32', T.int8(-3))",
    "T.Cast('float32', T.uint8(255))",
    "T.Cast('float32', T.int64(1) + T.int64(2))",
    "T.Cast('float32', T.int32(1) + 2)",
    "T.Cast('float32', T.Cast('int64', n) + 2147483648)",
    "T.Cast('float32', T.bool(True))",
    "T.Cast('float32', T.bool(True) and n < 3)",
    "T.float16(1.5).astype('float32')",
    "T.float64(1.1).astype('float32')",
    "T.Div(n, 3).astype('float32')",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_read_back(text):
    read(f"A[0, 0] = {text}")


def value(text: str, **kw):
    return first(read(f"A[0, 0] = T.Cast('float32', {text})", **kw), BufferStore).value.value


def test_literals_adopt_the_other_operand_s_dtype():
    params = 'A: T.Buffer((1, 1), "float32"), n: T.int64, x: T.float16'
    added = value("n + 1", params=params)
    assert isinstance(added, Add) and added.b.dtype == "int64"
    assert value("x * 2", params=params).b.dtype == "float16"
    assert value("2 * x", params=params).a.dtype == "float16"
    mixed = value("n + T.int32(3)", params=params)
    assert mixed.dtype == "int64"


def test_kinds_of_nodes():
    assert isinstance(value("n // 2"), FloorDiv)
    assert isinstance(value("n % 2"), FloorMod)
    assert isinstance(value("T.truncmod(n, 2)"), Mod)
    assert isinstance(value("n < 1 and n > 2"), And)
    assert isinstance(value("n < 1 or n > 2"), Or)
    assert isinstance(value("not n < 1"), Not)
    assert isinstance(value("0 < n < 4"), And)
    assert isinstance(value("T.Select(n < 1, 1, 2)"), Select)
    assert isinstance(value("T.Cast('int32', 3)"), Cast)
    assert isinstance(value("T.max(n, 3)"), Max)
    nothing = value("n + n - n")
    assert isinstance(nothing, Sub) and isinstance(nothing.a, Add)  # kept as written
    assert isinstance(value("-n"), Mul)
    assert value("-3").value == -3
    call = value("T.if_then_else(n < 1, 1, 2)")
    assert isinstance(call, Call) and call.op.name == "tirx.if_then_else"


def test_vectors():
    func = read(
        """
A[0, T.Ramp(0, 1, 4)] = A[1, T.Ramp(4, 1, 4)] + T.Broadcast(T.float32(1.0), 4)
A[1, 0:8] = A[2, 8:16]
A[2, 0:4] = T.float32(0)
"""
    )
    stores = all_of(func, BufferStore)
    assert stores[0].value.dtype == "float32x4"
    assert isinstance(stores[1].indices[1], Ramp) and stores[1].indices[1].lanes == 8
    assert isinstance(stores[2].value, Broadcast)


def test_let_expression():
    read("x = T.int32()\nA[0, 0] = T.Cast('float32', T.Let(x + x, where={x: n + 1}))")


def test_all_dtypes_as_parameters_and_buffers():
    for dtype in ("bool", "int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float64"):
        func = read("B[0] = x", f'B: T.Buffer((4,), "{dtype}"), x: T.{dtype}')
        assert func.params[0].dtype == dtype == func.params[1].dtype


# -------------------------------------------------------------------------------------------------------- statements


def test_loops():
    func = read(
        """
for i in range(4):
    A[i, 0] = 0
for i in T.serial(4, annotations={"pragma": 1, "list": [1, 2.5, "x", True, None]}):
    A[i, 0] = 0
for i in T.parallel(2, 4):
    A[i, 0] = 0
for i in T.vectorized(n):
    A[i, 0] = 0
for i in T.unroll(n, n + 4):
    A[i, 0] = 0
for i in T.thread_binding(4, thread="threadIdx.x"):
    A[i, 0] = 0
for i in range(n, 16):
    A[i, 0] = 0
for i in T.serial(0, 16, step=4):
    A[i, 0] = 0
for i, j in T.grid(4, n):
    for k in range(j):
        A[i, j] = 0
"""
    )
    loops = all_of(func, For)
    assert [f.kind for f in loops[:6]] == [
        ForKind.SERIAL, ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED, ForKind.THREAD_BINDING,
    ]  # fmt: skip
    assert loops[2].min.value == 2 and loops[2].extent.value == 2
    assert isinstance(loops[4].extent, IntImm) and loops[4].extent.value == 4
    assert loops[7].step.value == 4


def test_loop_variables_take_the_dtype_of_the_extent():
    func = read("for i in range(m):\n    B[i] = 0", 'B: T.Buffer(("m",), "float32")' + ", m: T.int64")
    assert first(func, For).loop_var.dtype == "int64"


def test_control_flow():
    func = read(
        """
if n < 1:
    A[0, 0] = 1
elif n < 2:
    A[0, 0] = 2
elif n < 3:
    A[0, 0] = 3
else:
    A[0, 0] = 4
while n < 3:
    if n < 2:
        break
    else:
        continue
assert n > 0, "n is \\"positive\\"\\n"
T.evaluate(T.call_extern("int32", "f", n, A.data))
with T.attr(0, "key", 1):
    A[0, 0] = 5
return 3
"""
    )
    assert all_of(func, IfThenElse) and all_of(func, While) and all_of(func, AssertStmt) and all_of(func, AttrStmt)


def test_bindings_and_buffers():
    func = read(
        """
x = n + 1
y: T.let = x * 2
z: T.let[T.int32] = y - 1
w: T.int64 = T.Cast("int64", z)
v = T.bind(z)
B = T.alloc_buffer((4, 4), "float32", scope="local")
C = T.decl_buffer((16,), "float32", data=B.data)
D = T.decl_buffer((8,), "float32", data=B.data, elem_offset=8, strides=(1,))
C[x] = T.Cast("float32", w + v)
"""
    )
    assert len(all_of(func, Bind)) == 5
    assert isinstance(func.body.seq[5], AllocBuffer) and isinstance(func.body.seq[6], DeclBuffer)


def test_attr_statement_covers_what_follows():
    func = from_source(
        "@T.prim_func\ndef f(A: T.Buffer((4,), 'float32')):\n"
        "    A[0] = 1\n    T.attr(0, 'k', 1)\n    A[1] = 1\n    A[2] = 1\n"
    )
    assert isinstance(func.body.seq[1], AttrStmt) and len(func.body.seq[1].body.seq) == 2
    round_trip(func)


def test_augmented_assignment_and_buffer_store():
    func = read("A[0, 0] += 1\nT.buffer_store(A, T.float32(2), [0, 1])")
    assert isinstance(first(func, BufferStore).value, Add)


def test_nested_sequences_and_empty_bodies():
    read("with T.seq():\n    A[0, 0] = 1\n    A[0, 0] = 2\nA[0, 0] = 3\nfor i in range(4):\n    pass")


# ------------------------------------------------------------------------------------------------------------ blocks


def test_blocks():
    func = read(
        """
B = T.alloc_buffer((16, 16), "float32")
for i, j, k in T.grid(16, 16, 4):
    with T.sblock("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        vk = T.axis.reduce(4, k)
        T.where(i * 16 + j < 100)
        T.reads(A[vi, vk:vk + 4], B[vi, 0:16])
        T.writes(B[vi, vj])
        T.sblock_attr({"key": "value", "n": 1})
        with T.init():
            B[vi, vj] = 0
        B[vi, vj] = B[vi, vj] + A[vi, vk]
for i in range(4):
    with T.sblock("C"):
        a = T.axis.spatial((4, 8), i + 4)
        b = T.axis.scan(16, i)
        c = T.axis.opaque(T.Range(1, 3), 2)
        d = T.axis.S(1, 0)
        D = T.sblock_alloc_buffer((4,), "float32", scope="local")
        M = T.match_buffer(A[a:a + 4, 0:4], (4, 4), "float32")
        D[0] = M[b, c]
        with T.sblock("inner"):
            T.reads(D[0:4])
            T.writes(A[a, 0:1], M[0, 0])
            A[a, d] = D[0]
            M[0, 0] = 1
"""
    )
    blocks = [n.block for n in pre_order(func.body) if isinstance(n, SBlockRealize)]
    assert [b.name_hint for b in blocks] == ["root", "B", "C", "inner"]
    assert len(blocks[0].alloc_buffers) == 1
    kinds = [v.iter_type for v in blocks[2].iter_vars]
    assert kinds == [IterType.DATA_PAR, IterType.SCAN, IterType.OPAQUE, IterType.DATA_PAR]
    assert blocks[2].iter_vars[0].dom.min.value == 4 and blocks[2].iter_vars[0].dom.extent.value == 4


def test_regions_are_inferred():
    func = read(
        """
for i in range(4):
    with T.sblock("B"):
        v = T.axis.spatial(4, i)
        for j in range(3):
            A[v * 4, j] = A[v, 2 * j + 1] + A[v + 1, 0] + T.Cast("float32", n)
"""
    )
    block = func.body.block.body.body.block
    assert str(block.reads[0]) == "A[v:v + 2, 0:6]"
    assert str(block.writes[0]) == "A[v * 4, 0:3]"
    func = read(
        """
for i in range(4):
    with T.sblock("sum"):
        v = T.axis.reduce(4, i)
        with T.init():
            A[0, 0] = 0
        A[0, 0] = A[0, 0] + A[1, v]
"""
    )
    assert [str(r) for r in func.body.block.body.body.block.reads] == []  # A is what the reduction writes


def test_root_block_can_be_spelled_out():
    func = read('with T.sblock("root"):\n    T.reads()\n    T.writes()\n    A[0, 0] = 1')
    assert isinstance(func.body, SBlockRealize) and func.body.block.name_hint == "root"
    func = read(
        'with T.sblock("root"):\n    T.reads(A[0:16, 0:16])\n    T.writes()\n'
        '    with T.sblock("B"):\n        A[0, 0] = 1'
    )
    assert len(func.body.block.reads) == 1


def test_statement_allocation_next_to_blocks():
    func = read(
        'B = T.alloc_buffer((4,), "float32", statement=True)\nC = T.alloc_buffer((4,), "float32")\n'
        'with T.sblock("x"):\n    B[0] = 1\n    C[0] = 1'
    )
    assert isinstance(func.body, SBlockRealize)
    assert len(func.body.block.alloc_buffers) == 1 and isinstance(func.body.block.body, SeqStmt)


# -------------------------------------------------------------------------------------------------------- signatures


def test_match_buffer_is_folded():
    func = from_source(
        """
@T.prim_func(private=True)
def f(x: T.handle, k: T.int32, y: T.handle):
    T.func_attr({"tirx.noalias": True})
    n, m = T.int64(), T.int32()
    X = T.match_buffer(x, (n, m, 4), "float16", strides=(1, n, 2), elem_offset=m,
                       scope="local", align=16, offset_factor=2)
    Y = T.match_buffer(y, (n + 1,))
    Y[0] = T.Cast("float32", X[0, 0, 0])
"""
    )
    assert [p.name for p in func.params] == ["X", "k", "Y"]
    assert func.attrs == {"tirx.noalias": True}
    assert func.params[0].ty.align == 16
    round_trip(func)


def test_shapes_with_text():
    func = read(
        "A[0] = B[0] + T.Cast('float32', n)", 'A: T.Buffer(("n * 2 + 1",), "float32"), B: T.Buffer(("n",)), n: T.int32'
    )
    assert func.params[0].shape[0].a.a is func.params[2]
    func = read(
        "n = T.int32()\nA[n] = 1",
        'A: T.Buffer(("n", T.int64(4), 4), "float32")'.replace(", 4)", ")").replace(", T.int64(4)", ""),
    )
    assert func.params[0].shape[0].dtype == "int32"


def test_attributes_round_trip():
    func = from_source("@T.prim_func(s_tir=True)\ndef f(A: T.Buffer((1,), 'float32')):\n    A[0] = 1\n")
    assert func.attrs == {"global_symbol": "f", "s_tir": True}
    assert "s_tir=True" in round_trip(func).script()
    func = from_source(
        "@T.prim_func\ndef f(A: T.Buffer((1,), 'float32')) -> T.int32:\n"
        "    T.func_attr({'global_symbol': 'other', 'x': [1, (2,),\n"
        "        {'a': T.int64(3), 'b': T.int32(1)}, 1.5, float('inf')]})\n"
        "    A[0] = 1\n    return 1\n"
    )
    assert func.attrs["global_symbol"] == "other"
    round_trip(func)


def test_older_spellings():
    func = from_source(
        """
from tvm.script import tir as T
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            T.block_attr({"a": 1})
            with T.LetStmt(vi + 1) as x:
                A[vi] = T.Cast("float32", x)
"""
    )
    round_trip(func)


# -------------------------------------------------------------------------------------------------------- decorators

CAPTURED = 8


def test_decorators_and_captured_values():
    size, dtype, shape = 4, "float16", (4, CAPTURED)

    def twice(x):
        return x * 2

    @T.prim_func(private=True)
    def func(A: T.Buffer((size, CAPTURED), dtype), B: T.Buffer(shape, "int32")):
        """Documented."""
        for i, j in T.grid(*shape):
            B[i, j] = twice(j) + sum(list(range(size)))
        if size > 3:
            scale = T.meta_var([size, f"{size}"])
            B[0, 0] = scale[0] if len(scale[1]) == 1 else 0
        else:
            B[0, 0] = undefined  # never read

    assert [int(s) for s in func.params[0].shape] == [4, 8]
    assert func.params[0].dtype == "float16"
    assert func.body.seq[0].body.body.value.b.value == 6
    assert func.body.seq[1].value.value == 4
    round_trip(func)


def make(n):
    @T.prim_func
    def func(A: T.Buffer((n,), "float32")):
        for i in range(n):
            A[i] = n

    return func


def test_functions_made_in_a_loop():
    assert [int(make(n).params[0].shape[0]) for n in (1, 2, 3)] == [1, 2, 3]


def test_captured_nodes():
    m = T.int64()

    @T.prim_func
    def func(A: T.Buffer((m, 4), "float32")):
        A[m - 1, 0] = 1

    assert func.params[0].shape[0] is m
    round_trip(func)


def test_intrinsics_refuse_wrong_operands():
    with pytest.raises(TypeError, match=r"T\.exp: expected a floating-point operand, got int32"):
        intrinsic("exp", 3)
    with pytest.raises(TypeError, match="expected 2 operands, got 1"):
        intrinsic("pow", 3.0)


def test_names_that_change_are_buffers_of_one_element():
    """A scalar that a loop or branch assigns again, or that ``+=`` changes, keeps its value across iterations."""

    @T.prim_func
    def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        total = T.int32(3)
        for i in range(4):
            total = total + i
            total += 1
            B[i] = total
        at: T.int32 = 0
        while at < 3:
            at = at + 1
            if A[at] > 2:
                total += A[at]
        B[0] = total * 100 + at

    assert structural_equal(from_source(f.script()), f)
    made = np.zeros(4, "int32")
    run_prim_func(f, [np.array([1, 2, 3, 4], "int32"), made])
    np.testing.assert_array_equal(made, [2003, 6, 9, 13])


def test_a_name_that_changes_keeps_its_dtype():
    with pytest.raises(DiagnosticError, match="'x' changes its dtype"):

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            x = T.int32(3)
            for i in range(4):
                x = A[i]


def test_attributes_of_no_node():
    @T.prim_func
    def f(A: T.Buffer((4,), "int32")):
        with T.attr({"a": 1, "b": "x"}):
            A[0] = 1
        A[1] = T.call_intrin("int32", "tirx.popcount", A[0])

    text = f.script(style="relax")
    assert 'with T.attr({"a": 1, "b": "x"}):' in text and "T.popcount(A[0])" in text
    assert structural_equal(from_source(text), f)
