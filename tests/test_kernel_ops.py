"""Every sample of every operator as native code, scheduled and as written, against the operator's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_tools import Kernel
from test_ops_registry import CASES, ShapeOf, arrays_of, flat, ids, reference, tolerance, variables

from supple.build.te import TensorValue, as_placeholders, create_prim_func
from supple.ir.expr import IntImm, Var
from supple.ir.op import Op
from supple.ops.declare import Sample


@pytest.mark.parametrize("schedule", [True, False], ids=["scheduled", "written"])
@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize(("op", "sample"), [case for case in CASES if case[0].lower is not None], ids=ids)
def test_native_code_agrees_with_the_reference(op: Op, sample: Sample, symbolic: bool, schedule: bool) -> None:
    arrays = arrays_of(sample)
    symbols: dict[int, Var] | None = {} if symbolic and not any(isinstance(a, ShapeOf) for a in arrays) else None
    args: list[Any] = [
        [IntImm(v, "int64") for v in a.values] if isinstance(a, ShapeOf) else b
        for a, b in zip(arrays, variables(arrays, symbols), strict=True)
    ]
    call = op(*variables(arrays, symbols), **sample.attrs)
    expected = reference(op, sample, arrays, call.attrs)
    assert op.lower is not None
    tensors, inputs = as_placeholders(args)
    result = op.lower(*tensors, **call.attrs)
    func, _ = create_prim_func([t for t, _ in inputs], [result] if isinstance(result, TensorValue) else list(result))
    kernel = Kernel(func, schedule=schedule)
    out = np.empty_like(expected, order="C")
    kernel(*(np.array(a, order="C") for a in flat(arrays)), out)
    tolerance(expected.dtype, out, expected)
