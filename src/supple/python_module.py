"""`BasePyModule`: compiled functions and Python functions in one class."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from supple import driver
from supple.base import dtypes
from supple.base.errors import ArgumentError
from supple.base.registry import did_you_mean
from supple.ir.expr import Call, StringImm
from supple.ir.graph import ExternFunc, Function, Tuple
from supple.ir.loop import PrimFunc
from supple.ir.module import MODULE_CALL, IRModule
from supple.ir.node import Node
from supple.ir.types import TensorType
from supple.ir.walk import transform
from supple.ops.calls import CALL_PURE_PACKED
from supple.ops.forms import CALL_PY_FUNC
from supple.runtime.packed import get_global_func, register_global_func
from supple.runtime.tensor import Tensor
from supple.runtime.virtual_machine import VirtualMachine

_count = [0]


class BasePyModule:
    """Runs a module whose class held Python functions (``@I.pyfunc``) beside graph and loop functions::

        @I.ir_module
        class M(BasePyModule):
            @I.pyfunc
            def main(self, x): return self.call_tir(self.add, [x, x], out_ty=R.Tensor((4,), "float32"))

        M(supple.cpu()).main(x)

    Graph functions are methods of the object; a graph function calls a Python one with ``R.call_py_func``.
    """

    def __init__(self, ir_mod: IRModule, device: Any = None, target: Any = None) -> None:
        self.ir_mod = ir_mod
        self.device = device
        self.target = target if target is not None else "llvm"
        self.pyfuncs: dict[str, Callable[..., Any]] = {}
        _count[0] += 1
        self._prefix = f"supple.pyfunc.{_count[0]}."
        for name, func in ir_mod.pyfuncs.items():
            self.add_python_function(name, func)
        self._machine: VirtualMachine | None = None
        self._loops: dict[str, Any] = {}

    def add_python_function(self, name: str, func: Callable[..., Any]) -> None:
        """Make a Python function a method and callable by ``R.call_py_func``; one that takes ``self`` gets it."""
        if not callable(func):
            raise TypeError(f"add_python_function: expected a function, got {type(func).__name__}")
        code = getattr(func, "__code__", None)
        takes_self = code is not None and code.co_varnames[:1] == ("self",) and code.co_argcount > 0
        bound = (lambda *args: func(self, *args)) if takes_self else func
        self.pyfuncs[name] = bound
        register_global_func(self._prefix + name, bound, override=True)
        setattr(self, name, bound)

    def get_function(self, name: str) -> Callable[..., Any] | None:
        """The Python, graph or loop function of that name, or None."""
        if name in self.pyfuncs:
            return self.pyfuncs[name]
        if name not in self.ir_mod:
            return None
        func = self.ir_mod[name]
        if isinstance(func, Function):
            return self._vm()[name]
        return self._loop(name) if isinstance(func, PrimFunc) else None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "ir_mod" not in self.__dict__:
            raise AttributeError(name)
        if name in self.ir_mod and isinstance(self.ir_mod[name], PrimFunc):
            return name  # what call_tir takes
        found = self.get_function(name)
        if found is None:
            known = [*self.pyfuncs, *(v.name_hint for v in self.ir_mod.functions)]
            raise AttributeError(f"the module has no function {name!r}{did_you_mean(name, known)}")
        return found

    def list_functions(self) -> dict[str, list[str]]:
        """The names of the functions by kind: ``python``, ``relax``, ``tir``."""
        relax = [v.name_hint for v, f in self.ir_mod.functions.items() if isinstance(f, Function)]
        loops = [v.name_hint for v, f in self.ir_mod.functions.items() if isinstance(f, PrimFunc)]
        return {"python": list(self.pyfuncs), "relax": relax, "tir": loops}

    def call_tir(self, tir_func: Any, args: Any, out_ty: Any) -> Any:
        """Call a loop function by destination passing: fresh results of the types ``out_ty`` are its last arguments."""
        name = tir_func if isinstance(tir_func, str) else getattr(tir_func, "name_hint", None)
        if name not in self.ir_mod or not isinstance(self.ir_mod[str(name)], PrimFunc):
            raise ArgumentError(f"call_tir: the module has no loop function {tir_func!r}")
        return self._destination(self._loop(str(name)), args, out_ty)

    def call_dps_packed(self, func_name: str, args: Any, out_ty: Any) -> Any:
        """Call a registered function by destination passing."""
        func: Any = get_global_func(func_name)

        def call(*arrays: Any) -> None:
            func(*(Tensor(x) for x in arrays))

        return self._destination(call, args, out_ty)

    def call_py_func(self, func_name: str, args: Any) -> Any:
        """Call a Python function of the module."""
        if func_name not in self.pyfuncs:
            hint = did_you_mean(func_name, self.pyfuncs)
            raise ArgumentError(f"the module has no Python function {func_name!r}{hint}")
        return self.pyfuncs[func_name](*(args if isinstance(args, (list, tuple)) else (args,)))

    def script(self, **options: Any) -> str:
        """The module's text."""
        return self.ir_mod.script(**options)

    def show(self, **options: Any) -> None:
        """Print the module's text."""
        self.ir_mod.show(**options)

    # ------------------------------------------------------------------------------------------------------------ inner

    def _destination(self, func: Callable[..., Any], args: Any, out_ty: Any) -> Any:
        inputs = [np.asarray(a) for a in (args if isinstance(args, (list, tuple)) else [args])]
        types: Sequence[Any] = out_ty if isinstance(out_ty, (list, tuple)) else [out_ty]
        results = [_empty(ty) for ty in types]
        func(*inputs, *results)
        made = [_like(r, args) for r in results]
        return made[0] if not isinstance(out_ty, (list, tuple)) else tuple(made)

    def _vm(self) -> VirtualMachine:
        if self._machine is None:
            lowered = transform(self.ir_mod, self._packed_call)
            assert isinstance(lowered, IRModule)
            self._machine = VirtualMachine(driver.compile(lowered, self.target))
        return self._machine

    def _packed_call(self, node: Node) -> Node | None:
        """``call_py_func(name, args)`` as a call of the registered function."""
        if not isinstance(node, Call) or node.op is not CALL_PY_FUNC:
            return None
        name, args = node.args
        assert isinstance(name, StringImm) and isinstance(args, Tuple)
        if name.value not in self.pyfuncs:
            hint = did_you_mean(name.value, self.pyfuncs)
            raise ArgumentError(f"the module has no Python function {name.value!r}{hint}")
        return Call(
            CALL_PURE_PACKED,
            (ExternFunc(self._prefix + name.value), *args.fields),
            {},
            node.ty_args,
            node.ty,
            span=node.span,
        )

    def _loop(self, name: str) -> Any:
        """A loop function compiled alone."""
        if name not in self._loops:
            func = self.ir_mod[name]
            assert isinstance(func, PrimFunc)
            public = func.with_attr("global_symbol", name)
            machine = VirtualMachine(driver.compile(IRModule({name: public}), self.target))
            self._loops[name] = machine[name]
        return self._loops[name]


def _empty(ty: Any) -> Any:
    if not isinstance(ty, TensorType) or ty.dtype is None or ty.shape is None:
        raise ArgumentError(f"out_ty: expected R.Tensor(shape, dtype) with a known shape, got {ty}")
    extents = [getattr(v, "value", None) for v in ty.shape.values]  # type: ignore[attr-defined]
    if any(e is None for e in extents):
        raise ArgumentError(f"out_ty: the extents must be numbers, got {ty}")
    return np.empty([int(e) for e in extents if e is not None], dtypes.to_numpy(ty.dtype))


def _like(result: Any, args: Any) -> Any:
    """The result as the first argument appears: a numpy array, a `Tensor`, or what its library reads by DLPack."""
    first = args[0] if isinstance(args, (list, tuple)) and args else args
    if isinstance(first, Tensor):
        return Tensor(result)
    module = type(first).__module__.partition(".")[0]
    if module == "torch":
        return sys.modules[module].from_numpy(result)
    return result


MODULE_CALL.append(BasePyModule)
