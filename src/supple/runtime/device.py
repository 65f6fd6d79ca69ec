"""Devices. Compiled code runs on the CPU of this machine; the class exists so that scripts say where."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Device:
    """A device by DLPack's type code (1 is the CPU) and index."""

    device_type: int = 1
    index: int = 0

    @property
    def type(self) -> str:
        return "cpu"

    @property
    def exist(self) -> bool:
        """Whether the device is there."""
        return self.index == 0

    def __str__(self) -> str:
        return f"cpu({self.index})"


def cpu(index: int = 0) -> Device:
    """The CPU; ``index`` must be 0."""
    if index != 0:
        raise ValueError(f"there is one CPU device, cpu(0); got index {index}")
    return Device(1, index)


def device(name: str, index: int = 0) -> Device:
    """The device of that name: ``"cpu"`` or ``"llvm"``."""
    if name not in ("cpu", "llvm"):
        raise ValueError(f"device {name!r} is not supported: only 'cpu' is")
    return cpu(index)
