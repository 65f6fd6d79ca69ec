"""Which variables of a graph function may outlive the activation, or be seen from outside it."""

from __future__ import annotations

from supple.ir.expr import Call, TupleGetItem, Var
from supple.ir.graph import Function, GlobalVar, If, MatchCast, SeqExpr, Tuple, VarBinding
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.node import Expr
from supple.ir.op import OPS, Op
from supple.ir.walk import pre_order
from supple.ops import calls, forms
from supple.passes.noalias import written_places
from supple.verify.purity import is_pure_call

_INSIDE = frozenset(
    (
        calls.CALL_TIR,
        forms.CALL_TIR_WITH_GRAD,
        calls.CALL_TIR_INPLACE,
        forms.VM_CALL_TIR_DYN,
        calls.shape_of,
        forms.tensor_to_shape,
        forms.ASSERT_OP,
        forms.MEMORY_KILL_TENSOR,
        forms.MEMORY_KILL_STORAGE,
        forms.VM_KILL_OBJECT,
    )
)
"""Calls whose arguments are only read or written while they run (``assert_op`` passes copies on when it fails)."""

_VIEWS = frozenset(
    (
        *(op for _, op in OPS.items() if op.facts.get("view")),
        forms.MEMORY_ALLOC_TENSOR,
        forms.VM_ALLOC_TENSOR,
        forms.MEMORY_VIEW,
        forms.ensure_zero_offset,
        forms.TO_VDEVICE,
        forms.HINT_ON_DEVICE,
        forms.stop_lift_params,
    )
)
"""Calls whose result shares the first argument's memory."""


def escaping_variables(func: Function) -> set[int]:
    """The ids of variables whose tensor may be returned (also by a branch), or passed to a packed or graph call.

    Values that contain or share memory with such a variable's are included.
    """
    flow = _Flow(func)
    for call in flow.calls:
        if not (isinstance(call.op, Op) and call.op in _INSIDE | _VIEWS):
            flow.results.extend(call.args)
    return flow.reached(flow.results)


def written_variables(func: Function) -> set[int]:
    """The ids of variables whose tensor a call may write into, now or later, under this or another name."""
    flow = _Flow(func)
    writing = [c for c in flow.calls if not is_pure_call(c) or (isinstance(c.op, Op) and c.op in _KEEPS)]
    return flow.reached([arg for call in writing for arg in call.args])


class _Flow:
    """Where values go in a function: ``calls``, ``results`` (of branches and of the function), and for each variable
    the variables whose memory it may hold."""

    def __init__(self, func: Function) -> None:
        self.calls: list[Call] = []
        self.results: list[Expr] = []
        self._parts: dict[int, list[Var]] = {}
        tuples: dict[int, Tuple] = {}
        pending: list[SeqExpr] = [func.body]
        while pending:
            sequence = pending.pop()
            self.results.append(sequence.body)
            for block in sequence.blocks:
                for binding in block.bindings:
                    assert isinstance(binding, (VarBinding, MatchCast))
                    value = binding.value
                    if isinstance(value, Tuple):
                        tuples[id(binding.var)] = value
                    self._parts[id(binding.var)] = _parts(value, tuples)
                    if isinstance(value, Call):
                        self.calls.append(value)
                    elif isinstance(value, SeqExpr):
                        pending.append(value)
                    elif isinstance(value, Function):  # it may do to what it captures what it does
                        pending.append(value.body)
                    elif isinstance(value, If):
                        for branch in (value.true_branch, value.false_branch):
                            if isinstance(branch, SeqExpr):
                                pending.append(branch)
                            else:
                                self.results.append(branch)

    def reached(self, roots: list[Expr]) -> set[int]:
        """The ids of the variables in ``roots``, and of those whose memory these may hold."""
        found: set[int] = set()
        work = [v for root in roots for v in _variables(root)]
        while work:
            var = work.pop()
            if id(var) not in found:
                found.add(id(var))
                work.extend(self._parts.get(id(var), ()))
        return found


def _parts(value: Expr, tuples: dict[int, Tuple]) -> list[Var]:
    if isinstance(value, TupleGetItem):
        source = value.tuple_value
        known = tuples.get(id(source)) if isinstance(source, Var) else source if isinstance(source, Tuple) else None
        return _variables(known.fields[value.index] if known is not None else source)
    if isinstance(value, Call):
        op = value.op if isinstance(value.op, Op) else None
        if op is calls.CALL_TIR_INPLACE:  # results are arguments
            return _variables(value.args[1])
        if op in _INSIDE:
            return []
        # a function may return what it was given
        return _variables(value.args[0]) if op in _VIEWS else [v for arg in value.args for v in _variables(arg)]
    if isinstance(value, If):
        return [v for branch in (value.true_branch, value.false_branch) for v in _variables(_result(branch))]
    if isinstance(value, SeqExpr):
        return _variables(_result(value))
    return _variables(value) if isinstance(value, (Var, Tuple)) else []


def _result(body: Expr) -> Expr:
    while isinstance(body, SeqExpr):
        body = body.body
    return body


def _variables(e: Expr) -> list[Var]:
    """The variables of a leaf: itself, or those in a (nested) tuple."""
    found: list[Var] = []
    stack = [e]
    while stack:
        current = stack.pop()
        if isinstance(current, Var):
            found.append(current)
        elif isinstance(current, Tuple):
            stack.extend(current.fields)
        elif isinstance(current, TupleGetItem):
            stack.append(current.tuple_value)
    return found


_KEEPS = frozenset(
    (
        calls.CALL_TIR_INPLACE,
        forms.CALL_INPLACE_PACKED,
        forms.VM_CALL_TIR_DYN,
        forms.MAKE_CLOSURE,
        forms.INVOKE_CLOSURE,
        forms.INVOKE_PURE_CLOSURE,
    )
)
"""Calls that write into their arguments, or keep them beyond the running call."""


def functions_that_keep(mod: IRModule) -> set[str]:
    """The names of functions that may keep their arguments beyond the call, or write into them, themselves or in
    functions that they mention."""
    stores = {var.name_hint: written_places(f) for var, f in mod.items() if isinstance(f, PrimFunc)}
    mentions: dict[str, list[str]] = {}
    keep: set[str] = set()
    for var, func in mod.items():
        name = var.name_hint
        if not isinstance(func, Function):
            continue
        for node in pre_order(func):
            if isinstance(node, GlobalVar):
                mentions.setdefault(node.name_hint, []).append(name)
            elif isinstance(node, Call) and _keeps(node, stores):
                keep.add(name)
    work = list(keep)
    while work:
        for name in mentions.get(work.pop(), ()):
            if name not in keep:
                keep.add(name)
                work.append(name)
    return keep


def _keeps(call: Call, stores: dict[str, frozenset[int]]) -> bool:
    """Whether a call may keep or write its arguments. ``stores``: which parameters a loop function writes."""
    if isinstance(call.op, GlobalVar):  # a loop function that is called directly may write
        return call.op.name_hint in stores
    if not isinstance(call.op, Op):
        return isinstance(call.op, Var)
    if call.op in _KEEPS or not call.op.facts.get("calls_loop_function"):
        return call.op in _KEEPS
    callee, args = call.args[:2]  # it should only read its inputs
    written = stores.get(callee.name_hint, frozenset()) if isinstance(callee, GlobalVar) else frozenset()
    return isinstance(args, Tuple) and any(place < len(args.fields) for place in written)
