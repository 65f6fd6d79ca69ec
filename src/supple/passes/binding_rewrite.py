"""Changing a dataflow block binding by binding (``relax.binding_rewrite``)."""

from __future__ import annotations

from supple.base.errors import DiagnosticError
from supple.build.infer import infer
from supple.ir.expr import Call, DataflowVar, TupleGetItem, Var
from supple.ir.graph import Binding, DataflowBlock, Function, MatchCast, Tuple, VarBinding
from supple.ir.module import IRModule
from supple.ir.node import Expr, replace
from supple.ir.walk import pre_order, substitute


class DataflowBlockRewrite:
    """Edits one dataflow block of a function; the edited block and function are new nodes::

    rewrite = DataflowBlockRewrite(block, func)
    rewrite.add(relax.op.add(x, y), name="z")
    rewrite.replace_all_uses(old, new)
    rewrite.remove_unused(old)
    func = rewrite.mutated_root_fn()
    """

    def __init__(self, dfb: DataflowBlock, root_fn: Function) -> None:
        if all(dfb is not block for block in root_fn.body.blocks):
            raise DiagnosticError("DataflowBlockRewrite: the block is not one of the function's", rule="rewrite")
        self.dfb = dfb
        self.root_fn = root_fn
        self._position = next(i for i, block in enumerate(root_fn.body.blocks) if block is dfb)

    def add_binding(self, binding: Binding) -> None:
        """Append a binding. Raises ``ValueError`` when its variable is bound in the block already."""
        if any(b.var is binding.var for b in self._bindings()):  # type: ignore[attr-defined]
            raise DiagnosticError(f"add_binding: {binding.var.name} is bound already", rule="rewrite")  # type: ignore[attr-defined]
        self._put((*self.dfb.bindings, binding))

    def add(self, expr: Expr, name: str | None = None, is_dfvar: bool = False) -> None:
        """Append ``name = expr``; the variable is visible only in the block when ``is_dfvar``."""
        value = replace(expr, ty=infer(expr)) if isinstance(expr, (Call, Tuple, TupleGetItem)) else expr
        kind = DataflowVar if is_dfvar else Var
        taken = {b.var.name for b in self._bindings()} | {p.name for p in self.root_fn.params}
        base = name if name is not None else ("lv" if is_dfvar else "gv")
        unique, count = base, 0
        while unique in taken:
            count += 1
            unique = f"{base}{count}"
        self.add_binding(VarBinding(kind(unique, infer(value)), value))

    def remove_unused(self, var: Var, allow_undef: bool = False) -> None:
        """Remove the binding of a variable that nothing uses.

        Raises ``ValueError`` when something uses it, or (unless ``allow_undef``) when the block does not bind it.
        """
        kept = tuple(b for b in self._bindings() if b.var is not var)
        if len(kept) == len(self.dfb.bindings):
            if allow_undef:
                return
            raise DiagnosticError(f"remove_unused: {var.name} is not bound in the block", rule="rewrite")
        if self._is_used(var):
            raise DiagnosticError(f"remove_unused: {var.name} is used", rule="rewrite")
        self._put(kept)

    def remove_all_unused(self) -> None:
        """Remove every binding that nothing uses, again and again; outputs that nothing uses are kept."""
        while True:
            unused = [b for b in self._bindings() if isinstance(b.var, DataflowVar) and not self._is_used(b.var)]
            unused = [b for b in unused if not isinstance(b, MatchCast)]
            if not unused:
                return
            self._put(tuple(b for b in self.dfb.bindings if all(b is not u for u in unused)))

    def replace_all_uses(self, old_var: Var, new_var: Var) -> None:
        """Let everything that uses one variable use another, in the whole function (but not its own binding)."""
        if any(old_var is p for p in self.root_fn.params):
            raise DiagnosticError(f"replace_all_uses: {old_var.name} is a parameter", rule="rewrite")
        marker: list[Binding] = []
        for binding in self._bindings():
            changed = substitute(binding.value, {old_var: new_var})
            marker.append(binding if changed is binding.value else replace(binding, value=changed))
        self._put(tuple(marker))
        body = self.root_fn.body
        blocks = list(body.blocks)
        for i in range(self._position + 1, len(blocks)):
            blocks[i] = substitute(blocks[i], {old_var: new_var})
        result = substitute(body.body, {old_var: new_var})
        self.root_fn = replace(self.root_fn, body=replace(body, blocks=tuple(blocks), body=result))

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

    def _is_used(self, var: Var) -> bool:
        values = [b.value for b in self._bindings()]
        body = self.root_fn.body
        rest = [*body.blocks[self._position + 1 :], body.body]
        return any(item is var for part in (*values, *rest) for item in pre_order(part))

    def _put(self, bindings: tuple[Binding, ...]) -> None:
        self.dfb = replace(self.dfb, bindings=bindings)
        body = self.root_fn.body
        blocks = (*body.blocks[: self._position], self.dfb, *body.blocks[self._position + 1 :])
        self.root_fn = replace(self.root_fn, body=replace(body, blocks=blocks))
