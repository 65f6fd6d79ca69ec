"""Every sample of every operator as native code, scheduled and as written, against the operator's reference."""

from __future__ import annotations

import numpy as np
from kernel_tools import Kernel
from test_ops_registry import (
    arrays_of,
    flat,
    forms,
    lowered,
    prepared,
    reference,
    symbol_table,
    tolerance,
    variables,
)

from supple.ir.op import Op
from supple.ops.declare import Sample


@forms("static-scheduled", "symbolic-scheduled", "symbolic-written")
def test_native_code_agrees_with_the_reference(op: Op, sample: Sample, form: str) -> None:
    sample = prepared(op, sample)
    arrays = arrays_of(sample)
    symbols = symbol_table(sample) if form.startswith("symbolic") else None
    args = variables(arrays, symbols)
    call = op(*args, **sample.attrs)
    expected = reference(op, sample, arrays, call.attrs)
    kernel = Kernel(lowered(op, args, call.attrs, arrays), schedule=form.endswith("scheduled"))
    outputs = [np.empty_like(e, order="C") for e in expected]
    kernel(*(np.array(a, order="C") for a in flat(arrays)), *outputs)
    for actual, value in zip(outputs, expected, strict=True):
        tolerance(value.dtype, actual, value)
