"""The call forms beyond destination passing, in numpy: closures, in-place calls, memory, checks.

A handler takes the interpreter, the call and the frame of variables. Memory is a `Storage`; a tensor placed in it is a
view of its bytes, so forms that write in place behave as in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import ExecutionError, NotSupportedError
from supple.ir.expr import Call
from supple.ir.graph import ExternFunc, Tuple
from supple.ir.loop import PrimFunc
from supple.ir.op import Op
from supple.ops import forms
from supple.runtime.tensor import ShapeTuple


@dataclass(eq=False)
class Partial:
    """A function with its first arguments fixed (``R.make_closure``)."""

    func: Any
    args: tuple[Any, ...]


@dataclass(eq=False)
class Storage:
    """A piece of memory."""

    data: Any


def _make_closure(run: Any, e: Call, frame: Any) -> Any:
    return Partial(run.eval(e.args[0], frame), tuple(run.eval(e.args[1], frame)))


def _invoke_closure(run: Any, e: Call, frame: Any) -> Any:
    return run.call_value(run.eval(e.args[0], frame), list(run.eval(e.args[1], frame)))


def _name(e: Call) -> str:
    callee = e.args[0]
    if not isinstance(callee, ExternFunc):
        raise NotSupportedError("the interpreter calls registered functions by name here", span=e.span)
    return callee.global_symbol


def _call_inplace_packed(run: Any, e: Call, frame: Any) -> Any:
    args = [run.eval(a, frame) for a in e.args[1:]]
    result = run.packed(_name(e), args)
    places = e.attrs["inplace_indices"]
    results = list(result) if len(places) > 1 else [result]
    values = [results[n] if place < 0 else args[place] for n, place in enumerate(places)]
    return values[0] if len(values) == 1 else tuple(values)


def _call_builtin_with_ctx(run: Any, e: Call, frame: Any) -> Any:
    return run.packed(_name(e), [run, *run.eval(e.args[1], frame)])


def _call_py_func(run: Any, e: Call, frame: Any) -> Any:
    name = str(run.eval(e.args[0], frame))
    func = run.mod.pyfuncs.get(name)
    if func is None:
        raise ExecutionError(f"the module has no Python function {name!r}")
    code = getattr(func, "__code__", None)
    takes_self = code is not None and code.co_varnames[:1] == ("self",)
    args = list(run.eval(e.args[1], frame))
    return run.imported(func(*([run, *args] if takes_self else args)))


def _assert(run: Any, e: Call, frame: Any) -> Any:
    condition, *values = [run.eval(a, frame) for a in e.args]
    forms.check_assertion(condition, values, e.attrs["format"])
    return ()


def _tensor_to_shape(run: Any, e: Call, frame: Any) -> Any:
    return ShapeTuple([int(v) for v in run.eval(e.args[0], frame)])


def _first(run: Any, e: Call, frame: Any) -> Any:
    return run.eval(e.args[0], frame)


def _wrap_param(run: Any, e: Call, frame: Any) -> Any:
    return dtypes.convert(run.eval(e.args[0], frame), e.attrs["dtype"])


def _nothing(run: Any, e: Call, frame: Any) -> Any:
    for arg in e.args:
        run.eval(arg, frame)
    return ()


def _null(run: Any, e: Call, frame: Any) -> Any:
    return None


def _alloc_tensor(run: Any, e: Call, frame: Any) -> Any:
    shape, dtype = run.eval(e.args[0], frame), run.eval(e.args[1], frame)
    return np.zeros(tuple(shape), dtypes.to_numpy(dtype))


def _alloc_storage(run: Any, e: Call, frame: Any) -> Any:
    count = 1
    for extent in run.eval(e.args[0], frame):
        count *= extent
    return Storage(np.zeros(count, "uint8"))


def _place_tensor(run: Any, e: Call, frame: Any) -> Any:
    storage, offset, shape, dtype = (run.eval(a, frame) for a in e.args[:4])
    if not isinstance(storage, Storage):
        raise ExecutionError(f"alloc_tensor: expected storage, got {type(storage).__name__}")
    return _viewed(storage.data, int(offset), tuple(shape), dtypes.to_numpy(dtype), "alloc_tensor")


def _viewed(data: Any, offset: int, shape: tuple[int, ...], dtype: Any, what: str) -> Any:
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if offset < 0 or offset + count > data.size:
        raise ExecutionError(f"{what}: {count} bytes at offset {offset} do not fit in {data.size} bytes")
    return data[offset : offset + count].view(dtype).reshape(shape)


def _view(run: Any, e: Call, frame: Any) -> Any:
    data: Any
    data, shape, dtype, offset = (None if isinstance(a, Tuple) and not a.fields else run.eval(a, frame) for a in e.args)
    kind = data.dtype if dtype is None else dtypes.to_numpy(dtype)
    extents = data.shape if shape is None else tuple(shape)
    whole = np.ascontiguousarray(data).reshape(-1).view("uint8")
    return _viewed(whole, int(offset or 0), extents, kind, "memory.view")


def _call_tir_dyn(run: Any, e: Call, frame: Any) -> Any:
    func = run.mod[e.args[0]]
    if not isinstance(func, PrimFunc):
        raise ExecutionError("vm.call_tir_dyn calls loop functions only")
    values = list(run.eval(e.args[1], frame))
    symbols = list(values.pop()) if values and isinstance(values[-1], ShapeTuple) else []
    run.loops(func, [*values, *symbols])
    return ()


_HANDLERS: dict[Op, Callable[[Any, Call, Any], Any]] = {
    forms.MAKE_CLOSURE: _make_closure,
    forms.INVOKE_CLOSURE: _invoke_closure,
    forms.INVOKE_PURE_CLOSURE: _invoke_closure,
    forms.CALL_INPLACE_PACKED: _call_inplace_packed,
    forms.CALL_BUILTIN_WITH_CTX: _call_builtin_with_ctx,
    forms.CALL_PY_FUNC: _call_py_func,
    forms.ASSERT_OP: _assert,
    forms.tensor_to_shape: _tensor_to_shape,
    forms.TO_VDEVICE: _first,
    forms.HINT_ON_DEVICE: _first,
    forms.stop_lift_params: _first,
    forms.ensure_zero_offset: _first,
    forms.wrap_param: _wrap_param,
    forms.null_value: _null,
    forms.ALLOC_TENSOR: _alloc_tensor,
    forms.MEMORY_ALLOC_STORAGE: _alloc_storage,
    forms.VM_ALLOC_STORAGE: _alloc_storage,
    forms.MEMORY_ALLOC_TENSOR: _place_tensor,
    forms.VM_ALLOC_TENSOR: _place_tensor,
    forms.MEMORY_KILL_TENSOR: _nothing,
    forms.MEMORY_KILL_STORAGE: _nothing,
    forms.VM_KILL_OBJECT: _nothing,
    forms.MEMORY_VIEW: _view,
    forms.VM_CALL_TIR_DYN: _call_tir_dyn,
}

FORMS: Mapping[int, Callable[[Any, Call, Any], Any]] = {id(op): handler for op, handler in _HANDLERS.items()}
"""Operator's identity -> its meaning."""
