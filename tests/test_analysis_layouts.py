"""Layouts that go with an output's layout, and how much memory functions allocate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from supple import relax
from supple.script import from_source

SWAPPED = [lambda n, c: (c, n)]
BLOCKED = [lambda n, c: (n, c // 4, c % 4)]
MATRICES = 'a: T.Buffer((32, 64), "float32"), w: T.Buffer((64, 16), "float32"), b: T.Buffer((32, 16), "float32")'
PAIR = 'a: T.Buffer((32, 64), "float32"), b: T.Buffer((32, 64), "float32")'
ZERO = "with T.init():\n                b[i, j] = T.float32(0)"


def loops(params: str, variables: str, kinds: str, extents: str, body: str, init: str = "pass") -> Any:
    names = ", ".join(f"l{v}" for v in variables)
    return from_source(f"""
@T.prim_func
def f({params}):
    for {names} in T.grid({extents}):
        with T.sblock("blk"):
            {", ".join(variables)} = T.axis.remap("{kinds}", [{names}])
            {init if init != "pass" else ""}
            {body}
""")


def suggested(func: Any, maps: list[Callable[..., Any]]) -> dict[str, str]:
    found = relax.analysis.suggest_layout_transforms(func, maps)
    return {
        getattr(key, "name_hint", None) or key.name: str(value).partition("lambda ")[2].partition(")")[0]
        for by_block in found.values()
        for key, value in by_block.items()
    }


def short(**maps: str) -> dict[str, str]:
    return maps


CASES: dict[str, tuple[Any, ...]] = {
    "elementwise": (
        (PAIR, "ij", "SS", "32, 64", "b[i, j] = a[i, j] + T.float32(1)"),
        "n, c: (c, n", short(a="n, c: (c, n"), "n, c: (n, c // 4, c % 4", short(a="n, c: (n, c // 4, c % 4"),
    ),
    "reduction first": (
        (MATRICES, "kij", "RSS", "64, 32, 16", "b[i, j] = b[i, j] + a[i, k] * w[k, j]", ZERO),
        "d, n, c: (d, c, n", short(a="n, d: (n, d", w="d, c: (d, c"),
        "d, n, c: (d, n, c // 4, c % 4", short(a="n, d: (n, d", w="d, c: (d, c // 4, c % 4"),
    ),
    "reduction between": (
        (MATRICES, "ikj", "SRS", "32, 64, 16", "b[i, j] = b[i, j] + a[i, k] * w[k, j]", ZERO),
        "n, d, c: (c, d, n", short(a="n, d: (n, d", w="d, c: (d, c"),
        "n, d, c: (n, d, c // 4, c % 4", short(a="n, d: (n, d", w="d, c: (d, c // 4, c % 4"),
    ),
    "a constant index": (
        (PAIR, "ij", "SS", "32, 64", "b[i, j] = a[0, j]"),
        "n, c: (c, n", short(a="d, c: (d, c"), "n, c: (n, c // 4, c % 4", short(a="d, c: (d, c // 4, c % 4"),
    ),
    "windows": (
        ('a: T.Buffer((64, 64), "float32"), b: T.Buffer((31, 64), "float32")', "ijk", "SSR", "31, 64, 2",
         "b[i, j] = b[i, j] + a[i * 2 + k, j]", ZERO),
        "n, c, d: (c, n, d", short(a="n, c: (c, n"),
        "n, c, d: (n, c // 4, d, c % 4", short(a="n, c: (n, c // 4, c % 4"),
    ),
    "two ways to read": (
        ('a: T.Buffer((64, 64), "float32"), b: T.Buffer((64, 64), "float32")', "ij", "SS", "64, 64",
         "b[i, j] = a[i, j] * a[j, i]"),
        "n, c: (c, n", {}, "n, c: (n, c // 4, c % 4", {},
    ),
    "two variables in an index": (
        ('a: T.Buffer((96, 64), "float32"), b: T.Buffer((32, 64), "float32")', "ij", "SS", "32, 64",
         "b[i, j] = a[i + j, j]"),
        "n, c: (c, n", {}, "n, c: (n, c // 4, c % 4", {},
    ),
    "indices from data": (
        ('a: T.Buffer((32, 64), "float32"), at: T.Buffer((64,), "int32"), b: T.Buffer((32, 64), "float32")', "ij",
         "SS", "32, 64", "b[i, j] = a[i, at[j]]"),
        "n, c: (c, n", {}, "n, c: (n, c // 4, c % 4", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", CASES)
def test_suggestions(title: str):
    program, swapped, others, blocked, blocked_others = CASES[title]
    func = loops(*program)
    assert suggested(func, SWAPPED) == {"blk": swapped, "b": "n, c: (c, n", **others}
    assert suggested(func, BLOCKED) == {"blk": blocked, "b": "n, c: (n, c // 4, c % 4", **blocked_others}


def test_nothing_is_suggested():
    wrong_order = loops(PAIR, "ji", "SS", "64, 32", "b[i, j] = a[i, j]")
    assert suggested(wrong_order, SWAPPED) == {}
    plain = loops(PAIR, "ij", "SS", "32, 64", "b[i, j] = a[i, j]")
    assert suggested(plain, []) == {}
    assert suggested(plain, [lambda n, c: (n, c // 4)]) == {}, "not one to one"
    assert suggested(plain, [lambda n, c: (n, c // 5, c % 5)]) == {}, "64 is no multiple of 5"
    assert suggested(loops(PAIR, "j", "S", "64", "b[0, j] = a[0, j]"), SWAPPED) == {}
    joined = loops(PAIR.replace("a: T.Buffer((32, 64)", "a: T.Buffer((32,)"), "ij", "SS", "32, 64", "b[i, j] = a[i]")
    assert set(suggested(joined, [lambda n, c: n * 64 + c])) == {"blk", "b"}, "what the map joins has no part"


def test_layouts_reach_buffers_between_blocks():
    func = from_source("""
@T.prim_func
def f(a: T.Buffer((32, 64), "float32"), b: T.Buffer((32, 64), "float32"), c: T.Buffer((32, 64), "float32")):
    t = T.sblock_alloc_buffer((32, 64), "float32")
    for i, j in T.grid(32, 64):
        with T.sblock("one"):
            v, w = T.axis.remap("SS", [i, j])
            t[v, w] = a[v, w]
    for i, j in T.grid(32, 64):
        with T.sblock("two"):
            v, w = T.axis.remap("SS", [i, j])
            b[v, w] = t[v, w]
    for i, j in T.grid(32, 64):
        with T.sblock("three"):
            v, w = T.axis.remap("SS", [i, j])
            c[v, w] = b[v, w] + a[v, w]
""")
    found = relax.analysis.suggest_layout_transforms(func, [*SWAPPED, *BLOCKED])
    names = {
        block.name_hint: {getattr(key, "name_hint", None) or key.name for key in maps} for block, maps in found.items()
    }
    assert list(names) == ["one", "two", "three"]
    assert names["two"] == {"two", "b", "t"}
    assert names["three"] == {"three", "c", "a"}, "b has the layout that was asked for"
    assert names["one"] == {"one", "t"}, "a has the layout that the third block needs"


def test_wrong_requests():
    plain = loops(PAIR, "ij", "SS", "32, 64", "b[i, j] = a[i, j]")
    suggest = relax.analysis.suggest_layout_transforms
    with pytest.raises(ValueError, match="the layout of b takes 3 indices, but the buffer has 2"):
        suggest(plain, [lambda i, j, k: (k, j, i)])
    with pytest.raises(ValueError, match="3 layouts for a function of 2 buffers"):
        suggest(plain, SWAPPED * 3)
    with pytest.raises(TypeError, match="expected a map of indices, got 3"):
        suggest(plain, [3])
    with pytest.raises(TypeError, match="expected a loop function"):
        suggest(3, [])


def test_memory_usage():
    mod = from_source("""
@I.ir_module
class Module:
    @R.function(pure=False)
    def zed(x: R.Tensor(("n", 3), "float32"), c: R.Tensor((), "bool")):
        n = T.int64()
        s = R.memory.alloc_storage(R.shape([24]), R.prim_value(0), R.str("global"), R.dtype("float32"))
        a = R.memory.alloc_tensor(s, R.prim_value(0), R.shape([2, 3]), R.dtype("float32"))
        b = R.memory.alloc_tensor(s, R.prim_value(0), R.shape([2, 3]), R.dtype("float32"))
        d = R.builtin.alloc_tensor(R.shape([n, 3]), R.dtype("float16"), R.prim_value(0))
        if c:
            e = R.builtin.alloc_tensor(R.shape([2, 3]), R.dtype("float16"), R.prim_value(0))
        else:
            e = x
        return a

    @R.function
    def abc(x: R.Tensor((2, 3), "float32")):
        return x
""")
    nothing = "there are 0 constant-size memory allocation(s) with total size 0.0 GB."
    abc = f"- Function abc:\n * Without memory planning, {nothing}\n * With memory planning, {nothing}\n"
    assert relax.analysis.estimate_memory_usage(mod) == (
        f"Memory usage estimation:\n{abc}- Function zed:\n"
        " * Without memory planning, there are 3 constant-size memory allocation(s) with total size 5.588e-08 GB, "
        "and 1 dynamic-size allocation(s).\n"
        " * With memory planning, there are 2 constant-size memory allocation(s) with total size 3.353e-08 GB, "
        "and 1 dynamic-size allocation(s).\n"
        " * Memory planning reduces constant memory size to 60.0%.\n"
    )
    assert relax.analysis.estimate_memory_usage(mod["abc"]) == f"Memory usage estimation:\n{abc}"
    assert relax.analysis.estimate_memory_usage(type(mod)({})) == ""
    with pytest.raises(TypeError, match="expected a module or a graph function, got 3"):
        relax.analysis.estimate_memory_usage(3)
