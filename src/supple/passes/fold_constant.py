"""FoldConstant: what depends on constants only is computed while compiling, by the interpreter."""

from __future__ import annotations

from supple.analysis.fusion import summarize
from supple.base import dtypes
from supple.base.errors import ExecutionError
from supple.interp.graph import Interpreter
from supple.ir import expr as E
from supple.ir.expr import Call, Var
from supple.ir.graph import (
    BindingBlock,
    Constant,
    Function,
    GlobalVar,
    SeqExpr,
    ShapeExpr,
    Tuple,
    VarBinding,
    constant,
)
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.node import Expr, Node, replace
from supple.ir.op import Fusion, Op
from supple.ir.types import TensorType
from supple.ir.walk import free_symbols, pre_order, transform
from supple.ops.calls import CALL_TIR
from supple.passes.escape import written_variables
from supple.passes.remarks import Remarks, remark
from supple.sym.relate import tensor_dims
from supple.sym.simplify import evaluate
from supple.verify.events import events

SMALL = 4096
"""Bytes up to which any result is folded; a larger one only when it is no larger than what it is made of."""


def fold_constant(mod: IRModule, remarks: Remarks | None = None, *, exact: bool = False) -> IRModule:
    """Replace calls whose operands are constants by their results.

    Before::

        lv = R.add(R.const([1.0, 2.0]), R.const([3.0, 4.0]))
        gv = R.multiply(x, lv)

    After::

        gv = R.multiply(x, metadata[...])       # [4.0, 6.0]; the unused binding goes with `dead_code`

    With ``exact`` only what the interpreter and native code compute to the same bits: no mathematical functions, no
    floating-point sums. Calls with effects, calls of packed functions, results of several tensors, results larger
    than both `SMALL` and their operands, and tensors that a call may write into stay. So does a call that fails: it
    then raises when it runs.
    """
    run = Interpreter(mod)
    changed = mod.clone()
    for var, func in mod.items():
        if isinstance(func, Function):
            made = _folded(mod, run, var.name_hint, func, remarks, exact)
            if made is not func:
                changed[var] = made
    return changed


def _folded(
    mod: IRModule, run: Interpreter, name: str, func: Function, remarks: Remarks | None, exact: bool
) -> Function:
    known: dict[int, Constant] = {}
    keep: list[Var] = []
    written = written_variables(func)
    for kind, item in events(func):
        if kind != "bind" or not isinstance(item, VarBinding) or id(item.var) in written:
            continue
        if isinstance(item.value, Constant):
            known[id(item.var)] = item.value
        elif isinstance(item.value, Call) and isinstance(item.var.ty, TensorType):
            call = _with_constants(item.value, known)
            if not isinstance(call, Call) or not _can_fold(mod, call, item.var.ty, exact):
                continue
            result = _value(run, call, item.var.ty)
            if isinstance(result, str):
                remark(remarks, "fold_constant", False, f"{name}.{item.var.name}", "it fails", result)
                continue
            remark(remarks, "fold_constant", True, f"{name}.{item.var.name}", "folded")
            known[id(item.var)] = result
            keep.append(item.var)
    if not known:
        return func

    def rewrite(node: Node) -> Node | None:
        if isinstance(node, VarBinding) and id(node.var) in known and not isinstance(node.value, Constant):
            return replace(node, value=known[id(node.var)])
        return _with_constants(node, known) if isinstance(node, (Call, Tuple)) else None

    made = transform(func, rewrite, into_types=False)
    assert isinstance(made, Function)
    return made


def _with_constants(node: Node, known: dict[int, Constant]) -> Node:
    """A call or tuple with variables replaced by constants."""

    def of(e: Expr) -> Expr:
        if isinstance(e, Tuple):
            made = _with_constants(e, known)
            assert isinstance(made, Tuple)
            return made
        return known.get(id(e), e)

    if isinstance(node, Call):
        args = tuple(of(a) for a in node.args)
        return node if all(a is b for a, b in zip(args, node.args, strict=True)) else replace(node, args=args)
    assert isinstance(node, Tuple)
    fields = tuple(of(f) for f in node.fields)
    return node if all(a is b for a, b in zip(fields, node.fields, strict=True)) else replace(node, fields=fields)


def _can_fold(mod: IRModule, call: Call, ty: TensorType, exact: bool) -> bool:
    op, args = call.op, call.args
    if op is CALL_TIR:
        callee = mod[args[0]] if isinstance(args[0], GlobalVar) else None
        if not isinstance(callee, PrimFunc) or (exact and not _is_exact(callee)):
            return False
        args = args[1:]
    elif exact or not isinstance(op, Op) or not op.pure or op.ref is None or op.facts.get("calls_loop_function"):
        return False
    dims = tensor_dims(ty)
    if dims is None or ty.dtype is None or not _is_constant(args):
        return False
    if any(free_symbols(d) for d in dims) or any(free_symbols(t) for t in call.ty_args):
        return False
    size = dtypes.nbytes(ty.dtype)
    for dim in dims:
        size *= evaluate(dim, {})
    given = sum(n.data.nbytes for a in args for n in pre_order(a) if isinstance(n, Constant))
    return bool(size <= max(SMALL, given))


def _is_constant(args: tuple[Expr, ...]) -> bool:
    stack = list(args)
    while stack:
        arg = stack.pop()
        if isinstance(arg, Tuple):
            stack.extend(arg.fields)
        elif isinstance(arg, ShapeExpr) or (E.is_scalar(arg) and not isinstance(arg, Call)):
            if free_symbols(arg):
                return False
        elif not isinstance(arg, Constant):
            return False
    return True


def _is_exact(func: PrimFunc) -> bool:
    """Whether every operation of a loop function is rounded the same way everywhere."""
    if summarize(func).kind > Fusion.INJECTIVE:
        return False
    calls = [n for n in pre_order(func.body) if isinstance(n, Call)]
    return all(getattr(c.op, "name", "") in ("tirx.if_then_else", "tirx.abs", "tirx.floor", "tirx.ceil") for c in calls)


def _value(run: Interpreter, call: Call, ty: TensorType) -> Constant | str:
    """The call's result, or what went wrong."""
    var = Var("folded", ty)
    func = Function((), SeqExpr((BindingBlock((VarBinding(var, call),)),), var), ty)
    try:
        result = run.call("fold_constant", func, [], None)
    except (ExecutionError, IndexError, ValueError) as error:
        # values that the operator (or numpy) refuses: the program says so when it runs, if it gets there
        return str(error)
    return replace(constant(result), ty=ty)
