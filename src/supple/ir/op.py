"""What an operator is. Declarations live in ``supple.ops``; parser, printer, builder, passes and docs read this."""

from __future__ import annotations

import enum
import inspect
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import ArgumentError, RegistryError, UnknownOperatorError
from supple.base.registry import Registry, did_you_mean
from supple.ir.expr import CALLEES, Call, as_expr, cast, graph_scalar, is_scalar, scalar_dtype
from supple.ir.graph import Constant, DataTypeImm, ShapeExpr, Tuple, constant
from supple.ir.node import Expr, Node, Type, ignored, node, replace
from supple.ir.types import TensorType
from supple.runtime.device import Device


class Fusion(enum.IntEnum):
    """How an operator may be fused (Relax's ``OpPatternKind``)."""

    ELEMENTWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    REDUCTION = 3
    OUT_FUSABLE = 4
    OPAQUE = 8


REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "REQUIRED"})()


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of an operator's signature.

    ``kind`` says what it takes: ``"tensor"``, ``"operand"`` (a tensor or a number), ``"expr"`` (any graph value),
    ``"tuple"`` of tensors, ``"shape"``, ``"scalar"``, ``"scalars"`` (a tuple of them), ``"dtype_value"`` and
    ``"varargs"`` (any number of graph values) are *arguments* (expressions, ``Call.args``); ``"attr"`` is a
    compile-time attribute (``Call.attrs``).
    ``convert`` turns what the user wrote into the attribute's canonical value, raising TypeError or ValueError.
    """

    name: str
    kind: str = "tensor"
    default: Any = REQUIRED
    convert: Callable[[Any], Any] | None = None

    @property
    def is_attr(self) -> bool:
        return self.kind == "attr"


@node
class Op(Expr):
    """An operator: ``relax.add``, ``tirx.exp``. One object a name; compared by identity.

    ``infer(call) -> Type`` is the type rule; it raises `TypeCheckError` for operands that do not fit.
    ``lower`` builds the compute definition; ``ref`` computes the value with numpy; ``samples`` make test calls.
    """

    name: str = ignored()
    doc: str = ignored(default="")
    params: tuple[Param, ...] = ignored(default=())
    infer: Callable[[Call], Type] | None = ignored(default=None)
    fusion: Fusion = ignored(default=Fusion.OPAQUE)
    pure: bool = ignored(default=True)
    lower: Callable[..., Any] | None = ignored(default=None)
    ref: Callable[..., Any] | None = ignored(default=None)
    samples: Callable[[], list[Any]] | None = ignored(default=None)
    facts: dict[str, Any] = ignored(default_factory=dict)
    said: dict[str, tuple[int, Any]] = ignored(default_factory=dict)

    @property
    def ty(self) -> Type | None:
        return None

    @property
    def num_inputs(self) -> int:
        """How many operands the signature has; -1 where it takes any number."""
        operands = [p for p in self.params if not p.is_attr]
        return -1 if any(p.kind == "varargs" for p in operands) else len(operands)

    @property
    def description(self) -> str:
        """What the operator does."""
        return self.doc

    @staticmethod
    def list_op_names() -> list[str]:
        """The full names of all operators."""
        OPS.find("")  # declares the operators, if nothing did
        return sorted(name for name, _ in OPS.items())

    def has_attr(self, attr_name: str) -> bool:
        """Whether an attribute of that name is known for the operator: ``"FPurity"``, and what `set_attr` kept."""
        return attr_name == "FPurity" or attr_name in self.said

    def get_attr(self, attr_name: str) -> Any:
        """An attribute of the operator: its purity for ``"FPurity"``, else what `set_attr` kept, or None."""
        return self.said[attr_name][1] if attr_name in self.said else self.pure if attr_name == "FPurity" else None

    def set_attr(self, attr_name: str, value: Any, plevel: int = 10) -> None:
        """Keep a value under a name, for `get_attr`: a note of the program's own, which no pass of Supple reads.

        Of two values the one of the higher level stays. Raises ``ValueError`` for the same level twice.
        """
        level, _ = self.said.get(attr_name, (-1, None))
        if level == plevel:
            raise ValueError(f"{self.name}: attribute {attr_name!r} is set already at level {plevel}")
        if plevel > level:
            self.said[attr_name] = (plevel, value)

    def reset_attr(self, attr_name: str) -> None:
        """Forget what `set_attr` kept under a name."""
        self.said.pop(attr_name, None)

    @property
    def arguments(self) -> tuple[Param, ...]:
        """The operands of the signature: each has a ``name``."""
        return tuple(p for p in self.params if not p.is_attr)

    @property
    def short_name(self) -> str:
        """The name below its namespace: ``nn.relu`` of ``relax.nn.relu``."""
        return self.name.partition(".")[2]

    @property
    def __name__(self) -> str:
        """The operator's own name, as a function that makes its calls has it: ``relu`` of ``relax.nn.relu``."""
        return self.name.rpartition(".")[2]

    @property
    def __signature__(self) -> inspect.Signature:
        """How the operator is called: what ``inspect.signature``, ``help`` and editors show."""
        prepare = self.facts.get("prepare")
        found = None if prepare is None else inspect.signature(prepare)
        if found is None or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in found.parameters.values()):
            return inspect.Signature(_python_parameters(self.params))
        return found

    @staticmethod
    def get(op_name: str) -> Op:
        """The operator of that full name; raises `UnknownOperatorError` with close names for a miss."""
        try:
            return OPS.get(op_name)
        except RegistryError as error:
            raise UnknownOperatorError(*error.args) from None

    @staticmethod
    def of_role(role: str) -> Op:
        """The operator that declares a ``role`` for layers below the operators, which build its calls:
        ``"call_tir"``, ``"shape_of"``, ``"reshape"``, ``"add"``."""
        OPS.find("")  # declares the operators, if nothing did
        return next(op for _, op in OPS.items() if op.facts.get("role") == role)

    def __call__(self, *args: Any, **kwargs: Any) -> Call:
        """Bind Python arguments to the signature: ``matmul(a, b, out_dtype="float32")``."""
        return bind(self, args, kwargs)


def _python_parameters(params: tuple[Param, ...]) -> list[inspect.Parameter]:
    """Parameters as Python describes them; those after the ones of any number are given by name."""
    found: list[inspect.Parameter] = []
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for param in params:
        if param.kind == "varargs":
            found.append(inspect.Parameter(param.name, inspect.Parameter.VAR_POSITIONAL))
            kind = inspect.Parameter.KEYWORD_ONLY
        else:
            default = (
                inspect.Parameter.empty if param.default is REQUIRED else getattr(param.default, "value", param.default)
            )
            found.append(inspect.Parameter(param.name, kind, default=default))
    return found


OPS: Registry[Op] = Registry("operator", filled_by="supple.ops")
CALLEES["op"] = Op.get


def bind(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """The `Call` of an operator on Python arguments, by its signature.

    Numbers and arrays become constants (a number takes the dtype of the first tensor argument whose dtype is known),
    lists become tuples or shapes, attributes are converted. Raises `ArgumentError` naming operator and parameter.
    """
    prepare = op.facts.get("prepare")
    if prepare is not None:  # Python conveniences of the signature: arange(n) means arange(0, n)
        args, kwargs = prepare(*args, **kwargs)
    given = _assign(op, args, kwargs)
    dtype = next((d for v in given.values() if (d := _tensor_dtype(v)) is not None), None)
    exprs: list[Expr] = []
    attrs: dict[str, Any] = {}
    for param in op.params:
        value = given[param.name]
        try:
            if param.is_attr:
                attrs[param.name] = _attribute(value) if param.convert is None else param.convert(value)
            elif param.kind == "varargs":
                exprs.extend(_ARGUMENT["expr"](v, None) for v in value)
            elif value is not None or param.default is REQUIRED:
                # a number beside a tensor has its dtype, but for an index
                index = param.kind == "operand" and op.params[0].kind == "tensor"
                exprs.append(_ARGUMENT["expr" if index else param.kind](value, dtype))
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{op.name}: parameter {param.name}: {error}") from None
    return settle(Call(op, tuple(exprs), attrs))


def settle(call: Call) -> Call:
    """The call as Relax stores it: attributes that follow from others filled in and written in full.

    An operator says how in two facts: ``settle_attrs(attrs) -> attrs``, and ``settle_args(args) -> args``, which sees
    the types of its arguments where they are known. Both return what does not fit as it is: the type rule refuses it.
    """
    if not isinstance(call.op, Op):
        return call
    attrs = settled_attrs(call.op, call.attrs)
    args = call.op.facts.get("settle_args", tuple)(call.args)
    same = attrs == call.attrs and len(args) == len(call.args) and all(map(operator.is_, args, call.args))
    return call if same else replace(call, args=tuple(args), attrs=attrs)


def settled_attrs(op: Op, attrs: Mapping[str, Any]) -> Mapping[str, Any]:
    """An operator's attributes as a call stores them."""
    made: Mapping[str, Any] = op.facts.get("settle_attrs", dict)(attrs)
    return made


def _attribute(value: Any) -> Any:
    """An attribute without a form of its own: plain values and nodes."""
    if isinstance(value, (list, tuple)):
        return type(value)(_attribute(v) for v in value)
    if isinstance(value, dict):
        return {k: _attribute(v) for k, v in value.items()}
    if value is None or isinstance(value, (bool, int, float, str, Node, Device)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be an attribute")


def _assign(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Values by parameter name, defaults filled in."""
    given: dict[str, Any] = {}
    positional = [p for p in op.params if p.kind != "varargs"]
    variadic = next((p for p in op.params if p.kind == "varargs"), None)
    if variadic is not None:
        before = op.params.index(variadic)
        given.update(zip([p.name for p in op.params[:before]], args, strict=False))
        given[variadic.name] = args[before:]
    elif len(args) > len(positional):
        raise TypeError(
            f"{op.name} takes {len(positional)} arguments, got {len(args)}; signature: {signature_text(op)}"
        )
    else:
        given.update(zip([p.name for p in positional], args, strict=False))
    for name, value in kwargs.items():
        if name in given:
            raise TypeError(f"{op.name}: parameter {name} was given twice")
        if all(p.name != name for p in op.params):
            known = [p.name for p in op.params]
            raise TypeError(f"{op.name} has no parameter {name!r}{did_you_mean(name, known)}; {signature_text(op)}")
        given[name] = value
    for param in op.params:
        if param.name not in given:
            if param.default is REQUIRED:
                raise TypeError(f"{op.name}: parameter {param.name} is missing; signature: {signature_text(op)}")
            given[param.name] = param.default
    return given


def signature_text(op: Op) -> str:
    """The signature as text: ``matmul(x1: tensor, x2: tensor, out_dtype=None)``."""
    parts = []
    for param in op.params:
        text = f"*{param.name}" if param.kind == "varargs" else param.name
        if not param.is_attr and param.kind != "varargs":
            text += f": {param.kind}"
        if param.default is not REQUIRED:
            text += f"={param.default!r}"
        parts.append(text)
    return f"{op.short_name}({', '.join(parts)})"


def _tensor_dtype(value: Any) -> str | None:
    ty = getattr(value, "ty", None)
    return ty.dtype if isinstance(ty, TensorType) else None


def _as_tensor(value: Any, dtype: str | None) -> Expr:
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool) or hasattr(value, "dtype"):
        return constant(value)
    if isinstance(value, (int, float)):
        return literal(value, dtype)
    raise TypeError(f"expected a tensor, got {value!r}")


def literal(value: int | float, dtype: str | None) -> Expr:
    """A number beside a tensor of ``dtype``: a constant of that dtype.

    Without one it is *weak*: the builder converts it when the types of the other operands are known.
    Raises ``TypeError`` for a fraction beside integers.
    """
    if dtype is None:
        return replace(constant(value), weak=True)
    if isinstance(value, float) and not dtypes.is_float(dtype):
        raise TypeError(
            f"{value!r} beside a tensor of {dtype} would lose its fraction; convert the tensor: x.astype(...)"
        )
    return constant(value, dtype)


def settle_literals(call: Call) -> Call:
    """The call with its weak literals in the dtype of the other tensor operands."""
    if not any(isinstance(a, Constant) and a.weak for a in call.args):
        return call
    others = [a for a in call.args if not (isinstance(a, Constant) and a.weak)]
    dtype = next((d for a in others if (d := _tensor_dtype(a)) is not None), None)
    if dtype is None:
        return call
    settled = tuple(literal(a.data.item(), dtype) if isinstance(a, Constant) and a.weak else a for a in call.args)
    return replace(call, args=settled)


def _as_tuple(value: Any, dtype: str | None) -> Expr:
    if isinstance(value, Expr):
        return value
    if isinstance(value, (list, tuple)):
        return Tuple(tuple(_as_tensor(v, dtype) for v in value))
    raise TypeError(f"expected a tuple of tensors, got {value!r}")


def _as_shape(value: Any, _dtype: str | None) -> Expr:
    if isinstance(value, Expr) and not is_scalar(value):
        return value
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"expected a shape (a tuple, a list or R.shape([...])), got {value!r}")
    sizes = [as_expr(v, "int64") for v in value]
    whole = [is_scalar(size) and dtypes.is_int(scalar_dtype(size)) for size in sizes]
    return ShapeExpr(tuple(cast("int64", size) if fine else size for size, fine in zip(sizes, whole, strict=True)))


def _as_scalars(value: Any, _dtype: str | None) -> Expr:
    if isinstance(value, Expr) and not is_scalar(value):
        return value
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"expected numbers in a tuple or a list, got {value!r}")
    return Tuple(tuple(_as_scalar(v, None) for v in value))


def _as_scalar(value: Any, _dtype: str | None) -> Expr:
    scalar = graph_scalar(value)
    if not is_scalar(scalar) and (getattr(scalar, "ty", None) is not None or isinstance(scalar, (Tuple, ShapeExpr))):
        raise TypeError(f"expected a number, got {value!r}")
    return scalar


def _as_value(value: Any, _dtype: str | None) -> Expr:
    if isinstance(value, (list, tuple)):
        return Tuple(tuple(_as_value(v, None) for v in value))
    if hasattr(value, "dtype") and not isinstance(value, Expr):
        return constant(value)
    return graph_scalar(value)


def _as_dtype_value(value: Any, _dtype: str | None) -> Expr:
    if isinstance(value, Expr):
        return value
    return DataTypeImm(dtypes.check_dtype(value if isinstance(value, str) else dtypes.from_numpy(value)))


_ARGUMENT: dict[str, Callable[[Any, str | None], Expr]] = {
    "tensor": _as_tensor,
    "operand": _as_tensor,
    "tuple": _as_tuple,
    "shape": _as_shape,
    "scalar": _as_scalar,
    "scalars": _as_scalars,
    "expr": _as_value,
    "dtype_value": _as_dtype_value,
}


@dataclass(frozen=True, slots=True)
class RelaxText:
    """How Relax's own layout writes an operator's attributes where it differs from the rule (all of them, by name, in
    the signature's order); the `Op` carries it in ``facts["relax_text"]``."""

    first: tuple[str, ...] = ()  # attributes that come first, in this order
    strings: tuple[str, ...] = ()  # that are values of the graph: R.str("...")
    floats: tuple[str, ...] = ()  # that are written with their dtype: T.float32(...)
    positional: bool = False  # attributes are written without their names
    hidden: tuple[str, ...] = ()  # that are left out where they hold None
    says_type: bool = False  # a binding of this operator is not annotated: the call says its type


@dataclass(slots=True)
class Intrinsic:
    """A scalar intrinsic's numpy meaning and result type; the `Op` carries it in ``facts["intrinsic"]``."""

    arity: int
    numpy: Callable[..., Any]
    dtype: Callable[..., str]
    llvm: str | None = None
    notes: list[str] = field(default_factory=list)
