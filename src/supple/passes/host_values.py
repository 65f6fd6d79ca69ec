"""What a graph value is while host code is made, and the run-time checks of objects against types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from supple.base import dtypes
from supple.base.errors import NotSupportedError
from supple.base.source import Span
from supple.ir import expr as E
from supple.ir import host as H
from supple.ir.expr import IntImm, Var, int64
from supple.ir.graph import ShapeExpr
from supple.ir.host import HostStmt, HostVar, show, show_shape, show_type
from supple.ir.node import Expr, Node, Type
from supple.ir.types import AnyType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType, prim_type
from supple.ir.walk import free_symbols, transform
from supple.runtime.abi import ErrorSite, Kind
from supple.sym.simplify import SHAPES, from_poly, product, solve_linear


@dataclass(eq=False)
class TensorValue:
    """A tensor. ``memory`` points at its elements; ``object`` is the native object that owns them, or None when the
    memory belongs to the arena or is a constant; ``view`` says that the object's own shape is another one.
    ``shape`` is None when not even the rank is known, ``dtype`` None when unknown (then ``object`` is there).
    ``root`` is the memory that this function allocated for it, of which it is all or a part; None: it came from
    elsewhere. ``constant``: it is memory of a constant."""

    dtype: str | None
    shape: tuple[Expr, ...] | None
    memory: HostVar
    object: HostVar | None = None
    view: bool = False
    root: HostVar | None = None
    constant: bool = False


@dataclass(eq=False)
class TupleValue:
    """A tuple whose fields are known one by one; ``object`` if it exists as a native object as well."""

    fields: tuple[Value, ...]
    object: HostVar | None = None


@dataclass(eq=False)
class ShapeValue:
    """A shape of known rank."""

    values: tuple[Expr, ...]
    object: HostVar | None = None


@dataclass(eq=False)
class NumberValue:
    """A scalar."""

    value: Expr


@dataclass(eq=False)
class ObjectValue:
    """Anything else, as a native object. ``null``: the value of ``R.null_value()``."""

    object: HostVar
    null: bool = False


Value: TypeAlias = TensorValue | TupleValue | ShapeValue | NumberValue | ObjectValue


CAME = "{object}"
"""Detail of a check of an object: the runtime describes what came by its kind, dtype and rank (values 0 to 2)."""


@dataclass(frozen=True)
class Where:
    """What is checked, for messages: ``{prefix}: expected {expected}, got ...``. ``param`` is a parameter's index."""

    kind: str
    prefix: str
    expected: str
    path: str
    span: Span | None = None
    param: int | None = None

    def site(self, detail: str, reason: str = "") -> ErrorSite:
        """The error site; ``detail`` says what came when the caller's argument cannot be shown."""
        message = f"{self.prefix}: expected {self.expected}, got {{actual}}{reason}"
        return ErrorSite(self.kind, message, self.span, self.param, detail)

    def field(self, index: int, ty: Type) -> Where:
        """The same for a field of a tuple."""
        prefix, path = f"{self.prefix}[{index}]", f"{self.path}[{index}]"
        return Where(self.kind, prefix, show_type(ty), path, self.span, None)


@dataclass
class Pending:
    """A dimension that is compared after the symbols are known."""

    dim: Expr
    actual: Var
    axis: int
    where: Where


@dataclass
class Checker:
    """Emits the checks of objects against types. Symbols that stand alone as a dimension are bound where they first
    appear; dimensions that are expressions are solved or compared by `finish`."""

    function: str
    out: list[HostStmt]
    bound: dict[int, Var] = field(default_factory=dict)  # symbols with a value, by id
    origin: dict[int, str] = field(default_factory=dict)  # where a symbol's value came from
    pending: list[Pending] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    signed: set[int] = field(default_factory=set)  # numbers that are not known to be sizes, by id

    def fresh(self, hint: str, kind: str = "object") -> HostVar:
        """A new memory or object variable with a name of its own."""
        return HostVar(self._unique(hint), kind)

    def number(self, hint: str, dtype: str = "int64") -> Var:
        """A new number variable."""
        return Var(self._unique(hint), prim_type(dtype))

    def _unique(self, hint: str) -> str:
        count = self.counters.get(hint, 0)
        self.counters[hint] = count + 1
        return hint if count == 0 else f"{hint}.{count}"

    def define(self, symbol: Var, origin: str) -> None:
        """A symbol has a value from here on."""
        self.bound[id(symbol)] = symbol
        self.origin[id(symbol)] = origin

    def adopt(self, obj: HostVar, ty: Type | None, where: Where) -> Value:
        """Check an object against a type, bind the type's symbols; the value it is."""
        if ty is None or isinstance(ty, AnyType):
            return ObjectValue(obj)
        if isinstance(ty, TensorType):
            if ty.shape is not None and not isinstance(ty.shape, ShapeExpr):
                raise NotSupportedError(
                    f"{self.function}: native code does not support a tensor whose shape is a variable ({where.path})",
                    where.span,
                    hint="use R.match_cast(value, R.Tensor((n, ...), dtype)) to name the dimensions",
                )
            dims = ty.shape.values if isinstance(ty.shape, ShapeExpr) else None
            return self.adopt_tensor(obj, ty.dtype, dims, ty.ndim, where)
        if isinstance(ty, TupleType):
            count = len(ty.fields)
            self.out.append(H.CheckObject(obj, Kind.TUPLE, None, count, where.site(CAME)))
            values: list[Value] = []
            for i, field_type in enumerate(ty.fields):
                item = self.fresh(f"{obj.name}.{i}")
                self.out.append(H.TupleField(item, obj, i))
                values.append(self.adopt(item, field_type, where.field(i, field_type)))
            return TupleValue(tuple(values), obj)
        if isinstance(ty, ShapeType):
            return self._adopt_shape(obj, ty, where)
        if isinstance(ty, PrimType):
            return NumberValue(self.adopt_number(obj, self.number(f"{obj.name}.value", ty.dtype), where))
        if isinstance(ty, StringType):
            self.out.append(H.CheckObject(obj, Kind.PYTHON, None, -1, where.site(CAME)))
            return ObjectValue(obj)
        if isinstance(ty, FuncType):
            self.out.append(H.CheckObject(obj, Kind.CLOSURE, None, -1, where.site(CAME)))
            return ObjectValue(obj)
        raise NotSupportedError(f"{self.function}: native code does not support type {show_type(ty)}", where.span)

    def adopt_tensor(
        self, obj: HostVar, dtype: str | None, dims: tuple[Expr, ...] | None, ndim: int, where: Where
    ) -> TensorValue:
        """`adopt` for a tensor of that dtype and those dimensions (None: unknown)."""
        rank = len(dims) if dims is not None else ndim
        self.out.append(H.CheckObject(obj, Kind.TENSOR, dtype, rank, where.site(CAME)))
        memory = self.fresh(f"{obj.name}.data", "memory")
        self.out.append(H.DataOf(memory, obj))
        if rank < 0:
            return TensorValue(dtype, None, memory, obj)
        shape = tuple(
            self._dimension(obj, None if dims is None else dims[axis], axis, where, False) for axis in range(rank)
        )
        return TensorValue(dtype, shape, memory, obj)

    def _adopt_shape(self, obj: HostVar, ty: ShapeType, where: Where) -> Value:
        self.out.append(H.CheckObject(obj, Kind.SHAPE, None, ty.ndim, where.site(CAME)))
        if ty.ndim < 0:
            return ObjectValue(obj)
        dims = ty.values
        values = tuple(
            self._dimension(obj, None if dims is None else dims[axis], axis, where, True) for axis in range(ty.ndim)
        )
        return ShapeValue(values, obj)

    def _dimension(self, obj: HostVar, dim: Expr | None, axis: int, where: Where, of_shape: bool) -> Expr:
        """The expression that a dimension equals once all checks have passed."""
        symbol = bare_symbol(dim)
        origin = f"{where.path}[{axis}]" if of_shape else f"{where.path}.shape[{axis}]"
        if symbol is not None and id(symbol) not in self.bound:
            self._load_dimension(symbol, obj, axis, where, of_shape)
            self.define(symbol, origin)
            return symbol
        actual = self.number(f"{obj.name}.{axis}")
        self._load_dimension(actual, obj, axis, where, of_shape)
        if dim is None:
            return actual
        return self.expect(dim, actual, axis, where)

    def _load_dimension(self, var: Var, obj: HostVar, axis: int, where: Where, of_shape: bool) -> None:
        self.out.append(H.LoadDim(var, obj, axis, of_shape))
        if of_shape:  # a shape's values may come from arithmetic
            self.out.append(H.Require(E.LE(int64(0), var), (var,), where.site("a negative size {0}")))

    def may_be_negative(self, dim: Expr) -> bool:
        """Whether a dimension could be negative (symbols that are sizes cannot, other numbers can)."""
        return SHAPES.bounds(dim)[0] < 0 or any(id(s) in self.signed for s in free_symbols(dim))

    def expect(self, dim: Expr, actual: Var, axis: int, where: Where) -> Expr:
        """Compare a dimension's value with its expression in `finish`; the expression."""
        wide = widen(dim, {})
        self.pending.append(Pending(wide, actual, axis, where))
        return wide

    def adopt_number(self, obj: HostVar, var: Var, where: Where) -> Var:
        """Check that an object is a number that fits the variable's dtype; the variable."""
        dtype = E.scalar_dtype(var)
        row = dtypes.row(dtype)
        if row.kind == "handle" or dtypes.lanes(dtype) > 1:
            raise NotSupportedError(f"{self.function}: scalars of dtype {dtype} are not supported", where.span)
        kind = Kind.FLOAT if row.kind == "float" else Kind.INT
        wanted = dtype if dtype in ("bool", "uint64") else None
        self.out.append(H.CheckObject(obj, kind, wanted, -1, where.site(CAME)))
        self.out.append(H.LoadNumber(var, obj))
        self.signed.add(id(var))
        if row.kind in ("int", "uint") and row.bits < 64:
            low, high = dtypes.int_range(dtype)
            value = self.number(f"{obj.name}.wide")
            self.out.append(H.LoadNumber(value, obj))
            inside = E.And(E.LE(int64(low), value), E.LE(value, int64(high)))
            self.out.append(H.Require(inside, (value,), where.site("{0}")))
        return var

    def finish(self) -> None:
        """Solve the symbols that only appear inside expressions, then compare the dimensions that wait."""
        waiting, self.pending = self.pending, []
        waiting = self._solve(waiting)
        for item in waiting:
            self._compare(item)

    def _solve(self, waiting: list[Pending]) -> list[Pending]:
        progress = True
        while progress:
            progress = False
            for item in list(waiting):
                unknown = [s for s in free_symbols(item.dim) if id(s) not in self.bound]
                if len(unknown) == 1 and (found := solve_linear(item.dim, unknown[0])) is not None:
                    self._solve_one(item, unknown[0], found[0], from_poly(found[1]))
                    waiting.remove(item)
                    progress = True
        for item in waiting:
            for symbol in free_symbols(item.dim):
                if id(symbol) not in self.bound:
                    raise NotSupportedError(
                        f"{self.function}: {symbol.name} cannot be determined: it appears only in {show(item.dim)} "
                        f"({item.where.path}.shape[{item.axis}])",
                        item.where.span,
                        hint=f"give {symbol.name} a dimension of its own, or make the dimension linear in it",
                    )
        return waiting

    def _solve_one(self, item: Pending, symbol: Var, factor: int, rest: Expr) -> None:
        difference = E.Sub(item.actual, rest)
        text = show(item.dim)
        site = item.where.site(f"dimension {item.axis} = {{1}}", f": {{1}} is not {text} for any {symbol.name}")
        quotient = difference if factor == 1 else E.FloorDiv(difference, int64(factor))
        self.out.append(H.Compute(symbol, quotient))
        exact = E.EQ(E.FloorMod(difference, int64(factor)), int64(0))
        fits = E.And(exact, E.LE(int64(0), symbol))
        self.out.append(H.Require(fits, (int64(0), item.actual), site))
        self.define(symbol, f"{item.where.path}.shape[{item.axis}]")

    def _compare(self, item: Pending) -> None:
        place = f"{item.where.path}.shape[{item.axis}]"
        symbol = bare_symbol(item.dim)
        reason = ""
        if symbol is not None:
            reason = f": {symbol.name} is {{0}} ({self.origin.get(id(symbol), 'known before')}) and {{1}} ({place})"
        elif not isinstance(item.dim, IntImm):
            names = {s.name: self.origin.get(id(s), "known before") for s in free_symbols(item.dim)}
            known = ", ".join(f"{name} from {origin}" for name, origin in names.items())
            reason = f": {show(item.dim)} is {{0}} ({known}), but {place} is {{1}}"
        site = item.where.site(f"dimension {item.axis} = {{1}}", reason)
        self.out.append(H.Require(E.EQ(item.actual, item.dim), (item.dim, item.actual), site))


def bare_symbol(dim: Expr | None) -> Var | None:
    """The variable that a dimension consists of (through widening casts), or None."""
    symbol = None if dim is None else E.uncast(dim)
    return symbol if isinstance(symbol, Var) else None


def widen(e: Expr, mapping: Mapping[int, Expr]) -> Expr:
    """An integer expression in int64, with variables replaced (by id) as ``mapping`` says."""

    def rewrite(current: Node) -> Node | None:
        if isinstance(current, Var):
            return mapping.get(id(current), current)
        if isinstance(current, IntImm) and current.dtype != "int64" and not dtypes.is_bool(current.dtype):
            return int64(current.value)
        return current.value if isinstance(current, E.Cast) else None

    try:
        widened = transform(e, rewrite, into_types=False)
    except TypeError:
        # Operands of two dtypes met: a symbol of another dtype stays. Casts around it make the two meet again.
        casts = {id(s): E.cast("int64", mapping.get(id(s), s)) for s in free_symbols(e)}
        widened = transform(
            e,
            lambda n: casts.get(id(n)) if isinstance(n, Var) else rewrite(n) if not isinstance(n, E.Cast) else n.value,
            into_types=False,
        )
    assert isinstance(widened, Expr)
    dtype = E.scalar_dtype(widened)
    return E.cast("int64", widened) if dtypes.is_int(dtype) and not dtypes.is_bool(dtype) else widened


def nbytes_of(shape: Iterable[Expr], dtype: str) -> Expr:
    """The bytes of a compact tensor, simplified."""
    return product([*shape, int64(dtypes.nbytes(dtype))])


class Sizes:
    """`nbytes_of`, remembered: equal shapes of one function give the very same expression, which later steps use."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Expr] = {}
        self._keep: list[tuple[Expr, ...]] = []

    def nbytes(self, shape: tuple[Expr, ...], dtype: str) -> Expr:
        """The bytes of a compact tensor."""
        key = (dtype, *((d.value, None) if isinstance(d, IntImm) else id(d) for d in shape))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = nbytes_of(shape, dtype)
            self._keep.append(shape)
        return found


def shape_text(shape: tuple[Expr, ...], dtype: str) -> str:
    """A tensor type for messages."""
    return f"Tensor({show_shape(shape)}, {dtype})"
