"""The older name of `supple.script.tirx`."""

from __future__ import annotations

from typing import Any

from supple.script import tirx

__all__ = list(tirx.__all__)


def __getattr__(name: str) -> Any:
    return getattr(tirx, name)
