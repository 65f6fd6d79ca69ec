"""Well-formedness of modules: one small named function per invariant, each yielding the faults it finds.

A rule takes the module and one function. ``check_module`` raises the first fault; ``well_formed`` answers yes or no.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from supple.base.errors import DiagnosticError, Note, TypeCheckError
from supple.base.registry import did_you_mean
from supple.base.source import Span
from supple.ir.expr import BufferLoad, Call, DataflowVar, IntImm, TupleGetItem, Var, is_scalar, place_of_use
from supple.ir.graph import (
    DataflowBlock,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    Tuple,
    VarBinding,
)
from supple.ir.loop import BufferRegion, BufferStore, MatchBufferRegion, PrimFunc
from supple.ir.module import BaseFunc, IRModule
from supple.ir.node import Expr, Type, children
from supple.ir.op import Op
from supple.ir.types import BufferType, DTensorType, FuncType, PrimType, TensorType, result_types
from supple.ir.walk import free_symbols, post_order, substitute
from supple.sym.relate import assignable, defined_symbols, dims_text, may_be_condition, tensor_dims
from supple.sym.simplify import same_shape
from supple.verify.events import events, operands
from supple.verify.loops import LOOP_RULES
from supple.verify.purity import is_pure_call, overwrites

Fault = DiagnosticError
Rule = Callable[[IRModule, Function], Iterator[Fault]]


def check_module(mod: IRModule) -> None:
    """Raise the first fault of a module; its text names the place, what was expected and what came."""
    for fault in faults(mod):
        raise fault


def well_formed(mod: IRModule | BaseFunc) -> bool:
    """Whether a module or function obeys every rule."""
    module = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
    return next(faults(module), None) is None


def faults(mod: IRModule) -> Iterator[Fault]:
    """Every fault of a module, function by function."""
    yield from names_agree(mod)
    for func in mod.functions.values():
        if isinstance(func, Function):
            for rule in RULES:
                yield from rule(mod, func)
        elif isinstance(func, PrimFunc) and not _is_faultless(func):
            yield from _loop_faults(func)


def _loop_faults(func: PrimFunc) -> Iterator[Fault]:
    for rule in LOOP_RULES:
        yield from rule(func)


@functools.lru_cache(maxsize=256)
def _is_faultless(func: PrimFunc) -> bool:
    """Whether a loop function (an object that never changes) obeys every rule; most passes hand most of them on."""
    return next(_loop_faults(func), None) is None


def _fault(message: str, span: Span | None, rule: str, **rest: object) -> Fault:
    return DiagnosticError(message, span=span, rule=rule, **rest)  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------------------------- modules


def names_agree(mod: IRModule) -> Iterator[Fault]:
    """The ``global_symbol`` of a graph function is the name that it has in the module."""
    for var, func in mod.items():
        symbol = func.attrs.get("global_symbol") if isinstance(func, Function) else None
        if symbol is not None and symbol != var.name_hint:
            yield _fault(
                f"the function {var.name_hint} has another global_symbol",
                func.span,
                "global_symbol",
                expected=repr(var.name_hint),
                actual=repr(symbol),
            )


def variables_belong_to_one_function(mod: IRModule) -> Iterator[Fault]:
    """No two graph functions have a parameter, or a symbol of their parameters' sizes, in common.

    Compiling does not mind, so this is no rule of `faults`; Relax's own passes do, so its `well_formed` asks it."""
    owner: dict[int, tuple[str, Function]] = {}
    for name, func in mod.items():
        if not isinstance(func, Function):
            continue
        own = {id(v): v for param in func.params for v in (param, *(free_symbols(param.ty) if param.ty else ()))}
        for var in own.values():
            other, first = owner.setdefault(id(var), (name.name_hint, func))
            if first is not func:
                yield _fault(
                    f"{var.name} belongs to two functions, {other} and {name.name_hint}",
                    var.span or func.span,
                    "shared_variable",
                    hint="relax.copy_with_new_vars(function) is the same function of its own variables",
                )


# ----------------------------------------------------------------------------------------------------------- variables


def variables_are_defined_once(mod: IRModule, func: Function) -> Iterator[Fault]:
    """Every variable is bound exactly once, before it is used, where it is visible."""
    visible: dict[int, Var] = {}
    ever: dict[int, Var] = {}
    left_block: dict[int, Var] = {}
    scopes: list[list[Var]] = []

    def define(var: Var) -> Iterator[Fault]:
        if id(var) in ever:
            note = Note(f"{var.name} is bound here first", ever[id(var)].span)
            yield DiagnosticError(f"the variable {var.name} is bound twice", var.span, rule="rebound", notes=[note])
        ever[id(var)] = visible[id(var)] = var
        scopes[-1].append(var)

    def use(e: Expr, span: Span | None) -> Iterator[Fault]:
        if isinstance(e, Var) and not isinstance(e.ty, PrimType) and id(e) not in visible:
            if id(e) in left_block and isinstance(e, DataflowVar):
                note = Note(f"{e.name} is bound in this block", e.span)
                yield DiagnosticError(
                    f"the dataflow variable {e.name} is used outside its block",
                    e.span if span is None else span,
                    hint=f"add R.output({e.name}) at the end of the block",
                    rule="dataflow_scope",
                    notes=[note],
                )
            else:
                names = [v.name for v in visible.values()]
                yield _fault(f"the variable {e.name} is not defined{did_you_mean(e.name, names)}", span, "undefined")

    for kind, item in events(func):
        if kind == "function":
            scopes.append([])
            for param in item.params:
                yield from define(param)
        elif kind == "scope":
            scopes.append([])
        elif kind in ("end_scope", "end_function"):
            for var in scopes.pop():
                visible.pop(id(var), None)
        elif kind == "end_block" and isinstance(item, DataflowBlock):
            for var in [v for v in scopes[-1] if isinstance(v, DataflowVar)]:
                if visible.pop(id(var), None) is not None:
                    left_block[id(var)] = var
        elif kind == "value":
            for operand in operands(item.value):
                yield from use(operand, item.value.span or item.span)
            if isinstance(item.value, Function):
                visible[id(item.var)] = item.var  # a local function may call itself
        elif kind == "result":
            for operand in operands(item.body):
                yield from use(operand, item.body.span or item.span)
        elif kind == "bind":
            yield from define(item.var)


def dataflow_variables_stay_in_dataflow(mod: IRModule, func: Function) -> Iterator[Fault]:
    """A `DataflowVar` is bound only in a dataflow block, which holds no branches and no nested blocks."""
    inside: list[bool] = []
    for kind, item in events(func):
        if kind == "function":
            for param in item.params:
                if isinstance(param, DataflowVar):
                    yield _fault(f"{param.name} is a dataflow variable, but a parameter", param.span, "dataflow")
        elif kind == "block":
            inside.append(isinstance(item, DataflowBlock))
        elif kind == "end_block":
            inside.pop()
        elif kind == "value" and inside[-1] and isinstance(item.value, If):
            yield _fault("a dataflow block holds no branches", item.value.span or item.span, "dataflow")
        elif kind == "bind" and isinstance(item.var, DataflowVar) and not inside[-1]:
            yield _fault(
                f"{item.var.name} is a dataflow variable bound outside a dataflow block", item.span, "dataflow"
            )


def symbols_are_defined(mod: IRModule, func: Function) -> Iterator[Fault]:
    """Every symbol in a shape or type comes from a parameter or a ``match_cast`` before it."""
    known: dict[int, Var] = {}

    def check(part: Expr | Type, span: Span | None) -> Iterator[Fault]:
        for symbol in free_symbols(part):
            if id(symbol) not in known:
                known[id(symbol)] = symbol
                yield _fault(
                    f"the symbol {symbol.name} is used before it is defined",
                    symbol.span or span,
                    "undefined_symbol",
                    hint="a symbol comes from a parameter's shape or from R.match_cast",
                )

    for kind, item in events(func):
        if kind == "function":
            for symbol in [*defined_symbols(p.ty for p in item.params), *item.params]:
                known[id(symbol)] = symbol
            if item.ret_ty is not None and not isinstance(item.ret_ty, FuncType):
                yield from check(item.ret_ty, item.ret_ty.span or item.span)
        elif kind == "value":
            if isinstance(item, MatchCast):
                known.update((id(s), s) for s in free_symbols(item.ty))
            if isinstance(item, VarBinding) and not isinstance(item.value, (Function, If)):
                for operand in operands(item.value):
                    if isinstance(operand, Var) and isinstance(operand.ty, PrimType):
                        yield from check(operand, item.value.span or item.span)
                for ty in item.value.ty_args if isinstance(item.value, Call) else ():
                    yield from check(ty, ty.span or item.value.span)
        elif kind == "bind" and isinstance(item.var.ty, PrimType):
            known[id(item.var)] = item.var


# -------------------------------------------------------------------------------------------------------------- purity


def dataflow_blocks_are_pure(mod: IRModule, func: Function) -> Iterator[Fault]:
    """No call in a dataflow block may have an effect."""
    inside = False
    for kind, item in events(func):
        if kind == "block":
            inside = isinstance(item, DataflowBlock)
        elif kind == "value" and inside and isinstance(item.value, Call) and not is_pure_call(item.value):
            yield _fault(
                f"{callee_name(item.value)} may have an effect, but stands in a dataflow block",
                item.value.span or item.span,
                "impure_in_dataflow",
                expected="a pure call",
                actual=f"an impure call of {callee_name(item.value)}",
                hint="move it out of the block, or promise purity with R.call_pure_packed",
            )


def pure_functions_make_pure_calls(mod: IRModule, func: Function) -> Iterator[Fault]:
    """A function that is marked pure calls nothing that may have an effect."""
    pure: list[Function] = []
    for kind, item in events(func):
        if kind == "function":
            pure.append(item)
        elif kind == "end_function":
            pure.pop()
        elif kind == "value" and pure[-1].is_pure and isinstance(item.value, Call) and not is_pure_call(item.value):
            if pure[-1].attrs.get("relax.force_pure") or overwrites(item.value):
                continue
            yield _fault(
                f"{callee_name(item.value)} may have an effect, but the function is marked pure",
                item.value.span or item.span,
                "impure_function",
                hint="write @R.function(pure=False), or promise purity with R.call_pure_packed",
            )


def callee_name(call: Call) -> str:
    """What a call calls, as the script writes it."""
    op = call.op
    if isinstance(op, Op):
        return f"R.{op.short_name}"
    if isinstance(op, ExternFunc):
        return f'R.call_packed("{op.global_symbol}")'
    return str(getattr(op, "name_hint", type(op).__name__))


# --------------------------------------------------------------------------------------------------------------- calls


def values_are_in_normal_form(mod: IRModule, func: Function) -> Iterator[Fault]:
    """Operands of a call are variables, constants or tuples of them: every nested call has a name."""
    for kind, item in events(func):
        if kind == "result" and isinstance(item.body, (Call, TupleGetItem, If)) and not is_scalar(item.body):
            place = item.body.span or item.span
            yield _fault("a result is not in normal form: bind it to a variable", place, "anf")
        value = item.value if kind == "value" else item.body if kind == "result" else None
        if not isinstance(value, (Call, Tuple, TupleGetItem)):
            continue
        parts = value.args if isinstance(value, Call) else (value,)
        stack = list(parts)
        entered: set[int] = set()
        while stack:
            part = stack.pop()
            if isinstance(part, Tuple):
                if id(part) not in entered:
                    entered.add(id(part))
                    stack.extend(part.fields)
            elif part is not value and isinstance(part, (TupleGetItem, If)):
                yield _fault("an operand is not in normal form: bind it to a variable", part.span or item.span, "anf")
            elif part is not value and isinstance(part, Call) and not isinstance(part.ty, PrimType):
                yield _fault("a nested call is not bound to a variable", part.span or item.span, "anf")


def conditions_are_scalar_bools(mod: IRModule, func: Function) -> Iterator[Fault]:
    """The condition of a branch may be a scalar bool, as far as its type says."""
    for kind, item in events(func):
        if kind != "value" or not isinstance(item.value, If):
            continue
        actual = getattr(item.value.cond, "ty", None)
        if not may_be_condition(actual):
            yield TypeCheckError(
                "the condition of an if must be a scalar bool",
                span=place_of_use(item.value.cond, None) or item.value.span or item.span,
                expected='R.Tensor((), "bool")',
                actual=str(actual),
                rule="condition",
            )


def global_functions_exist(mod: IRModule, func: Function) -> Iterator[Fault]:
    """Every function that is referred to is in the module."""
    for kind, item in events(func):
        if kind == "value":
            for operand in operands(item.value):
                if isinstance(operand, GlobalVar) and operand not in mod:
                    names = [v.name_hint for v in mod]
                    yield _fault(
                        f"the module has no function {operand.name_hint}{did_you_mean(operand.name_hint, names)}",
                        place_of_use(operand, item.value),
                        "undefined_function",
                    )


def call_tir_fits_the_loop_function(mod: IRModule, func: Function) -> Iterator[Fault]:
    """``call_tir`` passes what the loop function's buffers take: count, dtype, rank and shape."""
    for kind, item in events(func):
        value = item.value if kind == "value" else None
        if not isinstance(value, Call) or not isinstance(value.op, Op) or not value.op.facts.get("calls_loop_function"):
            continue
        callee = value.args[0]
        target = mod[callee] if isinstance(callee, GlobalVar) and callee in mod else None
        if isinstance(target, PrimFunc):
            yield from _check_call_tir(value, callee, target)
        elif target is not None:
            yield _fault(
                f"{value.op.short_name} calls loop functions only", value.span, "call_tir", actual="R.function"
            )


def _check_call_tir(call: Call, callee: Expr, target: PrimFunc) -> Iterator[Fault]:
    name = getattr(callee, "name_hint", "?")
    args = call.args[1].fields if isinstance(call.args[1], Tuple) else ()
    extra: tuple[Expr, ...] = call.args[2].values if len(call.args) > 2 else ()  # type: ignore[attr-defined]
    types = result_types(call.ty_args)
    places = call.attrs.get("inplace_indices", (-1,) * len(types))
    if len(places) != len(types) or any(not -1 <= place < len(args) for place in places):
        yield TypeCheckError(
            f"call_tir_inplace of {name}: one index of an argument (or -1) for each result",
            span=call.span,
            expected=f"{len(types)} indices below {len(args)}",
            actual=str(list(places)),
            rule="call_tir",
        )
        return
    fresh = [ty for ty, place in zip(types, places, strict=True) if place < 0]
    given = [*((a, getattr(a, "ty", None)) for a in args), *((None, ty) for ty in fresh)]
    given += [(e, getattr(e, "ty", None)) for e in extra]
    what = f"call_tir of {name}"
    if len(given) != len(target.params):
        names = ", ".join(p.name for p in target.params)
        yield TypeCheckError(
            f"{what}: the loop function takes {len(target.params)} arguments",
            span=call.span,
            expected=f"{len(target.params)} ({names})",
            actual=f"{len(given)} ({len(args)} inputs, {len(fresh)} outputs, {len(extra)} scalars)",
            rule="call_tir",
            notes=[Note(f"{name} is defined here", target.span)] if target.span else [],
        )
        return
    yield from _outputs_are_written(call, name, target, len(args), len(fresh))
    symbols: dict[Var, Expr] = {}
    for position, (param, (arg, ty)) in enumerate(zip(target.params, given, strict=True)):
        role = "output" if arg is None else "argument"
        problem = _mismatch(param, ty, symbols)
        if problem is not None:
            expected, actual = problem
            yield TypeCheckError(
                f"{what}: {role} {position} ({param.name}) does not fit",
                span=place_of_use(arg, call) if arg is not None else (ty.span if ty is not None else None) or call.span,
                expected=expected,
                actual=actual,
                rule="call_tir",
                notes=[Note(f"{param.name} is declared here", param.span)] if param.span else [],
            )
            return


def _outputs_are_written(call: Call, name: str, target: PrimFunc, inputs: int, outputs: int) -> Iterator[Fault]:
    """An output that no statement writes would be returned as it was allocated. (A buffer that is passed on by its
    address, or viewed, may be written there; one without elements needs no statement.)"""
    written = _written(target)
    for param in target.params[inputs : inputs + outputs]:
        if isinstance(param.ty, BufferType) and id(param) not in written and not _is_empty(param.ty):
            yield _fault(
                f"call_tir of {name}: no statement of {name} writes into {param.name}, which is an output",
                call.span,
                "unwritten_output",
                notes=[Note(f"{param.name} is declared here", param.span)] if param.span else [],
            )


@functools.lru_cache(maxsize=256)
def _written(func: PrimFunc) -> frozenset[int]:
    """The ids of the buffers that a loop function may write."""
    written: set[int] = set()
    for found in post_order(func.body):
        if isinstance(found, BufferStore):
            written.add(id(found.buffer))
        elif isinstance(found, MatchBufferRegion):
            written.add(id(found.source.buffer))
        elif not isinstance(found, (BufferLoad, BufferRegion)):
            written.update(id(c) for c in children(found) if isinstance(c, Var) and isinstance(c.ty, BufferType))
    return frozenset(written)


def _is_empty(ty: BufferType) -> bool:
    return any(isinstance(dim, IntImm) and dim.value == 0 for dim in ty.shape)


def _mismatch(param: Var, ty: Type | None, symbols: dict[Var, Expr]) -> tuple[str, str] | None:
    """What a parameter expects and what came, when they provably differ. Binds the callee's symbols on the way."""
    wanted = param.ty
    if isinstance(wanted, PrimType):
        fits = isinstance(ty, PrimType) and ty.dtype == wanted.dtype
        return None if fits else (f"a {wanted.dtype} scalar", str(ty))
    if not isinstance(wanted, BufferType):
        return None
    if isinstance(ty, DTensorType):  # the whole tensor's sizes
        ty = ty.tensor_ty
    if not isinstance(ty, TensorType):
        return f"a tensor of {wanted.dtype}", str(ty)
    dims = tensor_dims(ty)
    shape = wanted.shape
    if dims is not None and len(dims) == len(shape):
        for formal, actual in zip(shape, dims, strict=True):
            if isinstance(formal, Var) and formal not in symbols:
                symbols[formal] = actual
        shape = tuple(substitute(s, symbols) for s in shape)
    expected = f'R.Tensor({dims_text(shape)}, dtype="{wanted.dtype}")'
    if ty.dtype is not None and ty.dtype != wanted.dtype:
        return expected, str(ty)
    if ty.ndim not in (-1, len(shape)):
        return expected, str(ty)
    if dims is not None and same_shape(dims, shape) is False:
        return expected, str(ty)
    return None


def bound_types_hold(mod: IRModule, func: Function) -> Iterator[Fault]:
    """A variable's type is one that its value's deduced type fits; the return type likewise."""
    for kind, item in events(func):
        if kind == "bind" and isinstance(item, VarBinding) and not isinstance(item.value, Function):
            actual = getattr(item.value, "ty", None)
            if actual is not None and item.var.ty is not None and assignable(actual, item.var.ty) is False:
                yield TypeCheckError(
                    f"{item.var.name} does not have the type of its value",
                    span=item.span,
                    expected=str(item.var.ty),
                    actual=str(actual),
                    rule="bound_type",
                )
        elif kind == "end_function" and item.ret_ty is not None:
            actual = item.body.ty
            if actual is not None and assignable(actual, item.ret_ty) is False:
                yield TypeCheckError(
                    "the returned value does not have the declared return type",
                    span=place_of_use(item.body.body, item.body) or item.span,
                    expected=str(item.ret_ty),
                    actual=str(actual),
                    rule="return_type",
                )


RULES: tuple[Rule, ...] = (
    variables_are_defined_once,
    dataflow_variables_stay_in_dataflow,
    symbols_are_defined,
    dataflow_blocks_are_pure,
    pure_functions_make_pure_calls,
    values_are_in_normal_form,
    conditions_are_scalar_bools,
    global_functions_exist,
    call_tir_fits_the_loop_function,
    bound_types_hold,
)
