"""Math functions of kernels against numpy in higher precision: errors in units of the last place, special values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from kernel_tools import Kernel

from supple.base.target import host, target
from supple.codegen.kernel import emit_kernel
from supple.codegen.llvm import compile_text
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Var, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.loop import Buffer, BufferStore, For, ForKind, PrimFunc
from supple.ir.types import prim_type
from supple.runtime.elf import elf_symbols

SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, 2.0, -2.0, 1e-40, 1e-310, 3.0, 1e30, -1e30, 88.8]


def elementwise(build: Any, dtypes: list[str], result: str) -> PrimFunc:
    """``out[i] = build(a[i], b[i], ...)``."""
    n = Var("n", prim_type("int64"))
    inputs = [Buffer(f"x{i}", (n,), d) for i, d in enumerate(dtypes)]
    out = Buffer("out", (n,), result)
    i = Var("i", prim_type("int64"))
    value = build(*(BufferLoad(x, (i,)) for x in inputs))
    return PrimFunc((*inputs, out), For(i, int64(0), n, ForKind.SERIAL, BufferStore(out, value, (i,))))


def apply(build: Any, *arrays: np.ndarray[Any, Any], result: str | None = None, schedule: bool = True) -> Any:
    kinds = [str(a.dtype) for a in arrays]
    kernel = Kernel(elementwise(build, kinds, result or kinds[0]), schedule=schedule)
    out = np.empty(arrays[0].shape, result or kinds[0])
    kernel(*arrays, out)
    return out


def ulps(got: Any, exact: Any) -> float:
    """The largest error in units of the last place of the result's dtype."""
    with np.errstate(all="ignore"):
        expected = exact.astype(got.dtype)
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
        unit = np.abs(np.spacing(expected)).astype(exact.dtype)
        error = np.abs(got.astype(exact.dtype) - exact) / unit
    assert np.isfinite(error[~same]).all(), (got[~same][:5], expected[~same][:5])
    return float(np.max(error, where=~same, initial=0))


UNARY: dict[str, tuple[Any, float, float, float, float]] = {
    # numpy's function, range, limits in ulp for float32 and float64
    "exp": (np.exp, -110, 95, 2, 3), "exp2": (np.exp2, -155, 130, 2, 3), "exp10": (lambda x: 10**x, -50, 40, 1, 4),
    "expm1": (np.expm1, -3, 3, 2, 2.5), "log": (np.log, 0, 50, 2, 3), "log2": (np.log2, 0, 50, 1, 4),
    "log10": (np.log10, 0, 50, 1, 4), "log1p": (np.log1p, -0.99, 3, 2, 2), "sqrt": (np.sqrt, 0, 50, 0.5, 0.5),
    "tanh": (np.tanh, -10, 10, 2.6, 3), "sinh": (np.sinh, -20, 20, 2.6, 2.6), "cosh": (np.cosh, -20, 20, 2.6, 2),
    "asinh": (np.arcsinh, -50, 50, 2, 2.6), "acosh": (np.arccosh, 1, 50, 2, 2.6),
    "atanh": (np.arctanh, -1, 1, 2.6, 2.6),
    "sin": (np.sin, -100, 100, 2, 4), "cos": (np.cos, -100, 100, 2, 4), "tan": (np.tan, -100, 100, 1, 4),
    "asin": (np.arcsin, -1, 1, 2.6, 2.6), "acos": (np.arccos, -1, 1, 2, 2), "atan": (np.arctan, -50, 50, 1, 4),
    "floor": (np.floor, -50, 50, 0, 0), "ceil": (np.ceil, -50, 50, 0, 0), "trunc": (np.trunc, -50, 50, 0, 0),
    "round": (np.rint, -50, 50, 0, 0), "fabs": (np.abs, -50, 50, 0, 0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0, 50, 1.5, 1.5), "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -80, 80, 2.5, 4),
}  # fmt: skip


def special(dtype: str) -> np.ndarray[Any, Any]:
    with np.errstate(all="ignore"):
        return np.array(SPECIAL, "float64").astype(dtype)


def samples(dtype: str, low: float, high: float) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(3)
    parts = [rng.uniform(low, high, 4000), rng.uniform(low, high, 1000) * 1e-3, rng.uniform(-1, 1, 999)]
    bits = rng.integers(0, 256, 4000 * np.dtype(dtype).itemsize, dtype=np.uint8)  # numbers of every size, NaN
    return np.concatenate([np.concatenate(parts).astype(dtype), bits.view(dtype)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, dtype: str) -> None:
    function, low, high, limit32, limit64 = UNARY[name]
    x = np.concatenate([samples(dtype, low, high), special(dtype)])
    with np.errstate(all="ignore"):
        exact = function(x.astype("float64" if dtype == "float32" else "longdouble"))
    got = apply(lambda v: intrinsic(name, v), x)
    assert ulps(got, exact) <= (limit32 if dtype == "float32" else limit64)
    again = apply(lambda v: intrinsic(name, v), x[:33], schedule=False)
    np.testing.assert_array_equal(again, got[:33])  # scalars and vectors agree to the bit


def turning_points(dtype: str) -> np.ndarray[Any, Any]:
    """Arguments of every size: at random, powers of two, next to multiples of pi/2, around where reduction changes."""
    rng = np.random.default_rng(7)
    top = 128 if dtype == "float32" else 1024
    random = np.ldexp(rng.uniform(0.5, 1, 12000), rng.integers(-30, top, 12000))
    powers = np.ldexp(1.0, np.arange(-40, top))
    near = np.concatenate([np.arange(1, 4000), np.ldexp(rng.integers(1, 1 << 20, 2000).astype(float), 8)]) * (np.pi / 2)
    hardest = [6381956970095103.0 * 2.0**797, 16367173.0 * 2.0**72, 1e5, 1e6, np.nextafter(1e6, 2e6), 1e22, 1e300]
    found = np.concatenate([random, powers, near, hardest])
    found = found[found < np.finfo(dtype).max].astype(dtype)
    return np.concatenate([found, -found])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_circular_functions_of_arguments_of_every_size(name: str, dtype: str) -> None:
    x = turning_points(dtype)
    exact = getattr(np, name)(x.astype("float64" if dtype == "float32" else "longdouble"))
    got = apply(lambda v: intrinsic(name, v), x)
    assert ulps(got, exact) <= ((1 if name == "tan" else 2) if dtype == "float32" else 4)
    few = x[-40:]  # a vector with large and small lanes: each as it is alone
    scalar = apply(lambda v: intrinsic(name, v), few, schedule=False)
    np.testing.assert_array_equal(scalar, got[-40:])
    zeros = np.array([0.0, -0.0], dtype)
    np.testing.assert_array_equal(
        np.signbit(apply(lambda v: intrinsic(name, v), zeros)), np.signbit(getattr(np, name)(zeros))
    )


def test_a_large_argument_known_outside_a_loop() -> None:
    x, n = Buffer("x", (int64(1),), "float64"), Var("n", prim_type("int64"))
    out, i = Buffer("out", (n,), "float64"), Var("i", prim_type("int64"))
    value = intrinsic("sin", BufferLoad(x, (int64(0),)))
    kernel = Kernel(PrimFunc((x, out), For(i, int64(0), n, ForKind.SERIAL, BufferStore(out, value, (i,)))))
    result = np.empty(21)
    kernel(np.array([1e22]), result)
    np.testing.assert_array_equal(result, np.full(21, np.sin(1e22)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_erf(dtype: str) -> None:
    x = np.concatenate([samples(dtype, -7, 7), special(dtype)])
    exact = np.array([math.erf(float(v)) for v in x])
    got = apply(lambda v: intrinsic("erf", v), x)
    assert ulps(got, exact) <= 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_functions_that_saturate_are_odd_and_never_beyond_one(name: str, dtype: str) -> None:
    x = np.concatenate([np.geomspace(1e-20, 1e30, 20000), np.linspace(3, 20, 40001), [0, np.inf]]).astype(dtype)
    up, down = (apply(lambda v: intrinsic(name, v), sign * x) for sign in (1, -1))
    np.testing.assert_array_equal(up, -down)
    assert up.max() == 1 and (up[x >= 20] == 1).all() and up[0] > 0 and np.isfinite(up).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["pow", "fmod", "atan2", "hypot", "copysign"])
def test_binary(name: str, dtype: str) -> None:
    function: Any = {"pow": np.power, "fmod": np.fmod, "atan2": np.arctan2, "hypot": np.hypot,
                     "copysign": np.copysign}[name]  # fmt: skip
    grid = np.concatenate([special(dtype), np.array([2.5, -2.5, 7.0, 1e-3, -3.0, 1e10, 1.0000001], dtype)])
    rng = np.random.default_rng(5)
    x = np.concatenate([np.repeat(grid, grid.size), rng.uniform(0, 20, 3000).astype(dtype)])
    y = np.concatenate([np.tile(grid, grid.size), rng.uniform(-20, 20, 3000).astype(dtype)])
    with np.errstate(all="ignore"):
        wide = "float64" if dtype == "float32" else "longdouble"
        exact = function(x.astype(wide), y.astype(wide))
    got = apply(lambda a, b: intrinsic(name, a, b), x, y)
    assert ulps(got, exact) <= {"pow": 1 if dtype == "float32" else 16, "fmod": 0.5, "copysign": 0}.get(name, 4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_next_to_multiples(dtype: str) -> None:
    """Quotients of every size, whole ones and those next to them, where rounding them would give one too many."""
    rng = np.random.default_rng(6)
    y = (rng.uniform(1, 2, 12000) * 2.0 ** rng.integers(-30, 30, 12000)).astype(dtype)
    with np.errstate(all="ignore"):
        x = (y * np.floor(2.0 ** rng.uniform(0, 45, 12000))).astype(dtype)
    x = np.where(rng.random(12000) < 0.5, x, np.nextafter(x, np.dtype(dtype).type(0)))
    x *= rng.choice([-1, 1], 12000).astype(dtype)
    for lanes in (slice(None), np.abs(x / y) < 2.0**39):  # one far quotient sends its neighbours another way
        got = apply(lambda a, b: intrinsic("fmod", a, b), x[lanes], y[lanes])
        np.testing.assert_array_equal(got, np.fmod(x[lanes], y[lanes]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nextafter(dtype: str) -> None:
    info = np.finfo(dtype)
    small = [info.tiny, info.smallest_subnormal, -info.smallest_subnormal]
    grid = np.array([0.0, -0.0, 1.0, -1.0, 2.0, math.inf, -math.inf, math.nan, info.max, -info.max, *small], dtype)
    x, y = np.repeat(grid, grid.size), np.tile(grid, grid.size)
    got = apply(lambda a, b: intrinsic("nextafter", a, b), x, y)
    with np.errstate(all="ignore"):
        expected = np.nextafter(x, y)
    np.testing.assert_array_equal(got, expected)
    known = ~np.isnan(got) & ((x != y) | (dtype != "float16"))  # between two zeros numpy gives x for float16, else y
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_floor_division(dtype: str) -> None:
    grid = np.array([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 2.5, -2.5, 7.0, 1e-3, 1e6, -0.3], dtype)
    x, y = np.repeat(grid, grid.size), np.tile(grid, grid.size)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(apply(E.FloorDiv, x, y), x // y)
        np.testing.assert_array_equal(apply(E.FloorMod, x, y), x % y)


def test_ldexp() -> None:
    x = np.array([1.5, -3.0, 1e-30, 1.0, math.inf, math.nan, 0.0, 1.0], "float32")
    n = np.array([3, -4, -20, 200, 5, 5, 10, -149], "int32")
    got = apply(lambda a, b: intrinsic("ldexp", a, b), x, n, result="float32")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, np.ldexp(x, n))


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_predicates(name: str) -> None:
    x = special("float32")
    got = apply(lambda v: intrinsic(name, v), x, result="bool")
    np.testing.assert_array_equal(got, getattr(np, name)(x))


@pytest.mark.parametrize(
    "spec", ["llvm", "llvm -mcpu=x86-64", "llvm -mcpu=x86-64-v4", "llvm -mtriple=aarch64-linux-gnu"]
)
def test_no_function_is_a_library_call(spec: str) -> None:
    machine = target(spec)
    for name in [*UNARY, "erf"]:
        for dtype in ("float32", "float64", "float16"):
            func = elementwise(lambda v, name=name: intrinsic(name, v), [dtype], dtype)
            symbols = elf_symbols(compile_text(emit_kernel(func, "kernel", machine, []).llvm_text, machine))
            assert symbols is not None and symbols[1] == set(), (name, dtype)


def test_every_target_gives_the_same_rounding() -> None:
    if not host().arch.startswith("x86"):
        pytest.skip("baseline x86 code")
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.0, -0.0, 1e30, 3.7, -3.7, math.inf, math.nan, 8388609.0], "float32")
    for name, function in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("round", np.rint)):
        kernel = Kernel(elementwise(lambda v, name=name: intrinsic(name, v), ["float32"], "float32"),
                        target=target("llvm -mcpu=x86-64"))  # fmt: skip
        out = np.empty_like(x)
        kernel(x, out)
        np.testing.assert_array_equal(out, function(x))
        np.testing.assert_array_equal(np.signbit(out), np.signbit(function(x)))
