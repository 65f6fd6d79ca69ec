"""``relax.global_info``. Only re-exports."""

from supple.ir.types import (
    VDevice,
)

__all__ = [
    "VDevice",
]
