"""Graph functions and modules: every construct parses, prints, and reads back to the same program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from supple.ir.expr import Call, DataflowVar, TupleGetItem
from supple.ir.graph import Constant, DataflowBlock, ExternFunc, Function, If, MatchCast
from supple.ir.module import IRModule
from supple.ir.structural import assert_structural_equal, structural_equal, structural_hash
from supple.ir.types import AnyType, FuncType, PrimType, ShapeType, TensorType, TupleType
from supple.ir.walk import pre_order
from supple.script import from_source
from supple.script import ir as I
from supple.script import relax as R
from supple.script import tirx as T


def round_trip(program, **options):
    again = from_source(program.script(**options))
    assert_structural_equal(program, again)
    assert structural_hash(program) == structural_hash(again)
    assert again.script(**options) == program.script(**options)
    return program


def bindings(func: Function):
    return [b for block in func.body.blocks for b in block.bindings]


@R.function
def relax_mlp(
    data: R.Tensor(("n", 784), dtype="float32"),
    w0: R.Tensor((784, 128), dtype="float32"),
    b0: R.Tensor((128,), dtype="float32"),
    w1: R.Tensor((128, 10), dtype="float32"),
    b1: R.Tensor((10,), dtype="float32"),
) -> R.Tensor(("n", 10), dtype="float32"):
    with R.dataflow():
        lv0 = R.matmul(data, w0) + b0
        lv1 = R.nn.relu(lv0)
        lv2 = R.matmul(lv1, w1) + b1
        R.output(lv2)
    return lv2


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def linear(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
        M, N, K = T.int64(), T.int64(), T.int64()
        X = T.match_buffer(x, (M, K), "float32")
        W = T.match_buffer(w, (K, N), "float32")
        B = T.match_buffer(b, (N,), "float32")
        Z = T.match_buffer(z, (M, N), "float32")
        Y = T.alloc_buffer((M, N), "float32")
        for i, j, k in T.grid(M, N, K):
            with T.sblock("Y"):
                v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[v_i, v_j] = T.float32(0.0)
                Y[v_i, v_j] = Y[v_i, v_j] + X[v_i, v_k] * W[v_k, v_j]
        for i, j in T.grid(M, N):
            with T.sblock("Z"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                Z[v_i, v_j] = Y[v_i, v_j] + B[v_j]

    @T.prim_func(private=True)
    def relu(x: T.handle, y: T.handle):
        M, N = T.int64(), T.int64()
        X = T.match_buffer(x, (M, N), "float32")
        Y = T.match_buffer(y, (M, N), "float32")
        for i, j in T.grid(M, N):
            with T.sblock("Y"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                Y[v_i, v_j] = T.max(X[v_i, v_j], T.float32(0.0))

    @R.function
    def main(
        x: R.Tensor(("n", 784), dtype="float32"),
        w0: R.Tensor((784, 256), dtype="float32"),
        b0: R.Tensor((256,), dtype="float32"),
        w1: R.Tensor((256, 10), dtype="float32"),
        b1: R.Tensor((10,), dtype="float32"),
    ) -> R.Tensor(("n", 10), dtype="float32"):
        cls = Module
        n = T.int64()
        with R.dataflow():
            lv = R.call_tir(cls.linear, (x, w0, b0), out_ty=R.Tensor((n, 256), dtype="float32"))
            lv1 = R.call_tir(cls.relu, (lv,), out_ty=R.Tensor((n, 256), dtype="float32"))
            lv2 = R.call_tir(cls.linear, (lv1, w1, b1), out_ty=R.Tensor((n, 10), dtype="float32"))
            R.output(lv2)
        return lv2


def test_page_function():
    assert [b.var.name for b in bindings(relax_mlp)] == ["lv", "lv0", "lv1", "lv1", "lv2"]
    assert isinstance(relax_mlp.body.blocks[0], DataflowBlock)
    assert str(relax_mlp.ret_ty) == 'R.Tensor((n, 10), dtype="float32")'
    assert not isinstance(relax_mlp.body.body, DataflowVar)
    n = relax_mlp.params[0].ty.shape.values[0]
    assert bindings(relax_mlp)[0].var.ty.shape.values[0] is n
    assert relax_mlp.attrs == {"global_symbol": "relax_mlp"}
    round_trip(relax_mlp)


def test_page_module():
    assert [v.name_hint for v in Module] == ["linear", "relu", "main"]
    assert "global_symbol" not in Module["linear"].attrs
    assert Module["linear"].body.block.alloc_buffers[0].name == "Y"
    assert [p.name for p in Module["linear"].params] == ["X", "W", "B", "Z"]
    round_trip(Module)
    assert "for i, j, k in T.grid(M, N, K):" in Module.script()


def test_decorated_and_text_agree():
    assert_structural_equal(Module, from_source(Module.script()))


def test_spans_point_at_the_text():
    first = bindings(relax_mlp)[0].value
    assert first.span.file == __file__
    line = Path(__file__).read_text(encoding="utf-8").split("\n")[first.span.line - 1]
    assert line[first.span.column - 1 : first.span.end_column - 1] == "R.matmul(data, w0)"


def test_columns_count_characters():
    func = from_source("@R.function\ndef f(größe: R.Tensor((2,), 'float32')):\n    ä = R.exp(größe); return R.exp(ä)\n")
    call = bindings(func)[0].value
    assert (call.span.line, call.span.column, call.span.end_column) == (3, 9, 21)


def test_types_in_signatures():
    func = round_trip(
        from_source(
            """
@R.function(private=True)
def f(
    a: R.Tensor,
    b: R.Tensor(dtype="float16"),
    c: R.Tensor(ndim=3),
    d: R.Tensor((), "int64"),
    e: R.Tensor(("n", "n + 1", "n * 2 - m"), "float32"),
    m: R.Prim("int64"),
    s: R.Shape(["n", 4]),
    t: R.Shape(ndim=2),
    u: R.Shape,
    v: R.Tuple(R.Tensor(("k",), "float32"), R.Tuple(), R.Any),
    w: R.Callable((R.Tensor(("n",), "float32"), R.Any), R.Tensor(("n",), "float32"), purity=False),
    x: R.Callable,
    y: R.Object,
    z: "R.Tensor((3,), 'bool')",
) -> R.Tuple(R.Tensor(("n", "k"), "float32"), R.Shape(["m"])):
    n = T.int64()
    k = T.int64()
    r = R.match_cast(y, R.Tensor((n, k), "float32"))
    return (r, R.shape([m]))
"""
        )
    )
    kinds = [type(p.ty) for p in func.params]
    assert kinds == [TensorType] * 5 + [PrimType] + [ShapeType] * 3 + [
        TupleType,
        FuncType,
        FuncType,
        AnyType,
        TensorType,
    ]
    assert func.params[4].ty.shape.values[2].b is func.params[5]  # "m" is the scalar parameter
    assert func.attrs == {}


def test_values():
    func = round_trip(
        from_source(
            """
@R.function(pure=False)
def f(x: R.Tensor(("n", 4), "float32"), t: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((3,), "int32"))):
    R.func_attr({"a": 1, "b": ["x", 2.5], "c": {"d": None}})
    n = T.int64()
    a, b = t
    c = t[1]
    d = (x, (a, b), R.tuple(c))
    e = d[1][0]
    g = R.const(1.5, "float32")
    h = R.const([[1, 2], [3, 4]], "int8")
    i = R.shape([n, n + 1, 4])
    j = R.prim_value(n * 2)
    k = R.prim_value(3)
    l = R.str("text \\"quoted\\"")
    m = R.dtype("float16")
    o = R.const(True)
    p = R.const(float("inf"), "float64")
    q = x
    r = x.astype("float16")
    R.print(x, a, format="{} {}")
    s = R.call_packed("some.func", x, i, k, l, m, ty_args=R.Tensor((n, 4), "float32"))
    u = R.call_packed("some.func", x)
    v = R.call_pure_packed("pure.func", x, a, sinfo_args=[R.Tensor((n,), "float32"), R.Any])
    w = R.call_dps_packed("dps.func", (x, a), out_sinfo=R.Tensor((n, 7), "int32"))
    y = R.call_dps_packed("dps.func", x, out_ty=[R.Tensor((n, 7), "int32"), R.Tensor((n,), "int8")])
    z = R.ExternFunc("my.func")
    return (e, v)
"""
        )
    )
    assert func.is_pure is False
    assert func.attrs == {"global_symbol": "f", "a": 1, "b": ["x", 2.5], "c": {"d": None}}
    byname = {b.var.name: b.value for b in bindings(func)}
    assert isinstance(byname["c"], TupleGetItem)
    assert isinstance(byname["s"].op, ExternFunc)
    assert byname["h"].data.dtype == np.int8
    assert len(byname["v"].ty_args) == 2


def test_operators_of_python():
    func = round_trip(
        from_source(
            """
@R.function
def f(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((4,), "float32")):
    a = x + y
    b = x - y * 2.0
    c = -x / y
    d = 1.0 - x
    e = x < y
    g = (a, b, c, d, e)
    return g
"""
        )
    )
    names = [b.value.op.name for b in bindings(func) if isinstance(b.value, Call)]
    assert names == [
        "relax.add", "relax.multiply", "relax.subtract", "relax.negative", "relax.divide", "relax.subtract",
        "relax.less",
    ]  # fmt: skip


def test_operator_attributes():
    func = round_trip(
        from_source(
            """
@R.function
def f(x: R.Tensor(("n", 4), "float32")):
    n = T.int64()
    with R.dataflow():
        a = R.sum(x, axis=[1], keepdims=True)
        b = R.reshape(x, (4, n))
        c = R.permute_dims(b, axes=[1, 0])
        d = R.concat((x, c), axis=0)
        e = R.nn.softmax(d, axis=-1)
        g = R.matmul(x, b, out_dtype="float32")
        R.output(e, g)
    return (e, g)
"""
        )
    )
    assert sum(isinstance(b.var, DataflowVar) for b in bindings(func)) == 4


def test_branches():
    func = round_trip(
        from_source(
            """
@R.function
def f(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    if c:
        a = R.exp(x)
        y = R.add(a, x)
    else:
        if c:
            z = R.exp(x)
        else:
            z = x
        y = z
    if c:
        with R.dataflow():
            b = R.exp(y)
            g = R.exp(b)
            R.output(g)
        r = g
    else:
        r = y
    return r
"""
        )
    )
    found = [n for n in pre_order(func) if isinstance(n, If)]
    assert len(found) == 3
    assert found[0].true_branch.body is found[0].true_branch.blocks[0].bindings[-1].var


def test_match_cast_introduces_symbols():
    func = round_trip(
        from_source(
            """
@R.function
def f(x: R.Tensor) -> R.Tensor:
    m = T.int64()
    y: R.Tensor((m, 4), "float32") = R.match_cast(x, R.Tensor((m, 4), "float32"))
    z = R.match_cast(y, R.Tensor(("m", "k"), "float32"))
    with R.dataflow():
        w = R.match_cast(z, R.Tensor((m, 4), "float32"))
        v = R.exp(w)
        R.output(v)
    return v
"""
        )
    )
    assert sum(isinstance(b, MatchCast) for b in bindings(func)) == 3


def test_annotations_are_kept():
    func = round_trip(
        from_source(
            """
@R.function
def f(x: R.Tensor((4,), "float32")):
    y: R.Tensor(ndim=1) = R.exp(x)
    z: R.Any = y
    return z
"""
        )
    )
    assert str(bindings(func)[0].var.ty) == "R.Tensor(ndim=1)"


def test_calls_between_functions():
    mod = round_trip(
        from_source(
            """
@I.ir_module
class Mod:
    I.module_attrs({"a": 1, "b": "x"})

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        cls = Mod
        y = cls.helper(x)
        z = Mod.later(y)
        return cls.recursive(z)

    @R.function(private=True)
    def later(x: R.Tensor(("m", 4), "float32")) -> R.Tensor(("m", 4), "float32"):
        return R.exp(x)

    @R.function
    def helper(x: R.Tensor(("k", 4), "float32")):
        return R.exp(x)

    @R.function
    def recursive(x: R.Tensor(("k", 4), "float32")) -> R.Tensor(("k", 4), "float32"):
        cls = Mod
        return cls.recursive(x)

    ext = R.ExternFunc("symbol")
"""
        )
    )
    assert [v.name_hint for v in mod] == ["main", "later", "helper", "recursive", "ext"]
    assert mod.attrs == {"a": 1, "b": "x"}
    n = mod["main"].params[0].ty.shape.values[0]
    assert bindings(mod["main"])[0].var.ty.shape.values[0] is n


def test_local_functions():
    func = round_trip(
        from_source(
            """
@R.function
def f(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
    n = T.int64()

    @R.function
    def inner(y: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
        z = R.add(x, y)
        return z

    w = inner(x)
    return w
"""
        )
    )
    assert isinstance(bindings(func)[0].value, Function)


def test_tir_vars():
    round_trip(
        from_source(
            """
@I.ir_module
class Mod:
    @T.prim_func(private=True)
    def f(A: T.Buffer(("n",), "float32"), m: T.int64, B: T.Buffer(("n",), "float32")):
        pass

    @T.prim_func(private=True)
    def g(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32"), m: T.int64):
        n = T.int64()
        for i in range(n):
            B[i] = A[i] + T.Cast("float32", m)

    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        cls = Mod
        n = T.int64()
        y = R.call_tir(cls.g, (x,), out_ty=R.Tensor((n,), "float32"), tir_vars=R.shape([n + 1]))
        return y
"""
        )
    )


def test_constants():
    rng = np.random.default_rng(0)
    big = rng.standard_normal((3, 40)).astype("float32")
    nan = np.array([0x7FC01234, 0x3F800000], dtype="uint32").view("float32")
    empty = np.zeros((0, 3), "int8")

    @R.function
    def func(x: R.Tensor((3, 40), "float32")):
        y = R.add(x, R.const(big))
        return (y, R.const(nan), R.const(empty), R.const(np.float16(0.1)), R.const([float("nan"), -0.0], "float64"))

    assert sum(isinstance(n, Constant) for n in pre_order(func)) == 5
    round_trip(func, show_meta=True)
    with pytest.raises(ValueError, match="does not carry the data of its large constants"):
        from_source(func.script())


@pytest.mark.parametrize(
    "names",
    [
        ("x", "x"),
        ("T", "R"),
        ("class", "lambda"),
        ("1a", "a b"),
        ("", "ä·"),
        ("cls", "Module"),
        ("ﬁ", "fi"),
        ("__x", "_"),
    ],
)
def test_names_that_clash_or_are_no_identifiers(names):
    first, second = names
    func = from_source(
        "@R.function\ndef f(a: R.Tensor((2,), 'float32'), b: R.Tensor((2,), 'float32')):\n"
        "    c = R.add(a, b)\n    d = R.subtract(c, a)\n    return d\n"
    )
    for var, name in zip([*func.params, *(b.var for b in bindings(func))], (first, second, first, second)):
        object.__setattr__(var, "name", name)
    round_trip(func)
    other = second or "other"
    round_trip(
        IRModule({f"{first}!": func.without_attr("global_symbol"), other: func.with_attr("global_symbol", other)})
    )


def test_functions_named_alike_when_spelled():
    func = from_source("@R.function(private=True)\ndef f(a: R.Tensor((2,), 'float32')):\n    return a\n")
    mod = round_trip(IRModule({"a-b": func, "a_b": func, "a b": func, "class": func}))
    assert len(mod) == 4


def test_deep_programs():
    lines = "\n".join(f"    x{i + 1} = R.exp(x{i})" for i in range(1000))
    func = from_source(f"@R.function\ndef f(x0: R.Tensor((2,), 'float32')):\n{lines}\n    return x1000\n")
    round_trip(func)


def test_captured_values_and_future_annotations():
    def build(size, weights):
        @R.function
        def func(x: R.Tensor((size, 4), "float32")):
            y = R.add(x, R.const(weights, "float32"))
            return R.reshape(y, (4, size))

        return func

    func = build(3, np.ones(4))
    assert int(func.params[0].ty.shape.values[0]) == 3
    assert structural_equal(func, build(3, [1, 1, 1, 1]))


def test_modules_made_in_functions():
    def build(size):
        @I.ir_module
        class Made:
            @T.prim_func(private=True)
            def copy(A: T.Buffer((size,), "float32"), B: T.Buffer((size,), "float32")):
                for i in range(size):
                    with T.sblock("B"):
                        vi = T.axis.spatial(size, i)
                        B[vi] = A[vi]

            @R.function
            def main(x: R.Tensor((size,), "float32")):
                return R.call_tir(Made.copy, (x,), out_ty=R.Tensor((size,), "float32"))

        return Made

    assert not structural_equal(build(3), build(4))
    round_trip(build(5))


class NotAModule:
    """A plain class may hold programs."""

    @R.function
    def func(x: R.Tensor((2,), "float32")):
        return R.exp(x)


def test_programs_in_plain_classes():
    assert isinstance(NotAModule.func, Function)


def test_types_made_by_python():
    n = T.int64()
    assert isinstance(R.Tensor((n, 4), "float32"), TensorType)
    assert isinstance(R.Tuple(R.Tensor((2,)), R.Any()), TupleType)
    assert str(R.Callable((R.Tensor((2,)),), R.Shape([4]))) == "R.Callable((R.Tensor((2,)),), R.Shape([4]))"
    with pytest.raises(ValueError, match=r"\(4\) is the number|write \(4,\)") as caught:
        R.Tensor((4), "float32")
    assert caught.value.span.file == __file__


UPSTREAM = """
# from typing import TypeVar
# from tvm.script import ir as I
K = TypeVar("K")
M = TypeVar("M")
n = TypeVar("n")
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def linear(X: T.Buffer((M, K), "float32"), Z: T.Buffer((M, K), "float32")):
        # with T.sblock("root"):
        Y = T.sblock_alloc_buffer((M, K))
        for i, j in T.grid(M, K):
            with T.sblock("Z"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(X[v_i, v_j])
                T.writes(Z[v_i, v_j])
                Z[v_i, v_j] = T.if_then_else(v_i < T.int64(3), X[v_i, v_j], T.Cast("float32", v_j // T.int64(2)))

    @R.function
    def main(x: R.Tensor((n, 784), dtype="float32"), c: R.Tensor((), dtype="bool"), s: R.Shape([n, "n + 1"])):
        with R.dataflow():
            gv: R.Tensor((n, 784), dtype="float32") = R.nn.relu(x)
            R.output(gv)
        if c:
            y_then: R.Tensor((n, 784), dtype="float32") = R.add(gv, R.const(1.0, "float32"))
            y: R.Tensor((n, 784), dtype="float32") = y_then
        else:
            y: R.Tensor((n, 784), dtype="float32") = gv
        t: R.Tuple(R.Tensor((n, 784), dtype="float32"), R.Tensor((n, 784), dtype="float32")) = y, gv
        z: R.Tensor((n, 784), dtype="float32") = t[0]
        return z
"""


def test_text_with_type_variables():
    mod = round_trip(from_source(UPSTREAM))
    main = mod["main"]
    n = main.params[0].ty.shape.values[0]
    assert main.params[2].ty.values[0] is n
    branch = next(node for node in pre_order(main) if isinstance(node, If))
    assert branch.true_branch.body.name == "y_then" and branch.false_branch.body.name == "gv"
