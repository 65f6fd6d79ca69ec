"""Passes under Relax's public names (``relax.transform``): objects that take a module and return a new one.

mod = supple.transform.Sequential([FuseOps(), FuseTIR()])(mod)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from supple.build.block_builder import BlockBuilder
from supple.ir.expr import Call
from supple.ir.module import IRModule
from supple.ir.node import Expr
from supple.passes.annotate_pattern import annotate_pattern
from supple.passes.bind_params import bind_params
from supple.passes.dead_code import dead_code
from supple.passes.fold_constant import fold_constant
from supple.passes.fuse_ops import MAX_GROUP, fuse_ops
from supple.passes.fuse_tir import fuse_tir
from supple.passes.legalize import legalize
from supple.passes.lift_functions import lift_functions
from supple.passes.manager import (
    PASSES,
    DataflowBlockPass,
    FunctionPass,
    ModulePass,
    Pass,
    PassContext,
    PassInfo,
    PrimFuncPass,
    Sequential,
    dataflowblock_pass,
    function_pass,
    module_pass,
    prim_func_pass,
)


def LambdaLift() -> Pass:
    """Local functions become private functions of the module, and closures where they are values."""
    return Pass("LambdaLift", lift_functions)


def LegalizeOps(
    customize_legalize_map: Mapping[str, Callable[[BlockBuilder, Call], Expr]] | None = None,
    skip_ops: Sequence[str] | None = None,
    enable_warning: bool = False,
) -> Pass:
    """Operators become ``call_tir`` of loop functions. The map replaces the definition of some by full name; those in
    ``skip_ops`` stay; with ``enable_warning`` those that stay for want of a definition are named."""

    def run(mod: IRModule) -> IRModule:
        return legalize(
            mod,
            customize_legalize_map,
            skip=skip_ops or (),
            keep_marks=True,
            keep_unknown=True,
            warn=enable_warning,
        )

    return Pass("LegalizeOps", run)


def AnnotateTIROpPattern() -> Pass:
    """Loop functions get their kind for fusion (``op_pattern``)."""
    return Pass("AnnotateTIROpPattern", annotate_pattern)


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Calls that can run as one kernel become calls of functions that group them (``fuse_opt_level=0``: none)."""
    return Pass("FuseOps", lambda mod: fuse_ops(mod, max_group=1 if fuse_opt_level == 0 else MAX_GROUP))


def FuseTIR() -> Pass:
    """Each group becomes one loop function; loop functions that nothing calls any more go."""
    return Pass("FuseTIR", lambda mod: dead_code(fuse_tir(mod)))


def DeadCodeElimination(entry_functions: Sequence[str] | None = None) -> Pass:
    """Unused bindings and unreachable private functions go (with ``entry_functions``, all that they do not reach)."""
    return Pass("DeadCodeElimination", lambda mod: dead_code(mod, entry_functions or None))


def FoldConstant() -> Pass:
    """What depends on constants only is computed now."""
    return Pass("FoldConstant", fold_constant)


def PrintIR(header: str = "") -> Pass:
    """Print the module to the standard error, after a line with the header."""

    def run(mod: IRModule) -> IRModule:
        print(f"PrintIR({header}):\n{mod}", file=sys.stderr)
        return mod

    return Pass("PrintIR", run)


def BindParams(func_name: str, params: Mapping[Any, Any]) -> Pass:
    """Parameters of a function, by name or variable, become constants."""
    return Pass("BindParams", lambda mod: bind_params(mod, func_name, params))


for _make in (
    AnnotateTIROpPattern,
    DeadCodeElimination,
    FoldConstant,
    FuseOps,
    FuseTIR,
    LambdaLift,
    LegalizeOps,
):
    PASSES.register(f"relax.transform.{_make.__name__}", _make)

__all__ = [
    "AnnotateTIROpPattern",
    "BindParams",
    "DataflowBlockPass",
    "DeadCodeElimination",
    "FoldConstant",
    "FunctionPass",
    "FuseOps",
    "FuseTIR",
    "LambdaLift",
    "LegalizeOps",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PrimFuncPass",
    "PrintIR",
    "Sequential",
    "dataflowblock_pass",
    "function_pass",
    "module_pass",
    "prim_func_pass",
]
