"""``supple.script.ir_builder.tirx``: programs that are built equal the same programs as text."""

from __future__ import annotations

import re

import numpy as np
import pytest

import supple
from supple import relax
from supple.base.errors import DiagnosticError
from supple.ir.loop import PrimFunc
from supple.ir.structural import assert_structural_equal
from supple.script import tirx as T
from supple.script.ir_builder import IRBuilder
from supple.script.ir_builder import ir as build_ir
from supple.script.ir_builder import tirx as B


def same(built: object, written: object) -> None:
    assert_structural_equal(built, written, map_free_vars=True)
    assert_structural_equal(supple.script.from_source(str(built)), written)


def test_blocks_loops_and_buffers() -> None:
    with IRBuilder() as ib, B.prim_func(s_tir=True):
        B.func_name("main")
        B.func_attr({"tirx.noalias": True})
        a = B.arg("a", B.handle())
        C = B.arg("C", B.Buffer((128,), "float32"))
        A = B.match_buffer(a, (128, 32))
        D = B.sblock_alloc_buffer((128, 32), "float32")
        IRBuilder.name("D", D)
        with B.grid(128, 32) as (i, j), B.sblock("copy"):
            vi, vj = B.axis.remap("SS", [i, j])
            B.reads(A[vi, vj])
            B.writes(D[vi, vj])
            B.buffer_store(D, A[vi, vj] * B.float32(2), [vi, vj])
        with B.serial(0, 128, annotations={"pragma": 1}) as i, B.serial(32) as j, B.sblock("sum"):
            vi = B.axis.spatial(128, i)
            vj = B.axis.reduce(32, j)
            B.where(i < 100)
            B.sblock_attr({"k": 1})
            B.reads(D[vi, 0:32])
            B.writes(C[vi])
            with B.init():
                B.buffer_store(C, 0.0, vi)
            B.buffer_store(C, C[vi] + D[vi, vj], [vi])

    @T.prim_func(s_tir=True)
    def main(a: T.handle, C: T.Buffer((128,), "float32")):
        T.func_attr({"tirx.noalias": True})
        A = T.match_buffer(a, (128, 32))
        D = T.sblock_alloc_buffer((128, 32), "float32")
        for i, j in T.grid(128, 32):
            with T.sblock("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(D[vi, vj])
                D[vi, vj] = A[vi, vj] * T.float32(2)
        for i in T.serial(0, 128, annotations={"pragma": 1}):
            for j in range(32):
                with T.sblock("sum"):
                    vi = T.axis.spatial(128, i)
                    vj = T.axis.reduce(32, j)
                    T.where(i < 100)
                    T.sblock_attr({"k": 1})
                    T.reads(D[vi, 0:32])
                    T.writes(C[vi])
                    with T.init():
                        C[vi] = 0.0
                    C[vi] = C[vi] + D[vi, vj]

    same(ib.get(), main)


def test_statements() -> None:
    with IRBuilder() as ib, B.prim_func():
        B.func_name("f")
        A = B.arg("A", B.Buffer(("n",), "int32"))
        n = B.arg("m", B.int32())
        B.func_ret(B.int32())
        x = B.bind(n + 1)
        IRBuilder.name("x", x)
        with B.Assert(x > 0, "positive"):
            pass
        with B.parallel(4) as i, B.If(i < x):
            with B.Then():
                B.buffer_store(A, i, [i])
            with B.Else():
                B.evaluate(0)
        with B.While(A[0] < 3):
            B.buffer_store(A, A[0] + 1, [0])
        with B.vectorized(4) as i:
            B.buffer_store(A, 1, [i])
        with B.unroll(2) as i, B.attr(0, "key", i):
            L = B.alloc_buffer((1,), "int32", scope="local")
            B.buffer_store(L, i, [0])
        with B.LetStmt(x * 2) as y:
            B.evaluate(y)
        with B.launch_thread("threadIdx.x", 8) as t:
            B.evaluate(t)
        with B.thread_binding(4, thread="blockIdx.x") as b:
            B.evaluate(b)
        B.Return(x)

    @T.prim_func
    def f(A: T.Buffer(("n",), "int32"), m: T.int32) -> T.int32:
        x = m + 1
        assert x > 0, "positive"
        for i in T.parallel(4):
            if i < x:
                A[i] = i
            else:
                T.evaluate(0)
        while A[0] < 3:
            A[0] = A[0] + 1
        for i in T.vectorized(4):
            A[i] = 1
        for i in T.unroll(2):
            with T.attr(0, "key", i):
                L = T.alloc_buffer((1,), "int32", scope="local")
                L[0] = i
        with T.LetStmt(x * 2) as y:
            T.evaluate(y)
        with T.launch_thread("threadIdx.x", 8) as t:
            T.evaluate(t)
        for b in T.thread_binding(4, thread="blockIdx.x"):
            T.evaluate(b)
        return x

    same(ib.get(), f)


def test_a_module_that_is_built_runs() -> None:
    with IRBuilder() as ib, build_ir.ir_module(), B.prim_func():
        B.func_name("double")
        A = B.arg("A", B.Buffer(("n",), "float32"))
        C = B.arg("C", B.Buffer((A.ty.shape[0],), "float32"))
        with B.grid(A.ty.shape[0]) as i, B.sblock("b"):
            v = B.axis.spatial(A.ty.shape[0], i)
            B.buffer_store(C, A[v] * 2.0, [v])
    mod = ib.get()
    assert isinstance(mod["double"], PrimFunc)
    x, out = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    supple.compile(mod)["double"](x, out)
    assert np.array_equal(out, x * 2)


def test_matched_regions_and_views() -> None:
    with IRBuilder() as ib, B.prim_func():
        B.func_name("f")
        A = B.arg("A", B.Buffer((16, 16), "float32"))
        with B.serial(4) as i, B.sblock("outer"):
            v = B.axis.opaque(4, i)
            B.reads(A[v * 4 : v * 4 + 4, 0:16])
            B.writes(A[v * 4 : v * 4 + 4, 0:16])
            S = B.match_buffer(A[v * 4 : v * 4 + 4, 0:16], (4, 16), strides=["s0", "s1"], elem_offset=B.int32())
            B.evaluate(S[0, 0])

    with pytest.raises(DiagnosticError), IRBuilder(), B.prim_func():
        B.func_name("f")
        B.axis.spatial(4, 0)
    assert "match_buffer" in str(ib.get())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda: B.func_name("f"), "stands inside of 'with T.prim_func():'"),
        (lambda: B.reads([]), "stands inside of 'with T.sblock():'"),
    ],
)
def test_outside_of_a_function(body: object, message: str) -> None:
    with IRBuilder(), pytest.raises(DiagnosticError, match=re.escape(message)):
        body()  # type: ignore[operator]


def test_refusals() -> None:
    with pytest.raises(DiagnosticError, match="no name"), IRBuilder(), build_ir.ir_module(), B.prim_func():
        B.evaluate(0)
    with pytest.raises(DiagnosticError, match="type that a loop function cannot take"), IRBuilder(), B.prim_func():
        B.arg("a", 3)
    with pytest.raises(DiagnosticError, match="type that a loop function cannot take"), IRBuilder(), B.prim_func():
        B.arg("x", relax.Var("x", relax.TensorType([4], "float32")))
    for branch in (B.Then, B.Else):
        beside = pytest.raises(DiagnosticError, match="nothing beside the two branches")
        with beside, IRBuilder(), B.prim_func(), B.If(B.bool(True)):
            with branch():
                B.evaluate(1)
            if branch is B.Then:
                B.evaluate(1)
    with pytest.raises(DiagnosticError, match="nothing beside the two branches"), IRBuilder(), B.prim_func():
        B.func_name("f")
        with B.If(B.bool(True)):
            B.evaluate(1)
    with pytest.raises(DiagnosticError, match="bool"), IRBuilder(), B.prim_func(), B.While(B.int32(1)):
        pass
    unknown = pytest.raises(DiagnosticError, match=r"S \(spatial\) or R")
    with unknown, IRBuilder(), B.prim_func(), B.grid(4) as i, B.sblock("b"):
        B.axis.remap("Z", [i])
    with pytest.raises(DiagnosticError, match=r"T\.If has a T\.Then already"), IRBuilder(), B.prim_func():
        B.func_name("f")
        with B.If(B.bool(True)):
            for _ in range(2):
                with B.Then():
                    B.evaluate(1)
    with pytest.raises(DiagnosticError, match="takes a statement"), IRBuilder(), B.prim_func():
        B.add_to_parent(B.int32(1))


def test_statements_outside_of_a_function_and_frames() -> None:
    with IRBuilder() as ib, B.serial(4) as i:
        IRBuilder.name("i", i)
        B.evaluate(i)
    assert str(ib.get()) == "for i in range(4):\n    T.evaluate(i)"
    with IRBuilder() as ib, B.sblock("b"):
        B.evaluate(0)
    assert ib.get().block.annotations["tirx.script_parsing_detect_access"].value == 3  # type: ignore[union-attr]
    with pytest.raises(DiagnosticError, match="a result already"), IRBuilder():
        B.evaluate(0)
        B.evaluate(1)
    left: list[str] = []
    with IRBuilder() as ib, B.prim_func() as frame:
        frame.add_callback(lambda: left.append("left"))
        B.func_name("f")
        A = B.arg("A", B.Buffer((4,), "float32"))
        loop = B.serial(4)
        with loop as i:
            B.buffer_store(A, 0.0, [i])
            assert len(loop.stmts) == 1 and loop.vars == [i] and len(loop.doms) == 1
        assert (frame.name, frame.args, left) == ("f", [A], [])
        x = B.env_thread("threadIdx.x")
        with B.launch_thread(x, 4):
            B.evaluate(x)
    assert left == ["left"] and "thread_binding" in str(ib.get())


def test_modules_declare_functions_and_attributes() -> None:
    with IRBuilder() as ib, B.prim_func(is_private=True):
        B.func_name("p")
        B.evaluate(0)
    func = ib.get()
    assert isinstance(func, PrimFunc)
    with IRBuilder() as ib, build_ir.ir_module() as frame:
        build_ir.module_attrs({"a": 1})
        build_ir.module_set_attr("b", 2)
        build_ir.module_global_infos({"dummy": [build_ir.dummy_global_info()], "vdevice": [build_ir.vdevice("llvm")]})
        var = build_ir.decl_function("p", func)
        assert build_ir.lookup_name("p") and not build_ir.lookup_name("q")
        assert build_ir.lookup_vdevice("llvm", 0) is frame.global_infos["vdevice"][0]
        refused = (
            lambda: build_ir.decl_function("p", func),
            lambda: build_ir.def_function("q", func),
            lambda: build_ir.module_set_attr("a", 2),
            lambda: build_ir.module_attrs({}),
            lambda: build_ir.lookup_vdevice("llvm", 1),
        )
        for call in refused:
            with pytest.raises(DiagnosticError):
                call()
        build_ir.def_function("p", func)
    mod = ib.get()
    assert mod[var] is func and mod.attrs == {"a": 1, "b": 2}  # type: ignore[index, union-attr]
    assert_structural_equal(supple.script.from_source(str(mod)), mod)
