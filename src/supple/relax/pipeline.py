"""``relax.get_pipeline``: passes in a row under a name.

`supple.compile` lowers whatever module it is given, so a pipeline is never needed for a result; it shows, or changes,
what the module looks like on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple.base.registry import did_you_mean
from supple.ir.module import IRModule
from supple.passes.manager import Pass, PassContext, Sequential, module_pass
from supple.transform import AnnotateTIROpPattern, FoldConstant, FuseOps, FuseTIR, LegalizeOps


def zero_pipeline(*, enable_warning: bool = False) -> Pass:
    """Operators become loop functions, which are fused: ``LegalizeOps`` to ``FuseTIR``."""

    def pipeline(mod: IRModule, ctx: PassContext) -> IRModule:
        first = LegalizeOps(enable_warning=enable_warning)
        return Sequential([first, AnnotateTIROpPattern(), FoldConstant(), FuseOps(), FuseTIR()])(mod)

    made: Pass = module_pass(pipeline, opt_level=0, name="zero_pipeline")
    return made


PIPELINES: dict[str, Callable[..., Pass]] = {
    "zero": zero_pipeline,
    "default": zero_pipeline,
    "default_build": zero_pipeline,
}


def get_pipeline(name: str = "zero", **kwargs: Any) -> Pass:
    """The pipeline of that name, made with ``kwargs``. Raises ``ValueError`` with the known names for a miss."""
    if name not in PIPELINES:
        known = ", ".join(sorted(PIPELINES))
        raise ValueError(f"there is no pipeline {name!r}{did_you_mean(name, sorted(PIPELINES))}; there are {known}")
    return PIPELINES[name](**kwargs)


def register_pipeline(name: str) -> Callable[[Callable[..., Pass]], Callable[..., Pass]]:
    """A decorator: the function makes the pipeline of that name. Raises ``ValueError`` when there is one already."""
    if name in PIPELINES:
        raise ValueError(f"there is a pipeline {name!r} already")

    def register(make: Callable[..., Pass]) -> Callable[..., Pass]:
        PIPELINES[name] = make
        return make

    return register


def get_default_pipeline(target: Any = None) -> Pass:
    """The pipeline that a build for a target starts with: the same one for every target."""
    return get_pipeline("default_build")
