"""``relax.distributed``: tensors that are spread over several devices, as types. Only re-exports."""

from supple.ir.types import (
    DeviceMesh,
    DTensorType,
    Placement,
    PlacementSpec,
)
from supple.script.relax import device_mesh

__all__ = [
    "DTensorType",
    "DeviceMesh",
    "Placement",
    "PlacementSpec",
    "device_mesh",
]
