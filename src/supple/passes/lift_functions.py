"""LambdaLift: local functions become functions of the module, their free variables parameters."""

from __future__ import annotations

from collections.abc import Iterator

from supple.build.infer import infer
from supple.ir.expr import Call, Var
from supple.ir.graph import (
    Binding,
    BindingBlock,
    Function,
    GlobalVar,
    If,
    MatchCast,
    SeqExpr,
    Tuple,
    VarBinding,
)
from supple.ir.module import IRModule
from supple.ir.node import Expr, Node, Type, children, replace
from supple.ir.types import PrimType, ShapeType, TensorType, TupleType
from supple.ir.walk import free_symbols, pre_order, substitute, transform
from supple.ops.forms import MAKE_CLOSURE
from supple.sym.relate import defined_symbols, tensor_dims


def lift_functions(mod: IRModule) -> IRModule:
    """Move every local function to the module.

    Before::

        def main(x: R.Tensor((n, 4), dtype="float32"), y: R.Tensor((n, 4), dtype="float32")):
            @R.function
            def inner(a: R.Tensor((n, 4), dtype="float32")):
                return R.add(a, x)
            z = inner(y)
            return z

    After::

        @R.function(private=True)
        def inner(x: R.Tensor((n, 4), dtype="float32"), a: R.Tensor((n, 4), dtype="float32")):
            return R.add(a, x)

        def main(x: R.Tensor((n, 4), dtype="float32"), y: R.Tensor((n, 4), dtype="float32")):
            inner = R.make_closure(cls.inner, (x,))
            z = cls.inner(x, y)
            return z

    Free variables come first, symbols that their shapes do not determine before them. A call of a variable that is
    known to be such a closure calls the function itself; closures that only served for that go with `dead_code`. A
    function that calls itself finds its own free variables among its parameters.
    """
    work = [(var, func) for var, func in mod.items() if isinstance(func, Function) and _local(func)]
    if not work:
        return mod
    lifted = mod.clone()
    names = {var.name_hint for var in mod}
    while work:
        var, func = work.pop()
        rebuilt, functions = _lift_outermost(func, names)
        lifted[var] = _with_direct_calls(rebuilt)
        for name, inner in functions:
            lifted[name] = _with_direct_calls(inner)
            if _local(inner):
                work.append((name, inner))
    return lifted


def _bindings(body: Expr) -> Iterator[Binding]:
    """The bindings of a function's body in order, those in branches included, those of local functions not."""
    stack: list[Expr | Binding] = [body]
    while stack:
        current = stack.pop()
        if isinstance(current, SeqExpr):
            stack.extend(reversed([b for block in current.blocks for b in block.bindings]))
        elif isinstance(current, Binding):
            yield current
            value = current.value  # type: ignore[attr-defined]
            if isinstance(value, If):
                stack.extend((value.false_branch, value.true_branch))
            elif isinstance(value, SeqExpr):
                stack.append(value)


def _local(func: Function) -> list[VarBinding]:
    """The bindings of local functions, without those inside them."""
    return [b for b in _bindings(func.body) if isinstance(b, VarBinding) and isinstance(b.value, Function)]


def _lift_outermost(func: Function, names: set[str]) -> tuple[Function, list[tuple[GlobalVar, Function]]]:
    """A function without its outermost local functions, and those."""
    outer = {id(s) for s in _defined(func)}
    functions: list[tuple[GlobalVar, Function]] = []
    closures: dict[int, Call] = {}
    for binding in _local(func):
        target, inner, captured = _moved(binding, outer, names)
        functions.append((target, inner))
        call = Call(MAKE_CLOSURE, (target, Tuple(captured)), span=binding.value.span)
        closures[id(binding.var)] = replace(call, ty=infer(call))

    def rewrite(node: Node) -> Node | None:
        if isinstance(node, VarBinding) and id(node.var) in closures and isinstance(node.value, Function):
            return replace(node, value=closures[id(node.var)])
        return None

    rebuilt = transform(func, rewrite, into_types=False)
    assert isinstance(rebuilt, Function)
    return rebuilt, functions


def _defined(func: Function) -> list[Var]:
    """The symbols that a function defines: in its parameters' types, by ``match_cast``, as scalars that are bound."""
    found = defined_symbols(p.ty for p in func.params)
    found += [p for p in func.params if isinstance(p.ty, PrimType)]
    for binding in _bindings(func.body):
        if isinstance(binding, MatchCast):
            found += free_symbols(binding.ty)
        elif isinstance(binding, VarBinding) and isinstance(binding.var.ty, PrimType):
            found.append(binding.var)
    return found


def _moved(binding: VarBinding, outer: set[int], names: set[str]) -> tuple[GlobalVar, Function, tuple[Expr, ...]]:
    """A local function as one of the module: its variable, the function, and what its first parameters stand for."""
    func = binding.value
    assert isinstance(func, Function)
    variables, symbols = _free(func, binding.var, outer)
    bare = {id(s) for v in variables for s in _standing_alone(v.ty)}
    numbers = [s for s in symbols if id(s) not in bare]
    copies: dict[Var, Node] = {v: Var(v.name, v.ty) for v in variables}
    inside = substitute(func, copies)
    first = (*numbers, *(copies[v] for v in variables))
    attrs = {key: value for key, value in func.attrs.items() if key != "global_symbol"}
    params = (*first, *inside.params)
    made = Function(params, inside.body, inside.ret_ty, func.is_pure, attrs, span=func.span)
    made = substitute(made, {s: Var(s.name, s.ty) for s in symbols})  # variables whose types mention them are rebuilt
    target = GlobalVar(_unique(binding.var.name, names), made.ty)
    if any(n is binding.var for n in pre_order(made.body)):  # it mentions itself
        call = Call(MAKE_CLOSURE, (target, Tuple(made.params[: len(first)])))
        own = Var(binding.var.name, binding.var.ty)
        body = substitute(made.body, {binding.var: own})
        head = BindingBlock((VarBinding(own, replace(call, ty=infer(call))),))
        made = replace(made, body=replace(body, blocks=(head, *body.blocks)))
    return target, made, (*numbers, *variables)


def _unique(hint: str, names: set[str]) -> str:
    name, count = hint, 0
    while name in names:
        count += 1
        name = f"{hint}{count}"
    names.add(name)
    return name


def _free(func: Function, own: Var, outer: set[int]) -> tuple[list[Var], list[Var]]:
    """The variables and the symbols that a local function takes from around it, in order of first appearance."""
    inside: set[int] = {id(own)}
    found: dict[int, Var] = {}
    seen: set[int] = set()
    stack: list[Node] = [func]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Function):
            inside.update(id(p) for p in node.params)
        elif isinstance(node, (VarBinding, MatchCast)):
            inside.add(id(node.var))
        elif isinstance(node, Var):
            found.setdefault(id(node), node)
            if node is own:
                continue
        parts = list(children(node))
        ty = getattr(node, "ty", None) if not isinstance(node, Function) else None
        if isinstance(ty, Node):
            parts.append(ty)
        stack.extend(reversed(parts))
    free = [v for v in found.values() if id(v) not in inside]
    variables = [v for v in free if not isinstance(v.ty, PrimType)]
    return variables, [v for v in free if isinstance(v.ty, PrimType) and id(v) in outer]


def _standing_alone(ty: Type | None) -> list[Var]:
    """The symbols that a value of the type determines."""
    found: list[Var] = []
    stack: list[Type | None] = [ty]
    while stack:
        current = stack.pop()
        if isinstance(current, TupleType):
            stack.extend(current.fields)
        elif isinstance(current, TensorType):
            found += [d for d in tensor_dims(current) or () if isinstance(d, Var)]
        elif isinstance(current, ShapeType):
            found += [d for d in current.values or () if isinstance(d, Var)]
    return found


def _with_direct_calls(func: Function) -> Function:
    """Calls of variables that are bound to closures of the module's functions call those."""
    known: dict[int, tuple[GlobalVar, tuple[Expr, ...]]] = {}
    for node in pre_order(func):
        if isinstance(node, VarBinding) and isinstance(node.value, Call) and node.value.op is MAKE_CLOSURE:
            target, captured = node.value.args
            if isinstance(target, GlobalVar) and isinstance(captured, Tuple):
                known[id(node.var)] = target, captured.fields
    if not known:
        return func

    def rewrite(node: Node) -> Node | None:
        if not isinstance(node, Call) or id(node.op) not in known:
            return None
        target, captured = known[id(node.op)]
        return Call(target, (*captured, *node.args), span=node.span, ty=node.ty)

    made = transform(func, rewrite, into_types=False)
    assert isinstance(made, Function)
    return made
