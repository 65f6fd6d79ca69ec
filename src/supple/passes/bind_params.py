"""BindParams: parameters of a function become constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from supple.build.functions import bind_params as bound
from supple.ir.graph import Function
from supple.ir.module import IRModule


def bind_params(mod: IRModule, func_name: str, params: Mapping[Any, Any]) -> IRModule:
    """The module with parameters of one function (by name or variable) fixed to arrays, numbers or expressions.

    Before::

        def main(x: R.Tensor(("n", 4)), w: R.Tensor((4, 2))): lv = R.matmul(x, w)

    After ``bind_params(mod, "main", {"w": array})``::

        def main(x: R.Tensor(("n", 4))): lv = R.matmul(x, metadata[...])

    Raises ``KeyError`` for a function the module has not, ``TypeError`` when it is not a graph function,
    ``ValueError`` for a parameter it has not or a value that does not fit.
    """
    var = mod.get_global_var(func_name)
    func = mod[var]
    if not isinstance(func, Function):
        raise TypeError(f"bind_params: {func_name} is not a graph function")
    changed = mod.clone()
    changed[var] = bound(func, params)
    return changed
