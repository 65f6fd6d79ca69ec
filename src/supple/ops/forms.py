"""Call forms beyond destination passing: closures, in-place packed calls, builtins, memory and virtual-machine forms,
virtual devices, conversions between shapes and tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import ExecutionError, NotSupportedError, TypeCheckError
from supple.build.infer import infer, packed_result
from supple.build.te import compute
from supple.ir.expr import EQ, Call, IntImm, Mul, Select, StringImm, as_expr, cast, graph_scalar
from supple.ir.graph import UNIT, DataTypeImm, ExternFunc, GlobalVar, ShapeExpr, Tuple
from supple.ir.node import Expr, Type
from supple.ir.op import OPS, Op, Param, RelaxText
from supple.ir.types import (
    AnyType,
    FuncType,
    PrimType,
    ShapeType,
    StringType,
    TensorType,
    TupleType,
    VDevice,
    declared_type,
)
from supple.ir.walk import substitute
from supple.ops.activation import relu6
from supple.ops.attention_more import attention_call
from supple.ops.calls import _tuple_of, destination_result, destination_types
from supple.ops.declare import DType, Place, Shape, ShapeOf, fail, operator, sample
from supple.ops.linalg import linear
from supple.ops.shapes import require_known_rank
from supple.ops.unary import astype
from supple.runtime.device import Device, device
from supple.sym.relate import assignable, bind_parameters, tensor_dims

Infer = Callable[[Call], Type]


def _form(name: str, doc: str, rule: Infer, *params: Param, pure: bool = True, **facts: Any) -> Op:
    return OPS.register(f"relax.{name}", Op(f"relax.{name}", doc, params, rule, pure=pure, facts=facts))


def _types(types: Any) -> tuple[Type, ...]:
    if types is None:
        return ()
    return (types,) if isinstance(types, Type) else tuple(types)


def _value(value: Any) -> Expr:
    return Tuple(tuple(_value(v) for v in value)) if isinstance(value, (tuple, list)) else graph_scalar(value)


def _extern(func: Any) -> Expr:
    return ExternFunc(func) if isinstance(func, str) else func


def _declared(call: Call) -> Type:
    return packed_result(call.ty_args)


# ------------------------------------------------------------------------------------------------------ calling forms

CALL_TIR_WITH_GRAD = _form(
    "call_tir_with_grad",
    "Like ``call_tir``, with the name of a registered compute function for its gradient.",
    destination_result,
    Param("func", "expr"),
    Param("args", "expr"),
    calls_loop_function=True,
    prints="destination",
)


def call_tir_with_grad(
    gvar: GlobalVar, args: Any, out_ty: Any, te_grad_name: str, te_grad_kwargs: Any = None, tir_vars: Any = None
) -> Call:
    """``R.call_tir_with_grad(cls.f, (x,), out_ty=..., te_grad_name="f_grad", te_grad_kwargs={"k": 1.0})``."""
    if not isinstance(gvar, GlobalVar):
        raise TypeError(f"call_tir_with_grad: the first argument must be a function of the module, got {gvar!r}")
    operands: tuple[Expr, ...] = (gvar, _tuple_of(args))
    if tir_vars is not None:
        operands = (*operands, tir_vars if isinstance(tir_vars, ShapeExpr) else ShapeExpr(tuple(tir_vars)))
    attrs = {"te_grad_name": str(te_grad_name), "te_grad_kwargs": dict(te_grad_kwargs or {})}
    return Call(CALL_TIR_WITH_GRAD, operands, attrs, destination_types("call_tir_with_grad", out_ty))


CALL_TIR_WITH_GRAD.facts["role"] = "call_tir_with_grad"


def _inplace_packed_type(call: Call) -> Type:
    places = call.attrs.get("inplace_indices", ())
    if not call.ty_args:
        raise TypeCheckError("call_inplace_packed needs the type of its result", hint="ty_args=...", rule="call")
    if len(places) != len(call.ty_args):
        raise TypeCheckError(
            "call_inplace_packed: one index for each result",
            expected=f"{len(call.ty_args)} inplace_indices",
            actual=str(list(places)),
            rule="call",
        )
    for place in places:
        if not -1 <= place < len(call.args) - 1:
            raise TypeCheckError(f"call_inplace_packed: there is no argument {place}", rule="call")
    written = [place for place in places if place != -1]
    if not written:
        raise TypeCheckError(
            "call_inplace_packed: no argument is overwritten", hint="call_pure_packed, or an index", rule="call"
        )
    if len(set(written)) < len(written):
        raise TypeCheckError("call_inplace_packed: an argument is overwritten twice", actual=str(places), rule="call")
    for ty, place in zip(call.ty_args, places, strict=True):
        given = infer(call.args[1 + place]) if place != -1 else ty
        if assignable(given, ty) is not True:
            raise TypeCheckError(
                f"call_inplace_packed: a result is argument {place}, but its type is another",
                expected=str(given),
                actual=str(ty),
                rule="call",
            )
    return packed_result(call.ty_args)


CALL_INPLACE_PACKED = _form(
    "call_inplace_packed",
    "Call a registered function that overwrites some of its arguments: result i is argument ``inplace_indices[i]`` "
    "(-1: a fresh value). Has an effect, which a function that is marked pure vouches for.",
    _inplace_packed_type,
    Param("func", "expr"),
    Param("args", "varargs", ()),
    pure=False,
    overwrites=True,
)


def call_inplace_packed(func: Any, *args: Any, inplace_indices: int | Sequence[int], ty_args: Any) -> Call:
    """``R.call_inplace_packed("name", x, inplace_indices=[0], ty_args=R.Tensor(...))``."""
    places = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    attrs = {"inplace_indices": tuple(int(p) for p in places)}
    return Call(CALL_INPLACE_PACKED, (_extern(func), *(_value(a) for a in args)), attrs, _types(ty_args))


CALL_BUILTIN_WITH_CTX = _form(
    "call_builtin_with_ctx",
    "Call a registered function that also gets the virtual machine. Has an effect.",
    _declared,
    Param("func", "expr"),
    Param("args", "expr"),
    pure=False,
)


def call_builtin_with_ctx(func: Any, args: Any, ty_args: Any = None) -> Call:
    """``R.call_builtin_with_ctx("vm.builtin.name", (x,), ty_args=R.Tensor(...))``."""
    return Call(CALL_BUILTIN_WITH_CTX, (_extern(func), _tuple_of(args)), {}, _types(ty_args))


def _closure_type(call: Call) -> Type:
    func, args = call.args
    ty, given = infer(func), infer(args)
    if isinstance(ty, AnyType):
        return AnyType()
    if not isinstance(ty, FuncType):
        fail("make_closure: the first argument must be a function", "a function", str(ty), func, call)
    if ty.params is None:
        return AnyType()
    if not isinstance(given, TupleType) or len(given.fields) > len(ty.params):
        fail("make_closure: the captured values must be a tuple of leading arguments", str(ty), str(given), args, call)
    count = len(given.fields)
    mapping = bind_parameters(ty.params[:count], given.fields)
    rest: FuncType = substitute(FuncType(ty.params[count:], ty.ret, ty.purity), mapping)
    return rest


MAKE_CLOSURE = _form(
    "make_closure",
    "A function with its first arguments fixed, as a value.",
    _closure_type,
    Param("func", "expr"),
    Param("args", "expr"),
)


def make_closure(func: Any, args: Any) -> Call:
    """``R.make_closure(cls.f, (x,))``."""
    return Call(MAKE_CLOSURE, (func, _tuple_of(args)))


def _invoked(name: str, doc: str, pure: bool) -> Op:
    return _form(name, doc, _declared, Param("closure", "expr"), Param("args", "expr"), pure=pure)


INVOKE_CLOSURE = _invoked("invoke_closure", "Call a closure with its remaining arguments. Has an effect.", False)
INVOKE_PURE_CLOSURE = _invoked("invoke_pure_closure", "Call a closure, on the promise that it has no effect.", True)


def invoke_closure(closure: Expr, args: Any, ty_args: Any = None) -> Call:
    """``R.invoke_closure(closure, (y,), ty_args=R.Tensor(...))``."""
    return Call(INVOKE_CLOSURE, (closure, _tuple_of(args)), {}, _types(ty_args))


def invoke_pure_closure(closure: Expr, args: Any, ty_args: Any = None) -> Call:
    """``R.invoke_pure_closure(closure, (y,), ty_args=R.Tensor(...))``."""
    return Call(INVOKE_PURE_CLOSURE, (closure, _tuple_of(args)), {}, _types(ty_args))


CALL_PY_FUNC = _form(
    "call_py_func",
    "Call a Python function of the module's class by name (``@I.pyfunc``).",
    _declared,
    Param("func", "expr"),
    Param("args", "expr"),
)


def call_py_func(py_func_name: Any, *args: Any, out_ty: Any = None, ty_args: Any = None) -> Call:
    """``R.call_py_func("name", (x, y), out_ty=R.Tensor(...))``."""
    name = py_func_name if isinstance(py_func_name, StringImm) else StringImm(str(py_func_name))
    values: Any = args
    if len(args) == 1 and isinstance(args[0], (tuple, list, Tuple)):
        values = args[0]
    types = out_ty if out_ty is not None else ty_args
    if types is None:
        raise TypeError("call_py_func: the result's type is missing: out_ty=R.Tensor((n, 4), 'float32')")
    return Call(CALL_PY_FUNC, (name, _tuple_of(values)), {}, declared_type(_types(types)))


# ------------------------------------------------------------------------------------------------- shapes and tensors


def _tensor_to_shape_type(expr: TensorType) -> Type:
    require_known_rank("tensor_to_shape", "the tensor", expr)
    if expr.ndim != 1:
        fail("tensor_to_shape takes a tensor of one dimension", "ndim 1", f"ndim {expr.ndim}")
    if expr.dtype not in (None, "int64"):
        fail("tensor_to_shape takes int64 values", "int64", expr.dtype)
    dims = tensor_dims(expr)
    count = dims[0] if dims else None
    return ShapeType(None, count.value) if isinstance(count, IntImm) else ShapeType()


@operator("tensor_to_shape")
def tensor_to_shape(expr: TensorType) -> Type:
    """A shape of the values of an int64 tensor of one dimension."""
    return _tensor_to_shape_type(expr)


def _shape_operand(name: str, expr: Expr) -> ShapeType:
    ty = infer(expr)
    if not isinstance(ty, ShapeType):
        fail(f"{name} takes a shape value", "a shape", str(ty), expr)
    return ty


def _lower_shape_to_tensor(values: Any) -> Any:
    if not isinstance(values, list):
        raise NotSupportedError("shape_to_tensor: native code needs a shape whose rank is known")
    extents = [cast("int64", v) for v in values]

    def element(i: Expr) -> Expr:
        result: Expr = extents[-1] if extents else IntImm(0, "int64")
        for n in range(len(extents) - 2, -1, -1):
            result = Select(EQ(cast("int64", i), IntImm(n, "int64")), extents[n], result)
        return result

    return compute((len(extents),), element, "shape")


def _lower_size(x: Any) -> Any:
    count: Expr = IntImm(1, "int64")
    for extent in x.shape:
        count = Mul(count, cast("int64", extent))
    return compute((), lambda: count, "size")


@operator(
    "shape_to_tensor",
    ref=lambda shape: np.array(shape, "int64"),
    lower=_lower_shape_to_tensor,
    samples=lambda: [sample(ShapeOf((2, 3, 4))), sample(ShapeOf((5,)))],
)
def shape_to_tensor(expr: Shape) -> Type:
    """The values of a shape as an int64 tensor of one dimension."""
    ty = infer(expr)
    assert isinstance(ty, ShapeType)
    if ty.ndim == -1:
        return TensorType(None, "int64", 1)
    return TensorType(ShapeExpr((IntImm(ty.ndim, "int64"),)), "int64")


@operator(
    "size",
    ref=lambda x: np.array(np.asarray(x).size, "int64"),
    lower=_lower_size,
    device=Place.NONE,
    samples=lambda: [sample((3, 4)), sample(())],
)
def size(expr: TensorType) -> Type:
    """The number of elements of a tensor, as an int64 tensor without dimensions."""
    return TensorType(ShapeExpr(()), "int64")


# ------------------------------------------------------------------------------------------------------------- checks


def _assert_type(call: Call) -> Type:
    if not call.args:
        raise TypeCheckError("assert_op needs a condition", rule="operator")
    ty = infer(call.args[0])
    dtype = ty.dtype if isinstance(ty, (TensorType, PrimType)) else None
    if not isinstance(ty, (TensorType, PrimType, AnyType)) or (isinstance(ty, TensorType) and ty.ndim not in (-1, 0)):
        fail("assert_op: the condition must be a scalar bool", 'R.Tensor((), "bool")', str(ty), call.args[0], call)
    if dtype not in (None, "bool"):
        fail("assert_op: the condition must be a bool", "bool", dtype, call.args[0], call)
    return UNIT


ASSERT_OP = _form(
    "assert_op",
    "Raise with a message when a scalar bool is false; ``format`` is a ``str.format`` template of the other values.",
    _assert_type,
    Param("condition", "expr"),
    Param("format_args", "varargs", ()),
    Param("format", "attr", "", lambda v: str(getattr(v, "value", v))),
    pure=False,
    relax_text=RelaxText(strings=("format",)),
)


def assert_op(condition: Any, format_args: Any = None, *more: Any, format: Any = "") -> Call:
    """``R.assert_op(condition, x, y, format="x is {}, y is {}")``."""
    first = () if format_args is None else format_args
    if more and isinstance(more[-1], (str, StringImm)):  # Relax takes the template as the third argument as well
        *more, format = more  # type: ignore[assignment]
    values = [*(first if isinstance(first, (list, tuple)) else [first]), *more]
    text = str(getattr(format, "value", format))
    return Call(ASSERT_OP, (as_expr(condition), *(_value(v) for v in values)), {"format": text})


def check_assertion(condition: Any, values: Sequence[Any], format: str) -> None:
    """What ``R.assert_op`` does: raises `ExecutionError` when the condition is false."""
    if not bool(np.asarray(condition).item()):
        text = format.format(*values) if format else ", ".join(str(v) for v in values)
        raise ExecutionError(f"assert_op: {text}" if text else "assert_op: the condition is false")


# ------------------------------------------------------------------------------------------------ devices, parameters


def _vdevice(value: Any) -> Any:
    if isinstance(value, str):
        return VDevice.parse(value)
    if not isinstance(value, VDevice):
        raise TypeError(f"expected a virtual device such as 'llvm:0' or I.vdevice('llvm'), got {value!r}")
    return value


def _to_vdevice_type(call: Call) -> Type:
    ty = infer(call.args[0])
    if not isinstance(ty, TensorType):
        fail("to_vdevice takes a tensor", "a tensor", str(ty), call.args[0], call)
    return TensorType(ty.shape, ty.dtype, ty.ndim, call.attrs["dst_vdevice"])


TO_VDEVICE = _form(
    "to_vdevice",
    "The tensor on another virtual device.",
    _to_vdevice_type,
    Param("data"),
    Param("dst_vdevice", "attr", convert=_vdevice),
    value="argument",
)


def _hinted_device(data: Any, dst_vdevice: Any, memory_scope: Any = "global") -> tuple[tuple[Any, ...], dict[str, Any]]:
    """``R.hint_on_device(x, R.device("cpu", 0))``: the call keeps DLPack's number of the kind, and the index."""
    found = device(dst_vdevice) if isinstance(dst_vdevice, str) else dst_vdevice
    if not isinstance(found, Device):
        raise TypeError(f"expected a device such as R.device('cpu', 0), got {dst_vdevice!r}")
    return (data, found.device_type, found.index, memory_scope), {}


def _hint_type(call: Call) -> Type:
    ty = infer(call.args[0])
    if not isinstance(ty, TensorType):
        fail("hint_on_device takes a tensor", "a tensor", str(ty), call.args[0], call)
    return ty


HINT_ON_DEVICE = _form(
    "hint_on_device",
    "The same tensor, with a hint on which device it should be.",
    _hint_type,
    Param("data"),
    Param("device_type", "attr"),
    Param("index", "attr"),
    Param("memory_scope", "attr", "global", lambda v: str(getattr(v, "value", v))),
    value="argument",
    prints="hint",
    prepare=_hinted_device,
)


@operator(
    "wrap_param",
    lower=astype.lower,
    ref=lambda data, dtype: dtypes.convert(data, dtype),
    samples=lambda: [sample((3, 4), dtype="float16")],
)
def wrap_param(data: TensorType, dtype: DType = "float32") -> Type:
    """A constant parameter in another dtype, converted when the program is compiled."""
    return TensorType(data.shape, dtype, data.ndim, data.vdevice)


wrap_param.facts["shape_of"] = 0


@operator("builtin.stop_lift_params")
def stop_lift_params(x: Expr) -> Type:
    """The same value; parameters are not lifted out of the function across it."""
    return infer(x)


stop_lift_params.facts["value"] = "argument"


@operator("null_value")
def null_value() -> Type:
    """A value that is nothing."""
    return AnyType()


# ---------------------------------------------------------------------------------------------- memory and the machine


def _dtype_of(value: Expr, name: str) -> str | None:
    if isinstance(value, DataTypeImm):
        return value.value
    if isinstance(value, StringImm):
        return dtypes.check_dtype(value.value)
    if isinstance(infer(value), AnyType):
        return None
    return fail(f"{name}: the dtype must be a dtype value", 'R.dtype("float32")', str(value), value)


def _fresh_tensor(name: str, shape: Expr, dtype: Expr) -> Type:
    ty = _shape_operand(name, shape)
    return TensorType(shape if isinstance(shape, ShapeExpr) else None, _dtype_of(dtype, name), ty.ndim)


def _integer(name: str, value: Expr) -> None:
    ty = infer(value)
    if not isinstance(ty, PrimType) or not dtypes.is_int(ty.dtype):
        fail(f"{name}: expected an integer scalar", "R.prim_value(0)", str(ty), value)


def _string(name: str, value: Expr) -> None:
    if not isinstance(infer(value), StringType):
        fail(f"{name}: expected a string", 'R.str("global")', str(value), value)


def _alloc_tensor_type(call: Call) -> Type:
    shape, dtype, index, *scope = call.args
    _integer("alloc_tensor", index)
    for text in scope:
        _string("alloc_tensor", text)
    return _fresh_tensor("alloc_tensor", shape, dtype)


def _placed_tensor_type(call: Call) -> Type:
    _, offset, shape, dtype, *index = call.args
    for value in (offset, *index):
        _integer("alloc_tensor", value)
    return _fresh_tensor("alloc_tensor", shape, dtype)


def _storage_type(call: Call) -> Type:
    assert isinstance(call.op, Op)
    name = call.op.short_name
    _shape_operand(name, call.args[0])
    for param, value in zip(call.op.params[1:], call.args[1:], strict=False):
        if param.kind == "dtype_value":
            _dtype_of(value, name)
        elif param.name == "storage_scope":
            _string(name, value)
        else:
            _integer(name, value)
    return AnyType()


def _dtype_param(name: str) -> Param:
    return Param(name, "dtype_value")


_INDEX = Param("runtime_device_index", "expr")
ALLOC_TENSOR = _form(
    "builtin.alloc_tensor",
    "A fresh tensor whose contents are not defined.",
    _alloc_tensor_type,
    Param("shape", "expr"),
    _dtype_param("dtype"),
    _INDEX,
    Param("storage_scope", "expr", StringImm("global")),
    allocates="tensor",
)
MEMORY_ALLOC_STORAGE = _form(
    "memory.alloc_storage",
    "A piece of memory of ``size`` (bytes, as a shape).",
    _storage_type,
    Param("size", "expr"),
    Param("virtual_device_index", "expr"),
    Param("storage_scope", "expr"),
    _dtype_param("dtype"),
    allocates="storage",
)
_PLACED = (
    Param("storage", "expr"),
    Param("offset", "expr"),
    Param("shape", "expr"),
    _dtype_param("dtype"),
    Param("runtime_device_ind", "expr", IntImm(0, "int64")),
)
MEMORY_ALLOC_TENSOR = _form(
    "memory.alloc_tensor",
    "A tensor in a piece of memory, at an offset.",
    _placed_tensor_type,
    *_PLACED,
    allocates="placed",
)
VM_ALLOC_TENSOR = _form(
    "vm.alloc_tensor", "A tensor in a piece of memory, at an offset.", _placed_tensor_type, *_PLACED
)
VM_ALLOC_STORAGE = _form(
    "vm.alloc_storage",
    "A piece of memory of ``shape`` (bytes).",
    _storage_type,
    Param("shape", "expr"),
    Param("runtime_device_index", "expr"),
    _dtype_param("dtype"),
    Param("storage_scope", "expr", StringImm("global")),
)


def _kill(name: str, what: str) -> Op:
    return _form(
        name, f"The end of a {what}'s life. Has an effect.", lambda call: UNIT, Param(what, "expr"), pure=False
    )


MEMORY_KILL_TENSOR = _kill("memory.kill_tensor", "tensor")
MEMORY_KILL_STORAGE = _kill("memory.kill_storage", "storage")
VM_KILL_OBJECT = _kill("vm.kill_object", "obj")


def _view_type(call: Call) -> Type:
    data, shape, dtype, offset = call.args
    ty = infer(data)
    if not isinstance(ty, (TensorType, AnyType)):
        fail("memory.view takes a tensor", "a tensor", str(ty), data, call)
    old = ty if isinstance(ty, TensorType) else TensorType(None, None)
    name = old.dtype if _absent(dtype) else _dtype_of(dtype, "memory.view")
    given = ShapeType(tensor_dims(old), old.ndim) if _absent(shape) else _shape_operand("memory.view", shape)
    before, after = tensor_dims(old), given.values
    if before is not None and after is not None and _absent(offset):
        have, need = _bytes(before, old.dtype), _bytes(after, name)
        if have is not None and need is not None and have < need:
            fail("memory.view: the view is larger than the tensor", str(old), f"{given} of {name}", shape, call)
    if _absent(shape):
        kept = old.shape if _absent(dtype) or isinstance(old.shape, ShapeExpr) else None
        return TensorType(kept, name, old.ndim, old.vdevice)
    return TensorType(shape if isinstance(shape, ShapeExpr) else None, name, given.ndim, old.vdevice)


def _bytes(dims: Sequence[Expr], dtype: str | None) -> int | None:
    extents = [d.value for d in dims if isinstance(d, IntImm)]
    if dtype is None or len(extents) != len(dims):
        return None
    return math.prod(extents) * dtypes.nbytes(dtype)


def _absent(value: Expr) -> bool:
    """An argument that was left out: ``R.tuple()``, or ``R.null_value()``."""
    if isinstance(value, Tuple) and not value.fields:
        return True
    if isinstance(value, DataTypeImm):
        return False
    ty = infer(value)
    return isinstance(ty, AnyType) or (isinstance(ty, TupleType) and not ty.fields)


MEMORY_VIEW = _form(
    "memory.view",
    "The same memory seen with another shape, dtype or byte offset.",
    _view_type,
    Param("data", "expr"),
    Param("shape", "expr"),
    Param("dtype", "expr"),
    Param("relative_byte_offset", "expr"),
    prints="view",
)


def memory_view(data: Expr, shape: Any = None, dtype: Any = None, relative_byte_offset: Any = None) -> Call:
    """``R.memory.view(x, R.shape([16]), R.dtype("int32"), R.prim_value(0))``; what is left out is
    ``R.tuple()``, or ``R.null_value()`` for the dtype."""
    nothing = Tuple(())
    made = nothing if shape is None else shape if isinstance(shape, Expr) else ShapeExpr(tuple(shape))
    kind = (
        null_value() if dtype is None else dtype if isinstance(dtype, Expr) else DataTypeImm(dtypes.check_dtype(dtype))
    )
    offset = nothing if relative_byte_offset is None else as_expr(relative_byte_offset)
    return Call(MEMORY_VIEW, (data, made, kind, offset))


@operator("memory.ensure_zero_offset")
def ensure_zero_offset(data: TensorType) -> Type:
    """The same tensor, copied if it does not begin at the start of its memory."""
    return data


ensure_zero_offset.facts["value"] = "argument"

VM_CALL_TIR_DYN = _form(
    "vm.call_tir_dyn",
    "Call a loop function with its buffers and, last, the values of its symbols. Has an effect.",
    lambda call: UNIT,
    Param("func", "expr"),
    Param("args", "expr"),
    pure=False,
)


BUILDERS: dict[str, Callable[..., Call]] = {
    "call_tir_with_grad": call_tir_with_grad,
    "call_inplace_packed": call_inplace_packed,
    "call_builtin_with_ctx": call_builtin_with_ctx,
    "make_closure": make_closure,
    "invoke_closure": invoke_closure,
    "invoke_pure_closure": invoke_pure_closure,
    "call_py_func": call_py_func,
    "assert_op": assert_op,
    "memory.view": memory_view,
    "linear": linear,
    "nn.relu6": relu6,
    "nn.attention": attention_call,
    "nn.attention_bias": attention_call,
}
"""What the names of ``R`` call where a call takes more than the operator's arguments and attributes."""
