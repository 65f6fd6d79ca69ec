"""Changing a dataflow block binding by binding (``relax.binding_rewrite``)."""

from __future__ import annotations

from supple.base.errors import DiagnosticError
from supple.build.infer import infer
from supple.ir.expr import Call, DataflowVar, TupleGetItem, Var
from supple.ir.graph import Binding, DataflowBlock, Function, MatchCast, Tuple, VarBinding
from supple.ir.module import IRModule
from supple.ir.node import Expr, Node, children, replace
from supple.ir.walk import pre_order, substitute, transform


class DataflowBlockRewrite:
    """Edits one dataflow block of a function, wherever it stands; the edited block and function are new nodes::

    rewrite = DataflowBlockRewrite(block, func)
    rewrite.add(relax.op.add(x, y), name="z")
    rewrite.replace_all_uses(old, new)
    rewrite.remove_unused(old)
    func = rewrite.mutated_root_fn()
    """

    def __init__(self, dfb: DataflowBlock, root_fn: Function) -> None:
        if not isinstance(dfb, DataflowBlock) or not isinstance(root_fn, Function):
            given = f"{type(dfb).__name__} and {type(root_fn).__name__}"
            raise TypeError(f"DataflowBlockRewrite: expected a dataflow block and its function, got {given}")
        places = [n for n, block in enumerate(_dataflow_blocks(root_fn)) if block is dfb]
        if not places:
            raise DiagnosticError("DataflowBlockRewrite: the block is not one of the function's", rule="rewrite")
        self.root_fn = root_fn
        self._place = places[0]

    @property
    def dfb(self) -> DataflowBlock:
        """The block as edited so far."""
        return _dataflow_blocks(self.root_fn)[self._place]

    def add_binding(self, binding: Binding) -> None:
        """Put a binding after all that it uses (the second, where that is nothing of the block).

        Raises ``ValueError`` when its variable is bound already."""
        var: Var = binding.var  # type: ignore[attr-defined]
        bindings = list(self._bindings())
        if any(b.var is var for b in bindings):
            raise DiagnosticError(f"add_binding: {var.name} is bound already", rule="rewrite")
        used = {id(n) for n in pre_order(binding.value) if isinstance(n, Var)}  # type: ignore[attr-defined]
        last = max((n for n, b in enumerate(bindings) if id(b.var) in used), default=0)
        self._put((*bindings[: last + 1], binding, *bindings[last + 1 :]))

    def add(self, expr: Expr, name: str | None = None, is_dfvar: bool = False) -> None:
        """Bind an expression, after all that it uses; the variable is visible only in the block when ``is_dfvar``."""
        value = replace(expr, ty=infer(expr)) if isinstance(expr, (Call, Tuple, TupleGetItem)) else expr
        kind = DataflowVar if is_dfvar else Var
        self.add_binding(VarBinding(kind("tmp" if name is None else name, infer(value)), value))

    def remove_unused(self, var: Var, allow_undef: bool = False) -> None:
        """Remove the binding of a variable that nothing uses.

        Raises ``ValueError`` when something uses it, or (unless ``allow_undef``) when the block does not bind it.
        """
        kept = tuple(b for b in self._bindings() if b.var is not var)
        if len(kept) == len(self._bindings()):
            if allow_undef:
                return
            raise DiagnosticError(f"remove_unused: {var.name} is not bound in the block", rule="rewrite")
        if id(var) in _used(self.root_fn):
            raise DiagnosticError(f"remove_unused: {var.name} is used", rule="rewrite")
        self._put(kept)

    def remove_all_unused(self) -> None:
        """Remove every binding that nothing in the function uses, again and again. A `MatchCast` stays: it checks."""
        while True:
            used = _used(self.root_fn)
            kept = tuple(b for b in self._bindings() if id(b.var) in used or isinstance(b, MatchCast))
            if len(kept) == len(self._bindings()):
                return
            self._put(kept)

    def replace_all_uses(self, old_var: Var, new_var: Var) -> None:
        """Let everything that uses one variable use another, in the whole function; what binds them stays.

        Raises ``ValueError`` for a variable that is not the function's."""
        known = {id(n) for n in pre_order(self.root_fn) if isinstance(n, Var)}
        for var in (old_var, new_var):
            if id(var) not in known:
                raise DiagnosticError(f"replace_all_uses: {var.name} is no variable of the function", rule="rewrite")
        kept = Var(old_var.name, old_var.ty)  # stands where the old one is bound, in the meantime

        def mark(node: Node) -> Node | None:
            if isinstance(node, (VarBinding, MatchCast)) and node.var is old_var:
                return replace(node, var=kept)
            if isinstance(node, Function) and any(p is old_var for p in node.params):
                return replace(node, params=tuple(kept if p is old_var else p for p in node.params))
            return None

        marked = transform(self.root_fn, mark)
        self.root_fn = substitute(substitute(marked, {old_var: new_var}), {kept: old_var})

    def mutated_dfb(self) -> DataflowBlock:
        """The block as edited so far."""
        return self.dfb

    def mutated_root_fn(self) -> Function:
        """The function with the block as edited so far."""
        return self.root_fn

    def mutate_irmodule(self, irmodule: IRModule) -> IRModule:
        """A module with the function of the same ``global_symbol`` replaced by the edited one."""
        name = self.root_fn.attrs.get("global_symbol")
        if not isinstance(name, str) or name not in irmodule:
            raise DiagnosticError(f"mutate_irmodule: the module has no function {name!r}", rule="rewrite")
        changed = irmodule.clone()
        changed[name] = self.root_fn
        return changed

    def _bindings(self) -> tuple[VarBinding | MatchCast, ...]:
        return self.dfb.bindings  # type: ignore[return-value]

    def _put(self, bindings: tuple[Binding, ...]) -> None:
        before = self.dfb
        after = replace(before, bindings=bindings)
        changed = transform(self.root_fn, lambda node: after if node is before else None, into_types=False)
        assert isinstance(changed, Function)
        self.root_fn = changed


def _dataflow_blocks(func: Function) -> list[DataflowBlock]:
    """The dataflow blocks of a function and its local functions, parents first: editing one keeps its place."""
    return [node for node in pre_order(func) if isinstance(node, DataflowBlock)]


def _used(func: Function) -> set[int]:
    """The ids of the variables that something uses: what only binds them does not count."""
    used: set[int] = set()
    seen: set[int] = set()
    stack: list[Node] = [func]
    while stack:
        node = stack.pop()
        if isinstance(node, Var):
            used.add(id(node))
        if id(node) in seen:
            continue
        seen.add(id(node))
        below = children(node)
        if isinstance(node, (VarBinding, MatchCast)):
            below = [child for child in below if child is not node.var]
            below += [node.value] if node.value is node.var else []
        elif isinstance(node, Function):
            below = [child for child in below if all(child is not p for p in node.params)]
        stack.extend(below)
    return used
