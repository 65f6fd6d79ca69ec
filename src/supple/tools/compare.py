"""Is the compiled code right? Runs a function interpreted and natively, and finds the pass that changes a result.

::

    report = compare(mod, "main", x, w)
    print(report)            # every stage, its largest difference from the module as written
    assert report.agrees
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.target import Target
from supple.base.target import target as make_target
from supple.driver import PIPELINE, compile
from supple.interp.graph import Interpreter
from supple.ir.graph import Function
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.runtime.virtual_machine import VirtualMachine


@dataclass(frozen=True)
class Stage:
    """One form of the program: the largest relative difference of its results from those of the module as written."""

    name: str
    difference: float
    agrees: bool


@dataclass(frozen=True)
class Report:
    """All stages in order; ``culprit`` is the first that does not agree."""

    stages: tuple[Stage, ...]

    @property
    def culprit(self) -> Stage | None:
        return next((s for s in self.stages if not s.agrees), None)

    @property
    def agrees(self) -> bool:
        return self.culprit is None

    def __str__(self) -> str:
        width = max(len(s.name) for s in self.stages)
        return "\n".join(
            f"{s.name:{width}}  {s.difference:9.2e}  {'agrees' if s.agrees else 'DIFFERS'}" for s in self.stages
        )


def compare(
    mod: IRModule | Function | PrimFunc,
    entry: str,
    *args: Any,
    target: str | Target = "llvm",
    rtol: float = 1e-4,
) -> Report:
    """Run ``entry`` on the arguments: the module as written in the interpreter (the reference), after every pass in the
    interpreter, and compiled. A stage agrees when every result has the reference's shape and dtype and is within
    ``rtol`` of its largest magnitude (exactly equal, for integers and bools; NaN where it has NaN).

    Use small sizes: scheduled loops are interpreted one iteration at a time. Raises what the interpreter or the
    compiler raises.
    """
    module = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
    machine = make_target(target)
    expected = Interpreter(module).run(entry, *args)
    stages: list[Stage] = []
    current = module
    for step in PIPELINE:
        current = step.run(current, machine)
        stages.append(_stage(step.name, Interpreter(current).run(entry, *args), expected, rtol))
    compiled = VirtualMachine(compile(module, machine, results="numpy"))[entry](*args)
    stages.append(_stage("native", compiled, expected, rtol))
    return Report(tuple(stages))


def _stage(name: str, actual: Any, expected: Any, rtol: float) -> Stage:
    difference = _difference(actual, expected)
    return Stage(name, difference, difference <= rtol)


def _difference(actual: Any, expected: Any) -> float:
    """The largest difference over the largest magnitude; infinite when shapes, dtypes or non-finite values differ."""
    if isinstance(expected, tuple):
        if not isinstance(actual, tuple) or len(actual) != len(expected):
            return float("inf")
        return max((_difference(a, e) for a, e in zip(actual, expected, strict=True)), default=0.0)
    if isinstance(expected, str):
        return 0.0 if actual == expected else float("inf")
    a, e = np.asarray(actual), np.asarray(expected)
    if a.shape != e.shape or a.dtype != e.dtype:
        return float("inf")
    if not dtypes.is_float_array(a):
        return 0.0 if np.array_equal(a, e) else float("inf")
    a, e = dtypes.widened(a), dtypes.widened(e)
    finite = np.isfinite(e)
    if not np.array_equal(a[~finite], e[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return float("inf")
    wide_a, wide_e = a[finite].astype("float64"), e[finite].astype("float64")
    scale = float(np.max(np.abs(wide_e), initial=0.0)) or 1.0
    return float(np.max(np.abs(wide_a - wide_e), initial=0.0)) / scale
