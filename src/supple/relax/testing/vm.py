"""Checks on virtual machines, and functions for programs of instructions: ``test.vm.add`` and others."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.runtime.device import Device
from supple.runtime.packed import register_global_func
from supple.runtime.tensor import Tensor, tensor
from supple.runtime.virtual_machine import VirtualMachine


@register_global_func("test.vm.move")
def move(src: Any) -> Any:
    """The value itself."""
    return src


@register_global_func("test.vm.add")
def add(a: Tensor, b: Tensor) -> Tensor:
    """The sum of two tensors."""
    return tensor(a.numpy() + b.numpy())


@register_global_func("test.vm.mul")
def mul(a: Tensor, b: Tensor) -> Tensor:
    """The product of two tensors, element by element."""
    return tensor(a.numpy() * b.numpy())


@register_global_func("test.vm.equal_zero")
def equal_zero(a: Tensor) -> Tensor:
    """Where a tensor is 0."""
    return tensor(a.numpy() == 0)


@register_global_func("test.vm.subtract_one")
def subtract_one(a: Tensor) -> Tensor:
    """A tensor less one."""
    return tensor(np.subtract(a.numpy(), 1))


@register_global_func("test.vm.identity")
def identity_packed(a: Tensor, b: Tensor) -> None:
    """Copy ``a`` into ``b``."""
    b.copyfrom(a.numpy())


@register_global_func("test.vm.tile")
def tile_packed(a: Tensor, b: Tensor) -> None:
    """Write ``a`` twice, side by side, into ``b``."""
    b.copyfrom(np.tile(a.numpy(), (1, 2)))


@register_global_func("test.vm.add_scalar")
def add_scalar(a: Any, b: Any) -> Any:
    """The sum of two numbers."""
    return a + b


@register_global_func("test.vm.get_device_id")
def get_device_id(device: Device) -> int:
    """The index of a device."""
    return device.index


def check_saved_func(vm: VirtualMachine, func_name: str, *inputs: Any) -> Any:
    """Call a function, save it with these inputs under another name, call that, and compare; the result.

    Raises ``AssertionError`` when the two results differ.
    """
    result = vm[func_name](*inputs)
    saved = f"{func_name}_saved"
    vm.save_function(func_name, saved, *inputs)
    _compare(vm[saved](), result)
    return result


def _compare(a: Any, b: Any) -> None:
    if isinstance(b, (tuple, list)):
        assert len(a) == len(b), f"{len(a)} results, expected {len(b)}"
        for x, y in zip(a, b, strict=True):
            _compare(x, y)
        return
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-7, atol=1e-7)
