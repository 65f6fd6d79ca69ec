"""Kinds of devices by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DEVICE_TYPES: Mapping[str, int] = MappingProxyType(
    {
        "cpu": 1, "cuda": 2, "opencl": 4, "vulkan": 7, "metal": 8, "vpi": 9, "rocm": 10, "ext_dev": 12, "webgpu": 15,
        "hexagon": 16,
    }
)  # fmt: skip
"""DLPack's numbers of kinds of devices."""
