"""``inspect.*``: what is known of a tensor while it runs, as scalars."""

from __future__ import annotations

import numpy as np
import pytest

import supple
from supple.base.errors import DiagnosticError, ExecutionError, NotSupportedError
from supple.interp.graph import Interpreter
from supple.ir.structural import assert_structural_equal
from supple.script import from_source
from supple.script import relax as R


def test_scalars_of_a_tensor() -> None:
    @R.function
    def main(x: R.Tensor(("n", 3, 4), "float16")):
        a = R.inspect.tensor_ndim(x)
        b = R.inspect.tensor_dtype_bits(x)
        c = R.inspect.tensor_dtype_lanes(x)
        d = R.inspect.tensor_dtype_code(x)
        g = R.inspect.tensor_shape_i(x, 0)
        h = R.inspect.tensor_stride_i(x, 0)
        k = R.inspect.tensor_stride_i(x, 2)
        return (a, b, c, d, g, h, k)

    assert [t.dtype for t in main.ret_ty.fields] == [
        "int32", "uint8", "uint16", "uint8", "int64", "int64", "int64",
    ]  # fmt: skip
    assert_structural_equal(from_source(main.script()), main)
    for rows in (0, 1, 5):
        x = np.zeros((rows, 3, 4), "float16")
        expected = [3, 16, 1, 2, rows, 12, 1]
        assert [int(v) for v in Interpreter(main).run("main", x)] == expected
        assert [int(v) for v in supple.compile(main)["main"](x)] == expected


def test_offsets_are_zero() -> None:
    @R.function
    def main(x: R.Tensor(("n",), "float16")):
        a = R.inspect.tensor_byte_offset(x)
        b = R.inspect.tensor_elem_offset(x)
        return (a, b)

    assert [t.dtype for t in main.ret_ty.fields] == ["uint64", "uint64"]
    assert [int(v) for v in Interpreter(main).run("main", np.zeros(6, "f2")[3:])] == [0, 0]
    assert [int(v) for v in supple.compile(main)["main"](np.zeros(5, "f2"))] == [0, 0]


def test_the_extent_is_a_size() -> None:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32")) -> R.Prim("int64"):
        return R.inspect.tensor_shape_i(x, 0)

    assert supple.compile(main)["main"](np.zeros((7, 2), "f4")) == 7


def test_unknown_tensors() -> None:
    @R.function
    def main(x: R.Tensor):
        a = R.inspect.tensor_ndim(x)
        b = R.inspect.tensor_dtype_bits(x)
        c = R.inspect.tensor_shape_i(x, 1)
        return (a, b, c)

    assert [int(v) for v in Interpreter(main).run("main", np.zeros((2, 3), "int8"))] == [2, 8, 3]
    with pytest.raises(ExecutionError, match="axis 1 of a tensor of 1 dimensions"):
        Interpreter(main).run("main", np.zeros(2, "int8"))
    with pytest.raises(NotSupportedError, match="tensor_ndim"):
        supple.compile(main)


@pytest.mark.parametrize(
    ("axis", "message"),
    [("2", "out of range"), ("-1", "counts from 0"), ("R.prim_value(1.5)", "must be an integer")],
)
def test_refusals(axis: str, message: str) -> None:
    with pytest.raises(DiagnosticError, match=message):
        from_source(
            f"""
from supple.script import relax as R


@R.function
def main(x: R.Tensor((4, 6), "float32")):
    y = R.inspect.tensor_shape_i(x, {axis})
    return y
"""
        )
