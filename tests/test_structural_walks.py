"""Walks and rewrites by callbacks (`supple.compat.structural_walks`)."""

from __future__ import annotations

from typing import Any

import pytest

from supple import relax, tirx
from supple.compat.structural_walks import (
    DefRegionKind,
    StructuralKey,
    VisitInterrupt,
    WalkResult,
    structural_map,
    structural_mutate,
    structural_visit,
    structural_walk,
)
from supple.ir.structural import structural_equal
from supple.script import from_source

i, j = tirx.Var("i", "int32"), tirx.Var("j", "int32")
E = (i + 1) * tirx.max(j, i)

PROGRAM = """
@T.prim_func(s_tir=True)
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        B[i] = A[i] * T.float32(2)
"""


def test_every_occurrence_is_visited_once() -> None:
    seen: list[Any] = []
    assert structural_walk(E, lambda v: seen.append(type(v).__name__)) is None
    assert seen == ["Var", "IntImm", "Add", "Var", "Var", "Max", "Mul"]
    seen.clear()
    structural_walk(E, lambda v: seen.append(type(v).__name__), order="pre")
    assert seen == ["Mul", "Add", "Var", "IntImm", "Max", "Var", "Var"]
    seen.clear()
    structural_walk([1, ["a", 2.5], {"k": 3}], ((int, str, float), seen.append))
    assert seen == [1, "a", 2.5, 3]


def test_walks_end_and_leave_out() -> None:
    found = structural_walk(E, (tirx.IntImm, VisitInterrupt))
    assert found is not None and found.value.value == 1
    names: list[str] = []
    skip = (tirx.Max, lambda v: WalkResult.SKIP)
    structural_walk(E, [skip, (tirx.Var, lambda v: names.append(v.name))], order="pre")
    assert names == ["i"]


def test_definitions_are_told_from_uses() -> None:
    func = from_source(PROGRAM)
    kinds: list[tuple[str, int]] = []
    structural_walk(func, (), (tirx.Var, lambda v, kind: kinds.append((v.name, int(kind)))))
    assert kinds[:3] == [
        ("A", DefRegionKind.DEF_PATTERN),
        ("B", DefRegionKind.DEF_PATTERN),
        ("i", DefRegionKind.DEF_SIMPLE),
    ]
    assert all(kind == DefRegionKind.NONE for _, kind in kinds[3:]) and len(kinds) > 5


def test_maps_rebuild_what_changes() -> None:
    assert structural_map(E, (tirx.Mul, lambda v: v)) is E
    assert structural_map(E, (tirx.Add, lambda v: v.a)).a is i
    three = structural_map(E, (tirx.Var, lambda v: tirx.IntImm("int32", 3) if v is i else v))
    assert structural_equal(three.b, tirx.Max(j, tirx.IntImm("int32", 3)))
    func = from_source(PROGRAM)
    more = structural_map(func, (tirx.FloatImm, lambda v: tirx.FloatImm(v.dtype, v.value + 1)))
    assert "T.float32(3.0)" in more.script() and more.params[0] is func.params[0]
    assert structural_map([1, {"a": 2}], (int, lambda v: v + 1)) == [2, {"a": 3}]
    outer = structural_map(E, (tirx.Mul, lambda v: v.a), order="pre")
    assert structural_equal(outer, i + 1)


def test_callbacks_may_own_the_descent() -> None:
    seen: list[str] = []
    entries = [(tirx.Max, lambda v, visitor: visitor.visit(v.a)), (tirx.Var, lambda v, visitor: seen.append(v.name))]
    structural_visit(E, entries)
    assert seen == ["i", "j"]
    made = structural_mutate(E, [(tirx.Max, lambda v, mutator: mutator.mutate(v.b)), (tirx.Var, lambda v, _: j)])
    assert structural_equal(made, (j + 1) * j)
    assert structural_mutate(E, (tirx.Add, lambda v, mutator: mutator.default_mutate(v))) is E


def test_graph_functions_are_walked() -> None:
    func = from_source('@R.function\ndef f(x: R.Tensor((2,), "float32")):\n    a = R.exp(x)\n    return R.add(a, x)\n')
    calls: list[str] = []
    structural_walk(func, (relax.Call, lambda c: calls.append(c.op.short_name)))
    assert calls == ["exp", "add"]
    cosines = structural_map(func, (relax.Call, lambda c: relax.op.cos(c.args[0]) if c.op.short_name == "exp" else c))
    assert "R.cos(x)" in cosines.script()


def test_keys_and_refusals() -> None:
    assert {StructuralKey(i + 1): 3}[StructuralKey(i + 1)] == 3 and StructuralKey(i + 1) != StructuralKey(i + 2)
    for wrong in (3, [3], [(3, lambda v: v)]):
        with pytest.raises(TypeError, match="structural_walk"):
            structural_walk(i, wrong)
    with pytest.raises(ValueError, match="order"):
        structural_map(i, lambda v: v, order="in")


def test_long_chains() -> None:
    chain: Any = i
    for _ in range(5000):
        chain = chain + j
    count: list[int] = []
    structural_walk(chain, (tirx.Add, lambda v: count.append(1)))
    assert len(count) == 5000 and structural_map(chain, (tirx.Mul, lambda v: v)) is chain
