"""Interleaved timing: every contestant in turn, many times, so that the machine's moods meet all of them."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OURS = "supple"


def environment(threads: int) -> dict[str, str]:
    """The variables that hold every library to a number of threads."""
    names = ("SUPPLE_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS")
    eigen = "--xla_cpu_multi_thread_eigen=true" if threads > 1 else "--xla_cpu_multi_thread_eigen=false"
    return {**os.environ, **dict.fromkeys(names, str(threads)), "XLA_FLAGS": eigen, "JAX_PLATFORMS": "cpu"}


@dataclass(frozen=True)
class Times:
    """Seconds a call takes: ``samples`` of a contestant, each the mean of a few calls in a row."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def lower_quartile(self) -> float:
        return statistics.quantiles(self.samples, n=4)[0] if len(self.samples) > 1 else self.samples[0]

    @property
    def minimum(self) -> float:
        return min(self.samples)


SETTLE = 0.15
"""Seconds before a sample where there are several threads: those of OpenBLAS spin for 0.11 s after their work, those of
ONNX Runtime for 0.06 s, and take half of a processor from whoever comes next."""

BATCH = 0.001  # seconds of calls behind one sample, at least one call
FEWEST = 7


def interleaved(runs: Mapping[str, Callable[[], object]], seconds: float, settle: bool) -> dict[str, Times]:
    """Times of every contestant, in turn until ``seconds`` have passed for each of them.

    The order of the turns is another one every time, at random: whoever comes next finds in the caches what the one
    before left there, which is the same operand for some and its own copy for others.

    With ``settle`` a pause and an untimed call come before each sample, since threads of the contestant before may
    still be spinning.
    """
    calls = {name: _calls(run) for name, run in runs.items()}
    samples: dict[str, list[float]] = {name: [] for name in runs}
    end = time.perf_counter() + seconds * len(runs)
    turns, order = list(runs.items()), random.Random(0)
    while time.perf_counter() < end or any(len(s) < FEWEST for s in samples.values()):
        order.shuffle(turns)
        for name, run in turns:
            if settle:
                time.sleep(SETTLE)
                run()
            samples[name].append(_sample(run, calls[name]))
    return {name: Times(tuple(found)) for name, found in samples.items()}


def _calls(run: Callable[[], object]) -> int:
    """How many calls make a sample long enough to be timed."""
    run()
    return max(1, min(1000, int(BATCH / max(_sample(run, 1), 1e-9))))


def _sample(run: Callable[[], object], calls: int) -> float:
    repeat = range(calls)
    start = time.perf_counter()
    for _ in repeat:
        run()
    return (time.perf_counter() - start) / calls


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive numbers."""
    return statistics.geometric_mean(values)


def least_seconds(peaks: dict[str, Any], flops: float, moved: float) -> float:
    """The least time of a computation: its arithmetic at the peak, or its operands at the speed of the cache that
    holds them, whichever is longer."""
    speed = next((speed for size, speed in peaks["bandwidth"] if moved <= size), peaks["bandwidth"][-1][1])
    return float(max(flops / peaks["flops"], moved / speed))
