"""Statements and scalar expressions of loop functions as native code, against the interpreter and numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_tools import Kernel, KernelError

from supple.base.errors import InternalError, NotSupportedError
from supple.base.target import target
from supple.codegen.kernel import emit_kernel
from supple.codegen.llvm import compile_text, target_machine
from supple.interp.loops import run_prim_func
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Var, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.loop import Buffer, BufferStore, For, ForKind, PrimFunc, SeqStmt
from supple.ir.types import prim_type
from supple.runtime.elf import elf_symbols
from supple.runtime.native import load_objects
from supple.script import from_source

HEAD = "from supple.script import tirx as T\n\n"


def parse(text: str) -> PrimFunc:
    made = from_source(HEAD + text)
    assert isinstance(made, PrimFunc)
    return made


def elementwise(build: Any, kinds: list[str], result: str) -> PrimFunc:
    n = Var("n", prim_type("int64"))
    inputs = [Buffer(f"x{i}", (n,), d) for i, d in enumerate(kinds)]
    out = Buffer("out", (n,), result)
    i = Var("i", prim_type("int64"))
    value = build(*(BufferLoad(x, (i,)) for x in inputs))
    return PrimFunc((*inputs, out), For(i, int64(0), n, ForKind.SERIAL, BufferStore(out, value, (i,))))


def native(func: PrimFunc, *arrays: Any, result: str, **options: Any) -> Any:
    out = np.empty(arrays[0].shape, result)
    Kernel(func, **options)(*arrays, out)
    return out


# -------------------------------------------------------------------------------------------------- integer arithmetic

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def edge_pairs(dtype: str) -> tuple[Any, Any]:
    info = np.iinfo(dtype)
    edges = [0, 1, 2, 3, 7, 8, 63, info.max, info.max - 1, info.min, info.min + 1]
    edges += [-1, -2, -7] if info.min < 0 else []
    grid = np.array(edges, dtype)
    return np.repeat(grid, grid.size), np.tile(grid, grid.size)


@pytest.mark.parametrize("dtype", INTS)
def test_integer_operations_are_total(dtype: str) -> None:
    x, y = edge_pairs(dtype)
    for kind in (E.Add, E.Sub, E.Mul, E.Div, E.Mod, E.FloorDiv, E.FloorMod, E.Min, E.Max):
        func = elementwise(kind, [dtype, dtype], dtype)
        expected = np.empty_like(x)
        run_prim_func(func, [x, y, expected])
        np.testing.assert_array_equal(native(func, x, y, result=dtype), expected, kind.__name__)
    for name in ("shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor"):
        func = elementwise(lambda a, b, name=name: intrinsic(name, a, b), [dtype, dtype], dtype)
        expected = np.empty_like(x)
        run_prim_func(func, [x, y, expected])
        np.testing.assert_array_equal(native(func, x, y, result=dtype), expected, name)


def test_division_by_what_the_divisor_may_be() -> None:
    x = np.array([-9, -8, -1, 0, 1, 7, 8, 9, -(2**31), 2**31 - 1], "int32")
    for divisor in (1, 2, 3, 8, -1, -3, 0, 7):
        for kind, plain in ((E.FloorDiv, np.floor_divide), (E.FloorMod, np.mod)):
            got = native(elementwise(lambda a, d=divisor, k=kind: k(a, E.const(d, "int32")), ["int32"], "int32"), x,
                         result="int32")  # fmt: skip
            if divisor == 0:
                expected = np.zeros_like(x)
            else:
                expected = plain(x.astype("int64"), divisor).astype("int32")
            np.testing.assert_array_equal(got, expected)


# ------------------------------------------------------------------------------------------------------------- casts

FLOATS = ["float16", "float32", "float64"]


@pytest.mark.parametrize("source", [*INTS, *FLOATS, "bool"])
def test_casts(source: str) -> None:
    if source == "bool":
        x = np.array([True, False])
    elif source in INTS:
        x = edge_pairs(source)[0]
    else:
        edges = [0.0, -0.0, 1.5, -1.5, 0.49, 300.0, -300.0, 65504.0, 1e5, -1e9, 3e9, 1e19, -1e19, np.inf, -np.inf,
                 np.nan, 6e-8, 2.98e-8, 1e-300, 2047.5, 2049.0, 65519.9, 65520.0]  # fmt: skip
        with np.errstate(all="ignore"):
            x = np.array(edges, "float64").astype(source)
    for wanted in [*INTS, *FLOATS, "bool"]:
        func = elementwise(lambda a, w=wanted: E.Cast(w, a), [source], wanted)
        expected = np.empty(x.shape, wanted)
        with np.errstate(all="ignore"):
            run_prim_func(func, [x, expected])
        for spec in ("llvm", "llvm -mcpu=x86-64"):
            got = native(func, x, result=wanted, target=target(spec))
            np.testing.assert_array_equal(got, expected, f"{source} to {wanted}")


def test_float16_rounds_after_every_operation() -> None:
    bits = np.arange(0, 65536, 7, dtype="uint16")
    x = bits.view("float16")
    y = bits[::-1].copy().view("float16")
    for spec in ("llvm", "llvm -mcpu=x86-64"):
        for kind, plain in ((E.Add, np.add), (E.Mul, np.multiply), (E.Div, np.divide)):
            with np.errstate(all="ignore"):
                expected = plain(x, y)
            got = native(elementwise(kind, ["float16"] * 2, "float16"), x, y, result="float16", target=target(spec))
            np.testing.assert_array_equal(got, expected)


def test_every_float16_converts_exactly_without_the_instruction() -> None:
    x = np.arange(65536, dtype="uint16").view("float16")
    machine = target("llvm -mcpu=x86-64")
    widen = elementwise(lambda a: E.Cast("float32", a), ["float16"], "float32")
    wide = native(widen, x, result="float32", target=machine)
    np.testing.assert_array_equal(wide, x.astype("float32"))
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2**32, 100_000, dtype="uint64").astype("uint32").view("float32")
    shorten = elementwise(lambda a: E.Cast("float16", a), ["float32"], "float16")
    narrow = native(shorten, y, result="float16", target=machine)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(narrow, y.astype("float16"))


# ------------------------------------------------------------------------------------------------- floats, comparisons


def test_nan_propagates_and_comparisons_are_false() -> None:
    x = np.array([1, np.nan, 2, -0.0, np.inf], "float32")
    y = np.array([np.nan, 1, 1, 0.0, -np.inf], "float32")
    kinds: list[tuple[Any, Any, str]] = [
        (E.Max, np.maximum, "float32"), (E.Min, np.minimum, "float32"), (E.LT, np.less, "bool"),
        (E.GE, np.greater_equal, "bool"), (E.EQ, np.equal, "bool"), (E.NE, np.not_equal, "bool"),
    ]  # fmt: skip
    for kind, plain, result in kinds:
        got = native(elementwise(kind, ["float32"] * 2, result), x, y, result=result)
        np.testing.assert_array_equal(got, plain(x, y))


@st.composite
def expressions(draw: Any, depth: int = 4) -> Any:
    """A builder of an int32 expression over two operands."""
    if depth == 0 or draw(st.booleans()):
        pick = draw(st.sampled_from(["x", "y", "const"]))
        number = draw(st.integers(-10, 10))
        return {"x": lambda x, y: x, "y": lambda x, y: y, "const": lambda x, y: E.const(number, "int32")}[pick]
    kinds = [E.Add, E.Sub, E.Mul, E.FloorDiv, E.FloorMod, E.Div, E.Mod, E.Min, E.Max, "select", "if"]
    kind = draw(st.sampled_from(kinds))
    a, b = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    if kind in ("select", "if"):
        c = draw(expressions(depth=depth - 1))
        if kind == "select":
            return lambda x, y: E.Select(E.LT(a(x, y), b(x, y)), c(x, y), a(x, y))
        return lambda x, y: intrinsic("if_then_else", E.LE(a(x, y), b(x, y)), c(x, y), b(x, y))
    return lambda x, y: kind(a(x, y), b(x, y))


@settings(max_examples=40, deadline=None)
@given(expressions())
def test_random_integer_expressions(build: Any) -> None:
    x, y = edge_pairs("int32")
    func = elementwise(build, ["int32", "int32"], "int32")
    expected = np.empty_like(x)
    run_prim_func(func, [x, y, expected])
    for schedule in (True, False):
        np.testing.assert_array_equal(native(func, x, y, result="int32", schedule=schedule), expected)


def test_depth_is_no_limit() -> None:
    def chain(x: Any) -> Any:
        total = x
        for _ in range(5000):
            total = E.Add(total, x)
        return total

    def tower(x: Any) -> Any:
        total = x
        for _ in range(2000):
            total = E.Add(E.const(1, "int32"), E.Mul(total, E.const(1, "int32")))
        return total

    x = np.array([1, 2, 3], "int32")
    np.testing.assert_array_equal(native(elementwise(chain, ["int32"], "int32"), x, result="int32"), x * 5001)
    np.testing.assert_array_equal(native(elementwise(tower, ["int32"], "int32"), x, result="int32"), x + 2000)


# --------------------------------------------------------------------------------------------------------- statements

CONTROL = """
@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32):
    for i in range(16):
        B[i] = -1
    for i in T.serial(2, 12):
        if A[i] > 3 and i % 2 == 0:
            B[i] = A[i] * 10 + n
        else:
            B[i] = i
    for i in T.unroll(3):
        B[i] = B[i] + i
    for i in T.vectorized(4):
        B[i + 12] = A[i] + T.Cast("int32", i)
"""


def test_control_flow() -> None:
    func = parse(CONTROL)
    a = np.arange(16, dtype="int32")
    expected, got = np.empty(16, "int32"), np.empty(16, "int32")
    run_prim_func(func, [a, expected, 5])
    for schedule in (True, False):
        Kernel(func, schedule=schedule)(a, got, 5)
        np.testing.assert_array_equal(got, expected)


WHILE = """
@T.prim_func
def f(A: T.Buffer((1,), "int64"), B: T.Buffer((2,), "int64")):
    B[0] = A[0]
    B[1] = T.int64(0)
    while B[0] != T.int64(1):
        B[0] = T.Select(B[0] % T.int64(2) == T.int64(0), B[0] // T.int64(2), B[0] * T.int64(3) + T.int64(1))
        B[1] = B[1] + T.int64(1)
"""


def test_while() -> None:
    b = np.zeros(2, "int64")
    Kernel(parse(WHILE))(np.array([27]), b)
    assert b.tolist() == [1, 111]


GATHER = """
@T.prim_func
def f(x: T.handle, index: T.handle, y: T.handle):
    n, m = T.int64(), T.int64()
    X = T.match_buffer(x, (n,), "float32")
    I = T.match_buffer(index, (m,), "int64")
    Y = T.match_buffer(y, (m,), "float32")
    for i in range(m):
        with T.sblock("gather"):
            v = T.axis.spatial(m, i)
            Y[v] = X[I[v]]
"""


def test_unproved_index_is_checked_when_it_runs() -> None:
    kernel = Kernel(parse(GATHER))
    x, y = np.arange(5, dtype="float32"), np.empty(3, "float32")
    kernel(x, np.array([4, 0, 2]), y)
    assert y.tolist() == [4, 0, 2]
    for bad in (5, -1, 2**62):
        with pytest.raises(KernelError, match=rf"index {bad} is out of bounds for axis 0 of X, whose size is 5"):
            kernel(x, np.array([4, bad, 2]), y)
    assert kernel.sites[0].kind == "index"


SHIFTED = """
@T.prim_func
def f(x: T.handle, y: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n + 1,), "float32")
    for i in range(n + 1):
        with T.sblock("b"):
            v = T.axis.spatial(n + 1, i)
            Y[v] = {value}
"""


def test_a_guard_proves_and_its_lack_is_caught() -> None:
    guarded = Kernel(parse(SHIFTED.format(value="T.if_then_else(v >= T.int64(1), X[v - T.int64(1)], T.float32(9.0))")))
    assert not guarded.sites
    y = np.empty(4, "float32")
    guarded(np.arange(3, dtype="float32"), y)
    assert y.tolist() == [9, 0, 1, 2]
    unguarded = Kernel(parse(SHIFTED.format(value="X[v - T.int64(1)]")))
    with pytest.raises(KernelError, match="index -1 is out of bounds for axis 0 of X"):
        unguarded(np.arange(3, dtype="float32"), y)


def test_pages_functions_need_no_checks() -> None:
    func = parse("""
@T.prim_func(private=True)
def relu(x: T.handle, y: T.handle):
    M, N = T.int64(), T.int64()
    X = T.match_buffer(x, (M, N), "float32")
    Y = T.match_buffer(y, (M, N), "float32")
    for i, j in T.grid(M, N):
        with T.sblock("Y"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            Y[v_i, v_j] = T.max(X[v_i, v_j], T.float32(0.0))
""")
    for schedule in (True, False):
        kernel = Kernel(func, schedule=schedule)
        assert not kernel.sites
        for shape in [(0, 3), (1, 1), (3, 7), (5, 64), (2, 33)]:
            x = np.random.default_rng(0).standard_normal(shape).astype("float32")
            y = np.empty_like(x)
            kernel(x, y)
            np.testing.assert_array_equal(y, np.maximum(x, 0))


ASSERT = """
@T.prim_func
def f(A: T.Buffer((4,), "int32")):
    assert A[0] > 2, "the first must be above {2}"
    A[1] = 7
"""


def test_assert_fails_with_its_message() -> None:
    kernel = Kernel(parse(ASSERT))
    a = np.array([3, 0, 0, 0], "int32")
    kernel(a)
    assert a[1] == 7
    with pytest.raises(KernelError, match=r"the first must be above \{2\}"):
        kernel(np.zeros(4, "int32"))


# ------------------------------------------------------------------------------------------- elementwise and reductions


@pytest.mark.parametrize("body", [
    "Y[v_i, v_j] = X[v_i, v_j] + B[v_j]", "Y[v_i, v_j] = X[v_i, v_j] * C[v_i]", "Y[v_i, v_j] = X[v_i, v_j] / B[v_j]",
    "Y[v_i, v_j] = T.exp(X[v_i, v_j])", "Y[v_i, v_j] = T.Cast('float32', v_i * v_j)",
    "Y[v_i, v_j] = X[v_i, v_j] + Y[v_i, v_j]",
    "Y[v_i, v_j] = T.if_then_else(v_j > T.int64(2), X[v_i, v_j - T.int64(2)], T.float32(1.0))",
    "Y[v_i, v_j] = T.Select(X[v_i, v_j] > T.float32(0.0), X[v_i, v_j], B[v_j])",
    "Y[v_i, N - T.int64(1) - v_j] = X[v_i, v_j]", "Y[v_i, v_j] = X[v_i, v_j] * T.float32(2.0)",
])  # fmt: skip
def test_data_parallel_nests(body: str) -> None:
    func = parse(f"""
@T.prim_func(private=True)
def f(x: T.handle, b: T.handle, c: T.handle, y: T.handle):
    M, N = T.int64(), T.int64()
    X = T.match_buffer(x, (M, N), "float32")
    B = T.match_buffer(b, (N,), "float32")
    C = T.match_buffer(c, (M,), "float32")
    Y = T.match_buffer(y, (M, N), "float32")
    for j, i in T.grid(N, M):
        with T.sblock("Y"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            {body}
""")
    kernels = [Kernel(func), Kernel(func, distrust=True), Kernel(func, schedule=False)]
    rng = np.random.default_rng(0)
    for m, n in [(0, 4), (3, 0), (1, 1), (2, 7), (3, 8), (5, 31), (4, 129)]:
        x, b, c = (rng.standard_normal(s).astype("float32") for s in ((m, n), n, m))
        start = rng.standard_normal((m, n)).astype("float32")
        expected = start.copy()
        run_prim_func(func, [x, b, c, expected])
        for kernel in kernels:
            y = start.copy()
            kernel(x, b, c, y)
            np.testing.assert_allclose(y, expected, rtol=1e-6)


@pytest.mark.parametrize("update", [
    "S[v_i] + X[v_i, v_k]", "T.max(S[v_i], X[v_i, v_k])", "T.min(S[v_i], X[v_i, v_k])", "S[v_i] * X[v_i, v_k]",
    "S[v_i] + X[v_i, v_k] * X[v_i, v_k]", "S[v_i] + X[v_k, v_i]", "T.max(S[v_i], X[v_k, v_i])",
    "S[v_i] + T.exp(X[v_i, v_k])", "S[v_i] + X[v_i, K - T.int64(1) - v_k]",
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_reductions(update: str, dtype: str) -> None:
    if dtype == "int32" and "exp" in update:
        return
    shape = "(K, M)" if "v_k, v_i" in update else "(M, K)"
    func = parse(f"""
@T.prim_func(private=True)
def f(x: T.handle, s: T.handle):
    M, K = T.int64(), T.int64()
    X = T.match_buffer(x, {shape}, "{dtype}")
    S = T.match_buffer(s, (M,), "{dtype}")
    for k, i in T.grid(K, M):
        with T.sblock("S"):
            v_i, v_k = T.axis.remap("SR", [i, k])
            with T.init():
                S[v_i] = T.{dtype}(3)
            S[v_i] = {update}
""")
    kernels = [Kernel(func), Kernel(func, distrust=True), Kernel(func, schedule=False)]
    rng = np.random.default_rng(0)
    for m, k in [(0, 4), (3, 0), (1, 1), (9, 7), (3, 32), (40, 33), (2, 129)]:
        size = (k, m) if shape == "(K, M)" else (m, k)
        x = (rng.standard_normal(size) if dtype == "float32" else rng.integers(-9, 9, size)).astype(dtype)
        expected = np.empty(m, dtype)
        run_prim_func(func, [x, expected])
        for kernel in kernels:
            got = np.empty(m, dtype)
            kernel(x, got)
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
        if dtype == "float32" and m and k:
            x.flat[0] = np.nan
            kernels[0](x, got)
            assert np.isnan(got).any()


@pytest.mark.parametrize("init", ["with T.init(): S[v_j] = T.float32(0.5)", ""])
@pytest.mark.parametrize("rows, columns", [("K", "N"), (35, "N"), ("K", 70), (17, 9000)])
def test_sums_of_many_columns_are_in_order(rows: int | str, columns: int | str, init: str) -> None:
    """In panels of columns, several rows at a time: every sum has the bits of the plain loop's."""
    func = parse(f"""
@T.prim_func(private=True)
def f(x: T.handle, s: T.handle):
    N, K = T.int64(), T.int64()
    X = T.match_buffer(x, (3, {rows}, {columns}), "float32")
    S = T.match_buffer(s, ({columns},), "float32")
    for b, j, k in T.grid(3, {columns}, {rows}):
        with T.sblock("S"):
            v_b, v_j, v_k = T.axis.remap("RSR", [b, j, k])
            {init or "pass"}
            S[v_j] = S[v_j] + X[v_b, v_k, v_j]
""")
    kernel, plain = Kernel(func), Kernel(func, schedule=False)
    assert "* 8 + 7" in kernel.scheduled.script()
    rng = np.random.default_rng(0)
    for k, n in [(0, 5), (1, 1), (7, 31), (8, 33), (9, 256), (33, 1031), (16, 4100)]:
        size = (k if rows == "K" else rows, n if columns == "N" else columns)
        x = rng.standard_normal((3, *size)).astype("float32")
        got, expected = (np.full(size[1], 0.25, "float32") for _ in range(2))
        kernel(x, got)
        plain(x, expected)
        np.testing.assert_array_equal(got, expected)


# ---------------------------------------------------------------------------------------------------------- refusals


def test_what_cannot_be_compiled_is_named() -> None:
    cases = {
        "for i in T.thread_binding(4, thread='threadIdx.x'):\n        A[i] = 0": "threadIdx.x",
        "T.evaluate(T.call_extern('int32', 'puts', A[0]))": "call_extern",
    }
    for body, name in cases.items():
        func = parse(f"\n@T.prim_func\ndef f(A: T.Buffer((4,), 'int32')):\n    {body}\n")
        with pytest.raises(NotSupportedError, match=name):
            Kernel(func)


def test_unknown_variable_is_an_error() -> None:
    a, stray = Buffer("A", (int64(4),), "int32"), Var("stray", prim_type("int32"))
    with pytest.raises(NotSupportedError, match="stray"):
        Kernel(PrimFunc((a,), SeqStmt((BufferStore(a, stray, (int64(0),)),))))


def test_undefined_symbols_are_refused_by_name() -> None:
    machine = target("llvm")
    body = "define i32 @k() {\n  %a = call i32 @nothing_of_the_kind()\n  ret i32 %a\n}\n"
    text = f"declare i32 @nothing_of_the_kind()\n{body}"
    code = compile_text(text, machine)
    symbols = elf_symbols(code)
    if symbols is not None:
        assert symbols == ({"k"}, {"nothing_of_the_kind"})
    with pytest.raises(InternalError, match="nothing_of_the_kind"):
        load_objects([code], ["k"])
    with pytest.raises(InternalError, match="does not define other"):
        load_objects([code], ["other"], {"nothing_of_the_kind": 8})


def test_faulty_text_is_an_error_of_our_own() -> None:
    with pytest.raises(InternalError, match="LLVM refused"):
        compile_text("define i32 @k() {\n  ret i32 %x\n}\n", target("llvm"))


def test_targets() -> None:
    v4 = target("llvm -mcpu=x86-64-v4")
    assert (v4.vector_bits, v4.vector_registers, v4.has_fma) == (512, 32, True)
    v1 = target("llvm -mcpu=x86-64")
    assert (v1.vector_bits, v1.has_fma, v1.has_rounding) == (128, False, False)
    arm = target("llvm -mtriple=aarch64-linux-gnu")
    assert (arm.arch, arm.vector_bits, arm.vector_registers) == ("aarch64", 128, 32)
    assert target("llvm").is_host and not arm.is_host
    assert target("llvm -mcpu=znver3 -mattr=+avx2").vector_bits == 256
    for bad, message in [("cuda", "cuda"), ("llvm -mcpu=znver33", "did you mean"), ("llvm -mcp=x", "-mcp=x"),
                         ("llvm -mattr=avx", "avx"), ("llvm -mtriple=mips-x-y", "mips"), ("", "empty")]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            target(bad)
    func = parse(GATHER)
    for spec in ("llvm -mcpu=x86-64", "llvm -mcpu=x86-64-v4", "llvm -mtriple=aarch64-linux-gnu"):
        assert compile_text(emit_kernel(func, "kernel", target(spec), []).llvm_text, target(spec))
    assert target_machine(v4) is target_machine(target("llvm -mcpu=x86-64-v4"))


def test_messages_use_the_functions_own_name() -> None:
    sites: list[Any] = []
    emit_kernel(parse(GATHER), "kernel.7.f", target("llvm"), sites, title="gather")
    assert sites[0].message.startswith("gather: index {0} is out of bounds")


def test_nested_unrolling_has_a_limit() -> None:
    func = parse("""
@T.prim_func
def f(A: T.Buffer((1,), "int64")):
    for i in T.unroll(1000):
        for j in T.unroll(1000):
            for k in T.unroll(10):
                A[0] = A[0] + T.int64(1)
""")
    kernel = Kernel(func)
    assert len(kernel.code.llvm_text) < 1_000_000
    a = np.zeros(1, "int64")
    kernel(a)
    assert a[0] == 10**7


def test_a_claim_of_proved_bounds_is_not_believed() -> None:
    func = parse("""
@T.prim_func
def f(A: T.Buffer((4,), "int32"), n: T.int32):
    with T.attr(None, "tirx.proved_in_bounds", T.bool(True)):
        A[n] = 1
""")
    with pytest.raises(KernelError, match="index 1000000 is out of bounds"):
        Kernel(func)(np.zeros(4, "int32"), 1000000)


def test_scheduled_text_is_a_program_of_the_same_meaning() -> None:
    func = parse("""
@T.prim_func(private=True)
def f(x: T.handle, w: T.handle, z: T.handle):
    M, N, K = T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (M, K), "float32")
    W = T.match_buffer(w, (K, N), "float32")
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
            Z[v_i, v_j] = T.exp(Y[v_i, v_j])
""")
    kernel = Kernel(func)
    again = from_source(kernel.scheduled.script())
    assert isinstance(again, PrimFunc)
    rng = np.random.default_rng(0)
    for m, n, k in [(13, 21, 5), (2, 70, 3)]:
        x, w = rng.standard_normal((m, k)).astype("float32"), rng.standard_normal((k, n)).astype("float32")
        first, second, third = (np.empty((m, n), "float32") for _ in range(3))
        kernel(x, w, first)
        Kernel(again)(x, w, second)
        np.testing.assert_array_equal(first, second)
        run_prim_func(kernel.scheduled, [x, w, third])
        np.testing.assert_allclose(first, third, rtol=1e-5)


def test_a_row_of_a_reduction_is_the_same_for_every_number_of_rows() -> None:
    func = parse("""
@T.prim_func(private=True)
def f(x: T.handle, s: T.handle):
    M, K = T.int64(), T.int64()
    X = T.match_buffer(x, (M, K), "float32")
    S = T.match_buffer(s, (M,), "float32")
    for i, k in T.grid(M, K):
        with T.sblock("S"):
            v_i, v_k = T.axis.remap("SR", [i, k])
            with T.init():
                S[v_i] = T.float32(0.0)
            S[v_i] = S[v_i] + X[v_i, v_k]
""")
    kernel = Kernel(func)
    x = np.random.default_rng(0).standard_normal((65, 1001)).astype("float32")
    whole = np.empty(65, "float32")
    kernel(x, whole)
    for m in (1, 2, 7, 64):
        part = np.empty(m, "float32")
        kernel(np.ascontiguousarray(x[:m]), part)
        np.testing.assert_array_equal(part, whole[:m])


def test_vectorised_loops_whose_iterations_meet_run_in_order() -> None:
    func = parse("""
@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((4,), "int32")):
    for i in T.vectorized(15):
        A[i + 1] = A[i] + 1
    for i in T.vectorized(16):
        B[i // 4] = B[i // 4] + A[i]
""")
    a, b = np.zeros(16, "int32"), np.zeros(4, "int32")
    Kernel(func)(a, b)
    assert a.tolist() == list(range(16))
    assert b.tolist() == [6, 22, 38, 54]
