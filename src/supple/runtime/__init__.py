"""Run time: tensors, packed functions, executables. Nothing here needs the compiler."""

from supple.runtime import vm_builtins  # noqa: F401 - registers functions
from supple.runtime.device import Device, cpu, device
from supple.runtime.executable import CompiledFunction, Executable
from supple.runtime.packed import (
    get_global_func,
    list_global_func_names,
    register_global_func,
    remove_global_func,
)
from supple.runtime.pool import num_threads, set_num_threads
from supple.runtime.tensor import ShapeTuple, Tensor, empty, from_dlpack, tensor
from supple.runtime.virtual_machine import BenchmarkResult, VirtualMachine

__all__ = [
    "BenchmarkResult",
    "CompiledFunction",
    "Device",
    "Executable",
    "ShapeTuple",
    "Tensor",
    "VirtualMachine",
    "cpu",
    "device",
    "empty",
    "from_dlpack",
    "get_global_func",
    "list_global_func_names",
    "num_threads",
    "register_global_func",
    "remove_global_func",
    "set_num_threads",
    "tensor",
]
