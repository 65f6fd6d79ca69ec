"""``relax.transform``: passes under their public names. Only re-exports."""

from supple.transform import (
    AnnotateTIROpPattern,
    BindParams,
    DeadCodeElimination,
    FoldConstant,
    FuseOps,
    FuseTIR,
    LambdaLift,
    LegalizeOps,
    Pass,
    PassContext,
    Sequential,
    module_pass,
)

__all__ = [
    "AnnotateTIROpPattern",
    "BindParams",
    "DeadCodeElimination",
    "FoldConstant",
    "FuseOps",
    "FuseTIR",
    "LambdaLift",
    "LegalizeOps",
    "Pass",
    "PassContext",
    "Sequential",
    "module_pass",
]
