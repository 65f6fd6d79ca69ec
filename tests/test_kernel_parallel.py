"""Parallel loops in kernels: the same bits for every number of threads and every way to cut the iterations."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from kernel_tools import Kernel, KernelError

import supple
from supple.base.target import host
from supple.codegen import kernel_parallel
from supple.driver import lower
from supple.interp.loops import run_prim_func
from supple.ir.loop import For as Loop
from supple.ir.loop import ForKind, PrimFunc
from supple.ir.structural import structural_equal
from supple.ir.walk import pre_order
from supple.runtime.pool import num_threads, set_num_threads, shared_jobs
from supple.script import from_source
from supple.script import ir as I
from supple.script import relax as R
from supple.script import tirx as T

THREADS = (1, 2, 3, 8)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = num_threads()
    yield
    set_num_threads(before)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every parallel loop is shared, however little it does."""
    monkeypatch.setattr(kernel_parallel, "WORTH_SHARING", -1)
    monkeypatch.setattr(kernel_parallel, "CHUNK", 0)


def _same_for_all_threads(kernel: Kernel, make: Any, *, shared: bool = True) -> list[np.ndarray[Any, Any]]:
    """Run with each number of threads on fresh arguments; all arrays must come out the same."""
    found: list[list[np.ndarray[Any, Any]]] = []
    before = shared_jobs()
    for threads in THREADS:
        set_num_threads(threads)
        args = make()
        kernel(*args)
        found.append(args)
        for mine, first in zip(args, found[0], strict=True):
            np.testing.assert_array_equal(mine, first)
    assert (shared_jobs() > before) == shared
    return found[0]


@T.prim_func
def elementwise(x: T.handle, y: T.handle) -> None:
    n = T.int64()
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.parallel(n):
        Y[i] = T.exp(X[i]) * T.float32(2)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 7, 8, 9, 31, 97, 1009])
def test_every_number_of_iterations(eager: None, n: int) -> None:
    x = np.random.default_rng(n).standard_normal(n).astype("float32")
    kernel = _compiled(elementwise)
    out = _same_for_all_threads(kernel, lambda: [x, np.full(n, np.nan, "float32")], shared=n > 1)[1]
    expected = [x, np.zeros(n, "float32")]
    run_prim_func(elementwise, expected)
    np.testing.assert_allclose(out, expected[1], rtol=1e-6)


_kernels: dict[int, Kernel] = {}


def _compiled(func: PrimFunc, **options: Any) -> Kernel:
    if id(func) not in _kernels:
        _kernels[id(func)] = Kernel(func, **{"schedule": False, **options})
    return _kernels[id(func)]


def test_little_work_stays_on_the_caller_s_thread() -> None:
    kernel = Kernel(elementwise, schedule=False)
    set_num_threads(8)
    for n, shared in ((100, False), (200_000, True)):
        before = shared_jobs()
        kernel(np.zeros(n, "float32"), np.zeros(n, "float32"))
        assert (shared_jobs() > before) == shared


@T.prim_func
def gather(x: T.handle, at: T.handle, y: T.handle) -> None:
    n = T.int64()
    X = T.match_buffer(x, (n,), "float32")
    At = T.match_buffer(at, (n,), "int64")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.parallel(n):
        Y[i] = X[At[i]]


def test_the_error_is_the_first_one_whatever_the_number_of_threads(eager: None) -> None:
    kernel = Kernel(gather, schedule=False)
    n = 10_000
    rng = np.random.default_rng(0)
    x = rng.standard_normal(n).astype("float32")
    for _ in range(20):
        at = np.arange(n)[::-1].copy()
        wrong = np.sort(rng.choice(n, 5, replace=False))
        at[wrong] = n + 10 + np.arange(5)
        for threads in THREADS:
            set_num_threads(threads)
            with pytest.raises(KernelError, match=f"index {n + 10} is out of bounds for axis 0 of X"):
                kernel(x, at, np.zeros(n, "float32"))
    set_num_threads(3)
    y = np.zeros(n, "float32")
    kernel(x, np.arange(n)[::-1].copy(), y)  # and afterwards all is well
    np.testing.assert_array_equal(y, x[::-1])


@T.prim_func
def captured(x: T.handle, y: T.handle, scale: T.float32, flag: T.bool, wide: T.int64) -> None:
    n, m = T.int64(), T.int64()
    X = T.match_buffer(x, (n, m), "float32")
    Y = T.match_buffer(y, (n, m), "float32")
    for i in range(n):
        shift: T.float32 = scale + T.float32(1)
        big: T.bool = i > wide
        for j in T.parallel(m):
            Y[i, j] = T.if_then_else(big, X[i, j] * shift, T.if_then_else(flag, X[i, j], scale))


def test_values_from_outside(eager: None) -> None:
    kernel = Kernel(captured, schedule=False)
    x = np.random.default_rng(1).standard_normal((5, 37)).astype("float32")
    for flag in (False, True):
        found = []
        for threads in THREADS:
            set_num_threads(threads)
            y = np.zeros_like(x)
            kernel(x, y, 1.5, flag, 2)
            found.append(y)
        rows = np.arange(5)[:, None]
        expected = np.where(rows > 2, x * np.float32(2.5), x if flag else np.float32(1.5))
        for y in found:
            np.testing.assert_array_equal(y, expected)


@T.prim_func
def private_buffers(x: T.handle, y: T.handle) -> None:
    n, m = T.int64(), T.int64()
    X = T.match_buffer(x, (n, m), "float32")
    Y = T.match_buffer(y, (n, m), "float32")
    for i in T.parallel(n):
        with T.sblock("row"):
            vi = T.axis.spatial(n, i)
            row = T.sblock_alloc_buffer((m,), "float32")
            small = T.sblock_alloc_buffer((8,), "float32")
            for j in range(m):
                row[j] = X[vi, j] + T.float32(1)
            for j in range(8):
                small[j] = T.float32(j)
            for j in range(m):
                Y[vi, j] = row[m - 1 - j] * small[j % 8]


def test_buffers_of_an_iteration_belong_to_the_thread(eager: None) -> None:
    kernel = Kernel(private_buffers, schedule=False)
    x = np.random.default_rng(2).standard_normal((200, 300)).astype("float32")
    for _ in range(5):
        out = _same_for_all_threads(kernel, lambda: [x, np.zeros_like(x)])[1]
        expected = (x + np.float32(1))[:, ::-1] * (np.arange(300) % 8).astype("float32")
        np.testing.assert_array_equal(out, expected)


@T.prim_func
def buffer_before_the_loop(x: T.handle, y: T.handle) -> None:
    n, m = T.int64(), T.int64()
    X = T.match_buffer(x, (n, m), "float32")
    Y = T.match_buffer(y, (n, m), "float32")
    row = T.alloc_buffer((m,), "float32")
    for i in T.parallel(n):
        for j in range(m):
            row[j] = X[i, j] * T.float32(3)
        for j in range(m):
            Y[i, j] = row[m - 1 - j]


@T.prim_func
def buffer_that_lives_on(x: T.handle, y: T.handle) -> None:
    n, m = T.int64(), T.int64()
    X = T.match_buffer(x, (n, m), "float32")
    Y = T.match_buffer(y, (n, m), "float32")
    total = T.alloc_buffer((m,), "float32")
    for i in range(n):
        for j in T.parallel(m):
            total[j] = T.if_then_else(i == 0, T.float32(0), total[j]) + X[i, j]
            Y[i, j] = total[j]


def test_buffers_allocated_before_the_loop(eager: None) -> None:
    x = np.random.default_rng(3).standard_normal((50, 70)).astype("float32")
    out = _same_for_all_threads(Kernel(buffer_before_the_loop, schedule=False), lambda: [x, np.zeros_like(x)])[1]
    np.testing.assert_array_equal(out, x[:, ::-1] * np.float32(3))
    # what a loop around keeps from one iteration to the next stays where it is, and the iterations run in order
    kernel = Kernel(buffer_that_lives_on, schedule=False)
    out = _same_for_all_threads(kernel, lambda: [x, np.zeros_like(x)], shared=False)[1]
    np.testing.assert_array_equal(out, np.cumsum(x, axis=0, dtype="float32"))


@T.prim_func
def nested(x: T.handle, y: T.handle) -> None:
    n, m = T.int64(), T.int64()
    X = T.match_buffer(x, (n, m), "float32")
    Y = T.match_buffer(y, (n, m), "float32")
    for i in T.parallel(n):
        for j in T.parallel(m):
            Y[i, j] = X[i, j] + T.float32(1)


@T.prim_func
def starts_later(x: T.handle, y: T.handle) -> None:
    n = T.int64()
    X = T.match_buffer(x, (n,), "int32")
    Y = T.match_buffer(y, (n,), "int32")
    for i in T.parallel(T.int64(2), n):
        Y[i] = X[i - T.int64(2)]


@T.prim_func
def leaves(x: T.handle, y: T.handle) -> None:
    n = T.int64()
    X = T.match_buffer(x, (n,), "int32")
    Y = T.match_buffer(y, (n,), "int32")
    for i in T.parallel(n):
        if X[i] < 0:
            break
        Y[i] = X[i]


def test_nested_shifted_and_left_early(eager: None) -> None:
    x = np.random.default_rng(4).standard_normal((9, 33)).astype("float32")
    out = _same_for_all_threads(Kernel(nested, schedule=False), lambda: [x, np.zeros_like(x)])[1]
    np.testing.assert_array_equal(out, x + np.float32(1))
    v = np.arange(1, 101, dtype="int32")
    out = _same_for_all_threads(Kernel(starts_later, schedule=False), lambda: [v, np.zeros_like(v)])[1]
    np.testing.assert_array_equal(out[2:], v[:-2])
    v[40] = -1
    out = _same_for_all_threads(Kernel(leaves, schedule=False), lambda: [v, np.zeros_like(v)], shared=False)[1]
    np.testing.assert_array_equal(out, np.where(np.arange(100) < 40, v, 0))


# --------------------------------------------------------------------------------------------------------------- rules

MATMUL = """
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(({x}), "float32"), w: R.Tensor(({w}), "float32")) -> R.Tensor(({y}), "float32"):
        {symbols}
        with R.dataflow():
            y = R.nn.relu(R.matmul(x, {right}))
            R.output(y)
        return y
"""


def _matmul(x: str, w: str, y: str, right: str = "w") -> Any:
    names = sorted({v for v in "bmnk" if v in f"{x},{w}".replace(" ", "").split(",")})
    symbols = "; ".join(f"{v} = T.int64()" for v in names) or "pass"
    x, w, y = (re.sub(r"\b([bmnk])\b", r'"\1"', dims) for dims in (x, w, y))
    text = MATMUL.format(x=x, w=w, y=y, right=right, symbols=symbols).replace("        pass\n", "")
    head = "from supple.script import ir as I, relax as R, tirx as T\n"
    return supple.compile(from_source(head + text))["main"]


@pytest.mark.parametrize("form", ["static", "dynamic", "transposed", "wide"])
def test_contractions_have_the_same_bits_for_every_n_and_every_number_of_threads(eager: None, form: str) -> None:
    rng = np.random.default_rng(5)
    if form == "dynamic":
        main, (k, n) = _matmul("m, k", "k, n", "m, n"), (67, 75)
        w = rng.standard_normal((k, n)).astype("float32")
    elif form == "transposed":
        main, (k, n) = _matmul("m, 70", "83, 70", "m, 83", "R.permute_dims(w)"), (70, 83)
        w = rng.standard_normal((n, k)).astype("float32")
    elif form == "wide":  # larger than the cache: packed and read in blocks, streamed for few rows
        main, (k, n) = _matmul("m, 600", "600, 1111", "m, 1111"), (600, 1111)
        w = rng.standard_normal((k, n)).astype("float32")
    else:
        main, (k, n) = _matmul("m, 64", "64, 100", "m, 100"), (64, 100)
        w = rng.standard_normal((k, n)).astype("float32")
    rows = rng.standard_normal((300, k)).astype("float32")
    set_num_threads(1)
    full = main(rows, w)
    matrix = (w.T if form == "transposed" else w).astype("float64")
    np.testing.assert_allclose(full, np.maximum(rows.astype("float64") @ matrix, 0), rtol=1e-4, atol=1e-4)
    before = shared_jobs()
    for m in (0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 64, 127, 128, 129, 131, 300):
        for threads in (2, 3, 8):
            set_num_threads(threads)
            np.testing.assert_array_equal(main(rows[:m].copy(), w), full[:m])
    assert shared_jobs() > before


@pytest.mark.parametrize("shape", [(2, 5, 9), (40, 5, 9), (3, 130, 20)])
def test_batches(eager: None, shape: tuple[int, int, int]) -> None:
    main = _matmul("b, m, k", "b, k, 33", "b, m, 33")
    fixed = _matmul("12, m, 20", "12, 20, 33", "12, m, 33")
    m = shape[1]
    rng = np.random.default_rng(6)
    for function, x in ((main, rng.standard_normal(shape)), (fixed, rng.standard_normal((12, m, 20)))):
        x = x.astype("float32")
        w = rng.standard_normal((x.shape[0], x.shape[2], 33)).astype("float32")
        found = []
        for threads in THREADS:
            set_num_threads(threads)
            found.append(function(x, w))
            np.testing.assert_array_equal(found[-1], found[0])
        np.testing.assert_allclose(found[0], np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)


@I.ir_module
class Rows:
    @R.function
    def softmax(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        return R.nn.softmax(x)

    @R.function
    def columns(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("m",), "float32"):
        return R.sum(x, axis=0)

    @R.function
    def transpose(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("m", "n"), "float32"):
        return R.permute_dims(x)

    @R.function
    def three(x: R.Tensor(("n", "m", 70), "float32")) -> R.Tensor(("m", "n", 70), "float32"):
        return R.permute_dims(x, (1, 0, 2))

    @R.function
    def chain(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        with R.dataflow():
            a = R.add(x, x)
            b = R.nn.gelu(a)
            c = R.multiply(b, x)
            R.output(c)
        return c


@pytest.mark.parametrize("name", ["softmax", "columns", "transpose", "chain", "three"])
def test_rows_and_elements(eager: None, name: str) -> None:
    main = supple.compile(Rows)[name]
    rng = np.random.default_rng(7)
    for n, m in ((1, 1), (1, 200), (2, 7), (3, 64), (7, 131), (64, 33), (130, 5)):
        x = rng.standard_normal((n, m, 70) if name == "three" else (n, m)).astype("float32")
        found = []
        for threads in THREADS:
            set_num_threads(threads)
            found.append(main(x))
            np.testing.assert_array_equal(found[-1], found[0])
        if name == "softmax":  # a row's bits do not depend on the others
            np.testing.assert_array_equal(main(x[:1].copy()), found[0][:1])
        if name in ("transpose", "three"):
            np.testing.assert_array_equal(found[0], np.swapaxes(x, 0, 1))


def test_rules_make_parallel_loops_that_print_and_parse() -> None:
    lowered = lower(Rows)
    kinds = [n.kind for f in lowered.functions.values() for n in pre_order(f) if isinstance(n, Loop)]
    assert ForKind.PARALLEL in kinds
    assert structural_equal(from_source(lowered.script()), lowered)


@T.prim_func
def matmul(x: T.handle, w: T.handle, y: T.handle) -> None:
    m = T.int64()
    X = T.match_buffer(x, (m, 40), "float32")
    W = T.match_buffer(w, (40, 200), "float32")
    Y = T.match_buffer(y, (m, 200), "float32")
    for i, j, k in T.grid(m, 200, 40):
        with T.sblock("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vk, vj]


def test_loops_over_ranges_are_programs(eager: None) -> None:
    """Where B is larger than the cache, a thread takes its columns in one go: interpreted, that is a plain loop."""
    machine = dataclasses.replace(host(), l2_bytes=1 << 12)
    kernel = Kernel(matmul, target=machine)
    text = kernel.scheduled.script()
    assert "tirx.range" in text
    again = from_source("from supple.script import tirx as T\n\n" + text)
    assert structural_equal(again, kernel.scheduled)
    rng = np.random.default_rng(8)
    w = rng.standard_normal((40, 200)).astype("float32")
    for m in (1, 2, 3, 4, 5):
        x = rng.standard_normal((m, 40)).astype("float32")
        out = _same_for_all_threads(kernel, lambda x=x, m=m: [x, w, np.zeros((m, 200), "float32")])[2]
        if m in (1, 3):  # a thread's rows alone, and some beside: the interpreter is slow
            interpreted = [x, w, np.zeros((m, 200), "float32")]
            run_prim_func(again, interpreted)
            np.testing.assert_array_equal(interpreted[2], out)
        np.testing.assert_allclose(out, x @ w, rtol=1e-4, atol=1e-4)
