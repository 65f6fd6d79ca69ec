"""Calls by destination passing, calls into Python, and the small forms beside them, as host IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from supple.analysis.returns import result_dtype
from supple.base.errors import NotSupportedError
from supple.base.source import Span
from supple.build.infer import packed_result
from supple.ir import expr as E
from supple.ir import host as H
from supple.ir.expr import Call, Var
from supple.ir.graph import ExternFunc, ShapeExpr
from supple.ir.host import show_shape, show_type
from supple.ir.loop import PrimFunc
from supple.ir.node import Expr
from supple.ir.op import OPS, Op
from supple.ir.types import BufferType, ShapeType, TensorType, result_types
from supple.ops import calls, forms
from supple.passes.host_lowering import (
    Handler,
    Lowering,
    fields_of,
    packaged,
    type_of,
)
from supple.passes.host_values import (
    NumberValue,
    ObjectValue,
    ShapeValue,
    TensorValue,
    TupleValue,
    Value,
    Where,
    nbytes_of,
)
from supple.runtime.abi import ErrorSite
from supple.runtime.program import PackedCall
from supple.sym.simplify import SHAPES, product

# ----------------------------------------------------------------------------------------------------- loop functions


def call_tir(low: Lowering, e: Call, var: Var | None) -> Value:
    """``call_tir`` (and ``call_tir_with_grad``, whose gradient is no matter here): fresh results.

    A loop function should only read its inputs. One that writes into them does so as in ``call_tir_inplace``.
    """
    name, func, info = low.kernel_of(e, "call_tir")
    inputs = [low.value(a) for a in fields_of(e.args[1])]
    for place in sorted(p for p in low.host.stored(func) if p < len(inputs)):
        target = inputs[place]
        if isinstance(target, TensorValue):
            inputs[place] = writable(low, target, f"call_tir of {name}: argument {place}", e.span)
    outputs = low.outputs(e, var)
    low.kernel_calls.bind(name, info, [*inputs, *outputs, *_extra_numbers(low, e)], e.span)
    return packaged(e, outputs)


def call_tir_inplace(low: Lowering, e: Call, var: Var | None) -> Value:
    """``call_tir_inplace``: results are arguments, overwritten, where ``inplace_indices`` says so.

    A constant is copied first. Memory of the caller is written where it may be: a read-only array, or the compact copy
    of one that was not, is an error when the call runs, and so is memory that overlaps another argument's.
    """
    name, func, info = low.kernel_of(e, "call_tir_inplace")
    what = f"call_tir_inplace of {name}"
    places: Sequence[int] = e.attrs["inplace_indices"]
    inputs = _arguments(low, func, fields_of(e.args[1]), what, e.span)
    results: list[Value] = []
    fresh: list[Value] = []
    types = result_types(e.ty_args)
    for ty, place in zip(types, places, strict=True):
        if place < 0:
            fresh.append(low.output(ty, e, var))
            results.append(fresh[-1])
            continue
        target = inputs[place]
        if not isinstance(target, TensorValue):
            raise NotSupportedError(f"{low.name}: {what}: argument {place} is no tensor", e.span)
        target = writable(low, target, f"{what}: argument {place}", e.span)
        inputs[place] = target
        result: Value = target
        if isinstance(ty, TensorType) and target.shape is not None:
            where = Where("match", f"{low.name}: result of {what}", show_type(ty), f"argument {place}", e.span)
            result = low.match_tensor(target, ty, where)
            low.check.finish()
        results.append(result)
    require_disjoint(low, what, inputs, {p for p in places if p >= 0}, e.span)
    low.kernel_calls.bind(name, info, [*inputs, *fresh, *_extra_numbers(low, e)], e.span)
    return results[0] if len(results) == 1 else TupleValue(tuple(results))


def call_tir_dyn(low: Lowering, e: Call, var: Var | None) -> Value:
    """``vm.call_tir_dyn``: a loop function on all its buffers, and last a shape of the values of its symbols."""
    name, func, info = low.kernel_of(e, "vm.call_tir_dyn")
    what = f"vm.call_tir_dyn of {name}"
    args = list(fields_of(e.args[1]))
    numbers: list[Value] = []
    if args and isinstance(getattr(args[-1], "ty", None), ShapeType):
        last = low.value(args.pop())
        if not isinstance(last, ShapeValue):
            raise NotSupportedError(f"{low.name}: {what}: a shape of unknown rank", e.span)
        numbers = [NumberValue(v) for v in last.values]
    values = _writable_arguments(low, func, args, what, e.span)
    low.kernel_calls.bind(name, info, [*values, *numbers], e.span)
    return TupleValue(())


def loop_call(low: Lowering, e: Call, name: str, func: PrimFunc) -> Value:
    """A loop function that returns a number, called directly."""
    dtype = result_dtype(func)
    if dtype is None:
        raise NotSupportedError(
            f"{low.name}: {name} is a loop function that returns nothing", e.span, hint="call_tir runs it"
        )
    what = f"call of {name}"
    values = _writable_arguments(low, func, e.args, what, e.span)
    low.emit(H.ClearReturn())
    low.kernel_calls.bind(name, low.kernels[name], values, e.span)
    flag, number = low.check.number("returned", "bool"), low.check.number(name, dtype)
    low.emit(H.TakeReturn(flag, number))
    low.emit(H.Require(flag, (), ErrorSite("match", f"{low.name}: {name} returned nothing", e.span)))
    low.check.define(number, name)
    low.check.signed.add(id(number))
    return NumberValue(number)


def _writable_arguments(
    low: Lowering, func: PrimFunc, args: Sequence[Expr], what: str, span: Span | None
) -> list[Value]:
    """Arguments for all parameters of a loop function; those that it writes may be written, and overlap no other."""
    values = _arguments(low, func, args, what, span)
    places = {p for p in low.host.written(func) if p < len(values)}
    for place in sorted(places):
        target = values[place]
        assert isinstance(target, TensorValue)
        if target.constant and place in low.host.stored(func):
            raise NotSupportedError(f"{low.name}: {what} writes into a constant (argument {place})", span)
        values[place] = writable(low, target, f"{what}: argument {place}", span)
    require_disjoint(low, what, values, places, span)
    return values


def _arguments(low: Lowering, func: PrimFunc, args: Sequence[Expr], what: str, span: Span | None) -> list[Value]:
    """The values of arguments; those for buffers as tensors of the buffer's dtype and rank."""
    values: list[Value] = []
    for place, arg in enumerate(args):
        ty = func.params[place].ty if place < len(func.params) else None
        if isinstance(ty, BufferType):
            values.append(low.tensor(arg, f"{what}: argument {place}", span, ty.dtype, len(ty.shape)))
        else:
            values.append(low.value(arg))
    return values


def _extra_numbers(low: Lowering, e: Call) -> list[Value]:
    """The values of ``tir_vars``."""
    if len(e.args) <= 2:
        return []
    shape = low.value(e.args[2])
    assert isinstance(shape, ShapeValue)
    return [NumberValue(v) for v in shape.values]


def writable(low: Lowering, value: TensorValue, what: str, span: Span | None) -> TensorValue:
    """A tensor that may be written: the value itself, checked when it runs if its memory came from elsewhere; a copy
    of a constant."""
    if value.root is not None:
        return value
    if value.constant:
        return low.copied(value)
    assert value.object is not None
    message = f"{low.name}: {what}: its memory may not be written: the array is read-only, or had to be copied"
    low.emit(H.CheckWritable(value.object, ErrorSite("write", message, span)))
    return value


def require_disjoint(low: Lowering, what: str, values: Sequence[Value], written: set[int], span: Span | None) -> None:
    """Fail when a written argument shares memory with another one."""
    checked: set[tuple[int, int]] = set()
    for place in sorted(written):
        target = values[place] if place < len(values) else None
        if not isinstance(target, TensorValue):
            continue
        for other_place, other in enumerate(values):
            pair = (min(place, other_place), max(place, other_place))
            if other_place == place or not isinstance(other, TensorValue) or pair in checked:
                continue
            checked.add(pair)
            if _surely_disjoint(target, other):
                continue
            message = f"{low.name}: {what}: it writes into argument {place}, which shares memory with {other_place}"
            site = ErrorSite("write", message, span)
            low.emit(H.CheckDisjoint(target.memory, _nbytes(target), other.memory, _nbytes(other), site))


def _nbytes(value: TensorValue) -> Expr:
    assert value.shape is not None
    assert value.dtype is not None
    return nbytes_of(value.shape, value.dtype)


def _surely_disjoint(a: TensorValue, b: TensorValue) -> bool:
    """Memory that this function allocated is no other's, unless it was given away as an object."""
    if a.constant or b.constant:  # what is written is never a constant's own memory
        return True
    if a.root is b.root:
        return False
    if a.root is not None and b.root is not None:
        return True
    return any(v.root is not None and v.object is None for v in (a, b))


# -------------------------------------------------------------------------------------------------------- into Python


def packed(low: Lowering, e: Call, callee: Expr, args: Sequence[Expr], var: Var | None) -> Value:
    """A call of a registered function."""
    name = _packed_name(low, callee, "packed calls need", e)
    result = low.python(PackedCall(name), low.objects(args), var, e.span)
    return low.adopted(result, packed_result(e.ty_args), f"result of packed function {name}", e.span)


def _packed_name(low: Lowering, callee: Expr, what: str, e: Call) -> str:
    if not isinstance(callee, ExternFunc):
        raise NotSupportedError(f"{low.name}: {what} a registered function's name", e.span)
    return callee.global_symbol


def pure_packed(low: Lowering, e: Call, var: Var | None) -> Value:
    """``call_pure_packed``."""
    return packed(low, e, e.args[0], e.args[1:], var)


def call_dps_packed(low: Lowering, e: Call, var: Var | None) -> Value:
    """``call_dps_packed``: the registered function fills fresh results."""
    name = _packed_name(low, e.args[0], "call_dps_packed needs", e)
    inputs = low.objects(fields_of(e.args[1]))
    outputs = low.outputs(e, None)
    low.python(PackedCall(name), (*inputs, *(low.object(o) for o in outputs)), None, e.span)
    return packaged(e, outputs)


def call_inplace_packed(low: Lowering, e: Call, var: Var | None) -> Value:
    """``call_inplace_packed``: results are arguments, which the registered function overwrites."""
    name = _packed_name(low, e.args[0], "call_inplace_packed needs", e)
    places: Sequence[int] = e.attrs["inplace_indices"]
    values = [low.value(a) for a in e.args[1:]]
    for place in sorted(p for p in set(places) if p >= 0):
        target = values[place]
        if isinstance(target, TensorValue):
            values[place] = writable(low, target, f"call_inplace_packed of {name}: argument {place}", e.span)
    args = tuple(low.object(v) for v in values)
    answer = low.python(PackedCall(name), args, None, e.span)
    results: list[Value] = []
    for index, (ty, place) in enumerate(zip(e.ty_args, places, strict=True)):
        what = f"result {index} of packed function {name}"
        if place >= 0:
            obj = args[place]
        else:
            obj = answer if len(places) == 1 else low.tuple_field(answer, index, what, e.span)
        results.append(low.adopted(obj, ty, what, e.span))
    return results[0] if len(results) == 1 else TupleValue(tuple(results))


def call_builtin_with_ctx(low: Lowering, e: Call, var: Var | None) -> Value:
    """``call_builtin_with_ctx``: the registered function gets the executable first."""
    name = _packed_name(low, e.args[0], "call_builtin_with_ctx needs", e)
    result = low.python(PackedCall(name, kind="context"), low.objects(fields_of(e.args[1])), var, e.span)
    return low.adopted(result, packed_result(e.ty_args), f"result of packed function {name}", e.span)


def print_values(low: Lowering, e: Call, var: Var | None) -> Value:
    """``print``."""
    args = low.objects([a for value in e.args for a in fields_of(value)])
    low.python(PackedCall(calls.print_.name, str(e.attrs.get("format", "")), "print"), args, var, e.span)
    return TupleValue(())


def assert_op(low: Lowering, e: Call, var: Var | None) -> Value:
    """``assert_op``: Python is only called to word the failure."""
    condition = low.condition(e.args[0], "the condition of assert_op")
    outer, low.check.out = low.check.out, []
    args = low.objects(e.args[1:])
    call = PackedCall(forms.ASSERT_OP.name, str(e.attrs.get("format", "")), "assert")
    low.python(call, args, None, e.span)
    failing = tuple(low.check.out)
    low.check.out = outer
    low.emit(H.Branch(condition, (), failing, None, span=e.span))
    return TupleValue(())


def null_value(low: Lowering, e: Call, var: Var | None) -> Value:
    """``null_value``: Python's None as an object."""
    obj = low.check.fresh("null")
    low.emit(H.ConstantObject(obj, low.host.nothing()))
    return ObjectValue(obj, null=True)


# -------------------------------------------------------------------------------------------------- shapes and tensors


def shape_of(low: Lowering, e: Call, var: Var | None) -> Value:
    """``shape_of``."""
    value = low.value(e.args[0])
    if not isinstance(value, TensorValue) or value.shape is None:
        raise NotSupportedError(
            f"{low.name}: shape_of a tensor of unknown rank is not supported",
            e.span,
            hint="use R.match_cast(value, R.Tensor((n, ...), dtype)) to name the dimensions",
        )
    return ShapeValue(value.shape)


def tensor_to_shape(low: Lowering, e: Call, var: Var | None) -> Value:
    """``tensor_to_shape``: a shape object of the tensor's elements, whose length is checked if it is declared."""
    value = low.tensor(e.args[0], "the operand of tensor_to_shape", e.span, "int64", 1)
    if value.dtype != "int64" or value.shape is None or len(value.shape) != 1:
        raise NotSupportedError(f"{low.name}: tensor_to_shape takes an int64 tensor of one dimension", e.span)
    shape = low.check.fresh(var.name if var is not None else "shape")
    low.emit(H.ShapeFrom(shape, value.memory, value.shape[0]))
    return low.adopted(shape, type_of(e, var), "tensor_to_shape", e.span)


def reshape(low: Lowering, e: Call, var: Var | None) -> Value:
    """A view of the same elements: nothing is moved, since tensors are compact."""
    value = low.value(e.args[0])
    ty = type_of(e, var)
    if not isinstance(value, TensorValue) or value.shape is None or value.dtype is None:
        raise NotSupportedError(f"{low.name}: reshape of a tensor of unknown rank or dtype", e.span)
    if not isinstance(ty, TensorType) or not isinstance(ty.shape, ShapeExpr):
        raise NotSupportedError(f"{low.name}: reshape to a shape of unknown rank", e.span)
    shape = tuple(low.numbers(v) for v in ty.shape.values)
    low.require_sizes(shape, e.span)
    before, after = product(value.shape), product(shape)
    if SHAPES.equal(before, after) is not True:
        message = f"{low.name}: reshape of {show_shape(value.shape)} to {show_shape(shape)}: "
        site = ErrorSite("size", message + "{0} elements become {1}", e.span)
        low.emit(H.Require(E.EQ(before, after), (before, after), site))
    return replace(value, shape=shape, view=value.object is not None)


def operand(low: Lowering, e: Call, var: Var | None) -> Value:
    """Forms whose value is their operand's."""
    return low.value(e.args[0])


def nothing(low: Lowering, e: Call, var: Var | None) -> Value:
    """The end of a value's life: its memory goes with its last use anyway."""
    for arg in e.args:
        low.value(arg)
    return TupleValue(())


CALLS: Mapping[Op, Handler] = {
    calls.CALL_TIR: call_tir,
    forms.CALL_TIR_WITH_GRAD: call_tir,
    calls.CALL_TIR_INPLACE: call_tir_inplace,
    forms.VM_CALL_TIR_DYN: call_tir_dyn,
    calls.CALL_PURE_PACKED: pure_packed,
    calls.CALL_DPS_PACKED: call_dps_packed,
    forms.CALL_INPLACE_PACKED: call_inplace_packed,
    forms.CALL_BUILTIN_WITH_CTX: call_builtin_with_ctx,
    calls.print_: print_values,
    forms.ASSERT_OP: assert_op,
    forms.null_value: null_value,
    calls.shape_of: shape_of,
    forms.tensor_to_shape: tensor_to_shape,
    **{op: reshape for _, op in OPS.items() if op.facts.get("view")},
    forms.TO_VDEVICE: operand,
    forms.HINT_ON_DEVICE: operand,
    forms.stop_lift_params: operand,
}
"""Operator -> its lowering."""
