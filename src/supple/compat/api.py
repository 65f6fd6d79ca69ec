"""Functions of the alias that differ from Supple's own in a default."""

from __future__ import annotations

from typing import Any

from supple import driver


def compile(mod: Any, target: Any = "llvm", **options: Any) -> Any:
    """`supple.compile` with results of `supple.runtime.Tensor`, as scripts written for TVM expect."""
    return driver.compile(mod, target, results="tensor", **options)
