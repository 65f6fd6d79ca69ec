"""float16, bfloat16 and the float8 kinds in host code: float32 values that are rounded to the dtype.

A number of such a dtype is held as a ``float`` that the dtype has exactly. What makes one rounds it, by functions of
the host module that are written here, in integer arithmetic (the same as kernels use where the target has no other).
"""

from __future__ import annotations

import functools

from supple.base import dtypes
from supple.base.target import Target
from supple.codegen.kernel_builder import Builder, Value, llvm_type
from supple.codegen.kernel_float import resize

_PLAIN = Target.parse("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64")
"""A target without instructions for float16, so that the functions are integer code."""


def rounding(dtype: str, source: str) -> tuple[str, str]:
    """Name and text of a function from ``source`` (float32 or float64) to the nearest value of the dtype, a float."""
    name = f"@supple.round.{source}.{dtype}"
    return name, _function(name, source, (dtype, "float32"))


def code(dtype: str) -> tuple[str, str]:
    """Name and text of a function from a value of the dtype, a float, to what kernels take."""
    name = f"@supple.code.{dtype}"
    return name, _function(name, "float32", (dtype,))


@functools.cache
def _function(name: str, source: str, steps: tuple[str, ...]) -> str:
    b = Builder()
    value = Value("%value", source, 0)
    for step in steps:
        value = resize(b, _PLAIN, value, step)
    b.emit(f"ret {llvm_type(value.dtype)} {value.ref}")
    declared = "".join(f"{text}\n" for text in sorted(b.declarations))
    head = f"define internal {llvm_type(value.dtype)} {name}({llvm_type(source)} %value)"
    return f"{declared}{head} {{\n{b.body()}\n}}"


def nearest(value: float, dtype: str) -> float:
    """The nearest value of the dtype."""
    return float(dtypes.convert(value, dtype))
