"""Graph level: bindings, blocks, functions. Field names are Relax's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from supple.base import dtypes
from supple.ir.expr import Call, ExprWithOps, IntImm, Var, as_expr
from supple.ir.node import METHODS, Expr, Node, Type, as_tuple, define, ignored, node, pattern, set_field
from supple.ir.types import SHAPE_OF, AnyType, FuncType, PrimType, ShapeType, TensorType, TupleType


class ConstantData(np.ndarray):
    """The contents of a `Constant`: a numpy array that also answers Relax's ``constant.data.numpy()``.

    What is computed from it is an ordinary array.
    """

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy that can be written to."""
        return np.array(self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [np.asarray(i) if isinstance(i, ConstantData) else i for i in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)


@node
class Constant(ExprWithOps):
    """A tensor literal. ``data`` is a read-only numpy array; compared by value, dtype and shape.

    ``weak`` marks a Python number whose dtype follows the tensors beside it, once their types are known."""

    data: Any
    ty: Type | None = ignored(default=None)
    weak: bool = ignored(default=False)

    def __post_init__(self) -> None:
        if type(self.data) is np.ndarray:
            set_field(self, "data", self.data.view(ConstantData))


def constant(value: Any, dtype: str | None = None) -> Constant:
    """A `Constant` of a number, nested list or array: ``float32`` for Python floats, ``int32`` for Python ints
    (unless ``dtype`` says otherwise), the array's own dtype for arrays. The data is copied and made read-only.

    Raises ``TypeError`` for a dtype that Supple has not, ``OverflowError`` for a number that does not fit.
    """
    if dtype is None and not hasattr(value, "dtype"):
        probe = np.asarray(value)
        dtype = {"f": "float32", "i": "int32", "b": "bool"}.get(probe.dtype.kind)
        if dtype is None:
            raise TypeError(f"expected a number, a list of numbers or an array, got {value!r}")
    data = np.array(value, dtype=None if dtype is None else dtypes.to_numpy(dtype), order="C", copy=True)
    if not data.dtype.isnative:
        data = data.astype(data.dtype.newbyteorder("="))
    data.flags.writeable = False
    shape = ShapeExpr(tuple(IntImm(extent, "int64") for extent in data.shape))
    return Constant(data, TensorType(shape, dtypes.from_numpy(data.dtype)))


_NUMBERS = (int, float, bool)


@node
class Tuple(ExprWithOps):
    """A tuple of graph values."""

    fields: tuple[Expr, ...]
    ty: Type | None = ignored(default=None)

    def __post_init__(self) -> None:
        if type(self.fields) is not tuple:
            as_tuple(self, "fields")
        given: tuple[Any, ...] = self.fields
        if any(type(f) in _NUMBERS for f in given):
            set_field(self, "fields", tuple(as_expr(f, "int64") if type(f) in _NUMBERS else f for f in given))
        if self.ty is None:  # the fields' types, where all are known
            types = [ty for ty in (getattr(f, "ty", None) for f in self.fields) if isinstance(ty, Type)]
            if len(types) == len(self.fields):
                set_field(self, "ty", TupleType(tuple(types)))

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, index: Any) -> Any:
        return self.fields[index]

    def __iter__(self) -> Any:
        return iter(self.fields)


@node
class ShapeExpr(ExprWithOps):
    """A shape value ``(n, 4)``; the values are int64 scalars."""

    values: tuple[Expr, ...]

    def __post_init__(self) -> None:
        if type(self.values) is not tuple or not all(isinstance(v, Expr) for v in self.values):
            fraction = next((v for v in self.values if isinstance(v, float)), None)
            if fraction is not None:
                raise TypeError(f"a shape's values must be int64 scalars, got {fraction}")
            set_field(self, "values", tuple(as_expr(v, "int64") for v in self.values))
        for value in self.values:
            ty = getattr(value, "ty", None)
            if not isinstance(ty, PrimType) or ty.dtype != "int64":
                raise TypeError(f"a shape's values must be int64 scalars, got {value} of type {ty}")

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Any:
        return iter(self.values)

    @property
    def ty(self) -> Type:
        return ShapeType(self.values)


def _shape_expr(values: Any) -> ShapeExpr:
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"expected a shape such as [n, 4], got {values!r}")
    return ShapeExpr(values)  # type: ignore[arg-type]


SHAPE_OF["expr"] = _shape_expr
SHAPE_OF["values"] = lambda values: _shape_expr(values).values


@node
class DataTypeImm(ExprWithOps):
    """A dtype as a value: ``R.dtype("float32")``."""

    value: str

    @property
    def ty(self) -> Type:
        return AnyType()


@node
class GlobalVar(Expr):
    """A function of the module, by name."""

    name_hint: str
    ty: Type | None = ignored(default=None)

    def __post_init__(self) -> None:
        if not isinstance(self.name_hint, str):
            raise TypeError(f"the name of a function is a string, got {type(self.name_hint).__name__}")

    def __call__(self, *args: Any) -> Expr:
        return Call(self, tuple(as_expr(a) for a in args))

    def __hash__(self) -> int:
        return hash(self.name_hint)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalVar) and other.name_hint == self.name_hint


@node
class ExternFunc(ExprWithOps):
    """A function registered by name with ``register_global_func``. Where no type is given, it takes anything, gives
    anything and may have effects. Raises ``TypeError`` for a type of anything but a function."""

    global_symbol: str
    ty: Type | None = ignored(default=None)

    def __post_init__(self) -> None:
        if self.ty is None:
            set_field(self, "ty", _OPAQUE)
        elif not isinstance(self.ty, FuncType):
            raise TypeError(f"ExternFunc {self.global_symbol}: expected a function's type, got {self.ty}")

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes: the name."""
        return {"global_symbol": self.global_symbol}


_OPAQUE = FuncType.opaque_func()


# ---------------------------------------------------------------------------------------------------------- bindings


@node
class Binding(Node):
    """Base of bindings."""


@node
class VarBinding(Binding):
    """``var = value``."""

    var: Var = define()
    value: Expr


@node
class MatchCast(Binding):
    """``var = R.match_cast(value, ty)``: a run-time check that may introduce the symbols in ``ty``."""

    walk_order: ClassVar[tuple[str, ...]] = ("value", "ty", "var")
    var: Var = define()
    value: Expr
    ty: Type = pattern()


@node
class BindingBlock(Node):
    """Bindings in order; calls in it may have effects."""

    bindings: tuple[Binding, ...]

    def __post_init__(self) -> None:
        as_tuple(self, "bindings")


@node
class DataflowBlock(BindingBlock):
    """A pure region: `DataflowVar` are local to it, other variables are its outputs."""


@node
class SeqExpr(ExprWithOps):
    """Blocks, then the value of ``body``."""

    blocks: tuple[BindingBlock, ...]
    body: Expr

    def __post_init__(self) -> None:
        as_tuple(self, "blocks")

    @property
    def ty(self) -> Type | None:
        return getattr(self.body, "ty", None)


@node
class If(ExprWithOps):
    """``true_branch`` or ``false_branch`` by a scalar bool tensor (or scalar) ``cond``."""

    cond: Expr
    true_branch: Expr
    false_branch: Expr
    ty: Type | None = ignored(default=None)

    def __post_init__(self) -> None:
        for name in ("true_branch", "false_branch"):
            branch = getattr(self, name)
            if not isinstance(branch, SeqExpr):
                set_field(self, name, SeqExpr((), branch))


# ---------------------------------------------------------------------------------------------------------- functions


@node
class Function(ExprWithOps):
    """A graph function. ``params`` define the variables and, through their types, the symbols.

    ``is_pure`` is the promise that calling it has no effect. ``attrs`` holds ``global_symbol`` for a public function.
    """

    params: tuple[Var, ...] = define()
    body: SeqExpr
    ret_ty: Type | None = None
    is_pure: bool = True
    attrs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        as_tuple(self, "params")
        for param in self.params:
            if not isinstance(param, Var):
                raise TypeError(f"a function's parameters are variables, got {type(param).__name__}")
        if not isinstance(self.body, SeqExpr):
            set_field(self, "body", SeqExpr((), self.body))
        if self.ret_ty is None:
            deduced = getattr(self.body.body, "ty", None)
            set_field(self, "ret_ty", deduced if isinstance(deduced, Type) else None)
        elif "function.ret_ty" in METHODS:
            set_field(self, "ret_ty", METHODS["function.ret_ty"](self))
        if self.attrs is None:
            set_field(self, "attrs", {})

    @staticmethod
    def create_empty(params: Any, ret_ty: Type, is_pure: bool = True, attrs: dict[str, Any] | None = None) -> Function:
        """A function without a body, for its type: calling it is refused."""
        return Function(tuple(params), SeqExpr((), Tuple(())), ret_ty, is_pure, dict(attrs or {}))

    def __call__(self, *args: Any) -> Expr:
        """A call in a graph. On arrays it is refused: those are for the compiled function."""
        if any(not isinstance(a, Node) and (hasattr(a, "__array__") or hasattr(a, "__dlpack__")) for a in args):
            raise TypeError("compile a graph function to call it on arrays: supple.compile(mod)[name](...)")
        call: Expr = ExprWithOps.__call__(self, *args)  # the class is made anew with slots: no super()
        return call

    @property
    def ret_struct_info(self) -> Type | None:
        """The older spelling of ``ret_ty``."""
        return self.ret_ty

    @property
    def ty(self) -> Type:
        if any(p.ty is None for p in self.params) or self.ret_ty is None:
            raise ValueError("the function's type is not known before its parameters' and return types are")
        return FuncType(tuple(p.ty for p in self.params if p.ty is not None), self.ret_ty, self.is_pure)

    def with_attr(self, attr_key_or_dict: str | dict[str, Any], attr_value: Any = None) -> Function:
        """A copy with attributes added."""
        new = dict(attr_key_or_dict) if isinstance(attr_key_or_dict, dict) else {attr_key_or_dict: attr_value}
        return Function(self.params, self.body, self.ret_ty, self.is_pure, {**self.attrs, **new}, span=self.span)

    def with_attrs(self, attr_map: dict[str, Any]) -> Function:
        """A copy with attributes added."""
        return self.with_attr(attr_map)

    def bind_params(self, binding_map: dict[Any, Any]) -> Function:
        """The function with parameters (by name or variable) fixed to values: arrays, numbers or expressions."""
        return FUNCTION_METHODS["bind_params"](self, binding_map)

    def bind_symbolic_vars(self, binding_map: dict[Any, Any]) -> Function:
        """The function with symbols (by name or variable) fixed to integers or expressions."""
        return FUNCTION_METHODS["bind_symbolic_vars"](self, binding_map)

    def inline_functions(self, function_map: dict[Any, Any]) -> Function:
        """The function with calls of some functions of the module (by name or variable) replaced by their bodies."""
        return FUNCTION_METHODS["inline_functions"](self, function_map)

    def without_attr(self, attr_key: str) -> Function:
        """A copy without one attribute."""
        rest = {k: v for k, v in self.attrs.items() if k != attr_key}
        return Function(self.params, self.body, self.ret_ty, self.is_pure, rest, span=self.span)


FUNCTION_METHODS: dict[str, Callable[[Function, dict[Any, Any]], Function]] = {}
"""What ``bind_params`` and its relatives do; filled by the level that can rewrite functions."""

UNIT = TupleType(())
"""The type of a call that returns nothing: the empty tuple."""
