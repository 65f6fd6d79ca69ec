"""The page's network against numpy, one thread each, and how the rate holds when the module is written differently.

::

    python benchmarks/page.py

Prints, for both forms of the network, the median time of interleaved calls and numpy's over ours for several n; then
the rate (GFLOP/s) of the page's module and of variants: functions, buffers and blocks renamed; loops reordered
j, i, k; sizes 250 and 781 instead of 256 and 784.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["SUPPLE_NUM_THREADS"] = "1"

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import mlp

import supple
from supple.tools.bench.measure import interleaved

SOURCE = (Path(mlp.__file__).read_text()).partition("@I.ir_module")
MODULE = "from supple.script import ir as I, relax as R, tirx as T\n\n" + SOURCE[1] + SOURCE[2]


def medians(runs: list[Callable[[], object]], seconds: float) -> list[float]:
    """The median of each function's times in microseconds; they are called in turn."""
    found = interleaved({str(i): run for i, run in enumerate(runs)}, seconds, settle=False)
    return [times.median * 1e6 for times in found.values()]


def weights(inputs: int, hidden: int) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = ((inputs, hidden), (hidden,), (hidden, 10), (10,))
    return [rng.standard_normal(s).astype("float32") for s in shapes]


def entry(program: Any) -> Any:
    return supple.relax.VirtualMachine(supple.compile(program), supple.cpu())["main"]


def renamed(text: str) -> str:
    """Other names for functions, buffers and blocks."""
    for old, new in (("linear", "affine"), ("relu", "ramp"), ('"Y"', '"acc"'), ('"Z"', '"out"')):
        text = text.replace(old, new)
    for old, new in (("X", "Input"), ("W", "Kernel"), ("B", "Offset"), ("Z", "Result"), ("Y", "Partial")):
        text = re.sub(rf"\b{old}\b", new, text)
    return text


VARIANTS: dict[str, tuple[Callable[[str], str], int, int]] = {
    "the page's module": (lambda t: t, 784, 256),
    "renamed": (renamed, 784, 256),
    "loops j, i, k": (
        lambda t: t.replace("for i, j, k in T.grid(M, N, K)", "for j, i, k in T.grid(N, M, K)"),
        784,
        256,
    ),
    "sizes 781 and 250": (lambda t: t.replace("784", "781").replace("256", "250"), 781, 250),
    "all three": (
        lambda t: (
            renamed(t.replace("for i, j, k in T.grid(M, N, K)", "for j, i, k in T.grid(N, M, K)"))
            .replace("784", "781")
            .replace("256", "250")
        ),
        781,
        250,
    ),
}


def main() -> None:
    rng = np.random.default_rng(1)
    for title, program, hidden in (("operators", mlp.relax_mlp, 128), ("loop functions", mlp.Module, 256)):
        run, w = entry(program), weights(784, hidden)
        for n in (1, 16, 64, 256, 1024, 4096):
            x = rng.standard_normal((n, 784)).astype("float32")
            ours, theirs = medians([partial(run, x, *w), partial(mlp.numpy_mlp, x, *w)], 0.5)
            print(f"{title:16} n = {n:5}: {ours:10.1f} us, numpy {theirs:10.1f} us, numpy / ours {theirs / ours:5.2f}")
    runs, flops = [], []
    for edit, inputs, hidden in VARIANTS.values():
        run, w = entry(supple.script.from_source(edit(MODULE))), weights(inputs, hidden)
        x = rng.standard_normal((1024, inputs)).astype("float32")
        runs.append(partial(run, x, *w))
        flops.append(2 * 1024 * (inputs * hidden + hidden * 10))
    rates = [f / t / 1000 for f, t in zip(flops, medians(runs, 6.0 / len(runs)), strict=True)]
    for name, rate in zip(VARIANTS, rates, strict=True):
        print(f"{name:20} {rate:6.1f} GFLOP/s, {rate / rates[0]:5.1%} of the page's")


if __name__ == "__main__":
    main()
