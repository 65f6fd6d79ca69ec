"""The intrinsics' numpy meanings and dtypes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from supple.base import dtypes
from supple.ir.expr import FloatImm, IntImm, Select, Var
from supple.ir.intrinsics import (
    absolute,
    call_extern,
    infinity,
    intrinsic,
    max_value,
    min_value,
    numpy_meaning,
    reinterpret,
)
from supple.ir.op import OPS
from supple.ir.types import prim_type

ROWS = {name.partition(".")[2]: op.facts["intrinsic"] for name, op in OPS.items() if name.startswith("tirx.")}


def run(name, *operands):
    return ROWS[name].numpy(*operands)


def test_every_row_names_an_arity_and_a_dtype_rule():
    assert len(ROWS) > 50
    for name, row in ROWS.items():
        assert row.arity >= -1 and callable(row.numpy) and callable(row.dtype)
        assert OPS.get(f"tirx.{name}").doc.endswith(".")


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_bits(dtype):
    info = np.iinfo(dtype)
    values = np.array([0, 1, 2, 5, info.max, info.min, info.max - 3], dtype)
    width = values.dtype.itemsize * 8
    unsigned = [int(v) % (1 << width) for v in values]
    assert run("popcount", values).tolist() == [bin(u).count("1") for u in unsigned]
    assert run("clz", values).tolist() == [width - u.bit_length() for u in unsigned]
    for shift in (0, 1, width - 1, width, width + 7, 100):
        count = np.array(shift).astype(dtype)
        left = [(u << shift) % (1 << width) if shift < width else 0 for u in unsigned]
        assert [int(v) % (1 << width) for v in run("shift_left", values, count)] == left
        right = [int(v) >> min(shift, width) for v in values]
        assert run("shift_right", values, count).tolist() == right
        assert run("shift_left", values, count).dtype == values.dtype
    assert run("bitwise_not", values).tolist() == [int(~v) for v in values]


def test_negative_shifts_are_like_too_large_ones():
    values, count = np.array([8, -8], "int32"), np.array(-1, "int32")
    assert run("shift_left", values, count).tolist() == [0, 0]
    assert run("shift_right", values, count).tolist() == [0, -1]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats(dtype):
    x = np.array([-3.0, -0.5, 0.0, 0.5, 1.5, 2.5, 30.0], dtype)
    sigmoid = run("sigmoid", x)
    assert sigmoid.dtype == x.dtype
    np.testing.assert_allclose(
        sigmoid, 1 / (1 + np.exp(-x.astype("float64"))), rtol=1e-2 if dtype == "float16" else 1e-6
    )
    assert run("sigmoid", np.array([-np.inf, np.inf], dtype)).tolist() == [0.0, 1.0]
    assert run("round", x).tolist() == [-3.0, -0.0, 0.0, 0.0, 2.0, 2.0, 30.0]
    assert run("erf", x).dtype == x.dtype
    assert abs(float(run("erf", x)[3]) - math.erf(0.5)) < 1e-3
    assert run("rsqrt", np.array([4.0], dtype)).tolist() == [0.5]
    assert run("exp10", np.array([2.0], dtype)).dtype == x.dtype
    assert run("isnan", np.array([np.nan, 1], dtype)).tolist() == [True, False]


def test_result_dtypes():
    x, n = Var("x", prim_type("float16")), Var("n", prim_type("int64"))
    assert intrinsic("exp", x).dtype == "float16"
    assert intrinsic("isnan", x).dtype == "bool"
    assert intrinsic("clz", n).dtype == "int32"
    assert intrinsic("popcount", n).dtype == "int64"
    assert intrinsic("ldexp", x, 3).dtype == "float16"
    assert intrinsic("pow", x, 2.0).args[1].dtype == "float16"
    assert intrinsic("bitwise_and", n, 3).args[1].dtype == "int64"
    assert call_extern("call_extern", "float64", "f", x).dtype == "float64"
    for wrong in (lambda: intrinsic("exp", n), lambda: intrinsic("bitwise_and", x, x), lambda: intrinsic("isnan", n)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="expected a bool condition"):
        intrinsic("if_then_else", n, 1, 2)


def test_reinterpret():
    bits = reinterpret("int32", FloatImm(1.0))
    assert numpy_meaning(bits)(np.array([1.0], "float32")).tolist() == [0x3F800000]
    with pytest.raises(TypeError, match="different widths"):
        reinterpret("int64", FloatImm(1.0))


def test_limits():
    for dtype in ("int8", "int64", "uint16", "bool"):
        low, high = min_value(dtype), max_value(dtype)
        assert isinstance(low, IntImm) and isinstance(high, IntImm)
        if dtype != "bool":
            info = np.iinfo(dtypes.to_numpy(dtype))
            assert (low.value, high.value) == (info.min, info.max)
    assert max_value("float16").value == 65504.0 and min_value("float32").value == np.finfo("float32").min
    assert infinity("float32").value == math.inf
    with pytest.raises(TypeError):
        infinity("int32")


def test_absolute():
    assert isinstance(absolute(Var("n", prim_type("int32"))), Select)
    assert absolute(Var("x", prim_type("float32"))).op.name == "tirx.fabs"


def test_python_operators_build_intrinsics():
    n = Var("n", prim_type("int32"))
    x = Var("x", prim_type("float32"))
    assert (n & 1).op.name == "tirx.bitwise_and" and (1 | n).op.name == "tirx.bitwise_or"
    assert (n << 1).op.name == "tirx.shift_left" and (~n).op.name == "tirx.bitwise_not"
    assert (x**2.0).op.name == "tirx.pow" and (n ^ n).op.name == "tirx.bitwise_xor"
