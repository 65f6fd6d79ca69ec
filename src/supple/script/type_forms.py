"""Types as users write them: ``R.Tensor(("n", 4), "float32")``, ``R.Tuple``, ``R.Shape``, ``R.Prim``..."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from supple.base.errors import DiagnosticError, NotSupportedError, TypeCheckError
from supple.ir.expr import Var, const, is_scalar
from supple.ir.graph import ShapeExpr
from supple.ir.node import Expr, Type
from supple.ir.types import (
    AnyType,
    DeviceMesh,
    DTensorType,
    FuncType,
    ShapeType,
    StringType,
    TensorType,
    TupleType,
    VDevice,
    prim_type,
)
from supple.script.evaluate import describe
from supple.script.forms import DtypeForm, Form, FormCall, as_dtype, as_name, bind_form
from supple.script.source import frame_span


class Dimensions(Protocol):
    """Turns what stands in a shape into expressions."""

    def dimension(self, value: Any) -> Expr: ...


class Places(Protocol):
    """Finds the module's virtual devices and meshes by their text; not everything that reads types knows them."""

    def vdevice(self, text: str) -> VDevice: ...

    def mesh(self, text: str) -> DeviceMesh: ...


class _Captured:
    """Dimensions outside of a program: ints and nodes; text needs a function's symbols."""

    def dimension(self, value: Any) -> Expr:
        if isinstance(value, Expr) and is_scalar(value):
            return value
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"a dimension must be an integer or a symbol, got {value!r}")
        return const(value.__index__(), "int64")


@dataclass(frozen=True, eq=False)
class TypeForm(Form):
    """A type's name. Called by Python it makes the type at once, unless text in it needs a function's symbols."""

    build: Callable[..., Type] = lambda p: AnyType()

    def as_type(self) -> Type:
        """The type that the bare name says: ``R.Tensor`` is any tensor."""
        return self.build(_Captured())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = FormCall(self, args, kwargs)
        if _needs_symbols(self, args, kwargs):
            return call
        try:
            return bind_form(call, self.build, _Captured())
        except DiagnosticError as error:
            error.span = error.span or frame_span(sys._getframe(1))
            raise error.with_traceback(None) from None
        except (TypeError, ValueError) as error:
            raise TypeCheckError(str(error), frame_span(sys._getframe(1))) from None


def _needs_symbols(form: Form, args: Any, kwargs: Any) -> bool:
    stack: list[Any] = [value for key, value in kwargs.items() if key not in ("dtype", "vdevice", "placement")]
    for position, value in enumerate(args):
        if isinstance(value, str) and form.name in ("R.Tensor", "R.Prim"):
            continue  # a dtype
        if form.name in ("R.Tensor", "R.DTensor") and position > 0:
            continue
        stack.append(value)
    while stack:
        value = stack.pop()
        if isinstance(value, (str, FormCall, TypeVar)):
            return True
        if isinstance(value, (list, tuple)):
            stack.extend(value)
    return False


def as_type(p: Dimensions, value: Any) -> Type:
    """A type from a type, ``R.Tensor`` without parentheses, ``T.int64``, or a captured record of a call."""
    if isinstance(value, Type):
        return value
    if isinstance(value, DtypeForm):
        return prim_type(value.dtype)
    if isinstance(value, TypeForm):
        return value.build(p)
    if isinstance(value, FormCall) and isinstance(value.form, TypeForm):
        made: Type = bind_form(value, value.form.build, p)
        return made
    raise TypeCheckError("expected a type", None, "R.Tensor(shape, dtype), R.Tuple(...), R.Shape(...)", describe(value))


def _shape(p: Dimensions, shape: Any, what: str) -> tuple[Expr, ...]:
    if isinstance(shape, ShapeExpr):
        return shape.values
    if isinstance(shape, (tuple, list)):
        values = tuple(p.dimension(s) for s in shape)
        for value in values:
            if is_scalar(value) and value.ty.dtype != "int64":  # type: ignore[attr-defined]
                raise TypeCheckError(f"{what}: dimensions are int64", None, "int64", value.ty.dtype)  # type: ignore[attr-defined]
        return values
    hint = f"({shape}) is the number {shape}: write ({shape},)" if isinstance(shape, (int, str)) else None
    raise TypeCheckError(f"{what}: the shape must be a tuple", None, "a tuple of dimensions", describe(shape), hint)


def _tensor(p: Dimensions, shape: Any = None, dtype: Any = None, vdevice: Any = None, ndim: Any = -1) -> Type:
    if isinstance(shape, str) and dtype is None:
        shape, dtype = None, shape
    if ndim is None:
        ndim = -1
    device = _place(p, vdevice)
    name = None if dtype in (None, "") else as_dtype(dtype, "R.Tensor: dtype")
    if isinstance(shape, Var) and isinstance(shape.ty, ShapeType):
        return TensorType(shape, name, shape.ty.ndim, device)
    if shape is None:
        return TensorType(None, name, int(ndim), device)
    return TensorType(ShapeExpr(_shape(p, shape, "R.Tensor")), name, int(ndim), device)


def _place(p: Any, vdevice: Any) -> VDevice | None:
    if vdevice is None or isinstance(vdevice, VDevice):
        return vdevice
    if not isinstance(vdevice, str):
        raise TypeError(f"R.Tensor: vdevice must be text such as 'llvm:0' or I.vdevice(...), got {vdevice!r}")
    found: VDevice = p.vdevice(vdevice) if hasattr(p, "vdevice") else VDevice.parse(vdevice)
    return found


def _dtensor(
    p: Any, shape: Any = None, dtype: Any = None, device_mesh: Any = "", placement: Any = "", ndim: Any = -1
) -> Type:
    mesh = device_mesh
    if isinstance(mesh, str):
        if not hasattr(p, "mesh"):
            raise TypeError(f"R.DTensor: {mesh!r} names a mesh of the module: I.module_global_infos({{'mesh': [...]}})")
        mesh = p.mesh(mesh)
    if not isinstance(mesh, DeviceMesh):
        raise TypeError(f"R.DTensor: expected a mesh such as 'mesh[0]' or R.device_mesh(...), got {mesh!r}")
    tensor = _tensor(p, shape, dtype, None, ndim)
    assert isinstance(tensor, TensorType)
    return DTensorType(tensor, mesh, as_name(placement, "R.DTensor: placement"))


def _tuple(p: Dimensions, *fields: Any) -> Type:
    if len(fields) == 1 and isinstance(fields[0], (tuple, list)):
        fields = tuple(fields[0])
    return TupleType(tuple(as_type(p, f) for f in fields))


def _shape_type(p: Dimensions, values: Any = None, ndim: Any = -1) -> Type:
    if values is None:
        return ShapeType(None, int(ndim))
    return ShapeType(_shape(p, values, "R.Shape"), int(ndim))


def _prim(p: Dimensions, dtype: Any = None, value: Any = None) -> Type:
    if value is not None:
        raise NotSupportedError("R.Prim(value=...) is not supported: name the parameter in the shape instead")
    if dtype is None:
        raise TypeError("R.Prim: expected a dtype, such as R.Prim('int64')")
    return prim_type(as_dtype(dtype, "R.Prim"))


def _callable(
    p: Dimensions, params: Any = None, ret: Any = None, purity: bool | None = None, derive_func: Any = None
) -> Type:
    if derive_func is not None:
        raise NotSupportedError("R.Callable(derive_func=...) is not supported: its result is R.Any, or say ret=")
    purity = params is not None if purity is None else purity  # nothing is known of an opaque function
    result = AnyType() if ret is None else as_type(p, ret)
    if params is None:
        return FuncType(None, result, bool(purity))
    items = params if isinstance(params, (tuple, list)) else (params,)
    return FuncType(tuple(as_type(p, t) for t in items), result, bool(purity))


def _any(p: Dimensions) -> Type:
    return AnyType()


Tensor = TypeForm("R.Tensor", "A tensor: R.Tensor((n, 784), 'float32'), R.Tensor(ndim=2), R.Tensor.", build=_tensor)
DTensor = TypeForm(
    "R.DTensor", "A tensor spread over devices: R.DTensor((4,), 'float32', 'mesh[0]', 'R').", build=_dtensor
)
Tuple = TypeForm("R.Tuple", "A tuple: R.Tuple(R.Tensor, R.Shape).", build=_tuple)
Shape = TypeForm("R.Shape", "A shape value: R.Shape(['n', 4]), R.Shape(ndim=2).", build=_shape_type)
Prim = TypeForm("R.Prim", "A scalar: R.Prim('int64').", build=_prim)
Callable_ = TypeForm("R.Callable", "A function: R.Callable((R.Tensor,), R.Tensor, purity=True).", build=_callable)
String = TypeForm("R.String", "A string value.", build=lambda p: StringType())
Any_ = TypeForm("R.Any", "Any value.", build=_any)
