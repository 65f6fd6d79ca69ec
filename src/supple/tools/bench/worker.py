"""One comparison in a process of its own: ``python -m supple.tools.bench.worker``, told by JSON on standard input.

The number of threads is in the environment before any library is imported. A line of JSON a case goes to standard
output: the times of everyone, or why somebody has none.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from supple.tools.bench import supple_runner
from supple.tools.bench.cases import Case, all_cases
from supple.tools.bench.measure import OURS, interleaved
from supple.tools.bench.numpy_ops import NumpyOps
from supple.tools.bench.peers import PEERS
from supple.tools.bench.roofline import measure


def _matches(result: Any, expected: Any, case: Case) -> str | None:
    """Why a result is wrong, or None."""
    found = result.float().numpy() if hasattr(result, "float") else np.asarray(result)
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    wide = found.astype("float64")
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    worst = float(np.abs(wide - expected).max(initial=0))
    return None if worst <= case.tolerance * scale else f"off by {worst:.3g}"


def _expected(case: Case, arrays: list[Any]) -> Any:
    wide = [a.astype("float64") if a.dtype.kind not in "iu" else a.astype("int64") for a in arrays]

    class Exact(NumpyOps):
        def matmul(self, a: Any, b: Any, out_dtype: str | None = None) -> Any:
            return a @ b

    return np.asarray(case.build(Exact(), *wide), "float64")


def compare(case: Case, names: list[str], threads: int, seconds: float) -> dict[str, Any]:
    """Everyone's times for one case; whoever has no right result is left out, with the reason."""
    arrays = case.arrays()
    expected = _expected(case, arrays)
    runs: dict[str, Any] = {}
    missing: dict[str, str] = {}
    makers: dict[str, Callable[[], Callable[[], Any]]] = {OURS: lambda: supple_runner.prepare(case, arrays)}
    for peer in PEERS:
        if peer.name in names:
            makers[peer.name] = partial(peer.prepare, case, arrays, threads)
    for name, make in makers.items():
        try:
            run = make()
            problem = _matches(run(), expected, case)
        except Exception as error:  # a library that cannot express or run the case has no time, and says why
            problem = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        if problem is None:
            runs[name] = run
        else:
            missing[name] = problem[:200]
    times = interleaved(runs, seconds, settle=threads > 1) if runs else {}
    return {
        "case": case.name,
        "group": case.group,
        "flops": case.flops,
        "bytes": case.bytes,
        "threads": threads,
        "times": {
            name: {"median": t.median, "lower_quartile": t.lower_quartile, "minimum": t.minimum,
                   "samples": len(t.samples)}
            for name, t in times.items()
        },
        "missing": missing,
    }  # fmt: skip


def main() -> None:
    """Measure what standard input asks for."""
    asked = json.load(sys.stdin)
    if hasattr(os, "sched_setaffinity"):  # not every library keeps to the number that it is told
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: asked["threads"]])
    print(json.dumps({"roofline": measure(asked["threads"])}), flush=True)
    cases = {case.name: case for case in all_cases()}
    for name in asked["cases"]:
        print(json.dumps(compare(cases[name], asked["peers"], asked["threads"], asked["seconds"])), flush=True)


if __name__ == "__main__":
    main()
