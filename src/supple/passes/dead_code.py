"""DeadCodeElimination: what no result needs goes: bindings without effect, private functions nobody reaches."""

from __future__ import annotations

from collections.abc import Sequence

from supple.analysis.unused import remove_all_unused
from supple.ir.graph import Function, GlobalVar
from supple.ir.module import IRModule
from supple.ir.walk import pre_order


def dead_code(mod: IRModule, entry_functions: Sequence[str] | None = None) -> IRModule:
    """Remove bindings whose variables are not used and whose values have no effect, then private functions that
    nothing reaches.

    ``entry_functions`` names what is kept (default: every public function); with it, other public functions that are
    not reached go as well. Raises ``KeyError`` for a name that the module has not.

    Before::

        lv = R.add(x, x)
        lv1 = R.multiply(x, x)
        R.output(lv1)

    After::

        lv1 = R.multiply(x, x)
        R.output(lv1)
    """
    slim = mod.clone()
    for var, func in mod.items():
        if isinstance(func, Function):
            slim[var] = remove_all_unused(func)
    return used_functions(slim, entry_functions)


def used_functions(mod: IRModule, entry_functions: Sequence[str] | None = None) -> IRModule:
    """The module without functions that no entry function (default: no public one) reaches."""
    if entry_functions is None:
        work = [v.name_hint for v, f in mod.items() if "global_symbol" in getattr(f, "attrs", {})]
    else:
        work = [mod.get_global_var(name).name_hint for name in entry_functions]
    reached: set[str] = set()
    while work:
        name = work.pop()
        if name in reached:
            continue
        reached.add(name)
        mentioned = [n for n in pre_order(mod[name]) if isinstance(n, GlobalVar)]
        work.extend(g.name_hint for g in mentioned if g in mod.functions)
    kept = {v: f for v, f in mod.items() if v.name_hint in reached}
    if len(kept) == len(mod.functions):
        return mod
    return IRModule(kept, mod.attrs, mod.global_infos)  # type: ignore[arg-type]
