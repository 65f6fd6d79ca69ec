"""The machine's peaks, measured with loops of our own: fused multiply-adds in registers, and reading memory."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from supple.base.target import Target
from supple.driver import compile as compile_program
from supple.script import from_source

_FMA = """
from supple.script import tirx as T


@T.prim_func
def fma(a: T.Buffer(({width},), "float32"), out: T.Buffer(({rows}, {width}), "float32"), n: T.int64):
    acc = T.alloc_buffer(({rows}, {width}), "float32", scope="local")
    for r in T.unroll({rows}):
        for c in T.vectorized({width}):
            acc[r, c] = a[c]
    for i in range(n):
        for r in T.unroll({rows}):
            for c in T.vectorized({width}):
                acc[r, c] = T.fma(acc[r, c], T.float32(0.999), T.float32(0.001))
    for r in T.unroll({rows}):
        for c in T.vectorized({width}):
            out[r, c] = acc[r, c]
"""


_SUM = """
from supple.script import relax as R


@R.function
def main(x: R.Tensor(({count},), "float32")):
    with R.dataflow():
        y = R.sum(x)
        R.output(y)
    return y
"""

SIZES = tuple(1 << n for n in (15, 17, 19, 21, 23, 25, 27))
"""Working sets, in bytes, from the first-level cache to memory."""


def measure(threads: int) -> dict[str, Any]:
    """The peaks of ``threads`` cores, as JSON: ``flops`` in float32 FLOP/s, ``bandwidth`` as pairs of a working set in
    bytes and the bytes/s at which one core reads it."""
    return {"flops": _peak_flops() * threads, "bandwidth": [(size, _bandwidth(size)) for size in SIZES]}


def _peak_flops() -> float:
    width = Target.parse("llvm").vector_bits // 32
    rows = 12
    run = compile_program(from_source(_FMA.format(width=width, rows=rows)))["fma"]
    a, out, count = np.ones(width, "f4"), np.zeros((rows, width), "f4"), 200_000
    best = min(_timed(lambda: run(a, out, count)) for _ in range(20))
    return 2.0 * rows * width * count / best


def _bandwidth(size: int) -> float:
    """How fast an array is read: summed by our own code, since numpy's call costs more than a small array."""
    data = np.ones(size // 4, "float32")
    run = compile_program(from_source(_SUM.format(count=size // 4)))["main"]
    calls = max(1, (1 << 24) // size)

    def several() -> None:
        for _ in range(calls):
            run(data)

    best = min(_timed(several) for _ in range(10))
    return size * calls / best


def _timed(run: Any) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
