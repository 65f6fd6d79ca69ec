"""Primitives keep the meaning: native code before and after, the text they make, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_tools import Kernel

from supple.ir.loop import For, ForKind, PrimFunc, SBlockRealize
from supple.ir.walk import pre_order
from supple.schedule.errors import ScheduleError
from supple.schedule.schedule import Schedule
from supple.script import from_source

HEAD = "from supple.script import tirx as T\n\n"

MATMUL = (
    HEAD
    + """
@T.prim_func(private=True)
def f(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
    M, N, K = T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (M, K), "float32")
    W = T.match_buffer(w, (K, N), "float32")
    B = T.match_buffer(b, (N,), "float32")
    Z = T.match_buffer(z, (M, N), "float32")
    S = T.alloc_buffer((K, N), "float32")
    Y = T.alloc_buffer((M, N), "float32")
    for k, j in T.grid(K, N):
        with T.sblock("S"):
            v_k, v_j = T.axis.remap("SS", [k, j])
            S[v_k, v_j] = W[v_k, v_j] * T.float32(2.0)
    for i, j, k in T.grid(M, N, K):
        with T.sblock("Y"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[v_i, v_j] = T.float32(0.0)
            Y[v_i, v_j] = Y[v_i, v_j] + X[v_i, v_k] * S[v_k, v_j]
    for i, j in T.grid(M, N):
        with T.sblock("Z"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            Z[v_i, v_j] = Y[v_i, v_j] + B[v_j]
"""
)


def matmul(static: tuple[int, int, int] | None = None) -> PrimFunc:
    text = MATMUL
    if static is not None:
        text = text.replace("    M, N, K = T.int64(), T.int64(), T.int64()\n", "")
        for name, value in zip("MNK", static, strict=True):
            for before, after in (("({}, ", "({}, "), (", {}", ", {}"), ("({},", "({},")):
                text = text.replace(before.format(name), after.format(value))
    made = from_source(text)
    assert isinstance(made, PrimFunc)
    return made


def same(before: PrimFunc, after: PrimFunc, exact: bool = True) -> None:
    """Both give the same results, the second with all accesses checked."""
    plain, changed = Kernel(before, schedule=False), Kernel(after, schedule=False, distrust=True)
    static = not plain.code.symbols
    for m, n, k in [(6, 10, 4)] if static else [(6, 10, 4), (1, 1, 1), (7, 13, 5), (0, 3, 2), (3, 4, 0), (16, 8, 8)]:
        rng = np.random.default_rng(m + n)
        x, w, b = (rng.standard_normal(s).astype("float32") for s in ((m, k), (k, n), n))
        expected, got = np.empty((m, n), "float32"), np.full((m, n), 7, "float32")
        plain(x, w, b, expected)
        changed(x, w, b, got)
        if exact:
            np.testing.assert_array_equal(got, expected)
        else:
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def loops_of(func: PrimFunc, name: str) -> list[str]:
    sch = Schedule(func)
    return [loop.var.name for loop in sch.get_loops(sch.get_sblock(name))]


def test_handles() -> None:
    sch = Schedule(matmul())
    assert [loop.var.name for loop in sch.get_loops(sch.get_sblock("Y"))] == ["i", "j", "k"]
    assert isinstance(sch.get(sch.get_sblock("Y")), SBlockRealize)
    assert isinstance(sch.get(sch.get_loops(sch.get_block("Z"))[0]), For)
    with pytest.raises(ScheduleError, match="no block 'YY'; did you mean"):
        sch.get_sblock("YY")


@pytest.mark.parametrize("static", [None, (6, 10, 4)])
def test_split_reorder_unroll_vectorize(static: Any) -> None:
    func = matmul(static)
    sch = Schedule(func)
    i, j, k = sch.get_loops(sch.get_sblock("Y"))
    i0, i1 = sch.split(i, [None, 3])
    j0, j1 = sch.split(j, [None, 5])
    sch.reorder(j0, i0, k, i1, j1)
    assert loops_of(sch.func, "Y") == ["j_0", "i_0", "k", "i_1", "j_1"]
    sch.unroll(i1)
    sch.vectorize(j1)
    kinds = [n.kind for n in pre_order(sch.func.body) if isinstance(n, For)]
    assert ForKind.UNROLLED in kinds and ForKind.VECTORIZED in kinds
    same(func, sch.func)


def test_split_with_all_factors() -> None:
    func = matmul((6, 10, 4))
    sch = Schedule(func)
    i, j, _ = sch.get_loops(sch.get_sblock("Y"))
    sch.split(i, [2, 3])
    sch.split(j, [2, 2, 3])
    same(func, sch.func)
    with pytest.raises(ScheduleError, match="not proved to cover"):
        Schedule(func).split(i, [2, 2])


def test_split_of_the_reduction_keeps_the_order() -> None:
    func = matmul()
    sch = Schedule(func)
    k = sch.get_loops(sch.get_sblock("Y"))[2]
    sch.split(k, [None, 2])
    same(func, sch.func)


def test_fuse() -> None:
    for static in (None, (6, 10, 4)):
        func = matmul(static)
        sch = Schedule(func)
        i, j, _ = sch.get_loops(sch.get_sblock("Y"))
        fused = sch.fuse(i, j)
        assert fused.var.name == "i_j_fused"
        sch.parallel(fused)
        same(func, sch.func)


def test_decompose_reduction() -> None:
    func = matmul()
    for position in (0, 1, 2):
        sch = Schedule(func)
        block = sch.get_sblock("Y")
        if position == 0:
            sch.reorder(*(sch.get_loops(block)[p] for p in (2, 0, 1)))
        init = sch.decompose_reduction(block, sch.get_loops(block)[position if position != 1 else 2])
        assert init.name == "Y_init" and sch.get(block).block.init is None  # type: ignore[union-attr]
        same(func, sch.func)


def test_decompose_after_split() -> None:
    func = matmul()
    sch = Schedule(func)
    block = sch.get_sblock("Y")
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, [None, 4])
    k0, k1 = sch.split(k, [None, 2])
    sch.reorder(i, j0, k0, k1, j1)
    sch.decompose_reduction(block, k0)
    sch.vectorize(j1)
    same(func, sch.func)


def test_cache_read_and_write() -> None:
    func = matmul()
    sch = Schedule(func)
    read = sch.cache_read(sch.get_sblock("Y"), 0, "global")
    write = sch.cache_write(sch.get_sblock("Y"), 0, "global")
    assert (read.name, write.name) == ("X_global", "Y_global")
    same(func, sch.func)
    with pytest.raises(ScheduleError, match="there is no read 5"):
        sch.cache_read(sch.get_sblock("Y"), 5, "global")


@pytest.mark.parametrize("axis", [0, 1])
def test_pack(axis: int) -> None:
    func = matmul()
    sch = Schedule(func)
    sch.pack(sch.get_sblock("Y"), 1, axis, 4)
    same(func, sch.func)


def test_compute_inline() -> None:
    func = matmul()
    sch = Schedule(func)
    sch.compute_inline(sch.get_sblock("S"))
    with pytest.raises(ScheduleError, match="no block 'S'"):
        sch.get_sblock("S")
    same(func, sch.func)
    with pytest.raises(ScheduleError, match="reduces"):
        sch.compute_inline(sch.get_sblock("Y"))
    with pytest.raises(ScheduleError, match="not a buffer of the function's own"):
        sch.compute_inline(sch.get_sblock("Z"))


def test_compute_at() -> None:
    func = matmul()
    for position in range(3):
        sch = Schedule(func)
        sch.compute_at(sch.get_sblock("S"), sch.get_loops(sch.get_sblock("Y"))[position])
        same(func, sch.func)
    sch = Schedule(func)
    j = sch.get_loops(sch.get_sblock("Y"))[1]
    j0, _ = sch.split(j, [None, 4])
    sch.compute_at(sch.get_sblock("S"), j0)
    same(func, sch.func)


def test_compute_a_reduction_in_its_consumer() -> None:
    func = matmul()
    sch = Schedule(func)
    sch.compute_at(sch.get_sblock("Y"), sch.get_loops(sch.get_sblock("Z"))[1])
    same(func, sch.func)


def test_reverse_compute_at() -> None:
    func = matmul()
    for position in (0, 1):
        sch = Schedule(func)
        sch.reverse_compute_at(sch.get_sblock("Z"), sch.get_loops(sch.get_sblock("Y"))[position])
        same(func, sch.func)
    sch = Schedule(func)
    i, _j, _ = sch.get_loops(sch.get_sblock("Y"))
    sch.split(i, [None, 4])
    sch.reverse_compute_at(sch.get_sblock("Z"), sch.get_loops(sch.get_sblock("Y"))[0])
    same(func, sch.func)
    with pytest.raises(ScheduleError, match="not finished"):
        sch = Schedule(func)
        sch.reverse_compute_at(sch.get_sblock("Z"), sch.get_loops(sch.get_sblock("Y"))[2])


REFUSED: list[tuple[str, Callable[[Schedule], Any]]] = [
    ("reduces over it", lambda s: s.vectorize(s.split(s.get_loops(s.get_sblock("Y"))[2], [None, 4])[1])),
    ("reduces over it", lambda s: s.parallel(s.get_loops(s.get_sblock("Y"))[2])),
    ("not a constant", lambda s: s.unroll(s.get_loops(s.get_sblock("Y"))[0])),
    ("not positive", lambda s: s.split(s.get_loops(s.get_sblock("Y"))[0], [None, 0])),
    ("at most one", lambda s: s.split(s.get_loops(s.get_sblock("Y"))[0], [None, None])),
    ("not directly inside", lambda s: s.fuse(s.get_loops(s.get_sblock("Y"))[0], s.get_loops(s.get_sblock("Y"))[2])),
    ("one nest", lambda s: s.reorder(s.get_loops(s.get_sblock("Y"))[0], s.get_loops(s.get_sblock("Z"))[0])),
    ("named twice", lambda s: s.reorder(*(s.get_loops(s.get_sblock("Y"))[:1] * 2))),
    ("no initialisation", lambda s: s.decompose_reduction(s.get_sblock("Z"), s.get_loops(s.get_sblock("Z"))[0])),
    ("reduces", lambda s: (s.reorder(*(s.get_loops(s.get_sblock("Y"))[p] for p in (2, 0, 1))),
                           s.decompose_reduction(s.get_sblock("Y"), s.get_loops(s.get_sblock("Y"))[1]))),
    ("must be computed", lambda s: s.compute_at(s.get_sblock("Z"), s.get_loops(s.get_sblock("Y"))[0])),
    ("outside loop", lambda s: s.compute_at(s.get_sblock("S"), s.get_loops(s.get_sblock("Z"))[0])),
    ("no data-parallel consumer", lambda s: s.reverse_compute_at(s.get_sblock("Y"), s.get_loops(s.get_sblock("Z"))[0])),
]  # fmt: skip


@pytest.mark.parametrize(("message", "apply"), REFUSED)
def test_refusals_name_the_reason(message: str, apply: Callable[[Schedule], Any]) -> None:
    with pytest.raises(ScheduleError, match=message):
        apply(Schedule(matmul()))


def test_scheduled_text_is_a_program() -> None:
    sch = Schedule(matmul((6, 10, 4)))
    i, _j, k = sch.get_loops(sch.get_sblock("Y"))
    sch.split(i, [None, 3])
    sch.decompose_reduction(sch.get_sblock("Y"), k)
    again = from_source(sch.func.script())
    assert isinstance(again, PrimFunc)
    same(sch.func, again)
