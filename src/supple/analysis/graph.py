"""Questions about graph functions: which variables occur, what is bound to what, what is unused, what recurs.

The public names are those of ``relax.analysis``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from supple.ir.conventions import conventions
from supple.ir.expr import Call, TupleGetItem, Var, is_scalar
from supple.ir.graph import (
    Binding,
    DataflowBlock,
    Function,
    GlobalVar,
    If,
    MatchCast,
    SeqExpr,
    ShapeExpr,
    Tuple,
    VarBinding,
)
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.node import METHODS, Expr, Node, Type
from supple.ir.types import FuncType, PrimType, ShapeType, TensorType, TupleType
from supple.ir.walk import evaluate_with, free_symbols, post_order, substitute
from supple.sym.relate import assignable, common, erase, tensor_dims
from supple.verify.events import operands
from supple.verify.purity import is_pure_call
from supple.verify.well_formed import check_module, variables_belong_to_one_function
from supple.verify.well_formed import well_formed as _well_formed


class BaseCheckResult(enum.IntEnum):
    """How a type relates to a base: never fits, only by a check of dtype or rank, only by a shape check, always."""

    FAIL_L0 = 0
    FAIL_L1 = 1
    FAIL_L2 = 2
    PASS = 3


# ------------------------------------------------------------------------------------------------------------ walking


def _graph_children(e: Node) -> Iterator[Node]:
    """What a graph expression is made of, in order of evaluation; types are not entered."""
    if isinstance(e, Function):
        yield from e.params
        yield e.body
    elif isinstance(e, SeqExpr):
        for block in e.blocks:
            for binding in block.bindings:
                yield binding.value  # type: ignore[attr-defined]
                yield binding.var  # type: ignore[attr-defined]
        yield e.body
    elif isinstance(e, Call):
        yield e.op
        yield from e.args
    elif isinstance(e, Tuple):
        yield from e.fields
    elif isinstance(e, TupleGetItem):
        yield e.tuple_value
    elif isinstance(e, If):
        yield from (e.cond, e.true_branch, e.false_branch)
    elif isinstance(e, ShapeExpr):
        yield from e.values
    elif is_scalar(e) and not isinstance(e, Var):
        yield from (n for n in post_order(e) if isinstance(n, Var))


def post_order_visit(expr: Expr, fvisit: Callable[[Expr], Any]) -> None:
    """Call ``fvisit`` on every expression, what it is made of first, as often as it is written.

    Uses of variables are visited, definitions are not. The shapes in the type of a variable, a call, a tuple and so on
    are visited after its operands. What is shared inside of an expression that is no program in normal form is entered
    once, so that the work stays linear.
    """
    entered: set[int] = set()
    stack: list[tuple[Node, Type | None, bool]] = [(expr, None, False)]
    while stack:
        current, ty, expanded = stack.pop()
        if expanded:
            fvisit(current)  # type: ignore[arg-type]
            continue
        if isinstance(current, _ENTERED_ONCE):
            if id(current) in entered:
                continue
            entered.add(id(current))
        stack.append((current, None, True))
        if is_scalar(current) and not isinstance(current, (Var, *_ENTERED_ONCE)):
            below = list(post_order(current))[:-1]
            stack.extend((child, None, True) for child in reversed(below) if isinstance(child, Expr))
            continue
        parts = [(child, known, False) for child, known in _used_by(current)]
        if isinstance(current, (Var, *_ENTERED_ONCE)) and not isinstance(current, Function):
            known = ty if ty is not None else getattr(current, "ty", None)
            parts += [(dim, None, False) for dim in shapes_in(known)]
        stack.extend(reversed(parts))


_ENTERED_ONCE = (Call, Tuple, TupleGetItem, If, SeqExpr, Function)


def _used_by(e: Node) -> Iterator[tuple[Node, Type | None]]:
    """What an expression is made of, without the variables it defines; values with the type of their variable."""
    if isinstance(e, Function):
        yield e.body, None
    elif isinstance(e, SeqExpr):
        for block in e.blocks:
            for binding in block.bindings:
                assert isinstance(binding, (VarBinding, MatchCast))
                yield binding.value, binding.var.ty
                if isinstance(binding, MatchCast):
                    yield from ((shape, None) for shape in shapes_in(binding.ty))
        yield e.body, None
    elif isinstance(e, Call):
        yield e.op, None
        yield from ((shape, None) for ty in e.ty_args for shape in shapes_in(ty))
        yield from ((arg, None) for arg in e.args)
    else:
        yield from ((child, None) for child in _graph_children(e))


def shapes_in(ty: Any) -> Iterator[Expr]:
    """The shapes that a type holds."""
    if isinstance(ty, TupleType):
        for part in ty.fields:
            yield from shapes_in(part)
    elif isinstance(ty, TensorType) and ty.shape is not None:
        yield ty.shape
    elif isinstance(ty, ShapeType):
        yield from ty.values or ()


def _occurrences(expr: Expr) -> Iterator[tuple[Var, bool]]:
    """Every occurrence of a variable, with whether it defines it. A binding's variable comes before its value; after a
    parameter, and after what ``match_cast`` checks, come the symbols that its type defines."""
    stack: list[Any] = [expr]
    while stack:
        current = stack.pop()
        if type(current) is tuple:
            yield current
        elif isinstance(current, Var):
            yield current, False
        elif isinstance(current, Function):
            stack.append(current.body)
            for p in reversed(current.params):
                symbols = definable_tir_vars_in_type(p.ty) if p.ty is not None and not _is_symbol(p) else []
                stack.extend((v, True) for v in reversed([p, *symbols]))
        elif isinstance(current, SeqExpr):
            stack.append(current.body)
            for binding in reversed([b for block in current.blocks for b in block.bindings]):
                assert isinstance(binding, (VarBinding, MatchCast))
                if isinstance(binding, MatchCast):
                    stack.extend((v, True) for v in reversed(definable_tir_vars_in_type(binding.ty)))
                stack.extend((binding.value, (binding.var, True)))
        else:
            stack.extend(reversed(list(_graph_children(current))))


def all_vars(expr: Expr) -> list[Var]:
    """Every variable, bound or free, in order of first appearance; symbols of shapes are variables too."""
    return list(dict.fromkeys(v for v, _ in _occurrences(expr)))


def all_global_vars(expr: Expr) -> list[GlobalVar]:
    """Every function of the module that is referred to."""
    return _in_order(expr, lambda e: isinstance(e, GlobalVar))  # type: ignore[return-value]


def used_vars(expr: Expr) -> list[Var]:
    """Every variable that is used, that is, not merely bound."""
    bound_only = _bindings_of(expr)
    used: dict[Var, None] = {}
    for value in [b.value for b in bound_only] + _results(expr):
        for operand in operands(value):
            if isinstance(operand, Var):
                used[operand] = None
            elif isinstance(operand, ShapeExpr) or is_scalar(operand):
                used.update(dict.fromkeys(free_symbols(operand)))
    return list(used)


def bound_vars(expr: Expr) -> list[Var]:
    """Every variable that is bound: parameters, left-hand sides, and the symbols that types of both define."""
    return list(dict.fromkeys(v for v, defines in _occurrences(expr) if defines))


def free_vars(expr: Expr) -> list[Var]:
    """Every variable that is used but not bound inside."""
    bound = {id(v) for v in bound_vars(expr)}
    return [v for v in all_vars(expr) if id(v) not in bound]


def _is_symbol(e: Node) -> bool:
    return isinstance(e, Var) and isinstance(e.ty, PrimType)


def _in_order(expr: Expr, wanted: Callable[[Node], bool], into_functions: bool = True) -> list[Node]:
    found: list[Node] = []
    seen: set[int] = set()
    names: set[str] = set()
    stack: list[Node] = [expr]
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if wanted(current) and not (isinstance(current, GlobalVar) and current.name_hint in names):
            if isinstance(current, GlobalVar):
                names.add(current.name_hint)
            found.append(current)
        if into_functions or current is expr or not isinstance(current, Function):
            stack.extend(reversed(list(_graph_children(current))))
    return found


def _bindings_of(expr: Expr) -> list[Any]:
    sequences = _in_order(expr, lambda e: isinstance(e, SeqExpr))
    return [b for s in sequences for block in s.blocks for b in block.bindings]  # type: ignore[attr-defined]


def _results(expr: Expr) -> list[Expr]:
    sequences = _in_order(expr, lambda e: isinstance(e, SeqExpr))
    return [s.body for s in sequences] or [expr]  # type: ignore[attr-defined]


# ----------------------------------------------------------------------------------------------------------- bindings


def get_var2val(func: Function) -> dict[Var, Expr]:
    """The value bound to each variable."""
    return {b.var: b.value for b in _bindings_of(func)}


def name_to_binding(func: Function) -> dict[str, list[Binding]]:
    """The bindings of each variable name, in the function's own body; what branches bind is theirs."""
    found: dict[str, list[Binding]] = {}
    for block in func.body.blocks:
        for binding in block.bindings:
            found.setdefault(binding.var.name, []).append(binding)  # type: ignore[attr-defined]
    return found


def udchain(dfb: DataflowBlock) -> dict[Var, list[Var]]:
    """For each variable that a block binds or uses, the block's variables whose values use it."""
    users: dict[Var, dict[Var, None]] = {}
    for binding in dfb.bindings:
        users.setdefault(binding.var, {})  # type: ignore[attr-defined]
        for operand in operands(binding.value):  # type: ignore[attr-defined]
            if isinstance(operand, Var) and not _is_symbol(operand):
                users.setdefault(operand, {})[binding.var] = None  # type: ignore[attr-defined]
    return {var: list(uses) for var, uses in users.items()}


def contains_impure_call(expr: Expr, own_name: Var | GlobalVar | None = None) -> bool:
    """Whether evaluating the expression may have an effect; calls of ``own_name`` (recursion) do not count, nor do
    functions inside that are only defined."""
    for found in _in_order(expr, lambda e: isinstance(e, Call) and not is_scalar(e), into_functions=False):
        op = found.op  # type: ignore[attr-defined]
        same = op is own_name or (isinstance(op, GlobalVar) and isinstance(own_name, GlobalVar) and op == own_name)
        if not same and not is_pure_call(found):  # type: ignore[arg-type]
            return True
    return False


def computable_at_compile_time(func: Function) -> list[Var]:
    """The variables that depend only on parameters that are known when compiling (after the first ``num_input``)."""
    inputs = {id(p) for p in func.params[: int(func.attrs.get("num_input", len(func.params)))]}
    known = [p for p in func.params if id(p) not in inputs]
    known_ids = {id(p) for p in known}
    for binding in _bindings_of(func):
        needs = [o for o in operands(binding.value) if isinstance(o, Var) and not _is_symbol(o)]
        if all(id(v) in known_ids for v in needs) and not contains_impure_call(binding.value):
            known_ids.add(id(binding.var))
            known.append(binding.var)
    return known


# ---------------------------------------------------------------------------------------------------------- recursion


def detect_recursion(mod: IRModule) -> list[list[GlobalVar]]:
    """Groups of functions that call each other in a circle, and functions that call themselves.

    Tarjan's algorithm (1972) for strongly connected components, on the call graph.
    """
    calls = {
        var.name_hint: [g.name_hint for g in all_global_vars(func) if isinstance(mod[g], Function)]
        for var, func in mod.items()
        if isinstance(func, Function)
    }
    groups = [c for c in _components(calls) if len(c) > 1 or c[0] in calls[c[0]]]
    return [[mod.get_global_var(name) for name in sorted(group)] for group in groups]


def _components(graph: Mapping[str, list[str]]) -> list[list[str]]:
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    on_stack: set[str] = set()
    path: list[str] = []
    result: list[list[str]] = []
    for root in graph:
        work: list[tuple[str, Iterator[str]]] = []
        if root not in index:
            work.append((root, iter(graph[root])))
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                path.append(node)
                on_stack.add(node)
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = path[path.index(node) :]
                    del path[path.index(node) :]
                    on_stack.difference_update(component)
                    result.append(component)
            elif following not in index:
                work.append((following, iter(graph.get(following, []))))
            elif following in on_stack:
                low[node] = min(low[node], index[following])
    return result


# -------------------------------------------------------------------------------------------------------------- types


def get_static_type(ty: Type) -> Type:
    """The type without shapes: ranks and dtypes only."""
    if isinstance(ty, TensorType):
        return TensorType(None, ty.dtype, ty.ndim, ty.vdevice)
    if isinstance(ty, ShapeType):
        return ShapeType(None, ty.ndim)
    if isinstance(ty, TupleType):
        return TupleType(tuple(get_static_type(f) for f in ty.fields))
    if isinstance(ty, FuncType) and ty.params is not None:
        return FuncType(tuple(get_static_type(p) for p in ty.params), get_static_type(ty.ret), ty.purity)
    return ty


def erase_to_well_defined(
    ty: Type, shape_var_map: Mapping[Var, Expr] | None = None, var_map: Mapping[Var, Expr] | None = None
) -> Type:
    """The type with the mapped symbols replaced, and without those that are not mapped (their shapes become ranks)."""
    mapping = {**(shape_var_map or {}), **(var_map or {})}
    if isinstance(ty, TensorType) and isinstance(ty.shape, Var) and any(v is ty.shape for v in var_map or ()):
        return substitute(ty, mapping)  # type: ignore[no-any-return] # a shape that is a variable of the graph
    if isinstance(ty, TupleType):
        return TupleType(tuple(erase_to_well_defined(field, shape_var_map, var_map) for field in ty.fields))
    return evaluate_with(erase(ty, mapping), mapping)  # type: ignore[no-any-return]


def type_base_check(base: Type, derived: Type) -> BaseCheckResult:
    """Whether every value of ``derived`` is one of ``base``.

    Under Relax's conventions parameters of functions are compared as their results are, where callers would need the
    opposite.
    """
    parts = _function_parts(base, derived)
    if parts is not None:
        if len(base.params) != len(derived.params) or (base.purity and not derived.purity):  # type: ignore[attr-defined]
            return BaseCheckResult.FAIL_L0
        return min(type_base_check(b, d) for b, d in parts)
    verdict = assignable(derived, base)
    if verdict is True:
        return BaseCheckResult.PASS
    static = assignable(get_static_type(derived), get_static_type(base))
    if static is False:
        return BaseCheckResult.FAIL_L0
    if static is None:
        return BaseCheckResult.FAIL_L1
    return BaseCheckResult.FAIL_L2 if verdict is None else BaseCheckResult.FAIL_L0


METHODS["is_base_of"] = lambda base, derived: type_base_check(base, derived) is BaseCheckResult.PASS


def type_lca(lhs: Type, rhs: Type) -> Type:
    """The most precise type that both are; under Relax's conventions, of functions as of tuples."""
    parts = _function_parts(lhs, rhs)
    if parts is None:
        return common(lhs, rhs)
    assert isinstance(lhs, FuncType) and isinstance(rhs, FuncType)
    *params, ret = [type_lca(a, b) for a, b in parts]
    same = lhs.params is not None and rhs.params is not None and len(lhs.params) == len(rhs.params)
    return FuncType(tuple(params) if same else None, ret, lhs.purity and rhs.purity)


def _function_parts(a: Type, b: Type) -> list[tuple[Type, Type]] | None:
    """The parameters and results of two types of functions, in pairs, where these decide how the two relate."""
    if not conventions().covariant_functions or not (isinstance(a, FuncType) and isinstance(b, FuncType)):
        return None
    if a.params is None or b.params is None:
        return None
    return [*zip(a.params, b.params, strict=False), (a.ret, b.ret)]


def tir_vars_in_type(ty: Type) -> list[Var]:
    """The symbols that occur in a type."""
    return free_symbols(ty)


def definable_tir_vars_in_type(ty: Type) -> list[Var]:
    """The symbols that stand alone as a dimension somewhere in a type, so that a value defines them."""
    return list(dict.fromkeys(d for d in _dims_in(ty) if isinstance(d, Var)))


def _dims_in(ty: Type) -> Iterator[Expr]:
    stack: list[Type] = [ty]
    while stack:
        current = stack.pop()
        if isinstance(current, TensorType):
            yield from tensor_dims(current) or ()
        elif isinstance(current, ShapeType):
            yield from current.values or ()
        elif isinstance(current, TupleType):
            stack.extend(reversed(current.fields))
        elif isinstance(current, FuncType) and current.params is not None:
            stack.extend((current.ret, *reversed(current.params)))


def defined_symbolic_vars(func: Function) -> list[Var]:
    """The symbols that a function's parameters and ``match_cast`` define."""
    found = dict.fromkeys(s for p in func.params if p.ty is not None for s in definable_tir_vars_in_type(p.ty))
    for binding in _bindings_of(func):
        if isinstance(binding, MatchCast):
            found.update(dict.fromkeys(definable_tir_vars_in_type(binding.ty)))
    return list(found)


def free_symbolic_vars(func: Expr) -> list[Var]:
    """The symbols that a function (or another expression, which defines none) uses but does not define."""
    if not isinstance(func, Function):
        return list(dict.fromkeys(free_symbols(func)))
    defined = {id(v) for v in defined_symbolic_vars(func)}
    scalars = {id(p) for p in func.params}
    return [s for s in free_symbols(func) if id(s) not in defined and id(s) not in scalars]


def collect_non_negative_expressions(ty: Type) -> list[Expr]:
    """The symbolic dimensions of a type: each is a size, hence not negative."""
    return list(dict.fromkeys(d for d in _dims_in(ty) if free_symbols(d)))


# ---------------------------------------------------------------------------------------------------- well-formedness


def well_formed(obj: IRModule | Function | PrimFunc, check_ty: bool = True) -> None:
    """Raise `DiagnosticError` for the first rule that is broken."""
    module = obj if isinstance(obj, IRModule) else IRModule.from_expr(obj)
    check_module(module)
    for fault in variables_belong_to_one_function(module):
        raise fault


def check_well_formed(obj: IRModule | Function | PrimFunc, check_ty: bool = True) -> bool:
    """Whether every rule holds."""
    module = obj if isinstance(obj, IRModule) else IRModule.from_expr(obj)
    return _well_formed(module) and next(variables_belong_to_one_function(module), None) is None
