"""Nests that follow each other row by row: what is joined, what is not, and the results against the interpreter."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_tools import Kernel

from supple.base.target import host
from supple.interp.loops import run_prim_func
from supple.ir.loop import PrimFunc
from supple.schedule import default
from supple.script import from_source

HEAD = "from supple.script import tirx as T\n\n"

SOFTMAX = """
@T.prim_func(private=True)
def f(x: T.handle, z: T.handle):
    M, N = T.int64(), T.int64()
    X = T.match_buffer(x, (M, N), "float32")
    Z = T.match_buffer(z, (M, N), "float32")
    top = T.alloc_buffer((M, 1), "float32")
    E = T.alloc_buffer((M, N), "float32")
    sum = T.alloc_buffer((M,), "float32")
    for i, k in T.grid(M, N):
        with T.sblock("top"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                top[vi, 0] = T.float32("-inf")
            top[vi, 0] = T.max(top[vi, 0], X[vi, vk])
    for i, k in T.grid(M, N):
        with T.sblock("exp"):
            vi, vk = T.axis.remap("SS", [i, k])
            E[vi, vk] = T.exp(X[vi, vk] - top[vi, 0])
    for i, k in T.grid(M, N):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                sum[vi] = T.float32(0)
            sum[vi] = sum[vi] + E[vi, vk]
    for i, k in T.grid(M, N):
        with T.sblock("out"):
            vi, vk = T.axis.remap("SS", [i, k])
            Z[vi, vk] = E[vi, vk] / sum[vi]
"""


def function(text: str, alone: bool = True) -> PrimFunc:
    made = from_source(HEAD + text)
    assert isinstance(made, PrimFunc)
    return made.with_attr("tirx.noalias", True) if alone else made


def scheduled(func: PrimFunc) -> str:
    return default.schedule_func(func, host()).script()


def loops_over_rows(text: str) -> int:
    return len(re.findall(r"^ +for \w+ in T\.parallel", text, re.MULTILINE))


def test_a_softmax_is_one_loop_over_rows() -> None:
    text = scheduled(function(SOFTMAX))
    assert loops_over_rows(text) == 1
    assert re.search(r"top = T.alloc_buffer\(\(\S*1\S*,\), \"float32\", scope=\"local\"\)", text)
    assert "E = " not in text  # the result holds the exponentials
    assert "Z[i, v * " in text
    assert "sblock_alloc_buffer" not in text


def test_without_the_promise_that_results_overlap_nothing_rows_stay_apart() -> None:
    assert loops_over_rows(scheduled(function(SOFTMAX, alone=False))) == 4


@pytest.mark.parametrize("m", [0, 1, 2, 7])
@pytest.mark.parametrize("n", [0, 1, 8, 31, 32, 33, 100])
def test_results_keep_their_bits(m: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    together = softmax_kernel(True)
    with monkeypatch.context() as patch:
        patch.setattr(default, "join_rows", lambda *_: None)
        apart = softmax_kernel(False)
    rng = np.random.default_rng(m * 1000 + n)
    x = rng.standard_normal((m, n)).astype("float32") * 50
    got, expected, exact = (np.full((m, n), 7, "float32") for _ in range(3))
    together(x, got)
    apart(x, expected)
    np.testing.assert_array_equal(got, expected)
    if n:
        run_prim_func(function(SOFTMAX), [x, exact])
        np.testing.assert_allclose(got, exact, rtol=3e-5, atol=1e-7)


_KERNELS: dict[bool, Kernel] = {}


def softmax_kernel(together: bool) -> Kernel:
    if together not in _KERNELS:
        _KERNELS[together] = Kernel(function(SOFTMAX))
        assert loops_over_rows(_KERNELS[together].scheduled.script()) == (1 if together else 4)
    return _KERNELS[together]


def program(statements: list[str], size: str, buffers: list[str], outputs: list[str]) -> str:
    """A loop function on square matrices ``X``, with the named temporaries and results."""
    dims = {"m": "(M, N)", "r": "(M,)", "k": "(M, 1)"}
    names = ["x", *outputs]
    lines = ["@T.prim_func(private=True)", f"def f({', '.join(f'{n}_: T.handle' for n in names)}):"]
    lines += ["    M, N = T.int64(), T.int64()"] if size == "symbols" else []
    sizes = {"M": "M", "N": "N"} if size == "symbols" else dict.fromkeys("MN", size)
    shape = {kind: re.sub(r"[MN]", lambda m: sizes[m.group()], text) for kind, text in dims.items()}
    lines += [f'    {n} = T.match_buffer({n}_, {shape["m" if n == "x" else n[0]]}, "int32")' for n in names]
    lines += [f'    {b} = T.alloc_buffer({shape[b[0]]}, "int32")' for b in buffers if b not in outputs]
    for position, statement in enumerate(statements):
        kinds, init, body = statement.split("|")
        if len(kinds) == 2:
            loop, axes = f"i, j in T.grid({sizes['M']}, {sizes['N']})", f'vi, vj = T.axis.remap("{kinds}", [i, j])'
        else:
            loop, axes = f"i in range({sizes['M']})", 'vi = T.axis.remap("S", [i])'
        lines += [f"    for {loop}:", f'        with T.sblock("s{position}"):', f"            {axes}"]
        if init:
            lines += ["            with T.init():", f"                {init}"]
        lines.append(f"            {body}")
    return "\n".join(lines) + "\n"


NOT_JOINED = {
    "sums over rows": (["RS|r0[vj] = 0|r0[vj] = r0[vj] + x[vi, vj]", "S||r1[vi] = r0[vi] * 2"], ["r1"]),
    "another row's sum": (["SR|r0[vi] = 0|r0[vi] = r0[vi] + x[vi, vj]", "SS||m1[vi, vj] = x[vi, vj] * r0[0]"], ["m1"]),
    "the column's sum": (["SR|r0[vi] = 0|r0[vi] = r0[vi] + x[vi, vj]", "SS||m1[vi, vj] = x[vi, vj] * r0[vj]"], ["m1"]),
    "a transposed matrix": (["SS||m0[vi, vj] = x[vi, vj] * 2", "SR|r1[vi] = 0|r1[vi] = r1[vi] + m0[vj, vi]"], ["r1"]),
}


@pytest.mark.parametrize("name", NOT_JOINED)
def test_rows_that_meet_stay_apart(name: str) -> None:
    statements, outputs = NOT_JOINED[name]
    func = function(program(statements, "7", ["r0", "m0"], outputs))
    assert len(re.findall(r"^    with T.attr\(None, .tirx.proved", scheduled(func), re.MULTILINE)) == 2
    compare(func, outputs, 7, 7)


OTHER_ROWS = """
@T.prim_func(private=True)
def f(X: T.Buffer((5, 7), "int32"), C: T.Buffer((7, 5), "int32"), D: T.Buffer((5, 7), "int32")):
    a = T.alloc_buffer((5,), "int32")
    for i, j in T.grid(5, 7):
        with T.sblock("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                a[vi] = 0
            a[vi] = a[vi] + X[vi, vj]
    for j, i in T.grid(7, 5):
        with T.sblock("transpose"):
            vj, vi = T.axis.remap("SS", [j, i])
            C[vj, vi] = X[vi, vj]
    for i, j in T.grid(5, 7):
        with T.sblock("center"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = X[vi, vj] - a[vi]
"""


def test_other_numbers_of_rows_stay_apart() -> None:
    x = np.random.default_rng(0).integers(-9, 9, (5, 7)).astype("int32")
    c, d = np.zeros((7, 5), "int32"), np.zeros((5, 7), "int32")
    Kernel(function(OTHER_ROWS))(x, c, d)
    np.testing.assert_array_equal(c, x.T)
    np.testing.assert_array_equal(d, x - x.sum(1, keepdims=True))


def compare(func: PrimFunc, outputs: list[str], m: int, n: int) -> None:
    x = np.random.default_rng(m * 31 + n).integers(-1000, 1000, (m, n)).astype("int32")
    shapes: dict[str, Any] = {"m": (m, n), "r": (m,), "k": (m, 1)}
    got = [np.full(shapes[o[0]], 7, "int32") for o in outputs]
    expected = [g.copy() for g in got]
    Kernel(func, distrust=True)(x, *got)
    run_prim_func(func, [x, *expected])
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@st.composite
def programs(draw: Any) -> tuple[list[str], list[str], list[str]]:
    """Chains of reductions and elementwise nests, each of which reads earlier results at some row."""
    known = ["x"]
    statements: list[str] = []

    def read() -> str:
        name = draw(st.sampled_from(known))
        if name[0] in "xm":
            return f"{name}[{draw(st.sampled_from(['vi, vj', 'vi, vj', 'vi, vj', 'vj, vi', '0, vj', 'vi, 0']))}]"
        row = draw(st.sampled_from(["vi", "vi", "vi", "vj", "0"]))
        return f"{name}[{row}, 0]" if name[0] == "k" else f"{name}[{row}]"

    for position in range(draw(st.integers(2, 5))):
        kind = draw(st.sampled_from("rkm"))
        name = f"{kind}{position}"
        if kind == "m":
            statements.append(f"SS||{name}[vi, vj] = {read()} - {read()} * 3")
        else:
            kinds, at = draw(st.sampled_from([("SR", "vi"), ("SR", "vi"), ("RS", "vj")]))
            place = f"{name}[{at}, 0]" if kind == "k" else f"{name}[{at}]"
            taken = draw(st.sampled_from(["{} + {}", "T.max({}, {})"])).format(place, read())
            start = draw(st.sampled_from(["0", "-5"]))
            statements.append(f"{kinds}|{place} = {start}|{place} = {taken}")
        known.append(name)
    made = known[1:]
    outputs = sorted({made[-1], *draw(st.lists(st.sampled_from(made), max_size=2))})
    return statements, made, outputs


@settings(max_examples=40, deadline=None)
@given(programs(), st.sampled_from([1, 2, 5, 33]))
def test_chains_of_nests(made: tuple[list[str], list[str], list[str]], size: int) -> None:
    statements, buffers, outputs = made
    compare(function(program(statements, str(size), buffers, outputs)), outputs, size, size)


@settings(max_examples=20, deadline=None)
@given(programs(), st.sampled_from([(0, 0), (1, 1), (5, 5), (40, 40)]))
def test_chains_of_nests_of_any_size(made: tuple[list[str], list[str], list[str]], size: tuple[int, int]) -> None:
    statements, buffers, outputs = made
    square = (
        program(statements, "symbols", buffers, outputs)
        .replace("(M, N)", "(M, M)")
        .replace("T.grid(M, N)", "T.grid(M, M)")
    )
    compare(function(square.replace("M, N = T.int64(), T.int64()", "M = T.int64()")), outputs, *size)
