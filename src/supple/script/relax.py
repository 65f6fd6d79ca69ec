"""The names of ``R``: ``from supple.script import relax as R``."""

from __future__ import annotations

__all__: list[str] = []
