"""Scalar expressions in native graph functions: checked integers, floats, bools, conversions."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from host_tools import build, machine, sym

from supple.error import ExecutionError, NotSupportedError
from supple.ir import expr as E
from supple.ir.expr import Var, const, int64
from supple.ir.types import prim_type


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


def test_unsupported_scalars_are_named():
    with pytest.raises(NotSupportedError, match="float16"):
        compiled("float16", E.Add)
    with pytest.raises(NotSupportedError, match="uint64"):
        compiled("uint64", E.Add)
