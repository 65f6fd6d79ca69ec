"""FuseOps: calls of loop functions that can run as one kernel become calls of functions that group them.

Bindings of a dataflow block are visited from the last to the first. A binding joins the group of its users when all
of them are in one group, its value does not leave the block, and a rule allows it:

* an elementwise, broadcast or injective function joins where each of its elements is read at most once, so that
  computing it at the place of the read repeats nothing and changes no sum;
* a function that only permutes dimensions joins the contraction that reads its result, if ``moves`` is set (Relax's
  pass leaves it alone): the contraction then reads the operand as it lies in memory;
* a contraction joins when everything that depends on it in the group is elementwise on it: the group then runs on its
  finished sums. A group holds one contraction at most;
* all others stay alone.

A group has one result, that of its last binding, and nothing else of it is seen outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from supple.analysis.fusion import PATTERN, Summary, store_of, summarize
from supple.analysis.indices import reads_indices
from supple.build.block_builder import BlockBuilder
from supple.ir.expr import Call, DataflowVar, Var
from supple.ir.graph import (
    Binding,
    BindingBlock,
    DataflowBlock,
    Function,
    GlobalVar,
    SeqExpr,
    Tuple,
    VarBinding,
)
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.node import Expr, Node, Type, replace
from supple.ir.op import Fusion
from supple.ir.structural import structural_equal, structural_hash
from supple.ir.types import PrimType, TensorType
from supple.ir.walk import free_symbols, substitute, transform
from supple.ops.calls import CALL_TIR
from supple.passes.remarks import Remarks, remark
from supple.sym.relate import tensor_dims
from supple.sym.simplify import same_shape
from supple.verify.events import operands

PRIMITIVE = "Primitive"
"""The attribute of a function that stands for one kernel."""

MAX_GROUP = 64
"""The most bindings of a group: one kernel's text stays short, and so does the time to compile it."""

_STEP = "fuse_ops"


def fuse_ops(
    mod: IRModule, remarks: Remarks | None = None, *, max_group: int = MAX_GROUP, moves: bool = False
) -> IRModule:
    """Group what can run as one kernel.

    Before::

        lv = R.call_tir(cls.matmul, (x, w), out_ty=R.Tensor((n, 128), dtype="float32"))
        lv1 = R.call_tir(cls.add, (lv, b), out_ty=R.Tensor((n, 128), dtype="float32"))

    After::

        lv1 = cls.fused_matmul_add(x, w, b)

        @R.function(private=True)
        def fused_matmul_add(x, w, b):
            R.func_attr({"Primitive": True})
            with R.dataflow():
                lv = R.call_tir(cls.matmul, (x, w), ...)
                gv = R.call_tir(cls.add, (lv, b), ...)
                R.output(gv)
            return gv

    `fuse_tir` makes one loop function of each. Groups alike share a function.
    """
    run = _Run(mod, remarks, max_group, moves)
    for var, func in mod.items():
        if isinstance(func, Function) and PRIMITIVE not in func.attrs:
            made = run.function(var.name_hint, func)
            if made is not func:
                run.builder.update_func(var, made)
    return run.builder.get()


@dataclass
class _Member:
    """A binding that calls a loop function with one result: what the rules look at."""

    binding: VarBinding
    call: Call
    callee: GlobalVar
    func: PrimFunc
    summary: Summary
    args: tuple[Expr, ...]
    symbols: set[int] | None

    @property
    def var(self) -> Var:
        return self.binding.var

    def parameters_of(self, value: Expr) -> list[Var]:
        """The callee's parameters that take a value."""
        return [p for p, a in zip(self.func.params, self.args, strict=False) if a is value]


@dataclass
class _Group:
    """Members in reverse order of binding: the first gives the result."""

    members: list[_Member] = field(default_factory=list)

    @property
    def root(self) -> _Member:
        return self.members[0]

    @property
    def anchor(self) -> _Member | None:
        """The member that sums."""
        return next((m for m in self.members if m.summary.kind in (Fusion.REDUCTION, Fusion.OUT_FUSABLE)), None)


class _Run:
    """One run on a module."""

    def __init__(self, mod: IRModule, remarks: Remarks | None, max_group: int, moves: bool) -> None:
        self.mod = mod
        self.moves = moves
        self.remarks = remarks
        self.max_group = max_group
        self.builder = BlockBuilder(mod)
        self._made: dict[int, list[tuple[Function, GlobalVar]]] = {}

    def function(self, name: str, func: Function) -> Function:
        """The function with its dataflow blocks grouped."""
        self.name = name
        self.users = _users(func)

        def rewrite(node: Node) -> Node | None:
            return self._block(node) if isinstance(node, DataflowBlock) else None

        made = transform(func, rewrite, into_types=False)
        assert isinstance(made, Function)
        return made

    # -------------------------------------------------------------------------------------------------------- grouping

    def _block(self, block: DataflowBlock) -> DataflowBlock | None:
        members = {id(b): m for b in block.bindings if (m := self._member(b)) is not None}
        groups: dict[int, _Group] = {}  # by the variable's id
        for binding in reversed(block.bindings):
            member = members.get(id(binding))
            if member is None:
                continue
            group = self._joined(member, groups) or _Group()
            group.members.append(member)
            groups[id(member.var)] = group
        if all(len(g.members) == 1 for g in groups.values()):
            return None
        bindings: list[Binding] = []
        for binding in block.bindings:
            found = groups.get(id(binding.var))  # type: ignore[attr-defined]
            if found is None or len(found.members) == 1:
                bindings.append(binding)
            elif found.root.binding is binding:
                bindings.append(self._call(found))
        return DataflowBlock(tuple(bindings), span=block.span)

    def _member(self, binding: Binding) -> _Member | None:
        value = binding.value  # type: ignore[attr-defined]
        if not isinstance(binding, VarBinding) or not isinstance(value, Call) or value.op is not CALL_TIR:
            return None
        callee, args = value.args[0], value.args[1]
        if not isinstance(callee, GlobalVar) or not isinstance(args, Tuple):
            return None
        func = self.mod[callee]
        if not isinstance(func, PrimFunc) or not isinstance(binding.var.ty, TensorType):
            return None
        if len(value.args) > 2 or len(value.ty_args) != 1:
            self._blocked(binding.var, "call", "explicit symbols, or more than one result")
            return None
        summary = summarize(func)
        if summary.kind is Fusion.OPAQUE or func.attrs.get(PATTERN) == Fusion.OPAQUE:
            self._blocked(binding.var, "opaque", summary.reason or "the function says so")
            return None
        if func.params[-1] is not summary.result or any(not isinstance(a.ty, TensorType) for a in args.fields):  # type: ignore[attr-defined]
            self._blocked(binding.var, "opaque", "its result is not the last parameter")
            return None
        symbols = _symbols(binding, args.fields)
        return _Member(binding, value, callee, func, summary, args.fields, symbols)

    def _blocked(self, var: Var, rule: str, text: str = "") -> None:
        remark(self.remarks, _STEP, False, f"{self.name}.{var.name}", rule, text)

    def _joined(self, member: _Member, groups: dict[int, _Group]) -> _Group | None:
        """The group of all users of a binding, if the binding may join it."""
        users = self.users.get(id(member.var), [])
        if not isinstance(member.var, DataflowVar) or not users:
            return None
        of_users = [groups.get(id(u)) for u in users]
        group = of_users[0]
        if group is None or any(g is not group for g in of_users):
            self._blocked(member.var, "several users", "not all users are in one group")
            return None
        if len(group.members) >= self.max_group:
            self._blocked(member.var, "size", f"the group has {self.max_group} members already")
            return None
        problem = self._problem(member, group)
        if problem is not None:
            self._blocked(member.var, *problem)
            return None
        return group

    def _problem(self, member: _Member, group: _Group) -> tuple[str, str] | None:
        """The rule that keeps a binding out of a group, or None."""
        if not _symbols_are_known(member, group):
            return "symbols", "a size is not determined by the group's inputs"
        users = [m for m in group.members if m.parameters_of(member.var)]
        if member.summary.kind in (Fusion.REDUCTION, Fusion.OUT_FUSABLE):
            return self._sum_problem(member, group)
        store = store_of(member.summary.steps[-1])
        value = store.value
        if self.moves and len(member.summary.steps) == 1 and len(users) == 1:
            parameters = users[0].parameters_of(member.var)
            if len(parameters) == 1 and users[0].summary.moves(parameters[0], store):
                return None
        for user in users:
            parameters = user.parameters_of(member.var)
            if len(parameters) != 1 and user.summary.kind > Fusion.INJECTIVE:
                return "several reads", f"{user.callee.name_hint} reads it twice"
            for parameter in parameters:
                if not user.summary.reads_once(parameter, value):
                    return "work", f"computing it inside {user.callee.name_hint} would repeat it or change a sum"
        anchor = group.anchor
        if anchor is not None and anchor.summary.kind is Fusion.OUT_FUSABLE and member.summary.kind > Fusion.BROADCAST:
            return "epilogue", "only elementwise functions run on finished sums"
        return None

    def _sum_problem(self, member: _Member, group: _Group) -> tuple[str, str] | None:
        if group.anchor is not None:
            return "two sums", f"the group sums in {group.anchor.callee.name_hint} already"
        if member.summary.kind is Fusion.REDUCTION:
            return "reduction", "steps that follow a reduction run apart"
        shape = tensor_dims(member.var.ty)  # type: ignore[arg-type]
        tracked = {id(member.var)}
        for other in reversed(group.members):  # in order of execution
            own = [a for a in other.args if id(a) in tracked]
            if not own:
                continue
            elementwise = all(other.summary.is_elementwise_on(p) for a in own for p in other.parameters_of(a))
            dims = tensor_dims(other.var.ty)  # type: ignore[arg-type]
            if not elementwise or dims is None or shape is None or same_shape(dims, shape) is not True:
                return "epilogue", f"{other.callee.name_hint} is not elementwise on its sums"
            tracked.add(id(other.var))
        if any(m.summary.kind > Fusion.BROADCAST for m in group.members):
            return "epilogue", "only elementwise functions run on finished sums"
        return None

    # ------------------------------------------------------------------------------------------------------ the groups

    def _call(self, group: _Group) -> VarBinding:
        """The binding that calls a group's function."""
        members = list(reversed(group.members))
        inside = {id(m.var) for m in members}
        inputs: dict[int, Expr] = {}
        for member in members:
            for arg in member.args:
                if id(arg) not in inside:
                    inputs.setdefault(id(arg), arg)
        root = group.root
        assert root.var.ty is not None
        types = [t for t in (getattr(a, "ty", None) for a in inputs.values()) if isinstance(t, Type)]
        symbols = {s: Var(s.name, s.ty) for t in (*types, root.var.ty) for s in free_symbols(t)}
        params: dict[int, Var] = {}
        for position, (key, arg) in enumerate(inputs.items()):
            name = arg.name if isinstance(arg, Var) else f"param_{position}"
            params[key] = Var(name, substitute(arg.ty, symbols))  # type: ignore[attr-defined]
        func = self._function(members, params, symbols)
        name = "_".join(["fused", *(m.callee.name_hint for m in members)])
        var = self._added(func, name if len(name) <= 60 else f"{name[:50]}_and_more")
        remark(self.remarks, _STEP, True, f"{self.name}.{root.var.name}", "fused", var.name_hint)
        # a place for what may fail while it runs: the first call that reads indices, else the last
        place = next((m.call.span for m in members if reads_indices(m.func)), root.call.span)
        call = Call(var, tuple(inputs.values()), span=place, ty=root.call.ty)
        return replace(root.binding, value=call)

    def _function(self, members: list[_Member], params: dict[int, Var], symbols: dict[Var, Var]) -> Function:
        values = dict(params)
        bindings: list[VarBinding] = []
        for member in members:
            last = member is members[-1]
            ty = substitute(member.var.ty, symbols)  # type: ignore[arg-type]
            var = Var("gv", ty) if last else DataflowVar(member.var.name, ty)
            args = Tuple(tuple(values[id(a)] for a in member.args))
            types = tuple(substitute(t, symbols) for t in member.call.ty_args)
            made = Call(CALL_TIR, (member.callee, args), {}, types, span=member.call.span, ty=types[0])
            bindings.append(VarBinding(var, made, span=member.binding.span))
            values[id(member.var)] = var
        result = bindings[-1].var
        body = SeqExpr((DataflowBlock(tuple(bindings)),), result)
        return Function(tuple(params.values()), body, result.ty, True, {PRIMITIVE: True})

    def _added(self, func: Function, name: str) -> GlobalVar:
        key = structural_hash(func)
        for known, var in self._made.get(key, []):
            if structural_equal(known, func):
                return var
        var = self.builder.add_func(func, name)
        self._made.setdefault(key, []).append((func, var))
        return var


def _users(func: Function) -> dict[int, list[Var]]:
    """For each variable's id, the variables whose values use it; the variable itself where it is used otherwise (as a
    result, in a branch): no group holds that."""
    found: dict[int, list[Var]] = {}
    for body in _sequences(func):
        for block in body.blocks:
            for binding in block.bindings:
                for operand in operands(binding.value):  # type: ignore[attr-defined]
                    if isinstance(operand, Var) and not isinstance(operand.ty, PrimType):
                        found.setdefault(id(operand), []).append(binding.var)  # type: ignore[attr-defined]
        for operand in operands(body.body):
            if isinstance(operand, Var):
                found.setdefault(id(operand), []).append(operand)
    return found


def _sequences(func: Function) -> Iterator[SeqExpr]:
    seen: set[int] = set()
    stack: list[Node] = [func.body]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, SeqExpr):
            yield node
        stack.extend(_parts(node))


def _parts(node: Node) -> list[Node]:
    """What may hold further sequences: blocks, bindings, branches, local functions."""
    if isinstance(node, SeqExpr):
        return [*node.blocks, node.body]
    if isinstance(node, BindingBlock):
        return list(node.bindings)
    if isinstance(node, Binding):
        return [node.value]  # type: ignore[attr-defined]
    if isinstance(node, Function):
        return [node.body]
    return [getattr(node, n) for n in ("true_branch", "false_branch") if hasattr(node, n)]


def _symbols_are_known(member: _Member, group: _Group) -> bool:
    """Whether every symbol in a member's types stands alone as a dimension of an input of the group."""
    members = (*group.members, member)
    inside = {id(m.var) for m in members}
    wanted: set[int] = set()
    for one in members:
        if one.symbols is None:
            return False
        wanted |= one.symbols
    if not wanted:
        return True
    defined = {id(d) for m in members for a in m.args if id(a) not in inside for d in _dims(a) if isinstance(d, Var)}
    return wanted <= defined


def _dims(arg: Expr) -> tuple[Expr, ...]:
    ty = getattr(arg, "ty", None)
    return (tensor_dims(ty) or ()) if isinstance(ty, TensorType) else ()


def _symbols(binding: VarBinding, args: tuple[Expr, ...]) -> set[int] | None:
    """The ids of the symbols in the sizes of operands and result; None when a size is not known."""
    types = [binding.var.ty, *(getattr(a, "ty", None) for a in args)]
    if any(not isinstance(t, TensorType) or tensor_dims(t) is None for t in types):
        return None
    return {id(s) for t in types if t is not None for d in tensor_dims(t) or () for s in free_symbols(d)}  # type: ignore[arg-type]
