"""The demo: classifies the Fashion-MNIST test images with two compiled modules and compares them with numpy.

Run it with ``make demo``. It prints accuracy, agreement with numpy, time per call, and the programs before and after
lowering (written to ``out/``).
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: both sides get one thread
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("SUPPLE_NUM_THREADS", "1")

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlp
import numpy as np
from fashion_mnist import CLASSES, DATA, load
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from safetensors.numpy import load_file

import supple

OUT = Path("out")
SIZES = (1, 64, 1024)
Array = Any


def microseconds(ours: Callable[[], object], theirs: Callable[[], object], seconds: float = 0.8) -> tuple[float, float]:
    """Medians of interleaved calls, in microseconds."""
    ours(), theirs()
    a: list[float] = []
    b: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(a) < 5:
        for function, times in ((ours, a), (theirs, b)):
            start = time.perf_counter_ns()
            function()
            times.append((time.perf_counter_ns() - start) / 1000)
    return statistics.median(a), statistics.median(b)


def plain_table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE)


class Case:
    """One module with its weights, its numpy, and its compiled form."""

    def __init__(self, title: str, module: Any, entry: str, hidden: int) -> None:
        self.title = title
        self.module = module if isinstance(module, supple.IRModule) else supple.IRModule.from_expr(module)
        weights = load_file(DATA / f"mlp_{hidden}.safetensors")
        self.weights = [weights[name] for name in ("w0", "b0", "w1", "b1")]
        start = time.perf_counter()
        self.executable = supple.compile(self.module, target="llvm")
        self.compile_seconds = time.perf_counter() - start
        self.vm = supple.relax.VirtualMachine(self.executable, supple.cpu())
        self.entry = self.vm[entry]

    def compiled(self, x: Array) -> Array:
        return self.entry(x, *self.weights)

    def numpy(self, x: Array) -> Array:
        return mlp.numpy_mlp(x, *self.weights)


def main() -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=110)
    OUT.mkdir(exist_ok=True)
    with Progress(console=console, transient=True) as progress:
        steps = progress.add_task("loading images", total=3 + 2 * len(SIZES))
        images, labels = load()
        progress.update(steps, advance=1, description="compiling the graph of operators (128 hidden units)")
        cases = [Case("operators, 128 hidden", mlp.relax_mlp, "relax_mlp", 128)]
        progress.update(steps, advance=1, description="compiling the graph of loop functions (256 hidden units)")
        cases.append(Case("loop functions, 256 hidden", mlp.Module, "main", 256))
        progress.update(steps, advance=1, description="classifying")
        table = plain_table("Fashion-MNIST, 10,000 test images")
        for column in ("module", "accuracy", "numpy's", "same class", "largest difference", "compiled in"):
            table.add_column(column, justify="left" if column == "module" else "right", no_wrap=True)
        for case in cases:
            ours, theirs = case.compiled(images), case.numpy(images)
            same = int((ours.argmax(1) == theirs.argmax(1)).sum())
            table.add_row(
                case.title,
                f"{(ours.argmax(1) == labels).mean():.2%}",
                f"{(theirs.argmax(1) == labels).mean():.2%}",
                f"{same:,} of {len(labels):,}",
                f"{np.abs(ours - theirs).max():.1e}",
                f"{case.compile_seconds:.2f} s",
            )
        speed = plain_table("Microseconds per call, one thread each (medians of interleaved calls)")
        for column in ("module", "n", "Supple", "numpy", "numpy / Supple"):
            speed.add_column(column, justify="left" if column == "module" else "right", no_wrap=True)
        for case in cases:
            for n in SIZES:
                progress.update(steps, advance=1, description=f"timing {case.title}, n = {n}")
                x = np.ascontiguousarray(images[:n])
                a, b = microseconds(lambda x=x, c=case: c.compiled(x), lambda x=x, c=case: c.numpy(x))
                speed.add_row(case.title, str(n), f"{a:,.1f}", f"{b:,.1f}", f"{b / a:.2f}")
    console.print(table)
    console.print(speed)
    first = int(cases[1].compiled(images[:1]).argmax())
    console.print(f"The first image: {CLASSES[first]} (labelled {CLASSES[int(labels[0])]}).")
    for name, case in zip(("operators", "loops"), cases, strict=True):
        (OUT / f"{name}_before.py").write_text(case.module.script())
        (OUT / f"{name}_after.py").write_text(supple.lower(case.module).script())
    console.print(
        f"\nThe programs before and after lowering are in {OUT}/: operators_before.py, operators_after.py, ..."
    )
    console.print("The graph of operators as Supple prints it:\n")
    console.print(cases[0].module.script(), highlight=False, markup=False)
    console.print("Where to look next: README.md, examples/mlp.py (the programs), docs/architecture.md (how it works).")


if __name__ == "__main__":
    main()
