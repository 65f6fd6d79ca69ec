"""Every sample of every operator as native code, scheduled and as written, against the operator's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_tools import Kernel
from test_ops_registry import (
    CASES,
    ShapeOf,
    arrays_of,
    flat,
    ids,
    prepared,
    reference,
    symbol_table,
    tolerance,
    variables,
)

from supple.build.te import TensorValue, as_placeholders, create_prim_func
from supple.ir.expr import IntImm
from supple.ir.op import Op
from supple.ops.declare import Sample


@pytest.mark.parametrize("form", ["static-scheduled", "symbolic-scheduled", "symbolic-written"])
@pytest.mark.parametrize(("op", "sample"), [case for case in CASES if case[0].lower is not None], ids=ids)
def test_native_code_agrees_with_the_reference(op: Op, sample: Sample, form: str) -> None:
    sample = prepared(op, sample)
    arrays = arrays_of(sample)
    symbols = symbol_table(sample) if form.startswith("symbolic") else None
    args = variables(arrays, symbols)
    call = op(*args, **sample.attrs)
    expected = reference(op, sample, arrays, call.attrs)
    lowered: list[Any] = [
        [IntImm(v, "int64") for v in a.values] if isinstance(a, ShapeOf) else b
        for a, b in zip(arrays, args, strict=True)
    ]
    assert op.lower is not None
    tensors, inputs = as_placeholders(lowered)
    result = op.lower(*tensors, **call.attrs)
    func, _ = create_prim_func([t for t, _ in inputs], [result] if isinstance(result, TensorValue) else list(result))
    kernel = Kernel(func, schedule=form.endswith("scheduled"))
    outputs = [np.empty_like(e, order="C") for e in expected]
    kernel(*(np.array(a, order="C") for a in flat(arrays)), *outputs)
    for actual, value in zip(outputs, expected, strict=True):
        tolerance(value.dtype, actual, value)
