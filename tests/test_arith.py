"""The analyzer: random expressions keep their values, sets hold them, proofs are true; the public face of `arith`."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
import sym_tools
from hypothesis import given, settings
from hypothesis import strategies as st

import supple.arith as arith
from supple import tirx
from supple.ir import expr as E
from supple.ir.expr import Range, Var, const
from supple.ir.types import prim_type
from supple.sym.simplify import evaluate


def var(name: str, dtype: str = "int32") -> Var:
    return Var(name, prim_type(dtype))


X, Y, Z, N, M = (var(name) for name in "xyznm")


def span(low: int | E.Expr, extent: int | E.Expr) -> Range:
    return Range(E.as_expr(low, "int32"), E.as_expr(extent, "int32"))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 30))
def test_random_expressions_keep_their_values_and_what_is_claimed_of_them_holds(seed: int) -> None:
    source = random.Random(seed)
    case = sym_tools.make_case(source)
    found = sym_tools.run_case(case)
    for values in sym_tools.values_of(case, source, 10):
        assert case.contradiction(found, values) is None, (case, values)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 1 << 30))
def test_sets_hold_every_value(seed: int) -> None:
    source = random.Random(seed)
    case = sym_tools.make_case(source)
    names = {name: var(name, case.dtype) for name in "xyz"}
    expr = sym_tools.build(case.expr, names, lambda v: const(v, case.dtype), sym_tools.node_kinds())
    domains = {
        names[n]: arith.IntervalSet(const(low, case.dtype), const(low + extent - 1, case.dtype))
        for n, (low, extent) in case.ranges.items()
    }
    found = arith.Analyzer().int_set(expr, domains)
    for values in sym_tools.values_of(case, source, 10):
        at = {names[n]: value for n, value in values.items()}
        value = sym_tools.value_of(case.expr, values)
        low, high = found.low(), found.high()
        assert low is None or evaluate(low, at) <= value
        assert high is None or value <= evaluate(high, at)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([2, 3, 4, 6, 8]), min_size=1, max_size=3), st.permutations([0, 1, 2]), st.data())
def test_inverse_of_an_iterator_map_gives_the_loops_back(
    extents: list[int], order: list[int], data: st.DataObject
) -> None:
    loops = [var(f"i{n}") for n in range(len(extents))]
    index: E.Expr = const(0)
    for position in [p for p in order if p < len(loops)]:
        index = index * extents[position] + loops[position]
    total = 1
    for extent in extents:
        total *= extent
    cut = data.draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0]))
    indices = [index // cut, index % cut]
    found = arith.detect_iter_map(indices, {v: span(0, e) for v, e in zip(loops, extents, strict=True)})
    if not found.indices:
        assert found.errors
        return
    outputs = [var("a"), var("b")]
    inverse = arith.inverse_affine_iter_map(found.indices, outputs)
    values = {v: data.draw(st.integers(0, e - 1)) for v, e in zip(loops, extents, strict=True)}
    at = {o: evaluate(i, values) for o, i in zip(outputs, indices, strict=True)}
    for plain, original in zip(found.indices, indices, strict=True):
        assert evaluate(arith.normalize_iter_map_to_expr(plain), values) == evaluate(original, values)
    for loop, value in inverse.items():
        assert evaluate(value, at) == values[loop]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=4, max_size=4), st.integers(-9, 9), st.integers(-9, 9))
def test_solutions_of_linear_equations_satisfy_them(c: list[int], x: int, y: int) -> None:
    equations = [E.EQ(X * a + Y * b, const(a * x + b * y)) for a, b in (c[:2], c[2:])]
    found = arith.solve_linear_equations(equations, [X, Y])
    # the solution (x, y) is among those described
    assert not any(isinstance(r, E.IntImm) and r.value == 0 for r in found.dst.relations)
    at = {X: x, Y: y}
    for source, value in found.dst_to_src.items():
        assert evaluate(value, at) == at[source]
    for relation in found.dst.relations:
        assert evaluate(relation, at)


def test_linear_systems_without_solution_and_inequalities() -> None:
    none = arith.solve_linear_equations([E.EQ(X + Y, const(1)), E.EQ(X + Y, const(2))], [X, Y])
    assert [r.value for r in none.dst.relations] == [0]
    bounds, left = arith.solve_linear_inequalities([X + Y < 10, X >= Y], [X, Y], {Y: span(0, 5)})
    assert not left
    (low,), (high,) = bounds[X].lower, bounds[X].upper
    assert low is Y or str(low) == "y"
    assert str(high) == "9 - y"
    moved = arith.solve_linear_inequalities([X >= 3, X < 8], [X], deskew_range=True)
    (shifted,) = moved.dst.variables
    assert evaluate(moved.dst.ranges[shifted].extent, {}) == 5


def test_bounds_remainders_and_scopes() -> None:
    a = arith.Analyzer()
    a.bind(X, span(0, 8))
    bound = a.const_int_bound(X * 2 + 1)
    assert (bound.min_value, bound.max_value) == (1, 15)
    assert a.const_int_bound_is_bound(X) and not a.const_int_bound_is_bound(Y)
    assert a.const_int_bound(var("q", "int64")).max_value == arith.ConstIntBound.POS_INF
    with a.constraint_scope(Y % 3 == 0):
        assert a.modular_set(Y).coeff == 3
        assert a.can_prove((Y + 1) % 3 == 1)
    assert a.modular_set(Y).coeff == 1
    with pytest.raises(ValueError, match="x is bound"):
        a.bind(X, span(0, 9))
    a.bind(X, span(0, 9), allow_override=True)
    a.update(Z, arith.ConstIntBound(2, 4))
    assert a.can_prove(Z > 1)
    with pytest.raises(ValueError, match="z is known"):
        a.update(Z, arith.ConstIntBound(0, 1))
    a.update(Z, arith.ModularSet(4, 0), override=True)
    assert a.modular_set(Z + 1).base == 1
    other = a.clone()
    other.bind(Y, const(5))
    assert other.can_prove(E.EQ(Y, const(5))) and not a.can_prove(E.EQ(Y, const(5)))


def test_symbolic_ranges_prove_indices_in_bounds() -> None:
    a = arith.Analyzer()
    a.bind(X, span(0, N))
    a.bind(Y, span(0, M))
    assert a.can_prove(X * M + Y < N * M)
    assert a.can_prove(E.And(X >= 0, X < N))
    assert not a.can_prove(X < N - 1)
    assert a.try_compare(X, N) == arith.CompareResult.LT
    assert a.try_compare(X, Y) == arith.CompareResult.UNKNOWN
    assert str(a.int_set(X * 2 + 1).max_value) == "n * 2 - 1"


def test_divisions_by_zero_stay_as_they_are() -> None:
    a = arith.Analyzer()
    for kind in (E.FloorDiv, E.FloorMod, E.Div, E.Mod):
        for e in (kind(X, const(0)), kind(const(3), const(0)), kind(X, X - X)):
            result = a.simplify(e)
            assert isinstance(result, kind)
            assert evaluate(result, {X: 7}) == 0
        assert not a.can_prove(E.EQ(kind(X, X), const(1)))
    assert a.const_int_bound(X // 0).min_value <= 0


def test_floats_get_only_what_nan_allows() -> None:
    a = arith.Analyzer()
    f = var("f", "float32")
    for e in (f - f, f * 0.0, f / f, E.EQ(f, f), f + 1.0 - f):
        assert type(a.simplify(e)) is type(e)
    assert a.simplify(E.Min(f, f)) is a.simplify(f)
    assert a.simplify(const(1.5) + const(2.0)).value == 3.5
    assert not a.can_prove(E.Or(f < 0.0, f >= 0.0))


def test_long_chains_take_linear_time_and_no_stack() -> None:
    total: E.Expr = X
    smallest: E.Expr = X
    chosen: E.Expr = X
    divided: E.Expr = X
    for n in range(1000):
        total = total + (Y if n % 3 else Z) * n
        smallest = E.Min(smallest, var("q") + n)
        chosen = E.Select(var("q") < n, chosen, chosen + 1)
        divided = (divided + var("q")) // 3
    for e in (total, smallest, chosen, divided):
        a = arith.Analyzer()
        a.simplify(e)
        a.const_int_bound(e)
        a.modular_set(e)


def test_products_do_not_blow_up() -> None:
    e: E.Expr = X + Y
    for _ in range(200):
        e = e * (X + Y + Z)
    arith.Analyzer().simplify(e)


def test_rewrite_limit() -> None:
    a = arith.Analyzer()
    a.set_maximum_rewrite_steps(1)
    with pytest.raises(arith.RewriteLimitError):
        a.rewrite_simplify((X + 1) * 2 + (X + 2) * 3)


def test_what_is_no_scalar_is_refused_by_name() -> None:
    a = arith.Analyzer()
    for wrong in ("x", None, [X]):
        with pytest.raises(TypeError, match="expected a scalar expression"):
            a.simplify(wrong)
    with pytest.raises(ValueError, match="x cannot stand for"):
        a.bind(X, X + 1)


def test_vectors() -> None:
    a = arith.Analyzer()
    made = a.rewrite_simplify(E.Add(E.Ramp(X, const(1), 4), E.Broadcast(const(2), 4)))
    assert str(made) == str(E.Ramp(X + 2, const(1), 4))


def test_detecting() -> None:
    assert [str(e) for e in arith.detect_linear_equation(X * 2 + Y * 3 + N, [X, Y])] == ["2", "3", "n"]
    assert arith.detect_linear_equation(X * X, [X]) == ()
    assert [str(e) for e in arith.detect_clip_bound(E.And(X > 1, X < N), [X])] == ["2", "n - 1"]
    found = arith.deduce_bound(X, X * 2 + Y < 10, {}, {Y: arith.IntervalSet(0, 3)})
    assert found.low() is None and found.high().value == 3
    assert arith.IntSet.vector(E.Ramp(X, const(1), 4)).max_value is not None
    assert arith.IntSet.single_point(X).is_single_point() and arith.IntervalSet(3, 1).is_nothing()


def test_iterator_maps() -> None:
    loops = {X: span(0, 3), Y: span(0, 4)}
    assert str(arith.iter_map_simplify([(X * 4 + Y) // 4], loops)[0]) == "x"
    (outer, inner), last = arith.subspace_divide([X * 4 + Y], loops, [Y])
    assert (outer.extent.value, inner.extent.value) == (3, 4) and len(last) == 2
    assert arith.detect_iter_map([X // 2], {X: span(0, 7)}).errors
    assert arith.detect_iter_map([X], loops, check_level="bijective").errors
    assert arith.detect_iter_map([X * Y], loops).errors
    narrowed = arith.detect_iter_map([X], {X: span(0, 8)}, X < 6)
    assert narrowed.indices[0].args[0].extent.value == 6
    assert arith.estimate_region_upper_bound([span(X * 8, 4)], {X: span(0, 3)}, True)[0].max_value.value == 19
    assert arith.estimate_region_lower_bound([span(X * 8, 4)], {X: span(0, 3)}, True) is None
    assert arith.estimate_region_strict_bound([span(X * 4, 4)], {X: span(0, 3)}, True)[0].max_value.value == 11


def test_the_alias_names_it_arith_and_sym() -> None:
    program = (
        "import supple.compat; supple.compat.install_as_tvm()\n"
        "import tvm\nfrom tvm import arith, tirx\nfrom tvm.sym import Analyzer\n"
        "from tvm.arith.int_set import IntervalSet\n"
        "assert tvm.arith.Analyzer is Analyzer is arith.Analyzer\n"
        "x = tirx.Var('x', 'int32')\na = tvm.arith.Analyzer()\na.bind(x, tvm.ir.Range(0, 8))\n"
        "assert a.can_prove(x < 8)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_sums_have_relaxs_order() -> None:
    i, j, k = (tirx.Var(name, "int32") for name in "ijk")
    analyzer = arith.Analyzer()
    cases = {
        "k * 3 + i * 2": i * 2 + k * 3,
        "j // 4 + i": i + j // 4,
        "j // 8 + i // 4": i // 4 + j // 8,
        "i + j % 4": i + j % 4,
        "i + k - j": i - j + k,
        "i * 2 + 1 - j * 3": i * 2 + 1 - j * 3,
        "i % 6 // 3": i // 3 % 2,
        "A[i - 8]": tirx.decl_buffer((16,), "float32", "A")[i - 8],
    }
    for expected, e in cases.items():
        assert analyzer.simplify(e).script(style="relax").splitlines()[-1] == expected
