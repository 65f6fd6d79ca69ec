"""Calls of operators on sizes that the program does not name, or does not relate, as functions that do.

Before (``q`` has an unknown number of rows, ``y`` a number that nothing relates to that of ``x``)::

    a: R.Tensor(dtype="float32", ndim=2) = R.concat((q, w), axis=0)
    b: R.Tensor(dtype="float32", ndim=1) = R.add(x, y)

After::

    a: R.Tensor(dtype="float32", ndim=2) = cls.concat_named(q, w)
    b: R.Tensor(dtype="float32", ndim=1) = cls.add_named(x, y)

    def concat_named(x0: R.Tensor((n0, n1)), x1: R.Tensor((n2, n3))):
        x2 = R.match_cast(x1, R.Tensor((n2, n1)))              # what the operator asks for, checked when it runs
        gv: R.Tensor((n0 + n2, n1)) = R.concat((x0, x2), axis=0)

    def add_named(x0: R.Tensor((n0,)), x1: R.Tensor((n1,))):
        sizes = R.call_tir(cls.common_sizes, (x0, x1), out_ty=R.Tensor((1,), "int64"))    # by broadcasting
        _ = R.match_cast(R.tensor_to_shape(sizes), R.Shape([m0]))
        gv: R.Tensor((m0,)) = R.add(<x0 spread to (m0,)>, <x1 spread to (m0,)>)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from supple.base.errors import TypeCheckError
from supple.build import te
from supple.build.block_builder import BlockBuilder
from supple.build.infer import infer
from supple.build.loops import do, require, store
from supple.ir import expr as E
from supple.ir.expr import Call, Var, int64, is_scalar
from supple.ir.graph import ShapeExpr, Tuple
from supple.ir.node import Expr, Node, Stmt, Type, replace
from supple.ir.op import Fusion, Op
from supple.ir.types import ShapeType, TensorType, TupleType, prim_type
from supple.ir.walk import free_symbols, substitute
from supple.ops.forms import tensor_to_shape
from supple.ops.requirements import Requirement, assumptions_of, requirements_of
from supple.sym.relate import tensor_dims
from supple.sym.simplify import SHAPES

Args = tuple[Expr, ...]


class UnnamedSizes:
    """Makes the functions."""

    def __init__(self, builder: BlockBuilder) -> None:
        self.builder = builder

    def call(self, call: Call, op: Op, lowered: Callable[[Call], Call]) -> Call | None:
        """A call of a function that names the sizes. None where all are named, or where names do not tell the
        result's shape. ``lowered`` makes the form of the call inside that compiled code runs."""
        tensors = tensors_of(call.args)
        types = [infer(t) for t in tensors]
        result = call.ty if call.ty is not None else infer(call)
        if all(_is_named(t) for t in (*types, *_parts(result))):
            return None
        if any(not isinstance(t, TensorType) or t.ndim == -1 or t.dtype is None for t in types):
            return None
        made = _Params([t for t in types if isinstance(t, TensorType)], _symbols_beside(call.args))
        inside = Call(op, made.renamed(call.args, tensors), call.attrs, span=call.span)
        related = _related(inside, made.tensors)
        if related is None or not _can_run(op, inside, _with(inside.args, related)):
            return None
        build = self.builder
        build.begin_function(f"{op.short_name.rpartition('.')[2]}_named", made.params)
        args = _with(inside.args, {p: self._cast(p, v, call) for p, v in related.items()})
        asked = Call(op, args, call.attrs, span=call.span)
        for needed in requirements_of(asked):
            build.match_cast(ShapeExpr((needed.actual,)), ShapeType((needed.expected,)), span=call.span)
        if not _is_known(infer(asked)):
            args = _with(args, self._spread(_together(op, args), op.facts.get("core_dims", 0)))
        last = Call(op, args, call.attrs, span=call.span)
        gv = build.emit(lowered(replace(last, ty=infer(last))), span=call.span)
        operands = (*tensors, *([ShapeExpr(tuple(made.beside))] if made.beside else []))
        return Call(build.emit_func_output(gv), operands, span=call.span, ty=result)

    def _cast(self, param: Var, wanted: Var, call: Call) -> Var:
        """A parameter whose sizes are checked to be what the operator asks for."""
        if wanted is param:
            return param
        assert wanted.ty is not None
        return self.builder.match_cast(param, wanted.ty, span=call.span)

    def _spread(self, together: Sequence[Var], core: int) -> dict[Var, Var]:
        """Operands that broadcast together but for their ``core`` last dimensions, each spread to the common shape,
        which is only known at run time."""
        build, rank = self.builder, max(_outer(v, core) for v in together)
        sizes = build.emit(build.call_te(_common_sizes, list(together), core, primfunc_name_hint="common_sizes"))
        common = tuple(Var(f"m{d}", prim_type("int64")) for d in range(rank))
        build.match_cast(build.emit(tensor_to_shape(sizes)), ShapeType(common))
        spread = {}
        for operand in together:
            outer = _outer(operand, core)
            dims = [*common[rank - outer :], *_dims(operand)[outer:]]
            spread[operand] = build.emit(build.call_te(_spread, operand, dims, outer, primfunc_name_hint="spread"))
        return spread


class _Params:
    """Parameters for operands of some types, with symbols of their own, and for the symbols beside the tensors."""

    def __init__(self, types: Sequence[TensorType], beside: Sequence[Var]) -> None:
        self._fresh: dict[Any, Var] = {}
        self._count = 0
        self.tensors = [Var(f"x{n}", self._own(ty)) for n, ty in enumerate(types)]
        self.beside = [s for s in beside if SHAPES.canonical(s) not in self._fresh]
        sizes = ShapeType(tuple(self._symbol(s) for s in self.beside))
        self.params = [*self.tensors, *([Var("sizes", sizes)] if self.beside else [])]
        self._symbols: dict[Var, Node] = {s: self._symbol(s) for s in beside}

    def _new(self) -> Var:
        self._count += 1
        return Var(f"n{self._count - 1}", prim_type("int64"))

    def _symbol(self, dim: Expr) -> Var:
        key = SHAPES.canonical(dim)
        if key not in self._fresh:
            self._fresh[key] = self._new()
        return self._fresh[key]

    def _own(self, ty: TensorType) -> TensorType:
        dims = tensor_dims(ty)
        if dims is None:
            return TensorType(ShapeExpr(tuple(self._new() for _ in range(ty.ndim))), ty.dtype)
        return TensorType(ShapeExpr(tuple(d if isinstance(d, E.IntImm) else self._symbol(d) for d in dims)), ty.dtype)

    def renamed(self, args: Args, tensors: Sequence[Expr]) -> Args:
        """The arguments with parameters for tensors and symbols."""
        own = {id(t): p for t, p in zip(tensors, self.tensors, strict=True)}

        def one(arg: Expr) -> Expr:
            if id(arg) in own:
                return own[id(arg)]
            if isinstance(arg, Tuple):
                return Tuple(tuple(one(f) for f in arg.fields))
            return substitute(arg, self._symbols) if self._symbols else arg

        return tuple(one(a) for a in args)


def tensors_of(args: Args) -> list[Expr]:
    """The tensors among arguments and the fields of tuples, each once, in order."""
    found: dict[int, Expr] = {}
    stack = list(reversed(args))
    while stack:
        arg = stack.pop()
        if isinstance(arg, Tuple):
            stack.extend(reversed(arg.fields))
        elif isinstance(getattr(arg, "ty", None), TensorType):
            found.setdefault(id(arg), arg)
    return list(found.values())


def _symbols_beside(args: Args) -> list[Var]:
    """The symbols of arguments that are no tensors."""
    found: dict[Var, None] = {}
    stack = list(reversed(args))
    while stack:
        arg = stack.pop()
        if isinstance(arg, Tuple):
            stack.extend(reversed(arg.fields))
        elif isinstance(arg, ShapeExpr) or is_scalar(arg):
            found.update(dict.fromkeys(free_symbols(arg)))
    return list(found)


def _with(args: Args, replaced: dict[Var, Var]) -> Args:
    return tuple(
        Tuple(_with(a.fields, replaced)) if isinstance(a, Tuple) else replaced.get(a, a) if isinstance(a, Var) else a
        for a in args
    )


def _parts(ty: Type) -> tuple[Type, ...]:
    return ty.fields if isinstance(ty, TupleType) else (ty,)


def _is_named(ty: Type) -> bool:
    return isinstance(ty, TensorType) and tensor_dims(ty) is not None


def _is_known(ty: Type) -> bool:
    return all(_is_named(part) for part in _parts(ty))


def _dims(value: Var) -> tuple[Expr, ...]:
    assert isinstance(value.ty, TensorType)
    return tensor_dims(value.ty) or ()


def _can_run(op: Op, inside: Call, args: Args) -> bool:
    """Whether the result's shape is known on such arguments, or when those that broadcast together are spread."""
    try:
        ty = infer(Call(op, args, inside.attrs, span=inside.span))
    except TypeCheckError:  # asks for what names do not say
        return False
    return _is_known(ty) or bool(_together(op, args))


def _related(inside: Call, params: Sequence[Var]) -> dict[Var, Var] | None:
    """The parameters with sizes that are equal where the operator asks for it; None where it refuses them."""
    related = {p: p for p in params}
    for _ in range(2 * sum(len(_dims(p)) for p in params) + 1):
        args = _with(inside.args, related)
        try:
            asked = assumptions_of(Call(inside.op, args, inside.attrs, span=inside.span))
        except TypeCheckError:
            return None
        renaming = next((found for r in asked if (found := _renaming(r)) is not None), None)
        if renaming is None:
            break
        related = {p: _renamed(v, renaming) for p, v in related.items()}
    return related


def _renamed(value: Var, renaming: dict[Var, Node]) -> Var:
    if not any(s in renaming for dim in _dims(value) for s in free_symbols(dim)):
        return value
    assert value.ty is not None
    return Var(value.name, substitute(value.ty, renaming))


def _renaming(asked: Requirement) -> dict[Var, Node] | None:
    """The symbol that a requirement says to be another size."""
    for one, other in ((asked.actual, asked.expected), (asked.expected, asked.actual)):
        if isinstance(one, Var) and not any(s is one for s in free_symbols(other)):
            return {one: other}
    return None


# -------------------------------------------------------------------------------------------------------- broadcasting


def _together(op: Op, args: Args) -> list[Var]:
    """The operands that broadcast together."""
    named = op.facts.get("broadcasts")
    if named is None and op.fusion is not Fusion.BROADCAST:
        return []
    params = [p for p in op.params if not p.is_attr]
    chosen = [a for p, a in zip(params, args, strict=False) if named is None or p.name in named]
    return [t for t in tensors_of(tuple(chosen)) if isinstance(t, Var)]


def _outer(value: Var, core: int) -> int:
    """How many dimensions stand before the core ones (a vector has none)."""
    return max(len(_dims(value)) - core, 0)


def _common_sizes(tensors: Sequence[te.TensorValue], core: int) -> te.TensorValue:
    """The shape that the tensors have together by broadcasting; fails where they have none."""
    shapes = [t.shape[: max(t.ndim - core, 0)] for t in tensors]
    rank = max(map(len, shapes))
    one = int64(1)

    def body(sizes: te.TensorValue) -> Stmt:
        steps = []
        for d in range(rank):
            extents = [shape[d - rank + len(shape)] for shape in shapes if d - rank + len(shape) >= 0]
            size: Expr = one
            for extent in extents:
                size = E.Select(E.EQ(size, one), extent, size)
            for extent in extents:
                fits = E.Or(E.EQ(extent, one), E.EQ(extent, size))
                steps.append(require(fits, f"the operands' shapes do not broadcast (dimension {d})"))
            steps.append(store(sizes, size, d))
        return do(*steps)

    return te.extern([((int64(rank),), "int64")], list(tensors), body, "common_sizes")[0]


def _spread(tensor: te.TensorValue, dims: Sequence[Expr], outer: int) -> te.TensorValue:
    """The tensor with its ``outer`` dimensions repeated where their extent is 1."""

    def body(*i: Any) -> Expr:
        own = zip(i[:outer], tensor.shape, strict=False)
        at = [E.Select(E.EQ(extent, int64(1)), int64(0), place) for place, extent in own]
        return tensor[(*at, *i[outer:])]

    return te.compute(dims, body, "spread")
