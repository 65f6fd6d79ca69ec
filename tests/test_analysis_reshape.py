"""``relax.analysis.has_reshape_pattern``."""

from __future__ import annotations

import pytest

from supple import relax, te, tirx, topi
from supple.relax.analysis import has_reshape_pattern
from supple.script import tirx as T

n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")


@pytest.mark.parametrize(
    ("shape", "new"),
    [((4, 6), (24,)), ((4, 6), (2, 12)), ((2, 3, 4), (6, 4)), ((1, 6), (6, 1, 1)), ((n, 28, 28), (n, 784)),
     ((n, m), (n * m,)), ((n * 4,), (n, 4)), ((7,), (7,)), ((0, 3), (3, 0)), ((), (1,))],
)  # fmt: skip
def test_reshapes(shape: tuple[object, ...], new: tuple[object, ...]) -> None:
    x = te.placeholder(shape, "float32", "x")
    assert has_reshape_pattern(te.create_prim_func([x, topi.reshape(x, new)]))


def test_what_is_no_reshape() -> None:
    x = te.placeholder((4, 6), "float32", "x")
    y = te.placeholder((24,), "float32", "y")
    for other in (topi.transpose(x), topi.add(x, x), topi.exp(x), topi.cast(x, "float16"), topi.flip(x, 1)):
        assert not has_reshape_pattern(te.create_prim_func([x, other]))
    assert not has_reshape_pattern(te.create_prim_func([x, topi.strided_slice(x, [0], [2])]))
    assert not has_reshape_pattern(te.create_prim_func([y, topi.broadcast_to(y, (2, 24))]))
    assert not has_reshape_pattern(te.create_prim_func([x, topi.sum(x)]))

    @T.prim_func
    def part(a: T.Buffer((4, 6), "float32"), b: T.Buffer((24,), "float32")):
        for i in range(12):
            with T.sblock("x"):
                v = T.axis.spatial(12, i)
                b[v] = a[v // 6, v % 6]

    assert not has_reshape_pattern(part)  # half of the elements

    @T.prim_func
    def loops_in_another_order(a: T.Buffer((4, 6), "float32"), b: T.Buffer((4, 6, 1), "float32")):
        for j, i in T.grid(6, 4):
            with T.sblock("x"):
                vi, vj = T.axis.remap("SS", [i, j])
                b[vi, vj, 0] = a[vi, vj]

    assert has_reshape_pattern(loops_in_another_order)
    assert relax.analysis.has_reshape_pattern is has_reshape_pattern
