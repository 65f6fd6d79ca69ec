"""Checks on virtual machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.runtime.virtual_machine import VirtualMachine


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
