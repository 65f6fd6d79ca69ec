"""The names of ``R``: ``from supple.script import relax as R``.

Beside the names below, every registered operator is here under its own name: ``R.matmul``, ``R.nn.relu``.
"""

from __future__ import annotations

import functools as _functools
import sys as _sys
from collections.abc import Sequence
from typing import Any as _Value

import supple.ops  # noqa: F401  (declares the operators)
from supple.base.errors import NotSupportedError, RefusedNameError
from supple.base.registry import did_you_mean
from supple.build import functions as _functions
from supple.ir import expr as _expr
from supple.ir import graph as _graph
from supple.ir import types as _ir_types
from supple.ir.expr import Call, ExprLike, StringImm, as_expr, graph_scalar
from supple.ir.node import Expr
from supple.ir.op import OPS
from supple.ops import calls as _calls
from supple.ops import distributed as _distributed
from supple.ops import forms as _forms
from supple.passes.pattern_rewriter import rewriter as _rewriter
from supple.runtime.device import Device as _Device
from supple.runtime.device import device as _device
from supple.script import type_forms as _types
from supple.script.entry import READ_MODULES as _READ_MODULES
from supple.script.entry import GraphDecorator, MacroForm
from supple.script.forms import Form, Namespace, as_dtype, as_name
from supple.script.ir import ir_module as _ir_module

function = GraphDecorator("R.function", "A graph function.")
dataflow = Form("R.dataflow", "A pure region: with R.dataflow():")
seq = Form("R.seq", "A block of bindings of its own: with R.seq(): (text of blocks that stand one after another).")
output = Form("R.output", "The variables of a dataflow block that are visible after it.")
match_cast = Form("R.match_cast", "A run-time check of a type, which may introduce symbols.", regions=True)
func_attr = Form("R.func_attr", "Attributes of the function.")

Tensor, Tuple, Shape, Prim = _types.Tensor, _types.Tuple, _types.Shape, _types.Prim
DTensor = _types.DTensor
Callable, Any = _types.Callable_, _types.Any_
Object = _types.Any_
String = _types.String
ExternFunc = _graph.ExternFunc
TupleGetItem = _expr.TupleGetItem
ShapeExpr = _graph.ShapeExpr
SeqExpr = _graph.SeqExpr
macro = MacroForm("R.macro", "A function whose statements are read where it is called.")


def device(device_type: _Value = "cpu", index: int | None = None) -> _Device:
    """A device by its kind, or DLPack's number of the kind: ``R.device("cpu", 0)``."""
    kind = "cpu" if device_type in (1, None) else device_type
    if not isinstance(kind, str):
        raise NotSupportedError(f"R.device: devices of type {kind!r} are not supported, only the CPU is")
    return _device(kind, int(index or 0))


def cpu(dev_id: int = 0) -> _Device:
    """The CPU."""
    return device("cpu", dev_id)


def device_mesh(shape: _Value, device_ids: _Value) -> _ir_types.DeviceMesh:
    """A grid of devices: ``R.device_mesh((2, 2), I.Range(0, 4))``, or a list of the devices' numbers."""
    return _ir_types.DeviceMesh(tuple(shape), device_ids)


def rewriter(rewriter_mod: _Value) -> _Value:
    """``@R.rewriter`` on a class with the functions ``pattern`` and ``replacement``: a `PatternMatchingRewriter`."""
    if isinstance(rewriter_mod, type):
        rewriter_mod = _ir_module.decorate(rewriter_mod, {}, _sys._getframe(1))
    return _rewriter(rewriter_mod)


_READ_MODULES.append(rewriter)


def const(value: _Value, dtype: _Value = None) -> Expr:
    """A tensor constant: ``R.const(1.0, "float32")``, ``R.const([[1, 2]])``, an array.

    As in Relax, arrays of float64 and int64 become float32 and int32 where no dtype is given; ``OverflowError`` for an
    integer that does not fit.
    """
    return _functions.const(value, None if dtype is None else as_dtype(dtype, "R.const"))


def shape(value: _Value) -> Expr:
    """A shape value: ``R.shape([n, 4])``."""
    items = value if isinstance(value, (list, tuple)) else (value,)
    return _graph.ShapeExpr(tuple(as_expr(v) for v in items))


def prim_value(value: ExprLike) -> Expr:
    """A scalar as a graph value: ``R.prim_value(n + 1)``."""
    return graph_scalar(value)


def str_(value: _Value) -> Expr:
    """A string value: ``R.str("a")``."""
    return StringImm(as_name(value, "R.str"))


def dtype_(value: _Value) -> Expr:
    """A dtype value: ``R.dtype("float32")``."""
    return _graph.DataTypeImm(as_dtype(value, "R.dtype"))


def tuple_(*fields: _Value) -> Expr:
    """A tuple value: ``R.tuple(x, y)``."""
    return _graph.Tuple(tuple(_graph_value(f) for f in fields))


def _graph_value(value: _Value) -> Expr:
    return tuple_(*value) if isinstance(value, (list, tuple)) else graph_scalar(value)


class _Plain:
    """Types of calls hold no text: it was resolved where the type was written."""

    def dimension(self, value: _Value) -> Expr:
        return graph_scalar(value)


def _type_list(types: _Value) -> _Value:
    if types is None:
        return None
    if isinstance(types, (list, tuple)):
        return [_types.as_type(_Plain(), t) for t in types]
    return _types.as_type(_Plain(), types)


def _one(name: str, ty: _Value, older: _Value) -> _Value:
    if ty is not None and older is not None:
        raise TypeError(f"R.{name}: give the result's type once")
    return _type_list(ty if ty is not None else older)


def _builder(name: str) -> _Value:
    """The builder of a call form, with types resolved as the names of ``R`` spell them."""
    build = _forms.BUILDERS[name]

    @_functools.wraps(build)
    def make(*args: _Value, **kwargs: _Value) -> Call:
        for key in ("out_ty", "ty_args"):
            if key in kwargs:
                kwargs[key] = _type_list(kwargs[key])
        plain = [_type_list(a) if isinstance(a, _types.TypeForm) else a for a in args]
        return build(*plain, **kwargs)

    return make


def call_tir(
    gvar: _Value, args: _Value, out_ty: _Value = None, tir_vars: _Value = None, *, out_sinfo: _Value = None
) -> Call:
    """Call a loop function of the module: ``R.call_tir(cls.f, (x, w), out_ty=R.Tensor((n, 4), "float32"))``."""
    return _calls.call_tir(gvar, args, _required("call_tir", out_ty, out_sinfo), tir_vars)


def call_tir_inplace(
    gvar: _Value,
    args: _Value,
    inplace_indices: int | Sequence[int],
    out_ty: _Value = None,
    tir_vars: _Value = None,
    *,
    out_sinfo: _Value = None,
) -> Call:
    """Like `call_tir`, with some outputs written over inputs."""
    types = _required("call_tir_inplace", out_ty, out_sinfo)
    return _calls.call_tir_inplace(gvar, args, inplace_indices, types, tir_vars)


def call_dps_packed(func: _Value, args: _Value, out_ty: _Value = None, *, out_sinfo: _Value = None) -> Call:
    """Call a registered function by destination passing."""
    return _calls.call_dps_packed(func, args, _required("call_dps_packed", out_ty, out_sinfo))


def _required(name: str, out_ty: _Value, out_sinfo: _Value) -> _Value:
    types = _one(name, out_ty, out_sinfo)
    if types is None:
        raise TypeError(f"R.{name}: the result's type is missing: out_ty=R.Tensor((n, 4), 'float32')")
    return types


call_tir_with_grad = _builder("call_tir_with_grad")
call_inplace_packed = _builder("call_inplace_packed")
call_builtin_with_ctx = _builder("call_builtin_with_ctx")
make_closure = _builder("make_closure")
invoke_closure = _builder("invoke_closure")
invoke_pure_closure = _builder("invoke_pure_closure")
call_py_func = _builder("call_py_func")
assert_op = _builder("assert_op")
linear = _forms.BUILDERS["linear"]


def call_packed(
    func: _Value, *args: _Value, ty_args: _Value = None, sinfo_args: _Value = None, **attrs: _Value
) -> Call:
    """Call a registered function, which may have effects: ``R.call_packed("name", x, ty_args=...)``. ``attrs`` are
    notes for passes."""
    return _calls.call_packed(func, *args, ty_args=_one("call_packed", ty_args, sinfo_args), **attrs)


def call_pure_packed(func: _Value, *args: _Value, ty_args: _Value = None, sinfo_args: _Value = None) -> Call:
    """Call a registered function that has no effect."""
    return _calls.call_pure_packed(func, *args, ty_args=_one("call_pure_packed", ty_args, sinfo_args))


class OpNamespace(Namespace):
    """Operators below a dotted name: ``R.nn``."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    @property
    def __all__(self) -> list[str]:
        return _names_below(self.prefix)

    def __getattr__(self, name: str) -> _Value:
        return _operator(self.prefix, name)


def _names_below(prefix: str) -> list[str]:
    return sorted({name[len(prefix) + 1 :].partition(".")[0] for name in OPS if name.startswith(f"{prefix}.")})


def _operator(prefix: str, name: str) -> _Value:
    full = f"{prefix}.{name}"
    beside = _BESIDE.get(full)
    if beside is not None:
        return beside
    found = OPS.find(full)
    own = full.removeprefix("relax.")
    built = _forms.BUILDERS.get(own) or _distributed.BUILDERS.get(own)
    if built is not None:
        return built
    if found is not None:
        return found
    if any(op.startswith(f"{full}.") for op in OPS):
        return OpNamespace(full)
    shown = "R" + prefix.removeprefix("relax")
    known = _names_below(prefix) + (_OWN if prefix == "relax" else [])
    raise AttributeError(f"{shown} has no name {name!r}{did_you_mean(name, known)}")


_BESIDE: dict[str, _Value] = {
    "relax.distributed": OpNamespace("relax.dist"),
    "relax.stop_lift_params": _forms.stop_lift_params,
    "relax.dist.DTensor": DTensor,
    "relax.dist.device_mesh": device_mesh,
}
"""Names that stand beside operators in a group, or are another spelling of one."""

_DEVICES = frozenset(("cuda", "rocm", "opencl", "metal", "vulkan", "vpi", "ext_dev", "hexagon", "webgpu"))
_SPELLED = {"str": str_, "dtype": dtype_, "tuple": tuple_}
_BUILDER = frozenset((
    "emit", "emit_te", "emit_with_ty", "emit_with_type", "emit_match_cast", "emit_var_binding", "arg", "func_name",
    "func_ret_ty", "func_ret_type", "func_ret_value", "If", "Then", "Else",
))  # fmt: skip
_OWN = [
    "function", "dataflow", "seq", "output", "match_cast", "func_attr", "Tensor", "Tuple", "Shape", "Prim", "Callable",
    "Object", "Any", "String", "ExternFunc", "const", "shape", "prim_value", "call_tir", "call_tir_inplace",
    "call_dps_packed", "call_packed", "call_pure_packed", "DTensor", "TupleGetItem", "ShapeExpr", "device", "cpu",
    "SeqExpr", "device_mesh", "macro", "rewriter", "call_tir_with_grad", "call_inplace_packed", "call_builtin_with_ctx",
    "make_closure", "invoke_closure", "invoke_pure_closure", "call_py_func", "assert_op", "linear", *_SPELLED,
]  # fmt: skip
__all__ = sorted(_OWN)


def operator_named(name: str) -> _Value:
    """An operator or group of operators by its name below ``relax.``: what ``relax.op`` offers."""
    return _operator("relax", name)


def operator_names() -> list[str]:
    """The names that ``relax.op`` offers."""
    return _names_below("relax")


def __getattr__(name: str) -> _Value:
    found = _SPELLED.get(name)
    if found is not None:
        return found
    if name in _DEVICES:
        raise RefusedNameError(f"R.{name}: devices of that kind are not supported, only the CPU is")
    if name in _BUILDER:
        raise RefusedNameError(
            f"R.{name} builds statement by statement: from supple.script.ir_builder import relax as R"
        )
    return _operator("relax", name)
