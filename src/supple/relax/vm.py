"""``relax.vm``. Only re-exports."""

from supple.runtime.executable import (
    Executable,
    VirtualMachine,
)

__all__ = [
    "Executable",
    "VirtualMachine",
]
