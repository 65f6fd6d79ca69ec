"""Expressions that both levels share: the one `Var`, scalar arithmetic, `Call`.

Nodes are kept as written: nothing is simplified on construction. On scalar expressions the Python operators build
nodes (``==`` and ``<`` too); ``bool()`` of a comparison that is not decidable from literals raises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

from supple.base import dtypes
from supple.base.errors import NumberRangeError
from supple.base.source import Span
from supple.ir.buffer_methods import BufferMethods
from supple.ir.conventions import literals_have_dtypes
from supple.ir.node import METHODS, Expr, Node, Role, Type, as_tuple, define, ignored, node, set_field
from supple.ir.operators import Operators
from supple.ir.types import BufferType, PrimType, StringType, TensorType, prim_type

ExprLike = Any  # an Expr, or a Python int, float, bool that becomes a literal

TENSOR_OPERATORS: dict[str, Callable[..., Expr]] = {}
"""Python operator name (``"add"``, ``"neg"``, ``"getitem"``) -> builder of the tensor operator's call.

Filled by the operator declarations: ``x + y`` on tensors means whatever operator declared itself as ``"add"``.
"""


@node
class ExprWithOps(Operators, Expr):
    """An expression with Python operators (all kinds except `Op` and `GlobalVar`)."""


# ---------------------------------------------------------------------------------------------------------- variables


@node
class Var(BufferMethods, ExprWithOps):
    """A variable of either level. Its identity is the object; the name is a hint for printing."""

    name: str = ignored()
    ty: Type | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"the name of a variable is a string, got {type(self.name).__name__}")
        ty: Any = self.ty
        if ty is None or isinstance(ty, Type):
            return
        if isinstance(ty, str):
            set_field(self, "ty", prim_type(ty))
        elif hasattr(ty, "as_type"):  # R.Tensor without parentheses
            set_field(self, "ty", ty.as_type())
        else:
            raise TypeError(f"Var {self.name}: expected a type, such as R.Tensor((4,), 'float32'), got {ty!r}")

    @property
    def name_hint(self) -> str:
        return self.name

    @property
    def dtype(self) -> str:
        """The dtype of a scalar, tensor or buffer variable."""
        return _dtype_of(self)

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The shape of a buffer variable, or the known shape of a tensor variable."""
        return _shape_of(self)


@node
class DataflowVar(Var):
    """A variable that is visible only inside its dataflow block."""


def is_buffer(e: object) -> bool:
    """Whether an expression is a buffer variable."""
    return isinstance(e, Var) and isinstance(e.ty, BufferType)


# ----------------------------------------------------------------------------------------------------------- literals


def _relax_order(literal: Any) -> None:
    """Literals may be written as Relax does: the dtype first."""
    first = literal.value
    if isinstance(first, (str, PrimType)):
        set_field(literal, "value", literal.dtype)
        set_field(literal, "dtype", first if isinstance(first, str) else first.dtype)


@node
class IntImm(ExprWithOps):
    """An integer or boolean literal: ``IntImm(3, "int64")``, or in Relax's order ``IntImm("int64", 3)``."""

    value: int
    dtype: str = "int32"

    def __post_init__(self) -> None:
        _relax_order(self)
        if dtypes.row(self.dtype).kind not in ("bool", "int", "uint"):
            raise TypeError(f"IntImm: expected an integer or bool dtype, got {self.dtype!r}")
        if not dtypes.fits(self.value, self.dtype):
            shown = self.value if abs(self.value) >> 128 == 0 else f"a number of {self.value.bit_length()} bits"
            raise NumberRangeError(f"{shown} does not fit in {self.dtype}")

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value


@node
class FloatImm(ExprWithOps):
    """A floating-point literal: ``FloatImm(1.0, "float32")``, or in Relax's order ``FloatImm("float32", 1.0)``."""

    value: float
    dtype: str = "float32"

    def __post_init__(self) -> None:
        _relax_order(self)
        if not dtypes.is_float(self.dtype):
            raise TypeError(f"FloatImm: expected a floating-point dtype, got {self.dtype!r}")

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)

    def __float__(self) -> float:
        return self.value


@node
class StringImm(ExprWithOps):
    """A string literal."""

    value: str

    @property
    def ty(self) -> Type:
        return STRING


STRING = StringType()


# ------------------------------------------------------------------------------------------------- scalar arithmetic


@node
class BinaryOp(ExprWithOps):
    """Base of scalar operators on two operands of equal dtype; ``symbol`` is the Python operator, or ``""``."""

    symbol: ClassVar[str] = ""
    a: Expr
    b: Expr
    dtype: str = field(init=False, metadata={"role": Role.IGNORE})

    def __post_init__(self) -> None:
        if not (isinstance(self.a, Expr) and isinstance(self.b, Expr)):
            _let_be_nodes(self, "a", "b")
        left, right = scalar_dtype(self.a), scalar_dtype(self.b)
        if left != right:
            raise TypeError(f"{type(self).__name__}: operands must have one dtype, got {left} and {right}")
        self.dtype = self._result(left)  # type: ignore[misc]

    @staticmethod
    def _result(dtype: str) -> str:
        return dtype

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)


@node
class Add(BinaryOp):
    """Sum."""

    symbol: ClassVar[str] = "+"


@node
class Sub(BinaryOp):
    """Difference."""

    symbol: ClassVar[str] = "-"


@node
class Mul(BinaryOp):
    """Product."""

    symbol: ClassVar[str] = "*"


@node
class Div(BinaryOp):
    """Division: true for floats, truncating for integers."""

    symbol: ClassVar[str] = "/"


@node
class Mod(BinaryOp):
    """Remainder of truncating division (C's ``%``)."""


@node
class FloorDiv(BinaryOp):
    """Floor division; ``x // 0`` is 0."""

    symbol: ClassVar[str] = "//"


@node
class FloorMod(BinaryOp):
    """Remainder of floor division (Python's ``%``); ``x % 0`` is 0."""

    symbol: ClassVar[str] = "%"


@node
class Min(BinaryOp):
    """Minimum; NaN propagates."""


@node
class Max(BinaryOp):
    """Maximum; NaN propagates."""


@node
class CompareOp(BinaryOp):
    """Base of comparisons; the result is a bool (a vector of bools for vectors)."""

    @staticmethod
    def _result(dtype: str) -> str:
        return dtypes.vector("bool", dtypes.lanes(dtype))


@node
class EQ(CompareOp):
    """``a == b``."""

    symbol: ClassVar[str] = "=="


@node
class NE(CompareOp):
    """``a != b``."""

    symbol: ClassVar[str] = "!="


@node
class LT(CompareOp):
    """``a < b``."""

    symbol: ClassVar[str] = "<"


@node
class LE(CompareOp):
    """``a <= b``."""

    symbol: ClassVar[str] = "<="


@node
class GT(CompareOp):
    """``a > b``."""

    symbol: ClassVar[str] = ">"


@node
class GE(CompareOp):
    """``a >= b``."""

    symbol: ClassVar[str] = ">="


@node
class And(CompareOp):
    """Logical ``a and b`` of bools; ``b`` is not evaluated when ``a`` decides."""

    symbol: ClassVar[str] = "and"


@node
class Or(CompareOp):
    """Logical ``a or b`` of bools; ``b`` is not evaluated when ``a`` decides."""

    symbol: ClassVar[str] = "or"


@node
class Not(ExprWithOps):
    """Logical negation of a bool."""

    a: Expr
    dtype: str = field(init=False, metadata={"role": Role.IGNORE})

    def __post_init__(self) -> None:
        _let_be_nodes(self, "a")
        self.dtype = scalar_dtype(self.a)  # type: ignore[misc]

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)


@node
class Select(ExprWithOps):
    """``true_value if condition else false_value``; both values may be evaluated."""

    condition: Expr
    true_value: Expr
    false_value: Expr
    dtype: str = field(init=False, metadata={"role": Role.IGNORE})  # kept: asking down a chain would take ever longer

    def __post_init__(self) -> None:
        _let_be_nodes(self, "condition", "true_value", "false_value")
        if dtypes.element(scalar_dtype(self.condition)) != "bool":
            raise TypeError(f"Select: the condition must be a bool, got {scalar_dtype(self.condition)}")
        left, right = scalar_dtype(self.true_value), scalar_dtype(self.false_value)
        if left != right:
            raise TypeError(f"Select: both values must have one dtype, got {left} and {right}")
        self.dtype = left  # type: ignore[misc]

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)


@node
class Cast(ExprWithOps):
    """A value converted to another dtype (float to integer saturates, NaN becomes 0)."""

    dtype: str
    value: Expr

    def __post_init__(self) -> None:
        _let_be_nodes(self, "value")
        scalar_dtype(self.value)  # refuses what is no scalar

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)


@node
class Ramp(ExprWithOps):
    """The vector ``base, base + stride, ...`` of ``lanes`` elements."""

    base: Expr
    stride: Expr
    lanes: int

    def __post_init__(self) -> None:
        _let_be_nodes(self, "base", "stride")
        _check_lanes(self)
        base, stride = scalar_dtype(self.base), scalar_dtype(self.stride)
        if dtypes.lanes(base) > 1 or dtypes.lanes(stride) > 1:
            raise TypeError(f"Ramp: base and stride must be scalars, got {base} and {stride}")
        if base != stride:
            set_field(self, "stride", cast(base, self.stride))

    @property
    def dtype(self) -> str:
        return dtypes.vector(scalar_dtype(self.base), self.lanes)

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)


@node
class Broadcast(ExprWithOps):
    """The vector that holds ``value`` in all ``lanes``."""

    value: Expr
    lanes: int

    def __post_init__(self) -> None:
        _let_be_nodes(self, "value")
        _check_lanes(self)
        if dtypes.lanes(scalar_dtype(self.value)) > 1:
            raise TypeError(f"Broadcast: expected a scalar, got {scalar_dtype(self.value)}")

    @property
    def dtype(self) -> str:
        return dtypes.vector(scalar_dtype(self.value), self.lanes)

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)


@node
class Shuffle(ExprWithOps):
    """The elements of some vectors (or scalars) of one element dtype, joined and chosen by number: ``indices[i]`` is
    where lane ``i`` comes from. One index gives a scalar."""

    vectors: tuple[Expr, ...]
    indices: tuple[Expr, ...]
    dtype: str = field(init=False, metadata={"role": Role.IGNORE})  # kept, as that of a `Select`

    def __post_init__(self) -> None:
        for name in ("vectors", "indices"):
            given: Any = getattr(self, name)
            if isinstance(given, (Expr, str)) or not hasattr(given, "__len__"):
                raise TypeError(f"Shuffle: {name} must be a list or a tuple, got {given!r}")
            if type(given) is not tuple or not all(isinstance(part, Expr) for part in given):
                set_field(self, name, tuple(map(_as_node, given)))
        if not self.vectors or not self.indices:
            raise ValueError("Shuffle: expected at least one vector and one index")
        kinds = [scalar_dtype(v) for v in self.vectors]
        if len({dtypes.element(kind) for kind in kinds}) > 1:
            raise TypeError(f"Shuffle: the vectors must have one element dtype, got {', '.join(kinds)}")
        count = sum(map(dtypes.lanes, kinds))
        for index in self.indices:
            if not isinstance(index, IntImm) or not dtypes.is_int(index.dtype):
                raise TypeError("Shuffle: indices must be integer literals")
            if not 0 <= index.value < count:
                raise ValueError(f"Shuffle: expected indices from 0 to {count - 1}, got {index.value}")
        self.dtype = dtypes.vector(dtypes.element(kinds[0]), len(self.indices))  # type: ignore[misc]

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)


@node
class Let(ExprWithOps):
    """``body`` with ``var`` standing for ``value``."""

    var: Var = define()
    value: Expr
    body: Expr
    dtype: str = field(init=False, metadata={"role": Role.IGNORE})

    def __post_init__(self) -> None:
        _let_be_nodes(self, "value", "body")
        self.dtype = scalar_dtype(self.body)  # type: ignore[misc]

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)


@node
class BufferLoad(ExprWithOps):
    """``buffer[indices]``; the last index may be a vector."""

    buffer: Var
    indices: tuple[Expr, ...]
    dtype: str = field(init=False, metadata={"role": Role.IGNORE})

    def __post_init__(self) -> None:
        if type(self.indices) is not tuple or not all(isinstance(i, Expr) for i in self.indices):
            set_field(self, "indices", tuple(as_expr(i, "int32") for i in self.indices))
        ty = self.buffer.ty
        if not isinstance(ty, BufferType):
            raise TypeError(f"{self.buffer.name} is not a buffer: it cannot be indexed here")
        if len(self.indices) != len(ty.shape):
            raise TypeError(
                f"{self.buffer.name} has {len(ty.shape)} dimensions, but {len(self.indices)} indices were given"
            )
        count = 1
        for index in self.indices:
            count *= dtypes.lanes(scalar_dtype(index))
        self.dtype = dtypes.vector(ty.dtype, count * dtypes.lanes(ty.dtype))  # type: ignore[misc]

    @property
    def source(self) -> Var:
        """The buffer."""
        return self.buffer

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)


@node
class Range(Node):
    """The half-open interval ``[min, min + extent)``."""

    min: Expr
    extent: Expr

    def __eq__(self, other: object) -> bool:
        """Ranges are the same where they are written alike, as in Relax."""
        return self is other or (isinstance(other, Range) and METHODS["structural_equal"](self, other))

    def __hash__(self) -> int:
        result: int = METHODS["structural_hash"](self)
        return result


# ------------------------------------------------------------------------------------------------------------- calls


class Attrs(dict[str, Any]):
    """A call's attributes: a dict whose values can also be read as ``attrs.axis``."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the call has no attribute {name!r}; it has {', '.join(self) or 'none'}") from None

    def get_int(self, key: str) -> Any:
        """The attribute of that name, where an integer is expected."""
        return self.__getattr__(key)

    def get_str(self, key: str) -> Any:
        """The attribute of that name, where a string is expected."""
        return self.__getattr__(key)

    def get_int_tuple(self, key: str) -> tuple[int, ...]:
        """The attribute of that name as a tuple of integers."""
        return tuple(int(v) for v in self.__getattr__(key))


CALLEES: dict[str, Callable[[str], Expr]] = {}
"""``"op"`` finds an operator by its name. Filled by the operators' registry."""


@node
class Call(ExprWithOps):
    """``op(args)``: an operator, a function of the module, a local function, or a scalar intrinsic.

    ``attrs`` are the operator's compile-time attributes by name; ``ty_args`` the explicit result types of packed calls;
    ``ty`` the deduced type (None until the builder normalises the call).
    """

    op: Expr
    args: tuple[Expr, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    ty_args: tuple[Type, ...] = ()
    ty: Type | None = ignored(default=None)

    def __post_init__(self) -> None:
        if type(self.args) is not tuple:
            as_tuple(self, "args")
        if type(self.attrs) is not Attrs:
            set_field(self, "attrs", Attrs(self.attrs or {}))
        if type(self.ty_args) is not tuple:
            set_field(self, "ty_args", (self.ty_args,) if isinstance(self.ty_args, Type) else tuple(self.ty_args or ()))
        if isinstance(self.op, str):
            set_field(self, "op", CALLEES["op"](self.op))

    @property
    def dtype(self) -> str:
        return _dtype_of(self)

    @property
    def shape(self) -> tuple[Expr, ...]:
        return _shape_of(self)


# ---------------------------------------------------------------------------------------------- helpers on expressions


def is_scalar(e: object) -> bool:
    """Whether ``e`` is an expression with a scalar (or vector) type."""
    return isinstance(e, Expr) and isinstance(getattr(e, "ty", None), PrimType)


def scalar_dtype(e: Expr) -> str:
    """The dtype of a scalar expression; raises ``TypeError`` for any other."""
    dtype = getattr(e, "dtype", None)
    if isinstance(dtype, str) and is_scalar(e):
        return dtype
    raise TypeError(f"expected a scalar expression, got {type(e).__name__} of type {getattr(e, 'ty', None)}")


def _as_node(value: ExprLike) -> Expr:
    """An operand: a Python number is a literal of its own kind (see `const`)."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, (bool, int, float)):
        return const(value)
    if hasattr(value, "__index__"):  # numpy's integers
        return const(value.__index__())
    raise TypeError(f"expected an expression or a number, got {value!r}")


def _let_be_nodes(of: Expr, *names: str) -> None:
    """Let operands that were given as Python numbers be literals."""
    for name in names:
        value = getattr(of, name)
        if not isinstance(value, Expr):
            set_field(of, name, _as_node(value))


def _check_lanes(of: Ramp | Broadcast) -> None:
    given: Any = of.lanes
    if isinstance(given, IntImm):
        set_field(of, "lanes", given.value)
    elif isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"{type(of).__name__}: lanes must be an integer literal, got {given!r}")
    if of.lanes < 1:
        raise ValueError(f"{type(of).__name__}: expected at least one lane, got {of.lanes}")


def place_of_use(operand: Expr | None, user: Expr | None) -> Span | None:
    """Where an operand is used: its own place, or its user's for a variable (whose span is its definition)."""
    if operand is not None and operand.span is not None and not isinstance(operand, Var):
        return operand.span
    return user.span if user is not None else None


def const(value: bool | int | float, dtype: str | None = None) -> Expr:
    """A literal. Without a dtype: bool, int32 (int64 where it does not fit), float32."""
    if dtype is None:
        if isinstance(value, bool):
            dtype = "bool"
        elif isinstance(value, int):
            dtype = "int32" if -(1 << 31) <= value < (1 << 31) else "int64"
        else:
            dtype = "float32"
    lanes = dtypes.lanes(dtype)
    if lanes > 1:
        return Broadcast(const(value, dtypes.element(dtype)), lanes)
    if dtypes.is_float(dtype):
        return FloatImm(float(value), dtype)
    return IntImm(int(value), dtype)


def int64(value: int) -> IntImm:
    """A 64-bit integer literal, as shapes use."""
    return IntImm(value, "int64")


def as_expr(value: ExprLike, dtype: str | None = None) -> Expr:
    """``value`` itself if it is an expression, else the literal (int64 for Python ints unless a dtype is given). Raises
    ``TypeError`` for what is no number, and for a float where an integer is wanted."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, Node) and hasattr(value, "operand"):  # an axis stands for its variable
        operand: Expr = value.operand
        return operand
    if isinstance(value, bool):
        return const(value, dtype or "bool")
    if hasattr(value, "__index__"):
        return const(value.__index__(), dtype or "int64")
    if isinstance(value, float) or hasattr(value, "__float__"):
        if dtype is not None and dtypes.is_int(dtype):
            raise TypeError(f"expected an integer, got {value!r}")
        return const(float(value), dtype or "float32")
    if isinstance(value, str):
        return StringImm(value)
    raise TypeError(f"expected an expression or a number, got {value!r}")


def graph_scalar(value: ExprLike) -> Expr:
    """``value`` as a number of the graph: a Python float keeps all of its digits (float64), as in Relax."""
    return as_expr(value, "float64" if isinstance(value, float) else None)


def cast(dtype: str, value: ExprLike) -> Expr:
    """``value`` converted to ``dtype``; literals are converted at once, a value of that dtype is returned as it is."""
    dtypes.check_dtype(dtype)
    if not isinstance(value, Expr):
        return const(value, dtype)
    if scalar_dtype(value) == dtype:
        return value
    if isinstance(value, IntImm) and dtypes.lanes(dtype) == 1:
        return const(value.value, dtype)
    return Cast(dtype, value)


def uncast(e: Expr) -> Expr:
    """What a scalar expression converts, through any number of casts; itself where it is no cast."""
    while isinstance(e, Cast):
        e = e.value
    return e


def match_dtypes(a: ExprLike, b: ExprLike, follow: bool = False) -> tuple[Expr, Expr]:
    """Both operands in one dtype: literals follow the other operand (in users' programs under Relax's conventions they
    have dtypes of their own, unless ``follow``), the narrower is widened, ints go to floats."""

    if isinstance(a, Node) and not isinstance(a, Expr):
        return match_dtypes(as_expr(a), b)
    if isinstance(b, Node) and not isinstance(b, Expr):
        return match_dtypes(a, as_expr(b))
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        return match_dtypes(const(a), b)
    if not isinstance(a, Expr):
        right, left = match_dtypes(b, a, follow)
        return left, right
    left_type = scalar_dtype(a)
    if not isinstance(b, Expr):
        own = literals_have_dtypes() and not follow and dtypes.element(left_type) != "float64"
        as_float = isinstance(b, float) and not dtypes.is_float(left_type)
        return match_dtypes(a, const(b, None if own or as_float else left_type))
    right_type = scalar_dtype(b)
    if left_type == right_type:
        return a, b
    lanes_a, lanes_b = dtypes.lanes(left_type), dtypes.lanes(right_type)
    if lanes_a != lanes_b:
        if lanes_a == 1:
            return match_dtypes(Broadcast(a, lanes_b), b)
        if lanes_b == 1:
            return match_dtypes(a, Broadcast(b, lanes_a))
        raise TypeError(f"cannot combine vectors of {lanes_a} and {lanes_b} lanes")
    common = dtypes.vector(_common(dtypes.element(left_type), dtypes.element(right_type)), lanes_a)
    return cast(common, a), cast(common, b)


def _common(a: str, b: str) -> str:
    x, y = dtypes.row(a), dtypes.row(b)
    rank = {"bool": 0, "uint": 1, "int": 2, "float": 3}
    if x.kind not in rank or y.kind not in rank:
        raise TypeError(f"cannot combine {a} and {b}")
    if x.kind == y.kind:
        return a if x.bits >= y.bits else b
    if "float" in (x.kind, y.kind) or "bool" in (x.kind, y.kind):
        return a if rank[x.kind] > rank[y.kind] else b
    if x.bits == y.bits:  # signed with unsigned of one width
        return a if x.kind == "uint" else b
    return a if x.bits > y.bits else b


SCALAR_OPERATORS: dict[str, Callable[..., Expr]] = {}
"""Python operator name -> builder of the scalar intrinsic (``"and"`` -> bitwise and), filled by the table."""


@node
class TupleGetItem(ExprWithOps):
    """One field of a tuple."""

    tuple_value: Expr
    index: int
    ty: Type | None = ignored(default=None)

    def __post_init__(self) -> None:
        if type(self.index) is not int:
            set_field(self, "index", int(self.index))


def _dtype_of(e: Any) -> str:
    ty = e.ty
    if isinstance(ty, (PrimType, BufferType)):
        return ty.dtype
    if isinstance(ty, TensorType) and ty.dtype is not None:
        return ty.dtype
    raise AttributeError(f"{type(e).__name__} of type {ty} has no known dtype")


def _shape_of(e: Any) -> tuple[Expr, ...]:
    ty = e.ty
    if isinstance(ty, BufferType):
        return ty.shape
    values: tuple[Expr, ...] | None = getattr(getattr(ty, "shape", None), "values", None)
    if values is None:
        raise AttributeError(f"{type(e).__name__} of type {ty} has no known shape")
    return values
