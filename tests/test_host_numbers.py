"""Scalar expressions in native graph functions: checked integers, floats, bools, conversions."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from host_tools import build, machine, sym

import supple
from supple.base import dtypes
from supple.error import ArgumentError, ExecutionError, NotSupportedError
from supple.ir import expr as E
from supple.ir.expr import Var, const, int64
from supple.ir.graph import Tuple
from supple.ir.types import prim_type
from supple.script import from_source


def compiled(dtype, make, count=2):
    """``main(a, b) = make(a, b)`` on scalars of one dtype."""
    params = [Var("ab"[i], prim_type(dtype)) for i in range(count)]
    return machine(build(params, lambda bb, *p: make(*p)))["main"]


LOW, HIGH = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    ("kind", "reference"),
    [
        (E.Add, lambda a, b: a + b),
        (E.Sub, lambda a, b: a - b),
        (E.Mul, lambda a, b: a * b),
        (E.FloorDiv, lambda a, b: a // b if b else 0),
        (E.FloorMod, lambda a, b: a % b if b else 0),
        (E.Div, lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0),
        (E.Mod, lambda a, b: int(math.copysign(abs(a) % abs(b), a)) if b and abs(a) < 2**50 else None if b else 0),
        (E.Min, min),
        (E.Max, max),
    ],
)  # fmt: skip
def test_integers_are_exact_or_errors(kind, reference):
    f = compiled("int64", kind)
    values = [0, 1, -1, 2, -3, 7, 10, -10, 2**31, LOW, LOW + 1, HIGH]
    for a in values:
        for b in values:
            wanted = reference(a, b)
            if wanted is None:
                continue
            if LOW <= wanted <= HIGH:
                if (a, b) == (LOW, -1):
                    continue  # the remainder is 0, but the quotient does not exist
                assert f(a, b) == wanted, (a, b)
            else:
                with pytest.raises(ExecutionError, match="does not fit in 64 bits"):
                    f(a, b)


def test_narrow_integers_do_not_wrap():
    f = compiled("int32", E.Add)
    assert f(2**31 - 2, 1) == 2**31 - 1
    with pytest.raises(ExecutionError, match="does not fit"):
        f(2**31 - 1, 1)
    g = compiled("uint8", E.Sub)
    with pytest.raises(ExecutionError):
        g(1, 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats(dtype):
    kinds = {E.Add: np.add, E.Sub: np.subtract, E.Mul: np.multiply, E.Div: np.divide}
    values = [0.0, 1.5, -2.25, 1e30, math.inf, math.nan]
    for kind, reference in kinds.items():
        f = compiled(dtype, kind)
        for a in values:
            for b in values:
                with np.errstate(all="ignore"):
                    wanted = float(reference(np.dtype(dtype).type(a), np.dtype(dtype).type(b)))
                assert np.array_equal(f(a, b), wanted, equal_nan=True), (kind, a, b)
    assert math.isnan(compiled(dtype, E.Max)(1.0, math.nan))
    assert compiled(dtype, E.Min)(-0.0, 3.0) == 0


def test_comparisons_and_logic():
    for dtype, values in (("int64", [-1, 0, 1]), ("float64", [-1.0, 0.0, math.nan])):
        for kind in (E.EQ, E.NE, E.LT, E.LE, E.GT, E.GE):
            f = compiled(dtype, kind)
            symbol = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}[kind.__name__]
            for a in values:
                for b in values:
                    assert f(a, b) is eval(f"a {symbol} b", {"a": a, "b": b})
    for kind, reference in ((E.And, lambda a, b: a and b), (E.Or, lambda a, b: a or b)):
        f = compiled("bool", kind)
        for a in (False, True):
            for b in (False, True):
                assert f(a, b) is reference(a, b)
    assert compiled("bool", E.Not, 1)(True) is False
    pick = compiled("int64", lambda a, b: E.Select(E.LT(a, b), a, E.Mul(b, int64(10))))
    assert (pick(1, 2), pick(2, 1)) == (1, 10)


def test_conversions():
    assert compiled("float64", lambda a: E.Cast("int64", a), 1)(2.9) == 2
    assert compiled("float64", lambda a: E.Cast("int64", a), 1)(math.nan) == 0
    assert compiled("float64", lambda a: E.Cast("int64", a), 1)(1e300) == HIGH
    assert compiled("int64", lambda a: E.Cast("float32", a), 1)(7) == 7.0
    assert compiled("int64", lambda a: E.Cast("bool", a), 1)(7) is True
    assert compiled("bool", lambda a: E.Cast("int32", a), 1)(True) == 1
    assert compiled("float32", lambda a: E.Cast("float64", a), 1)(0.1) == float(np.float32(0.1))
    with pytest.raises(ExecutionError, match="does not fit"):
        compiled("int64", lambda a: E.Cast("int8", a), 1)(300)
    assert compiled("int64", lambda a: E.Add(a, const(5, "int64")), 1)(1) == 6
    assert compiled("float32", lambda a: E.Mul(a, const(0.5, "float32")), 1)(3) == 1.5


def test_deep_expressions():
    n = sym("n")
    chain = functools.reduce(E.Add, [n] * 5000)
    f = machine(build([Var("s", __import__("supple").relax.ShapeType((n,)))], lambda bb, s: chain))["main"]
    assert f((3,)) == 15000
    with pytest.raises(ExecutionError, match="does not fit"):
        f((2**60,))


NARROW = (
    "float16", "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip
FLOATS = [0.0, -0.0, 1.0, 0.1, -2.7, 3.3e4, 65519.9, -500.0, 1e-8, 6e-6, 1e30, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_floats_are_rounded_after_each_operation(dtype):
    kind = dtypes.to_numpy(dtype)
    results = [
        lambda a, b: E.Add(a, b), lambda a, b: E.Sub(a, b), lambda a, b: E.Mul(a, b), lambda a, b: E.Div(a, b),
        lambda a, b: E.Add(E.Mul(a, b), const(0.1, dtype)), lambda a, b: E.Select(E.LT(a, b), a, b),
        lambda a, b: E.Cast("float64", a), lambda a, b: E.Cast(dtype, E.Cast("float64", b)),
    ]  # fmt: skip
    f = many(dtype, results)
    tenth = np.array(0.1).astype(kind)
    for a in FLOATS:
        for b in FLOATS[2:]:
            with np.errstate(all="ignore"):
                x, y = np.array(a).astype(kind), np.array(b).astype(kind)
                wanted = [x + y, x - y, x * y, x / y, x * y + tenth, x if x < y else y, x, y]
            for got, want in zip(f(a, b), wanted, strict=True):
                assert np.array_equal(got, float(want), equal_nan=True), (dtype, a, b, got, want)


def many(dtype, results):
    """``main(a, b)``: a tuple of scalars."""
    params = [Var(name, prim_type(dtype)) for name in "ab"]
    return machine(build(params, lambda bb, *p: Tuple(tuple(make(*p) for make in results))))["main"]


def test_narrow_floats_from_other_numbers():
    for dtype, values in (("int64", [0, -3, 2049, 65519, 65520, 2**40 + 1]), ("float64", [0.1, 65519.99, 2049.0001])):
        f = many(dtype, [lambda a, b, to=to: E.Cast(to, a) for to in ("float16", "bfloat16")])
        for value in values:
            with np.errstate(all="ignore"):
                wanted = [np.array(value).astype(dtypes.to_numpy(to)) for to in ("float16", "bfloat16")]
            assert list(f(value, value)) == [float(w) for w in wanted], (dtype, value)
    assert compiled("bfloat16", lambda a: E.Cast("int32", a), 1)(-2.9) == -2
    assert compiled("float16", lambda a: E.Cast("bool", a), 1)(0.1) is True


WORD = 1 << 64


def test_uint64():
    kinds = {
        E.Add: lambda a, b: a + b, E.Sub: lambda a, b: a - b, E.Mul: lambda a, b: a * b,
        E.FloorDiv: lambda a, b: a // b if b else 0, E.FloorMod: lambda a, b: a % b if b else 0,
        E.Div: lambda a, b: a // b if b else 0, E.Mod: lambda a, b: a % b if b else 0, E.Min: min, E.Max: max,
        E.LT: lambda a, b: a < b, E.GE: lambda a, b: a >= b, E.EQ: lambda a, b: a == b,
    }  # fmt: skip
    values = [0, 1, 3, 2**32, 2**63 - 1, 2**63, WORD - 2, WORD - 1]
    for kind, reference in kinds.items():
        f = compiled("uint64", kind)
        for a in values:
            for b in values:
                wanted = reference(a, b)
                if 0 <= wanted < WORD:
                    assert f(a, b) == wanted, (kind, a, b)
                else:
                    with pytest.raises(ExecutionError, match="does not fit in 64 bits"):
                        f(a, b)
    for wrong in (-1, WORD):
        with pytest.raises(ArgumentError, match="does not fit in uint64"):
            compiled("uint64", lambda a: a, 1)(wrong)
    assert compiled("uint64", lambda a: E.Add(a, const(WORD - 2, "uint64")), 1)(1) == WORD - 1
    assert compiled("uint64", lambda a: E.Cast("float64", a), 1)(2**63) == 2.0**63
    assert compiled("float64", lambda a: E.Cast("uint64", a), 1)(2.0**63) == 2**63
    assert compiled("uint64", lambda a: E.Cast("uint8", a), 1)(200) == 200
    for source, target, value in (
        ("uint64", "int64", 2**63), ("uint64", "uint32", WORD - 1), ("int64", "uint64", -1), ("int8", "uint64", -1),
        ("uint64", "uint8", 256),
    ):  # fmt: skip
        with pytest.raises(ExecutionError, match="does not fit"):
            compiled(source, lambda a, target=target: E.Cast(target, a), 1)(value)


@pytest.mark.parametrize(("dtype", "value"), [("uint64", WORD - 5), ("float16", 0.1), ("bfloat16", 0.1)])
def test_such_scalars_go_everywhere(dtype, value):
    """Through packed functions, calls, branches, closures, kernels, and checks of unknown values."""
    seen = []
    supple.register_global_func("numbers.echo", lambda x: (seen.append(x), x)[1], override=True)
    vm = machine(
        from_source(f"""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def kernel(s: T.{dtype}, B: T.Buffer((2,), "{dtype}")):
        for i in range(2):
            B[i] = s

    @R.function(private=True)
    def callee(s: R.Prim("{dtype}")) -> R.Prim("{dtype}"):
        return s

    @R.function(pure=False)
    def main(s: R.Prim("{dtype}"), c: R.Tensor((), "bool"), o: R.Any):
        cls = Module
        a = R.call_packed("numbers.echo", s, ty_args=R.Prim("{dtype}"))
        b = cls.callee(a)
        if c:
            d = b
        else:
            d = cls.callee(s)
        k = R.call_tir(cls.kernel, (d,), out_ty=R.Tensor((2,), "{dtype}"))
        m = R.match_cast(o, R.Prim("{dtype}"))
        return (a, b, d, k, m)
""")
    )
    rounded = dtypes.to_numpy(dtype).type(value)
    for condition in (True, False):
        a, b, d, k, m = vm["main"](value, np.array(condition), value)
        assert seen[-1] == rounded.item() and (a, b, d) == (rounded.item(),) * 3
        np.testing.assert_array_equal(np.asarray(k), np.full(2, rounded))
        assert m == value or m == rounded.item()
    if dtype == "uint64":
        with pytest.raises(ExecutionError):
            vm["main"](value, np.array(True), -1)
        other = machine(
            from_source('@R.function\ndef main(o: R.Any):\n    m = R.match_cast(o, R.Prim("int64"))\n    return m\n')
        )
        assert other["main"](5) == 5
        with pytest.raises(ExecutionError):
            other["main"](2**63)
    supple.remove_global_func("numbers.echo")


def test_unsupported_scalars_are_named():
    with pytest.raises(NotSupportedError, match="float16x2"):
        compiled("float16x2", E.Add)
    with pytest.raises(NotSupportedError, match="handle"):
        compiled("handle", lambda a: a, 1)
