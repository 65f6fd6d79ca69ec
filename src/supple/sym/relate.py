"""Relations between types: what fits where, which symbols a call binds, what two types have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from supple.ir.expr import IntImm, Var
from supple.ir.graph import Function, ShapeExpr
from supple.ir.node import METHODS, Expr, Node, Type, children
from supple.ir.structural import structural_equal
from supple.ir.types import AnyType, DTensorType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType
from supple.ir.walk import free_symbols, substitute
from supple.sym.simplify import SHAPES, same_shape


def dim_text(dim: Expr) -> str:
    """A dimension as messages show it: ``n + 1``, ``784``."""
    return str(dim.value) if isinstance(dim, IntImm) else str(dim)


def dims_text(dims: Iterable[Expr]) -> str:
    """Dimensions as messages show them: ``(n, 784)``."""
    parts = [dim_text(d) for d in dims]
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def tensor_dims(ty: TensorType) -> tuple[Expr, ...] | None:
    """The dimensions of a tensor type, or None when they are unknown."""
    shape = ty.shape
    if isinstance(shape, ShapeExpr):
        return shape.values
    shape_type = getattr(shape, "ty", None)
    return shape_type.values if isinstance(shape_type, ShapeType) else None


def assignable(actual: Type | None, expected: Type) -> bool | None:
    """Whether every value of type ``actual`` is one of type ``expected``.

    False: provably not (a value never fits); None: it depends on run-time values or on what is unknown.
    """
    if isinstance(expected, AnyType) or actual is expected:
        return True
    if actual is None or isinstance(actual, AnyType):
        return None
    if isinstance(expected, TensorType):
        return _tensor_assignable(actual, expected)
    if isinstance(expected, TupleType):
        pairs = list(_below_tuples(actual, expected))
        if any(isinstance(e, TupleType) for _, e in pairs):
            return False
        return _all(assignable(a, e) for a, e in pairs)
    if isinstance(expected, ShapeType):
        return _shape_assignable(actual, expected)
    if isinstance(expected, PrimType):
        return isinstance(actual, PrimType) and actual.dtype == expected.dtype
    if isinstance(expected, FuncType):
        return _func_assignable(actual, expected)
    if isinstance(expected, StringType):
        return isinstance(actual, StringType)
    if isinstance(expected, DTensorType) and isinstance(actual, DTensorType):
        same_place = structural_equal(actual.device_mesh, expected.device_mesh) and (
            actual.placement == expected.placement
        )
        return _all((same_place, assignable(actual.tensor_ty, expected.tensor_ty)))
    return False


def _below_tuples(a: Type | None, b: Type | None) -> Iterator[tuple[Type | None, Type]]:
    """Where two types have tuples of one length, the types in them (at any depth), each pair once: tuples of tuples
    may share theirs without end. Where they do not, the two."""
    seen: set[tuple[int, int]] = set()
    stack = [(a, b)]
    while stack:
        x, y = stack.pop()
        if (id(x), id(y)) in seen or y is None:
            continue
        seen.add((id(x), id(y)))
        if isinstance(x, TupleType) and isinstance(y, TupleType) and len(x.fields) == len(y.fields):
            stack.extend(reversed(list(zip(x.fields, y.fields, strict=True))))
        else:
            yield x, y


def _tensor_assignable(actual: Type, expected: TensorType) -> bool | None:
    if not isinstance(actual, TensorType):
        return False
    dtype: bool | None = True
    if expected.dtype is not None:
        dtype = None if actual.dtype is None else actual.dtype == expected.dtype
    rank: bool | None = True
    if expected.ndim != -1:
        rank = None if actual.ndim == -1 else actual.ndim == expected.ndim
    shape: bool | None = True
    wanted = tensor_dims(expected)
    if wanted is not None and rank is not False:
        dims = tensor_dims(actual)
        shape = None if dims is None else same_shape(dims, wanted)
    elif expected.shape is not None and expected.shape is not actual.shape:
        shape = None
    return _all((dtype, rank, shape))


def _shape_assignable(actual: Type, expected: ShapeType) -> bool | None:
    if not isinstance(actual, ShapeType):
        return False
    if expected.ndim == -1:
        return True
    if actual.ndim == -1:
        return None
    if actual.ndim != expected.ndim:
        return False
    if expected.values is None:
        return True
    return None if actual.values is None else same_shape(actual.values, expected.values)


def _func_assignable(actual: Type, expected: FuncType) -> bool | None:
    if not isinstance(actual, FuncType) or (expected.purity and not actual.purity):
        return False
    if expected.params is None:
        return True
    if actual.params is None:
        return None
    if len(actual.params) != len(expected.params):
        return False
    mapping: dict[Var, Expr] = {}
    params = [unify(a, e, mapping) for a, e in zip(actual.params, expected.params, strict=True)]
    return _all([*params, assignable(substitute(actual.ret, mapping), expected.ret)])


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    found = list(verdicts)
    if any(v is False for v in found):
        return False
    return True if all(v is True for v in found) else None


def unify(formal: Type, actual: Type | None, mapping: dict[Var, Expr]) -> bool | None:
    """Bind the symbols of a callee's parameter type to the argument's dimensions, then compare.

    ``mapping`` grows by every symbol that stands alone as a dimension; a symbol bound before is compared. The result
    is that of `assignable` after the substitution. Call it for all parameters, then `assignable` again for
    dimensions whose symbols were bound later.
    """
    _bind(formal, actual, mapping)
    return assignable(actual, substitute(formal, mapping))


def _bind(formal: Type, actual: Type | None, mapping: dict[Var, Expr]) -> None:
    for a, f in _below_tuples(actual, formal):
        _bind_dims(f, a, mapping)


def _bind_dims(formal: Type, actual: Type | None, mapping: dict[Var, Expr]) -> None:
    wanted: tuple[Expr, ...] | None = None
    given: tuple[Expr, ...] | None = None
    if isinstance(formal, TensorType) and isinstance(actual, TensorType):
        wanted, given = tensor_dims(formal), tensor_dims(actual)
    elif isinstance(formal, ShapeType) and isinstance(actual, ShapeType):
        wanted, given = formal.values, actual.values
    if wanted is not None and given is not None and len(wanted) == len(given):
        for w, g in zip(wanted, given, strict=True):
            if isinstance(w, Var) and w not in mapping:
                mapping[w] = g


def bind_parameters(formals: Iterable[Type], actuals: Iterable[Type | None]) -> dict[Var, Expr]:
    """The symbols of a function's parameter types in terms of the arguments' dimensions."""
    mapping: dict[Var, Expr] = {}
    for formal, actual in zip(formals, actuals, strict=True):
        _bind(formal, actual, mapping)
    return mapping


def defined_symbols(types: Iterable[Type | None]) -> list[Var]:
    """The symbols that parameter types define, in order of first appearance."""
    found: dict[Var, None] = {}
    for ty in types:
        if ty is not None and not isinstance(ty, PrimType):
            found.update(dict.fromkeys(_outside_functions(ty)))
    return list(found)


def _outside_functions(ty: Type) -> list[Var]:
    parts = [part for _, part in _below_tuples(ty, ty) if not isinstance(part, FuncType)]
    return [symbol for part in parts for symbol in free_symbols(part)]


def erase(ty: Type, known: Iterable[Var]) -> Type:
    """The type without symbols that are not ``known``: such a shape degrades to its rank."""
    allowed = {id(v) for v in known}
    return _erase(ty, allowed, {})


def _erase(ty: Type, allowed: set[int], done: dict[int, Type]) -> Type:
    if isinstance(ty, TupleType):
        if id(ty) not in done:
            done[id(ty)] = TupleType(tuple(_erase(field, allowed, done) for field in ty.fields))
        return done[id(ty)]

    def closed(values: Iterable[Expr]) -> bool:
        return all(id(s) in allowed for value in values for s in free_symbols(value))

    if isinstance(ty, TensorType):
        dims = tensor_dims(ty)
        if dims is None and ty.shape is not None:
            return TensorType(None, ty.dtype, ty.ndim, ty.vdevice)
        return ty if dims is None or closed(dims) else TensorType(None, ty.dtype, ty.ndim, ty.vdevice)
    if isinstance(ty, ShapeType):
        return ty if ty.values is None or closed(ty.values) else ShapeType(None, ty.ndim)
    return ty


def common(a: Type | None, b: Type | None) -> Type:
    """The most precise type that both are assignable to (the type of ``if a else b``)."""
    return _common(a, b, {})


def _common(a: Type | None, b: Type | None, done: dict[tuple[int, int], Type]) -> Type:
    if not (isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.fields) == len(b.fields)):
        return _common_below(a, b)
    made = done.get((id(a), id(b)))
    if made is None:
        made = TupleType(tuple(_common(x, y, done) for x, y in zip(a.fields, b.fields, strict=True)))
        done[id(a), id(b)] = made
    return made


def _common_below(a: Type | None, b: Type | None) -> Type:
    if a is None or b is None:
        return AnyType()
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        dtype = a.dtype if a.dtype == b.dtype else None
        if a.ndim != b.ndim:
            return TensorType(None, dtype)
        left, right = tensor_dims(a), tensor_dims(b)
        if left is not None and right is not None and same_shape(left, right) is True:
            return TensorType(a.shape, dtype, a.ndim)
        return TensorType(None, dtype, a.ndim)
    if isinstance(a, ShapeType) and isinstance(b, ShapeType):
        if a.values is not None and b.values is not None and same_shape(a.values, b.values) is True:
            return a
        return ShapeType(None, a.ndim if a.ndim == b.ndim else -1)
    if isinstance(a, PrimType) and isinstance(b, PrimType) and a.dtype == b.dtype:
        return a
    if isinstance(a, StringType) and isinstance(b, StringType):
        return a
    if isinstance(a, FuncType) and isinstance(b, FuncType) and assignable(a, b) is True:
        return a if assignable(b, a) is True else b
    return AnyType()


def simplify_dims(values: Iterable[Expr]) -> tuple[Expr, ...]:
    """Dimensions in canonical form; one that differs from it only in the order of its operands stays as it is."""
    return tuple(v if isinstance(v, (IntImm, Var)) else _simplified(v) for v in values)


def _simplified(dim: Expr) -> Expr:
    made: Expr = SHAPES.simplify(dim)
    return dim if _parts(dim) == _parts(made) else made


def _parts(e: Expr) -> list[tuple[str, object]]:
    """What an expression is made of, without the order; each part as often as it is written."""
    found: list[tuple[str, object]] = []
    stack: list[Node] = [e]
    while stack:
        current = stack.pop()
        if len(found) > _MANY_PARTS:
            return [("long", id(e))]
        leaf = id(current) if isinstance(current, Var) else current.value if isinstance(current, IntImm) else None
        found.append((type(current).__name__, leaf))
        stack.extend(children(current))
    return sorted(found, key=repr)


_MANY_PARTS = 64  # a longer dimension is not worth the comparison


def tensor(dims: Iterable[Expr] | None, dtype: str | None, ndim: int = -1) -> TensorType:
    """A tensor type with simplified dimensions, or of known rank only."""
    if dims is None:
        return TensorType(None, dtype, ndim)
    return TensorType(ShapeExpr(simplify_dims(dims)), dtype)


def may_be_condition(ty: Type | None) -> bool:
    """Whether a value of a type may be a scalar bool, which is what an ``if`` needs."""
    if isinstance(ty, TensorType):
        return ty.dtype in (None, "bool") and ty.ndim in (-1, 0)
    return ty is None or isinstance(ty, AnyType) or (isinstance(ty, PrimType) and ty.dtype == "bool")


def _result_type(func: Function) -> Type:
    """The declared return type, or what the body gives where that says more (as in Relax)."""
    declared, deduced = func.ret_ty, getattr(func.body.body, "ty", None)
    assert declared is not None
    if not isinstance(deduced, Type) or deduced is declared:
        return declared
    visible = erase(deduced, defined_symbols(p.ty for p in func.params if p.ty is not None))
    return visible if assignable(visible, declared) is True else declared


METHODS["function.ret_ty"] = _result_type
