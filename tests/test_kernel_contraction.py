"""Contractions as written by hand: any loop order, layout and size, against float64; bitwise the same for every n."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from kernel_tools import Kernel
from llvmlite.binding import ObjectFileRef

from supple.base.errors import NotSupportedError
from supple.base.target import Target, host, target
from supple.codegen.kernel import emit_kernel
from supple.codegen.llvm import compile_text, optimized_text
from supple.interp.loops import run_prim_func
from supple.ir.loop import PrimFunc, SBlockRealize
from supple.schedule.default import schedule_func
from supple.script import from_source

HEAD = "from supple.script import tirx as T\n\n"


def matmul(
    order: str = "ijk", left: str = "i, k", right: str = "k, j", dims: tuple[Any, Any, Any] = ("M", "N", "K"),
    dtype: str = "float32", init: str = "inside", bias: str | None = None,
) -> PrimFunc:  # fmt: skip
    """A matmul in TVMScript; ``bias`` is an elementwise consumer of the sum."""
    sizes = dict(zip("ijk", dims, strict=True))
    symbols = [d for d in dims if isinstance(d, str)]
    shape = {side: ", ".join(str(sizes[v.strip()]) for v in text.split(",")) for side, text in
             (("left", left), ("right", right), ("out", "i, j"))}  # fmt: skip
    at = {side: ", ".join(f"v_{v.strip()}" for v in text.split(",")) for side, text in
          (("left", left), ("right", right))}  # fmt: skip
    out = "Y" if bias else "Z"
    kinds = "".join("R" if v == "k" else "S" for v in "ijk")
    lines = ["@T.prim_func(private=True)", "def f(x: T.handle, w: T.handle, b: T.handle, z: T.handle):"]
    if symbols:
        lines.append(f"    {', '.join(symbols)} = {', '.join('T.int64()' for _ in symbols)}")
    lines += [
        f'    X = T.match_buffer(x, ({shape["left"]},), "{dtype}")',
        f'    W = T.match_buffer(w, ({shape["right"]},), "{dtype}")',
        f'    B = T.match_buffer(b, ({sizes["j"]},), "{dtype}")',
        f'    Z = T.match_buffer(z, ({shape["out"]}), "{dtype}")',
    ]
    if bias:
        lines.append(f'    Y = T.alloc_buffer(({shape["out"]}), "{dtype}")')
    zero = f"T.{dtype}(0)" if dtype.startswith("int") else f"T.{dtype}(0.0)"
    if init == "apart":
        lines += [
            f"    for i, j in T.grid({sizes['i']}, {sizes['j']}):",
            '        with T.sblock("zero"):',
            '            v_i, v_j = T.axis.remap("SS", [i, j])',
            f"            {out}[v_i, v_j] = {zero}",
        ]
    lines += [
        f"    for {', '.join(order)} in T.grid({', '.join(str(sizes[v]) for v in order)}):",
        '        with T.sblock("product"):',
        f'            v_i, v_j, v_k = T.axis.remap("{kinds}", [i, j, k])',
    ]
    if init == "inside":
        lines += ["            with T.init():", f"                {out}[v_i, v_j] = {zero}"]
    lines.append(f"            {out}[v_i, v_j] = {out}[v_i, v_j] + X[{at['left']}] * W[{at['right']}]")
    if bias:
        lines += [
            f"    for i, j in T.grid({sizes['i']}, {sizes['j']}):",
            '        with T.sblock("bias"):',
            '            v_i, v_j = T.axis.remap("SS", [i, j])',
            f"            Z[v_i, v_j] = {bias}",
        ]
    made = from_source(HEAD + "\n".join(lines) + "\n")
    assert isinstance(made, PrimFunc)
    return made.with_attr("tirx.noalias", True)


def arrays(m: int, n: int, k: int, dtype: str, left: str, right: str) -> list[Any]:
    rng = np.random.default_rng(m * 1000003 + n * 1009 + k)
    sizes = {"i": m, "j": n, "k": k}

    def make(text: str) -> Any:
        shape = [sizes[v.strip()] for v in text.split(",")]
        if dtype.startswith("int"):
            return rng.integers(-100, 100, shape).astype(dtype)
        return rng.standard_normal(shape).astype(dtype)

    return [make(left), make(right), make("j"), np.full((m, n), 7, dtype)]


def check(kernel: Kernel, m: int, n: int, k: int, dtype: str = "float32", left: str = "i, k", right: str = "k, j",
          bias: bool = False, start: float = 0) -> Any:  # fmt: skip
    x, w, b, z = arrays(m, n, k, dtype, left, right)
    kernel(x, w, b, z)
    a = x.T if left.startswith("k") else x
    c = w.T if right.startswith("j") else w
    exact = a.astype("float64") @ c.astype("float64") + start
    scale = np.abs(a).astype("float64") @ np.abs(c).astype("float64")
    if bias:
        exact, scale = np.maximum(exact + b, 0), scale + np.abs(b)
    if dtype.startswith("int"):
        np.testing.assert_array_equal(z, exact.astype(dtype))
        return z
    eps = np.finfo(dtype).eps
    assert (np.abs(z - exact) <= 2 * eps * (k + 2) * (scale + abs(start)) + 1e-30).all(), (m, n, k)
    return z


SIZES = [(0, 5, 7), (1, 1, 1), (1, 33, 5), (2, 8, 9), (3, 24, 4), (4, 31, 3), (5, 7, 11), (6, 16, 2), (7, 17, 13),
         (11, 40, 1), (13, 5, 6), (29, 48, 17), (64, 3, 8), (3, 0, 4), (4, 9, 0), (25, 257, 31)]  # fmt: skip


@pytest.mark.parametrize("layout", [("i, k", "k, j"), ("k, i", "k, j"), ("i, k", "j, k"), ("k, i", "j, k")])
@pytest.mark.parametrize("order", ["ijk", "jik", "kji"])
def test_every_order_and_layout(order: str, layout: tuple[str, str]) -> None:
    checked = Kernel(matmul(order, *layout), distrust=True)
    for kernel in (checked, Kernel(matmul(order, *layout))) if order == "ijk" else (checked,):
        for m, n, k in SIZES:
            check(kernel, m, n, k, left=layout[0], right=layout[1])


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_other_dtypes(dtype: str) -> None:
    kernel = Kernel(matmul(dtype=dtype))
    for m, n, k in SIZES:
        check(kernel, m, n, k, dtype)


def test_static_sizes_with_32_bit_loop_variables() -> None:
    for m, n, k in [(1, 10, 16), (6, 16, 3), (7, 10, 5), (32, 250, 31), (5, 3, 2)]:
        check(Kernel(matmul("jik", dims=(m, n, k))), m, n, k)
        check(Kernel(matmul("ijk", dims=("M", n, k))), m, n, k)


def test_initialisation_apart_and_consumer_in_the_store() -> None:
    for init, distrust in (("inside", True), ("inside", False), ("apart", False)):
        func = matmul(init=init, bias="T.max(Y[v_i, v_j] + B[v_j], T.float32(0.0))")
        kernel = Kernel(func, distrust=distrust)
        root = kernel.scheduled.body
        assert isinstance(root, SBlockRealize) and not root.block.alloc_buffers  # the sum is not stored in between
        for m, n, k in SIZES:
            check(kernel, m, n, k, bias=True)


def test_sum_that_goes_on_from_the_result() -> None:
    for kernel in (Kernel(matmul(init="none"), distrust=True), Kernel(matmul(init="none"))):
        for m, n, k in SIZES:
            check(kernel, m, n, k, start=7)


@pytest.mark.parametrize("right", ["k, j", "j, k"])
@pytest.mark.parametrize("dims", [("M", "N", "K"), ("M", 250, 781), ("M", 10, 64), ("M", 5, 9)])
def test_a_row_is_bitwise_the_same_for_every_number_of_rows(dims: tuple[Any, Any, Any], right: str) -> None:
    n, k = (37, 53) if dims[1] == "N" else dims[1:]
    kernel = Kernel(matmul(right=right, dims=dims, bias="Y[v_i, v_j] + B[v_j]"))
    x, w, b, _ = arrays(100, n, k, "float32", "i, k", right)
    rows = {}
    for m in (1, 2, 3, 4, 5, 6, 7, 11, 12, 23, 24, 29, 100):
        z = np.empty((m, n), "float32")
        kernel(np.ascontiguousarray(x[:m]), w, b, z)
        rows[m] = z
        np.testing.assert_array_equal(z, rows[1] if m == 1 else z)
        np.testing.assert_array_equal(rows[m][0], rows[1][0])
    written = Kernel(matmul(right=right, dims=dims, bias="Y[v_i, v_j] + B[v_j]"), schedule=False)
    z = np.empty((100, n), "float32")
    written(x, w, b, z)
    np.testing.assert_array_equal(rows[100], z)  # the unscheduled loops too


BATCHED = (
    HEAD
    + """
@T.prim_func(private=True)
def f(x: T.handle, w: T.handle, z: T.handle):
    L, M, N, K = T.int64(), T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, {left}, "float32")
    W = T.match_buffer(w, {right}, "float32")
    Z = T.match_buffer(z, (L, M, N), "float32")
    for l, i, j, k in T.grid(L, M, N, K):
        with T.sblock("product"):
            v_l, v_i, v_j, v_k = T.axis.remap("SSSR", [l, i, j, k])
            with T.init():
                Z[v_l, v_i, v_j] = T.float32(0.0)
            Z[v_l, v_i, v_j] = Z[v_l, v_i, v_j] + X[{at_left}] * W[{at_right}]
"""
)


@pytest.mark.parametrize(("left", "right", "spec"), [
    ("l, i, k", "l, k, j", "lik,lkj->lij"), ("l, i, k", "k, j", "lik,kj->lij"), ("i, k", "l, k, j", "ik,lkj->lij"),
    ("l, i, k", "l, j, k", "lik,ljk->lij"), ("i, l, k", "l, j, k", "ilk,ljk->lij"),
])  # fmt: skip
def test_batched(left: str, right: str, spec: str) -> None:
    names = {"l": "L", "i": "M", "j": "N", "k": "K"}

    def shape(text: str) -> str:
        return "(" + ", ".join(names[v.strip()] for v in text.split(",")) + ")"

    def at(text: str) -> str:
        return ", ".join(f"v_{v.strip()}" for v in text.split(","))

    source = BATCHED.format(left=shape(left), right=shape(right), at_left=at(left), at_right=at(right))
    kernel = Kernel(from_source(source))
    rng = np.random.default_rng(1)
    for extents in ((3, 4, 17, 5), (2, 13, 8, 9), (1, 1, 3, 2)):
        sizes = dict(zip("lijk", extents, strict=True))
        x = rng.standard_normal([sizes[v.strip()] for v in left.split(",")]).astype("float32")
        w = rng.standard_normal([sizes[v.strip()] for v in right.split(",")]).astype("float32")
        z = np.empty([sizes[v] for v in "lij"], "float32")
        kernel(x, w, z)
        np.testing.assert_allclose(z, np.einsum(spec, x, w), rtol=1e-4, atol=1e-4)


def test_hot_loop_has_no_memory_traffic_but_its_operands() -> None:
    """Every accumulator is a register: nothing is left on the stack, and each innermost loop stores nothing."""
    func = matmul(dims=("M", 256, 784), bias="Y[v_i, v_j] + B[v_j]")
    for spec in ("llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64"):
        machine = target(spec)
        text = optimized_text(emit_kernel(schedule_func(func, machine), "kernel", machine, []).llvm_text, machine)
        assert not re.findall(r"%(?!env|own)\w+ = alloca", text)  # beside what threads are told, and their own buffers
        if not machine.has_fma:
            continue
        blocks = re.split(r"\n(?=[\w.]+:)", text)
        hot = [block for block in blocks if block.count("@llvm.fma") >= 6]
        assert hot and all("store" not in block for block in hot)


def test_consumer_that_reads_the_sum_elsewhere_is_not_fused() -> None:
    func = matmul(dims=(8, 8, 8), bias="Y[v_j, v_i] + B[v_j]")
    kernel = Kernel(func)
    x, w, b, z = arrays(8, 8, 8, "float32", "i, k", "k, j")
    kernel(x, w, b, z)
    np.testing.assert_allclose(z, (x @ w).T + b, rtol=1e-4, atol=1e-5)


def test_the_host_is_a_target_with_numbers() -> None:
    assert host().vector_bits in (128, 256, 512)


def test_loop_variables_of_32_bits_cost_nothing() -> None:
    """Indices are 64-bit after scheduling, in fused consumers too: no gathers, no conversions."""
    func = matmul("jik", dims=("M", 256, 784), bias="Y[v_i, v_j] + B[v_j]")
    text = emit_kernel(schedule_func(func, host()), "kernel", host(), []).llvm_text
    assert "extractelement" not in text and "trunc" not in text


def test_order_and_names_do_not_matter() -> None:
    """The code of a contraction depends neither on the order of its loops nor on any name."""

    def text(func: PrimFunc) -> str:
        return emit_kernel(schedule_func(func, host()), "kernel", host(), []).llvm_text

    first = text(matmul("ijk", bias="T.max(Y[v_i, v_j] + B[v_j], T.float32(0.0))"))
    for order in ("jik", "kij", "jki"):
        assert text(matmul(order, bias="T.max(Y[v_i, v_j] + B[v_j], T.float32(0.0))")) == first
    renamed = matmul("jik", dims=("rows", "cols", "depth"), bias="T.max(Y[v_i, v_j] + B[v_j], T.float32(0.0))")
    assert text(renamed) == first


@pytest.mark.parametrize("init", ["inside", "none"])
@pytest.mark.parametrize("dims", [("M", "N", "K"), ("M", 37, 300)])
def test_blocks_of_the_reduction_do_not_change_a_bit(dims: tuple[Any, Any, Any], init: str) -> None:
    small = dataclasses.replace(host(), l2_bytes=64 << 10)  # blocks of 128
    func = matmul(dims=dims, init=init)
    written = Kernel(func, schedule=False)
    for distrust in (False, True):
        blocked = Kernel(func, target=small, distrust=distrust)
        for m, n, k in [(29, 37, 300), (6, 37, 300), (3, 37, 300), (14, 20, 128), (13, 5, 129), (7, 16, 0)]:
            if dims[2] == "K" or (n, k) == (37, 300):
                x, w, b, z = arrays(m, n, k, "float32", "i, k", "k, j")
                expected = z.copy()
                written(x, w, b, expected)
                blocked(x, w, b, z)
                np.testing.assert_array_equal(z, expected)


def test_rows_of_several_axes_are_one() -> None:
    """(batch, 1, K) @ (K, N) runs as one product of batch rows."""
    source = BATCHED.format(left="(L, M, K)", right="(K, N)", at_left="v_l, v_i, v_k", at_right="v_k, v_j")
    text = schedule_func(from_source(source), host()).script()
    assert "X_view" in text and "Z_view" in text


@pytest.mark.parametrize(("n", "k"), [(300, 37), (257, 130), (256, 64), (130, 35)])
@pytest.mark.parametrize("bias", [None, "T.max(Y[v_i, v_j] + B[v_j], T.float32(0.0))"])
def test_rows_of_a_large_operand_are_streamed(n: int, k: int, bias: str | None) -> None:
    small = dataclasses.replace(host(), l2_bytes=8192)
    made = matmul(dims=("M", n, k), bias=bias)
    streamed, direct = Kernel(made, target=small, distrust=True), Kernel(made)
    assert "waiting" in streamed.scheduled.script()
    for m in (1, 2, 3, 4, 5, 6, 7, 13):
        one = check(streamed, m, n, k, bias=bias is not None)
        assert one.tobytes() == check(direct, m, n, k, bias=bias is not None).tobytes()


@pytest.mark.parametrize(
    ("n", "k", "right"), [(150, 300, "k, j"), (150, 300, "j, k"), (64, 257, "k, j"), (90, 100, "j, k")]
)
def test_a_large_operand_is_packed_by_blocks(n: int, k: int, right: str) -> None:
    small = dataclasses.replace(host(), l2_bytes=16384)
    made = matmul(right=right, dims=("M", n, k), bias="T.max(Y[v_i, v_j] + B[v_j], T.float32(0.0))")
    blocked, direct = Kernel(made, target=small, distrust=True), Kernel(made)
    for m in (6, 7, 11, 12, 16, 29, 140):
        one = check(blocked, m, n, k, right=right, bias=True)
        assert one.tobytes() == check(direct, m, n, k, right=right, bias=True).tobytes()


def code_bytes(func: PrimFunc, on: Target) -> int:
    """Bytes of instructions of a kernel as it is shipped."""
    text = emit_kernel(schedule_func(func, on), "kernel", on, []).llvm_text
    sections = ObjectFileRef.from_data(compile_text(text, on)).sections()
    return sum(s.size() for s in sections if s.is_text())


GELU = "Y[v_i, v_j] * T.float32(0.5) * (T.float32(1) + T.erf(Y[v_i, v_j] * T.float32(0.70710678)))"


@pytest.mark.parametrize("cpu", ["x86-64", "haswell", "skylake-avx512"])
@pytest.mark.parametrize(("form", "most"), [
    ({"dims": (256, 256, 256)}, 4000), ({"dims": ("M", 256, 784)}, 10500), ({"dims": ("M", 10, 256)}, 9500),
    ({"dims": ("M", "N", "K")}, 16000), ({"dims": ("M", "N", "K"), "right": "j, k"}, 18500),
    ({"dims": ("M", 256, 784), "bias": "T.max(Y[v_i, v_j] + B[v_j], T.float32(0.0))"}, 12500),
    ({"dims": ("M", 256, 784), "bias": GELU}, 40000), ({"dims": ("M", "N", "K"), "init": "none"}, 14000),
])  # fmt: skip
def test_machine_code_stays_small(form: dict[str, Any], most: int, cpu: str) -> None:
    on = target(f"llvm -mcpu={cpu}")
    assert 200 < code_bytes(matmul(**form), on) <= most


def test_tiles_ask_for_the_lines_that_they_write() -> None:
    text = schedule_func(matmul(), host()).script()
    assert "T.prefetch(T.address_of(Z[" in text
    source = """
from supple.script import tirx as T

@T.prim_func(private=True)
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        T.evaluate(T.prefetch(T.address_of(A[(i + 8) % 64]), 0, {locality}, 1))
        B[i] = A[i] + T.float32(1)
"""
    func = from_source(source.format(locality=3))
    x, got, expected = np.arange(64, dtype="float32"), np.zeros(64, "float32"), np.zeros(64, "float32")
    Kernel(func, schedule=False)(x, got)
    run_prim_func(func, [x, expected])
    np.testing.assert_array_equal(got, x + 1)
    np.testing.assert_array_equal(expected, x + 1)
    with pytest.raises(NotSupportedError, match="locality 0 to 3"):
        Kernel(from_source(source.format(locality=7)), schedule=False)


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 6, 24, 25])
@pytest.mark.parametrize("layout", [("i, k", "k, j"), ("k, i", "k, j"), ("i, k", "j, k"), ("k, i", "j, k")])
@pytest.mark.parametrize("init", ["inside", "none"])
def test_few_columns_are_rows_of_the_transposed_product(layout: tuple[str, str], columns: int, init: str) -> None:
    left, right = layout
    func = matmul(left=left, right=right, dims=("M", columns, "K"), init=init)
    kernel, written = Kernel(func), Kernel(func, schedule=False)
    for m, k in ((0, 3), (1, 1), (1, 19), (3, 8), (4, 7), (7, 33), (8, 4), (17, 0), (40, 65), (129, 31)):
        x, w, b, _ = arrays(m, columns, k, "float32", left, right)
        found, expected = (np.full((m, columns), 0.5, "float32") for _ in range(2))
        kernel(*(x, w, b)[: len(kernel.code.params) - 1], found)
        written(*(x, w, b)[: len(kernel.code.params) - 1], expected)
        if columns == 1 and left == "i, k":  # dot products, with partial sums of their own
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * k)
        else:
            np.testing.assert_array_equal(found, expected)


def test_a_matrix_times_few_vectors_reads_the_matrix_along_its_rows() -> None:
    def script(*dims: int | str) -> str:
        return schedule_func(matmul(dims=dims), target("llvm -mcpu=haswell")).script()

    assert "T.Shuffle" in script("M", 2, 64)
    assert "T.Shuffle" not in script("M", 6, 64)
    assert "tail" in script("M", 1, 64)  # dot products
    assert "T.Shuffle" in script("M", 1, 31)  # short ones


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dims", [(1, "N", "K"), (1, 77, 100), ("N", 1, "K"), (9, 1, 64), (1, 1, "K")])
@pytest.mark.parametrize("init", ["inside", "none"])
def test_dot_products_have_the_same_bits_wherever_they_stand(
    dims: tuple[int | str, int | str, int | str], dtype: str, init: str
) -> None:
    func = matmul(left="i, k", right="j, k", dims=dims, dtype=dtype, init=init)
    kernel = Kernel(func)
    for n, k in ((1, 1), (2, 15), (3, 16), (4, 17), (5, 31), (7, 32), (8, 33), (13, 100), (0, 5), (4, 0), (129, 257)):
        m, n, k = (d if isinstance(d, int) else v for d, v in zip(dims, (n, n, k), strict=True))
        x, w, b, _ = arrays(m, n, k, dtype, "i, k", "j, k")
        found = np.full((m, n), 0.5, dtype)
        kernel(*(x, w, b)[: len(kernel.code.params) - 1], found)
        start = 0.5 if init == "none" else 0.0
        exact = start + x.astype("float64") @ w.astype("float64").T
        np.testing.assert_allclose(found, exact, rtol=8 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps * (4 + k))
        # the result of every row of the longer operand, computed again at another place
        if isinstance(dims[0], str):
            again = np.full((m, n), 0.5, dtype)
            kernel(x[::-1].copy(), *(w, b)[: len(kernel.code.params) - 2], again)
            np.testing.assert_array_equal(again[::-1], found)
        elif isinstance(dims[1], str):
            again = np.full((m, n), 0.5, dtype)
            kernel(x, *(w[::-1].copy(), b)[: len(kernel.code.params) - 2], again)
            np.testing.assert_array_equal(again[:, ::-1], found)


def test_rows_are_copied_only_for_many_panels() -> None:
    def copies(rows: int, cores: int, right: str) -> bool:
        func = matmul(dims=(rows, 1024, 1024), right=right)
        return "rows = T.alloc_buffer" in schedule_func(func, target(f"llvm -mcpu=haswell -num-cores={cores}")).script()

    assert [copies(32, cores, "j, k") for cores in (1, 2, 8)] == [False] * 3  # each copy would serve four panels
    assert [copies(32, cores, "k, j") for cores in (1, 2)] == [True] * 2  # blocks are shallow, of many panels
    assert [copies(512, cores, "k, j") for cores in (1, 2, 8)] == [True] * 3
