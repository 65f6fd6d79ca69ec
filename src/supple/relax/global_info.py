"""``relax.global_info``. Only re-exports."""

from supple.ir.types import (
    DummyGlobalInfo,
    GlobalInfo,
    VDevice,
)

__all__ = [
    "DummyGlobalInfo",
    "GlobalInfo",
    "VDevice",
]
