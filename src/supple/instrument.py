"""Watching passes (``tvm.instrument``): objects for ``PassContext(instruments=[...])``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from supple.ir.module import IRModule
from supple.passes.manager import PassInfo


class PassInstrument:
    """The base of instruments; override what should be told. ``should_run`` decides whether a pass runs."""

    def enter_pass_ctx(self) -> None:
        """The context begins."""

    def exit_pass_ctx(self) -> None:
        """The context ends."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Whether the pass runs."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """A pass is about to run."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """A pass has run; ``mod`` is its result."""


def pass_instrument(pi_cls: Any = None) -> Any:
    """Make an instrument of a class that has some of `PassInstrument`'s methods (a decorator)."""

    def make(given: type) -> type:
        if not isinstance(given, type):
            raise TypeError(f"pass_instrument: expected a class, got {given!r}")
        return type(given.__name__, (given, PassInstrument), {"__doc__": given.__doc__, "__module__": given.__module__})

    return make if pi_cls is None else make(pi_cls)


@dataclass(slots=True)
class _Timed:
    name: str
    began: float
    seconds: float = 0.0
    inner: list[_Timed] = field(default_factory=list)


class PassTimingInstrument(PassInstrument):
    """How long each pass takes; `render` gives a line for each, passes inside of others indented below them."""

    def __init__(self) -> None:
        self._finished: list[_Timed] = []
        self._running: list[_Timed] = []

    def exit_pass_ctx(self) -> None:
        """Times are for `render` inside the context."""
        self._finished, self._running = [], []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._running.append(_Timed(info.name, time.perf_counter()))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        done = self._running.pop()
        done.seconds = time.perf_counter() - done.began
        (self._running[-1].inner if self._running else self._finished).append(done)

    def render(self) -> str:
        """``name: total [without the passes inside] (share of all; share of the pass around)``, a line a pass. Raises
        ``RuntimeError`` inside of a pass, and after one that raised: it took no time that could be told."""
        if self._running:
            names = ", ".join(t.name for t in self._running)
            raise RuntimeError(f"PassTimingInstrument.render: passes have begun and not ended: {names}")
        total = sum(t.seconds for t in self._finished)
        lines: list[str] = []
        stack = [(t, 0, total) for t in reversed(self._finished)]
        while stack:
            timed, depth, around = stack.pop()
            own = timed.seconds - sum(t.seconds for t in timed.inner)
            shares = [100.0 * timed.seconds / whole if whole else 0.0 for whole in (total, around)]
            times = f"{timed.seconds * 1e6:.0f}us [{own * 1e6:.0f}us]"
            tabs = "\t" * depth
            lines.append(f"{tabs}{timed.name}: {times} ({shares[0]:.2f}%; {shares[1]:.2f}%)\n")
            stack.extend((t, depth + 1, timed.seconds) for t in reversed(timed.inner))
        return "".join(lines)


class PrintBeforeAll(PassInstrument):
    """Prints the module before each pass."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        print(f"Before Running Pass: {info}")
        print(mod)


class PrintAfterAll(PassInstrument):
    """Prints the module after each pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        print(f"After Running Pass: {info}")
        print(mod)


__all__ = ["PassInstrument", "PassTimingInstrument", "PrintAfterAll", "PrintBeforeAll", "pass_instrument"]


class PassPrintingInstrument(PassInstrument):
    """Prints the module before the passes, and after the passes, that are named."""

    def __init__(self, print_before_pass_names: Sequence[str], print_after_pass_names: Sequence[str]) -> None:
        self.before, self.after = list(print_before_pass_names), list(print_after_pass_names)

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Print the module, if the pass is one of those."""
        if info.name in self.before:
            print(f"Print IR before: {info.name}\n{mod}\n")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Print the module, if the pass is one of those."""
        if info.name in self.after:
            print(f"Print IR after: {info.name}\n{mod}\n")


class DumpIR(PassInstrument):
    """Writes the module after each pass into a directory, as ``000_<pass>.py``; ``refresh`` empties it of such files
    before the first."""

    def __init__(self, dump_dir: Path | str, refresh: bool = False) -> None:
        self.dump_dir = Path(dump_dir)
        self.counter = 0
        if refresh and self.dump_dir.is_dir():
            for file in self.dump_dir.glob("[0-9][0-9][0-9]_*.py"):
                file.unlink()

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Write the module."""
        self.dump_dir.mkdir(parents=True, exist_ok=True)
        name = "".join(c if c.isalnum() or c in "._-" else "_" for c in info.name)
        (self.dump_dir / f"{self.counter:03d}_{name}.py").write_text(mod.script() + "\n")
        self.counter += 1
