"""Reductions over windows that move along the kept axis: convolutions, in tiles of known columns and several places."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_tools import Kernel

from supple.base.target import target
from supple.interp.loops import run_prim_func
from supple.ir.expr import Var
from supple.ir.loop import PrimFunc, buffer_type
from supple.schedule.default import schedule_func
from supple.script import from_source
from supple.sym.simplify import evaluate

HEAD = "from supple.script import tirx as T\n\n"
CHANNELS_FIRST = ("({c}, {h} + {kh} - 1, {w} + {kw} - 1)", "({o}, {c}, {kh}, {kw})", "({o}, {h}, {w})",
                  "X[vc, vi + vp, vj + vq] * W[vo, vc, vp, vq]", "vo, vi, vj")  # fmt: skip
CHANNELS_LAST = ("({h} + {kh} - 1, {w} + {kw} - 1, {c})", "({kh}, {kw}, {c}, {o})", "({h}, {w}, {o})",
                 "X[vi + vp, vj + vq, vc] * W[vp, vq, vc, vo]", "vi, vj, vo")  # fmt: skip
DEPTHWISE = ("({o}, {h} + {kh} - 1, {w} + {kw} - 1)", "({o}, {kh}, {kw}, {c})", "({o}, {h}, {w})",
             "X[vo, vi + vp, vj + vq] * W[vo, vp, vq, vc]", "vo, vi, vj")  # fmt: skip
STRIDED = ("({c}, 2 * {h} + {kh}, 2 * {w} + {kw})", "({o}, {c}, {kh}, {kw})", "({o}, {h}, {w})",
           "X[vc, 2 * vi + vp, 2 * vj + vq] * W[vo, vc, vp, vq]", "vo, vi, vj")  # fmt: skip
FORMS = {"first": CHANNELS_FIRST, "last": CHANNELS_LAST, "depthwise": DEPTHWISE, "strided": STRIDED}
SIZES = [  # output channels, height, width, channels, window
    (1, 1, 8, 1, 1, 3),
    (5, 2, 9, 3, 3, 3),
    (12, 1, 28, 2, 3, 1),
    (13, 2, 33, 4, 1, 1),
    (24, 3, 16, 1, 2, 2),
    (8, 2, 7, 3, 2, 3),
    (3, 1, 65, 2, 1, 2),
]


def convolution(form: str, sizes: tuple[int, ...], init: bool, dtype: str) -> PrimFunc:
    x, w, y, value, at = (text.format(**dict(zip(["o", "h", "w", "c", "kh", "kw"], sizes, strict=True)))
                          for text in FORMS[form])  # fmt: skip
    o, h, width, c, kh, kw = sizes
    start = f"with T.init(): Y[{at}] = T.{dtype}(0)" if init else "pass"
    func = from_source(
        HEAD
        + f"""
@T.prim_func(private=True)
def f(x: T.handle, w: T.handle, y: T.handle):
    X = T.match_buffer(x, {x}, "{dtype}")
    W = T.match_buffer(w, {w}, "{dtype}")
    Y = T.match_buffer(y, {y}, "{dtype}")
    for o, i, j, c, p, q in T.grid({o}, {h}, {width}, {c}, {kh}, {kw}):
        with T.sblock("y"):
            vo, vi, vj, vc, vp, vq = T.axis.remap("SSSRRR", [o, i, j, c, p, q])
            {start}
            Y[{at}] = Y[{at}] + {value}
"""
    )
    assert isinstance(func, PrimFunc)
    return func.with_attr("tirx.noalias", True)


def shape_of(buffer: Var) -> tuple[int, ...]:
    return tuple(evaluate(extent, {}) for extent in buffer_type(buffer).shape)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", SIZES)
def test_convolutions(form: str, sizes: tuple[int, ...]) -> None:
    """Whole numbers, so that every order of sums gives the same bits."""
    for init, dtype in ((True, "float32"), (False, "float32"), (True, "int32")):
        func = convolution(form, sizes, init, dtype)
        kernel = Kernel(func)
        rng = np.random.default_rng(sum(sizes))
        x, w, start = (rng.integers(-9, 9, shape_of(p)).astype(dtype) for p in func.params)
        got, expected = start.copy(), start.copy()
        kernel(x, w, got)
        run_prim_func(func, [x, w, expected])
        np.testing.assert_array_equal(got, expected)


def test_output_channels_share_what_is_read() -> None:
    """Of 12 vectors of sums, three are of columns and four of channels."""
    func = convolution("first", (8, 2, 24, 3, 3, 3), True, "float32")
    text = schedule_func(func, target("llvm -mcpu=haswell")).script()
    assert "acc = T.alloc_buffer((T.int64(4), T.int64(24))" in text
    assert "T.vectorized(T.int64(8))" in text


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "bool"])
def test_every_second_element(dtype: str) -> None:
    """Read from the first to the last of them and no further: the buffer ends there."""
    func = from_source(
        HEAD
        + f"""
@T.prim_func(private=True)
def f(x: T.handle, y: T.handle):
    N = T.int64()
    X = T.match_buffer(x, (2 * N,), "{dtype}")
    Y = T.match_buffer(y, (N,), "{dtype}")
    for j in range(N):
        with T.sblock("y"):
            vj = T.axis.spatial(N, j)
            Y[vj] = X[vj * 2 + 1]
"""
    )
    kernel = Kernel(func.with_attr("tirx.noalias", True))
    for n in (0, 1, 7, 8, 33, 100):
        x = np.random.default_rng(n).integers(0, 2 if dtype == "bool" else 100, 2 * n).astype(dtype)
        y = np.zeros(n, dtype)
        kernel(x, y)
        np.testing.assert_array_equal(y, x[1::2])
