"""Integer reasoning: values are preserved, known identities are proved, bounds hold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.ir import expr as E
from supple.ir.expr import Var, int64
from supple.ir.structural import structural_equal, structural_hash
from supple.ir.types import ShapeType, prim_type
from supple.sym.simplify import SHAPES, Analyzer, evaluate, product, same_shape, solve_linear

N, M, K = (Var(name, prim_type("int64")) for name in "nmk")


def choice(a: E.Expr, b: E.Expr) -> E.Expr:
    return E.Select(E.LT(a, b), a + 1, b)


leaves = st.one_of(st.sampled_from([N, M, K]), st.integers(-20, 20).map(int64))
kinds = st.sampled_from([E.Add, E.Sub, E.Mul, E.FloorDiv, E.FloorMod, E.Min, E.Max, E.Div, choice])
expressions = st.recursive(leaves, lambda sub: st.builds(lambda k, a, b: k(a, b), kinds, sub, sub), max_leaves=12)
sizes = st.integers(0, 30)


@settings(max_examples=400, deadline=None)
@given(expressions, sizes, sizes, sizes)
def test_simplify_preserves_values_and_bounds_hold(e: E.Expr, n: int, m: int, k: int) -> None:
    values = {N: n, M: m, K: k}
    value = evaluate(e, values)
    assert evaluate(SHAPES.simplify(e), values) == value
    low, high = SHAPES.bounds(e)
    assert low <= value <= high
    ranged = Analyzer({N: (0, 30), M: (0, 30), K: (0, 30)})
    assert evaluate(ranged.simplify(e), values) == value
    low, high = ranged.bounds(e)
    assert low <= value <= high


@settings(max_examples=300, deadline=None)
@given(expressions, expressions, sizes, sizes, sizes)
def test_verdicts_are_never_wrong(a: E.Expr, b: E.Expr, n: int, m: int, k: int) -> None:
    values = {N: n, M: m, K: k}
    equal = SHAPES.equal(a, b)
    if equal is not None:
        assert equal == (evaluate(a, values) == evaluate(b, values))
    less = SHAPES.less_equal(a, b)
    if less is not None:
        assert less == (evaluate(a, values) <= evaluate(b, values))


def test_identities_that_shapes_need() -> None:
    same = [
        (N + N, N * 2),
        ((N * 784) // 28, N * 28),
        ((N * 28 + 5) // 28, N),
        ((N // 4) * 4 + N % 4, N),
        ((N + M) - M, N),
        (E.Max(N, int64(0)), N),
        (E.Min(N + 1, N), N),
        ((N // 2) // 3, N // 6),
        ((N * 6) // 4, (N * 3) // 2),
        ((N * M) * 4 // 2, M * N * 2),
    ]
    for a, b in same:
        assert SHAPES.equal(a, b) is True, (a, b)
    different = [(N, N + 1), (N * 2, M * 2 + 1), (N % 4, int64(4)), (N, int64(-1))]
    for a, b in different:
        assert SHAPES.equal(a, b) is False, (a, b)
    assert SHAPES.equal(N, M) is None
    assert SHAPES.equal(N // N, int64(1)) is None  # n may be 0
    assert SHAPES.bounds(N % 4) == (0, 3)


ZERO, ONE = int64(0), int64(1)
BY_CASES = [
    ((N - N % -4) // 4, (N + 3) // 4),
    (E.Max(E.Min(int64(3), N) - E.Min(ZERO, N), ZERO), E.Min(int64(3), N)),
    (E.Max(N - 1, ZERO), E.Max(ZERO, N - E.Min(ONE, N))),
    ((N - 1) // 2 + 1, E.Min(N // 2 + 1, (N + 1) // 2)),
    (E.Select(E.EQ(N % 2, ZERO), N // 2 + 1, N // 2 + 2), (N + 1) // 2 + 1),
    (E.Select(E.LT(N, ZERO), N + M, N), N),
    (E.Div(N, int64(2)), N // 2),
    (E.Min(E.Max(N - 1, ZERO), N) - E.Min(E.Max(N - 3, ZERO), N), E.Max(ZERO, N - 1) - E.Max(ZERO, N - 3)),
    (E.Select(E.LT(N, ONE), N * 2 - 1, N - 1), E.Select(E.GT(N, ZERO), N - 1, N - 1 + N)),
]


@pytest.mark.parametrize("place", range(len(BY_CASES)))
def test_sizes_that_choose_are_compared_case_by_case(place: int) -> None:
    """What differs in one value is not equal, and equal types have one hash."""
    a, b = BY_CASES[place]
    assert SHAPES.equal(a, b) is True
    assert SHAPES.equal(a, b + E.Max(ZERO, N - 29) - E.Max(ZERO, N - 30)) is not True  # one more from 30 on
    assert SHAPES.equal(a, E.Select(E.EQ(N, int64(30)), b + 1, b)) is not True
    one, other = ShapeType((a,)), ShapeType((b,))
    if structural_equal(one, other):
        assert structural_hash(one) == structural_hash(other)


def test_shapes_products_and_solving() -> None:
    assert same_shape((N, int64(4)), (N, int64(4))) is True
    assert same_shape((N, int64(4)), (M, int64(5))) is False
    assert same_shape((N,), (M,)) is None
    assert SHAPES.equal(product((N, int64(28), int64(28))), N * 784) is True
    solved = solve_linear(N * 2 + M + 1, N)
    assert solved is not None and solved[0] == 2
    assert solve_linear(N * N, N) is None and solve_linear(M, N) is None


def test_a_chain_of_5000_terms_is_no_deeper_than_the_stack() -> None:
    e: E.Expr = N
    for _ in range(5000):
        e = e + 1
    assert evaluate(SHAPES.simplify(e), {N: 1}) == 5001
    assert evaluate(e, {N: 1}) == 5001
    assert SHAPES.bounds(e) == (5000, math.inf)
