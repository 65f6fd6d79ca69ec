"""How an operator is declared: one decorated type rule holds everything intrinsic to it.

::

    @operator(fusion=Fusion.ELEMENTWISE, lower=..., ref=..., samples=lambda: [sample((3, 4))])
    def exp(x: TensorType) -> Type:
        \"\"\"e to the power of each element.\"\"\"
        return x

The rule's parameters are the operator's signature. Their annotations say what each takes: ``TensorType``, ``Operand``
(a tensor, or a number, which the rule sees as a tensor without dimensions) and ``Tensors`` (the rule sees types),
``Expr``, ``Shape``, ``Scalar``, ``Scalars`` (it sees expressions), or an attribute: ``int``, ``bool``, ``float``,
``Floats``, ``Number``, ``str``, ``DType``, ``Axes``, ``Axis``, ``Sections``, ``Mesh``, ``Mapping``.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np

from supple.base import dtypes
from supple.base.errors import TypeCheckError
from supple.build.infer import infer
from supple.ir.expr import TENSOR_OPERATORS, Call, IntImm, is_scalar, place_of_use
from supple.ir.graph import ShapeExpr
from supple.ir.loop import IndexMap
from supple.ir.node import Expr, Type
from supple.ir.op import OPS, REQUIRED, Fusion, Op, Param
from supple.ir.structural import structural_equal
from supple.ir.types import (
    AnyType,
    DeviceMesh,
    DTensorType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
    VDevice,
    on_device,
)

Tensors: TypeAlias = list[TensorType]
Operand: TypeAlias = TensorType
Shape: TypeAlias = Expr
Scalar: TypeAlias = Expr
Scalars: TypeAlias = Expr
DType: TypeAlias = str | None
Axes: TypeAlias = tuple[int, ...] | None
Axis: TypeAlias = int | None
Floats: TypeAlias = tuple[float, ...] | None
Number: TypeAlias = int | float | None
Mapping: TypeAlias = IndexMap
Sections: TypeAlias = int | tuple[int, ...]
Mesh: TypeAlias = DeviceMesh


def _int(value: Any) -> int:
    if isinstance(value, IntImm):
        return value.value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"expected an integer, got {value!r}")
    return int(value.__index__())


def _bool(value: Any) -> bool:
    if isinstance(value, IntImm):
        value = value.value
    if not hasattr(value, "__index__") and not isinstance(value, np.bool_):
        raise TypeError(f"expected a bool, got {value!r}")
    return bool(value)


def _axes(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    return tuple(_int(v) for v in value) if isinstance(value, (list, tuple)) else (_int(value),)


def _float(value: Any) -> float:
    return float(getattr(value, "value", value))


def _floats(value: Any) -> tuple[float, ...] | None:
    if value is None:
        return None
    return tuple(_float(v) for v in value) if isinstance(value, (list, tuple)) else (_float(value),)


def _number(value: Any) -> int | float | None:
    value = getattr(value, "value", value)
    if value is not None and not isinstance(value, (int, float)):
        raise TypeError(f"expected a number, got {value!r}")
    return value


def _mapping(value: Any) -> IndexMap:
    if isinstance(value, IndexMap):
        return value
    if not callable(value):
        raise TypeError(f"expected a map of indices such as lambda i, j: (j, i), got {value!r}")
    return IndexMap.from_func(value)


def _dtype(value: Any) -> str | None:
    if value is None or value in ("", "void"):
        return None
    return dtypes.check_dtype(value if isinstance(value, str) else dtypes.from_numpy(value))


def _str(value: Any) -> str:
    value = getattr(value, "value", value)
    if not isinstance(value, str):
        raise TypeError(f"expected a string, got {value!r}")
    return str(value)  # a plain one: a placement is a text as well


def _sections(value: Any) -> int | tuple[int, ...]:
    return tuple(_int(v) for v in value) if isinstance(value, (list, tuple)) else _int(value)


def _mesh(value: Any) -> DeviceMesh:
    if not isinstance(value, DeviceMesh):
        raise TypeError(f"expected a mesh such as R.device_mesh((2,), (0, 1)), got {value!r}")
    return value


def _optional(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


_ARGUMENTS = {"TensorType": "tensor", "Operand": "operand", "Tensors": "tuple", "Shape": "shape", "Scalar": "scalar"}
_ARGUMENTS |= {"Scalars": "scalars", "Expr": "expr"}
_ATTRIBUTES: dict[str, Callable[[Any], Any]] = {
    "int": _int,
    "bool": _bool,
    "float": _float,
    "Floats": _floats,
    "Number": _number,
    "Mapping": _mapping,
    "str": _str,
    "DType": _dtype,
    "Axes": _axes,
    "Axis": _optional(_int),
    "Sections": _sections,
    "Mesh": _mesh,
}


def _params(rule: Callable[..., Any]) -> tuple[Param, ...]:
    found = []
    for p in inspect.signature(rule).parameters.values():
        annotation = str(p.annotation).removesuffix(" | None")
        default = REQUIRED if p.default is p.empty else p.default
        if p.kind is p.VAR_POSITIONAL:
            found.append(Param(p.name, "varargs", ()))
        elif annotation in _ARGUMENTS:
            found.append(Param(p.name, _ARGUMENTS[annotation], default))
        elif annotation in _ATTRIBUTES:
            convert = _optional(_ATTRIBUTES[annotation]) if default is None else _ATTRIBUTES[annotation]
            found.append(Param(p.name, "attr", default if default is REQUIRED else convert(default), convert))
        else:
            raise TypeError(f"{rule.__name__}: parameter {p.name} has no known kind ({annotation})")
    return tuple(found)


@dataclass
class Sample:
    """Arguments for one test call. A tuple of ints is the shape of a float32 tensor, an array is itself, a list is a
    tuple of tensors, `ShapeOf` is a shape argument. ``static``: the type rule needs the extents as numbers."""

    args: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    static: bool = False


@dataclass(frozen=True)
class ShapeOf:
    """A shape argument of a sample."""

    values: tuple[int, ...]


def sample(*args: Any, **attrs: Any) -> Sample:
    """A `Sample` of positional arguments and attributes."""
    return Sample(args, attrs)


def static_sample(*args: Any, **attrs: Any) -> Sample:
    """A `Sample` that is not tried with symbolic extents."""
    return Sample(args, attrs, static=True)


def _quiet(ref: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """The reference without numpy's warnings: NaN and infinities are values like others."""
    if ref is None:
        return None

    def quiet(*args: Any, **attrs: Any) -> Any:
        with np.errstate(all="ignore"):
            return ref(*args, **attrs)

    return quiet


def operator(
    name: str | None = None,
    *,
    fusion: Fusion = Fusion.OPAQUE,
    lower: Callable[..., Any] | None = None,
    ref: Callable[..., Any] | None = None,
    samples: Callable[[], list[Sample]] | None = None,
    python: str | None = None,
    pure: bool = True,
    **facts: Any,
) -> Callable[[Callable[..., Type]], Op]:
    """Declare an operator by its type rule (see the module's text).

    ``name`` is the name below ``relax.`` (the rule's own name if absent); ``lower(*tensors, **attributes)`` is its
    compute definition, ``ref(*arrays, **attributes)`` its value by numpy, ``python`` the Python operator it stands for.
    Among the other facts, ``kernel`` is the name of the loop function where Relax's is not the operator's own: text, or
    a function of the call; ``reads`` says which operands are the loop function's tensors, in its order, where these are
    not all of them in theirs (of the others only the types count); ``device`` whose virtual device the results have
    (see `Place`), and ``shape_of`` which operand's shape the result has where that is a variable: its number, a
    function of the attributes, or `NO_OPERAND` where Relax's type keeps the rank alone. Where numbers have
    ``typed_numbers``, the reference sees each as an array of its dtype.
    """

    def declare(rule: Callable[..., Type]) -> Op:
        full = f"relax.{name or rule.__name__}"
        params = _params(rule)
        op = Op(
            full,
            inspect.getdoc(rule) or "",
            params,
            _checked(rule, full, params, fusion, facts),
            fusion,
            pure,
            lower,
            _quiet(ref),
            samples,
            facts,
        )
        if python is not None:
            TENSOR_OPERATORS[python] = op
        return OPS.register(full, op)

    return declare


NO_OPERAND = "no operand"


class Place(enum.Enum):
    """Whose virtual device the results of an operator have, where it is not the first operand's alone. A tuple of
    numbers of operands stands for the results' one by one."""

    COMMON = "that of any operand; operands that live apart are refused"
    ANY = "that of any operand; unknown where operands live apart"
    NONE = "no device"


def _checked(
    rule: Callable[..., Type], name: str, params: tuple[Param, ...], fusion: Fusion, facts: dict[str, Any]
) -> Callable[[Call], Type]:
    """The type rule on a call: looks up the arguments' types, runs the rule, and places its result."""
    spreads = fusion in (Fusion.ELEMENTWISE, Fusion.BROADCAST)
    place = facts.get("device", Place.COMMON if params and params[0].kind == "operand" else None)

    def infer_call(call: Call) -> Type:
        spread: list[DTensorType] = []
        by_variable: list[tuple[TensorType, TensorType]] = []
        values = _rule_arguments(call, name, params, spread)
        if not spreads:
            values = [_rank_only(v, by_variable) for v in values]
        result = rule(*values, **call.attrs)
        if params and params[0].kind == "operand" and all(map(is_scalar, call.args)):
            return PrimType(result.dtype)  # type: ignore[attr-defined]
        if by_variable:
            same = facts.get("shape_of")
            result = _given_back(result, by_variable) if same is not NO_OPERAND else result
            operand = same(call.attrs) if callable(same) else same
            if isinstance(operand, int) and isinstance(result, TensorType) and result.shape is None:
                result = next((_shaped_as(result, v) for seen, v in by_variable if seen is values[operand]), result)
        if spread:
            return _spread(result, spread, values, call, name, fusion)
        if not _devices(values):
            return result
        return _placed(result, values, place, name, call)

    return infer_call


def _shaped_as(ty: TensorType, other: TensorType) -> TensorType:
    return TensorType(other.shape, ty.dtype, other.ndim, ty.vdevice)


def _placed(result: Type, values: list[Any], place: Any, name: str, call: Call) -> Type:
    """The result on the virtual device that ``place`` says."""
    if isinstance(place, Place):
        devices = _devices(values)
        if place is Place.COMMON and len(devices) > 1:
            found = " and ".join(f"{d.kind}:{d.vdevice_id}:{d.memory_scope}" for d in devices)
            fail(f"{name}: tensors of different virtual devices", "one device", found, call=call, hint="R.to_vdevice")
        return on_device(result, devices[0] if place is not Place.NONE and len(devices) == 1 else None)
    if isinstance(result, TupleType) and place is not None:
        fields = zip(result.fields, place, strict=True)
        return TupleType(tuple(on_device(f, _device_of(values[p])) for f, p in fields))
    first = next(v for v in values if isinstance(v, (TensorType, list)))
    return on_device(result, _device_of(first if place is None else values[place[0]]))


def _device_of(value: Any) -> VDevice | None:
    found = _devices([value])
    return found[0] if len(found) == 1 else None


def _rank_only(value: Any, by_variable: list[tuple[TensorType, TensorType]]) -> Any:
    """A tensor whose shape is a variable, as a rule sees it (except where operands broadcast): its rank counts, what
    the variable may hold does not, as in Relax. The pairs of what is seen and what it was are noted."""
    if isinstance(value, list):
        return [_rank_only(v, by_variable) for v in value]
    if not isinstance(value, TensorType) or value.shape is None or isinstance(value.shape, ShapeExpr):
        return value
    seen = TensorType(None, value.dtype, value.ndim, value.vdevice)
    by_variable.append((seen, value))
    return seen


def _given_back(ty: Type, by_variable: list[tuple[TensorType, TensorType]]) -> Type:
    """A result that is an operand's type keeps the variable as its shape."""
    if isinstance(ty, TupleType):
        return TupleType(tuple(_given_back(f, by_variable) for f in ty.fields))
    return next((value for seen, value in by_variable if seen is ty), ty)


def _spread(result: Type, spread: list[DTensorType], values: list[Any], call: Call, name: str, fusion: Fusion) -> Type:
    """The result of an operator on distributed tensors: elementwise ones keep a placement that all operands share."""
    first = spread[0]
    if fusion not in (Fusion.ELEMENTWISE, Fusion.BROADCAST):
        fail(f"{name} does not take distributed tensors", "R.Tensor", str(first), call=call, hint="R.dist.redistribute")
    assert isinstance(result, TensorType), "elementwise operators give tensors"
    whole = sum(isinstance(v, TensorType) for v in values)
    alike = all(
        d.placement == first.placement
        and structural_equal(d.device_mesh, first.device_mesh)
        and structural_equal(d.tensor_ty, first.tensor_ty)
        for d in spread
    )
    if len(spread) != whole or not alike:
        found = ", ".join(str(d) for d in spread)
        fail(f"{name}: distributed tensors must be placed alike", str(first), found, call=call)
    return DTensorType(result, first.device_mesh, first.placement)


def _devices(values: list[Any]) -> list[VDevice]:
    """The different virtual devices of the tensors among the rule's arguments."""
    found: list[VDevice] = []
    for value in values:
        for ty in value if isinstance(value, list) else (value,):
            if isinstance(ty, TensorType) and isinstance(ty.vdevice, VDevice):
                if not any(structural_equal(ty.vdevice, d) for d in found):
                    found.append(ty.vdevice)
    return found


def _rule_arguments(call: Call, name: str, params: tuple[Param, ...], spread: list[DTensorType]) -> list[Any]:
    """What the rule sees of each argument; the types of distributed tensors are appended to ``spread``."""
    values: list[Any] = []
    args = list(call.args)
    for param in params:
        if param.is_attr:
            continue
        if param.kind == "varargs":
            values.extend(args)
            args = []
        elif args:
            values.append(_seen_by_rule(args.pop(0), name, param, call, spread))
        elif param.default is not REQUIRED:
            values.append(param.default)
        else:
            fail(f"{name}: parameter {param.name} is missing")
    if args:
        fail(f"{name}: {len(args)} arguments too many")
    return values


def _seen_by_rule(arg: Expr, name: str, param: Param, call: Call, spread: list[DTensorType]) -> Any:
    if param.kind in ("tensor", "operand"):
        given = infer(arg)
        if param.kind == "operand" and isinstance(given, PrimType):
            return TensorType(ShapeExpr(()), given.dtype)
        if isinstance(given, DTensorType):
            spread.append(given)
            return given.tensor_ty
        return _tensor_type(given, name, param.name, arg, call)
    if param.kind == "tuple":
        ty = infer(arg)
        if not isinstance(ty, TupleType):
            fail(f"{name}: parameter {param.name} takes a tuple of tensors", "a tuple of tensors", str(ty), arg, call)
        return [_tensor_type(f, name, f"{param.name}[{i}]", arg, call) for i, f in enumerate(ty.fields)]
    if param.kind == "shape" and not isinstance(ty := infer(arg), ShapeType):
        hint = "R.match_cast(x, R.Shape(...))" if isinstance(ty, AnyType) else None
        hint = "R.tensor_to_shape(x)" if isinstance(ty, TensorType) else hint
        fail(f"{name}: parameter {param.name} takes a shape", "a shape", str(ty), arg, call, hint)
    return arg


def _tensor_type(ty: Type, name: str, param: str, arg: Expr, call: Call) -> TensorType:
    if not isinstance(ty, TensorType):
        hint = "R.match_cast(x, R.Tensor(...))" if isinstance(ty, AnyType) else None
        fail(f"{name}: parameter {param} takes a tensor", "a tensor", str(ty), arg, call, hint)
    return ty


def fail(
    message: str,
    expected: str | None = None,
    actual: str | None = None,
    arg: Expr | None = None,
    call: Call | None = None,
    hint: str | None = None,
) -> NoReturn:
    """Refuse a call: raises `TypeCheckError` at the argument's place if it has one."""
    raise TypeCheckError(
        message, span=place_of_use(arg, call), expected=expected, actual=actual, hint=hint, rule="operator"
    )


def random_array(shape: Sequence[int], dtype: str, seed: int) -> Any:
    """Test data of a dtype: floats in [-2, 2), small integers, random bools."""
    rng = np.random.default_rng(seed)
    row = dtypes.row(dtype)
    if row.kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if row.kind == "float":
        return rng.uniform(-2, 2, shape).astype(dtypes.to_numpy(dtype))
    return rng.integers(0 if row.kind == "uint" else -9, 10, shape).astype(dtypes.to_numpy(dtype))
