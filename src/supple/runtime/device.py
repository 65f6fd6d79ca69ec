"""Devices. Compiled code runs on the CPU of this machine; others have names, and are refused where they are used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from supple.base.device_types import DEVICE_TYPES
from supple.base.errors import NotSupportedError
from supple.base.registry import did_you_mean

_NAMES = {number: name for name, number in DEVICE_TYPES.items()}


@dataclass(frozen=True, slots=True)
class Device:
    """A device by DLPack's type code (1 is the CPU) and index."""

    device_type: int = 1
    index: int = 0

    @property
    def type(self) -> str:
        """The name of its kind: ``"cpu"``, ``"cuda"``..."""
        return _NAMES.get(self.device_type, f"device type {self.device_type}")

    @property
    def exist(self) -> bool:
        """Whether the device is there: only the CPU is."""
        return self.device_type == DEVICE_TYPES["cpu"] and self.index == 0

    def dlpack_device_type(self) -> int:
        """DLPack's number of its kind."""
        return self.device_type

    def sync(self) -> None:
        """Nothing: calls return when they are done."""

    def __str__(self) -> str:
        return f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type='{self.type}', index={self.index})"


def require_cpu(given: object, what: str) -> None:
    """Refuse a device that code cannot run on: `NotSupportedError` by its name, ``TypeError`` for no device at all.
    None is the CPU."""
    if given is None:
        return
    if not isinstance(given, Device):
        raise TypeError(f"{what}: expected a device such as supple.cpu(), got {given!r}")
    if not given.exist:
        raise NotSupportedError(f"{what}: the device {given} is not supported: there is cpu:0 alone")


def device(name: str | int, index: int | None = None) -> Device:
    """The device of that name, ``"cpu"``, ``"cuda:1"``... (or of DLPack's number); ``"llvm"`` is the CPU."""
    if isinstance(name, int):
        return Device(name, index or 0)
    kind, colon, number = name.partition(":")
    kind = "cpu" if kind == "llvm" else kind
    if kind not in DEVICE_TYPES:
        raise ValueError(f"device {name!r} is unknown{did_you_mean(kind, DEVICE_TYPES)}")
    if colon and not number.isdigit():
        raise ValueError(f"device {name!r}: expected a number after the colon")
    return Device(DEVICE_TYPES[kind], index if index is not None else int(number or 0))


def _named(kind: str) -> Callable[..., Device]:
    def make(index: int = 0) -> Device:
        return Device(DEVICE_TYPES[kind], index)

    make.__name__ = kind
    make.__doc__ = f"The {kind} device of that index."
    return make


cpu = _named("cpu")
cuda = _named("cuda")
opencl = _named("opencl")
vulkan = _named("vulkan")
metal = _named("metal")
vpi = _named("vpi")
rocm = _named("rocm")
ext_dev = _named("ext_dev")
hexagon = _named("hexagon")
webgpu = _named("webgpu")
