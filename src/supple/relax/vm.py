"""``relax.vm``. Only re-exports."""

from supple.runtime.executable import Executable
from supple.runtime.virtual_machine import VirtualMachine

__all__ = [
    "Executable",
    "VirtualMachine",
]
